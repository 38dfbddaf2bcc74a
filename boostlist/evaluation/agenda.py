"""What an experiment has left to train, in order, and what of it is stored already."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable
from dataclasses import replace

from boostlist.evaluation.contenders import Contender
from boostlist.evaluation.grids import label
from boostlist.evaluation.plan import Plan
from boostlist.evaluation.search import Study
from boostlist.evaluation.storage import Result
from boostlist.evaluation.training import Failure, Task


class Agenda:
    """Tasks in the order to train them: fold by fold, so that what is there after an interruption compares all models.

    Of a grid, and of settings drawn at random, all are known at once; of a study one, and the next when it has ended.

    Parameters
    ----------
    plan
        What to do.
    largest
        The largest label of all folds.
    look_up
        Returns the result of a task from an earlier run; None if there is none.

    Attributes
    ----------
    expected
        Number of trainings of each model, by name.
    waiting
        Tasks that may begin, the next one first.
    """

    def __init__(self, plan: Plan, largest: float, look_up: Callable[[Task], Result | None]) -> None:
        self._plan, self._largest, self._look_up = plan, largest, look_up
        self._origins = {model.name: model.origin for model in plan.models}
        self._studies: dict[tuple[str, int], Study] = {}
        folds = plan.source.numbers
        self.expected = Counter({model.name: len(folds) * len(plan.settings(model)) for model in plan.models})
        self.waiting: deque[Task] = deque()
        if not plan.adaptive:
            self.waiting += [task for task in map(self._complete, plan.tasks()) if self._look_up(task) is None]
            return
        for fold in folds:
            for model in plan.models:
                self._studies[model.name, fold] = plan.study(model)
                self.waiting += self._asked(model, fold)

    def ended(self, task: Task, came: Result | Failure) -> None:
        """Note what came of a task; what it makes known is next."""
        study = self._studies.get((task.model.name, task.fold))
        if study is not None:
            study.tell(task.setting, came.vali[self._plan.select] if isinstance(came, Result) else None)
            self.waiting.extendleft(self._asked(task.model, task.fold))

    def _asked(self, model: Contender, fold: int) -> list[Task]:
        """Return the next task of a study, none at its end; what is stored it is told at once."""
        study = self._studies[model.name, fold]
        while (setting := study.ask()) is not None:
            task = self._complete(Task(model, fold, setting, label(setting, self._plan.settings(model))))
            result = self._look_up(task)
            if result is None:
                return [task]
            study.tell(setting, result.vali[self._plan.select])
        return []

    def _complete(self, task: Task) -> Task:
        return replace(task, largest=self._largest, origin=self._origins[task.model.name])
