"""What must hold for every loss: value against brute force, derivatives against differences, invariances, extremes."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import boostlist
from boostlist import Queries, objectives
from boostlist.losses import CsListMLE, ListMLE, RankCosine, Traits, registry
from tests.losses.references import CASES, kink_distance, reference_of

# Losses that have no brute-force value of one query alone.
OTHERS = [
    CsListMLE() + 0.3 * ListMLE(),
    2.0 * (CsListMLE(k=2) + ListMLE(ties="order")),
    ListMLE() + 0.5 * RankCosine(),
    ListMLE(ties="random", seed=3),
]
every_case = pytest.mark.parametrize("loss", [*CASES, *OTHERS], ids=repr)


def random_lists(rng, n_queries=4, longest=9, grades=5, spread=2.0):
    sizes = rng.integers(1, longest, n_queries)
    # Few grades in some data sets, many ties; all grades in others.
    labels = rng.integers(0, rng.integers(2, grades + 1), sizes.sum()).astype(float)
    return Queries.from_sizes(labels, sizes, rng.uniform(0.2, 2, n_queries)), rng.normal(0, spread, sizes.sum())


def smooth_lists(loss, rng):
    """Return random lists whose scores are not so close to a kink of the loss that a difference would straddle it."""
    while True:
        queries, f = random_lists(rng)
        lists = zip(split(queries, f), split(queries, queries.labels), strict=True)
        if all(kink_distance(loss, list(fq), list(y)) > 0.01 for fq, y in lists):
            return queries, f


def split(queries, values):
    return np.split(values, queries.start[1:-1])


def dense(product, n):
    return np.column_stack([product(e) for e in np.eye(n)])


def difference(function, x, queries, step):
    """Derivative by a central difference of fourth order: error step^4, so that rounding, eps / step, stays small.

    A list does not feel the scores of another, so a place is moved in all lists at once. The function returns a number
    for each list or for each document; what it returns for one list is derived by this list's documents alone.
    """
    lists = np.arange(queries.n_queries)
    list_of = np.repeat(lists, queries.sizes)
    place = np.arange(len(x)) - queries.start[list_of]
    result = np.zeros((len(function(x)), len(x)))
    own = (lists if len(result) == len(lists) else list_of)[:, None] == list_of
    for moved in place == np.arange(queries.sizes.max())[:, None]:
        e = step * moved
        column = (8 * (function(x + e) - function(x - e)) - (function(x + 2 * e) - function(x - 2 * e))) / (12 * step)
        result[:, moved] = column[:, None] * own[:, moved]
    return result


def ignores_row_order(loss):
    terms = loss.terms if isinstance(loss, boostlist.losses.Sum) else ((1.0, loss),)
    return all(getattr(term, "ties", "") not in ("order", "random") for _, term in terms)


def test_cases_cover_the_registry():
    assert {type(loss) for loss in CASES} >= set(registry.values())


@pytest.mark.parametrize("loss", CASES, ids=repr)
def test_value_is_that_of_the_formula(loss):
    rng = np.random.default_rng(0)
    reference = reference_of(loss)
    for _ in range(25):
        queries, f = random_lists(rng)
        label_set = sorted(set(queries.labels))
        expected = [
            reference(loss, list(fq), list(y), label_set)
            for fq, y in zip(split(queries, f), split(queries, queries.labels), strict=True)
        ]
        bound = loss.bind(queries)
        np.testing.assert_allclose(bound.per_query(f), expected, rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(bound.value(f), queries.weight @ expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("loss", [loss for loss in (*CASES, *OTHERS) if loss.traits.conservative], ids=repr)
def test_gradient_is_the_derivative_of_the_value(loss):
    rng = np.random.default_rng(1)
    for _ in range(25):
        queries, f = smooth_lists(loss, rng)
        bound = loss.bind(queries)
        gradient, _ = bound.gradient_hessian(f)
        value, same_gradient = bound.value_gradient(f)
        assert value == bound.value(f)
        np.testing.assert_array_equal(gradient, same_gradient)
        scale = max(1.0, np.abs(gradient).max())
        slopes = difference(lambda x, bound=bound: bound.per_query(x), f, queries, 1e-3)
        np.testing.assert_allclose(gradient, queries.weight @ slopes, atol=1e-7 * scale)


@pytest.mark.parametrize("loss", [loss for loss in (*CASES, *OTHERS) if loss.traits.hessp], ids=repr)
def test_curvature_is_the_derivative_of_the_gradient(loss):
    rng = np.random.default_rng(2)
    for _ in range(25):
        queries, f = smooth_lists(loss, rng)
        bound = loss.bind(queries)
        hessian = dense(bound.hessp(f), len(f))
        expected = difference(lambda x, bound=bound: bound.value_gradient(x)[1], f, queries, 1e-3)
        scale = max(1.0, np.abs(expected).max())
        np.testing.assert_allclose(hessian, expected, atol=1e-7 * scale)
        np.testing.assert_allclose(hessian, hessian.T, atol=1e-9 * scale)
        if loss.traits.convex:
            assert np.linalg.eigvalsh(hessian).min() > -1e-9 * scale


@every_case
def test_curvature_is_offered_if_and_only_if_it_is_declared(loss):
    bound = loss.bind(Queries.from_sizes([1.0, 0.0], [2]))
    if loss.traits.hessp:
        assert bound.hessp([0.0, 0.0])([1.0, 0.0]).shape == (2,)
    else:
        with pytest.raises(NotImplementedError, match="offers no Hessian-vector product"):
            bound.hessp([0.0, 0.0])


def test_a_loop_for_curvature_that_is_not_declared_is_refused_and_the_other_way_round():
    for body in ({"hessp_loop": None}, {"traits": Traits(hessp=False)}):
        with pytest.raises(TypeError, match="if and only if there is a loop"):
            type("Wrong", (ListMLE,), body)


@every_case
def test_diag_is_what_the_loss_declares(loss):
    rng = np.random.default_rng(3)
    for _ in range(25):
        queries, f = smooth_lists(loss, rng)
        bound = loss.bind(queries)
        gradient, diag = bound.gradient_hessian(f)
        assert (diag >= 0).all()
        if loss.traits.diag == "heuristic":
            # What boosting needs of it: a document that is pushed has a curvature to divide by.
            assert (diag[gradient != 0] > 0).all()
            continue
        hessian = difference(lambda x, bound=bound: bound.value_gradient(x)[1], f, queries, 1e-3)
        scale = max(1.0, np.abs(hessian).max())
        if loss.traits.diag == "exact":
            np.testing.assert_allclose(diag, np.diag(hessian), atol=1e-7 * scale)
        else:
            assert np.linalg.eigvalsh(np.diag(diag) - (hessian + hessian.T) / 2).min() > -1e-7 * scale


@pytest.mark.parametrize(
    "loss", [loss for loss in (*CASES, *OTHERS) if loss.traits.shift_invariant and not loss.traits.sampled], ids=repr
)
@settings(max_examples=15)
@given(seed=st.integers(0, 2**32 - 1), shift=st.floats(-100, 100))
def test_shift_invariance(loss, seed, shift):
    queries, f = random_lists(np.random.default_rng(seed))
    bound = loss.bind(queries)
    gradient, diag = bound.gradient_hessian(f)
    moved = f + shift * np.repeat(np.arange(1, queries.n_queries + 1), queries.sizes)
    np.testing.assert_allclose(bound.per_query(moved), bound.per_query(f), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(bound.gradient_hessian(moved), (gradient, diag), rtol=1e-8, atol=1e-9)
    sums = np.add.reduceat(gradient, queries.start[:-1])
    np.testing.assert_allclose(sums, 0, atol=1e-9 * max(1, np.abs(gradient).max()))


@pytest.mark.parametrize("loss", [loss for loss in CASES if not loss.traits.shift_invariant], ids=repr)
def test_losses_that_feel_the_level_of_scores_say_so(loss):
    queries, f = random_lists(np.random.default_rng(4), n_queries=20)
    bound = loss.bind(queries)
    assert np.abs(bound.per_query(f + 1) - bound.per_query(f)).max() > 1e-3


@pytest.mark.parametrize("loss", [loss for loss in (*CASES, *OTHERS) if not loss.traits.sampled], ids=repr)
@settings(max_examples=15)
@given(seed=st.integers(0, 2**32 - 1))
def test_permutation_equivariance(loss, seed):
    rng = np.random.default_rng(seed)
    queries, f = random_lists(rng)
    order = np.concatenate(
        [a + rng.permutation(b - a) for a, b in zip(queries.start[:-1], queries.start[1:], strict=True)]
    )
    if not ignores_row_order(loss):
        labels = np.round(rng.uniform(0, 4, len(f)), 6)
        queries = Queries.from_sizes(labels, queries.sizes, queries.weight)
    if not supports(loss, queries):
        return
    permuted = Queries.from_sizes(queries.labels[order], queries.sizes, queries.weight)
    ours, theirs = loss.bind(queries), loss.bind(permuted)
    np.testing.assert_allclose(theirs.per_query(f[order]), ours.per_query(f), rtol=1e-9, atol=1e-10)
    expected = [part[order] for part in ours.gradient_hessian(f)]
    np.testing.assert_allclose(theirs.gradient_hessian(f[order]), expected, rtol=1e-7, atol=1e-9)


def supports(loss, queries):
    """Gain tables and label sets cover some labels only."""
    try:
        loss.bind(queries)
    except ValueError:
        return False
    return True


DEGENERATE = {
    "one document": [3.0],
    "one irrelevant document": [0.0],
    "all equal": [2.0, 2.0, 2.0],
    "all zero": [0.0, 0.0, 0.0],
    "a grade absent": [0.0, 3.0, 3.0, 1.0],
    "two documents": [0.0, 1.0],
}


@every_case
@pytest.mark.parametrize("labels", DEGENERATE.values(), ids=DEGENERATE)
@pytest.mark.parametrize("scores", ["zero", "equal", "apart"])
def test_degenerate_lists_are_finite(loss, labels, scores):
    n = len(labels)
    f = {"zero": np.zeros(n), "equal": np.full(n, 3.0), "apart": np.linspace(-2, 3, n)}[scores]
    bound = loss.bind(Queries.from_sizes(labels, [n]))
    assert np.isfinite(bound.value(f))
    assert np.isfinite(bound.gradient_hessian(f)).all()
    if loss.traits.shift_invariant and n == 1:
        np.testing.assert_array_equal(bound.gradient_hessian(f)[0], 0)


@every_case
@settings(max_examples=15)
@given(seed=st.integers(0, 2**32 - 1), spread=st.sampled_from([50.0, 800.0, 1e4, 1e20]))
def test_extreme_scores_are_finite(loss, seed, spread):
    rng = np.random.default_rng(seed)
    queries, _ = random_lists(rng)
    bound = loss.bind(queries)
    for f in (rng.uniform(-spread, spread, queries.n_documents), rng.choice([-spread, spread], queries.n_documents)):
        assert np.isfinite(bound.per_query(f)).all()
        assert np.isfinite(bound.gradient_hessian(f)).all()
        if loss.traits.hessp:
            assert np.isfinite(bound.hessp(f)(rng.normal(size=len(f)))).all()


@every_case
def test_query_weights_multiply(loss):
    rng = np.random.default_rng(5)
    queries, f = random_lists(rng, n_queries=6)
    bare = loss.bind(Queries.from_sizes(queries.labels, queries.sizes))
    weight = np.array([0.0, 1, 2, 0.5, 7, 1])
    weighted = loss.bind(Queries.from_sizes(queries.labels, queries.sizes, weight))
    np.testing.assert_array_equal(weighted.per_query(f), bare.per_query(f))
    np.testing.assert_allclose(weighted.value(f), weight @ bare.per_query(f))
    rows = np.repeat(weight, queries.sizes)
    np.testing.assert_allclose(weighted.gradient_hessian(f), rows * np.array(bare.gradient_hessian(f)), rtol=1e-12)
    if loss.traits.hessp:
        v = rng.normal(size=len(f))
        np.testing.assert_allclose(weighted.hessp(f)(v), rows * bare.hessp(f)(v), rtol=1e-9, atol=1e-12)


@every_case
def test_any_thread_count_gives_the_same_bits(loss):
    rng = np.random.default_rng(6)
    sizes = np.clip(rng.lognormal(3, 1, 400), 1, 600).astype(int)
    queries = Queries.from_sizes(rng.integers(0, 5, sizes.sum()), sizes, rng.uniform(size=400))
    assert queries.n_documents > boostlist.parallel._MIN_DOCUMENTS
    f = rng.normal(size=queries.n_documents)
    results = []
    try:
        for threads in (1, 2, 5):
            boostlist.set_threads(threads)
            bound = loss.bind(queries)
            parts = [bound.per_query(f), *bound.gradient_hessian(f)]
            if loss.traits.hessp:
                parts.append(bound.hessp(f)(f))
            results.append(parts)
    finally:
        boostlist.set_threads(None)
    for other in results[1:]:
        for part, same in zip(results[0], other, strict=True):
            np.testing.assert_array_equal(part, same)


@every_case
def test_a_loss_is_a_value(loss):
    for twin in (
        pickle.loads(pickle.dumps(loss)),
        copy.deepcopy(loss),
        eval(repr(loss), {**vars(boostlist.losses), "inf": np.inf}),
    ):
        assert twin == loss
        assert hash(twin) == hash(loss)
    with pytest.raises(AttributeError):
        loss.anything = 1


def test_parameters_that_it_has_not():
    for call, hint in (
        (lambda: objectives.CsListMLE(kk=3), r"'kk'; did you mean k\? Its parameters, by name, are label, k, weights"),
        (
            lambda: objectives.CsListMLE(10),
            "too many positional arguments; its parameters, by name, are label, k, weights",
        ),
    ):
        with pytest.raises(TypeError, match=f"CsListMLE: .*{hint}"):
            call()


def test_ready_instances_have_default_parameters():
    for name, loss in registry.items():
        assert getattr(objectives, name) == loss()
        assert getattr(objectives, loss.__name__) is loss


def test_scores_are_checked():
    bound = ListMLE().bind(Queries.from_sizes([1, 0, 2], [1, 2]))
    with pytest.raises(ValueError, match=r"scores\[2\] is nan \(query 1\)"):
        bound.value([0, 1, np.nan])
    with pytest.raises(ValueError, match="3 documents"):
        bound.value([0, 1])
