"""The output folder: an experiment's identity, and one small file for each model, fold and setting.

Every file is there whole or not at all, also for a run that goes on after a power cut. A result is an archive
(`boostlist.files`); one that is damaged counts as not there, and is computed again.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from boostlist._typing import FloatArray
from boostlist.evaluation.folds import FoldFacts
from boostlist.files import Archive, FileFormatError, Kind, read_archive, write, write_archive

_IDENTITY = "experiment.json"
_RESULTS, _FOLDS, _MODELS = "results", "folds", "models"
# To be raised whenever `Result` or `FoldFacts` change.
_RESULT, _FACTS = Kind("result", 4), Kind("fold", 3)
_SCORES = "scores"
REPORT_FILES = ("report.html", "results.csv", "per_query.parquet", "scores.parquet", "results.md")


@dataclass(frozen=True, eq=False)
class Result:
    """What one training gave.

    Attributes
    ----------
    model, fold, setting
        What was trained, on what.
    vali
        Mean of each metric on the validation part.
    test
        Value of each metric for each query of the test part.
    train_seconds, rank_seconds
        CPU time to train, and to score the test part, on one thread, compilation not counted.
    documents
        Number of documents of the test part.
    scores
        Score of each document of the test part.
    history
        How training went: ``{"rounds": [...]}``, the selection metric on the validation part after each tree, or
        ``{"loss": [...], "gradient_norm": [...], "seconds": [...]}`` after each step of a solver; may be empty.
    chosen_rounds
        Number of trees kept; None for other models.
    objective
        What was trained on, as text: of trees the loss with the squared-error term that `TreeRanker` adds.
    seconds
        Time by the clock to train and to score, without reading the data and without compilation.
    warnings
        What the training warned of.
    largest
        The largest label of the whole data when it was measured, the top of the scale of ERR.
    origin
        What tells the model from another of its name, see `boostlist.evaluation.contenders.Contender`.
    """

    model: str
    fold: int
    setting: Mapping[str, Any]
    vali: Mapping[str, float]
    test: Mapping[str, FloatArray]
    train_seconds: float
    rank_seconds: float
    documents: int
    scores: FloatArray
    history: Mapping[str, list[float]] = field(default_factory=dict)
    chosen_rounds: int | None = None
    objective: str = ""
    seconds: float = 0.0
    warnings: Sequence[str] = ()
    largest: float = 0.0
    origin: str = ""


class Store:
    """The output folder of an experiment.

    Parameters
    ----------
    folder
        Made when there is none.
    identity
        What makes results comparable: data, seed, selection metric. A folder with another identity is refused.
    fresh
        Whether to delete what the folder has from earlier runs, whatever their identity.

    Raises
    ------
    ValueError
        If the folder belongs to another experiment, or holds files that are none of ours.
    """

    def __init__(self, folder: str | Path, identity: Mapping[str, Any], fresh: bool = False) -> None:
        self.folder = Path(folder)
        self.identity = {"format": _RESULT.version, **identity}
        self._claim(fresh)

    def _claim(self, fresh: bool) -> None:
        if self.folder.exists() and not self.folder.is_dir():
            raise ValueError(f"the output {self.folder} is a file; choose a folder with --out")
        entries = {path.name for path in self.folder.iterdir()} if self.folder.exists() else set()
        marker = self.folder / _IDENTITY
        if entries and not marker.is_file():
            raise ValueError(
                f"the output folder {self.folder} holds files of something else, such as {min(entries)}; "
                "choose another with --out"
            )
        if not fresh and any(next(self.folder.glob(f"{name}/*.npz"), None) for name in (_RESULTS, _FOLDS)):
            self._check_identity(marker)
        if fresh:
            for name in (_RESULTS, _FOLDS, _MODELS):
                shutil.rmtree(self.folder / name, ignore_errors=True)
            for name in REPORT_FILES:
                (self.folder / name).unlink(missing_ok=True)
        for name in (_RESULTS, _FOLDS):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        write(marker, json.dumps(self.identity, indent=2).encode())

    def _check_identity(self, marker: Path) -> None:
        try:
            found = json.loads(marker.read_bytes())
        except ValueError:
            found = {}
        names = [key for key, value in self.identity.items() if found.get(key) != value]
        if names:
            key = names[0]
            raise ValueError(
                f"the output folder {self.folder} belongs to another experiment: its {key} is {found.get(key)!r}, here "
                f"it is {self.identity[key]!r}. Choose another folder with --out, or delete its results with --fresh"
            )

    def path(self, model: str, fold: int, setting: Mapping[str, Any]) -> Path:
        """Return where the result of a model, fold and setting is kept."""
        return self.folder / _RESULTS / f"{file_stem(model, fold, setting)}.npz"

    def save(self, result: Result) -> None:
        """Write a result."""
        about = {each.name: getattr(result, each.name) for each in fields(result)}
        arrays = {**about.pop("test"), _SCORES: about.pop("scores")}
        write_archive(self.path(result.model, result.fold, result.setting), _RESULT, about, arrays)

    def load(self, model: str, fold: int, setting: Mapping[str, Any]) -> Result | None:
        """Return a stored result; None if there is none, or it is damaged."""
        found = _stored(self.path(model, fold, setting), _RESULT)
        if found is None:
            return None
        test = dict(found.arrays)
        return Result(**found.about, scores=test.pop(_SCORES), test=test)

    @property
    def models(self) -> Path:
        """The folder of trained models, made when there is none."""
        folder = self.folder / _MODELS
        folder.mkdir(exist_ok=True)
        return folder

    def keep_models(self, results: Iterable[Result]) -> None:
        """Delete all trained models but those of some results."""
        kept = {file_stem(result.model, result.fold, result.setting) for result in results}
        for path in self.models.iterdir():
            if path.stem not in kept:
                path.unlink()

    def has_model(self, model: str, fold: int, setting: Mapping[str, Any]) -> bool:
        """Whether the trained model of a result is there."""
        return any(path.stem == file_stem(model, fold, setting) for path in self.models.iterdir())

    def save_facts(self, facts: FoldFacts) -> None:
        """Write the facts of a fold."""
        names = ("qid", "length", "relevant", "best", "labels")
        arrays = {name: getattr(facts, name) for name in names}
        write_archive(self._facts_path(facts.fold), _FACTS, {"fold": facts.fold, "parts": facts.parts}, arrays)

    def load_facts(self, fold: int) -> FoldFacts | None:
        """Return the facts of a fold; None if they are not stored, or damaged."""
        found = _stored(self._facts_path(fold), _FACTS)
        return None if found is None else FoldFacts(**found.about, **found.arrays)  # type: ignore[arg-type]

    def _facts_path(self, fold: int) -> Path:
        return self.folder / _FOLDS / f"fold{fold}.npz"


def file_stem(model: str, fold: int, setting: Mapping[str, Any]) -> str:
    """Return the name, without suffix, of files that belong to a model, fold and setting."""
    key = f"{model} {fold} {setting_key(setting)}"
    name = re.sub(r"[^\w.=-]+", "_", model)[:60]
    return f"{name}.fold{fold}.{hashlib.sha256(key.encode()).hexdigest()[:10]}"


def setting_key(setting: Mapping[str, Any]) -> str:
    """Return a text that is the same for equal settings."""
    return json.dumps(dict(setting), sort_keys=True)


def _stored(path: Path, kind: Kind) -> Archive | None:
    try:
        return read_archive(path, kind)
    except (OSError, FileFormatError):
        return None
