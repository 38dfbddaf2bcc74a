"""The report: one page that needs nothing else, and beside it the figures behind it as CSV, Parquet and Markdown."""

from __future__ import annotations

import base64
import hashlib
import importlib.metadata
import importlib.util
import io
import json
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from statistics import NormalDist

import numpy as np

from boostlist._typing import FloatArray
from boostlist._version import __version__
from boostlist.evaluation import tables
from boostlist.evaluation.grids import as_text as setting_text
from boostlist.evaluation.palette import dark, light
from boostlist.evaluation.summary import DECIMALS, Bin, Entry, Summary
from boostlist.evaluation.training import mean
from boostlist.files import write

_LIBRARIES = ("jinja2", "matplotlib", "pyarrow")
_PACKAGES = ("numpy", "scipy", "numba", "scikit-learn", "lightgbm", "xgboost", "xgboost-cpu", "matplotlib")
_TEMPLATES = Path(__file__).parent / "templates"
_FULL_COLOUR = 0.05

BEYOND_CHANCE = NormalDist().inv_cdf(0.975)
"""Standard errors that a mean of independent values is within with probability 95 %."""


def require_libraries() -> None:
    """Raise an ImportError if a library that the report needs is not installed."""
    missing = [name for name in _LIBRARIES if importlib.util.find_spec(name) is None]
    if missing:
        raise ImportError(f'the report needs {" and ".join(missing)}: pip install "boostlist[report]"')


def write_report(summary: Summary, folder: Path, *, command: str = "", jobs: int = 1) -> Path:
    """Write report.html, results.csv, results.md, per_query.parquet and scores.parquet into a folder.

    Parameters
    ----------
    summary
        What to report, with at least one entry.
    folder
        Where to write.
    command
        The command line that made it, for the page's section on how to repeat it.
    jobs
        Number of processes that trained at once, which the measured times depend on.

    Returns
    -------
    Path
        The page.
    """
    frames = {"per_query": tables.query_frame(summary), "scores": tables.score_frame(summary)}
    for name, frame in frames.items():
        parquet = io.BytesIO()
        frame.to_parquet(parquet, index=False)
        write(folder / f"{name}.parquet", parquet.getvalue())
    write(folder / "results.csv", tables.result_frame(summary).to_csv(index=False).encode())
    write(folder / "results.md", tables.as_markdown(summary).encode())
    page = folder / "report.html"
    write(page, render(summary, command, jobs).encode())
    return page


def render(summary: Summary, command: str, jobs: int) -> str:
    """Return the page."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup

    from boostlist.evaluation.figures import differences_note, learning_note, places

    sides, pair = default_sides(summary), default_pair(summary)
    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"setting": setting_text, "duration": tables.duration}
    script = (_TEMPLATES / "report.js").read_text(encoding="utf-8")
    models = len(summary.plan.models)
    return environment.get_template("report.html").render(
        summary=summary,
        plan=summary.plan,
        place=places(summary),
        colours=(light(models).variables(), dark(models).variables()),
        svg={name: Markup(svg) for name, svg in _pictures(summary, sides, pair).items()},
        notes={"differences": differences_note(summary), "learning": learning_note(summary)},
        data=Markup(_embedded(summary, pair)),
        script=Markup(script),
        script_digest=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        tables=tables,
        verdict=verdict(summary),
        sides=sides,
        breakdowns=breakdowns(summary),
        trouble=tables.trouble(summary),
        standing={entry.name: tables.standing(summary, entry) for entry in summary.entries},
        beyond_chance=BEYOND_CHANCE,
        versions=versions(),
        command=command,
        jobs=jobs,
        made=datetime.now().astimezone().strftime("%Y-%m-%d %H:%M"),
    )


def _pictures(summary: Summary, sides: Sequence[Entry], pair: tuple[Entry, Entry] | None) -> dict[str, str]:
    """Return the figures as SVG: each as wide as half a page and, with text as large, as a phone."""
    from boostlist.evaluation import figures

    drawings = {
        "bars": figures.bars(summary),
        "differences": figures.differences(summary),
        "ndcg": figures.ndcg(summary),
        "ndcg_differences": figures.ndcg_differences(summary),
        "learning": figures.learning(summary),
        "convergence": figures.convergence(summary),
        "families": figures.families(summary),
        "fold_values": figures.fold_values(summary, sides) if len(sides) == 2 else None,
    }
    models = len(summary.plan.models)
    found = {
        name: drawing.svg(models) + drawing.narrow_svg(models)
        for name, drawing in drawings.items()
        if drawing is not None
    }
    # For readers without the script, which draws any two.
    return found | ({"win_loss": figures.win_loss(summary, *pair).svg(models)} if pair else {})


def default_sides(summary: Summary) -> list[Entry]:
    """Return the best tree and the best kernel model, or else linear one; fewer than two if there is no such pair."""
    found = (_best(summary, "tree"), _best(summary, "kernel") or _best(summary, "linear"))
    return [entry for entry in found if entry is not None]


def default_pair(summary: Summary) -> tuple[Entry, Entry] | None:
    """Return the two models that the win/loss plot shows first: the best, and the baseline or else the second best."""
    entries = summary.complete()
    if len(entries) < 2:
        return None
    base = summary.baseline
    return entries[0], base if base in entries[1:] and base is not None else entries[1]


@dataclass(frozen=True)
class Verdict:
    """The comparison in one sentence: ``best`` with its value, and how it stands to the baseline."""

    best: str
    value: float
    text: str


def verdict(summary: Summary) -> Verdict:
    """Put the comparison into one sentence."""
    best, base = summary.entries[0], summary.plan.baseline.name
    value = best.mean(summary.plan.select)
    if best.against is None or best.p is None:
        better = [entry for entry in summary.entries if entry.p is not None and entry.p < 0.05]
        text = "the baseline itself" if best.name == base else "there is no baseline to compare it with"
        if best.name == base and better:
            text += f"; {len(better)} of the others are significantly below it"
        return Verdict(best.name, value, text)
    above = f"{abs(best.against.difference):.4f} {'above' if best.against.difference > 0 else 'below'} {base}"
    sure = "a significant difference" if best.p < 0.05 else "not a significant difference"
    number = "p < 0.001" if best.p < 0.001 else f"p = {best.p:.3f}"
    return Verdict(best.name, value, f"{above}: {sure} ({number} after Holm's correction)")


@dataclass(frozen=True)
class Cell:
    """A cell of a breakdown: text, share of full colour from -1 to 1, and whether the difference is beyond chance."""

    text: str
    colour: float
    sure: bool


@dataclass(frozen=True)
class Breakdown:
    """Differences to the baseline, or plain means without one, by bins of queries."""

    title: str
    bins: list[Bin]
    base: list[str]
    rows: list[tuple[Entry, list[Cell]]]


def breakdowns(summary: Summary) -> list[Breakdown]:
    """Return where models win: by list length, share of relevant documents, and highest grade."""
    base = summary.baseline
    if base is None or base not in summary.complete():
        return []
    cuts = {
        "By list length": summary.by_length(),
        "By share of relevant documents": summary.by_relevant(),
        "By highest grade": summary.by_grade(),
    }
    return [_breakdown(title, bins, summary, base) for title, bins in cuts.items() if len(bins) > 1]


def _breakdown(title: str, bins: list[Bin], summary: Summary, base: Entry) -> Breakdown:
    reference = base.pooled(summary.plan.select)
    rows = []
    for entry in summary.complete():
        if entry is not base:
            difference = entry.pooled(summary.plan.select) - reference
            rows.append((entry, [_cell(difference[each.rows]) for each in bins]))
    return Breakdown(title, bins, [_shown(mean(reference[each.rows]), "{:.3f}") for each in bins], rows)


def _cell(difference: FloatArray) -> Cell:
    counted = difference[~np.isnan(difference)]
    if not len(counted):
        return Cell("–", 0.0, False)
    average = float(counted.mean())
    error = float(counted.std(ddof=1) / np.sqrt(len(counted))) if len(counted) > 1 else float("inf")
    return Cell(
        _signed(average),
        float(np.clip(average / _FULL_COLOUR, -1, 1)),
        abs(average) > BEYOND_CHANCE * error,
    )


def _shown(value: float, form: str) -> str:
    return "–" if np.isnan(value) else form.format(value)


def _signed(value: float) -> str:
    return "0.000" if abs(value) < 0.0005 else f"{value:+.3f}".replace("-", "−")


def _best(summary: Summary, kind: str) -> Entry | None:
    return next((entry for entry in summary.complete() if entry.model.kind == kind), None)


def _embedded(summary: Summary, pair: tuple[Entry, Entry] | None) -> str:
    """Return the values that the page's win/loss plot needs, safe inside a script element."""
    entries = summary.complete()
    content = {
        "metrics": list(summary.plan.metrics),
        "models": [entry.name for entry in entries],
        "first": [entry.name for entry in pair or ()],
        "qid": summary.fact("qid").tolist(),
        "documents": summary.fact("length").tolist(),
        "values": {metric: [_rounded(entry.pooled(metric)) for entry in entries] for metric in summary.plan.metrics},
    }
    return json.dumps(content, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")


def _rounded(values: FloatArray) -> list[float | None]:
    """Return values as the page has them; null for queries that do not count."""
    return [None if np.isnan(value) else round(value, DECIMALS) for value in values.tolist()]


def versions() -> dict[str, str]:
    """Return the versions of what the figures depend on."""
    found = {"boostlist": __version__, "Python": platform.python_version()}
    for name in _PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    found["system"] = f"{platform.system()} {platform.machine()}"
    return found
