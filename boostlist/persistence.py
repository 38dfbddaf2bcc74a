"""Models in files: arrays and JSON in one ``.npz``, without pickle.

A file holds a header, JSON in UTF-8 as an array of bytes, and the model's arrays under their names:

    {"format": "boostlist model", "version": 1, "model": "LinearRanker", "parameters": {...}, "attributes": {...}}

Loading looks the model's name up in `boostlist.rankers` and runs nothing from the file. To make a ranker of that table
storable, derive it from `Storable`.
"""

from __future__ import annotations

import contextlib
import json
import os
import struct
import tempfile
import zipfile
import zlib
from dataclasses import fields
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from boostlist._typing import AnyArray
from boostlist.losses import Loss, Sum, registry
from boostlist.rankers import RANKERS

BOOSTER_FILES = (b"tree\n", b"{")
"""How the files of LightGBM and of XGBoost begin: a `boostlist.TreeRanker` is stored in one of these."""

_FORMAT, _VERSION, _HEADER = "boostlist model", 1, "header"
# What NumPy raises on a file that it cannot read, or whose arrays or header are not what they must be.
_UNREADABLE = (
    *(AttributeError, EOFError, KeyError, MemoryError, OSError, OverflowError, RuntimeError, TypeError, ValueError),
    *(struct.error, zipfile.BadZipFile, zlib.error),
)
_CSR_PARTS = ("data", "indices", "indptr", "shape")

PathLike = str | os.PathLike[str]


class Storable:
    """Adds ``save`` to an estimator: its parameters, and the fitted attributes named in `_stored`.

    Attributes are stored as arrays (CSR matrices in parts), or as JSON if they are numbers, strings, lists or losses.
    Missing ones are left out, but the first is there as soon as the estimator is fitted. Override `_state` and
    `_restore` for anything else.
    """

    _stored: ClassVar[tuple[str, ...]]

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, self._stored[0])

    def save(self, path: PathLike) -> Path:
        """Write the model to a ``.npz`` file that `boostlist.load` reads.

        The file appears complete or not at all.

        Raises
        ------
        ValueError
            If the model is not fitted, or a parameter cannot be written without pickle, such as a callable.
        """
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(self)
        parameters = {name: encode(value, name) for name, value in self.get_params(deep=False).items()}  # type: ignore[attr-defined]
        attributes, arrays = self._state()
        header = {
            "format": _FORMAT,
            "version": _VERSION,
            "model": type(self).__name__,
            "parameters": parameters,
            "attributes": attributes,
        }
        return _write(Path(path), header, arrays)

    def _state(self) -> tuple[dict[str, Any], dict[str, AnyArray]]:
        """Return fitted attributes: those that go into the header, and arrays."""
        attributes: dict[str, Any] = {}
        arrays: dict[str, AnyArray] = {}
        for name in ("n_features_in_", "feature_names_in_", *self._stored):
            value = getattr(self, name, None)
            if value is None:
                continue
            if sparse.issparse(value):
                arrays |= {f"{name}.{part}": np.asarray(getattr(value, part)) for part in _CSR_PARTS}
            elif isinstance(value, np.ndarray):
                arrays[name] = value.astype(str) if value.dtype == object else value
            else:
                attributes[name] = encode(value, name)
        return attributes, arrays

    def _restore(self, attributes: dict[str, Any], arrays: dict[str, AnyArray]) -> None:
        """Set fitted attributes from what `_state` returned."""
        for name, value in attributes.items():
            setattr(self, name, decode(value))
        for name, array in arrays.items():
            stem, _, part = name.partition(".")
            if not part:
                setattr(self, name, array.astype(object) if name == "feature_names_in_" else array)
            elif part == _CSR_PARTS[0]:
                data, indices, indptr, shape = (arrays[f"{stem}.{p}"] for p in _CSR_PARTS)
                setattr(self, stem, sparse.csr_matrix((data, indices, indptr), shape=tuple(shape.tolist())))


def load(path: PathLike) -> Any:
    """Load a model that ``save`` has written.

    Raises
    ------
    ValueError
        If the file is not a model of boostlist, is damaged, or was written by a later version.

    Examples
    --------
    >>> import boostlist, tempfile, pathlib
    >>> model = boostlist.LinearRanker().fit([[0.0], [1.0], [2.0]], [0, 1, 2], group=[3])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = model.save(pathlib.Path(folder) / "m.npz")
    ...     bool(boostlist.load(path).coef_ == model.coef_)
    True
    """
    path = Path(path)
    with path.open("rb") as file:
        head = file.read(5)
    if head.startswith(BOOSTER_FILES):
        from boostlist.boosters.model_file import read_ranker

        return read_ranker(path)
    header, arrays = _read(path)
    name = header["model"]
    model_class: Any = RANKERS[name].load() if name in RANKERS else object
    if not issubclass(model_class, Storable):
        raise ValueError(f"{path} holds a model {name!r}, which this version of boostlist does not know; upgrade it")
    try:
        model: Any = model_class(**{key: decode(value) for key, value in header["parameters"].items()})
        model._restore(header["attributes"], arrays)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ValueError(f"{path} is damaged: its {name} cannot be put together ({error})") from error
    if not (model.__sklearn_is_fitted__() and hasattr(model, "n_features_in_")):
        raise ValueError(f"{path} is damaged: its {name} lacks what it was fitted to")
    return model


def encode(value: Any, what: str) -> Any:
    """Return a value as JSON can hold it; `what` names it in the error."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.generic):
        return encode(value.item(), what)
    if isinstance(value, list | tuple):
        return [encode(item, what) for item in value]
    if isinstance(value, Sum):
        return {"sum": [[factor, encode(loss, what)] for factor, loss in value.terms]}
    names = {loss: name for name, loss in registry.items()}
    if isinstance(value, Loss) and type(value) in names:
        return {"loss": names[type(value)], "parameters": {f.name: getattr(value, f.name) for f in fields(value)}}
    raise ValueError(
        f"{what}={value!r} cannot be saved: a file holds numbers, strings, lists and the losses of boostlist's registry"
    )


def decode(value: Any) -> Any:
    """Return what `encode` was given; tuples come back as lists."""
    if isinstance(value, list):
        return [decode(item) for item in value]
    if not isinstance(value, dict):
        return value
    if "sum" in value:
        return Sum(terms=tuple((float(factor), decode(loss)) for factor, loss in value["sum"]))
    parameters = {name: tuple(v) if isinstance(v, list) else v for name, v in value["parameters"].items()}
    return registry[value["loss"]](**parameters)


def _write(path: Path, header: dict[str, Any], arrays: dict[str, AnyArray]) -> Path:
    """Write to a temporary file beside the target and move it there in one step."""
    contents: dict[str, Any] = {_HEADER: np.frombuffer(json.dumps(header).encode(), np.uint8), **arrays}
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            np.savez_compressed(file, **contents)
            file.flush()
            os.fsync(file.fileno())
        # mkstemp makes the file private; a model gets the permissions that any new file would have.
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(name, 0o666 & ~mask)
        os.replace(name, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name)
        raise
    return path


def _read(path: Path) -> tuple[dict[str, Any], dict[str, AnyArray]]:
    # NumPy's own words are left out: for a file that is no archive they advise to unpickle it.
    foreign = (
        f"{path} is not a model of boostlist, or is damaged; expected is what `save` of an estimator has written: "
        ".npz, or with trees a model file of LightGBM (text) or XGBoost (.json, .ubj)"
    )
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        header = json.loads(arrays.pop(_HEADER).tobytes().decode())
    except FileNotFoundError:
        raise
    except _UNREADABLE:
        raise ValueError(foreign) from None
    if not isinstance(header, dict) or header.get("format") != _FORMAT:
        raise ValueError(foreign)
    if header.get("version") != _VERSION:
        raise ValueError(
            f"{path} has version {header.get('version')} of the format; this boostlist reads version {_VERSION}. "
            "Upgrade boostlist"
        )
    kinds = {"model": str, "parameters": dict, "attributes": dict}
    if not all(isinstance(header.get(key), kind) for key, kind in kinds.items()):
        raise ValueError(f"{path} is damaged: its header is incomplete")
    return header, arrays
