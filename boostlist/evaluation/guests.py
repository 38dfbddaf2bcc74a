"""Models from outside of the panel: estimators and functions of a user, columns of the data, runs of another system."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import cloudpickle
import numpy as np

from boostlist.datasets import RankingData
from boostlist.datasets.documents import document_ids
from boostlist.evaluation.contenders import Guest, Trained, inputs
from boostlist.metrics import Metric
from boostlist.ranking_estimator import RankingEstimator


@dataclass(frozen=True, eq=False)
class Estimator(Guest):
    """Any estimator in the manner of scikit-learn: a ranker, or a regressor of the labels.

    It is cloned for every training. ``fit`` is given the queries if it has a parameter for them: ``qid``, ``group_id``
    (CatBoost), or ``group``, the sizes (LightGBM); or if it routes ``qid`` (scikit-learn's metadata routing).
    Rankers of boostlist, also as the last step of a pipeline, get all labels of the data, others the first.
    """

    estimator: Any
    learns: ClassVar[bool] = True

    @property
    def origin(self) -> str:
        """Digest of the pickled estimator."""
        return _digest(_pickled(self.estimator, self.name))

    def fit(
        self, setting: Mapping[str, Any], train: RankingData, vali: RankingData, metric: Metric, seed: int
    ) -> Trained:
        """Train a clone with the setting's parameters."""
        from sklearn.base import clone

        estimator = clone(self.estimator, safe=False)
        parameters = {name: value for name, value in setting.items() if name != "features"}
        if parameters:
            estimator.set_params(**parameters)
        last = getattr(estimator, "_final_estimator", estimator)  # of a pipeline
        labels = train.targets if isinstance(last, RankingEstimator) else train.y
        estimator.fit(inputs(train), labels, **_query_argument(estimator, train))
        return Trained(lambda data: np.asarray(estimator.predict(inputs(data)), np.float64), estimator)


@dataclass(frozen=True, eq=False)
class Function(Guest):
    """A function from features to scores, such as the ``predict`` of a model that is trained already."""

    function: Callable[[Any], Any]

    @property
    def origin(self) -> str:
        """Digest of the pickled function."""
        return _digest(_pickled(self.function, self.name))

    def fit(
        self, setting: Mapping[str, Any], train: RankingData, vali: RankingData, metric: Metric, seed: int
    ) -> Trained:
        """Return the function."""
        return Trained(lambda data: np.asarray(self.function(inputs(data)), np.float64))


@dataclass(frozen=True)
class Column(Guest):
    """Scores by one column of the data; `feature` is its name, or its number from 1."""

    feature: str

    def fit(
        self, setting: Mapping[str, Any], train: RankingData, vali: RankingData, metric: Metric, seed: int
    ) -> Trained:
        """Find the column."""
        index = column_index(train, self.feature)
        return Trained(lambda data: np.asarray(data.X[:, index], np.float64))


@dataclass(frozen=True)
class Run(Guest):
    """Scores of a run file: lines ``qid Q0 docno rank score tag``, as trec_eval reads them.

    A document is found by the id in its LETOR comment (``#docid = GX001``), else by its number in the query's list,
    from 1. Documents that are not in the run come last.
    """

    path: Path

    @property
    def origin(self) -> str:
        """Digest of the file."""
        return _digest(self.path.read_bytes())

    def fit(
        self, setting: Mapping[str, Any], train: RankingData, vali: RankingData, metric: Metric, seed: int
    ) -> Trained:
        """Read the run."""
        run = read_run(self.path)
        lowest = min(run.values(), default=0.0) - 1
        return Trained(lambda data: np.array([run.get(key, lowest) for key in document_keys(data)]))


def column_index(data: RankingData, name: str) -> int:
    """Return the position of a feature, by name or by number from 1.

    Raises
    ------
    ValueError
        If there is none.
    """
    if name in (data.feature_names or ()):
        return data.names.index(name)
    if name.isdecimal() and 1 <= int(name) <= data.n_features:
        return int(name) - 1
    known = f" and {', '.join(data.names)}" if data.feature_names else ""
    raise ValueError(f"there is no feature {name!r}; features are 1 to {data.n_features}{known}")


def read_run(path: Path) -> dict[tuple[str, str], float]:
    """Return the scores of a run by query and document.

    Raises
    ------
    ValueError
        If a line is none of a run, with its number.
    """
    scores = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        words = line.split()
        if not words:
            continue
        try:
            qid, _, document, _, score, *_ = words
            scores[qid, document] = float(score)
        except ValueError:
            raise ValueError(
                f"{path}, line {number}: a run has the words qid Q0 docno rank score tag, got {line[:60]!r}"
            ) from None
    return scores


def document_keys(data: RankingData) -> list[tuple[str, str]]:
    """Return query and id of each document."""
    return list(zip(data.qid.astype(str).tolist(), document_ids(data), strict=True))


def _pickled(model: Any, name: str) -> bytes:
    try:
        return bytes(cloudpickle.dumps(model))
    except Exception as error:  # there is no end to what an object may raise
        raise ValueError(f"model {name} cannot be sent to another process: {error}") from error


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]


def _query_argument(estimator: Any, train: RankingData) -> dict[str, Any]:
    names = inspect.signature(estimator.fit).parameters
    for name, value in (("qid", train.qid), ("group_id", train.qid), ("group", train.queries.sizes)):
        if name in names:
            return {name: value}
    return {"qid": train.qid} if _routes_qid(estimator) else {}


def _routes_qid(estimator: Any) -> bool:
    from sklearn import get_config
    from sklearn.utils.metadata_routing import get_routing_for_object

    if not get_config().get("enable_metadata_routing") or not hasattr(estimator, "get_metadata_routing"):
        return False
    return "qid" in get_routing_for_object(estimator).consumes("fit", ["qid"])
