"""LinearRanker: the true optimum, against differences and other libraries."""

import warnings
from itertools import pairwise

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning

from boostlist import LinearRanker, Queries
from boostlist.losses import CsListMLE, CsRgList, ListMLE, ListNet, Pointwise, registry
from boostlist.solvers import Reason
from tests.models.data import lists, numerical_gradient, objective

LOSSES = {name: loss() for name, loss in registry.items()}
SMOOTH = {name: loss for name, loss in LOSSES.items() if loss.traits.convex and loss.traits.hessp}


@pytest.mark.parametrize("name", SMOOTH)
def test_newton_reaches_the_optimum_of_every_smooth_convex_loss(name):
    X, y, qid = lists()
    loss = SMOOTH[name]
    ranker = LinearRanker(loss, C=5.0).fit(X, y, qid=qid)
    assert ranker.convergence_.converged
    assert ranker.convergence_.iterations[-1].gradient_norm <= 1e-8
    assert ranker.n_iter_ <= 15
    np.testing.assert_allclose(numerical_gradient(objective(loss, 5.0, X, y, qid), ranker.coef_), 0, atol=1e-5)
    np.testing.assert_allclose(
        LinearRanker(loss, C=5.0, solver="newton-cg").fit(X, y, qid=qid).coef_, ranker.coef_, atol=1e-7
    )


@pytest.mark.parametrize(
    "name", [n for n, loss in LOSSES.items() if loss.traits.conservative and not loss.traits.convex]
)
def test_newton_refuses_what_is_not_convex_and_lbfgs_lowers_it(name):
    X, y, qid = lists()
    loss = LOSSES[name]
    for solver in ("newton", "newton-cg", "diagonal", "diagonal-by-query"):
        with pytest.raises(ValueError, match="not: where its Hessian is indefinite"):
            LinearRanker(loss, solver=solver).fit(X, y, qid=qid)
    ranker = LinearRanker(loss, C=50.0, solver="lbfgs", tol=1e-4).fit(X, y, qid=qid)
    value = objective(loss, 50.0, X, y, qid)
    assert value(ranker.coef_) < value(np.zeros(4))
    np.testing.assert_allclose(numerical_gradient(value, ranker.coef_), 0, atol=1e-3)


@pytest.mark.parametrize("name", [name for name, loss in LOSSES.items() if not loss.traits.conservative])
def test_the_gradient_of_no_function_is_refused(name):
    X, y, qid = lists()
    with pytest.raises(ValueError, match="nothing that LinearRanker could minimise"):
        LinearRanker(name).fit(X, y, qid=qid)


def test_a_loss_without_curvature_is_refused_by_newton():
    X, y, qid = lists()
    with pytest.raises(ValueError, match=r'needs curvature.*solver="lbfgs"'):
        LinearRanker("pairwise_hinge").fit(X, y, qid=qid)


def test_lbfgs_agrees_with_newton():
    X, y, qid = lists()
    newton, lbfgs = (LinearRanker(C=5.0, solver=s, tol=1e-6).fit(X, y, qid=qid) for s in ("newton", "lbfgs"))
    np.testing.assert_allclose(lbfgs.coef_, newton.coef_, atol=1e-6)
    assert newton.n_iter_ <= 6 < lbfgs.n_iter_


@pytest.mark.parametrize("ties", ["breslow", "efron"])
def test_plackett_luce_is_cox_regression_with_ties(ties):
    PHReg = pytest.importorskip("statsmodels.duration.hazard_regression").PHReg
    X, y, qid = lists(3, sizes=(20, 15, 25, 18), noise=2.0)
    cox = PHReg(y.max() - y, X, strata=qid, ties=ties).fit()
    ranker = LinearRanker(ListMLE(ties=ties), C=1e9, tol=1e-2).fit(X, y, qid=qid)
    np.testing.assert_allclose(ranker.coef_, cox.params, atol=1e-5)
    value = ListMLE(ties=ties).bind(Queries.from_qid(y, qid)).value(X @ cox.params)
    assert value == pytest.approx(-cox.llf, rel=1e-9)


def test_weights_of_queries_count():
    X, y, qid = lists()
    weight = np.array([2.0, 0.0, 1.0, 1.0, 0.0, 1.0])
    twice = np.concatenate([np.flatnonzero(qid == q) for q in (0, 0, 2, 3, 5)])
    ids = np.concatenate([np.full((qid == q).sum(), i) for i, q in enumerate((0, 0, 2, 3, 5))])
    weighted = LinearRanker(C=6.0).fit(X, y, qid=qid, sample_weight=weight)
    repeated = LinearRanker(C=5.0).fit(X[twice], y[twice], qid=ids)
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, atol=1e-8)


def test_a_sum_of_losses_with_and_without_matrix_curvature():
    X, y, qid = lists()
    loss = ListMLE() + 0.3 * Pointwise()
    ranker = LinearRanker(loss, C=2.0).fit(X, y, qid=qid)
    value = objective(loss, 2.0, X, y, qid)
    best = minimize(value, np.zeros(4), method="BFGS", options={"gtol": 1e-7})
    np.testing.assert_allclose(ranker.coef_, best.x, atol=1e-5)


def test_far_scores_need_a_line_search():
    X, y, qid = lists(noise=0.0)
    ranker = LinearRanker(ListNet(), C=1e6).fit(1e3 * X, y, qid=qid)
    losses = [iteration.loss for iteration in ranker.convergence_.iterations]
    assert ranker.convergence_.converged
    assert all(b <= a * (1 + 1e-12) for a, b in pairwise(losses))


def test_diagonal_keeps_the_norm_of_the_thesis():
    X, y, qid = lists()
    with pytest.warns(ConvergenceWarning, match="max_iter=20"):
        ranker = LinearRanker("cs_listmle", solver="diagonal", tol=0.0, max_iter=20).fit(X, y, qid=qid)
    assert np.linalg.norm(ranker.coef_) == pytest.approx(10)
    one = LinearRanker("cs_listmle", solver="diagonal", tol=1e9).fit(X[:, :1], y, qid=qid)
    assert one.convergence_.converged
    assert abs(one.coef_[0]) == pytest.approx(10)


def test_the_rule_of_the_thesis_ends_soon():
    X, y, qid = lists()
    ranker = LinearRanker("cs_listmle", solver="diagonal-by-query", tol=1e-3, max_iter=200).fit(X, y, qid=qid)
    assert ranker.convergence_.reason is Reason.SMALL_CHANGE
    assert ranker.n_iter_ <= 100
    assert np.linalg.norm(ranker.coef_) == pytest.approx(1)
    assert ranker.score(X, y, qid=qid) > 0.9
    # Not when the gradient is small, which with a small C it is at once.
    small = LinearRanker("cs_listmle", solver="diagonal-by-query", tol=1e-3, max_iter=200, C=1e-9).fit(X, y, qid=qid)
    np.testing.assert_array_equal(small.coef_, ranker.coef_)


def test_constant_columns_get_no_weight():
    X, y, qid = lists()
    constant = np.column_stack([X, np.full(len(y), 7.0), qid])
    ranker = LinearRanker(CsRgList(), C=10.0).fit(constant, y, qid=qid)
    np.testing.assert_allclose(ranker.coef_[4:], 0, atol=1e-12)
    np.testing.assert_allclose(ranker.coef_[:4], LinearRanker(C=10.0).fit(X, y, qid=qid).coef_, atol=1e-8)


def test_one_query_and_no_order():
    X, y, _ = lists()
    assert LinearRanker().fit(X, y, group=[len(y)]).coef_.any()
    with pytest.warns(UserWarning, match="no order to learn"):
        flat = LinearRanker().fit(X, np.zeros(len(y)), group=[len(y)])
    assert flat.predict(X).std() < 0.2
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        LinearRanker("pointwise").fit(X, np.ones(len(y)), group=[len(y)])  # learns the level


@pytest.mark.parametrize("C", [0, -1.0, np.nan, np.inf])
def test_a_bad_c_is_refused(C):
    X, y, qid = lists()
    with pytest.raises(ValueError, match="C must be finite and > 0"):
        LinearRanker(C=C).fit(X, y, qid=qid)


def test_bad_names_are_refused():
    X, y, qid = lists()
    for name, bad, message in (
        ("tol", -1e-9, "must be finite and >= 0"),
        ("tol", np.nan, "must be finite and >= 0"),
        ("max_iter", -1, "must be a whole number of at least 0"),
        ("C", "1", "must be finite and > 0, got '1'"),
    ):
        with pytest.raises(ValueError, match=f"{name} {message}"):
            LinearRanker(**{name: bad}).fit(X, y, qid=qid)
    with pytest.raises(TypeError, match=r"loss is the class CsListMLE; write CsListMLE\(\)"):
        LinearRanker(CsListMLE).fit(X, y, qid=qid)
    with pytest.warns(ConvergenceWarning, match="the norm of its gradient, is no longer finite. .*scale the features"):
        LinearRanker().fit(X * 1e200, y, qid=qid)
    with pytest.raises(ValueError, match="one of cs_listmle"):
        LinearRanker("nothing").fit(X, y, qid=qid)
    with pytest.raises(ValueError, match="solver must be one of"):
        LinearRanker(solver="magic").fit(X, y, qid=qid)


def test_progress(capsys):
    X, y, qid = lists()
    seen = []
    LinearRanker(verbose=True, callback=seen.append).fit(X, y, qid=qid)
    assert [iteration.number for iteration in seen] == list(range(len(seen)))
    assert capsys.readouterr().out.count("gradient norm") == len(seen) + 1
    with pytest.warns(ConvergenceWarning, match="stopped by the callback$"):
        stopped = LinearRanker(callback=lambda iteration: iteration.number == 1).fit(X, y, qid=qid)
    assert stopped.n_iter_ == 1
    with pytest.warns(ConvergenceWarning, match="max_iter=2"):
        LinearRanker(solver="lbfgs", max_iter=2).fit(X, y, qid=qid)


@pytest.mark.parametrize("solver", ["newton", "newton-cg", "lbfgs"])
def test_an_interrupt_leaves_the_last_iterate(solver):
    X, y, qid = lists()

    def interrupt(iteration):
        if iteration.number == 2:
            raise KeyboardInterrupt

    ranker = LinearRanker(C=10, solver=solver, callback=interrupt)
    with pytest.raises(KeyboardInterrupt):
        ranker.fit(X, y, qid=qid)
    assert ranker.n_iter_ == 2
    assert not ranker.convergence_.converged
    value = objective(CsRgList(), 10, X, y, qid)
    assert value(ranker.coef_) < value(np.zeros(4))
    assert np.isfinite(ranker.predict(X)).all()


def test_the_record_as_a_frame_and_as_a_plot():
    X, y, qid = lists()
    record = LinearRanker().fit(X, y, qid=qid).convergence_
    frame = record.to_frame()
    assert list(frame.columns) == ["number", "loss", "gradient_norm", "seconds"]
    assert frame.seconds.is_monotonic_increasing
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    pytest.importorskip("matplotlib.pyplot").figure()
    ax = record.plot(label="newton")
    assert len(ax.lines[0].get_xdata()) == len(frame)


def test_the_warning_advises_more_iterations_only_where_they_can_help():
    rng = np.random.default_rng(0)
    data = rng.normal(size=(40, 3)), rng.integers(0, 3, 40)
    with pytest.warns(ConvergenceWarning, match="max_iter=2 reached .* Raise max_iter or tol"):
        LinearRanker("pairwise_hinge", solver="lbfgs", max_iter=2).fit(*data, group=[20, 20])
    with pytest.warns(ConvergenceWarning, match="no step lowers the loss .* Raise tol, lower C"):
        LinearRanker("pairwise_hinge", solver="lbfgs", C=1e6).fit(*data, group=[20, 20])
