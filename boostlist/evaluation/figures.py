"""The figures of the report, from a summary."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from boostlist._typing import FloatArray
from boostlist.evaluation.summary import Entry, Summary
from boostlist.evaluation.svg import BAD, GOOD, GRID, INK, MUTED, SURFACE, dashes, drawn, series
from boostlist.evaluation.training import CURVE

_WIDTH = 370.0
_ROW = 19.0


def places(summary: Summary) -> dict[str, int]:
    """Return the position of each model in the panel; it has its colour by it wherever it appears."""
    return {model.name: i for i, model in enumerate(summary.plan.models)}


def bars(summary: Summary) -> str:
    """Draw the pooled selection metric of each model with its confidence interval."""
    place, select = places(summary), summary.plan.select
    entries = summary.entries[::-1]

    def draw(figure: Figure) -> None:
        axes = figure.add_subplot()
        values = np.array([entry.mean(select) for entry in entries])
        low, high = np.array([entry.interval for entry in entries]).T
        rows = np.arange(len(entries))
        colours = [series(place[entry.name]) for entry in entries]
        axes.barh(rows, values, 0.62, color=colours, alpha=0.85)
        axes.hlines(rows, low, high, color=INK, linewidth=1.2)
        for row, value, end in zip(rows, values, high, strict=True):
            axes.annotate(f"{value:.3f}", (end, row), (4, 0), textcoords="offset points", va="center", fontsize=9)
        axes.set_yticks(rows, [entry.name for entry in entries])
        axes.tick_params(axis="y", labelcolor=INK)
        axes.set_xlim(0, float(high.max()) * 1.14)
        axes.set_xlabel(f"{select}, with 95 % interval over test queries")
        axes.spines["left"].set_visible(False)
        axes.grid(axis="x")

    return drawn("bars", _WIDTH, 48 + _ROW * len(entries), draw, f"{select} of each model with confidence interval")


def differences(summary: Summary) -> str:
    """Draw the difference of each model to the baseline with its confidence interval; far ones as a number alone."""
    place, select = places(summary), summary.plan.select
    compared = [(entry, entry.against) for entry in summary.entries[::-1] if entry.against is not None]
    reach = _focus([max(abs(against.low), abs(against.high)) for _, against in compared])

    def draw(figure: Figure) -> None:
        axes = figure.add_subplot()
        for row, (entry, against) in enumerate(compared):
            colour = series(place[entry.name])
            if abs(against.difference) > reach:
                side = np.sign(against.difference)
                axes.annotate(
                    f"{'◂ ' if side < 0 else ''}{against.difference:+.3f}{' ▸' if side > 0 else ''}",
                    (side * reach, row),
                    va="center",
                    ha="left" if side < 0 else "right",
                    color=colour,
                    fontsize=9,
                )
                continue
            axes.hlines(row, against.low, against.high, color=colour, linewidth=6, alpha=0.35)
            axes.plot([against.difference], [row], "o", color=colour, markersize=6)
        axes.axvline(0, color=MUTED, linewidth=1)
        axes.set_yticks(range(len(compared)), [entry.name for entry, _ in compared])
        axes.tick_params(axis="y", labelcolor=INK)
        axes.set_xlim(-reach, reach)
        axes.set_ylim(-0.7, len(compared) - 0.3)
        axes.xaxis.set_major_locator(MaxNLocator(5))
        axes.set_xlabel(f"difference in {select}, with 95 % interval")
        axes.spines["left"].set_visible(False)
        axes.grid(axis="x")

    return drawn("differences", _WIDTH, 48 + _ROW * len(compared), draw, f"difference of each model in {select}")


def _focus(extents: Sequence[float]) -> float:
    """Return how far a scale must reach: models many times further away than the others would flatten these."""
    near = [extent for extent in extents if extent <= 4 * float(np.median(extents))]
    return 1.1 * max([*near, 1e-6])


def ndcg_curves(summary: Summary) -> str:
    """Draw NDCG@1 to NDCG@10 of each model."""
    place = places(summary)

    def draw(figure: Figure) -> None:
        axes = figure.add_subplot()
        ranks = np.arange(1, len(CURVE) + 1)
        for entry in summary.entries[::-1]:
            index = place[entry.name]
            values = [entry.mean(name) for name in CURVE]
            axes.plot(ranks, values, dashes(index), marker="o", markersize=3, color=series(index), gid=f"m{index}")
        axes.set_xticks(ranks)
        axes.set_xlabel("k")
        axes.set_ylabel("NDCG@k")
        axes.grid(axis="y")

    return drawn("ndcg", _WIDTH, 240, draw, "NDCG at k of each model for k from 1 to 10")


def ndcg_differences(summary: Summary) -> str | None:
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

    def draw(figure: Figure) -> None:
        axes = figure.add_subplot()
        axes.axhline(0, color=MUTED, linewidth=1)
        for name, curve in curves.items():
            index = place[name]
            axes.plot(ranks, curve, dashes(index), marker="o", markersize=3, color=series(index), gid=f"m{index}")
        axes.set_xticks(ranks)
        axes.set_ylim(-reach, reach)
        axes.set_xlabel("k")
        axes.set_ylabel(f"NDCG@k − {base.name}")
        axes.grid(axis="y")

    return drawn("ndcg-differences", _WIDTH, 240, draw, "NDCG at k of each model minus that of the baseline")


def learning_curves(summary: Summary) -> str | None:
    """Draw the selection metric on the validation part after each tree, mean over folds.

    A fold that has stopped stays at the value of the trees it keeps.
    """
    place, select = places(summary), summary.plan.select
    entries = [entry for entry in summary.entries if all(result.history.get("rounds") for result in entry.chosen)]
    if not entries:
        return None

    def draw(figure: Figure) -> None:
        axes = figure.add_subplot()
        curves = {entry.name: _mean_curve(entry) for entry in entries}
        for name, curve in reversed(curves.items()):
            index = place[name]
            axes.plot(np.arange(1, len(curve) + 1), curve, dashes(index), color=series(index), gid=f"m{index}")
            axes.plot([len(curve)], [curve[-1]], "o", color=series(index), markersize=4, gid=f"m{index}")
        # The first trees are so far below that they would flatten what the models differ in.
        low = min(float(np.quantile(curve, 0.1)) for curve in curves.values())
        high = max(float(curve.max()) for curve in curves.values())
        if high > low:
            axes.set_ylim(low - 0.1 * (high - low), high + 0.05 * (high - low))
        axes.set_xlim(0, None)
        axes.set_xlabel("trees")
        axes.set_ylabel(f"{select} on validation")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.grid(axis="y")

    return drawn("learning", _WIDTH, 240, draw, f"validation {select} of the tree models after each tree")


def _mean_curve(entry: Entry) -> FloatArray:
    longest = max(len(result.history["rounds"]) for result in entry.chosen)
    curves = []
    for result in entry.chosen:
        curve = np.asarray(result.history["rounds"])
        kept = curve[min(result.chosen_rounds or len(curve), len(curve)) - 1]
        curves.append(np.append(curve, np.full(longest - len(curve), kept)))
    average: FloatArray = np.mean(curves, axis=0)
    return average


def convergence(summary: Summary) -> str | None:
    """Draw the gradient norm after each iteration of the models that are trained by a solver."""
    place = places(summary)
    entries = [entry for entry in summary.entries if any(r.history.get("gradient_norm") for r in entry.chosen)]
    if not entries:
        return None

    def draw(figure: Figure) -> None:
        axes = figure.add_subplot()
        longest = 1
        for entry in entries:
            index = place[entry.name]
            for i, result in enumerate(entry.chosen):
                norms = np.maximum(result.history.get("gradient_norm", []), 1e-16)
                longest = max(longest, len(norms))
                first = not i
                axes.semilogy(
                    np.arange(len(norms)),
                    norms,
                    dashes(index),
                    marker="o" if first else None,
                    markersize=3.5,
                    linewidth=1.8 if first else 0.8,
                    alpha=1 if first else 0.45,
                    color=series(index),
                    gid=f"m{index}",
                )
        axes.set_xlabel("iteration; the thick line is the first fold, thin lines the others")
        axes.set_ylabel("norm of the gradient")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.grid(axis="y")

    return drawn("convergence", _WIDTH, 240, draw, "gradient norm of the Newton models after each iteration")


def win_loss(summary: Summary, a: Entry, b: Entry) -> str:
    """Draw the sorted differences of two models by query, for readers without the script that draws any two."""
    select = summary.plan.select
    difference = a.pooled(select) - b.pooled(select)
    difference = np.sort(difference[~np.isnan(difference)])[::-1]

    def draw(figure: Figure) -> None:
        axes = figure.add_subplot()
        x = np.arange(len(difference))
        axes.fill_between(x, difference, 0, where=(difference >= 0).tolist(), color=GOOD, step="mid", linewidth=0)
        axes.fill_between(x, difference, 0, where=(difference <= 0).tolist(), color=BAD, step="mid", linewidth=0)
        axes.axhline(0, color=MUTED, linewidth=0.8)
        axes.set_xlabel("test queries, sorted")
        axes.set_ylabel(f"{select}: {a.name} − {b.name}", fontsize=8.5)
        axes.grid(axis="y")

    return drawn("winloss", 2 * _WIDTH, 220, draw, f"difference in {select} between {a.name} and {b.name} by query")


def families(summary: Summary) -> str | None:
    """Draw, for each loss that more than one family was trained on, the values of the families side by side."""
    select = summary.plan.select
    by_loss: dict[str, list[Entry]] = {}
    for entry in summary.entries:
        if entry.model.loss is not None and not entry.model.is_host_own:
            by_loss.setdefault(entry.model.loss, []).append(entry)
    shared = {loss: entries for loss, entries in by_loss.items() if len({e.model.family for e in entries}) > 1}
    if not shared:
        return None
    place = places(summary)

    def draw(figure: Figure) -> None:
        axes = figure.add_subplot()
        rows: list[tuple[float, Entry]] = []
        row = 0.0
        for entries in shared.values():
            for entry in entries:
                rows.append((row, entry))
                row -= 1
            row -= 0.7
        _intervals(axes, rows, place, select)
        axes.set_yticks([at for at, _ in rows], [entry.name for _, entry in rows])
        axes.tick_params(axis="y", labelcolor=INK)
        axes.set_ylim(rows[-1][0] - 0.6, 0.6)
        axes.xaxis.set_major_locator(MaxNLocator(5))
        axes.set_xlabel(f"{select}, with 95 % interval")
        axes.spines["left"].set_visible(False)
        axes.grid(axis="x")

    count = sum(map(len, shared.values())) + 0.7 * len(shared)
    return drawn("same-loss", _WIDTH, 52 + _ROW * count, draw, "the same loss in different families")


def fold_values(summary: Summary, entries: Sequence[Entry]) -> str:
    """Draw the selection metric of some models in each fold."""
    place, select = places(summary), summary.plan.select

    def draw(figure: Figure) -> None:
        axes = figure.add_subplot()
        for fold in summary.folds:
            values = [entry.fold_mean(select, fold) for entry in entries]
            axes.vlines(fold, min(values), max(values), color=GRID, linewidth=3)
        for entry in entries:
            index = place[entry.name]
            values = [entry.fold_mean(select, fold) for fold in summary.folds]
            axes.plot(
                summary.folds,
                values,
                "o",
                markersize=8,
                color=series(index),
                markeredgecolor=SURFACE,
                label=entry.name,
                gid=f"m{index}",
            )
        axes.set_xticks(summary.folds)
        axes.set_xlim(min(summary.folds) - 0.5, max(summary.folds) + 0.5)
        axes.set_xlabel("fold")
        axes.set_ylabel(f"{select} on test")
        axes.legend(frameon=False, loc="upper center", bbox_to_anchor=(0.5, 1.16), ncols=len(entries), labelcolor=INK)
        axes.grid(axis="y")

    return drawn("folds", _WIDTH, 215, draw, f"{select} in each fold")


def _intervals(axes: Axes, rows: list[tuple[float, Entry]], place: dict[str, int], select: str) -> None:
    for at, entry in rows:
        low, high = entry.interval
        colour = series(place[entry.name])
        axes.hlines(at, low, high, color=colour, linewidth=6, alpha=0.35)
        axes.plot([entry.mean(select)], [at], "o", color=colour, markersize=6)
