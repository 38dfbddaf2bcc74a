"""Bags: bootstrap samples of whole queries, as weights.

A bag draws as many queries as there are, with replacement. A query drawn c times has c times its weight, one that is
never drawn has weight 0: it is left out, about 37 % of the queries are, and can judge what was trained on the others.
No row is copied.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from boostlist._typing import AnyArray, FloatArray
from boostlist.queries import Queries


class Bag(NamedTuple):
    """A sample of the queries.

    Attributes
    ----------
    number
        Counted from 0.
    weight
        Weight of each query, or of each row if rows were given weights of their own; None if all are 1.
    left_out
        Whether the bag leaves a query out; None for a bag that holds every query once.
    seed
        Where the randomness of those who train on the bag begins; None leaves it to them.
    """

    number: int
    weight: FloatArray | None
    left_out: AnyArray | None
    seed: int | None

    def held_out(self, queries: Queries) -> Queries | None:
        """Return the queries with weight on those left out only; None if none is."""
        if self.left_out is None:
            return None
        weight = queries.weight * self.left_out
        return queries.with_weight(weight) if weight.any() else None


def draw_bags(
    n_bags: int, queries: Queries, weight: FloatArray | None, seed: int | np.random.RandomState | None
) -> list[Bag]:
    """Return bags; a single one holds every query once. More bags do not change the first ones.

    Parameters
    ----------
    n_bags
        Number of bags.
    queries
        What is drawn from.
    weight
        Weights of queries or rows, or None.
    seed
        As for `bag_seeds`.
    """
    seeds = bag_seeds(n_bags, seed)
    if n_bags == 1:
        return [Bag(0, weight, None, seeds[0])]
    return [_bootstrap(number, queries, weight, seed) for number, seed in enumerate(seeds)]


def bag_seeds(n_bags: int, seed: int | np.random.RandomState | None) -> list[Any]:
    """Return a seed for each bag.

    Parameters
    ----------
    n_bags
        Number of bags.
    seed
        Seed, or where it comes from; None is 0, but gives a single bag None.
    """
    if n_bags == 1 and seed is None:
        return [None]
    random = np.random.RandomState(seed or 0) if seed is None or isinstance(seed, int | np.integer) else seed
    return [int(random.randint(2**31 - 1)) for _ in range(n_bags)]


def drawn_queries(n: int, seed: int) -> FloatArray:
    """Return how often each of n queries is in a bag."""
    return np.random.RandomState(seed).multinomial(n, np.full(n, 1 / n)).astype(np.float64)


def _bootstrap(number: int, queries: Queries, weight: FloatArray | None, seed: int) -> Bag:
    drawn = drawn_queries(queries.n_queries, seed)
    if weight is None:
        total = drawn
    elif len(weight) == queries.n_queries:
        total = drawn * weight
    else:
        total = np.repeat(drawn, queries.sizes) * weight
    return Bag(number, total, drawn == 0, seed)


def weighed(queries: Queries, weight: FloatArray) -> Queries:
    """Return the queries with weights; a query weighs what its rows do in the mean."""
    if len(weight) != queries.n_queries:
        weight = np.add.reduceat(weight, queries.start[:-1]) / queries.sizes
    return queries.with_weight(weight)
