"""Ranking data with a known relevance function, on which trees, kernels and linear models differ as on real data.

Document d of query q has eight hidden properties z, query q two, u, all standard normal; those of a query's documents
share a fifth of their variance. Its relevance is, with `interactions` = c and `noise` = s,

    r = (a'z + c h(z, u)) / |(a, c)| + b_q + s e,      a_j = 2^(-j/2), j = 0..7,
    h = z_0 z_1 + u_0 z_2 + (1 - z_3^2) / sqrt(2) + 3 [z_4 > 0][z_5 > 0] + 3 [z_6 > 1/2][u_1 > 0]

Products and the parabola are what a quadratic or Gaussian kernel can follow, steps are what trees can, and the linear
part is left to all. b_q ~ N(0, 1) makes queries easy or hard without changing their order; e ~ N(0, 1).
Grades cut r at fixed levels: grade g is about half as frequent as grade g - 1.

What a model sees are increasing functions of z and u (plain, logistic, exponential, counts with many ties), redundant
features (increasing functions of a noisy sum of two properties), and useless ones.
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
        Number of features, at least 10: ten carry the hidden properties, half of the others are redundant, the rest
        useless.
    grades
        Number of grades, from 0.
    noise
        Deviation of the noise in the relevance, whose signal has deviation about 1.
    interactions
        Weight of the nonlinear part; at 0 a linear model of the hidden properties is right.
    seed
        Same seed, same data.

    Examples
    --------
    >>> from boostlist.datasets import make_ranking
    >>> make_ranking(3, docs=10, n_features=12).n_queries
    3
    """
    generator = _Generator(n_queries, docs, n_features, grades, noise, interactions, seed)
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
    seed: int = 0

    def __post_init__(self) -> None:
        if self.n_queries < 1:
            raise ValueError(f"n_queries must be at least 1, got {self.n_queries}")
        if self.n_features < _HIDDEN + _QUERY:
            raise ValueError(f"n_features must be at least {_HIDDEN + _QUERY}, got {self.n_features}")
        if self.grades < 2:
            raise ValueError(f"grades must be at least 2, got {self.grades}")
        if not (self.docs >= 2 and self.noise >= 0 and self.interactions >= 0):
            raise ValueError("docs must be at least 2; noise and interactions must not be negative")

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
        b = np.repeat(rng.standard_normal(len(sizes)), sizes)
        a, c = 2.0 ** (-np.arange(_HIDDEN) / 2), self.interactions
        h = z[:, 0] * z[:, 1] + u[:, 0] * z[:, 2] + (1 - z[:, 3] ** 2) / np.sqrt(2)
        h += 3.0 * ((z[:, 4] > 0) & (z[:, 5] > 0)) + 3.0 * ((z[:, 6] > 0.5) & (u[:, 1] > 0))
        signal = (z @ a + c * h) / np.sqrt(a @ a + c * c)
        return z, u, signal + b + self.noise * rng.standard_normal(n)

    @cached_property
    def _levels(self) -> FloatArray:
        """Cut points of the grades, from a large sample that depends on nothing but the relevance function."""
        _, _, relevance = self._documents(np.random.default_rng(0), np.full(2_000, 20))
        share = 0.5 ** np.arange(self.grades)
        levels: FloatArray = np.quantile(relevance, np.cumsum(share / share.sum())[:-1])
        return levels

    @property
    def _names(self) -> tuple[str, ...]:
        rest = self.n_features - _HIDDEN - _QUERY
        counts = {"document": _HIDDEN, "query": _QUERY, "redundant": rest // 2, "useless": rest - rest // 2}
        return tuple(f"{role}_{j + 1}" for role, count in counts.items() for j in range(count))

    def _features(self, rng: np.random.Generator, z: FloatArray, u: FloatArray) -> AnyArray:
        n, rest = len(z), self.n_features - _HIDDEN - _QUERY
        hidden = np.concatenate([z, u], axis=1)
        X = np.empty((n, self.n_features), np.float32)
        X[:, : _HIDDEN + _QUERY] = _observed(hidden)
        redundant = rng.standard_normal((n, rest // 2)) * 0.5
        for j in range(rest // 2):
            redundant[:, j] += hidden[:, j % _HIDDEN] + hidden[:, (3 * j + 1) % _HIDDEN]
        X[:, _HIDDEN + _QUERY : _HIDDEN + _QUERY + rest // 2] = _observed(redundant)
        X[:, _HIDDEN + _QUERY + rest // 2 :] = _observed(rng.standard_normal((n, rest - rest // 2)))
        return X


def _observed(hidden: FloatArray) -> FloatArray:
    """Return an increasing function of each column: plain, logistic, exponential, counts, in turn."""
    seen = hidden.copy()
    seen[:, 1::4] = 1 / (1 + np.exp(-hidden[:, 1::4]))
    seen[:, 2::4] = np.exp(hidden[:, 2::4])
    seen[:, 3::4] = np.floor(10 * np.exp(0.7 * hidden[:, 3::4]))
    return np.round(seen, _DECIMALS)
