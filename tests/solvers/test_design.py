"""Products of designs against those of the dense matrix."""

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from boostlist import Queries
from boostlist.losses import CsListMLE, ListMLE, ListNet, PairwiseLogistic
from boostlist.models.quadratic import ProductDesign
from boostlist.solvers import MatrixDesign, TransformedDesign, design

PAIRS = np.array([[0, 0], [0, 2], [1, 2]])


@pytest.fixture(params=[1, 40, 10**6], ids=["rows", "blocks", "whole"], autouse=True)
def block_size(request, monkeypatch):
    for name in ("_BLOCK", "_SMALL_BLOCK"):
        monkeypatch.setattr(design, name, request.param)


def designs():
    rng = np.random.default_rng(0)
    X = np.round(rng.normal(size=(30, 3)), 2)
    X[rng.random(X.shape) < 0.3] = 0
    T = rng.normal(size=(3, 2))
    products = np.column_stack([X, *(X[:, j] * X[:, k] for j, k in PAIRS)])
    single = X.astype(np.float32)
    return {
        "float64": (MatrixDesign(X), X),
        "float32": (MatrixDesign(single), single.astype(float)),
        "float32, columns together": (MatrixDesign(np.asfortranarray(single)), single.astype(float)),
        "fortran": (MatrixDesign(np.asfortranarray(X)), X),
        "csr": (MatrixDesign(csr_matrix(X)), X),
        "csr float32": (MatrixDesign(csr_matrix(single)), single.astype(float)),
        "products": (ProductDesign(X, PAIRS), products),
        "sparse products": (ProductDesign(csr_matrix(X), PAIRS), products),
        "transformed": (TransformedDesign(MatrixDesign(X), T), X @ T),
    }


@pytest.mark.parametrize("name", designs())
def test_products_with_vectors(name):
    tested, matrix = designs()[name]
    rng = np.random.default_rng(1)
    w, v = rng.normal(size=matrix.shape[1]), rng.normal(size=matrix.shape[0])
    assert (tested.n_rows, tested.n_columns) == matrix.shape
    np.testing.assert_allclose(tested.scores(w), matrix @ w, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(tested.back(v), matrix.T @ v, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(tested.block(3, 7), matrix[3:7], rtol=1e-14)
    np.testing.assert_allclose(tested.column(1), matrix[:, 1], rtol=1e-14)


@pytest.mark.parametrize(
    "loss", [ListMLE(), CsListMLE(), ListNet(), PairwiseLogistic()], ids=lambda loss: type(loss).__name__
)
@pytest.mark.parametrize("name", designs())
def test_hessian(name, loss):
    tested, matrix = designs()[name]
    rng = np.random.default_rng(2)
    bound = loss.bind(Queries.from_sizes(rng.integers(0, 3, 30), [10, 1, 12, 7]))
    f = rng.normal(size=30)
    product = bound.hessp(f)
    H = np.column_stack([product(unit) for unit in np.eye(30)])
    np.testing.assert_allclose(tested.hessian(bound, f), matrix.T @ H @ matrix, rtol=1e-10, atol=1e-12)
