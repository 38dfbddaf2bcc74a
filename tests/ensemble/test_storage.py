"""Ensembles in files."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.decomposition import PCA
from sklearn.exceptions import InconsistentVersionWarning
from sklearn.feature_selection import SelectKBest
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler, PowerTransformer, QuantileTransformer

import boostlist
from boostlist import EnsembleRanker, KernelRanker, LinearRanker
from boostlist.ensemble import storage
from boostlist.losses import ListMLE, Pointwise
from tests.ensemble.data import TEST, TRAIN, fitted, tree


class Mine(TransformerMixin, BaseEstimator):
    def fit(self, X, y=None):
        return self

    def transform(self, X):
        return X


def mixed(**more):
    return fitted(
        [
            tree(),
            tree("cs_listmle", backend="xgboost"),
            tree(ListMLE() + 0.3 * Pointwise(centred=True)),
            KernelRanker(n_landmarks=20),
            make_pipeline(SimpleImputer(), PowerTransformer(), LinearRanker("listmle")),
            make_pipeline(MinMaxScaler((0, 2)), "passthrough", PCA(4), QuantileTransformer(n_quantiles=9), tree()),
            ("nested", EnsembleRanker([tree(), LinearRanker()])),
        ],
        **more,
    )


def test_a_mixed_ensemble_comes_back(tmp_path):
    model = mixed(n_bags=2, weights=np.arange(1, 8))
    path = model.save(tmp_path / "model.npz")
    again = boostlist.load(path)
    np.testing.assert_array_equal(again.predict(TEST.X), model.predict(TEST.X))
    assert again.weights_ == model.weights_
    assert [part[:2] for part in again.parts_] == [part[:2] for part in model.parts_]
    assert again.n_features_in_ == 10
    assert again.get_params()["listmle-2__linearranker__loss"] == "listmle"
    refitted = clone(again).fit(TRAIN.X, TRAIN.y, TRAIN.qid)
    np.testing.assert_allclose(refitted.predict(TEST.X), model.predict(TEST.X), rtol=1e-9)


def test_the_default_panel_stays_the_default(tmp_path):
    model = EnsembleRanker(n_jobs=1).fit(TRAIN.X[:50], TRAIN.y[:50], np.zeros(50))
    again = boostlist.load(model.save(tmp_path / "model.npz"))
    assert again.members is None
    np.testing.assert_array_equal(again.predict(TEST.X), model.predict(TEST.X))


def test_what_would_need_pickle_is_named(tmp_path):
    for transformer, message in (
        (Mine(), "a Mine cannot be saved without pickle"),
        (FunctionTransformer(np.abs), "func=<ufunc 'absolute'> cannot be saved without pickle"),
        (SelectKBest(k=3), "score_func=.* cannot be saved"),
    ):
        model = fitted([tree(), ("odd", make_pipeline(transformer, LinearRanker()))])
        with pytest.raises(ValueError, match=f"member 'odd': {message}"):
            model.save(tmp_path / "model.npz")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("order", ["C", "F"])
def test_matrices_keep_their_order(order):
    """Products with them would round otherwise; what an archive holds is in C order."""
    matrix, arrays = np.array([[1.0, 2, 3], [4, 5, 6]], order=order), {}
    about = storage._encode(matrix, "x", arrays)
    again = storage._decode(about, {name: np.ascontiguousarray(array) for name, array in arrays.items()})
    np.testing.assert_array_equal(again, matrix)
    assert again.flags.c_contiguous == (order == "C")


def test_only_transformers_of_scikit_learn_are_made():
    about = storage.pack_member(MinMaxScaler().fit(TRAIN.X), "x").about
    for module, name in (
        ("os", "system"), ("sklearn.utils", "Bunch"), ("sklearn.preprocessing", "scale"),
        ("sklearn.preprocessing._data", "np"), ("sklearn.model_selection", "GridSearchCV"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=f"{module}.{name} is no transformer that a file may hold"):
            storage.unpack_member({**about, "transformer": [module, name]}, "x", {}, "file")


def test_another_version_of_scikit_learn_is_warned_of():
    about, arrays = storage.pack_member(MinMaxScaler().fit(TRAIN.X), "x")
    with pytest.warns(InconsistentVersionWarning, match="MinMaxScaler from version 0.1"):
        storage.unpack_member({**about, "version": "0.1"}, "x", arrays, "file")
