"""The losses as objectives: the classes, and a ready instance of each under its lower-case registry name.

The same object serves, as it is, ``lgb.train({"objective": o}, ...)``, ``LGBMRanker(objective=o)``,
``DaskLGBMRanker(objective=o)`` and ``xgb.train(params, dtrain, obj=o)``:

>>> from boostlist import objectives
>>> objectives.cs_listmle
CsListMLE(k=None, weights='ndcg', gain='exp2')
>>> objectives.CsListMLE(k=10)
CsListMLE(k=10, weights='ndcg', gain='exp2')
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from boostlist import plugins
from boostlist.checks import did_you_mean
from boostlist.losses import Loss, registry
from boostlist.propensities import CLIP

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from boostlist.boosters.objective import Objective

_CLASSES = {loss.__name__: loss for loss in registry.values()}

__all__ = [*registry, *_CLASSES, "with_labels", "with_propensity"]


def with_labels(loss: Loss | Objective, labels: Mapping[str, ArrayLike]) -> Objective:
    """Return an objective with further labels, for ``lgb.train`` and ``xgb.train``, whose data sets hold one.

    Terms of the loss that name no label look at the label of the data set. In `boostlist.TreeRanker` give all labels to
    ``fit`` instead.

    Parameters
    ----------
    loss
        A loss, or what ``loss.objective(...)`` returns.
    labels
        Labels by name, an entry for each row of the training data; in ``lgb.cv`` of the whole data.

    Raises
    ------
    ValueError
        If a term names a label that is not given; in training, if labels are not as many as rows, negative or not
        finite.

    Examples
    --------
    >>> import numpy as np
    >>> import lightgbm as lgb
    >>> from boostlist.datasets import load_sample
    >>> from boostlist.objectives import CsListMLE, with_labels
    >>> train = load_sample().train
    >>> loss = CsListMLE() + 0.3 * CsListMLE(label="purchase")
    >>> objective = with_labels(loss, {"purchase": train.y > 2})
    >>> booster = lgb.train({"objective": objective, "verbose": -1}, train.lgb_dataset(), 5)
    """
    return plugins.with_labels(loss, labels)


def with_propensity(loss: Loss | Objective, propensity: ArrayLike, clip: float = CLIP) -> Any:
    """Return an objective for ``lgb.train`` and ``xgb.train`` that weighs clicks by inverse propensity.

    The labels of the data set are clicks. In `boostlist.TreeRanker` give propensities to ``fit`` instead.

    Parameters
    ----------
    loss
        A loss, or what ``loss.objective(...)`` returns.
    propensity
        Probability that each document was looked at, an entry for each row of the training data.
    clip
        The least propensity that counts.

    Raises
    ------
    ValueError
        In training, if propensities are not as many as rows or no probabilities, or that of a clicked document is 0.

    Examples
    --------
    >>> import lightgbm as lgb
    >>> from boostlist.datasets import load_sample, simulate_clicks
    >>> from boostlist.objectives import CsListMLE, with_propensity
    >>> log = simulate_clicks(load_sample().train, sessions=200)
    >>> objective = with_propensity(CsListMLE(), log.propensity)
    >>> booster = lgb.train({"objective": objective, "verbose": -1}, log.data.lgb_dataset(position=None), 5)
    """
    return plugins.with_propensity(loss, propensity, clip)


def __getattr__(name: str) -> Any:
    if name in registry:
        return registry[name]()
    if name in _CLASSES:
        return _CLASSES[name]
    hint = did_you_mean(name, (*registry, *_CLASSES), f"it has {', '.join(registry)}")
    raise AttributeError(f"module 'boostlist.objectives' has no attribute {name!r}; {hint}")


def __dir__() -> list[str]:
    return __all__
