"""Members in a file: JSON that says what each is, and arrays, without pickle.

A member is stored as the JSON of one of

    {"booster": name of the array with the host's model file}                   a `TreeRanker`
    {"model": ..., "parameters": ..., "attributes": ...}                        any other ranker of boostlist
    {"steps": [[name, member], ...]}                                            a pipeline of these and of
    {"transformer": [module, class], "version": ..., "state": ..., ...}         transformers of scikit-learn

and its arrays stand under names that begin with its place. What is stored of a transformer are its attributes; loading
makes an object of the class, which must be one of scikit-learn's transformers, and sets them.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from importlib import import_module
from typing import Any

import numpy as np
import sklearn
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.exceptions import InconsistentVersionWarning
from sklearn.pipeline import Pipeline

from boostlist._typing import AnyArray
from boostlist.boosters import model_file
from boostlist.boosters.tree_ranker import TreeRanker
from boostlist.persistence import Packed, Storable, pack, unpack

_MODULES = ("decomposition", "feature_selection", "impute", "kernel_approximation", "preprocessing")
"""Modules of scikit-learn whose transformers can be stored."""


def pack_member(member: Any, place: str) -> Packed:
    """Return a fitted member as it is stored.

    Raises
    ------
    ValueError
        If it cannot be written without pickle.
    """
    if isinstance(member, TreeRanker):
        suffix = ".ubj" if member.backend == "xgboost" else ".txt"
        content = np.frombuffer(model_file.to_bytes(member.stored(), suffix), np.uint8)
        return Packed({"booster": place}, {place: content})
    if isinstance(member, Storable):
        about, arrays = pack(member)
        return Packed(about, {f"{place}.{name}": array for name, array in arrays.items()})
    if isinstance(member, Pipeline):
        packed = [pack_member(step, f"{place}.{i}") for i, (_, step) in enumerate(member.steps)]
        steps = [[name, about] for (name, _), (about, _) in zip(member.steps, packed, strict=True)]
        return Packed({"steps": steps}, {name: array for _, arrays in packed for name, array in arrays.items()})
    if isinstance(member, str):
        return Packed({"word": member}, {})
    if not _is_known(type(member)):
        raise ValueError(
            f"a {type(member).__name__} cannot be saved without pickle: a file holds rankers of boostlist, and in "
            f"pipelines transformers of sklearn.{', sklearn.'.join(_MODULES)}"
        )
    arrays = {}
    state = {name: _encode(value, f"{place}.{name}", arrays) for name, value in vars(member).items()}
    where = [type(member).__module__, type(member).__name__]
    return Packed({"transformer": where, "version": sklearn.__version__, "state": state}, arrays)


def unpack_member(about: dict[str, Any], place: str, arrays: Mapping[str, AnyArray], where: str) -> Any:
    """Return the member that was packed."""
    if "booster" in about:
        return TreeRanker.from_stored(model_file.from_bytes(arrays[about["booster"]].tobytes(), where), where)
    if "steps" in about:
        return Pipeline(
            [
                (name, unpack_member(step, f"{place}.{i}", arrays, where))
                for i, (name, step) in enumerate(about["steps"])
            ]
        )
    if "word" in about:
        return about["word"]
    if "transformer" in about:
        return _transformer(about, arrays)
    mine = {name.removeprefix(f"{place}."): array for name, array in arrays.items() if name.startswith(f"{place}.")}
    return unpack(Packed(about, mine), where)


def _is_known(kind: Any) -> bool:
    """Whether objects of a class are transformers of scikit-learn whose attributes may be stored and set."""
    package, _, rest = getattr(kind, "__module__", "").partition(".")
    known = package == "sklearn" and rest.partition(".")[0] in _MODULES
    return known and isinstance(kind, type) and issubclass(kind, BaseEstimator) and issubclass(kind, TransformerMixin)


def _transformer(about: dict[str, Any], arrays: Mapping[str, AnyArray]) -> Any:
    module, name = about["transformer"]
    parts = module.split(".")
    kind = getattr(import_module(module), name) if parts[0] == "sklearn" and parts[1] in _MODULES else None
    if not _is_known(kind):
        raise ValueError(f"{module}.{name} is no transformer that a file may hold")
    if about["version"] != sklearn.__version__:
        warnings.warn(
            InconsistentVersionWarning(
                estimator_name=name,
                current_sklearn_version=sklearn.__version__,
                original_sklearn_version=about["version"],
            ),
            stacklevel=2,
        )
    made = object.__new__(kind)  # type: ignore[arg-type]
    for attribute, value in about["state"].items():
        setattr(made, attribute, _decode(value, arrays))
    return made


def _encode(value: Any, place: str, arrays: dict[str, AnyArray]) -> Any:
    """Return a value of a transformer's attribute as JSON; arrays of numbers are put among the arrays."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.dtype):
        return {"dtype": value.str}
    if isinstance(value, np.ndarray) and value.dtype.kind in "biufU":
        # Products with a matrix round otherwise if its order is another.
        turned = value.ndim == 2 and not value.flags.c_contiguous
        arrays[place] = value.T if turned else value
        return {"array": place, "turned": turned}
    if isinstance(value, np.ndarray) and value.dtype == object:
        return {"objects": [_encode(item, place, {}) for item in value.tolist()]}
    if isinstance(value, tuple | list):
        items = [_encode(item, f"{place}.{i}", arrays) for i, item in enumerate(value)]
        return {"tuple" if isinstance(value, tuple) else "list": items}
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return {"dict": {key: _encode(item, f"{place}.{key}", arrays) for key, item in value.items()}}
    if _is_known(type(value)):
        about, more = pack_member(value, place)
        arrays |= more
        return about
    raise ValueError(f"{place.rpartition('.')[2]}={value!r} cannot be saved without pickle")


def _decode(value: Any, arrays: Mapping[str, AnyArray]) -> Any:
    if not isinstance(value, dict):
        return value
    if "array" in value:
        array = np.array(arrays[value["array"]])
        return array.T if value["turned"] else array
    if "dtype" in value:
        return np.dtype(value["dtype"])
    if "objects" in value:
        return np.array([_decode(item, arrays) for item in value["objects"]], object)
    if "transformer" in value:
        return _transformer(value, arrays)
    if "dict" in value:
        return {key: _decode(item, arrays) for key, item in value["dict"].items()}
    ((kind, items),) = value.items()
    decoded = [_decode(item, arrays) for item in items]
    return tuple(decoded) if kind == "tuple" else decoded
