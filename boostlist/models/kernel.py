r"""KernelRanker: f(x) = sum_l theta_l K(x, x_l) over documents x_l of all queries.

Olinto, *Kernelized Cost-Sensitive Listwise Ranking* (2016), eq. 4.4. There the basis x_l is the query's own documents
(``basis="query"``); here, as its outlook proposes, it is by default shared by all queries: all training documents when
they are few, else a sample of them (Nystroem). With K_ll the kernel between basis documents the penalty is the norm of
f,

    1/2 theta'K_ll theta + (C/m) sum of query losses.

With K_ll = U diag(lambda) U' and theta = U lambda^(-1/2) w it is 1/2 |w|^2: the linear problem again, on the design
K_xl U lambda^(-1/2). Directions with lambda below a small part of the largest are left out: they are rounding or, for a
kernel that is not positive definite, such as tanh, have no norm at all.

With the basis of eq. 4.1, f(x) = sum_l theta_l K(x, x_ql) over the first documents x_q1, x_q2, ... of the query of x,
in row order, and the penalty is 1/2 |theta|^2. theta_l belongs to a place in the list, so the order of rows is part of
the model, in training and in prediction.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from boostlist._typing import FloatArray, IntArray
from boostlist.checks import check_choice, check_whole
from boostlist.losses import Loss
from boostlist.models.base import DesignRanker, as_loss
from boostlist.models.kernels import (
    USED,
    KernelFunction,
    KernelName,
    Setting,
    kernel_function,
    kernel_matrix,
    row_ranges,
    setting_parameters,
)
from boostlist.queries import Queries
from boostlist.ranking_estimator import list_starts
from boostlist.solvers import SOLVERS, Design, MatrixDesign, Problem, TransformedDesign

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

# Up to so many training documents, all of them are the basis; beyond, so many landmarks.
_FEW, _LANDMARKS = 2_000, 500
# Eigenvalues of K_ll below this part of the largest are left out.
_RANK = 1e-10


class KernelDesign(TransformedDesign):
    """The kernel between documents and a basis, transformed so that the penalty is 1/2 |w|^2.

    Parameters
    ----------
    K, T
        The kernel, a column for each document of the basis, and the transformation.
    basis
        The documents x_l; None if each query has its own.
    parameters
        Parameters of the kernel.
    """

    def __init__(self, K: FloatArray, T: FloatArray, basis: Any, parameters: dict[str, float]) -> None:
        super().__init__(MatrixDesign(K), T)
        self.basis = basis
        self.parameters = parameters


@dataclass(eq=False, repr=False, kw_only=True)
class KernelMachine(DesignRanker):
    """What rankers with a kernel share: parameters of the kernel, basis documents, training and prediction."""

    _norm = 10.0

    kernel: Any = "gaussian"
    setting: Setting = "median"
    s: float | None = None
    gamma: float | None = None
    a: float | None = None
    b: float | None = None
    degree: float | None = None
    n_landmarks: int | None = None
    landmarks: Literal["balanced", "kmeans++"] = "balanced"
    random_state: int | None = None

    def _design(self, X: Any, queries: Queries) -> Design:
        rng = np.random.default_rng(self.random_state)
        parameters = self._chosen_parameters(X, rng)
        rows = self._basis_rows(X, queries, rng)
        basis = X[rows].astype(np.float64, copy=False)
        function = self._function(parameters)
        K_ll = kernel_matrix(function, basis, basis)
        K = kernel_matrix(function, X, basis) if len(rows) < X.shape[0] else K_ll
        self._check_finite(K, K_ll)
        T = _whitening(K_ll) if SOLVERS[self.solver].penalised else np.eye(len(rows))
        return KernelDesign(K, T, basis, parameters)

    def _check_finite(self, *matrices: FloatArray) -> None:
        with np.errstate(over="ignore", invalid="ignore"):
            finite = all(np.isfinite(K.sum()) for K in matrices)
        if not finite:
            raise ValueError(f"kernel {self.kernel!r} is not finite on these features; scale them first")

    def _keep(self, problem: Problem, w: FloatArray) -> None:
        design = problem.design
        assert isinstance(design, KernelDesign)
        self.dual_coef_ = design.T @ w
        if design.basis is not None:
            self.basis_ = design.basis
        self._parameters = np.array(list(design.parameters.values()), dtype=np.float64)

    @property
    def kernel_parameters_(self) -> dict[str, float]:
        """Parameters of the kernel by name; empty for a function."""
        names = () if callable(self.kernel) else USED.get(self.kernel)
        parameters = getattr(self, "_parameters", None)
        if names is None or parameters is None or len(names) != len(parameters):
            raise AttributeError(f"this {type(self).__name__} was not fitted with a kernel")
        return dict(zip(names, parameters.tolist(), strict=True))

    def _chosen_parameters(self, X: Any, rng: np.random.Generator) -> dict[str, float]:
        check_choice("setting", self.setting, Setting)
        if callable(self.kernel):
            return {}
        check_choice("kernel", self.kernel, KernelName)
        values = setting_parameters(self.setting, self.kernel, X, rng)
        for name in values:
            given = getattr(self, name)
            if given is not None:
                if not np.isfinite(given) or (name in ("s", "gamma", "degree") and given <= 0):
                    raise ValueError(f"{name} must be finite{'' if name in 'ab' else ' and > 0'}, got {given}")
                values[name] = float(given)
        return values

    def _function(self, parameters: dict[str, float]) -> KernelFunction:
        if not callable(self.kernel):
            return kernel_function(self.kernel, parameters)
        function: KernelFunction = self.kernel
        return function

    def _basis_rows(self, X: Any, queries: Queries, rng: np.random.Generator) -> IntArray:
        check_choice("landmarks", self.landmarks, ("balanced", "kmeans++"))
        n = X.shape[0]
        if self.n_landmarks is not None:
            check_whole("n_landmarks", self.n_landmarks, least=1, otherwise=", or None")
        wanted = self.n_landmarks or (n if n <= _FEW else _LANDMARKS)
        if wanted >= n:
            return np.arange(n)
        if self.landmarks == "kmeans++":
            from sklearn.cluster import kmeans_plusplus

            _, rows = kmeans_plusplus(X, wanted, random_state=int(rng.integers(2**31)))
            return np.sort(rows).astype(np.int64)
        return _balanced(queries, wanted, rng)

    def predict(self, X: Any) -> FloatArray:
        """Return the score of each row; a higher score ranks further up. Memory stays within a block of rows."""
        features = self._read_features(X)
        function = self._function(self.kernel_parameters_)
        f = np.empty(features.shape[0])
        for lo, hi in row_ranges(len(f), len(self.dual_coef_)):
            f[lo:hi] = function(features[lo:hi].astype(np.float64, copy=False), self.basis_) @ self.dual_coef_
        return f


@dataclass(eq=False, repr=False, kw_only=True)
class KernelRanker(KernelMachine):
    """Kernel ranking function f(x) = sum_l theta_l K(x, x_l), trained to the optimum of a loss.

    It minimises 1/2 |f|^2 + (C/m) x the sum of query losses, with |f| the norm that belongs to the kernel and m the
    number of queries. Training holds a matrix of documents x basis documents in memory, prediction only a block of it.

    The tanh kernel is not positive definite, so that |f| is not a norm. What is trained is the function in the span of
    the directions where it is one: the positive part of the spectrum of K_ll. The same holds for a callable.

    Parameters
    ----------
    loss
        A loss, or its name in `boostlist.losses.registry`.
    kernel
        ``"gaussian"`` exp(-|x - z|^2 / (2 s^2)), ``"polynomial"`` (b x'z + a)^degree, ``"laplace"``
        exp(-gamma |x - z|), ``"laplace-as-printed"`` in the thesis exp(-gamma |x - z|^2), ``"tanh"`` tanh(b x'z + a),
        or a function ``(X, Z) -> K`` of rows of X and of Z. A model with a function cannot be saved.
    setting
        Where a kernel parameter is None: ``"median"`` takes it from the distances and norms of the training documents,
        ``"vanilla"`` and ``"special"`` are the two settings of Olinto's thesis; `boostlist.models.kernels` lists them.
    s, gamma, a, b, degree
        Parameters of the kernels; None for that of the setting.
    C
        Weight of the loss against the penalty, > 0.
    n_landmarks
        Number of basis documents. None means all training documents up to 2,000, and 500 landmarks beyond; with the
        query's own basis, all documents of the longest query.
    landmarks
        How they are chosen: ``"balanced"``, at random with about the same number from each query, or ``"kmeans++"``,
        far apart from each other, which costs as much as the kernel matrix several times over.
    basis
        ``"shared"``: the same documents x_l for all queries. ``"query"``: the first documents of the query itself, as
        the thesis trains it (eq. 4.1), theta_l being the weight of a place in the list. There ``predict`` needs the
        queries too, a new query's basis is its own documents, and the order of rows matters.
    solver, tol, max_iter, verbose, callback
        As for `LinearRanker`; ``"diagonal"`` is algorithm 3 of the thesis.
    random_state
        Seed for the choice of landmarks and the sample of distances.

    Attributes
    ----------
    dual_coef_
        The coefficients theta.
    basis_
        The documents x_l, float64, if the basis is shared.
    kernel_parameters_
        The parameters of the kernel by name.
    position_bias_, convergence_, n_iter_, n_features_in_, feature_names_in_
        As for `LinearRanker`.

    References
    ----------
    Olinto: Kernelized cost-sensitive listwise ranking. Master's thesis, RIT 2016. Chapter 4.
    Williams, Seeger: Using the Nystroem method to speed up kernel machines. NIPS 2000.

    Examples
    --------
    >>> from boostlist import KernelRanker
    >>> from boostlist.datasets import make_ranking
    >>> data = make_ranking(20, docs=20)
    >>> ranker = KernelRanker("cs_listmle", C=100, n_landmarks=100, random_state=0)
    >>> ranker.fit(data.X, data.y, qid=data.qid).predict(data.X[:3]).shape
    (3,)
    """

    _stored = ("dual_coef_", "basis_", "_parameters")

    loss: str | Loss = field(default="cs_listmle", kw_only=False)
    kernel: KernelName | KernelFunction = "gaussian"
    basis: Literal["shared", "query"] = "shared"

    def _loss(self) -> Loss:
        return as_loss(self.loss)

    def _design(self, X: Any, queries: Queries) -> Design:
        check_choice("basis", self.basis, ("shared", "query"))
        if self.basis == "shared":
            return super()._design(X, queries)
        parameters = self._chosen_parameters(X, np.random.default_rng(self.random_state))
        places = int(queries.sizes.max())
        if self.n_landmarks is not None:
            places = min(places, check_whole("n_landmarks", self.n_landmarks, least=1, otherwise=", or None"))
        K = _query_kernel(self._function(parameters), X, queries.start, places)
        self._check_finite(K)
        return KernelDesign(K, np.eye(places), None, parameters)

    def predict(self, X: Any, qid: ArrayLike | None = None, group: ArrayLike | None = None) -> FloatArray:
        """Return the score of each row; a higher score ranks further up. Memory stays within a block of rows.

        Parameters
        ----------
        X
            Features.
        qid, group
            As for ``fit``, if the basis is that of the query; else without effect.
        """
        if self.basis == "shared":
            return super().predict(X)
        features = self._read_features(X)
        start = list_starts(X, features.shape[0], qid, group)
        if start is None:
            raise ValueError(
                'with basis="query" a score depends on the other documents of its query: pass qid= or group= to '
                "predict, group=[len(X)] if all rows are one query, or give X as a data frame with a column 'qid'"
            )
        K = _query_kernel(self._function(self.kernel_parameters_), features, start, len(self.dual_coef_))
        return np.asarray(K @ self.dual_coef_)

    def _list_scores(self, X: Any, qid: ArrayLike | None, group: ArrayLike | None) -> FloatArray:
        return self.predict(X, qid, group)


def _query_kernel(function: KernelFunction, X: Any, start: IntArray, places: int) -> FloatArray:
    """Return K(x, x_ql) for each row x and the first documents x_ql of its query; 0 where the query has no l-th."""
    K = np.zeros((X.shape[0], places))
    for lo, hi in pairwise(start.tolist()):
        rows = X[lo:hi].astype(np.float64, copy=False)
        own = rows[: min(places, hi - lo)]
        K[lo:hi, : own.shape[0]] = function(rows, own)
    return K


def _whitening(K: FloatArray) -> FloatArray:
    """Return U lambda^(-1/2) over the eigenvalues of K that are not negligible."""
    values, vectors = np.linalg.eigh((K + K.T) / 2)
    kept = values > _RANK * np.abs(values).max()
    if not kept.any():
        raise ValueError("the kernel matrix has no positive eigenvalue; choose other kernel parameters")
    return np.ascontiguousarray(vectors[:, kept] / np.sqrt(values[kept]))


def _balanced(queries: Queries, wanted: int, rng: np.random.Generator) -> IntArray:
    """Return rows drawn at random so that no query gives two more than another that still has some."""
    # Deal the documents of each query in random order; those dealt in the first rounds are the sample.
    query = np.repeat(np.arange(queries.n_queries), queries.sizes)
    shuffled = np.lexsort((rng.random(queries.n_documents), query))
    turn = np.empty(queries.n_documents, np.int64)
    turn[shuffled] = np.arange(queries.n_documents) - queries.start[query]
    order = np.lexsort((rng.random(queries.n_queries)[query], turn))
    return np.sort(order[:wanted])
