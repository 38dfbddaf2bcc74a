"""EnsembleRanker: rankers trained on different losses, added in units of their spread."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted, validate_data

from boostlist._typing import AnyArray, FloatArray
from boostlist.checks import check_choice, warn
from boostlist.ensemble.bags import draw_bags
from boostlist.ensemble.members import check_members, default_members, named, shared_threads
from boostlist.ensemble.merging import merged
from boostlist.ensemble.storage import pack_member, unpack_member
from boostlist.ensemble.training import Lists, Material, Trained, Training, train_all
from boostlist.ensemble.weights import fitted_weights
from boostlist.frames import without_qid
from boostlist.metrics import Metric
from boostlist.persistence import Storable, encode
from boostlist.queries import Queries
from boostlist.ranking_estimator import RankingEstimator, checked_weight

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

# The default panel's number of trees: fixed without data to stop on, else the most that stopping may leave.
_ROUNDS, _MOST_ROUNDS = 200, 500


class Part(NamedTuple):
    """A fitted member on one bag, and its share in the sum.

    Attributes
    ----------
    name, bag
        Name of the member, and number of its bag.
    estimator
        The fitted estimator.
    spread
        Spread of its scores within queries.
    factor
        What its scores are multiplied by: the member's weight / (number of its bags x spread).
    """

    name: str
    bag: int
    estimator: Any
    spread: float
    factor: float


class EnsembleRanker(RankingEstimator, Storable):
    """A weighted sum of rankers, each in units of the spread of its scores within queries.

    Different losses make different errors; what they agree on is as good as the best of them on most data, without
    having to know which loss that is. See docs/ensemble.md.

    Parameters
    ----------
    members
        Estimators, or pairs ``(name, estimator)``: rankers of boostlist, pipelines of them, or any estimator of
        scikit-learn's kind whose ``fit`` takes ``qid``. None is the panel of `boostlist.ensemble.default_members`.
    weights
        ``"uniform"``; ``"fitted"``: non-negative weights that minimise a listwise loss on data which the members have
        not seen, shrunk towards uniform; or given, a number for each member in their order, or by name.
    n_bags
        How often each member is trained: 1, on all queries; more, each time on a bootstrap sample of whole queries and
        with a seed of its own. Queries that a sample leaves out stop its boosting, unless there is an ``eval_set``.
    on_error
        What a member that fails does: ``"raise"`` an error that names it, or ``"drop"`` out with a warning. If all
        fail, that is an error.
    n_jobs
        Number of cores; None for all. Members train side by side on them, in threads. Trees with an ``n_jobs`` of their
        own keep to that.
    verbose
        Whether to print a line for each training that is done.
    random_state
        Seed, or a NumPy random state. Same seed, same ensemble. With None, a single bag leaves members' seeds as they
        are, and several have seed 0; otherwise every ``random_state`` of members is set anew for each bag.

    Attributes
    ----------
    parts_
        A `Part` for each fitted member and bag: name, bag, estimator, spread, factor.
    weights_
        Weight of each member by name; they sum to 1.
    dropped_
        Why members failed, by name, and by name and bag where there are several bags.
    n_features_in_, feature_names_in_
        Number of features and, if X was a data frame, their names.

    Examples
    --------
    >>> from boostlist import EnsembleRanker, LinearRanker, TreeRanker
    >>> from boostlist.datasets import load_sample
    >>> fold = load_sample()
    >>> trees = [TreeRanker(loss, n_estimators=20, learning_rate=0.2) for loss in ("cs_listmle", "listmle")]
    >>> ranker = EnsembleRanker([*trees, LinearRanker()], weights={"cs_listmle": 2, "listmle": 2, "cs_rglist": 1})
    >>> ranker = ranker.fit(fold.train.X, fold.train.y, qid=fold.train.qid)
    >>> ranker.weights_
    {'cs_listmle': 0.4, 'listmle': 0.4, 'cs_rglist': 0.2}
    >>> ranker.score(fold.test.X, fold.test.y, qid=fold.test.qid) > 0.6
    True
    """

    _stored = ()

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "parts_")

    def __init__(
        self,
        members: Sequence[Any] | None = None,
        *,
        weights: Literal["uniform", "fitted"] | Sequence[float] | Mapping[str, float] = "uniform",
        n_bags: int = 1,
        on_error: Literal["raise", "drop"] = "raise",
        n_jobs: int | None = None,
        verbose: bool = False,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.members = members
        self.weights = weights
        self.n_bags = n_bags
        self.on_error = on_error
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters and, if deep, members by name and their parameters as ``name__parameter``."""
        params: dict[str, Any] = super().get_params(deep=False)
        if deep:
            for name, member in named(self.members):
                params[name] = member
                if hasattr(member, "get_params"):
                    params |= {f"{name}__{key}": value for key, value in member.get_params().items()}
        return params

    def set_params(self, **params: Any) -> Self:
        """Set parameters, members by name, and their parameters as ``name__parameter``."""
        if "members" in params:
            self.members = params.pop("members")
        members = named(self.members)
        new = {name: params.pop(name) for name, _ in members if name in params}
        if new:
            self.members = [(name, new.get(name, member)) for name, member in members]
        super().set_params(**params)
        return self

    def fit(
        self,
        X: Any,
        y: ArrayLike,
        qid: ArrayLike | None = None,
        group: ArrayLike | None = None,
        *,
        sample_weight: ArrayLike | None = None,
        eval_set: Sequence[tuple[Any, ...]] = (),
        eval_metric: str | Metric | Sequence[str | Metric] = "ndcg@10",
        early_stopping_rounds: int | None = 50,
    ) -> Self:
        """Train all members.

        Parameters
        ----------
        X
            Features, as the members take them; a data frame may have a column ``qid``.
        y
            Label of each row, >= 0.
        qid, group
            Query of each row, or the number of rows of each query; neither if X is a data frame with a column ``qid``.
        sample_weight
            Weight of each row, or of each query.
        eval_set
            Data that members are not trained on: ``(X, y, qid)``, or ``(X, y)`` if X has a column ``qid``; query
            weights may follow qid. The last one stops the boosting of members that can, measures spreads, and fits
            weights. Without it, the queries that bags leave out do so; without these, spreads are those of the training
            data, and members train as many rounds as they are set to (200 in the default panel).
        eval_metric
            Metrics of boostlist or their names. The first one decides on stopping.
        early_stopping_rounds
            Number of rounds without improvement after which boosting stops; None never stops it.
        """
        self._check_parameters(bool(eval_set))
        lists, weight = self._training_lists(X, y, qid, group, sample_weight)
        valid = tuple(self._valid_lists(i, entry) for i, entry in enumerate(eval_set or ()))
        material = Material(lists, valid, eval_metric, early_stopping_rounds)
        members = self._members(stopped=bool(valid) or self.n_bags > 1)
        bags = draw_bags(self.n_bags, lists.queries, weight, self.random_state)
        check_members(members, bagged=self.n_bags > 1 or weight is not None)
        given = self._given_weights([name for name, _ in members])
        fit_weights = isinstance(self.weights, str) and self.weights == "fitted"
        results = train_all(
            [Training(name, bag, member) for bag in bags for name, member in members],
            material,
            n_jobs=self.n_jobs,
            keep_scores=fit_weights,
            drop=self.on_error == "drop",
            verbose=bool(self.verbose),
        )
        trained = self._surviving(results)
        if fit_weights:
            given = _fitted(trained, material, bags)
        self._keep(trained, given)
        return self

    def _check_parameters(self, has_eval_set: bool) -> None:
        if not isinstance(self.n_bags, int | np.integer) or self.n_bags < 1:
            raise ValueError(f"n_bags must be a whole number of at least 1, got {self.n_bags!r}")
        if self.n_jobs is not None and self.n_jobs < 1:
            raise ValueError(f"n_jobs must be at least 1, or None for all cores; got {self.n_jobs}")
        check_choice("on_error", self.on_error, ("raise", "drop"))
        if isinstance(self.weights, str):
            check_choice("weights", self.weights, ("uniform", "fitted"))
            if self.weights == "fitted" and not has_eval_set and self.n_bags == 1:
                raise ValueError(
                    'weights="fitted" needs data that the members are not trained on: pass eval_set=[(X, y, qid)], or '
                    "set n_bags to 2 or more, whose samples leave queries out"
                )

    def _members(self, stopped: bool) -> list[tuple[str, Any]]:
        if self.members is None:
            return default_members(n_estimators=_MOST_ROUNDS if stopped else _ROUNDS)
        return named(self.members)

    def _given_weights(self, names: list[str]) -> dict[str, float]:
        """Return weights by name as they are given, 1 for each if they are not."""
        if isinstance(self.weights, str):
            return dict.fromkeys(names, 1.0)
        if isinstance(self.weights, Mapping):
            if set(self.weights) != set(names):
                raise ValueError(f"weights are for {', '.join(self.weights)}, but members are {', '.join(names)}")
            values = [float(self.weights[name]) for name in names]
        else:
            values = [float(value) for value in self.weights]
            if len(values) != len(names):
                raise ValueError(f"there are {len(values)} weights for {len(names)} members ({', '.join(names)})")
        if not all(np.isfinite(value) and value >= 0 for value in values) or not any(values):
            raise ValueError(f"weights must be finite, not negative, and not all 0; got {values}")
        return dict(zip(names, values, strict=True))

    def _training_lists(
        self, X: Any, y: Any, qid: Any, group: Any, sample_weight: Any
    ) -> tuple[Lists, FloatArray | None]:
        queries = self._read_queries(X, y, qid, group, "fit")
        weight = None if sample_weight is None else checked_weight(sample_weight, queries)
        features = self._checked_features(X, self._missing, reset=True)
        return Lists(features, queries if weight is None else _weighed(queries, weight)), weight

    def _valid_lists(self, i: int, entry: tuple[Any, ...]) -> Lists:
        if not isinstance(entry, tuple | list) or len(entry) not in (2, 3, 4):
            raise ValueError(f"eval_set[{i}] must be (X, y, qid), or (X, y) if X has a column 'qid'")
        X, y, qid, weight = (*entry, None, None)[:4]
        queries = self._read_queries(X, y, qid, None, f"fit, eval_set[{i}]")
        if weight is not None:
            queries = _weighed(queries, checked_weight(weight, queries))
        return Lists(self._checked_features(X, self._missing, reset=False), queries)

    @property
    def _missing(self) -> Literal["keep", "refuse"]:
        return "keep" if get_tags(self).input_tags.allow_nan else "refuse"

    def _checked_features(self, X: Any, missing: Any, reset: bool) -> Any:
        # A data frame goes to the members as it is: its categories and names are their business.
        if hasattr(X, "columns"):
            return validate_data(self, without_qid(X), reset=reset, skip_check_array=True)
        return super()._checked_features(X, missing, reset)

    def _surviving(self, results: list[Trained]) -> list[Trained]:
        """Return what was trained; warn of what failed, and raise an error if nothing is left."""
        several = self.n_bags > 1
        self.dropped_ = {
            f"{each.name} (bag {each.bag})" if several else each.name: each.error for each in results if each.error
        }
        if len(self.dropped_) == len(results):
            reasons = "; ".join(f"{name}: {reason}" for name, reason in self.dropped_.items())
            raise RuntimeError(f"all members failed: {reasons}")
        for name, reason in self.dropped_.items():
            warn(f"member {name!r} failed and is left out: {reason}")
        return [each for each in results if not each.error]

    def _keep(self, trained: list[Trained], weights: dict[str, float]) -> None:
        """Set the fitted attributes: weights that sum to 1, and the factor of each part."""
        for each in trained:
            if not each.spread:
                warn(f"member {each.name!r} gives the documents of a query the same score; its weight is 0")
        bags = {name: sum(each.name == name and each.spread > 0 for each in trained) for name in weights}
        total = sum(weight for name, weight in weights.items() if bags[name])
        self.weights_ = {
            name: weight / total if bags[name] and total else 0.0
            for name, weight in weights.items()
            if any(each.name == name for each in trained)
        }
        self.parts_ = [
            Part(
                each.name,
                each.bag,
                each.estimator,
                each.spread,
                self.weights_[each.name] / (bags[each.name] * each.spread) if each.spread else 0.0,
            )
            for each in trained
        ]

    def predict(self, X: Any, *, pred_contrib: bool = False) -> FloatArray:
        """Return the score of each row; a higher score ranks further up.

        Parameters
        ----------
        X
            Features, as for ``fit``; a column ``qid`` is ignored.
        pred_contrib
            Return SHAP values instead: for each row the contribution of each feature and, in the last column, the base.
            They sum to the score. All members must be trees.

        Raises
        ------
        ValueError
            If contributions are asked for and a member has none; the message names it.
        """
        features = self._read_features(X, self._missing)
        if pred_contrib:
            for part in self.parts_:
                if not _has_contributions(part.estimator):
                    raise ValueError(f"member {part.name!r}, a {type(part.estimator).__name__}, has no contributions")
        options = {"pred_contrib": True} if pred_contrib else {}
        width = (self.n_features_in_ + 1,) if pred_contrib else ()
        total = np.zeros((features.shape[0], *width))
        for part in self.parts_:
            if part.factor:
                with shared_threads(part.estimator, self.n_jobs):
                    total += part.factor * np.asarray(part.estimator.predict(features, **options), np.float64)
        return total

    def merged(self) -> Any:
        """Return one plain booster of the members' host: all their trees, with leaves scaled.

        It predicts the ensemble's scores - LightGBM's to rounding, XGBoost's to the float32 in which that adds leaves -
        saves to the host's own file, and serves without boostlist.

        Raises
        ------
        ValueError
            If a member is no `TreeRanker`, or of another host or on other features than the first; the message names
            it.
        """
        check_is_fitted(self)
        return merged(self.parts_)

    def _stored_parameters(self) -> dict[str, Any]:
        """Return the parameters but for the members, which a file has in their fitted form."""
        own = self.get_params(deep=False) | {"members": None}
        if isinstance(self.weights, Mapping | np.ndarray):
            names = [name for name, _ in self._members(stopped=False)]
            own["weights"] = list(self._given_weights(names).values())
        return {name: encode(value, name) for name, value in own.items()}

    def _state(self) -> tuple[dict[str, Any], dict[str, AnyArray]]:
        attributes, arrays = super()._state()
        stored = []
        for i, part in enumerate(self.parts_):
            try:
                about, more = pack_member(part.estimator, f"parts.{i}")
            except ValueError as error:
                raise ValueError(f"member {part.name!r}: {error}") from error
            stored.append({**part._asdict(), "estimator": about})
            arrays |= more
        more_attributes = {
            "parts": stored,
            "weights": self.weights_,
            "dropped": self.dropped_,
            "default": self.members is None,
        }
        return attributes | more_attributes, arrays

    def _restore(self, attributes: dict[str, Any], arrays: dict[str, AnyArray]) -> None:
        parts, self.weights_, self.dropped_, default = (
            attributes.pop(name) for name in ("parts", "weights", "dropped", "default")
        )
        own = {name: array for name, array in arrays.items() if not name.startswith("parts.")}
        super()._restore(attributes, own)
        self.parts_ = [
            Part(**(part | {"estimator": unpack_member(part["estimator"], f"parts.{i}", arrays, part["name"])}))
            for i, part in enumerate(parts)
        ]
        if not default:
            fitted = {part.name: part.estimator for part in self.parts_}
            self.members = [(name, clone(estimator)) for name, estimator in fitted.items()]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        members = named(self.members)
        tags.input_tags.allow_nan = all(
            isinstance(member, BaseEstimator) and get_tags(member).input_tags.allow_nan for _, member in members
        )
        tags.input_tags.categorical = True
        return tags


def _weighed(queries: Queries, weight: FloatArray) -> Queries:
    """Return the queries with weights; a query weighs what its rows do in the mean."""
    if len(weight) != queries.n_queries:
        weight = np.add.reduceat(weight, queries.start[:-1]) / queries.sizes
    return Queries.from_sizes(queries.labels, queries.sizes, weight)


def _has_contributions(estimator: Any) -> bool:
    from boostlist.boosters.tree_ranker import TreeRanker

    return isinstance(estimator, TreeRanker | EnsembleRanker)


def _fitted(trained: list[Trained], material: Material, bags: Sequence[Any]) -> dict[str, float]:
    """Fit weights to the mean of each member's scores over the bags that may judge a query.

    With data to validate on every bag may; else those that left the query out, and a query that none did takes no part.
    """
    judged = [material.judged(bag).queries for bag in bags]
    names = list(dict.fromkeys(each.name for each in trained if each.spread))
    if not names:
        return {each.name: 1.0 for each in trained}
    columns, known = [], np.ones(judged[0].n_queries, bool)
    for name in names:
        mine = [each for each in trained if each.name == name and each.spread]
        total = np.sum([np.asarray(each.scores) / each.spread for each in mine], axis=0)
        count = np.sum([judged[each.bag].weight > 0 for each in mine], axis=0)
        known &= count > 0
        columns.append(total / np.repeat(np.maximum(count, 1), judged[0].sizes))
    base = material.valid[-1].queries if material.valid else material.train.queries
    if not (base.weight * known).any():
        raise ValueError(
            "no query was left out by a bag of every member, so that weights cannot be fitted; raise n_bags"
        )
    queries = Queries.from_sizes(base.labels, base.sizes, base.weight * known)
    weights = fitted_weights(np.column_stack(columns), queries)
    return {each.name: 0.0 for each in trained} | dict(zip(names, weights.tolist(), strict=True))
