"""A `TreeRanker` in a file: the host's own model file, with a note that the host ignores.

LightGBM and XGBoost read the file as any other of theirs and predict the same scores. The note is JSON,

    {"format": "boostlist model", "version": 1, "model": "TreeRanker", "parameters": {...}, "attributes": {...}}

and stands in LightGBM's text in a line of its own, in XGBoost's model as an attribute. Loading runs nothing from it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from boostlist.boosters.hosts import Backend, host
from boostlist.boosters.objective import Objective
from boostlist.files import PathLike, write
from boostlist.persistence import BOOSTER_FILES, decode, encode

if TYPE_CHECKING:
    from boostlist.boosters.tree_ranker import TreeRanker

_FORMAT, _VERSION = "boostlist model", 1


def write_ranker(ranker: TreeRanker, path: PathLike) -> Path:
    """Write a fitted ranker; the file appears complete or not at all."""
    path = Path(path)
    check_suffix(ranker.backend, path)
    note = {
        "format": _FORMAT,
        "version": _VERSION,
        "model": "TreeRanker",
        "parameters": {name: _encode(value, name) for name, value in ranker.get_params(deep=False).items()},
        "attributes": {
            "n_features_in_": ranker.n_features_in_,
            "feature_names_in_": getattr(ranker, "feature_names_in_", np.array([])).tolist() or None,
            "objective_": _encode(ranker.objective_, "objective_"),
            "evals_result_": ranker.evals_result_,
        },
    }
    content = host(ranker.backend).to_bytes(ranker.booster_, json.dumps(note), path.suffix)
    return write(path, content)


def check_suffix(backend: str, path: PathLike) -> None:
    """Raise a ValueError for a file name that the host would not know for a model of its own."""
    if backend == "xgboost" and Path(path).suffix not in (".json", ".ubj"):
        raise ValueError(f"XGBoost tells its formats by the suffix: the name must end in .json or .ubj, not {path}")


def read_ranker(path: PathLike) -> TreeRanker:
    """Read what `write_ranker` has written.

    Raises
    ------
    ValueError
        If the file is no model of a host, or has no note: a plain model of LightGBM or XGBoost.
    """
    from boostlist.boosters.tree_ranker import TreeRanker

    path = Path(path)
    content = path.read_bytes()
    backend = _backend(content)
    if backend is None:
        raise ValueError(f"{path} is not a model of boostlist, LightGBM or XGBoost, or is damaged")
    try:
        booster, text = host(backend).from_bytes(content)
    except Exception as error:  # each host has its own kind
        raise ValueError(f"{path} is damaged: {backend} cannot read it ({str(error).splitlines()[0]})") from error
    if text is None:
        raise ValueError(
            f"{path} holds no TreeRanker but a plain model of {backend}, or is damaged; read a plain one with "
            f"{backend}.Booster(model_file=...)"
        )
    note = json.loads(text)
    if note.get("format") != _FORMAT or note.get("version") != _VERSION:
        raise ValueError(
            f"{path} has version {note.get('version')} of the format; this boostlist reads version {_VERSION}. Upgrade "
            "boostlist"
        )
    attributes = note["attributes"]
    ranker = TreeRanker(**{name: _decode(value) for name, value in note["parameters"].items()})
    ranker.n_features_in_ = attributes["n_features_in_"]
    if attributes["feature_names_in_"] is not None:
        ranker.feature_names_in_ = np.array(attributes["feature_names_in_"], object)
    return ranker.adopt(booster, _decode(attributes["objective_"]), attributes["evals_result_"])


def _backend(content: bytes) -> Backend | None:
    """Tell the hosts' files apart by how they begin."""
    lightgbm, xgboost = BOOSTER_FILES
    if content.startswith(lightgbm):
        return "lightgbm"
    return "xgboost" if content.startswith(xgboost) else None


def _encode(value: Any, what: str) -> Any:
    if isinstance(value, Objective):
        return {"objective": encode(value.loss, what), "scale": value.scale}
    if isinstance(value, dict):
        return {"mapping": {str(key): _encode(item, what) for key, item in value.items()}}
    return encode(value, what)


def _decode(value: Any) -> Any:
    if isinstance(value, dict) and "objective" in value:
        return Objective(loss=decode(value["objective"]), scale=value["scale"])
    if isinstance(value, dict) and "mapping" in value:
        return {key: _decode(item) for key, item in value["mapping"].items()}
    return decode(value)
