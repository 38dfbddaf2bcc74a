"""A `TreeRanker` in a file: the host's own model file, with a note and a checksum that the host ignores.

LightGBM and XGBoost read the file as any other of theirs and predict the same scores. The note is JSON,

    {"version": 2, "model": "TreeRanker", "parameters": {...}, "attributes": {...}}

Note and checksum stand in LightGBM's text in lines of their own, in XGBoost's model as attributes. The checksum is that
of the whole file with zeros in its own place. It is compared before the host reads a byte, since hosts crash, hang or
predict something else on damaged files. Loading runs nothing from the note.
"""

from __future__ import annotations

import json
import re
from dataclasses import fields
from pathlib import Path
from typing import Any, NamedTuple

from boostlist.boosters.hosts import CHECKSUM, NOTE, Backend, host
from boostlist.boosters.objective import Objective
from boostlist.boosters.position_bias import PositionBias
from boostlist.files import FileFormatError, PathLike, check_version, checksum, open_regular, write
from boostlist.persistence import BOOSTER_FILES, decode, encode
from boostlist.positions import hashable

_VERSION = 2
_ZEROS = "00000000"
# As it stands in LightGBM's text, in JSON and in binary JSON.
_SEAL = re.compile(CHECKSUM.encode() + rb'(?::|":"|SL\x00{7}\x08)([0-9a-f]{8})')


class Stored(NamedTuple):
    """What a file holds: the name of the host, its booster, and parameters and attributes of the ranker."""

    backend: Backend
    booster: Any
    parameters: dict[str, Any]
    attributes: dict[str, Any]


def write_model(path: PathLike, model: Stored) -> Path:
    """Write a ranker; the file appears complete or not at all."""
    path = Path(path)
    check_suffix(model.backend, path)
    return write(path, to_bytes(model, path.suffix))


def to_bytes(model: Stored, suffix: str) -> bytes:
    """Return the contents of a file of this suffix."""
    note = {
        "version": _VERSION,
        "model": "TreeRanker",
        "parameters": {name: _encode(value, name) for name, value in model.parameters.items()},
        "attributes": {name: _encode(value, name) for name, value in model.attributes.items()},
    }
    notes = {NOTE: json.dumps(note), CHECKSUM: _ZEROS}
    return _sealed(host(model.backend).to_bytes(model.booster, notes, suffix))


def check_suffix(backend: str, path: PathLike) -> None:
    """Raise a ValueError for a file name that the host would not know for a model of its own."""
    if backend == "xgboost" and Path(path).suffix not in (".json", ".ubj"):
        raise ValueError(f"XGBoost tells its formats by the suffix: the name must end in .json or .ubj, not {path}")


def read_model(path: PathLike) -> Stored:
    """Read what `write_model` has written."""
    with open_regular(path) as file:
        return from_bytes(file.read(), path)


def from_bytes(content: bytes, path: PathLike) -> Stored:
    """Read the contents of a file; its name is for errors.

    Raises
    ------
    FileFormatError
        If the file is no model of a host, has no note - a plain model of LightGBM or XGBoost - or is damaged.
    """
    backend = _backend(content)
    if backend is None:
        raise FileFormatError(f"{path} is not a model of boostlist, LightGBM or XGBoost, or is damaged")
    _check_seal(path, content, backend)
    try:
        booster, text = host(backend).from_bytes(content)
        note = json.loads(text or "")
        version = int(note["version"])
    except Exception as error:  # each host has its own kind, and a forged note may hold anything
        raise FileFormatError(
            f"{path} is damaged: its {backend} model cannot be read ({str(error).partition(chr(10))[0]})"
        ) from error
    check_version(path, version, _VERSION)
    try:
        parameters, attributes = (
            {name: _decode(value) for name, value in note[part].items()} for part in ("parameters", "attributes")
        )
    except Exception as error:
        raise FileFormatError(f"{path} is damaged: its note makes no sense ({error!r})") from error
    return Stored(backend, booster, parameters, attributes)


def _sealed(content: bytes) -> bytes:
    """Return the content with its checksum in the place of the zeros."""
    seal = _SEAL.search(content)
    if seal is None or seal[1] != _ZEROS.encode():
        raise RuntimeError("the host has not written the place for the checksum; this is a defect of boostlist")
    return content[: seal.start(1)] + checksum(content).encode() + content[seal.end(1) :]


def _check_seal(path: PathLike, content: bytes, backend: Backend) -> None:
    seal = _SEAL.search(content)
    if seal is None and NOTE.encode() not in content:
        raise FileFormatError(
            f"{path} holds no TreeRanker but a plain model of {backend}, which has no checksum and cannot be checked, "
            f"or is damaged; if you trust it, read it with {backend}.Booster(model_file=...)"
        )
    zeroed = b"" if seal is None else content[: seal.start(1)] + _ZEROS.encode() + content[seal.end(1) :]
    if seal is None or checksum(zeroed).encode() != seal[1]:
        raise FileFormatError(f"{path} is damaged: it is not what was written")


def _backend(content: bytes) -> Backend | None:
    """Tell the hosts' files apart by how they begin."""
    lightgbm, xgboost = BOOSTER_FILES
    if content.startswith(lightgbm):
        return "lightgbm"
    return "xgboost" if content.startswith(xgboost) else None


def _encode(value: Any, what: str) -> Any:
    if isinstance(value, Objective | PositionBias):
        name = "objective" if isinstance(value, Objective) else "position_bias"
        changed = [field.name for field in fields(value) if getattr(value, field.name) != field.default]
        return {name: {field: _encode(getattr(value, field), what) for field in changed}}
    if isinstance(value, dict):
        return {"mapping": {str(key): _encode(item, what) for key, item in value.items()}}
    return encode(value, what)


def _decode(value: Any) -> Any:
    if isinstance(value, dict) and "objective" in value:
        return Objective(**{name: _decode(item) for name, item in value["objective"].items()})
    if isinstance(value, dict) and "position_bias" in value:
        parameters = {name: _decode(item) for name, item in value["position_bias"].items()}
        return PositionBias(**parameters | {"start": [(hashable(p), b) for p, b in parameters.get("start", ())]})
    if isinstance(value, dict) and "mapping" in value:
        return {key: _decode(item) for key, item in value["mapping"].items()}
    return decode(value)
