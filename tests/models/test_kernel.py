"""KernelRanker and RankSVM, against the linear ranker, scikit-learn's kernels and LinearSVC on explicit pairs."""

import warnings

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import polynomial_kernel, rbf_kernel, sigmoid_kernel
from sklearn.svm import LinearSVC

from boostlist import KernelRanker, LinearRanker, Queries, RankSVM, load
from boostlist.losses import registry
from boostlist.losses.pairwise import UnitMarginHinge
from boostlist.metrics import NDCG
from boostlist.models import kernel as module
from boostlist.models import kernels
from boostlist.models.kernel import _balanced
from tests.models.data import lists, numerical_gradient


def xor(seed, queries=40, documents=20):
    """Relevance is the product of two features: no linear function ranks better than chance."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(queries * documents, 2))
    return X, (X[:, 0] * X[:, 1] > 0.3).astype(float), np.repeat(np.arange(queries), documents)


@pytest.mark.parametrize("kind", [np.asarray, csr_matrix])
def test_kernels_against_scikit_learn(kind):
    rng = np.random.default_rng(0)
    X, Z = rng.normal(size=(7, 3)), rng.normal(size=(5, 3))
    distance = np.linalg.norm(X[:, None] - Z[None], axis=2)
    expected = {
        ("gaussian", ("s", 1.7)): rbf_kernel(X, Z, gamma=1 / (2 * 1.7**2)),
        ("laplace", ("gamma", 0.6)): np.exp(-0.6 * distance),
        ("laplace-as-printed", ("gamma", 0.6)): np.exp(-0.6 * distance**2),
        ("polynomial", ("a", 0.5), ("b", 0.3), ("degree", 3.0)): polynomial_kernel(
            X, Z, gamma=0.3, coef0=0.5, degree=3
        ),
        ("tanh", ("a", 0.5), ("b", 0.3)): sigmoid_kernel(X, Z, gamma=0.3, coef0=0.5),
    }
    for (name, *parameters), K in expected.items():
        function = kernels.kernel_function(name, dict(parameters))
        np.testing.assert_allclose(kernels.kernel_matrix(function, kind(X), kind(Z), numbers=10), K, rtol=1e-12)


def test_settings():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 8))
    special = {k: kernels.setting_parameters("special", k, X, rng) for k in kernels.USED}
    assert special["gaussian"] == {"s": 2.0}  # 1 / (2 s^2) = 1 / p
    assert special["laplace"] == {"gamma": 1 / 8}
    assert special["polynomial"] == {"a": 0, "b": 1 / 8, "degree": 3}
    assert kernels.setting_parameters("vanilla", "polynomial", X, rng) == {"a": 0, "b": 1, "degree": 1}
    distances = np.linalg.norm(X[:, None] - X[None], axis=2)[np.triu_indices(300, 1)]
    median = {k: kernels.setting_parameters("median", k, X, rng) for k in kernels.USED}
    assert median["gaussian"]["s"] == pytest.approx(np.median(distances))
    assert median["laplace"]["gamma"] == pytest.approx(1 / np.median(distances))
    assert median["laplace-as-printed"]["gamma"] == pytest.approx(1 / np.median(distances) ** 2)
    square = np.mean(np.sum(X**2, axis=1))
    assert median["polynomial"] == pytest.approx({"a": 1.0, "b": 1 / square, "degree": 2.0})
    assert median["tanh"] == pytest.approx({"a": 0.0, "b": 1 / square})
    # Where documents are all the same, or all 0, there is no scale; half of them the same do not count.
    assert kernels.setting_parameters("median", "gaussian", np.ones((5, 2)), rng) == {"s": 1.0}
    assert kernels.setting_parameters("median", "tanh", np.zeros((5, 2)), rng) == {"a": 0.0, "b": 1.0}
    twice = np.concatenate([np.zeros((6, 2)), np.ones((1, 2))])
    assert kernels.setting_parameters("median", "gaussian", twice, rng) == {"s": pytest.approx(2**0.5)}


def test_a_linear_kernel_is_the_linear_ranker():
    X, y, qid = lists()
    linear = LinearRanker("cs_listmle", C=20.0).fit(X, y, qid=qid)
    kernel = KernelRanker("cs_listmle", kernel="polynomial", setting="vanilla", C=20.0).fit(X, y, qid=qid)
    assert kernel.kernel_parameters_ == {"a": 0, "b": 1, "degree": 1}
    np.testing.assert_allclose(kernel.predict(X), linear.predict(X), atol=1e-7)
    some = KernelRanker("cs_listmle", kernel="polynomial", setting="vanilla", C=20.0, n_landmarks=6, random_state=0)
    np.testing.assert_allclose(some.fit(X, y, qid=qid).predict(X), linear.predict(X), atol=1e-7)


def test_a_callable_is_the_same_kernel():
    X, y, qid = lists()
    named = KernelRanker(s=1.3, C=5.0).fit(X, y, qid=qid)
    given = KernelRanker(kernel=lambda A, B: rbf_kernel(A, B, gamma=1 / (2 * 1.3**2)), C=5.0).fit(X, y, qid=qid)
    np.testing.assert_allclose(given.predict(X), named.predict(X), atol=1e-6)


@pytest.mark.parametrize("kernel", ["gaussian", "polynomial", "laplace"])
@pytest.mark.parametrize("n_landmarks", [None, 60])
def test_a_kernel_learns_what_a_linear_function_cannot(kernel, n_landmarks):
    train, test = xor(1, queries=20), xor(2)
    linear = LinearRanker(C=100.0).fit(*train[:2], qid=train[2]).score(*test[:2], qid=test[2])
    ranker = KernelRanker("cs_rglist", kernel=kernel, C=100.0, n_landmarks=n_landmarks, random_state=0)
    assert ranker.fit(*train[:2], qid=train[2]).score(*test[:2], qid=test[2]) > 0.9 > linear + 0.2


def test_tanh_trains_on_the_positive_part_of_its_spectrum():
    X, y, qid = xor(1, queries=10)
    ranker = KernelRanker(kernel="tanh", a=-1.0, b=1.0, C=10.0).fit(X, y, qid=qid)
    assert np.linalg.eigvalsh(np.tanh(X @ X.T - 1))[0] < -1e-3
    assert ranker.convergence_.converged
    with pytest.raises(ValueError, match="no positive eigenvalue"):
        KernelRanker(kernel=lambda A, B: -np.asarray(A @ B.T)).fit(X, y, qid=qid)


@pytest.mark.parametrize("landmarks", ["balanced", "kmeans++"])
def test_landmarks_are_training_documents_and_depend_on_the_seed(landmarks):
    X, y, qid = xor(1, queries=10)
    a, b, c = (
        KernelRanker(n_landmarks=15, landmarks=landmarks, random_state=seed).fit(X, y, qid=qid).basis_
        for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(a, b)
    assert not np.array_equal(a, c)
    assert {tuple(row) for row in a} <= {tuple(row) for row in X}


def test_kmeans_plusplus_takes_one_document_of_each_heap():
    X, y, qid = xor(1, queries=10)
    heap = np.random.default_rng(0).integers(0, 4, len(X))
    ranker = KernelRanker(n_landmarks=4, landmarks="kmeans++", gamma=1.0, random_state=0)
    basis = ranker.fit(X + 1e6 * heap[:, np.newaxis], y, qid=qid).basis_
    assert sorted(np.rint(basis[:, 0] / 1e6)) == [0, 1, 2, 3]


def test_balanced_landmarks():
    queries = Queries.from_sizes(np.zeros(111), [100, 10, 1])
    rows = _balanced(queries, 11, np.random.default_rng(0))
    assert sorted(np.bincount(np.searchsorted(queries.start, rows, side="right") - 1)) == [1, 5, 5]
    # Which documents, and which query gives one more, is left to chance.
    queries = Queries.from_sizes(np.zeros(40), [10, 10, 10, 10])
    drawn = [_balanced(queries, 6, np.random.default_rng(seed)) for seed in range(40)]
    given = np.array([np.bincount(rows // 10, minlength=4) for rows in drawn])
    assert (np.sort(given, axis=1) == [1, 1, 2, 2]).all()
    assert (given == 2).any(axis=0).all()
    assert len(set(np.concatenate(drawn).tolist())) == 40


def test_how_many_documents_are_the_basis(monkeypatch):
    X, y, qid = lists()
    monkeypatch.setattr(module, "_LANDMARKS", 7)
    monkeypatch.setattr(module, "_FEW", 55)
    assert len(KernelRanker().fit(X, y, qid=qid).basis_) == 55
    monkeypatch.setattr(module, "_FEW", 54)
    assert len(KernelRanker().fit(X, y, qid=qid).basis_) == 7
    assert len(KernelRanker(n_landmarks=100).fit(X, y, qid=qid).basis_) == 55


def test_distances_of_equal_documents_are_0_however_large_they_are():
    X = np.random.default_rng(0).normal(size=(30, 4)) + 1e6
    for name in ("laplace", "gaussian"):
        K = kernels.kernel_function(name, {"s": 1.0, "gamma": 1.0})(X, X)
        assert np.isfinite(K).all()
        assert (K <= 1).all()


def test_kernel_errors():
    X, y, qid = lists()
    for bad, message in [
        ({"s": 0.0}, "s must be finite and > 0"),
        ({"s": np.inf}, "s must be finite and > 0"),
        ({"kernel": "laplace", "gamma": -1.0}, "gamma must be finite and > 0"),
        ({"kernel": "polynomial", "degree": 0.0}, "degree must be finite and > 0"),
        ({"kernel": "polynomial", "a": np.nan}, "a must be finite, got nan"),
        ({"kernel": "cosine"}, "kernel must be one of"),
        ({"setting": "plain"}, "setting must be one of"),
        ({"n_landmarks": 0}, "n_landmarks must be a whole number of at least 1"),
        ({"landmarks": "first"}, "landmarks must be one of"),
    ]:
        with pytest.raises(ValueError, match=message):
            KernelRanker(**bad).fit(X, y, qid=qid)
    with pytest.raises(ValueError, match="not finite on these features"):
        KernelRanker(kernel="polynomial", degree=500, b=1e6).fit(X, y, qid=qid)


def pair_differences(X, y, qid):
    pairs = [(i, j) for i in range(len(y)) for j in range(len(y)) if qid[i] == qid[j] and y[i] > y[j]]
    return np.array([X[i] - X[j] for i, j in pairs])


@pytest.mark.parametrize("solver", ["newton-cg", "newton", "lbfgs"])
def test_rank_svm_is_a_svm_on_pairs(solver):
    X, y, qid = lists(5, grades=4)
    D = pair_differences(X, y, qid)
    sign = np.where(np.arange(len(D)) % 2, 1.0, -1.0)
    svm = LinearSVC(C=0.5, loss="squared_hinge", fit_intercept=False, dual=False, tol=1e-12, max_iter=100_000)
    svm.fit(sign[:, None] * D, sign)
    ranker = RankSVM(C=0.5 * len(np.unique(qid)), solver=solver).fit(X, y, qid=qid)
    np.testing.assert_allclose(ranker.coef_, svm.coef_[0], atol=1e-4)


@pytest.mark.parametrize("normalize", [None, "pairs", "documents"])
def test_loss_of_rank_svm(normalize):
    _, y, qid = lists(5, grades=4)
    queries = Queries.from_qid(y, qid)
    f = np.random.default_rng(0).normal(size=len(y))
    bound = UnitMarginHinge(normalize=normalize).bind(queries)
    total = 0.0
    for a, b in zip(queries.start[:-1], queries.start[1:], strict=True):
        margins = [1 - (f[i] - f[j]) for i in range(a, b) for j in range(a, b) if y[i] > y[j]]
        divisor = {None: 1, "pairs": len(margins), "documents": b - a}[normalize]
        total += sum(max(m, 0) ** 2 for m in margins) / divisor
    assert bound.value(f) == pytest.approx(total, rel=1e-12)
    _, gradient = bound.value_gradient(f)
    np.testing.assert_allclose(gradient, numerical_gradient(bound.value, f), atol=1e-6)
    v = np.random.default_rng(1).normal(size=len(y))
    step = 1e-7
    difference = (bound.value_gradient(f + step * v)[1] - bound.value_gradient(f - step * v)[1]) / (2 * step)
    np.testing.assert_allclose(bound.hessp(f)(v), difference, atol=1e-5)
    unit = np.eye(len(y))
    np.testing.assert_allclose(bound.gradient_hessian(f)[1], [bound.hessp(f)(e) @ e for e in unit], atol=1e-12)


def test_kernel_rank_svm_with_a_linear_kernel_is_the_linear_one():
    X, y, qid = lists(5)
    linear = RankSVM(C=2.0).fit(X, y, qid=qid).predict(X)
    kernel = RankSVM(C=2.0, kernel="polynomial", setting="vanilla").fit(X, y, qid=qid).predict(X)
    np.testing.assert_allclose(kernel, linear, atol=1e-6)


def test_a_refit_leaves_nothing_of_the_fit_before(tmp_path):
    X, y, qid = lists(5)
    ranker = RankSVM().fit(X, y, qid=qid)
    ranker.set_params(kernel="gaussian").fit(X, y, qid=qid)
    assert not hasattr(ranker, "coef_")
    with np.load(ranker.save(tmp_path / "m.npz")) as file:
        assert "dual_coef_" in file.files
        assert "coef_" not in file.files
    ranker.set_params(kernel="linear").fit(X, y, qid=qid)
    assert not hasattr(ranker, "basis_")
    np.testing.assert_array_equal(ranker.coef_, RankSVM().fit(X, y, qid=qid).coef_)


@pytest.mark.parametrize("kind", [np.asarray, csr_matrix])
def test_a_basis_of_each_query(kind, tmp_path):
    """Eq. 4.1: scores by the definition, and a minimum of 1/2 |theta|^2 + (C/m) x the loss of these scores."""
    X, y, qid = lists(sizes=(8, 12, 5, 9))
    ranker = KernelRanker("listmle", basis="query", n_landmarks=7, s=1.5, C=3.0).fit(kind(X), y, qid=qid)
    theta = ranker.dual_coef_
    assert theta.shape == (7,)
    assert not hasattr(ranker, "basis_")

    def scores(X, qid, theta):
        f = np.zeros(len(X))
        for i, x in enumerate(X):
            for place, own in enumerate(X[qid == qid[i]][:7]):
                f[i] += theta[place] * np.exp(-np.sum((x - own) ** 2) / (2 * 1.5**2))
        return f

    bound = registry["listmle"]().bind(Queries.from_qid(y, qid))
    gradient = numerical_gradient(lambda t: 0.5 * t @ t + 3.0 / 4 * bound.value(scores(X, qid, t)), theta)
    np.testing.assert_allclose(gradient, 0, atol=1e-5)
    new, _, new_qid = lists(9, sizes=(3, 11))
    expected = scores(new, new_qid, theta)
    np.testing.assert_allclose(ranker.predict(kind(new), qid=new_qid), expected, atol=1e-10)
    np.testing.assert_allclose(ranker.predict(kind(new), group=[3, 11]), expected, atol=1e-10)
    loaded = load(ranker.save(tmp_path / "m.npz"))
    np.testing.assert_array_equal(loaded.predict(kind(new), qid=new_qid), ranker.predict(kind(new), qid=new_qid))
    assert ranker.rank(kind(new), qid=new_qid).tolist() == [
        *np.argsort(-expected[:3]),
        *(3 + np.argsort(-expected[3:])),
    ]
    queries = Queries.from_qid(y, qid)
    assert ranker.score(kind(X), y, qid=qid) == pytest.approx(NDCG(k=10).mean(scores(X, qid, theta), queries))
    with pytest.raises(ValueError, match=r"with basis=\"query\" .* pass qid= or group="):
        ranker.predict(kind(new))
    with pytest.raises(ValueError, match="basis must be one of 'shared', 'query'"):
        KernelRanker(basis="own").fit(X, y, qid=qid)
    assert KernelRanker("listmle", basis="query").fit(X, y, qid=qid).dual_coef_.shape == (12,)


@pytest.mark.parametrize("solver", ["diagonal", "diagonal-by-query"])
def test_the_solvers_of_the_thesis_step_along_theta(solver):
    X, y, qid = lists()
    ranker = KernelRanker("cs_listmle", solver=solver, n_landmarks=9, tol=1e-3, max_iter=200, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        ranker.fit(X, y, qid=qid)
    assert ranker.dual_coef_.shape == (9,)
    assert np.linalg.norm(ranker.dual_coef_) == pytest.approx(10)


@pytest.mark.parametrize("normalize", [None, "pairs", "documents"])
def test_rank_svm_minimises_the_normalised_loss(normalize):
    X, y, qid = lists(5, grades=4)
    ranker = RankSVM(C=3.0, normalize=normalize).fit(X, y, qid=qid)

    def value(w):
        total = 0.0
        for q in range(6):
            f, grades = X[qid == q] @ w, y[qid == q]
            margins = [1 - (f[i] - f[j]) for i in range(len(f)) for j in range(len(f)) if grades[i] > grades[j]]
            divisor = {None: 1, "pairs": len(margins), "documents": len(f)}[normalize]
            total += sum(max(m, 0.0) ** 2 for m in margins) / divisor
        return 0.5 * w @ w + 3.0 / 6 * total

    np.testing.assert_allclose(numerical_gradient(value, ranker.coef_), 0, atol=1e-4)
    assert ranker.convergence_.iterations[-1].loss == pytest.approx(value(ranker.coef_), rel=1e-9)
    assert ranker.n_iter_ <= 12  # Newton's
