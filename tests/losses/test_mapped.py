"""Losses of transformed scores, over the whole registry: values by the definition, derivatives by differences."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from statistics import NormalDist

import numpy as np
import pytest

from boostlist import LinearRanker, Queries, persistence
from boostlist.losses import ListMLE, ListNet, Mapped, RankCosine, WeightedPL, registry
from boostlist.losses.mapped import transform

MAPS = {
    "linear": lambda x: x,
    "sigmoid": lambda x: 1 / (1 + math.exp(-x)),
    "probit": NormalDist().cdf,
    "log_sigmoid": lambda x: -math.log1p(math.exp(-x)),
    "log_probit": lambda x: math.log(NormalDist().cdf(x)),
}
FUNCTIONS = {name: loss() for name, loss in registry.items() if loss().traits.conservative}


def lists():
    rng = np.random.default_rng(3)
    queries = Queries.from_sizes(rng.integers(0, 4, 14), [6, 1, 5, 2], query_weight=[1.0, 2.0, 0.5, 1.0])
    return queries, rng.normal(size=14)


def slopes(function, f, step=1e-4):
    """Return central differences of fourth order, a column for each entry of f."""
    e = step * np.eye(len(f))
    near = [(function(f + d) - function(f - d)) / (2 * step) for d in e]
    far = [(function(f + 2 * d) - function(f - 2 * d)) / (4 * step) for d in e]
    return np.stack([(4 * a - b) / 3 for a, b in zip(near, far, strict=True)], axis=-1)


@pytest.mark.parametrize("phi", MAPS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_value_and_derivatives(name, phi):
    loss = Mapped(FUNCTIONS[name], phi=phi, a=0.7)
    queries, f = lists()
    bound, plain = loss.bind(queries), FUNCTIONS[name].bind(queries)
    mapped = np.array([MAPS[phi](0.7 * x) for x in f])
    np.testing.assert_allclose(bound.per_query(f), plain.per_query(mapped), rtol=1e-10, atol=1e-12)
    value, gradient = bound.value_gradient(f)
    assert value == pytest.approx(bound.value(f), rel=1e-14)
    expected = slopes(bound.value, f)
    scale = max(1.0, np.abs(expected).max())
    np.testing.assert_allclose(gradient, expected, atol=1e-7 * scale)
    same, diag = bound.gradient_hessian(f)
    np.testing.assert_allclose(same, gradient, rtol=1e-14)
    H = slopes(lambda x: bound.value_gradient(x)[1], f)
    scale = max(1.0, np.abs(H).max())
    if loss.traits.diag == "exact":
        np.testing.assert_allclose(diag, np.diagonal(H), atol=1e-6 * scale)
    elif loss.traits.diag == "majorizer":
        assert np.linalg.eigvalsh(np.diag(diag) - (H + H.T) / 2).min() > -1e-6 * scale
    else:
        assert diag.min() >= 0
    if loss.traits.hessp:
        product = bound.hessp(f)
        np.testing.assert_allclose(np.column_stack([product(e) for e in np.eye(14)]), H, atol=1e-6 * scale)
        X = np.random.default_rng(0).normal(size=(14, 3))
        curvature = bound.curvature(f)
        if curvature is not None:
            whole = curvature(0, 2, X[:7].copy()) + curvature(2, 4, X[7:].copy())
            np.testing.assert_allclose(whole, X.T @ H @ X, atol=1e-5 * scale)
    else:
        with pytest.raises(NotImplementedError, match="offers no Hessian-vector product"):
            bound.hessp(f)


@pytest.mark.parametrize("name", [name for name in registry if name not in FUNCTIONS])
def test_a_gradient_of_no_function_follows_the_chain_rule_too(name):
    queries, f = lists()
    mapped = np.array([MAPS["sigmoid"](x) for x in f])
    gradient, diag = registry[name]().bind(queries).gradient_hessian(mapped)
    slope = mapped * (1 - mapped)
    found = Mapped(registry[name](), phi="sigmoid").bind(queries).gradient_hessian(f)
    np.testing.assert_allclose(found[0], gradient * slope, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(found[1], diag * slope**2, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_traits(name):
    loss = FUNCTIONS[name]
    assert Mapped(loss, phi="linear", a=3.0).traits == replace(loss.traits, step=loss.traits.step / 3)
    assert Mapped(loss, phi="probit").traits == replace(loss.traits, convex=False, shift_invariant=False)
    queries, _ = lists()
    np.testing.assert_array_equal(Mapped(loss, a=2.0).steps(queries), np.asarray(loss.steps(queries)) / 2)


@pytest.mark.parametrize("phi", MAPS)
def test_maps_far_out(phi):
    x = np.array([-30.0, -8.0, 8.0, 30.0])
    at = transform(phi, x)
    step = 1e-3
    for k in range(2):
        change = (transform(phi, x + step)[k] - transform(phi, x - step)[k]) / (2 * step)
        np.testing.assert_allclose(at[k + 1], change, rtol=1e-4, atol=1e-12)
    assert np.isfinite(np.concatenate(transform(phi, np.array([-1e3, 0.0, 1e3])))).all()


def test_the_thesis_draws_documents_by_phi():
    """Eq. 3.11, with one document of each grade so that there are no ties."""
    y, f = [3, 1, 2, 0], [0.3, -0.2, 0.9, 0.1]
    order = sorted(range(4), key=lambda i: -y[i])
    for phi, name in ((MAPS["sigmoid"], "log_sigmoid"), (MAPS["probit"], "log_probit")):
        p = [phi(x) for x in f]
        expected = -sum(math.log(p[order[i]] / sum(p[j] for j in order[i:])) for i in range(4))
        bound = Mapped(ListMLE(), phi=name).bind(Queries.from_sizes(y, [4]))
        assert bound.value(f) == pytest.approx(expected, rel=1e-12)


def test_the_thesis_maps_labels_too():
    """Eq. 3.12, for the first place, and eq. 3.13."""
    y, f = [3, 1, 2, 0], [0.3, -0.2, 0.9, 0.1]
    queries = Queries.from_sizes(y, [4])
    sigmoid = MAPS["sigmoid"]
    target, p = [[sigmoid(x) / sum(map(sigmoid, values)) for x in values] for values in (y, f)]
    listnet = ListNet(target="gain", gain=tuple(map(sigmoid, range(4))))
    value = Mapped(listnet, phi="log_sigmoid").bind(queries).value(f)
    assert value == pytest.approx(-sum(t * math.log(q) for t, q in zip(target, p, strict=True)), rel=1e-12)
    a, b = [[sigmoid(x) for x in values] for values in (y, f)]
    cosine = sum(s * t for s, t in zip(a, b, strict=True)) / (math.hypot(*a) * math.hypot(*b))
    value = Mapped(RankCosine(psi="sigmoid", rho=1e-9), phi="sigmoid").bind(queries).value(f)
    assert value == pytest.approx((1 - cosine) / 2, rel=1e-9)


def test_rank_cosine_has_the_same_sigmoid():
    queries, f = lists()
    for own, mapped in ((RankCosine(phi="sigmoid"), Mapped(RankCosine(), phi="sigmoid")),):
        np.testing.assert_allclose(mapped.bind(queries).per_query(f), own.bind(queries).per_query(f), rtol=1e-12)


def test_it_trains_sums_is_saved_and_refuses_what_is_no_map():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 3)), rng.integers(0, 3, 40)
    steep = LinearRanker(Mapped(ListNet(), phi="linear", a=2.0), C=1.0).fit(X, y, group=[20, 20])
    # 1/2 |w|^2 + C l(2 X w) is 1/4 of 1/2 |v|^2 + 4 C l(X v) at v = 2 w.
    plain = LinearRanker(ListNet(), C=4.0).fit(X, y, group=[20, 20])
    np.testing.assert_allclose(2 * steep.coef_, plain.coef_, atol=1e-7)
    bent = Mapped(ListMLE(), phi="log_probit", a=0.5)
    with pytest.raises(ValueError, match="needs a convex loss"):
        LinearRanker(bent).fit(X, y, group=[20, 20])
    assert LinearRanker(bent, solver="lbfgs").fit(X, y, group=[20, 20]).convergence_.converged
    total = bent + 0.5 * ListNet()
    assert persistence.decode(json.loads(json.dumps(persistence.encode(total, "loss")))) == total
    with pytest.raises(ValueError, match="phi must be one of 'linear'"):
        Mapped(ListNet(), phi="cube")
    with pytest.raises(ValueError, match="a must be finite and > 0"):
        Mapped(ListNet(), a=0.0)
    assert Mapped(WeightedPL()).with_grades((0.0, 1.0)).loss == WeightedPL(grades=(0.0, 1.0))
