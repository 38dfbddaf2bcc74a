"""Metrics by name, and the conventions of other tools."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import MISSING, fields
from typing import Any

from boostlist.checks import did_you_mean
from boostlist.metrics.base import Metric
from boostlist.metrics.binary import MAP, MRR, Precision, Recall
from boostlist.metrics.correlation import KendallTau, SpearmanRho
from boostlist.metrics.graded import DCG, ERR, NDCG, AvgNDCG

registry: dict[str, type[Metric]] = {
    metric.prefix: metric for metric in (DCG, NDCG, AvgNDCG, ERR, Precision, Recall, MAP, MRR, KendallTau, SpearmanRho)
}
"""All metrics by the name without cut-off."""


def get(name: str, **parameters: Any) -> Metric:
    """Return the metric of a name such as ``"ndcg@10"``, ``"err@5"``, ``"p@3"``, ``"map"``, ``"mrr"`` or ``"ndcg"``.

    Parameters
    ----------
    name
        Name of the metric in any case, and after an @ the number of ranks that count; without it the whole list does.
        Where documents have several labels, the name of one may follow a colon, as in ``"ndcg@10:purchase"``.
    **parameters
        Conventions that differ from the metric's defaults.

    Raises
    ------
    ValueError
        If there is no such metric, or the cut-off is missing, not a whole number or out of place.

    Examples
    --------
    >>> from boostlist import metrics
    >>> metrics.get("ndcg@10", empty="skip").name
    'ndcg@10'
    """
    what, colon, label = name.partition(":")
    if colon:
        parameters["label"] = label
    prefix, at, cut = what.lower().partition("@")
    if prefix not in registry:
        known = f"known are {', '.join(registry)}, most with a cut-off as in ndcg@10"
        raise ValueError(f"there is no metric {name!r}; {did_you_mean(prefix, registry, known, suffix=at + cut)}")
    metric = registry[prefix]
    k = {field.name: field for field in fields(metric)}.get("k")
    if k is None:
        if at:
            raise ValueError(f"{prefix} looks at the whole list and takes no cut-off, got {name!r}")
        return metric(**parameters)
    if at and not (cut.isdecimal() and int(cut) >= 1):
        raise ValueError(f"the cut-off in {name!r} must be a whole number of at least 1, as in {prefix}@10")
    if not at and k.default is MISSING:
        raise ValueError(f"{prefix} needs a cut-off, as in {prefix}@10")
    return metric(k=int(cut) if at else None, **parameters)  # type: ignore[call-arg]


def get_all(chosen: str | Metric | Sequence[str | Metric]) -> list[Metric]:
    """Return one or several metrics, given by name or as they are.

    Raises
    ------
    ValueError
        If there is none, or no metric of a name.
    TypeError
        If one is neither a name nor a metric.
    """
    several = list(chosen) if isinstance(chosen, Iterable) and not isinstance(chosen, str) else [chosen]
    if not several:
        raise ValueError("no metric is given; name at least one, such as 'ndcg@10'")
    for each in several:
        if not isinstance(each, str | Metric):
            raise TypeError(
                f"a metric is given by its name, such as 'ndcg@10', or as boostlist.metrics has it: {each!r}"
            )
    return [get(each) if isinstance(each, str) else each for each in several]


# LETOR's scripts score a query 0 at ranks beyond its length; in 4.0 this holds for NDCG but no longer for precision.
_LETOR_NDCG = {"gain": "exp2", "discount": "letor", "ties": "stable", "empty": 0, "short": "zero"}
_LETOR_MAP = {"threshold": 1, "ties": "stable", "empty": 0}

_CONVENTIONS: dict[str, dict[str, dict[str, Any]]] = {
    "lightgbm": {
        "ndcg": {"gain": "exp2", "discount": "log2", "ties": "stable", "empty": 1, "short": "pad"},
        # Relevant are labels above, not at, 0.5.
        "map": {"threshold": math.nextafter(0.5, 1), "divisor": "reachable", "ties": "stable", "empty": 1},
    },
    "xgboost": {
        "ndcg": {"gain": "exp2", "discount": "log2", "ties": "stable", "empty": 1, "short": "pad"},
        "map": {"threshold": 1, "divisor": "reachable", "ties": "stable", "empty": 1},
        "p": {"threshold": 1, "ties": "stable", "empty": 0, "short": "cut"},
    },
    "sklearn": {
        "dcg": {"gain": "linear", "discount": "log2", "ties": "average", "empty": 0, "short": "pad"},
        "ndcg": {"gain": "linear", "discount": "log2", "ties": "average", "empty": 0, "short": "pad"},
    },
    "letor3": {
        "ndcg": _LETOR_NDCG,
        "avgndcg": _LETOR_NDCG,
        "p": {"threshold": 1, "ties": "stable", "empty": 0, "short": "zero"},
        "map": _LETOR_MAP,
    },
    "letor4": {
        "ndcg": _LETOR_NDCG,
        "avgndcg": _LETOR_NDCG,
        "p": {"threshold": 1, "ties": "stable", "empty": 0, "short": "pad"},
        "map": _LETOR_MAP,
    },
    "trec": {
        "ndcg": {"gain": "linear", "discount": "log2", "ties": "stable", "empty": 0, "short": "pad"},
        "p": {"threshold": 1, "ties": "stable", "empty": 0, "short": "pad"},
        "recall": {"threshold": 1, "ties": "stable", "empty": 0},
        "map": {"threshold": 1, "divisor": "relevant", "ties": "stable", "empty": 0},
        "mrr": {"threshold": 1, "ties": "stable", "empty": 0},
    },
}


def conventions(tool: str) -> dict[str, dict[str, Any]]:
    """Return the parameters that reproduce the metrics of another tool.

    Parameters
    ----------
    tool
        ``"lightgbm"``, ``"xgboost"``, ``"sklearn"``, ``"letor3"`` and ``"letor4"`` (the evaluation scripts of LETOR 3.0
        and 4.0) or ``"trec"`` (trec_eval and pytrec_eval).

    Returns
    -------
    dict
        The parameters of each metric that the tool has, by name without cut-off.

    Examples
    --------
    >>> from boostlist import metrics
    >>> lightgbm = metrics.conventions("lightgbm")
    >>> metrics.get("ndcg@10", **lightgbm["ndcg"]).empty
    1
    """
    if tool not in _CONVENTIONS:
        raise ValueError(f"no conventions are known for {tool!r}; known are {', '.join(_CONVENTIONS)}")
    return {name: dict(parameters) for name, parameters in _CONVENTIONS[tool].items()}
