"""Models by name: ``family:loss?parameter=value&...``, such as ``lightgbm:cs_listmle`` or ``kernel:listnet?C=10``.

A parameter after the question mark is one of the loss if the loss has one of that name, else one of the estimator. It
is fixed: the grid does not vary it. ``family:all`` stands for every loss in that family, ``all`` for all of them.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sklearn.utils import get_tags

from boostlist.checks import did_you_mean
from boostlist.datasets import RankingData
from boostlist.evaluation.contenders import Contender, Grid, Trained, inputs
from boostlist.metrics import Metric
from boostlist.rankers import FAMILIES, Kind

DEFAULT = (
    "lightgbm:lambdarank",
    "ensemble",
    "lightgbm:pairwise_logistic",
    "lightgbm:cs_listmle",
    "lightgbm:cs_rglist",
    "lightgbm:interval_rank",
    "lightgbm:weighted_pl",
    "lightgbm:wub",
    "linear:cs_rglist",
    "linear:listnet",
    "kernel:cs_listmle",
    "ranksvm",
)
"""The default panel: LightGBM's own LambdaMART, the ensemble, headline losses on trees, and parametric models."""

# What may vary or be fixed besides the parameters of an estimator: how it is trained, and on which features.
STOPPING = ("early_stopping_rounds",)
PARAMETRIC_TRAINING = ("features",)


@dataclass(frozen=True)
class Model:
    """A model of the panel.

    Attributes
    ----------
    family
        Name in `boostlist.rankers.FAMILIES`.
    loss
        Name in the registry of losses, or of the host's own objective; None where the family has no choice.
    options
        Fixed parameters, of the loss and of the estimator.
    """

    family: str
    loss: str | None = None
    options: tuple[tuple[str, Any], ...] = ()

    @property
    def name(self) -> str:
        """Name that `parse` turns into this model again."""
        base = self.family if self.loss is None else f"{self.family}:{self.loss}"
        return base + "".join(
            f"{'&' if i else '?'}{key}={_shown(value)}" for i, (key, value) in enumerate(self.options)
        )

    @property
    def kind(self) -> Kind:
        """Whether it is a tree, linear or kernel model, or an ensemble."""
        return FAMILIES[self.family].kind

    learns = True
    origin = ""

    @property
    def stops(self) -> bool:
        """Whether it is trained with data to stop on."""
        return FAMILIES[self.family].stops

    @property
    def takes_categories(self) -> bool:
        """Whether its features may be categories."""
        family = FAMILIES[self.family]
        return bool(get_tags(family.load()(**family.fixed)).input_tags.categorical)

    @property
    def is_host_own(self) -> bool:
        """Whether the objective is the host's own and not one of boostlist's losses."""
        return self.loss in FAMILIES[self.family].own

    @property
    def is_reference(self) -> bool:
        """Whether it is a baseline by nature: a host's own objective."""
        return self.is_host_own

    @property
    def training_names(self) -> tuple[str, ...]:
        """What `boostlist.evaluation.training` understands besides parameters of the estimator."""
        return STOPPING if self.stops else PARAMETRIC_TRAINING

    def loss_options(self) -> dict[str, Any]:
        """Return the options that are parameters of the loss."""
        return {key: value for key, value in self.options if key in _loss_fields(self)}

    def estimator_options(self) -> dict[str, Any]:
        """Return the options that are not parameters of the loss."""
        return {key: value for key, value in self.options if key not in _loss_fields(self)}

    def make(self, setting: Mapping[str, Any], seed: int) -> Any:
        """Make the unfitted estimator.

        Parameters
        ----------
        setting
            Parameters of the estimator.
        seed
            Its ``random_state``, where it has one.
        """
        from boostlist.losses import registry
        from boostlist.solvers import refusal

        family = FAMILIES[self.family]
        cls = family.load()
        known = inspect.signature(cls).parameters
        parameters: dict[str, Any] = {**family.fixed, **setting}
        if family.loss is not None:
            loss: Any = self.loss if self.is_host_own else registry[str(self.loss)](**self.loss_options())
            parameters[family.loss] = loss
            if "solver" in known and refusal(known["solver"].default, loss):
                parameters.setdefault("solver", "lbfgs")
        if "random_state" in known:
            parameters.setdefault("random_state", seed)
        if "n_jobs" in known:
            parameters.setdefault("n_jobs", 1)
        return cls(**parameters)

    def axes(self, grid: Grid) -> Mapping[str, Any]:
        """Return what a grid tries of the model, or else of its family; options of the model are fixed."""
        fixed = {name: [value] for name, value in self.estimator_options().items()}
        return {**grid.get(self.name, grid[self.family]), **fixed}

    def fit(
        self, setting: Mapping[str, Any], train: RankingData, vali: RankingData, metric: Metric, seed: int
    ) -> Trained:
        """Train with a setting; trees stop early by the metric on the validation part, if the setting says so."""
        parameters = {name: value for name, value in setting.items() if name not in self.training_names}
        estimator = self.make(parameters, seed)
        options: dict[str, Any] = {}
        if self.stops:
            options = {"eval_set": [(inputs(vali), vali.targets, vali.qid)], "eval_metric": metric}
            options["early_stopping_rounds"] = setting.get("early_stopping_rounds")
        estimator.fit(inputs(train), train.targets, qid=train.qid, **options)
        trained_on = getattr(estimator, "objective_", getattr(estimator, str(FAMILIES[self.family].loss), ""))
        return Trained(
            scores=lambda data: estimator.predict(inputs(data)),
            estimator=estimator,
            history=_history(estimator),
            rounds=getattr(estimator, "n_estimators_", None),
            objective=str(getattr(trained_on, "loss", trained_on)),
        )


def _history(estimator: Any) -> dict[str, list[float]]:
    """Return how training went, as `Result.history` has it."""
    evaluated = getattr(estimator, "evals_result_", None)
    if evaluated:
        by_metric = next(iter(evaluated.values()))
        return {"rounds": [float(value) for value in next(iter(by_metric.values()))]}
    convergence = getattr(estimator, "convergence_", None)
    if convergence is None:
        return {}
    names = ("loss", "gradient_norm", "seconds")
    return {name: [float(getattr(each, name)) for each in convergence.iterations] for name in names}


def parse(text: str) -> list[Model]:
    """Return the models that a name stands for: one, or with ``all`` several.

    Raises
    ------
    ValueError
        If there is no such family, loss or parameter; the message has the nearest names.
    """
    if text == "default":
        return panel(DEFAULT)
    if text == "all":
        return [model for name, family in FAMILIES.items() for model in parse(f"{name}:all" if family.loss else name)]
    base, _, options = text.partition("?")
    family, colon, loss = base.partition(":")
    if family not in FAMILIES:
        raise ValueError(_no_family(text, family))
    if FAMILIES[family].loss is None:
        if colon:
            raise ValueError(f"model {text!r}: {family} has no choice of loss; write {family}")
        return [_checked(Model(family), options)]
    losses = _losses(family)
    if loss == "all":
        return [_checked(Model(family, each), options) for each in losses]
    if loss not in losses:
        hint = did_you_mean(loss, losses, "see `boostlist losses`", prefix=f"{family}:")
        if not loss:
            hint = f"write {family}:LOSS, such as {family}:cs_listmle"
        if "+" in loss or "*" in loss:
            hint = (
                'sums of losses have no name; give the estimator in Python, boostlist.compare(data, [{"sum": ranker}])'
            )
        raise ValueError(f"model {text!r}: {family} has no loss {loss!r}; {hint}")
    return [_checked(Model(family, loss), options)]


def panel(names: Iterable[str]) -> list[Model]:
    """Return the models of several names, each once, in the order given."""
    models = list(dict.fromkeys(model for name in names for model in parse(name)))
    if not models:
        raise ValueError("no models given")
    return models


def default_baseline(models: Sequence[Contender]) -> Contender:
    """Return the model that the others are compared with: the first with a host's own objective, else the first."""
    return next((model for model in models if model.is_reference), models[0])


def check_hosts(models: Iterable[Contender]) -> None:
    """Raise an ImportError if a model needs a booster that is not installed."""
    from boostlist.boosters.hosts import host

    own = [model for model in models if isinstance(model, Model)]
    for needed in {FAMILIES[model.family].host for model in own} - {None}:
        host(str(needed))


def parameter_names(model: Model) -> list[str]:
    """Return the parameters that options and grids may set, without the loss itself."""
    family = FAMILIES[model.family]
    known = [
        name
        for name, parameter in inspect.signature(family.load()).parameters.items()
        if parameter.kind is not inspect.Parameter.VAR_KEYWORD and name != family.loss and name not in family.fixed
    ]
    return [*known, *model.training_names]


def check_parameter(model: Model, name: str, where: str) -> None:
    """Raise a ValueError if neither the estimator nor its training has a parameter; trees hand others to the host."""
    family = FAMILIES[model.family]
    if model.kind == "tree" and name not in family.fixed and name != family.loss:
        return
    known = parameter_names(model)
    if name not in known:
        hint = did_you_mean(name, [*known, *_loss_fields(model)], f"parameters are {', '.join(known)}")
        raise ValueError(f"{where}: there is no parameter {name!r}; {hint}")


def check_host_parameters(model: Model, setting: Mapping[str, Any]) -> None:
    """Raise a ValueError if a setting of a tree model has a parameter that its host does not know."""
    from boostlist.boosters.hosts import host

    more = {name: value for name, value in setting.items() if name not in parameter_names(model)}
    if model.kind != "tree" or not more:
        return
    try:
        host(model.family).check_parameters(more, n_features=1)
    except Exception as error:
        # The host's own kinds of errors are about values; these may suit the data, which is not read yet.
        if type(error) is ValueError:
            raise ValueError(f"model {model.name}: {error}") from error


def _checked(model: Model, options: str) -> Model:
    """Return the model with its options read and tried out."""
    from boostlist.losses import registry

    pairs = read_options(model.name, options)
    for key, _ in pairs:
        if key not in _loss_fields(model):
            check_parameter(model, key, f"model {model.name}?{options}")
    found = Model(model.family, model.loss, tuple(pairs))
    if found.loss in registry:
        try:
            registry[str(found.loss)](**found.loss_options())
        except (TypeError, ValueError) as error:
            raise ValueError(f"model {found.name}: {error}") from error
    return found


def read_options(name: str, options: str) -> list[tuple[str, Any]]:
    """Return the parameters after a model's question mark.

    Raises
    ------
    ValueError
        If they are not written name=value, or one is given twice.
    """
    pairs: list[tuple[str, Any]] = []
    for part in filter(None, options.split("&")):
        key, equals, value = part.partition("=")
        if not equals or not key:
            raise ValueError(f"model {name}?{options}: parameters are written name=value, got {part!r}")
        if key in dict(pairs):
            raise ValueError(f"model {name}?{options}: {key} is given twice")
        pairs.append((key, _value(value)))
    return pairs


def _loss_fields(model: Model) -> list[str]:
    from boostlist.losses import registry

    if model.loss not in registry:
        return []
    return [each.name for each in dataclasses.fields(registry[str(model.loss)])]


def _losses(family: str) -> list[str]:
    from boostlist.losses import registry

    trees = FAMILIES[family].kind == "tree"
    # Solvers minimise a function, and need a loss that is one; trees need gradients only.
    return [*FAMILIES[family].own, *(name for name, loss in registry.items() if trees or loss().traits.conservative)]


def _no_family(text: str, family: str) -> str:
    from boostlist.losses import registry

    if family in registry:
        return (
            f"model {text!r} names a loss only; write lightgbm:{text}, xgboost:{text}, linear:{text} or kernel:{text}"
        )
    hint = did_you_mean(family, [*FAMILIES, "all", "default"], f"models begin with {', '.join(FAMILIES)}")
    return f"there is no model {text!r}; {hint}"


def _value(text: str) -> Any:
    words = {"none": None, "true": True, "false": False}
    if text.lower() in words:
        return words[text.lower()]
    for number in (int, float):
        try:
            return number(text)
        except ValueError:
            pass
    return text


def _shown(value: Any) -> str:
    return (
        {None: "none", True: "true", False: "false"}[value] if value is None or isinstance(value, bool) else f"{value}"
    )
