"""What a project in production asks of TreeRanker: the host's callbacks, threads, explanations, other runtimes."""

from __future__ import annotations

import itertools

import lightgbm as lgb
import numpy as np
import pandas as pd
import pytest
import xgboost as xgb

import boostlist
from boostlist import TreeRanker

HOSTS = ("lightgbm", "xgboost")
SIZES = [7, 1, 12, 20]


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(sum(SIZES), 4)).astype(np.float32)
    return X, np.digitize(X[:, 0] - X[:, 1], [0.0, 1.0])


def fitted(backend, data, **parameters):
    options = {"min_child_weight": 1e-3, "n_estimators": 8, "num_leaves": 4} | parameters
    return TreeRanker("listnet", backend=backend, **options).fit(*data, group=SIZES)


def test_lightgbm_callbacks(data):
    seen = []
    ranker = TreeRanker("listnet", n_estimators=3)
    ranker.fit(*data, group=SIZES, callbacks=[lambda environment: seen.append(environment.iteration)])
    assert seen == [0, 1, 2]


class StopAfterTwo(xgb.callback.TrainingCallback):
    def after_iteration(self, model, epoch, evals_log):
        return epoch == 1


def test_xgboost_callbacks(data):
    ranker = TreeRanker("listnet", backend="xgboost", n_estimators=5)
    ranker.fit(*data, group=SIZES, callbacks=[StopAfterTwo()])
    assert ranker.n_estimators_ == ranker.best_iteration_ == 2


def test_best_iteration_is_where_the_booster_was_cut(data):
    ranker = TreeRanker("listnet", n_estimators=60, min_child_weight=1e-3, learning_rate=0.5)
    ranker.fit(
        *data, group=SIZES, eval_set=[(data[0], data[1][::-1], np.repeat(range(4), SIZES))], early_stopping_rounds=3
    )
    values = ranker.evals_result_["valid_0"]["ndcg@10"]
    assert ranker.best_iteration_ == 1 + int(np.argmax(values)) < len(values)


def test_predict_uses_the_threads_asked_for(data, monkeypatch):
    asked = {}
    predict = lgb.Booster.predict
    monkeypatch.setattr(lgb.Booster, "predict", lambda *a, **k: asked.update(k) or predict(*a, **k))
    fitted("lightgbm", data, n_jobs=1).predict(data[0])
    assert asked["num_threads"] == 1
    ranker = fitted("xgboost", data, n_jobs=2)
    for n_jobs in (1, 2):
        ranker.set_params(n_jobs=n_jobs).predict(data[0])
        assert f'"nthread":"{n_jobs}"' in ranker.booster_.save_config().replace(" ", "")


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_scores_of_arrays_are_those_of_a_dmatrix(dtype, data):
    """Also where features are missing and the booster starts from elsewhere than 0."""
    X = data[0].astype(dtype)
    X[::5, 0] = np.nan
    ranker = TreeRanker("listnet", backend="xgboost", min_child_weight=1e-3, base_score=0.5).fit(
        X, data[1], group=SIZES
    )
    expected = ranker.booster_.predict(xgb.DMatrix(X), output_margin=True)
    np.testing.assert_array_equal(ranker.predict(X), expected)


@pytest.mark.parametrize("backend", HOSTS)
@pytest.mark.parametrize("columns", [3, 5])
def test_arrays_of_another_width_are_refused(backend, columns, data):
    with pytest.raises(ValueError, match=f"X has {columns} features"):
        fitted(backend, data).predict(np.zeros((2, columns)))


@pytest.mark.parametrize("backend", HOSTS)
def test_explanations_add_up_to_the_lead(backend, data):
    X = pd.DataFrame(data[0], columns=list("abcd"))
    ranker = fitted(backend, (X, data[1]))
    table = ranker.explain(X, group=SIZES)
    scores, values = ranker.predict(X), ranker.predict(X, pred_contrib=True)
    begin = 0
    for number, size in enumerate(SIZES):
        order = sorted(range(begin, begin + size), key=lambda row: (-scores[row], row))
        part = table[table["query"] == number]
        assert part["row"].tolist() == order
        assert part["place"].tolist() == list(range(1, size + 1))
        for i, (row, below) in enumerate(itertools.pairwise(order)):
            line = part.iloc[i]
            assert line["lead"] == pytest.approx(scores[row] - scores[below], abs=1e-5)
            assert line[list("abcd")].tolist() == pytest.approx((values[row] - values[below])[:4].tolist(), abs=1e-6)
        assert part.iloc[-1][["lead", *"abcd"]].isna().all()
        begin += size


def test_explanations_without_names(data):
    table = fitted("lightgbm", data).explain(data[0])
    assert list(table.columns[5:]) == [f"feature {j}" for j in range(4)]
    assert table["query"].eq(0).all()


def test_a_saved_lightgbm_model_says_that_it_ranks(data, tmp_path):
    ranker = fitted("lightgbm", data)
    text = ranker.save(tmp_path / "model.txt").read_text()
    assert text.count("\nobjective=lambdarank\n") == 1
    plain = lgb.Booster(model_file=tmp_path / "model.txt")
    np.testing.assert_array_equal(plain.predict(data[0]), ranker.predict(data[0]))
    again = boostlist.load(tmp_path / "model.txt")
    assert again.save(tmp_path / "again.txt").read_text().count("\nobjective=") == 1


def test_a_model_of_the_host_keeps_its_objective(data, tmp_path):
    ranker = TreeRanker("rank_xendcg", n_estimators=2, objective_seed=3).fit(*data, group=SIZES)
    header = ranker.save(tmp_path / "model.txt").read_text().partition("\nTree=")[0]
    assert "\nobjective=rank_xendcg" in header
    assert "lambdarank" not in header


@pytest.mark.parametrize(("backend", "suffix"), [("lightgbm", "txt"), ("xgboost", "json")])
def test_onnx(backend, suffix, data, tmp_path):
    onnxmltools = pytest.importorskip("onnxmltools")
    runtime = pytest.importorskip("onnxruntime")
    from onnxmltools.convert.common.data_types import FloatTensorType

    ranker = fitted(backend, data)
    path = ranker.save(tmp_path / f"model.{suffix}")
    types = [("X", FloatTensorType([None, 4]))]
    if backend == "lightgbm":
        model = onnxmltools.convert_lightgbm(lgb.Booster(model_file=path), initial_types=types, zipmap=False)
    else:
        model = onnxmltools.convert_xgboost(xgb.Booster(model_file=path), initial_types=types)
    (scores,) = runtime.InferenceSession(model.SerializeToString()).run(None, {"X": data[0]})[:1]
    np.testing.assert_allclose(np.ravel(scores), ranker.predict(data[0]), atol=1e-5)


@pytest.mark.parametrize(("backend", "suffix"), [("lightgbm", "txt"), ("xgboost", "json")])
def test_treelite(backend, suffix, data, tmp_path):
    treelite = pytest.importorskip("treelite")
    ranker = fitted(backend, data)
    path = ranker.save(tmp_path / f"model.{suffix}")
    load = treelite.frontend.load_lightgbm_model if backend == "lightgbm" else treelite.frontend.load_xgboost_model
    scores = treelite.gtil.predict(load(path), data[0])
    np.testing.assert_allclose(np.ravel(scores), ranker.predict(data[0]), atol=1e-5)
