from __future__ import annotations

import io
import json
import os
import signal
import threading
import time
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from boostlist.datasets import RankingData, make_ranking, write_letor
from boostlist.evaluation import experiment, interrupts, storage, tables
from boostlist.evaluation.folds import find_source
from boostlist.evaluation.grids import SMALL, read_grid
from boostlist.evaluation.panel import panel
from boostlist.evaluation.report import write_report
from boostlist.evaluation.sources import GivenFolds
from boostlist.evaluation.storage import Store
from boostlist.evaluation.summary import summarize
from boostlist.evaluation.training import Trainer
from boostlist.metrics import get
from tests.evaluation.stubs import StubRanker


def test_every_model_fold_and_setting_has_its_file(stub_run):
    plan, store, outcome = stub_run(["stub", "stub?noise=5"])
    files = list((store.folder / "results").glob("*.npz"))
    assert len(files) == len(outcome.results) == 2 * 2 * 2
    assert not outcome.failures
    fold = plan.source.load(1)
    result = store.load("stub", 1, {"C": 1.0})
    # The stub scores by the first feature, so that what is stored can be computed without it.
    np.testing.assert_allclose(result.test["ndcg@3"], get("ndcg@3").per_query(fold.test.X[:, 0], fold.test.queries))
    assert result.vali["ndcg@10"] == pytest.approx(get("ndcg@10").mean(fold.vali.X[:, 0], fold.vali.queries))
    assert result.history["gradient_norm"] == [1.0, 1e-3, 1e-6, 1e-9]
    facts = outcome.facts[2]
    test = plan.source.load(2).test
    assert facts.length.tolist() == test.queries.sizes.tolist()
    assert facts.best.tolist() == [test.y[test.qid == int(q)].max() for q in facts.qid]
    assert facts.relevant.tolist() == [(test.y[test.qid == int(q)] > 0).sum() for q in facts.qid]


def test_processes_give_what_threads_give(stub_run, tmp_path):
    _, _, here = stub_run(["stub", "stub?noise=5"])
    _, _, there = stub_run(["stub", "stub?noise=5"], folder=tmp_path / "there", jobs=2, processes=True)

    def values(outcome):
        return {(r.model, r.fold, r.setting["C"]): r.test["ndcg@10"].tolist() for r in outcome.results}

    assert values(there) == values(here)
    assert len(values(there)) == 8
    assert {fold: facts.qid.tolist() for fold, facts in there.facts.items()} == {
        fold: facts.qid.tolist() for fold, facts in here.facts.items()
    }


def test_what_is_stored_is_not_trained_again(stub_run, monkeypatch):
    stub_run(["stub", "stub?noise=5"])
    monkeypatch.setattr(StubRanker, "fit", lambda *_, **__: pytest.fail("a model was trained"))
    _, _, outcome = stub_run(["stub", "stub?noise=5"])
    assert len(outcome.results) == 8
    assert sorted(outcome.facts) == [1, 2]


def test_a_run_goes_on_where_it_stopped(stub_run):
    _, store, _ = stub_run(["stub"])
    damaged, absent = sorted((store.folder / "results").glob("*.npz"))[:2]
    damaged.write_bytes(damaged.read_bytes()[:50])
    absent.unlink()
    stream = io.StringIO()
    _, _, outcome = stub_run(["stub"], stream=stream)
    assert len(outcome.results) == 4
    assert "2 of 4 results are there already; 2 to go" in stream.getvalue()


def test_more_metrics_are_measured_where_they_are_missing(stub_run, data):
    plan, store, _ = stub_run(["stub"])
    more = experiment.Plan(plan.source, plan.models, plan.baseline, plan.grid, ("ndcg@10", "mrr"), "ndcg@10")
    outcome = experiment.run(more, store, 1, experiment.Progress(None, "ndcg@10", 1))
    assert all("mrr" in result.test for result in outcome.results)


def test_a_model_that_fails_does_not_end_the_run(stub_run):
    _, _, outcome = stub_run(["stub", "stub?mode=fail", "stub?mode=fail2"])
    assert {failure.task.model.name for failure in outcome.failures} == {"stub?mode=fail", "stub?mode=fail2"}
    summary = summarize(outcome)
    assert [entry.name for entry in summary.entries] == ["stub", "stub?mode=fail2"]
    assert "the stub was told to fail" in summary.missing["stub?mode=fail"]
    assert summary.entries[1].failures == ("RuntimeError: the stub was told to fail",)
    # What failed is tried again by the next run, and only that.
    stream = io.StringIO()
    stub_run(["stub", "stub?mode=fail", "stub?mode=fail2"], stream=stream)
    assert "6 of 12 results are there already; 6 to go" in stream.getvalue()


@pytest.mark.skipif(os.name == "nt", reason="sends SIGKILL")
def test_a_process_that_dies_fails_its_task_alone(stub_run):
    _, _, outcome = stub_run(["stub", "stub?mode=die"], jobs=2, folds=(1,), processes=True)
    assert len(outcome.results) == 2
    assert [failure.reason for failure in outcome.failures] == [
        "its process was ended by SIGKILL, perhaps for want of memory"
    ] * 2


@pytest.mark.skipif(os.name == "nt", reason="sends SIGKILL")
def test_a_fold_whose_first_process_dies_is_in_the_report(stub_run, tmp_path):
    _, _, outcome = stub_run(["stub?mode=die", "stub"], folds=(1,), processes=True)
    summary = summarize(outcome)
    assert [entry.name for entry in summary.entries] == ["stub"]
    assert len(tables.query_frame(summary)) == 8
    assert write_report(summary, tmp_path).exists()


def test_facts_that_are_missing_are_found_again(stub_run):
    plan, store, _ = stub_run(["stub"])
    (store.folder / "folds" / "fold2.npz").unlink()
    _, _, outcome = stub_run(["stub"])
    assert outcome.facts[2].qid.tolist() == [str(q) for q in np.unique(plan.source.load(2).test.qid)]
    assert len(tables.query_frame(summarize(outcome))) == 16


def test_err_is_on_the_scale_of_the_whole_data(stub_run, data, tmp_path):
    # The largest grade is in one part alone: of two folds, one does not test on it.
    plan, _, outcome = stub_run(["stub"], folds=(1, 2))
    folds = {number: plan.source.load(number) for number in (1, 2)}
    top = max(fold.train.y.max() for fold in folds.values())
    parts = [part for number in (1, 2) for part in (folds[number].vali, folds[number].test)]
    assert min(part.y.max() for part in parts) < top
    for result in outcome.results:
        for part, values in ((folds[result.fold].vali, None), (folds[result.fold].test, result.test["err"])):
            order = np.argsort(-part.X[:, 0], kind="stable")
            expected = [brute_force_err(part.y[order][part.qid[order] == q], top) for q in dict.fromkeys(part.qid)]
            if values is None:
                assert result.vali["err"] == pytest.approx(np.mean(expected))
            else:
                np.testing.assert_allclose(values, expected)


def brute_force_err(grades, top):
    """ERR of one query whose documents are in the order of their scores (Chapelle et al. 2009)."""
    err, going_on = 0.0, 1.0
    for rank, grade in enumerate(grades, 1):
        satisfied = (2**grade - 1) / 2**top
        err += going_on * satisfied / rank
        going_on *= 1 - satisfied
    return err


def test_constant_features_are_called_that(tmp_path):
    data = make_ranking(20, docs=4, n_features=10, seed=0)
    still = RankingData(np.ones_like(data.X), data.y, data.qid)
    path = write_letor(still, tmp_path / "still.txt")
    models = tuple(panel(["lightgbm:cs_listmle"]))
    plan = experiment.Plan(find_source(path, (1,)), models, models[0], SMALL, ("ndcg@10",), "ndcg@10")
    task = plan.tasks()[0]
    failure = Trainer(plan.source, plan.select, plan.measured).run(task)
    assert failure.reason == (
        "ValueError: each of the 10 features has the same value in all 51 documents of the training part: there is "
        "nothing to learn from"
    )


@pytest.fixture
def ctrl_c():
    """Return a function that presses Ctrl-C, heard also where the tests were started to ignore it."""
    if os.name == "nt":
        pytest.skip("sends SIGINT")
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield lambda: signal.raise_signal(signal.SIGINT)
    signal.signal(signal.SIGINT, before)


def test_ctrl_c_ends_with_what_there_is(stub_run, monkeypatch, ctrl_c):
    before = threading.active_count()
    real = storage.Store.save

    def save_then_interrupt(self, result):
        real(self, result)
        if result.model == "stub?noise=5" and result.setting["C"] == 2.0:
            ctrl_c()

    monkeypatch.setattr(storage.Store, "save", save_then_interrupt)
    _, _, outcome = stub_run(["stub", "stub?noise=5"], folds=(1, 2, 3), processes=True)
    assert outcome.interrupted
    assert len(outcome.results) == 4
    summary = summarize(outcome)
    assert summary.folds == (1,)
    assert [entry.name for entry in summary.entries] == ["stub", "stub?noise=5"]
    assert threading.active_count() == before


def test_ctrl_c_is_postponed_once(ctrl_c):
    said = []
    with interrupts.postponed(lambda: said.append("later")) as state:
        assert not state.pressed
        ctrl_c()
        assert state.pressed
        assert said == ["later"]
        with pytest.raises(KeyboardInterrupt):
            ctrl_c()
    with pytest.raises(KeyboardInterrupt):
        ctrl_c()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with interrupts.postponed() as state:
        ctrl_c()
    assert not state.pressed


def test_a_full_disk_keeps_what_is_done(stub_run, monkeypatch):
    real, written = storage.write_archive, []

    def full_after_two_results(path, *contents):
        if path.parent.name == "results":
            if len(written) == 2:
                raise OSError(28, "No space left on device")
            written.append(path)
        real(path, *contents)

    monkeypatch.setattr(storage, "write_archive", full_after_two_results)
    _, _, outcome = stub_run(["stub"], folds=(1, 2))
    assert "No space left on device; 2 results are stored" in outcome.trouble
    assert len(outcome.results) == 3  # the one that could not be written is still in the table
    monkeypatch.setattr(storage, "write_archive", real)
    _, _, outcome = stub_run(["stub"], folds=(1, 2))
    assert outcome.trouble is None
    assert len(outcome.results) == 4


def test_settings_by_optuna_follow_what_came_before(stub_run, tmp_path, monkeypatch):
    pytest.importorskip("optuna")
    noisy = {"stub": {"noise": {"low": 0.0, "high": 5.0}, "C": [1.0]}}
    options = {"grid": read_grid(noisy), "tune": 12, "search": "optuna", "folds": (1, 2)}
    _, store, outcome = stub_run(["stub"], folder=tmp_path / "a", **options)
    tried = {fold: [r.setting["noise"] for r in outcome.results if r.fold == fold] for fold in (1, 2)}
    assert [len(set(each)) for each in tried.values()] == [12, 12]
    # Noise only harms, which a third of the budget at random shows; the rest is drawn near the least of it.
    assert all(np.mean(each[5:]) < 0.6 * np.mean(each[:5]) for each in tried.values())
    assert tried[1] != tried[2]  # each fold goes by its own validation part
    chosen = summarize(outcome).entries[0].chosen
    for result in chosen:
        assert result.vali["ndcg@10"] == max(r.vali["ndcg@10"] for r in outcome.results if r.fold == result.fold)

    # A run that goes on asks for the same settings, and trains what is missing of them.
    for path in sorted((store.folder / "results").glob("*fold2*"))[::2]:
        path.unlink()
    stream = io.StringIO()
    _, _, again = stub_run(["stub"], folder=tmp_path / "a", stream=stream, **options)
    assert [(r.fold, r.setting) for r in again.results if r.fold == 2] == [
        (r.fold, r.setting) for r in outcome.results if r.fold == 2
    ]
    assert stream.getvalue().count("] stub  fold") == 6
    monkeypatch.setattr(StubRanker, "fit", lambda *_, **__: pytest.fail("a model was trained"))
    stub_run(["stub"], folder=tmp_path / "a", **options)


def test_settings_by_optuna_where_there_are_few_or_trainings_fail(stub_run):
    pytest.importorskip("optuna")
    options = {"grid": {"stub": {"C": [1.0, 2.0, 3.0, 4.0]}}, "tune": 4, "search": "optuna", "folds": (1,)}
    _, _, outcome = stub_run(["stub?mode=fail2", "stub"], **options)
    for name, expected in (("stub", {1, 2, 3, 4}), ("stub?mode=fail2", {1, 3, 4})):
        assert {r.setting["C"] for r in outcome.results if r.model == name} == expected
    assert [failure.task.setting["C"] for failure in outcome.failures] == [2.0]
    assert {entry.name for entry in summarize(outcome).entries} == {"stub", "stub?mode=fail2"}


def test_a_folder_of_another_experiment_is_refused(stub_run, tmp_path):
    _, store, _ = stub_run(["stub"])
    with pytest.raises(ValueError, match=r"belongs to another experiment: its seed is 0, here it is 1\. .*--fresh"):
        stub_run(["stub"], seed=1)
    stub_run(["stub?noise=5"], seed=1, fresh=True, folds=(1,))
    assert json.loads((store.folder / "experiment.json").read_text())["seed"] == 1
    assert len(list((store.folder / "results").iterdir())) == 2

    other = tmp_path / "mine"
    other.mkdir()
    (other / "thesis.tex").write_text("years of work")
    for fresh in (False, True):
        with pytest.raises(ValueError, match=r"holds files of something else, such as thesis\.tex"):
            stub_run(["stub"], folder=other, fresh=fresh)
    assert (other / "thesis.tex").read_text() == "years of work"
    with pytest.raises(ValueError, match="is a file"):
        Store(other / "thesis.tex", {})


def test_fresh_deletes_only_what_compare_wrote(stub_run):
    _, store, _ = stub_run(["stub"])
    (store.folder / "notes.txt").write_text("mine")
    stub_run(["stub"], fresh=True)
    assert (store.folder / "notes.txt").read_text() == "mine"


def test_data_that_cannot_be_read_ends_the_run(stub_run, data, tmp_path, monkeypatch):
    broken = tmp_path / "broken"
    broken.mkdir()
    for path in data.iterdir():
        (broken / path.name).write_bytes(path.read_bytes())
    with (broken / "S4.txt").open("a") as file:
        file.write("1 qid:999 nonsense\n")
    plan, _, _ = stub_run(["stub"], folds=(1,))
    bad = experiment.Plan(find_source(broken), plan.models, plan.baseline, plan.grid, ("ndcg@10",), "ndcg@10")
    with pytest.raises(ValueError, match=r"fold 1 of .*S4\.txt"):
        experiment.run(bad, Store(tmp_path / "bad", bad.identity), 1, experiment.Progress(None, "ndcg@10", 1))


def test_the_sample_is_the_default_and_folds_can_be_chosen():
    assert find_source(None).name == "sample"
    assert find_source(None, [4, 2, 4]).numbers == (2, 4)
    with pytest.raises(FileNotFoundError, match=r"^the sample has the folds 1, 2, 3, 4, 5, not 9$"):
        find_source(None, [9])


def test_warnings_of_a_model_are_one_line_and_are_kept(stub_run, recwarn):
    for _ in range(2):
        stream = io.StringIO()
        stub_run(["stub", "stub?mode=warn"], stream=stream)
        last = "stub?mode=warn: 2 of 4 trainings warned, such as: the stub was told to warn"
        assert [line for line in stream.getvalue().splitlines() if "warn," in line or "to warn" in line] == [last]
        assert stream.getvalue().endswith(f"{last}\n")
    assert not recwarn.list


def test_compilation_is_told_once_and_only_where_it_happens(stub_run, data, tmp_path, monkeypatch):
    source = GivenFolds([find_source(data, (1,)).load(1)])  # read, so that the reader's loops need not be compiled
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "numba"))
    told = []
    for folder in ("first", "second"):
        stream = io.StringIO()
        stub_run(["stub"], folder=tmp_path / folder, source=source, processes=True, stream=stream, metrics=("ndcg@10",))
        told.append(stream.getvalue().count("compiling loops (first run only) ...\n"))
        assert len(stream.getvalue().splitlines()) == 2 + told[-1]
    assert told == [1, 0]


def test_progress(stub_run, monkeypatch):
    stream = io.StringIO()
    stub_run(["stub", "stub?noise=5"], folds=(1,), stream=stream)
    lines = stream.getvalue().splitlines()
    assert len(lines) == 4
    assert lines[0].startswith("[1/4] stub  fold 1  C=1  ndcg@10 0.")

    terminal = io.StringIO()
    progress = experiment.Progress(terminal, "ndcg@10", 1, live=True)
    plan, _, outcome = stub_run(["stub", "stub?noise=5"], folds=(1,))
    tasks = plan.tasks()
    progress.begin(Counter(task.model.name for task in tasks))
    for task, result in zip(tasks, outcome.results, strict=True):
        progress.started(task)
        time.sleep(0.01)
        progress.finished(task, result)
    best = max(result.vali["ndcg@10"] for result in outcome.results)
    last = terminal.getvalue().split("\x1b[J")[-1]
    assert "[4/4]" in last
    assert f"best  stub  ndcg@10 {best:.4f} on validation, 1 fold" in last
    progress.end()
    assert terminal.getvalue().endswith("\x1b[J")


def test_the_time_left_is_that_of_trainings_alone(stub_run, monkeypatch):
    plan, _, outcome = stub_run(["stub", "stub?noise=5"], folds=(1, 2))
    tasks = plan.tasks()
    results = {(r.model, r.fold, r.setting["C"]): r for r in outcome.results}
    clock = iter(range(0, 100_000, 60))  # a minute between all that happens, as on a loaded machine
    monkeypatch.setattr(time, "monotonic", lambda: next(clock))
    progress = experiment.Progress(None, "ndcg@10", 2)
    progress.begin(Counter(task.model.name for task in tasks))
    for task, seconds in zip(tasks[:3], (2.0, 6.0, 10.0), strict=True):
        assert progress.seconds_left() is None  # as long as a model has not been trained once
        progress.started(task)
        progress.finished(task, replace(results[task.model.name, task.fold, task.setting["C"]], seconds=seconds))
    # Left are two of 4 seconds in the mean and three of 10, on two processes.
    assert progress.seconds_left() == (2 * 4 + 3 * 10) / 2
    # One that has been running for a minute is as good as done.
    progress.started(tasks[3])
    assert progress.seconds_left() == (2 * 4 + 2 * 10) / 2
