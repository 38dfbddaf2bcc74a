"""Models in files: arrays and JSON in one archive (`boostlist.files`), without pickle.

The arrays stand under their names; the JSON is

    {"model": "LinearRanker", "parameters": {...}, "attributes": {...}}

Loading looks the model's name up in `boostlist.rankers` and runs nothing from the file. To make a ranker of that table
storable, derive it from `Storable`.
"""

from __future__ import annotations

from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy import sparse

from boostlist._typing import AnyArray
from boostlist.calibration import METHODS
from boostlist.files import FileFormatError, Kind, PathLike, open_regular, read_archive, write_archive
from boostlist.losses import Loss, Mapped, Sum, registry
from boostlist.rankers import RANKERS

BOOSTER_FILES = (b"tree\n", b"{")
"""How the files of LightGBM and of XGBoost begin: a `boostlist.TreeRanker` is stored in one of these."""

_MODEL = Kind(
    "model",
    2,
    "expected is what `save` of an estimator has written: .npz, or with trees a model file of LightGBM (text) or "
    "XGBoost (.json, .ubj)",
)
_CSR_PARTS = ("data", "indices", "indptr", "shape")


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
        return write_archive(path, _MODEL, *pack(self))

    def _stored_parameters(self) -> dict[str, Any]:
        """Return the parameters as JSON can hold them; `_restore` may set those that are fitted things themselves."""
        parameters = self.get_params(deep=False)  # type: ignore[attr-defined]
        return {name: encode(value, name) for name, value in parameters.items()}

    def _state(self) -> tuple[dict[str, Any], dict[str, AnyArray]]:
        """Return fitted attributes: those that go into the header, and arrays."""
        attributes: dict[str, Any] = {}
        arrays: dict[str, AnyArray] = {}
        for name in ("n_features_in_", "feature_names_in_", "calibration_", *self._stored):
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


class Packed(NamedTuple):
    """A model as a file holds it: JSON, and arrays by name."""

    about: dict[str, Any]
    arrays: dict[str, AnyArray]


def pack(model: Storable) -> Packed:
    """Return a fitted model in the form in which it is stored.

    Raises
    ------
    ValueError
        If it is not fitted, or a parameter cannot be written without pickle.
    """
    from sklearn.utils.validation import check_is_fitted

    check_is_fitted(model)
    attributes, arrays = model._state()
    about = {"model": type(model).__name__, "parameters": model._stored_parameters(), "attributes": attributes}
    return Packed(about, arrays)


def unpack(packed: Packed, where: PathLike) -> Any:
    """Return the model that was packed; `where` names the file in errors.

    Raises
    ------
    FileFormatError
        If it is no model, or not one that this version knows.
    """
    about, views = packed
    kinds = {"model": str, "parameters": dict, "attributes": dict}
    if not all(isinstance(about.get(key), kind) for key, kind in kinds.items()):
        raise FileFormatError(f"{where} is damaged: it does not say what model it holds")
    name = about["model"]
    model_class: Any = RANKERS[name].load() if name in RANKERS else object
    if not issubclass(model_class, Storable):
        raise FileFormatError(
            f"{where} holds a model {name!r}, which this version of boostlist does not know; upgrade it"
        )
    # Arrays of their own, as those of a model that was fitted here; in the byte order of this machine.
    arrays = {key: np.array(view, view.dtype.newbyteorder("=")) for key, view in views.items()}
    try:
        model: Any = model_class(**{key: decode(value) for key, value in about["parameters"].items()})
        model._restore(about["attributes"], arrays)
    except Exception as error:  # a forged file may hold anything
        raise FileFormatError(f"{where} is damaged: its {name} cannot be put together ({error})") from error
    if not (model.__sklearn_is_fitted__() and hasattr(model, "n_features_in_")):
        raise FileFormatError(f"{where} is damaged: its {name} lacks what it was fitted to")
    return model


def load(path: PathLike) -> Any:
    """Load a model that ``save`` has written.

    Raises
    ------
    FileFormatError
        If the file is not a model of boostlist, is damaged, or was written by another version: a ValueError.

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
    with open_regular(path) as file:
        head = file.read(5)
    if head.startswith(BOOSTER_FILES):
        return RANKERS["TreeRanker"].load().from_file(path)
    return unpack(Packed(*read_archive(path, _MODEL)), path)


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
    if isinstance(value, Mapped):
        return {"mapped": encode(value.loss, what), "phi": value.phi, "a": value.a}
    for method, kind in METHODS.items():
        if isinstance(value, kind):
            return {"calibration": method, "parameters": asdict(value)}
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
    if "mapped" in value:
        return Mapped(decode(value["mapped"]), phi=value["phi"], a=float(value["a"]))
    parameters: dict[str, Any] = {
        name: tuple(v) if isinstance(v, list) else v for name, v in value["parameters"].items()
    }
    if "calibration" in value:
        return METHODS[value["calibration"]](**parameters)
    return registry[value["loss"]](**parameters)
