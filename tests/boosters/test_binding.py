"""Reading the hosts' data, and binding once per data set."""

from __future__ import annotations

import copy
import gc
import warnings

import lightgbm as lgb
import numpy as np
import pytest
import xgboost as xgb

from boostlist import Queries, TreeRanker, metrics
from boostlist.boosters import binding
from boostlist.boosters.lists import Lists
from boostlist.levels import Levels
from boostlist.losses import CsListMLE, ListMLE, Pointwise
from boostlist.losses.compiled import CompiledLoss

SIZES = np.array([3, 4, 2])
LABELS = np.array([2, 0, 1, 0, 0, 3, 1, 1, 0], dtype=np.float32)
SCORES = np.linspace(-1, 1, 9)
X = np.random.default_rng(0).normal(size=(9, 2))


def lightgbm_data(**fields):
    return lgb.Dataset(
        X, LABELS, **{"group": SIZES, **fields}, params={"verbose": -1, "min_data_in_bin": 1}
    ).construct()


def xgboost_data(**fields):
    dmatrix = xgb.DMatrix(X, LABELS)
    dmatrix.set_info(**{"group": SIZES, **fields})
    return dmatrix


@pytest.fixture
def sorts(monkeypatch):
    """Count how often the documents of a data set are sorted by grade."""
    calls = []
    of = Levels.of
    monkeypatch.setattr(Levels, "of", lambda labels, start: calls.append(labels) or of(labels, start))
    return calls


@pytest.fixture
def bindings(monkeypatch):
    """Count how often a loss is bound."""
    calls = []
    bind = CompiledLoss.bind
    monkeypatch.setattr(CompiledLoss, "bind", lambda self, queries: calls.append(self) or bind(self, queries))
    return calls


@pytest.mark.parametrize("data", [lightgbm_data, xgboost_data])
def test_bound_once_per_data_set(bindings, data):
    dataset = data()
    loss = CsListMLE()
    first = loss(SCORES, dataset)
    for _ in range(3):
        np.testing.assert_array_equal(copy.deepcopy(loss)(SCORES, dataset), first)
    assert len(bindings) == 1
    loss(SCORES, data())
    assert len(bindings) == 2
    ListMLE()(SCORES, dataset)
    loss(SCORES, dataset)
    assert bindings[2:] == [ListMLE()]


@pytest.mark.parametrize("weight", [None, np.arange(1.0, 4), np.arange(1.0, 10)])
@pytest.mark.parametrize("backend", ["lightgbm", "xgboost"])
def test_tree_ranker_binds_and_sorts_once(bindings, sorts, backend, weight):
    ranker = TreeRanker(CsListMLE() + ListMLE(), backend=backend, n_estimators=3, min_child_weight=0)
    ranker.fit(X, LABELS, group=SIZES, sample_weight=weight, eval_set=[(X, LABELS, np.repeat([1, 2, 3], SIZES))])
    assert [type(loss) for loss in bindings] == [CsListMLE, ListMLE, Pointwise]
    assert len(sorts) == 1


@pytest.mark.parametrize("weight", [None, np.arange(1.0, 10)])
def test_native_training_binds_and_sorts_once(bindings, sorts, weight):
    dataset = lgb.Dataset(X, LABELS, group=SIZES, weight=weight, params={"min_data_in_bin": 1})
    params = {"objective": CsListMLE(), "verbose": -1, "min_data_in_leaf": 1}
    lgb.train(params, dataset, 3, valid_sets=[dataset], feval=metrics.KendallTau())
    assert bindings == [CsListMLE()]
    assert len(sorts) == 1


@pytest.mark.parametrize("data", [lightgbm_data, xgboost_data])
@pytest.mark.parametrize("change", ["label", "group", "weight"])
def test_changed_data_is_bound_again(data, change):
    dataset = data()
    loss = ListMLE()
    before = loss(SCORES, dataset)
    sizes, labels, weight = SIZES, LABELS, None
    if change == "label":
        labels = LABELS[::-1].copy()
        dataset.set_label(labels)
    elif change == "group":
        sizes = SIZES[::-1].copy()
        dataset.set_group(sizes)
    else:
        weight = np.array([1.0, 3.0, 2.0])
        dataset.set_weight(weight if data is xgboost_data else np.repeat(weight, SIZES))
    after = loss(SCORES, dataset)
    assert not np.array_equal(before, after)
    bound = loss.bind(Queries.from_sizes(labels, sizes, weight))
    gradient, diag = bound.gradient_hessian(SCORES)
    at_zero = bound.gradient_hessian(np.zeros(9))[1]
    scale = 1 / at_zero[at_zero > 0].mean()
    np.testing.assert_allclose(after[0], scale * gradient, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(after[1], scale * np.maximum(diag, np.abs(gradient) / 4), rtol=1e-5)


@pytest.mark.parametrize("data", [lightgbm_data, xgboost_data])
def test_data_sets_can_be_collected(data):
    gc.collect()
    known = len(binding._entries)
    dataset = data()
    CsListMLE()(SCORES, dataset)
    assert len(binding._entries) == known + 1
    del dataset
    gc.collect()
    assert len(binding._entries) == known


class Owner:
    """All that the cache asks of a data set: that it can be referred to weakly."""


def bound_to(owner, bind=lambda lists: object(), labels=LABELS):
    return binding.bound_once(binding.Call(SCORES, owner, binding.Fields(labels, SIZES, None)), "key", bind)


def test_an_address_that_is_used_again_is_another_data_set():
    old, new = Owner(), Owner()
    before = bound_to(old)
    held = binding._entries[id(new)] = binding._entries.pop(id(old))  # as by a thread that is about to bind
    after = bound_to(new)
    assert after is not before
    binding._entries[id(old)] = binding._entries[id(new)]
    address = id(old)
    del old
    gc.collect()
    assert held.owner() is None
    assert binding._entries.pop(address).owner() is new, "the end of the old one is none of its business"
    assert bound_to(new) is after
    address = id(new)
    del new
    gc.collect()
    assert address not in binding._entries


def test_what_was_bound_to_data_that_changed_meanwhile_is_not_kept():
    owner, changed = Owner(), LABELS[::-1].copy()
    during = []

    def slow(lists):
        during.append(bound_to(owner, labels=changed))  # as another thread would, which finds new labels
        return "bound to the old labels"

    assert bound_to(owner, slow) == "bound to the old labels"
    assert bound_to(owner, labels=changed) is during[0]


def test_only_the_last_few_losses_are_kept():
    dataset = lightgbm_data()
    for k in range(1, 100):
        CsListMLE(k=k)(SCORES, dataset)
    assert len(binding._entries[id(dataset)].bound) == binding._Entry._KEEP


def test_arrays_are_bound_once_and_followed(bindings):
    labels, loss = LABELS.copy(), ListMLE()
    first = loss(labels, SCORES, None, SIZES)
    np.testing.assert_array_equal(loss(labels, SCORES, None, SIZES), first)
    assert len(bindings) == 1
    labels[0] = 0
    assert not np.array_equal(loss(labels, SCORES, None, SIZES), first)
    np.testing.assert_array_equal(loss(list(LABELS), SCORES, None, SIZES), first)


def test_all_three_ways_of_calling_agree():
    loss = CsListMLE()
    by_lightgbm = loss(SCORES, lightgbm_data())
    np.testing.assert_array_equal(loss(SCORES, xgboost_data()), by_lightgbm)
    np.testing.assert_array_equal(loss(SCORES.astype(np.float32), xgboost_data())[0].dtype, np.float32)
    np.testing.assert_array_equal(loss(LABELS, SCORES, None, SIZES), by_lightgbm)


def test_scores_are_never_written_to():
    scores = SCORES.copy()
    CsListMLE()(scores, lightgbm_data())
    np.testing.assert_array_equal(scores, SCORES)


def test_weights_equal_within_a_query_are_query_weights():
    weight = np.array([2.0, 0.5, 1.0])
    by_document = ListMLE()(LABELS, SCORES, np.repeat(weight, SIZES), SIZES)
    by_query = ListMLE()(SCORES, xgboost_data(weight=weight))
    np.testing.assert_array_equal(by_document, by_query)
    assert not np.array_equal(by_document, ListMLE()(LABELS, SCORES, None, SIZES))


def test_unequal_weights_multiply_gradient_and_diagonal():
    weight = np.array([1, 2, 3, 1, 1, 1, 0.5, 2, 0])
    objective = ListMLE().objective(scale=1)
    gradient, diag = objective(LABELS, SCORES, weight, SIZES)
    plain_gradient, plain_diag = objective(LABELS, SCORES, None, SIZES)
    np.testing.assert_allclose(gradient, weight * plain_gradient, rtol=1e-6)
    np.testing.assert_allclose(diag, weight * plain_diag, rtol=1e-5)


@pytest.mark.parametrize("loss", [ListMLE(), Pointwise()])
def test_what_weighs_nothing_leaves_no_trace(loss):
    """Neither gradient nor Hessian, nor a share in scale or floor of the others."""
    weight = np.repeat([0.0, 2.0, 1.0], SIZES)
    gradient, diag = loss(LABELS, SCORES, weight, SIZES)
    np.testing.assert_array_equal(gradient[:3], 0)
    np.testing.assert_array_equal(diag[:3], 0)
    alone = loss(LABELS[3:].copy(), SCORES[3:], weight[3:], SIZES[1:])
    np.testing.assert_array_equal((gradient[3:], diag[3:]), alone)


def test_weights_that_are_all_0_are_refused():
    for call in (
        lambda: ListMLE()(LABELS, SCORES, np.zeros(9), SIZES),
        lambda: ListMLE()(SCORES, lightgbm_data(weight=np.zeros(9))),
        lambda: ListMLE()(SCORES, xgboost_data(weight=np.zeros(3))),
    ):
        with pytest.raises(ValueError, match="all weights are 0, so there is nothing to learn"):
            call()


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: ListMLE()(SCORES, lgb.Dataset(X, LABELS).construct()), ValueError, "no queries.*group="),
        (lambda: ListMLE()(SCORES, xgb.DMatrix(X, LABELS)), ValueError, "no queries.*qid="),
        (lambda: ListMLE()(LABELS, SCORES), ValueError, r"TreeRanker, or LGBMRanker with fit\(group="),
        (lambda: xgb.XGBRegressor(objective=ListMLE()).fit(X, LABELS), ValueError, r"TreeRanker.*xgb\.train\(.*obj="),
        (lambda: ListMLE()(SCORES, "data"), TypeError, "second argument is a str"),
        (lambda: ListMLE()(SCORES, xgboost_data(weight=np.ones(9))), ValueError, "9 weights and 3 queries"),
        (lambda: ListMLE()(LABELS, SCORES, np.full(9, np.nan), SIZES), ValueError, r"weight\[0\] is nan"),
        (lambda: ListMLE()(-LABELS, SCORES, None, SIZES), ValueError, r"labels\[0\] is -2.0"),
        (lambda: ListMLE()(LABELS, SCORES, None, SIZES[:2]), ValueError, "sizes sum to 7"),
    ],
)
def test_unusable_data_is_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_what_weighs_nothing_has_no_share_in_the_floor():
    labels, weight = np.array([2.0, 0, 1, 0, 0, 3, 1, 0, 0]), np.repeat([0.0, 2.0, 1.0], SIZES)
    _, diag = CsListMLE()(labels, SCORES, weight, SIZES)
    _, alone = CsListMLE()(labels[3:].copy(), SCORES[3:], weight[3:], SIZES[1:])
    assert 0 < diag[-1] < 1e-5  # a list without relevant documents has no curvature of its own
    np.testing.assert_array_equal(diag[3:], alone)


def test_documents_with_weights_of_their_own():
    weight = np.array([1, 2, 3, 1, 1, 1, 0.5, 2, 0])
    lists = Lists.of(Queries.from_sizes(LABELS, SIZES, [5.0, 6, 7]), weight)
    np.testing.assert_array_equal(lists.queries.weight, 1)
    np.testing.assert_allclose(lists.judged.weight, [2, 3.5 / 4, 1])
    values = metrics.NDCG(3).per_query(SCORES, lists.queries)
    assert metrics.NDCG(3)(LABELS, SCORES, weight, SIZES)[1] == pytest.approx(values @ [2, 0.875, 1] / 3.875)


def test_only_a_constant_start_is_taken_for_a_base_score():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Pointwise()(SCORES, xgboost_data())
        Pointwise()(np.zeros(9), xgboost_data())
    with pytest.warns(UserWarning, match=r"base_score=0\.5"):
        Pointwise()(np.full(9, 0.5), xgboost_data())
