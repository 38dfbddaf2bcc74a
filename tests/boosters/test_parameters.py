"""Parameters of TreeRanker in each host's names, and what callbacks are made of."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from boostlist import TreeRanker, metrics
from boostlist.boosters import lightgbm_host, xgboost_early_stopping, xgboost_host
from boostlist.boosters.defaults import pointwise_term
from boostlist.losses import CsListMLE, PairwiseLogistic, Pointwise

OURS = {
    "learning_rate": 0.07, "num_leaves": 9, "max_depth": 6, "min_child_weight": 3.5, "reg_alpha": 0.4,
    "reg_lambda": 2.5, "subsample": 0.8, "colsample_bytree": 0.6, "max_bin": 63, "random_state": 11, "n_jobs": 3,
}  # fmt: skip


def test_lightgbms_names():
    expected = {
        "learning_rate": 0.07, "num_leaves": 9, "max_depth": 6, "min_sum_hessian_in_leaf": 3.5, "min_data_in_leaf": 1,
        "lambda_l1": 0.4, "lambda_l2": 2.5, "bagging_fraction": 0.8, "bagging_freq": 1, "feature_fraction": 0.6,
        "max_bin": 63, "seed": 11, "num_threads": 3, "deterministic": True, "force_col_wise": True, "verbosity": -1,
        "metric": "None",
    }  # fmt: skip
    tree = TreeRanker(**OURS, extra_trees=False).tree_parameters()
    assert lightgbm_host.parameters(tree, None) == expected
    own = lightgbm_host.parameters(tree, "lambdarank")
    assert own == {k: v for k, v in expected.items() if k != "min_data_in_leaf"} | {"objective": "lambdarank"}
    assert lightgbm_host.parameters(TreeRanker(extra_trees=True).tree_parameters(), None)["extra_trees"] is True


def test_xgboosts_names():
    expected = {
        "eta": 0.07, "max_leaves": 9, "max_depth": 6, "grow_policy": "lossguide", "tree_method": "hist",
        "min_child_weight": 3.5, "alpha": 0.4, "lambda": 2.5, "subsample": 0.8, "colsample_bytree": 0.6, "max_bin": 63,
        "seed": 11, "nthread": 3, "base_score": 0.0, "verbosity": 0, "disable_default_eval_metric": True,
    }  # fmt: skip
    tree = TreeRanker(**OURS, backend="xgboost").tree_parameters()
    assert xgboost_host.parameters(tree, None) == expected
    assert xgboost_host.parameters(tree, "rank:ndcg") == expected | {"objective": "rank:ndcg"}
    assert xgboost_host.parameters(TreeRanker(backend="xgboost").tree_parameters(), None)["max_depth"] == 0


@pytest.mark.parametrize(
    ("host", "given", "gone"),
    [
        (lightgbm_host, {"eta": 0.5}, "learning_rate"),
        (lightgbm_host, {"reg_lambda_": 1, "lambda_l2": 7.0}, None),
        (lightgbm_host, {"force_row_wise": True}, None),
        (xgboost_host, {"eta": 0.5}, None),
        (xgboost_host, {"max_leaves": 3}, None),
    ],
)
def test_the_hosts_own_names_win(host, given, gone):
    tree = TreeRanker(extra_trees=False, **given).tree_parameters()
    got = host.parameters(tree, None)
    assert gone not in got
    assert all(got[name] == value for name, value in given.items() if not name.endswith("_"))
    assert not (got.get("force_row_wise") and got.get("force_col_wise"))


def test_none_is_a_default_of_ours_or_of_the_host():
    ours, theirs = (TreeRanker(objective).tree_parameters() for objective in ("listmle", "lambdarank"))
    assert (ours.min_child_weight, ours.reg_lambda, ours.extra_trees) == (20.0, 1.0, True)
    assert (theirs.min_child_weight, theirs.reg_lambda, theirs.extra_trees) == (None, None, False)
    assert TreeRanker("listmle", backend="xgboost").tree_parameters().extra_trees is False
    assert "lambda_l2" not in lightgbm_host.parameters(theirs, "lambdarank")
    assert TreeRanker(min_child_weight=0, reg_lambda=0).tree_parameters().reg_lambda == 0


def test_warnings_are_caught_by_one_thread_at_a_time(monkeypatch):
    both, met = threading.Barrier(2), []

    def train(*args):
        try:
            met.append(both.wait(0.1))
        except threading.BrokenBarrierError:
            both.reset()

    monkeypatch.setattr(xgboost_host.xgb, "train", train)
    threads = [threading.Thread(target=xgboost_host.check_parameters, args=({"gamma": 1}, 2)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not met


def test_a_random_state_gives_a_seed():
    seeds = {TreeRanker(random_state=np.random.RandomState(i)).tree_parameters().seed for i in (1, 1, 2)}
    assert len(seeds) == 2
    assert all(isinstance(seed, int) for seed in seeds)
    assert "seed" not in lightgbm_host.parameters(TreeRanker().tree_parameters(), None)


def test_early_stopping_of_xgboost_is_passed_on():
    stop = xgboost_early_stopping(metrics.MRR(), rounds=7, data_name="vali", save_best=True, min_delta=0.25)
    assert (stop.rounds, stop.metric_name, stop.data, stop.save_best, stop._min_delta) == (7, "mrr", "vali", True, 0.25)
    assert stop.maximize is True
    assert xgboost_early_stopping(metrics.MRR(), rounds=7).save_best is False


@pytest.mark.parametrize(
    ("y_max", "targets"), [(1, "exp2"), (4, "exp2"), (4.5, "linear"), (5, "linear"), (31, "linear")]
)
def test_targets_of_the_pointwise_term_by_the_largest_grade(y_max, targets):
    assert pointwise_term(CsListMLE(), None, y_max, lambda: 2.0) == (0.15, Pointwise(targets=targets, centred=True))


def test_when_there_is_no_pointwise_term():
    def never():
        raise AssertionError

    assert pointwise_term(CsListMLE(), None, 32, never) is None
    assert pointwise_term(CsListMLE(), 0, 2, never) is None
    assert pointwise_term(PairwiseLogistic(), None, 2, never) is None
