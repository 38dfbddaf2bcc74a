"""The comparison as a table: aligned text, Markdown, JSON, and CSV with a row for each model, fold and setting."""

from __future__ import annotations

import html
import json
import re
import textwrap
from typing import Any

import numpy as np
import pandas as pd

from boostlist.evaluation.grids import as_text as setting_text
from boostlist.evaluation.storage import Result
from boostlist.evaluation.summary import Entry, Summary, wins_losses
from boostlist.evaluation.training import mean
from boostlist.metrics import get as get_metric

_SIGNIFICANT = 0.05


def header(summary: Summary) -> list[str]:
    """Return the titles of the columns."""
    select, others = summary.plan.select, summary.plan.metrics[1:]
    return ["", "model", select, "95 % interval", *others, "difference", "p (Holm)", "train", "rank"]


def cells(summary: Summary, entry: Entry, rank: int) -> list[str]:
    """Return the row of a model."""
    plan, against = summary.plan, entry.against
    name = entry.name + ("" if entry.folds == summary.folds else f" (folds {','.join(map(str, entry.folds))})")
    if against is None:
        tests = ["baseline" if entry.model == plan.baseline else "", ""]
    else:
        tests = [signed(against.difference), p_text(entry)]
    return [
        str(rank),
        name,
        f"{entry.mean(plan.select):.4f}",
        f"{entry.interval.low:.4f}–{entry.interval.high:.4f}",
        *(f"{entry.mean(metric):.4f}" for metric in plan.metrics[1:]),
        *tests,
        duration(entry.train_seconds),
        f"{entry.rank_microseconds:.2f} µs",
    ]


def signed(difference: float) -> str:
    """Return a difference with its sign; what rounds to 0 has none."""
    text = f"{difference:+z.4f}"
    return text if float(text) else text[1:]


def p_text(entry: Entry) -> str:
    """Return the corrected p-value, with a star where it is below 0.05."""
    if entry.p is None:
        return ""
    number = "<0.001" if entry.p < 0.001 else f"{entry.p:.3f}"
    return f"{number} *" if entry.p < _SIGNIFICANT else f"{number}  "


def duration(seconds: float) -> str:
    """Return a time with a unit that suits it."""
    return f"{1e3 * seconds:.0f} ms" if seconds < 0.9995 else f"{seconds:.2f} s" if seconds < 60 else f"{seconds:.0f} s"


def as_text(summary: Summary, width: int | None = None) -> str:
    """Return the comparison as aligned text, the best model first, and below it what went wrong.

    Parameters
    ----------
    summary
        The comparison.
    width
        Characters that fit in a line, which the table is cut for and text is wrapped at; None for no limit.
    """
    notes = remarks(summary)
    if not summary.entries:
        blocks = ["no model has been trained on a whole fold yet"]
    else:
        rows = [header(summary), *(cells(summary, entry, i) for i, entry in enumerate(summary.entries, 1))]
        blocks = ["\n".join(_aligned([[row[k] for k in columns] for row in rows])) for columns in _cut(rows, width)]
        notes.insert(0, footnote(summary))
    if width is not None:
        notes = [textwrap.fill(note, width) for note in notes]
    return "\n\n".join([*blocks, *(["\n".join(notes)] if notes else [])])


def _aligned(rows: list[list[str]]) -> list[str]:
    """Return lines with columns of equal width; the second, the names, to the left, the others to the right."""
    widths = _widths(rows)
    return [
        "  ".join(
            cell.ljust(w) if k == 1 else cell.rjust(w) for k, (cell, w) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def _widths(rows: list[list[str]]) -> list[int]:
    return [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]


def _cut(rows: list[list[str]], width: int | None) -> list[list[int]]:
    """Return the columns of each block of a table that is cut into blocks of a width; ranks and names are in all."""
    widths = _widths(rows)
    names = widths[0] + 2 + widths[1]
    blocks, used = [[0, 1]], names
    for k in range(2, len(widths)):
        if width is not None and used + 2 + widths[k] > width and len(blocks[-1]) > 2:
            blocks.append([0, 1])
            used = names
        blocks[-1].append(k)
        used += 2 + widths[k]
    return blocks


def footnote(summary: Summary) -> str:
    """Say what the figures are."""
    plan = summary.plan
    queries = int(np.sum(~np.isnan(summary.entries[0].pooled(plan.select)))) if summary.entries else 0
    folds = len(summary.folds)
    return (
        f"Means over {queries:,} test queries of {folds} fold{'s' if folds > 1 else ''} of {plan.source.name}"
        f"{f', cut in {plan.repeats} ways' if plan.repeats > 1 else ''}. "
        f"Difference to {plan.baseline.name}; p: randomization test over queries, Holm-corrected; * below 0.05. "
        "Times: of one processor, to train one model on a fold, and to score one document."
    )


def frame(summary: Summary) -> pd.DataFrame:
    """Return a row for each model, the best first."""
    return pd.DataFrame([_row(summary, entry) for entry in summary.entries])


def _row(summary: Summary, entry: Entry) -> dict[str, Any]:
    plan, against = summary.plan, entry.against
    won = standing(summary, entry)
    return {
        "model": entry.name,
        **{metric: entry.mean(metric) for metric in plan.metrics},
        "low": entry.interval.low,
        "high": entry.interval.high,
        "difference": None if against is None else against.difference,
        "difference_low": None if against is None else against.low,
        "difference_high": None if against is None else against.high,
        "p": entry.p,
        "won": None if won is None else won[0],
        "lost": None if won is None else won[1],
        "train_seconds": entry.train_seconds,
        "rank_microseconds": entry.rank_microseconds,
    }


def trouble(summary: Summary) -> list[tuple[str, str]]:
    """Return models that failed or were not run, with the reason."""
    failed = [(entry.name, f"failed in part: {reason}") for entry in summary.entries for reason in entry.failures]
    return failed + [
        (name, reason if reason == "not run" else f"failed: {reason}") for name, reason in summary.missing.items()
    ]


def remarks(summary: Summary) -> list[str]:
    """Return what the plan has to say, and models that failed."""
    return [*summary.plan.notes, *(f"{name}: {reason}" for name, reason in trouble(summary))]


def as_markdown(summary: Summary) -> str:
    """Return the comparison as a Markdown table."""
    titles = header(summary)
    lines = [
        "| " + " | ".join(titles) + " |",
        "| " + " | ".join("---" if k == 1 else "--:" for k in range(len(titles))) + " |",
    ]
    for i, entry in enumerate(summary.entries, 1):
        row = [_markdown(cell.strip()) for cell in cells(summary, entry, i)]
        if i == 1:
            row[1:3] = [f"**{row[1]}**", f"**{row[2]}**"]
        lines.append("| " + " | ".join(row) + " |")
    notes = [footnote(summary), *remarks(summary)]
    return "\n".join(lines) + "\n\n" + "\n\n".join(map(_markdown, notes)) + "\n"


def _markdown(text: str) -> str:
    """Return text that Markdown shows as it is."""
    return re.sub(r"([\\`*<>|\[\]])", r"\\\1", text)


def as_latex(summary: Summary) -> str:
    """Return the comparison as a LaTeX table, which needs the package booktabs; the best value of a metric is bold."""
    metrics = summary.plan.metrics
    best = {metric: _best_mean(summary, metric) for metric in metrics}
    lines = [
        rf"\begin{{tabular}}{{l{'r' * (len(metrics) + 2)}}}",
        r"\toprule",
        " & ".join(map(_latex, ("model", *metrics, "difference", "$p$"))).replace(r"\$p\$", "$p$") + r" \\",
        r"\midrule",
    ]
    for entry in summary.entries:
        means = [f"{entry.mean(metric):.4f}" for metric in metrics]
        values = [
            rf"\textbf{{{mean}}}" if mean == best[metric] else mean for metric, mean in zip(metrics, means, strict=True)
        ]
        if entry.against is None:
            tests = ["baseline" if entry.model == summary.plan.baseline else "", ""]
        else:
            tests = [f"${signed(entry.against.difference)}$", p_text(entry).strip().replace("<0.001", "$<$0.001")]
        lines.append(" & ".join((_latex(entry.name), *values, *tests)) + r" \\")
    lines += [r"\bottomrule", r"\end{tabular}", f"% {footnote(summary)}"]
    return "\n".join(lines) + "\n"


def _best_mean(summary: Summary, metric: str) -> str:
    best = max if get_metric(metric).higher_is_better else min
    return f"{best(entry.mean(metric) for entry in summary.entries):.4f}"


def _latex(text: str) -> str:
    """Return text that LaTeX sets as it is."""
    special = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
    return "".join(special.get(each) or (f"\\{each}" if each in "&%$#_{}" else each) for each in text)


def as_html(summary: Summary) -> str:
    """Return the comparison as a plain HTML table, for notebooks."""
    rows = [header(summary), *(cells(summary, entry, i) for i, entry in enumerate(summary.entries, 1))]
    head, *body = (
        "".join(
            f'<{tag} style="text-align: {"left" if k == 1 else "right"}">{html.escape(cell.strip())}</{tag}>'
            for k, cell in enumerate(row)
        )
        for tag, row in zip(["th", *["td"] * (len(rows) - 1)], rows, strict=True)
    )
    notes = [footnote(summary) if body else "No model has results.", *remarks(summary)]
    lines = "".join(f"<tr>{row}</tr>" for row in body)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{lines}</tbody></table>" + "".join(
        f"<p>{html.escape(note)}</p>" for note in notes
    )


def as_json(summary: Summary) -> str:
    """Return the comparison as JSON."""
    plan = summary.plan
    return json.dumps(
        {
            "data": plan.source.name,
            "folds": list(summary.folds),
            "select": plan.select,
            "baseline": plan.baseline.name,
            "seed": plan.seed,
            "models": [_record(summary, entry) for entry in summary.entries],
            "missing": summary.missing,
            "notes": list(plan.notes),
        },
        indent=2,
    )


def _record(summary: Summary, entry: Entry) -> dict[str, Any]:
    plan, against = summary.plan, entry.against
    return {
        "model": entry.name,
        "metrics": {metric: entry.mean(metric) for metric in plan.metrics},
        "interval": list(entry.interval),
        "difference": None if against is None else against.difference,
        "difference_interval": None if against is None else [against.low, against.high],
        "p_holm": entry.p,
        "settings": {str(result.fold): dict(result.setting) for result in entry.chosen},
        "train_seconds": entry.train_seconds,
        "rank_microseconds_per_document": entry.rank_microseconds,
        "failures": list(entry.failures),
    }


def result_frame(summary: Summary) -> pd.DataFrame:
    """Return a row for each model, fold and setting that was trained, with a mark at the chosen ones."""
    chosen = {id(result) for entry in summary.entries for result in entry.chosen}
    order = {model.name: i for i, model in enumerate(summary.plan.models)}

    def row(result: Result) -> dict[str, Any]:
        metrics = summary.plan.metrics
        return {
            "model": result.model,
            "fold": result.fold,
            "setting": setting_text(result.setting),
            "chosen": id(result) in chosen,
            **{f"vali {name}": result.vali[name] for name in metrics},
            **{f"test {name}": mean(result.test[name]) for name in metrics},
            "trees": result.chosen_rounds,
            "train_seconds": result.train_seconds,
            "rank_seconds": result.rank_seconds,
        }

    results = sorted(summary.outcome.results, key=lambda result: (order[result.model], result.fold))
    return pd.DataFrame([row(result) for result in results]).astype({"trees": "Int64"})


def query_frame(summary: Summary) -> pd.DataFrame:
    """Return a row for each model and test query, with every metric that was measured."""
    parts = []
    for entry in summary.entries:
        for result in entry.chosen:
            facts = summary.outcome.facts[result.fold]
            about = {
                "qid": facts.qid,
                "documents": facts.length,
                "relevant": facts.relevant,
                "highest_label": facts.best,
            }
            parts.append(pd.DataFrame({"model": entry.name, "fold": result.fold, **about, **result.test}))
    return pd.concat(parts, ignore_index=True)


def score_frame(summary: Summary) -> pd.DataFrame:
    """Return a row for each test document, with a column for the scores of each model.

    Documents are in the order of their files, so that their features can be put beside them; scores are of the chosen
    setting, and missing where a model has no result in a fold.
    """
    parts = []
    for fold in summary.folds:
        facts = summary.outcome.facts[fold]
        about = {"fold": fold, "qid": np.repeat(facts.qid, facts.length), "label": facts.labels}
        by_model = {
            entry.name: result.scores for entry in summary.entries for result in entry.chosen if result.fold == fold
        }
        parts.append(pd.DataFrame({**about, **by_model}))
    return pd.concat(parts, ignore_index=True)


def standing(summary: Summary, entry: Entry) -> tuple[int, int] | None:
    """Return in how many queries a model is above and below the baseline."""
    base = summary.baseline
    if base is None or entry is base or entry.folds != base.folds:
        return None
    return wins_losses(entry.pooled(summary.plan.select), base.pooled(summary.plan.select))
