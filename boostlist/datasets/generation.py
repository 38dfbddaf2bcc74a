"""Ranking data with a known relevance function, on which trees, kernels and linear models differ as on real data.

Document d of query q has eight hidden properties z, query q two, u, all standard normal; those of a query's documents
share a fifth of their variance. Its relevance is, with `interactions` = c and `noise` = s,

    r = (sum_j a_j (1 + c u_(j mod 2)) z_j + c h(z)) / norm + b_q + s_q e,      a_j = 2^(-j/2), j = 0..7,
    h = (z_0 z_1 + (1 - z_3^2) / sqrt(2)) / 2 + [z_4 > 0][z_5 > 0] + [z_2 > 0][z_6 > 1/2]

How much a property counts, and even its sign, depends on the query, as it does between a search for a page and one for
a topic. Products and the parabola are what a quadratic or Gaussian kernel can follow, steps are what trees can, and the
linear part is left to all. b_q ~ N(0, 1) makes queries rich or poor in relevant documents without changing their order;
e ~ N(0, 1), and s_q = s exp(v_q / 2), v_q ~ N(0, 1): some queries are judged more carefully than others. Grades cut r
at fixed levels: grade g is 0.4 times as frequent as grade g - 1, five of them about 60, 24, 10, 4 and 2 % of the
documents.

What a model sees are views of the properties, z_j + `blur` e', through increasing functions (plain, logistic,
exponential, counts with many ties), the query's properties in the same way but exactly, redundant features (views of
the sum of two properties), and useless ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from boostlist._typing import AnyArray, FloatArray
from boostlist.datasets.data import RankingData
from boostlist.datasets.writing import write_letor
from boostlist.files import PathLike

_HIDDEN, _QUERY = 8, 2
_RARER = 0.4
_BLOCK_QUERIES = 64
_DECIMALS = 4


def make_ranking(
    n_queries: int,
    *,
    docs: float = 40,
    n_features: int = 30,
    grades: int = 5,
    noise: float = 0.8,
    interactions: float = 1.0,
    blur: float = 0.5,
    seed: int = 0,
) -> RankingData:
    """Generate ranking data; the formula is at the top of this module.

    Parameters
    ----------
    n_queries
        Number of queries. The first queries are the same however many are asked for.
    docs
        Median number of documents of a query; lengths are log-normal with deviation 0.5, from 2 to 10 times the median.
    n_features
        Number of features, at least 10: ten show the hidden properties, half of the others are redundant, the rest
        useless.
    grades
        Number of grades, from 0.
    noise
        Typical deviation of the noise in the relevance, whose signal has deviation about 1.
    interactions
        Weight of what depends on the query or is not linear; at 0 a linear model of the hidden properties is right.
    blur
        Deviation of the error with which a feature shows its property.
    seed
        Same seed, same data.

    Examples
    --------
    >>> from boostlist.datasets import make_ranking
    >>> make_ranking(3, docs=10, n_features=12).n_queries
    3
    """
    generator = _Generator(n_queries, docs, n_features, grades, noise, interactions, blur, seed)
    return RankingData.concat(list(generator.blocks()))


def write_ranking(path: PathLike, n_queries: int, **options: Any) -> Path:
    """Write what ``make_ranking(n_queries, **options)`` returns to a LETOR file of any size, a block at a time."""
    return write_letor(_Generator(n_queries, **options).blocks(), path)


@dataclass(frozen=True)
class _Generator:
    n_queries: int
    docs: float = 40
    n_features: int = 30
    grades: int = 5
    noise: float = 0.8
    interactions: float = 1.0
    blur: float = 0.5
    seed: int = 0

    def __post_init__(self) -> None:
        if self.n_queries < 1:
            raise ValueError(f"n_queries must be at least 1, got {self.n_queries}")
        if self.n_features < _HIDDEN + _QUERY:
            raise ValueError(f"n_features must be at least {_HIDDEN + _QUERY}, got {self.n_features}")
        if self.grades < 2:
            raise ValueError(f"grades must be at least 2, got {self.grades}")
        if not (self.docs >= 2 and self.noise >= 0 and self.interactions >= 0 and self.blur >= 0):
            raise ValueError("docs must be at least 2; noise, interactions and blur must not be negative")

    def blocks(self) -> Iterator[RankingData]:
        """Yield the data in blocks of queries, each from random numbers of its own."""
        for block, first in enumerate(range(0, self.n_queries, _BLOCK_QUERIES)):
            rng = np.random.default_rng([self.seed, block])
            sizes = self._sizes(rng)
            z, u, relevance = self._documents(rng, sizes)
            y = np.searchsorted(self._levels, relevance).astype(np.float64)
            X = self._features(rng, z, u)
            qid = np.repeat(np.arange(first + 1, first + 1 + len(sizes)), sizes)
            keep = min(self.n_queries - first, _BLOCK_QUERIES)
            rows = slice(0, int(sizes[:keep].sum()))
            yield RankingData(X[rows], y[rows], qid[rows], feature_names=self._names)

    def _sizes(self, rng: np.random.Generator) -> AnyArray:
        sizes = np.rint(rng.lognormal(np.log(self.docs), 0.5, _BLOCK_QUERIES))
        return np.clip(sizes, 2, 10 * self.docs).astype(np.int64)

    def _documents(self, rng: np.random.Generator, sizes: AnyArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return hidden properties of documents and of their queries, and relevance."""
        n = int(sizes.sum())
        shared = np.repeat(rng.standard_normal((len(sizes), _HIDDEN)), sizes, axis=0)
        z = np.sqrt(0.2) * shared + np.sqrt(0.8) * rng.standard_normal((n, _HIDDEN))
        u = np.repeat(rng.standard_normal((len(sizes), _QUERY)), sizes, axis=0)
        b, v = np.repeat(rng.standard_normal((len(sizes), 2)), sizes, axis=0).T
        signal = _signal(z, u, self.interactions)
        return z, u, signal + b + self.noise * np.exp(v / 2) * rng.standard_normal(n)

    @cached_property
    def _levels(self) -> FloatArray:
        """Cut points of the grades, from a large sample that depends on nothing but the relevance function."""
        _, _, relevance = self._documents(np.random.default_rng(0), np.full(2_000, 20))
        share = _RARER ** np.arange(self.grades)
        levels: FloatArray = np.quantile(relevance, np.cumsum(share / share.sum())[:-1])
        return levels

    @property
    def _names(self) -> tuple[str, ...]:
        rest = self.n_features - _HIDDEN - _QUERY
        counts = {"document": _HIDDEN, "query": _QUERY, "redundant": rest // 2, "useless": rest - rest // 2}
        return tuple(f"{role}_{j + 1}" for role, count in counts.items() for j in range(count))

    def _features(self, rng: np.random.Generator, z: FloatArray, u: FloatArray) -> AnyArray:
        n, rest = len(z), self.n_features - _HIDDEN - _QUERY
        pairs = [(j % _HIDDEN, (3 * j + 1) % _HIDDEN) for j in range(rest // 2)]
        sums = [z[:, i] + z[:, j] for i, j in pairs]
        seen = np.column_stack([z, *sums]) + self.blur * rng.standard_normal((n, _HIDDEN + len(pairs)))
        useless = rng.standard_normal((n, rest - len(pairs)))
        return _observed(np.concatenate([seen[:, :_HIDDEN], u, seen[:, _HIDDEN:], useless], axis=1)).astype(np.float32)


def _signal(z: FloatArray, u: FloatArray, c: float) -> FloatArray:
    """Return the part of the relevance that the properties decide, with deviation about 1 within queries."""
    a = 2.0 ** (-np.arange(_HIDDEN) / 2)
    weight = a * (1 + c * u[:, np.arange(_HIDDEN) % _QUERY])
    h = (z[:, 0] * z[:, 1] + (1 - z[:, 3] ** 2) / np.sqrt(2)) / 2
    h += ((z[:, 4] > 0) & (z[:, 5] > 0)) * 1.0 + ((z[:, 2] > 0) & (z[:, 6] > 0.5))
    signal: FloatArray = ((weight * z).sum(axis=1) + c * h) / np.sqrt((1 + c * c) * (a @ a))
    return signal


def _observed(hidden: FloatArray) -> FloatArray:
    """Return an increasing function of each column: plain, logistic, exponential, counts, in turn."""
    seen = hidden.copy()
    seen[:, 1::4] = 1 / (1 + np.exp(-hidden[:, 1::4]))
    seen[:, 2::4] = np.exp(hidden[:, 2::4])
    seen[:, 3::4] = np.floor(10 * np.exp(0.7 * hidden[:, 3::4]))
    return np.round(seen, _DECIMALS)
