"""EnsembleRanker: rankers trained on different losses, added in units of their spread."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Self, cast

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils import check_random_state, get_tags
from sklearn.utils.validation import check_is_fitted, validate_data

from boostlist._typing import AnyArray, FloatArray
from boostlist.checks import check_choice, concerning, warn
from boostlist.ensemble.bags import draw_bags, weighed
from boostlist.ensemble.members import (
    Part,
    check_contributions,
    check_members,
    default_members,
    last_step,
    mean_importances,
    named,
    shared_threads,
)
from boostlist.ensemble.merging import merged
from boostlist.ensemble.storage import pack_member, unpack_member
from boostlist.ensemble.training import Lists, Material, Trained, Training, fit_to_scores, train_all
from boostlist.frames import without_qid
from boostlist.metrics import Metric
from boostlist.persistence import Storable, encode
from boostlist.positions import Positions
from boostlist.propensities import CLIP, checked_propensity
from boostlist.queries import Queries
from boostlist.ranking_estimator import RankingEstimator, checked_weight

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import ArrayLike

# The default panel's number of trees: fixed without data to stop on, else the most that stopping may leave.
_ROUNDS, _MOST_ROUNDS = 200, 500


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
        not seen, shrunk towards uniform; or given, a number for each member in their order, or by name. None is fitted
        where there is an ``eval_set``, else uniform.
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
    position_bias_
        What a position adds to the score of a document in training, by position, if there were positions.
    dropped_
        Why members failed, by name, and by name and bag where there are several bags.
    feature_importances_
        Share of each feature in the gain of a member's splits, mean over members by their weights; only of trees.
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
        weights: Literal["uniform", "fitted"] | Sequence[float] | Mapping[str, float] | None = None,
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
        position: Any = None,
        propensity: ArrayLike | None = None,
        propensity_clip: float = CLIP,
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
            Label of each row, >= 0; or several labels by name, for members that are rankers of boostlist.
        qid, group
            Query of each row, or the number of rows of each query; neither if X is a data frame with a column ``qid``.
        sample_weight
            Weight of each row, or of each query.
        position, propensity, propensity_clip
            Where each row was shown, the probability that it was looked at, and the least one that counts, as for
            `TreeRanker`; for every member, or it is refused. The first member checks the log.
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
        bagged = self.n_bags != 1
        logged = {
            name: value for name, value in (("position", position), ("propensity", propensity)) if value is not None
        }
        members = self.checked_members(
            bool(eval_set), bool(eval_set) or bagged, bagged or sample_weight is not None, tuple(logged)
        )
        lists, weight = self._training_lists(X, y, qid, group, sample_weight)
        if position is not None:
            Positions.of(position, lists.queries.n_documents)
        if propensity is not None:
            checked_propensity(lists.queries, propensity, propensity_clip)
            logged["propensity_clip"] = propensity_clip
        valid = tuple(self._valid_lists(i, entry) for i, entry in enumerate(eval_set or ()))
        material = Material(lists, valid, eval_metric, early_stopping_rounds, logged)
        bags = draw_bags(self.n_bags, lists.queries, weight, self.random_state)
        fitted = self.fits_weights(bool(eval_set))
        results = train_all(
            [Training(name, bag, member, i) for bag in bags for i, (name, member) in enumerate(members)],
            material,
            n_jobs=self.n_jobs,
            keep_scores=fitted,
            drop=self.on_error == "drop",
            verbose=bool(self.verbose),
        )
        return self.adopt(results, [material.judged(bag).queries for bag in bags] if fitted else [])

    def fits_weights(self, validated: bool) -> bool:
        """Return whether weights are to be fitted, given whether there is data to validate on."""
        return validated if self.weights is None else isinstance(self.weights, str) and self.weights == "fitted"

    def checked_members(
        self, validated: bool, stopped: bool, weighted: bool, logged: Sequence[str] = ()
    ) -> list[tuple[str, Any]]:
        """Return the members by name, after checks of all parameters.

        Parameters
        ----------
        validated
            Whether there is data to validate on.
        stopped
            Whether boosting may stop early, so that the default panel has more rounds than it will need.
        weighted
            Whether members are trained with weights.
        logged
            What else their ``fit`` must take: ``position``, ``propensity``.
        """
        if not isinstance(self.n_bags, int | np.integer) or self.n_bags < 1:
            raise ValueError(f"n_bags must be a whole number of at least 1, got {self.n_bags!r}")
        if self.n_jobs is not None and self.n_jobs < 1:
            raise ValueError(f"n_jobs must be at least 1, or None for all cores; got {self.n_jobs}")
        check_random_state(self.random_state)
        check_choice("on_error", self.on_error, ("raise", "drop"))
        if isinstance(self.weights, str):
            check_choice("weights", self.weights, ("uniform", "fitted"))
        if self.fits_weights(validated) and not validated and self.n_bags == 1:
            raise ValueError(
                'weights="fitted" needs data that the members are not trained on: pass eval_set=[(X, y, qid)], or '
                "set n_bags to 2 or more, whose samples leave queries out"
            )
        members = self._members(stopped)
        check_members(members, (*("sample_weight",) * weighted, *logged))
        self._given_weights([name for name, _ in members])
        return members

    def _members(self, stopped: bool) -> list[tuple[str, Any]]:
        if self.members is None:
            return default_members(n_estimators=_MOST_ROUNDS if stopped else _ROUNDS)
        return named(self.members)

    def _given_weights(self, names: list[str]) -> dict[str, float]:
        """Return weights by name as they are given, 1 for each if they are not."""
        if self.weights is None or isinstance(self.weights, str):
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
        return Lists(features, queries if weight is None else weighed(queries, weight)), weight

    def _valid_lists(self, i: int, entry: tuple[Any, ...]) -> Lists:
        if not isinstance(entry, tuple | list) or len(entry) not in (2, 3, 4):
            raise ValueError(f"eval_set[{i}] must be (X, y, qid), or (X, y) if X has a column 'qid'")
        X, y, qid, weight = (*entry, None, None)[:4]
        with concerning(f"eval_set[{i}]"):
            queries = self._read_queries(X, y, qid, None, "fit")
            if queries.sizes.max() == 1:
                raise ValueError(
                    "each query has a single document, so that nothing there can stop a training or weigh a member; is "
                    "qid the query of each row?"
                )
            if weight is not None:
                queries = weighed(queries, checked_weight(weight, queries))
            return Lists(self._checked_features(X, self._missing, reset=False), queries)

    @property
    def _missing(self) -> Literal["keep", "refuse"]:
        return "keep" if get_tags(self).input_tags.allow_nan else "refuse"

    def _checked_features(self, X: Any, missing: Any, reset: bool) -> Any:
        # A data frame goes to the members as it is: its categories and names are their business.
        if hasattr(X, "columns"):
            return validate_data(self, without_qid(X), reset=reset, skip_check_array=True)
        return super()._checked_features(X, missing, reset)

    def adopt(self, results: Sequence[Trained], judged: Sequence[Queries]) -> Self:
        """Become the ensemble of what was trained.

        Parameters
        ----------
        results
            Members by bag, fitted or failed.
        judged
            To fit weights: for each bag the queries on which its members were scored, with weight 0 where they must
            not be. Without them weights are those given, or uniform.
        """
        self._uncalibrate()
        self.dropped_ = {each.title: each.error for each in results if each.error}
        if len(self.dropped_) == len(results):
            reasons = "; ".join(f"{name}: {reason}" for name, reason in self.dropped_.items())
            raise RuntimeError(f"all members failed: {reasons}")
        for name, reason in self.dropped_.items():
            warn(f"member {name!r} failed and is left out: {reason}")
        trained = [each for each in results if not each.error]
        for each in trained:
            if not each.spread:
                warn(f"member {each.title!r} gives the documents of a query the same score; its weight is 0")
        useful = [each for each in trained if each.spread]
        bags = Counter(each.name for each in useful)
        names = list(dict.fromkeys(each.name for each in results))
        weights = fit_to_scores(useful, judged) if judged else self._given_weights(names)
        total = sum(weights[name] for name in bags)
        self.weights_ = {each.name: weights[each.name] / total if bags[each.name] else 0.0 for each in trained}
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
        return self

    def predict(self, X: Any, *, pred_contrib: bool = False) -> FloatArray:
        """Return the score of each row, or its parts, as `TreeRanker.predict` does.

        Raises
        ------
        ValueError
            If contributions are asked for and a member has none; the message names it.
        """
        features = self._read_features(X, self._missing)
        if pred_contrib:
            check_contributions(self.parts_)
        options = {"pred_contrib": True} if pred_contrib else {}
        width = (self.n_features_in_ + 1,) if pred_contrib else ()
        total = np.zeros((features.shape[0], *width))
        for part in self.parts_:
            if part.factor:
                with shared_threads(part.estimator, self.n_jobs):
                    total += part.factor * np.asarray(part.estimator.predict(features, **options), np.float64)
        return total

    @property
    def feature_importances_(self) -> FloatArray:
        """Share of each feature in the gain of all splits, mean over members and bags by weight, if all are trees."""
        check_is_fitted(self)
        return mean_importances(self.parts_)

    @property
    def position_bias_(self) -> pd.Series[float] | None:
        """What a position adds to the score of a document in training, by position; None if a member has no biases.

        As scores are, it is a sum over the members; ``parts_`` has theirs.
        """
        biases: list[Any] = [getattr(last_step(part.estimator), "position_bias_", None) for part in self.parts_]
        if any(bias is None for bias in biases):
            return None
        return cast("pd.Series[float]", sum(part.factor * bias for part, bias in zip(self.parts_, biases, strict=True)))

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
