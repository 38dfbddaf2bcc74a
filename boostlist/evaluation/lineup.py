"""Who takes part in a comparison: models by name, estimators, functions, or all of these by names of one's own.

By name there are the families of `boostlist.rankers`, and

    catboost:LOSS    CatBoost with one of its own losses, such as catboost:YetiRank
    feature:NAME     the value of one feature, by name or by number from 1
    column:NAME      scores in a column of the data, which is then no feature
    run:FILE         scores of another system in the format of trec_eval's runs
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from boostlist.evaluation.catboost_model import parse_catboost
from boostlist.evaluation.contenders import Contender, Guest
from boostlist.evaluation.guests import Column, Estimator, Function, Run
from boostlist.evaluation.panel import Model, parse


def _guest(text: str) -> Guest | None:
    """Return the model from outside of the panel that a name stands for; None if it is none of these.

    Raises
    ------
    ValueError
        If it is one, but there is no such loss or file.
    """
    prefix, colon, rest = text.partition(":")
    if not colon:
        return None
    if prefix == "catboost":
        return parse_catboost(text)
    if prefix in ("feature", "column"):
        return Column(text, rest)
    if prefix == "run":
        if not Path(rest).is_file():
            raise ValueError(f"model {text!r}: there is no file {rest}")
        return Run(text, Path(rest))
    return None


def listed(models: Any) -> list[Any]:
    """Return several models as a list, and one as the only one in it."""
    several = isinstance(models, Iterable) and not isinstance(models, str | Mapping)
    return list(models) if several else [models]


def contenders(models: Any) -> list[Contender]:
    """Return what stands for models: names, estimators, functions, or mappings from names of one's own to these.

    Raises
    ------
    ValueError
        If a name stands for nothing, or for two models.
    """
    found = []
    for model in listed(models):
        named = model.items() if isinstance(model, Mapping) else [(None, model)]
        found += [each for name, one in named for each in _resolved(one, name)]
    unique = {model.name: model for model in found}
    clash = [model.name for model in found if unique[model.name] != model]
    if clash:
        raise ValueError(f"two models are called {clash[0]}; give them names: models={{name: model, ...}}")
    if not unique:
        raise ValueError("no models given")
    return list(unique.values())


def _resolved(model: Any, name: str | None) -> list[Contender]:
    if isinstance(model, Model | Guest):
        return [model]
    if isinstance(model, str):
        if name is not None:
            raise ValueError(f"{name!r}: {model!r} has its name already; list it under models without another")
        outside = _guest(model)
        return list(parse(model)) if outside is None else [outside]
    if hasattr(model, "fit") and hasattr(model, "predict"):
        return [Estimator(name or type(model).__name__, model)]
    if callable(model):
        return [Function(name or str(getattr(model, "__qualname__", type(model).__name__)), model)]
    raise ValueError(
        f"{model!r} is no model: give a name, an estimator with fit and predict, or a function of the features"
    )
