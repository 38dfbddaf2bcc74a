from __future__ import annotations

import dataclasses
import json
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from boostlist.evaluation import tables
from boostlist.evaluation.summary import _quantile_bins, summarize, wins_losses
from boostlist.evaluation.training import Failure
from boostlist.metrics import NDCG
from tests.evaluation.made_up import FOLDS, QUERIES, made_up


@pytest.fixture
def data_file(tmp_path):
    path = tmp_path / "letters.txt"
    path.write_text("content")
    return path


@pytest.fixture
def outcome(data_file):
    return made_up(data_file)


def entry_of(summary, name):
    return next(entry for entry in summary.entries if entry.name == name)


def test_the_setting_is_chosen_on_validation_in_each_fold(outcome):
    # In fold 2 the smaller trees are better on validation, whatever they are on test.
    for i, result in enumerate(outcome.results):
        if (result.model, result.fold, result.setting) == ("lightgbm:cs_listmle", 2, {"num_leaves": 7}):
            outcome.results[i] = dataclasses.replace(result, vali=dict.fromkeys(result.vali, 0.99))
    entry = entry_of(summarize(outcome), "lightgbm:cs_listmle")
    assert [result.setting["num_leaves"] for result in entry.chosen] == [31, 7, 31]


def test_equally_good_settings_are_chosen_in_grid_order_whatever_ended_first(outcome):
    even = [dataclasses.replace(result, vali=dict.fromkeys(result.vali, 0.5)) for result in outcome.results]
    outcome.results[:] = reversed(even)
    entry = entry_of(summarize(outcome), "lightgbm:lambdarank")
    assert [result.setting["num_leaves"] for result in entry.chosen] == [7, 7, 7]


def test_pooled_means_are_over_queries_and_sorted(outcome):
    summary = summarize(outcome)
    means = [entry.mean("ndcg@10") for entry in summary.entries]
    assert means == sorted(means, reverse=True)
    assert summary.entries[0].name == "lightgbm:cs_listmle"
    entry = summary.entries[0]
    assert entry.pooled("err").shape == (len(FOLDS) * QUERIES,)
    by_hand = sum(result.test["err"].sum() for result in entry.chosen) / (len(FOLDS) * QUERIES)
    assert entry.mean("err") == pytest.approx(by_hand)
    low, high = entry.interval
    assert low < entry.mean("ndcg@10") < high


def test_against_the_baseline(outcome):
    summary = summarize(outcome)
    base = summary.baseline
    assert base.name == "lightgbm:lambdarank"
    assert base.against is None
    linear = entry_of(summary, "linear:cs_listmle")
    difference = linear.pooled("ndcg@10") - base.pooled("ndcg@10")
    assert linear.against.difference == pytest.approx(difference.mean())
    assert linear.against.t_test == pytest.approx(stats.ttest_1samp(difference, 0).pvalue)
    # Holm: of three p-values the smallest is tripled, and none becomes smaller than a smaller one.
    others = sorted(
        (entry for entry in summary.entries if entry.against), key=lambda entry: entry.against.randomization
    )
    raw = [entry.against.randomization for entry in others]
    corrected, largest = [], 0.0
    for i, p in enumerate(raw):
        largest = max(largest, min(1.0, (3 - i) * p))
        corrected.append(largest)
    assert [entry.p for entry in others] == pytest.approx(corrected)


def test_an_interrupted_run_compares_what_all_models_have(outcome):
    outcome.results[:] = [r for r in outcome.results if (r.model, r.fold) not in {("kernel:cs_listmle", 3)}]
    summary = summarize(outcome)
    assert summary.folds == (1, 2)
    assert {entry.folds for entry in summary.entries} == {(1, 2)}


def test_a_fold_whose_settings_are_not_all_tried_does_not_count(outcome):
    outcome.results[:] = [
        r for r in outcome.results if (r.model, r.fold, r.setting) != ("lightgbm:cs_listmle", 1, {"num_leaves": 31})
    ]
    assert summarize(outcome).folds == (2, 3)


def test_a_model_that_failed_in_one_fold_does_not_cost_the_others_that_fold(outcome):
    lost = next(r for r in outcome.results if r.model == "kernel:cs_listmle" and r.fold == 3)
    outcome.results.remove(lost)
    task = next(t for t in outcome.plan.tasks() if (t.model.name, t.fold) == ("kernel:cs_listmle", 3))
    outcome.failures.append(Failure(task, "MemoryError: too much"))
    summary = summarize(outcome)
    assert summary.folds == (1, 2, 3)
    kernel = entry_of(summary, "kernel:cs_listmle")
    assert kernel.folds == (1, 2)
    assert kernel.against.n_queries == 2 * QUERIES
    assert "kernel:cs_listmle (folds 1,2)" in tables.as_text(summary)
    assert "kernel:cs_listmle: failed in part: MemoryError: too much" in tables.as_text(summary)
    assert kernel not in summary.complete()


def test_where_every_model_failed_somewhere_the_folds_that_all_have_count(outcome):
    tasks = outcome.plan.tasks()
    for model, fold in zip(outcome.plan.models, (1, 2, 2, 2), strict=True):
        outcome.results[:] = [r for r in outcome.results if (r.model, r.fold) != (model.name, fold)]
        lost = [task for task in tasks if (task.model.name, task.fold) == (model.name, fold)]
        outcome.failures += [Failure(task, "lost") for task in lost]
    summary = summarize(outcome)
    assert summary.folds == (3,)
    assert len(summary.complete()) == len(outcome.plan.models)


def test_times_are_means_over_folds_and_per_document(outcome):
    changed = []
    for result in outcome.results:
        seconds = {"train_seconds": float(result.fold), "rank_seconds": 0.001 * result.fold, "documents": 500}
        changed.append(replace(result, **seconds))
    outcome.results[:] = changed
    entry = summarize(outcome).entries[0]
    assert entry.train_seconds == 2.0
    assert entry.rank_microseconds == pytest.approx(1e6 * (0.001 + 0.002 + 0.003) / 1500)


def test_the_share_of_relevant_documents_is_in_per_cent(outcome):
    labels = [each.label for each in summarize(outcome).by_relevant()]
    # Lists of 5 to 34 documents, of which a third, rounded down, is relevant: 1 of 5 to 11 of 33.
    assert labels[0].startswith("20–")
    assert labels[-1].endswith("33 % relevant")


def test_a_metric_of_which_less_is_better(outcome, monkeypatch):
    monkeypatch.setattr(NDCG, "higher_is_better", False)
    summary = summarize(outcome)
    means = [entry.mean("ndcg@10") for entry in summary.entries]
    assert means == sorted(means)
    assert summary.entries[0].name == "linear:cs_listmle"
    assert {result.setting["num_leaves"] for result in entry_of(summary, "lightgbm:cs_listmle").chosen} == {7}


def test_bins_hold_every_query_once(outcome):
    summary = summarize(outcome)
    for bins in (summary.by_length(), summary.by_relevant(), summary.by_grade()):
        rows = np.concatenate([each.rows for each in bins])
        assert sorted(rows) == list(range(len(FOLDS) * QUERIES))
    first = summary.by_length()[0]
    assert first.label.startswith("5–")
    assert summary.fact("length")[first.rows].max() == int(first.label.split("–")[1].split()[0])
    assert [each.label for each in summary.by_grade()] == ["highest grade 0", "highest grade 1", "highest grade 2"]


def test_many_grades_are_cut_into_quarters(outcome, monkeypatch):
    summary = summarize(outcome)
    best = np.random.default_rng(0).permutation(41).astype(float)
    monkeypatch.setattr(type(summary), "fact", lambda self, name: {"best": best}[name])
    bins = summary.by_grade()
    assert [each.label for each in bins] == [
        f"{a}–{b} highest label" for a, b in ((0, 10), (11, 20), (21, 30), (31, 40))
    ]
    assert [sorted(best[each.rows])[0] for each in bins] == [0, 11, 21, 31]


def test_wins_and_losses():
    assert wins_losses(np.array([0.5, 0.5, 0.1, 0.3]), np.array([0.4, 0.5 + 1e-7, 0.2, 0.1])) == (2, 1)


def test_text_table_is_aligned(outcome):
    summary = summarize(outcome)
    lines = tables.as_text(summary).splitlines()
    heading, rows = lines[0], lines[1:5]
    assert [row.split()[1] for row in rows] == [entry.name for entry in summary.entries]
    end = heading.index("err") + len("err")
    assert all(row[end - 6 : end].replace(".", "").isdigit() and row[end] == " " for row in rows)
    assert "baseline" in next(row for row in rows if "lambdarank" in row)
    assert "<0.001 *" in next(row for row in rows if "linear" in row)


def test_text_is_cut_for_a_narrow_terminal(outcome):
    summary = summarize(outcome)
    wide, narrow = tables.as_text(summary), tables.as_text(summary, width=60)
    assert max(map(len, narrow.splitlines())) <= 60 < max(map(len, wide.splitlines()))
    first, second, *_ = (block.splitlines() for block in narrow.split("\n\n"))
    assert [line.split()[:2] for line in first[1:]] == [line.split()[:2] for line in second[1:]]
    assert set(narrow.split()) == set(wide.split())


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0 ms"), (0.9994, "999 ms"), (0.9996, "1.00 s"), (59.9, "59.90 s"), (60.4, "60 s")],
)
def test_durations(seconds, text):
    assert tables.duration(seconds) == text


@pytest.mark.parametrize(
    ("values", "bins"),
    [
        ([7, 7, 7], [("7 documents", [0, 1, 2])]),
        (
            [9, 1, 2, 3, 8],
            [("1–2 documents", [1, 2]), ("3 documents", [3]), ("8 documents", [4]), ("9 documents", [0])],
        ),
    ],
)
def test_quarters_of_the_queries(values, bins):
    assert [(each.label, each.rows.tolist()) for each in _quantile_bins(np.array(values), "documents")] == bins


def test_a_star_is_below_five_per_cent(outcome):
    entry = summarize(outcome).entries[0]
    shown = [tables.p_text(replace(entry, p=p)).strip() for p in (None, 0.0004, 0.049, 0.05, 1.0)]
    assert shown == ["", "<0.001 *", "0.049 *", "0.050", "1.000"]


@pytest.mark.parametrize(
    ("width", "blocks"),
    [
        (None, [[0, 1, 2, 3, 4]]),
        (23, [[0, 1, 2, 3, 4]]),
        (22, [[0, 1, 2, 3], [0, 1, 4]]),
        (11, [[0, 1, 2], [0, 1, 3], [0, 1, 4]]),
        (3, [[0, 1, 2], [0, 1, 3], [0, 1, 4]]),
    ],
)
def test_a_table_is_cut_to_a_width(width, blocks):
    assert tables._cut([["1", "ab", "1234", "1234", "1234"]], width) == blocks


def test_markdown_and_json(outcome):
    summary = summarize(outcome)
    table = tables.as_markdown(summary).split("\n\n")[0].splitlines()
    assert len({line.count("|") for line in table}) == 1
    assert table[1].startswith("| --: | --- | --: | --: |")
    assert table[2].startswith("| 1 | **lightgbm:cs_listmle** |")
    found = json.loads(tables.as_json(summary))
    assert [model["model"] for model in found["models"]] == [entry.name for entry in summary.entries]
    assert found["models"][0]["settings"]["1"] == {"num_leaves": 31}


def test_frames(outcome):
    summary = summarize(outcome)
    results = tables.result_frame(summary)
    assert len(results) == len(outcome.results)
    assert results.groupby(["model", "fold"])["chosen"].sum().eq(1).all()
    queries = tables.query_frame(summary)
    assert len(queries) == 4 * len(FOLDS) * QUERIES
    means = queries.groupby("model")["ndcg@10"].mean()
    for entry in summary.entries:
        assert means[entry.name] == pytest.approx(entry.mean("ndcg@10"))


def test_no_results_at_all(outcome):
    outcome.results.clear()
    summary = summarize(outcome)
    assert summary.entries == ()
    assert "no model has been trained on a whole fold yet" in tables.as_text(summary)
    assert set(summary.missing.values()) == {"not run"}
    notes = tables.as_markdown(summary).removesuffix("\n").split("\n\n")[2:]
    assert notes == [f"{name}: not run" for name in summary.missing]
