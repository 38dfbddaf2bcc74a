"""The figures of a comparison: each function returns a drawing, or None where there is nothing to show."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from boostlist._typing import AnyArray, FloatArray
from boostlist.evaluation.drawing import Drawing, dashes, is_narrow
from boostlist.evaluation.palette import Palette
from boostlist.evaluation.significance import PairedComparison
from boostlist.evaluation.storage import Result
from boostlist.evaluation.summary import Entry, Summary
from boostlist.evaluation.training import CURVE

_ROW = 19.0
_CURVE_HEIGHT = 240.0
_LONGEST_NAME = 28


def places(summary: Summary) -> dict[str, int]:
    """Return the position of each model in the panel; it has its colour by it wherever it appears."""
    return {model.name: i for i, model in enumerate(summary.plan.models)}


def bars(summary: Summary) -> Drawing:
    """Draw the pooled selection metric of each model with its confidence interval."""
    place, select = places(summary), summary.plan.select
    entries = summary.entries[::-1]

    def draw(axes: Axes, palette: Palette) -> None:
        values = np.array([entry.mean(select) for entry in entries])
        low, high = np.array([entry.interval for entry in entries]).T
        rows = np.arange(len(entries))
        thickness = 0.34 if is_narrow(axes) else 0.62
        axes.barh(rows, values, thickness, color=[palette.models[place[entry.name]] for entry in entries], alpha=0.85)
        axes.hlines(rows, low, high, color=palette.ink, linewidth=1.2)
        for row, value, end in zip(rows, values, high, strict=True):
            axes.annotate(f"{value:.3f}", (end, row), (4, 0), textcoords="offset points", va="center", fontsize=9)
        _name_rows(axes, rows.tolist(), entries, palette)
        axes.set_xlim(min(0.0, float(low.min()) * 1.14), float(high.max()) * 1.18)
        _values_across(axes, f"{select}, with 95 % interval over test queries")

    return Drawing(
        "bars", f"{select} of each model with confidence interval", 48 + _ROW * len(entries), draw, rows=True
    )


def differences(summary: Summary) -> Drawing | None:
    """Draw the difference of each model to the baseline with its confidence interval; far ones as a number alone."""
    place, select = places(summary), summary.plan.select
    compared = _compared(summary)
    if not compared:
        return None
    reach = _reach(compared)

    def draw(axes: Axes, palette: Palette) -> None:
        axes.axvline(0, color=palette.muted, linewidth=1)
        for row, (entry, against) in enumerate(compared):
            colour = palette.models[place[entry.name]]
            if abs(against.difference) > reach:
                side = np.sign(against.difference)
                axes.annotate(
                    f"{'◂ ' if side < 0 else ''}{against.difference:+z.3f}{' ▸' if side > 0 else ''}",
                    (side * reach, row),
                    va="center",
                    ha="left" if side < 0 else "right",
                    color=colour,
                    fontsize=9,
                )
                continue
            axes.hlines(row, against.low, against.high, color=colour, linewidth=6, alpha=0.35)
            axes.plot([against.difference], [row], "o", color=colour, markersize=6)
        _name_rows(axes, range(len(compared)), [entry for entry, _ in compared], palette)
        axes.set_xlim(-reach, reach)
        axes.set_ylim(-0.7, len(compared) - 0.3)
        _values_across(axes, f"difference in {select}, with 95 % interval")

    return Drawing("differences", f"difference of each model in {select}", 48 + _ROW * len(compared), draw, rows=True)


def differences_note(summary: Summary) -> str:
    """Say what the differences to the baseline are, and how those too far away for the picture are shown."""
    compared = _compared(summary)
    notes = ["paired by query"]
    if compared and any(abs(against.difference) > _reach(compared) for _, against in compared):
        notes.append("◂ ▸ further away")
    if len(compared) > 1:
        notes.append(
            "intervals, unlike p, are not corrected for the number of models: one may be clear of 0 though p is not "
            "below 0.05"
        )
    return "; ".join(notes)


def _compared(summary: Summary) -> list[tuple[Entry, PairedComparison]]:
    return [(entry, entry.against) for entry in summary.entries[::-1] if entry.against is not None]


def _reach(compared: Sequence[tuple[Entry, PairedComparison]]) -> float:
    return _focus([max(abs(against.low), abs(against.high)) for _, against in compared])


def ndcg(summary: Summary) -> Drawing:
    """Draw NDCG@1 to NDCG@10 of each model."""
    place = places(summary)

    def draw(axes: Axes, palette: Palette) -> None:
        ranks = np.arange(1, len(CURVE) + 1)
        for entry in summary.entries[::-1]:
            _line(axes, palette, place[entry.name], ranks, [entry.mean(name) for name in CURVE], markersize=3)
        _by_rank(axes, ranks, "NDCG@k")

    return Drawing("ndcg", "NDCG at k of each model for k from 1 to 10", _CURVE_HEIGHT, draw)


def ndcg_differences(summary: Summary) -> Drawing | None:
    """Draw NDCG@1 to NDCG@10 of each model minus that of the baseline, models far away left out of the picture."""
    base = summary.baseline
    others = [entry for entry in summary.complete() if entry is not base]
    if base is None or base not in summary.complete() or not others:
        return None
    place = places(summary)
    ranks = np.arange(1, len(CURVE) + 1)
    level = np.array([base.mean(name) for name in CURVE])
    curves = {entry.name: np.array([entry.mean(name) for name in CURVE]) - level for entry in others}
    reach = _focus([float(np.abs(curve).max()) for curve in curves.values()])

    def draw(axes: Axes, palette: Palette) -> None:
        axes.axhline(0, color=palette.muted, linewidth=1)
        for name, curve in curves.items():
            _line(axes, palette, place[name], ranks, curve, markersize=3)
        axes.set_ylim(-reach, reach)
        _by_rank(axes, ranks, f"NDCG@k − {short(base.name)}")

    return Drawing("ndcg-differences", "NDCG at k of each model minus that of the baseline", _CURVE_HEIGHT, draw)


def learning(summary: Summary) -> Drawing | None:
    """Draw the selection metric on the validation part for each number of trees, mean over folds.

    A fold's curve ends at the trees that it keeps, and counts with its value there from then on.
    """
    place, select = places(summary), summary.plan.select
    entries = [entry for entry in summary.entries if _has_curve(entry)]
    if not entries:
        return None
    curves = {entry.name: mean_curve(entry.chosen) for entry in entries}

    def draw(axes: Axes, palette: Palette) -> None:
        for name, curve in reversed(curves.items()):
            _line(axes, palette, place[name], np.arange(1, len(curve) + 1), curve, markersize=0)
            axes.plot(
                len(curve), curve[-1], "o", color=palette.models[place[name]], markersize=4, gid=f"model{place[name]}"
            )
        # The first trees are so far below that they would flatten what the models differ in.
        low = min(float(np.quantile(curve, 0.1)) for curve in curves.values())
        high = max(float(curve.max()) for curve in curves.values())
        if high > low:
            axes.set_ylim(low - 0.1 * (high - low), high + 0.05 * (high - low))
        axes.set_xlim(0, None)
        _by_step(axes, "trees", f"{select} on validation")

    return Drawing("learning", f"validation {select} of the tree models by number of trees", _CURVE_HEIGHT, draw)


def learning_note(summary: Summary) -> str:
    """Say what the learning curves are, and which models of trees have none."""
    without = [entry.name for entry in summary.entries if entry.model.kind == "ensemble" and not _has_curve(entry)]
    note = (
        f"validation {summary.plan.select} by number of trees, mean over folds; a fold that has stopped stays at the "
        "trees it keeps"
    )
    if not without:
        return note
    verb = "has" if len(without) == 1 else "have"
    return (
        f"{note}; {' and '.join(without)} {verb} no curve, since members stop each for itself and are added at the end"
    )


def _has_curve(entry: Entry) -> bool:
    return all(result.history.get("rounds") for result in entry.chosen)


def mean_curve(results: Sequence[Result]) -> FloatArray:
    """Return the mean over folds by number of trees; a fold stays at the value of the trees it keeps."""
    kept = []
    for result in results:
        curve = np.asarray(result.history["rounds"], np.float64)
        kept.append(curve[: result.chosen_rounds or len(curve)])
    longest = max(map(len, kept))
    average: FloatArray = np.mean(
        [np.append(curve, np.full(longest - len(curve), curve[-1])) for curve in kept], axis=0
    )
    return average


def convergence(summary: Summary) -> Drawing | None:
    """Draw the gradient norm after each iteration of the models that are trained by a solver."""
    place = places(summary)
    entries = [entry for entry in summary.entries if any(r.history.get("gradient_norm") for r in entry.chosen)]
    if not entries:
        return None

    def draw(axes: Axes, palette: Palette) -> None:
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:.0e}".replace("e-0", "e-").replace("e+0", "e"))
        for entry in entries:
            for i, result in enumerate(entry.chosen):
                norms = np.maximum(result.history.get("gradient_norm", []), 1e-16)
                first = {"markersize": 3.5} if not i else {"markersize": 0, "linewidth": 0.8, "alpha": 0.45}
                _line(axes, palette, place[entry.name], np.arange(len(norms)), norms, **first)
        _by_step(axes, "iteration; the thick line is the first fold", "norm of the gradient")

    return Drawing("convergence", "gradient norm of the Newton models after each iteration", _CURVE_HEIGHT, draw)


def win_loss(summary: Summary, a: Entry, b: Entry) -> Drawing:
    """Draw the sorted differences of two models by query."""
    select = summary.plan.select
    difference = a.pooled(select) - b.pooled(select)
    difference = np.sort(difference[~np.isnan(difference)])[::-1]

    def draw(axes: Axes, palette: Palette) -> None:
        x = np.arange(len(difference))
        for colour, where in ((palette.good, difference >= 0), (palette.bad, difference <= 0)):
            axes.fill_between(x, difference, 0, where=where.tolist(), color=colour, step="mid", linewidth=0)
        axes.axhline(0, color=palette.muted, linewidth=0.8)
        axes.set_xlabel("test queries, sorted")
        axes.set_ylabel(f"{select}: {short(a.name)} − {short(b.name)}", fontsize=8.5)
        axes.grid(axis="y")

    title = f"difference in {select} between {a.name} and {b.name} by query"
    return Drawing("winloss", title, 220, draw, width=740)


def families(summary: Summary) -> Drawing | None:
    """Draw, for each loss that more than one family was trained on, the values of the families side by side."""
    place, select = places(summary), summary.plan.select
    by_loss: dict[str, list[Entry]] = {}
    for entry in summary.entries:
        if entry.model.loss is not None and not entry.model.is_reference:
            by_loss.setdefault(entry.model.loss, []).append(entry)
    shared = [entries for entries in by_loss.values() if len({entry.model.family for entry in entries}) > 1]
    if not shared:
        return None
    rows: dict[float, Entry] = {}
    row = 0.0
    for entries in shared:
        for entry in entries:
            rows[row] = entry
            row -= 1
        row -= 0.7

    def draw(axes: Axes, palette: Palette) -> None:
        for at, entry in rows.items():
            colour = palette.models[place[entry.name]]
            axes.hlines(at, *entry.interval, color=colour, linewidth=6, alpha=0.35)
            axes.plot([entry.mean(select)], [at], "o", color=colour, markersize=6)
        _name_rows(axes, list(rows), list(rows.values()), palette)
        axes.set_ylim(min(rows) - 0.6, 0.6)
        _values_across(axes, f"{select}, with 95 % interval")

    height = 52 + _ROW * (len(rows) + 0.7 * len(shared))
    return Drawing("same-loss", "the same loss in different families", height, draw, rows=True)


def fold_values(summary: Summary, entries: Sequence[Entry]) -> Drawing:
    """Draw the selection metric of some models in each fold."""
    place, select, folds = places(summary), summary.plan.select, summary.folds

    def draw(axes: Axes, palette: Palette) -> None:
        values = {entry.name: [entry.fold_mean(select, fold) for fold in folds] for entry in entries}
        for fold, *both in zip(folds, *values.values(), strict=True):
            axes.vlines(fold, min(both), max(both), color=palette.grid, linewidth=3)
        for name, each in values.items():
            axes.plot(
                folds,
                each,
                "o",
                markersize=8,
                color=palette.models[place[name]],
                markeredgecolor=palette.surface,
                label=short(name),
                gid=f"model{place[name]}",
            )
        axes.set_xlim(min(folds) - 0.5, max(folds) + 0.5)
        _by_step(axes, "fold", f"{select} on test")
        axes.legend(
            frameon=False, loc="lower left", bbox_to_anchor=(0, 1), ncols=1, labelcolor=palette.ink, borderpad=0
        )

    return Drawing("folds", f"{select} in each fold", 215, draw)


def add_legend(axes: Axes, summary: Summary) -> None:
    """Name the models that lines on axes belong to; on the page, one legend serves all figures."""
    lines = {line.get_gid(): line for line in axes.get_lines()}
    place = places(summary)
    shown = [entry.name for entry in summary.entries if f"model{place[entry.name]}" in lines]
    handles = [lines[f"model{place[name]}"] for name in shown]
    axes.legend(handles, [short(name) for name in shown], frameon=False, fontsize=8)


def short(name: str) -> str:
    """Return a name that fits beside a figure: of a long one the middle is left out."""
    half = _LONGEST_NAME // 2
    return name if len(name) <= _LONGEST_NAME else f"{name[:half]}…{name[-half + 1 :]}"


def _focus(extents: Sequence[float]) -> float:
    """Return how far a scale must reach: models many times further away than the others would flatten these."""
    near = [extent for extent in extents if extent <= 4 * float(np.median(extents))]
    return 1.1 * max([*near, 1e-6])


def _line(axes: Axes, palette: Palette, index: int, x: AnyArray, y: Any, **style: Any) -> None:
    axes.plot(x, y, dashes(index), marker="o", color=palette.models[index], gid=f"model{index}", **style)


def _by_rank(axes: Axes, ranks: AnyArray, what: str) -> None:
    axes.set_xticks(ranks)
    axes.set_xlabel("k")
    axes.set_ylabel(what)
    axes.grid(axis="y")


def _by_step(axes: Axes, step: str, what: str) -> None:
    axes.set_xlabel(step)
    axes.set_ylabel(what)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.grid(axis="y")


def _name_rows(axes: Axes, rows: Sequence[float], entries: Sequence[Entry], palette: Palette) -> None:
    axes.set_yticks(rows, [short(entry.name) for entry in entries])
    axes.tick_params(axis="y", labelcolor=palette.ink)
    axes.spines["left"].set_visible(False)
    axes.grid(axis="x")
    if is_narrow(axes):
        for row, label in zip(rows, axes.get_yticklabels(), strict=True):
            place: Any = {"xycoords": ("axes fraction", "data"), "textcoords": "offset points", "fontsize": 9}
            axes.annotate(label.get_text(), (0, row), (0, 8), color=palette.ink, **place)
        axes.set_yticks([])
        axes.margins(y=0.04)


def _values_across(axes: Axes, what: str) -> None:
    axes.xaxis.set_major_locator(MaxNLocator(4 if is_narrow(axes) else 5))
    axes.set_xlabel(textwrap.fill(what, 36) if is_narrow(axes) else what)
