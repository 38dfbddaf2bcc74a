"""FittedTrees: a booster of either host as a ranker, from scores to explanations, and in a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted, validate_data

from boostlist._typing import FloatArray
from boostlist.boosters.explanation import leads
from boostlist.boosters.hosts import Backend, History, Host, host
from boostlist.boosters.model_file import Stored, read_model, write_model
from boostlist.boosters.objective import Objective
from boostlist.files import FileFormatError
from boostlist.frames import refuse_infinite, without_qid
from boostlist.positions import stored_bias
from boostlist.ranking_estimator import RankingEstimator

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import ArrayLike

    from boostlist.files import PathLike


class FittedTrees(RankingEstimator):
    """What `boostlist.TreeRanker` can do once it has a booster."""

    backend: Backend
    n_jobs: int | None

    @property
    def _host(self) -> Host:
        return host(self.backend)

    def adopt(
        self, booster: Any, objective: Objective | str, history: History, position_bias: pd.Series[float] | None = None
    ) -> Self:
        """Become the ranker of a booster that was trained elsewhere, and return self.

        Parameters
        ----------
        booster
            A plain booster of the host ``backend``.
        objective, history
            What it was trained on, and the values of metrics after each round: `objective_` and `evals_result_`.
        position_bias
            The biases of positions, if it was trained with any: `position_bias_`.
        """
        self._uncalibrate()
        self.booster_ = booster
        self.objective_ = objective
        self.evals_result_ = history
        self.position_bias_ = position_bias
        self.n_estimators_ = self._host.rounds(booster)
        return self

    def _checked_features(self, X: Any, missing: Literal["refuse", "keep"], reset: bool) -> Any:
        # A data frame goes to the host as it is: its categories and names are the host's business.
        if hasattr(X, "columns"):
            features = without_qid(X)
            refuse_infinite(features)
            return validate_data(self, features, reset=reset, skip_check_array=True)
        return super()._checked_features(X, missing, reset)

    def predict(self, X: Any, *, pred_contrib: bool = False) -> FloatArray:
        """Return the score of each row; a higher score ranks further up.

        Parameters
        ----------
        X
            Features, as for ``fit``; a column ``qid`` is ignored.
        pred_contrib
            Return SHAP values instead: for each row the contribution of each feature and, in the last column, the base.
            They sum to the score.
        """
        features = self._read_features(X, "keep")
        return self._host.predict(self.booster_, features, pred_contrib, self.n_jobs)

    def explain(self, X: Any, qid: ArrayLike | None = None, group: ArrayLike | None = None) -> pd.DataFrame:
        """Say for each document which features put it before the next one in its list.

        A score is a sum of SHAP values, so the lead of a document over the next one is a sum over features, of the
        differences of theirs. A feature with a large part of it is why the two stand in this order.

        Parameters
        ----------
        X, qid, group
            As for `rank`.

        Returns
        -------
        DataFrame
            A row for each document in ranked order: ``query`` (its number), ``place``, ``row`` (in X), ``score``,
            ``lead`` over the next document (nan for the last), and a column for each feature with its part of the lead.
        """
        contributions = self.predict(X, pred_contrib=True)
        names = getattr(self, "feature_names_in_", [f"feature {j}" for j in range(self.n_features_in_)])
        query = self._query_numbers(X, qid, group, len(contributions))
        return leads(self.rank(X, qid, group), query, contributions, names)

    def save(self, path: PathLike) -> Path:
        """Write the model to a file that `boostlist.load` reads and, as it is, plain LightGBM or XGBoost too.

        XGBoost wants the suffix ``.json`` or ``.ubj``; for LightGBM any will do.

        Raises
        ------
        ValueError
            If a parameter cannot be written without pickle.
        """
        return write_model(path, self.stored())

    def stored(self) -> Stored:
        """Return what a file holds of the fitted model."""
        check_is_fitted(self)
        names = getattr(self, "feature_names_in_", None)
        attributes = {
            "n_features_in_": self.n_features_in_,
            "feature_names_in_": None if names is None else names.tolist(),
            "objective_": self.objective_,
            "evals_result_": self.evals_result_,
        }
        if hasattr(self, "calibration_"):
            attributes["calibration_"] = self.calibration_
        if self.position_bias_ is not None:
            attributes["position_bias_"] = list(self.position_bias_.items())
        return Stored(self.backend, self.booster_, self.get_params(deep=False), attributes)

    @classmethod
    def from_file(cls, path: PathLike) -> Self:
        """Read what ``save`` has written; `boostlist.load` does so for any model.

        Raises
        ------
        FileFormatError
            If the file is something else, damaged, or of another version: a ValueError.
        """
        return cls.from_stored(read_model(path), path)

    @classmethod
    def from_stored(cls, stored: Stored, path: PathLike) -> Self:
        """Return the model that a file holds; its name is for errors."""
        _, booster, parameters, attributes = stored
        try:
            ranker = cls(**parameters)
            ranker.n_features_in_ = attributes["n_features_in_"]
            if attributes["feature_names_in_"] is not None:
                ranker.feature_names_in_ = np.array(attributes["feature_names_in_"], object)
            biases = stored_bias(attributes.get("position_bias_"))
            ranker.adopt(booster, attributes["objective_"], attributes["evals_result_"], biases)
            if "calibration_" in attributes:
                ranker.calibration_ = attributes["calibration_"]
            return ranker
        except Exception as error:  # a forged file may hold anything
            raise FileFormatError(f"{path} is damaged: its TreeRanker cannot be put together ({error!r})") from error

    @property
    def best_iteration_(self) -> int:
        """Number of rounds in the booster, which is cut at its best one: `n_estimators_` under LightGBM's name."""
        check_is_fitted(self)
        return self.n_estimators_

    @property
    def feature_importances_(self) -> FloatArray:
        """Share of each feature in the gain of all splits."""
        check_is_fitted(self)
        gain = self._host.total_gain(self.booster_, self.n_features_in_)
        return gain / gain.sum() if gain.sum() > 0 else gain

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        return tags
