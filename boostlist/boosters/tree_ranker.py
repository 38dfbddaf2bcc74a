"""TreeRanker: gradient boosted trees on any objective, in LightGBM or XGBoost, with scikit-learn's conventions."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from boostlist.boosters.defaults import as_objective
from boostlist.boosters.evaluation import chosen_metrics, refuse_missing_labels
from boostlist.boosters.fitted_trees import FittedTrees
from boostlist.boosters.hosts import Job, TreeParameters, host
from boostlist.boosters.lists import Lists
from boostlist.boosters.logged import bind_by_click, bind_logged, debiased_training
from boostlist.boosters.objective import Objective
from boostlist.boosters.position_bias import known_bias
from boostlist.boosters.refitting import refitted
from boostlist.checks import check_whole, concerning
from boostlist.log_check import check_log
from boostlist.metrics import Metric
from boostlist.parallel import at_most
from boostlist.propensities import CLIP
from boostlist.ranking_estimator import checked_weight

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from boostlist.boosters.hosts import Backend
    from boostlist.losses import Loss


class TreeRanker(FittedTrees):
    """Gradient boosted trees for ranking.

    But for ``extra_trees``, which XGBoost lacks, the same call gives models of equal quality in both hosts: trees grow
    by leaves in either, and the objective is scaled so that the same regularisation bites alike. What the defaults rest
    on is in docs/defaults.md.

    Labels are taken at face value unless ``fit`` is told where documents were shown: clicks are then freed of position
    bias, under every loss and in both hosts (docs/clicks.md).

    Parameters
    ----------
    objective
        A loss of boostlist, its name in `boostlist.losses.registry`, or the name of an objective that the host has,
        such as ``"lambdarank"`` or ``"rank:ndcg"``.
    backend
        ``"lightgbm"`` or ``"xgboost"``.
    n_estimators
        Number of trees; with early stopping, the largest number.
    learning_rate
        Factor on each tree.
    num_leaves
        Largest number of leaves of a tree.
    max_depth
        Largest depth of a tree; None for no limit.
    min_child_weight
        Smallest sum of Hessians in a leaf; an average document has about 1 at the start. None means 20 for losses of
        boostlist and the host's default for its own objectives, whose Hessians have another scale.
    reg_alpha, reg_lambda
        L1 and L2 penalty on the values of leaves. For ``reg_lambda`` None means 1 for losses of boostlist and the
        host's default for its own objectives.
    subsample
        Share of the documents that each tree is grown on.
    subsample_queries
        Share of the queries that each tree is grown on, for losses of boostlist; which ones depends on the seed and on
        the scores so far.
    colsample_bytree
        Share of the features that each tree may use.
    extra_trees
        Whether a feature is split at a random threshold instead of the best one; LightGBM only. None is True for losses
        of boostlist in LightGBM and False otherwise.
    max_bin
        Number of bins of a feature.
    pointwise
        Share of a squared-error term beside a loss of boostlist, relative to the loss's own curvature; 0 trains on the
        loss alone. None is 0 for pairwise losses and 0.3 for all others. Host objectives have none.
    random_state
        Seed, or a NumPy random state. Same seed, same model; None is the host's fixed default.
    n_jobs
        Number of threads of the host, and bound on those of losses and metrics in ``fit``; None for all cores.
    **host_parameters
        Further parameters of the host, in its own names: ``monotone_constraints``, ``device`` and so on.
        They win over the parameters above where both say the same; unknown ones are refused.

    Attributes
    ----------
    booster_
        The plain ``lightgbm.Booster`` or ``xgboost.Booster``, cut at its best round.
    objective_
        What was trained on: the loss with its squared-error term and scale, or the name of the host's objective.
    evals_result_
        Values of each metric after each round, by name of the data (``valid_0``, ...) and of the metric.
    n_estimators_, best_iteration_
        Number of rounds in the booster.
    position_bias_
        What a position adds to the score of a document in training, by position; not part of predictions. None if
        ``fit`` was given no positions.
    feature_importances_
        Share of each feature in the gain of all splits.
    n_features_in_, feature_names_in_
        Number of features and, if X was a data frame, their names.

    Examples
    --------
    >>> from boostlist import TreeRanker
    >>> from boostlist.datasets import load_sample
    >>> fold = load_sample()
    >>> ranker = TreeRanker(n_estimators=50, learning_rate=0.1)
    >>> ranker = ranker.fit(fold.train.X, fold.train.y, qid=fold.train.qid)
    >>> ranker.score(fold.test.X, fold.test.y, qid=fold.test.qid) > 0.6
    True
    """

    def __init__(
        self,
        objective: str | Loss | Objective = "pairwise_logistic",
        *,
        backend: Backend = "lightgbm",
        n_estimators: int = 200,
        learning_rate: float = 0.05,
        num_leaves: int = 15,
        max_depth: int | None = None,
        min_child_weight: float | None = None,
        reg_alpha: float = 0.0,
        reg_lambda: float | None = None,
        subsample: float = 1.0,
        subsample_queries: float = 1.0,
        colsample_bytree: float = 1.0,
        extra_trees: bool | None = None,
        max_bin: int = 255,
        pointwise: float | None = None,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
        **host_parameters: Any,
    ) -> None:
        self.objective = objective
        self.backend = backend
        self.n_estimators = n_estimators
        self.learning_rate = learning_rate
        self.num_leaves = num_leaves
        self.max_depth = max_depth
        self.min_child_weight = min_child_weight
        self.reg_alpha = reg_alpha
        self.reg_lambda = reg_lambda
        self.subsample = subsample
        self.subsample_queries = subsample_queries
        self.colsample_bytree = colsample_bytree
        self.extra_trees = extra_trees
        self.max_bin = max_bin
        self.pointwise = pointwise
        self.random_state = random_state
        self.n_jobs = n_jobs
        for name, value in host_parameters.items():
            setattr(self, name, value)

    def host_parameters(self) -> dict[str, Any]:
        """Return the parameters given in the host's names: the attributes that are neither ours nor fitted."""
        own = self._get_param_names()
        return {
            name: value
            for name, value in vars(self).items()
            if name not in own and not name.startswith("_") and not name.endswith("_")
        }

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return all parameters, those of the host included."""
        params: dict[str, Any] = super().get_params(deep=deep)
        return params | self.host_parameters()

    def set_params(self, **params: Any) -> Self:
        """Set parameters; names that are not in the signature are parameters of the host."""
        for name, value in params.items():
            setattr(self, name, value)
        return self

    def fit(
        self,
        X: Any,
        y: ArrayLike,
        qid: ArrayLike | None = None,
        group: ArrayLike | None = None,
        *,
        sample_weight: ArrayLike | None = None,
        position: Any = None,
        propensity: ArrayLike | None = None,
        propensity_clip: float = CLIP,
        init_score: ArrayLike | None = None,
        eval_set: Sequence[tuple[Any, ...]] = (),
        eval_metric: str | Metric | Sequence[str | Metric] = "ndcg@10",
        early_stopping_rounds: int | None = None,
        init_model: Any = None,
        batch_rows: int | None = None,
        callbacks: Sequence[Any] = (),
    ) -> Self:
        """Train.

        Parameters
        ----------
        X
            Features: an array, a CSR matrix or a data frame, which may have categorical columns and a column ``qid``.
            Missing values may be nan. XGBoost takes what a CSR matrix does not store for missing, LightGBM for 0.
            XGBoost before 3.1 knows categories by their codes only: give ``predict`` columns with the same categories.
        y
            Label of each row, >= 0; or several labels by name, in a mapping or a data frame, for losses that name
            theirs: docs/several_labels.md. The first is the main one.
        qid, group
            Query of each row, or the number of rows of each query; neither if X is a data frame with a column ``qid``.
        sample_weight
            Weight of each row, or of each query. Where weights differ within a query they multiply gradient and
            Hessian of their document, as LightGBM has it.
        position
            Where each row was shown, as labels of any kind: ranks, strings, tuples, or a data frame of several columns.
            Each position then has a bias, which is learned beside the trees, `boostlist.boosters.PositionBias`.
        propensity, propensity_clip
            Probability that each row was looked at, if it is known: clicks are then weighted by its inverse, and a
            list with several clicks counts as several lists with one (docs/clicks.md). The least one that counts.
        init_score
            Score of each row that the trees are to improve on, that of another model say. The booster does not know it:
            ``predict`` returns what the trees add, ``score`` ranks by that alone.
        eval_set
            Data to evaluate on after each round: ``(X, y, qid)``, or ``(X, y)`` if X has a column ``qid``. Weights for
            the metric may follow, of queries or rows; with the X of the training itself they say which of its queries
            to look at, such as those of weight 0 in training, and nothing is copied. After the weights, or None, may
            follow the rows' `init_score`: ``(X, y, qid, None, init_score)``.
        eval_metric
            Metrics of boostlist or their names, ``"ndcg@10:click"`` for one of several labels. The first one decides on
            stopping.
        early_stopping_rounds
            Stop when the first metric on the last of ``eval_set`` has not improved for so many rounds, in the metric's
            own direction, and keep the rounds up to the best.
        init_model
            A fitted `TreeRanker` or a plain booster to continue from; ``n_estimators`` trees are added.
        batch_rows
            For memory-mapped X larger than memory: read it in batches of about so many rows. XGBoost keeps its binned
            data in temporary files, LightGBM in memory (a byte a value).
        callbacks
            Callbacks of the host's own kind, called after each round: pruning by Optuna, logging by MLflow and so on.
        """
        adapter = host(self.backend)
        check_whole("n_estimators", self.n_estimators, least=1)
        if early_stopping_rounds is not None:
            check_whole("early_stopping_rounds", early_stopping_rounds, least=1, otherwise=", or None")
        if batch_rows is not None:
            check_whole("batch_rows", batch_rows, least=1)
        if init_model is not None and init_score is not None:
            raise ValueError(
                "init_model and init_score both say where to start; to add trees on top of a model that is not to be "
                "part of the new one, pass init_score=model.predict(X)"
            )
        train = self._lists(
            "fit", X, y, qid, group, sample_weight, position, batched=batch_rows is not None, reset=True
        ).starting_from(init_score)
        adapter.check_parameters(self.host_parameters(), self.n_features_in_)
        valid = {
            f"valid_{i}": self._valid_lists(i, entry, batch_rows is not None, (X, train.X))
            for i, entry in enumerate(eval_set or ())
        }
        if early_stopping_rounds is not None and not valid:
            raise ValueError("early_stopping_rounds needs data to evaluate on: pass eval_set=[(X, y, qid)]")
        metrics = chosen_metrics(eval_metric, [lists.queries for lists in (train, *valid.values())])
        refuse_missing_labels(metrics, valid.values())
        tree = self.tree_parameters()
        objective = self.sampled_objective(tree.seed)
        bound = bind_logged(objective, self.pointwise, train, propensity, propensity_clip)
        debiased = debiased_training(bound, train.position, init_model, self.learning_rate)
        with at_most(self.n_jobs):
            trained = adapter.train(
                Job(
                    tree=tree,
                    rounds=self.n_estimators,
                    objective=debiased or bound,
                    train=train,
                    valid=valid,
                    metrics=metrics,
                    stop_after=early_stopping_rounds,
                    start=getattr(init_model, "booster_", init_model),
                    batch_rows=batch_rows,
                    callbacks=tuple(callbacks),
                )
            )
        before = 0 if init_model is None else adapter.rounds(getattr(init_model, "booster_", init_model))
        added = adapter.rounds(trained.booster) - before
        bias = None if debiased is None else debiased.after(added)
        self.adopt(trained.booster, bound if isinstance(bound, str) else bound.objective, trained.history, bias)
        in_memory_from_scratch = init_model is None and batch_rows is None
        if debiased is not None and debiased.to_check(added) and in_memory_from_scratch and propensity is None:
            assert train.position is not None
            check_log(
                self,
                train.X,
                train.queries,
                train.position,
                {"n_estimators": added},
                sample_weight=train.weight_by_document,
                init_score=train.init_score,
            )
        return self

    def refit(
        self,
        X: Any,
        y: ArrayLike,
        qid: ArrayLike | None = None,
        group: ArrayLike | None = None,
        *,
        decay_rate: float = 0.9,
        sample_weight: ArrayLike | None = None,
        position: Any = None,
        propensity: ArrayLike | None = None,
        propensity_clip: float = CLIP,
        init_score: ArrayLike | None = None,
    ) -> Self:
        """Return a ranker with the same trees and leaf values estimated anew on other data; this one stays as it is.

        Round by round, a leaf becomes ``decay_rate`` times its value plus the rest times what the loss makes of the new
        data at the scores so far, as in LightGBM's ``Booster.refit``, which is for LightGBM's own objectives. Scale and
        squared-error term of the loss are those of the training.

        Parameters
        ----------
        X, y, qid, group, sample_weight, propensity, propensity_clip, init_score
            New data, as for ``fit``.
        decay_rate
            Share of the old value, from 0 to 1: 1 changes nothing, 0 forgets the old data but for the splits.
        position
            Where rows were shown, if the ranker has biases of positions; these stay as they are.

        Raises
        ------
        ValueError
            If the objective is one of the host's: there ``booster_.refit`` of LightGBM and ``process_type="update"`` of
            XGBoost do it.
        """
        check_is_fitted(self)
        if isinstance(self.objective_, str):
            raise ValueError(
                f"refit is for losses of boostlist, not for {self.objective_} of {self.backend}; use the host's own "
                'means: booster_.refit in LightGBM, process_type="update" in XGBoost'
            )
        if not 0 <= decay_rate <= 1:
            raise ValueError(f"decay_rate must lie between 0 and 1, got {decay_rate}")
        lists = self._lists("refit", X, y, qid, group, sample_weight, position, batched=False, reset=False)
        lists = lists.starting_from(init_score)
        bound = bind_by_click(replace(self.objective_, subsample_queries=1.0), lists, propensity, propensity_clip)
        bias = known_bias(self.position_bias_, lists.position)
        start = np.zeros(lists.queries.n_documents) if lists.init_score is None else lists.init_score
        rule = self._host.leaf_rule(self.tree_parameters())
        booster = refitted(
            self._host, self.booster_, lists.X, lambda scores: bound(scores + bias), rule, decay_rate, start
        )
        return copy(self).adopt(booster, self.objective_, {}, self.position_bias_)

    def sampled_objective(self, seed: int | None) -> Objective | str:
        """Return the objective with its samples of queries, or the name of the host's."""
        objective = as_objective(self.objective)
        if self.subsample_queries == 1:
            return objective
        if isinstance(objective, str):
            raise ValueError(
                f"subsample_queries is for losses of boostlist, not for {objective}; LightGBM's own objectives take "
                "bagging_by_query=True with subsample="
            )
        return replace(objective, subsample_queries=self.subsample_queries, seed=seed or 0)

    def tree_parameters(self) -> TreeParameters:
        """Return the parameters for the host; what is None depends on whose objective it is."""
        own = not isinstance(as_objective(self.objective), str)
        seed = self.random_state
        if seed is not None and not isinstance(seed, int | np.integer):
            seed = int(check_random_state(seed).randint(2**31 - 1))
        return TreeParameters(
            learning_rate=self.learning_rate,
            num_leaves=self.num_leaves,
            max_depth=self.max_depth,
            min_child_weight=20.0 if self.min_child_weight is None and own else self.min_child_weight,
            reg_alpha=self.reg_alpha,
            reg_lambda=1.0 if self.reg_lambda is None and own else self.reg_lambda,
            subsample=self.subsample,
            colsample_bytree=self.colsample_bytree,
            extra_trees=own and self._host.RANDOM_THRESHOLDS if self.extra_trees is None else self.extra_trees,
            max_bin=self.max_bin,
            seed=None if seed is None else int(seed),
            n_jobs=self.n_jobs,
            more=self.host_parameters(),
        )

    def _lists(
        self,
        method: str,
        X: Any,
        y: ArrayLike,
        qid: ArrayLike | None,
        group: ArrayLike | None = None,
        weight: ArrayLike | None = None,
        position: Any = None,
        *,
        batched: bool,
        reset: bool,
    ) -> Lists:
        """Read data for `method`, as errors call it; with `reset`, number and names of features are learned from it."""
        queries = self._read_queries(X, y, qid, group, method)
        features = self._mapped(X, reset) if batched else self._checked_features(X, "keep", reset)
        return Lists.of(queries, None if weight is None else checked_weight(weight, queries), features, position)

    def _valid_lists(self, i: int, entry: tuple[Any, ...], batched: bool, trained: tuple[Any, Any]) -> Lists:
        """Return lists for evaluation; the training data as it was given has the features that were made of it."""
        if not isinstance(entry, tuple | list) or len(entry) not in (2, 3, 4, 5):
            raise ValueError(
                f"eval_set[{i}] must be (X, y, qid), or (X, y) if X has a column 'qid'; weights, init_score may follow"
            )
        X, y, qid, weight, start = (*entry, None, None, None)[:5]
        with concerning(f"eval_set[{i}]"):
            if X is trained[0] and weight is not None:
                queries = self._read_queries(X, y, qid, None, "fit")
                return Lists.of(queries, checked_weight(weight, queries), trained[1]).starting_from(start)
            return self._lists("fit", X, y, qid, None, weight, batched=batched, reset=False).starting_from(start)

    def _mapped(self, X: Any, reset: bool) -> Any:
        """Return features that are read in batches, unread."""
        if not isinstance(X, np.ndarray) or X.ndim != 2:
            raise ValueError(
                f"batch_rows reads rows of an array, such as a memory-mapped one; X is a {type(X).__name__}"
            )
        return validate_data(self, X, reset=reset, skip_check_array=True)
