"""Is one ranker better than another? Paired tests over queries, confidence intervals, many comparisons.

All functions take per-query values of a metric, as `boostlist.metrics.Metric.per_query` gives them, for the same
queries in the same order. With d_q = a_q - b_q over n queries, the null hypothesis of each test and what it assumes:

    t_test           the mean of d is 0; the mean of n values is about normal (Student; RankCosine's paper uses it)
    wilcoxon         d is symmetric about 0; differences of 0 are dropped (Wilcoxon's signed-rank test)
    randomization    the labels a and b could be swapped in any query; nothing else (Fisher)

The arithmetic is that of `scipy.stats`. Smucker, Allan and Carterette, "A comparison of statistical significance tests
for information retrieval evaluation", CIKM 2007, compare the tests on rankings. Queries skipped by the metric (NaN in
both) are left out. Query weights are not used: a test counts queries.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
import pandas as pd
from scipy import stats

from boostlist._typing import FloatArray

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

__all__ = [
    "Interval",
    "PairedComparison",
    "compare",
    "difference_interval",
    "holm",
    "mean_interval",
    "randomization",
    "t_test",
    "table",
    "wilcoxon",
]

Alternative = Literal["two-sided", "greater", "less"]
"""What is tested for: the values of a and b differ, those of a are greater, or less."""

# Values in memory at once while resampling.
_BATCH = 4_000_000


class Interval(NamedTuple):
    """A confidence interval."""

    low: float
    high: float


@dataclass(frozen=True, kw_only=True)
class PairedComparison:
    """Two rankers over the same queries.

    Attributes
    ----------
    n_queries
        Number of queries compared.
    mean_a, mean_b, difference
        Means, and mean_a - mean_b.
    low, high
        Bootstrap confidence interval of the difference.
    t_test, wilcoxon, randomization
        p-values of the tests.
    """

    n_queries: int
    mean_a: float
    mean_b: float
    difference: float
    low: float
    high: float
    t_test: float
    wilcoxon: float
    randomization: float


def t_test(a: ArrayLike, b: ArrayLike, *, alternative: Alternative = "two-sided") -> float:
    """Return the p-value of Student's paired t-test.

    Examples
    --------
    >>> round(t_test([0.5, 0.7, 0.9, 0.4], [0.4, 0.5, 0.9, 0.3]), 4)  # t = 2.4495 with 3 degrees of freedom
    0.0917
    """
    d = _differences(a, b)
    if np.ptp(d) == 0:
        return _constant_p(d[0], alternative)
    return float(stats.ttest_1samp(d, 0.0, alternative=alternative).pvalue)


def wilcoxon(a: ArrayLike, b: ArrayLike, *, alternative: Alternative = "two-sided") -> float:
    """Return the p-value of Wilcoxon's signed-rank test; queries without a difference are dropped."""
    d = _differences(a, b)
    d = d[d != 0]
    return float(stats.wilcoxon(d, alternative=alternative).pvalue) if d.size else 1.0


def randomization(
    a: ArrayLike,
    b: ArrayLike,
    *,
    alternative: Alternative = "two-sided",
    resamples: int = 10_000,
    seed: int | None = 0,
) -> float:
    """Return the p-value of Fisher's randomization test of the mean difference.

    Parameters
    ----------
    a, b
        Per-query values.
    alternative
        What is tested for.
    resamples
        Number of random swaps of a and b; where there are no more ways to swap them, each is tried once.
    seed
        Seed of the swaps; None for other swaps in each call.
    """
    d = _differences(a, b)
    if not d.any():
        return 1.0
    test = stats.permutation_test(
        (d, -d),
        lambda x, y, axis: np.mean(x, axis=axis),
        permutation_type="samples",
        vectorized=True,
        n_resamples=resamples,
        batch=_batch(d),
        alternative=alternative,
        random_state=np.random.default_rng(seed),
    )
    return float(test.pvalue)


def mean_interval(
    values: ArrayLike, *, confidence: float = 0.95, resamples: int = 10_000, seed: int | None = 0
) -> Interval:
    """Return the bootstrap confidence interval (BCa) of the mean over queries.

    Parameters
    ----------
    values
        Per-query values; NaN is left out.
    confidence
        Level of the interval.
    resamples
        Number of bootstrap samples.
    seed
        Seed of the samples; None for other samples in each call.
    """
    x = _values(values, "values")
    x = x[~np.isnan(x)]
    if len(x) < 2:
        raise ValueError(f"an interval needs at least 2 queries, got {len(x)}")
    if np.ptp(x) == 0:
        return Interval(float(x[0]), float(x[0]))
    result = stats.bootstrap(
        (x,),
        np.mean,
        confidence_level=confidence,
        n_resamples=resamples,
        batch=_batch(x),
        method="BCa",
        random_state=np.random.default_rng(seed),
    )
    return Interval(float(result.confidence_interval.low), float(result.confidence_interval.high))


def difference_interval(
    a: ArrayLike, b: ArrayLike, *, confidence: float = 0.95, resamples: int = 10_000, seed: int | None = 0
) -> Interval:
    """Return the bootstrap confidence interval (BCa) of the mean of a - b; parameters as for `mean_interval`."""
    return mean_interval(_differences(a, b), confidence=confidence, resamples=resamples, seed=seed)


def holm(p_values: ArrayLike) -> FloatArray:
    """Return p-values corrected for their number (Holm 1979): all hypotheses below a level hold together at that level.

    With p_(1) <= ... <= p_(m), the corrected p_(i) is the largest of min(1, (m - j + 1) p_(j)) over j <= i.

    Examples
    --------
    >>> holm([0.01, 0.04, 0.03])
    array([0.03, 0.06, 0.06])
    """
    p = _values(p_values, "p_values")
    bad = np.flatnonzero(~((p >= 0) & (p <= 1)))
    if bad.size:
        raise ValueError(f"p_values[{bad[0]}] is {p[bad[0]]}; p-values lie between 0 and 1")
    order = np.argsort(p, kind="stable")
    corrected = np.empty_like(p)
    corrected[order] = np.minimum(np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1)), 1)
    return corrected


def compare(
    a: ArrayLike,
    b: ArrayLike,
    *,
    alternative: Alternative = "two-sided",
    confidence: float = 0.95,
    resamples: int = 10_000,
    seed: int | None = 0,
) -> PairedComparison:
    """Compare two rankers over the same queries by all tests.

    Parameters
    ----------
    a, b
        Per-query values.
    alternative
        What is tested for.
    confidence
        Level of the confidence interval of the difference, which is two-sided always.
    resamples, seed
        Number and seed of the resamples of the randomization test and of the bootstrap.

    Raises
    ------
    ValueError
        If lengths differ, fewer than 2 queries remain, or a value is missing on one side only.

    Examples
    --------
    >>> comparison = compare([0.5, 0.7, 0.9, 0.4], [0.4, 0.5, 0.9, 0.3])
    >>> round(comparison.difference, 3), round(comparison.t_test, 4)
    (0.1, 0.0917)
    """
    a, b = _paired(a, b)
    low, high = difference_interval(a, b, confidence=confidence, resamples=resamples, seed=seed)
    return PairedComparison(
        n_queries=len(a),
        mean_a=float(a.mean()),
        mean_b=float(b.mean()),
        difference=float(np.mean(a - b)),
        low=low,
        high=high,
        t_test=t_test(a, b, alternative=alternative),
        wilcoxon=wilcoxon(a, b, alternative=alternative),
        randomization=randomization(a, b, alternative=alternative, resamples=resamples, seed=seed),
    )


def table(
    models: Mapping[str, ArrayLike],
    *,
    baseline: str | None = None,
    alternative: Alternative = "two-sided",
    confidence: float = 0.95,
    resamples: int = 10_000,
    seed: int | None = 0,
) -> pd.DataFrame:
    """Compare many models; p-values are Holm-corrected for the number of comparisons.

    Parameters
    ----------
    models
        Per-query values by model, or a data frame with a column for each.
    baseline
        Compare every other model with this one; None compares all pairs.
    alternative, confidence, resamples, seed
        As for `compare`.

    Returns
    -------
    pandas.DataFrame
        A row for each pair, with the attributes of `PairedComparison`; its p-values are the corrected ones.
    """
    names = list(models)
    if len(names) < 2:
        raise ValueError(f"there is nothing to compare: {len(names)} model(s)")
    if baseline is not None and baseline not in names:
        raise ValueError(f"baseline {baseline!r} is not among the models: {', '.join(map(str, names))}")
    if baseline is None:
        pairs = list(combinations(names, 2))
    else:
        pairs = [(name, baseline) for name in names if name != baseline]
    options = {"alternative": alternative, "confidence": confidence, "resamples": resamples, "seed": seed}
    rows = [{"a": a, "b": b, **asdict(compare(models[a], models[b], **options))} for a, b in pairs]  # type: ignore[arg-type]
    frame = pd.DataFrame(rows)
    for test in ("t_test", "wilcoxon", "randomization"):
        frame[test] = holm(frame[test])
    return frame


def _values(values: ArrayLike, what: str) -> FloatArray:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1:
        raise ValueError(f"{what} must be one-dimensional, got shape {array.shape}")
    bad = np.flatnonzero(np.isinf(array))
    if bad.size:
        raise ValueError(f"{what}[{bad[0]}] is {array[bad[0]]}")
    return array


def _paired(a: ArrayLike, b: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Check the values of two rankers and leave out the queries that are missing in both."""
    a, b = _values(a, "a"), _values(b, "b")
    if len(a) != len(b):
        raise ValueError(
            f"a has {len(a):,} queries and b {len(b):,}; both must hold the same queries in the same order"
        )
    skipped = np.isnan(a)
    bad = np.flatnonzero(skipped != np.isnan(b))
    if bad.size:
        q = bad[0]
        raise ValueError(f"query {q} has a value in one ranker only (a: {a[q]}, b: {b[q]}); drop it from both")
    a, b = a[~skipped], b[~skipped]
    if len(a) < 2:
        raise ValueError(f"a comparison needs at least 2 queries, got {len(a)}")
    return a, b


def _differences(a: ArrayLike, b: ArrayLike) -> FloatArray:
    a, b = _paired(a, b)
    return a - b


def _constant_p(d: float, alternative: Alternative) -> float:
    """Return the p-value of the t-test where all differences equal d: t is infinite, or 0/0 for d = 0."""
    return 1.0 if d == 0 or (alternative == "greater" and d < 0) or (alternative == "less" and d > 0) else 0.0


def _batch(values: FloatArray) -> int:
    return max(_BATCH // len(values), 1)
