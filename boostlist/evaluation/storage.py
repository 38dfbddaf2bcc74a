"""The output folder: an experiment's identity, and one small file for each model, fold and setting.

Every file is written under another name and then renamed, so that a reader, or a run that goes on after a power cut,
sees it whole or not at all. A result is a NumPy archive: arrays, and the rest as JSON; reading one executes nothing.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import shutil
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from boostlist._typing import FloatArray
from boostlist.evaluation.folds import FoldFacts

_IDENTITY = "experiment.json"
_RESULTS, _FOLDS = "results", "folds"
_FORMAT = 2
REPORT_FILES = ("report.html", "results.csv", "per_query.parquet", "results.md")


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
        Time to train, and to score the test part, on one thread, compilation not counted.
    documents
        Number of documents of the test part.
    history
        How training went: ``{"rounds": [...]}``, the selection metric on the validation part after each tree, or
        ``{"loss": [...], "gradient_norm": [...], "seconds": [...]}`` after each step of a solver; may be empty.
    chosen_rounds
        Number of trees kept; None for other models.
    warnings
        What the training warned of.
    largest
        The largest label of the whole data when it was measured, the top of the scale of ERR.
    """

    model: str
    fold: int
    setting: Mapping[str, Any]
    vali: Mapping[str, float]
    test: Mapping[str, FloatArray]
    train_seconds: float
    rank_seconds: float
    documents: int
    history: Mapping[str, list[float]] = field(default_factory=dict)
    chosen_rounds: int | None = None
    warnings: Sequence[str] = ()
    largest: float = 0.0


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
        self.identity = {"format": _FORMAT, **identity}
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
        if entries and not fresh:
            self._check_identity(marker)
        if fresh:
            for name in (_RESULTS, _FOLDS):
                shutil.rmtree(self.folder / name, ignore_errors=True)
            for name in REPORT_FILES:
                (self.folder / name).unlink(missing_ok=True)
        for name in (_RESULTS, _FOLDS):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        write_atomically(marker, json.dumps(self.identity, indent=2).encode())

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
        key = f"{model} {fold} {setting_key(setting)}"
        name = re.sub(r"[^\w.=-]+", "_", model)[:60]
        return self.folder / _RESULTS / f"{name}.fold{fold}.{hashlib.sha256(key.encode()).hexdigest()[:10]}.npz"

    def save(self, result: Result) -> None:
        """Write a result."""
        about = {
            "model": result.model,
            "fold": result.fold,
            "setting": dict(result.setting),
            "vali": dict(result.vali),
            "train_seconds": result.train_seconds,
            "rank_seconds": result.rank_seconds,
            "documents": result.documents,
            "history": dict(result.history),
            "chosen_rounds": result.chosen_rounds,
            "warnings": result.warnings,
            "largest": result.largest,
        }
        _save_archive(self.path(result.model, result.fold, result.setting), about, result.test)

    def load(self, model: str, fold: int, setting: Mapping[str, Any]) -> Result | None:
        """Return a stored result; None if there is none, or it is damaged."""
        found = _load_archive(self.path(model, fold, setting))
        if found is None:
            return None
        about, arrays = found
        try:
            return Result(**about, test=arrays)
        except TypeError:
            return None

    def save_facts(self, facts: FoldFacts) -> None:
        """Write the facts of a fold."""
        arrays = {"qid": facts.qid, "length": facts.length, "relevant": facts.relevant, "best": facts.best}
        _save_archive(self._facts_path(facts.fold), {"fold": facts.fold, "parts": facts.parts}, arrays)

    def load_facts(self, fold: int) -> FoldFacts | None:
        """Return the facts of a fold, None if they are not known yet."""
        found = _load_archive(self._facts_path(fold))
        return None if found is None else FoldFacts(**found[0], **found[1])

    def _facts_path(self, fold: int) -> Path:
        return self.folder / _FOLDS / f"fold{fold}.npz"


def setting_key(setting: Mapping[str, Any]) -> str:
    """Return a text that is the same for equal settings."""
    return json.dumps(dict(setting), sort_keys=True)


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file so that it is there whole or not at all, also after a crash or on a full disk."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _save_archive(path: Path, about: Mapping[str, Any], arrays: Mapping[str, Any]) -> None:
    buffer = io.BytesIO()
    # Arrays are numbered: metric names such as ndcg@10 are no good names for members on every system.
    names = list(arrays)
    text = np.frombuffer(json.dumps({"about": about, "names": names}).encode(), np.uint8)
    np.savez_compressed(buffer, about=text, **{f"a{i}": arrays[name] for i, name in enumerate(names)})
    write_atomically(path, buffer.getvalue())


def _load_archive(path: Path) -> tuple[dict[str, Any], dict[str, Any]] | None:
    try:
        with np.load(path, allow_pickle=False) as archive:
            head = json.loads(archive["about"].tobytes())
            return head["about"], {name: archive[f"a{i}"] for i, name in enumerate(head["names"])}
    except (OSError, ValueError, KeyError, zipfile.BadZipFile, EOFError):
        return None
