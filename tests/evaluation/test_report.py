from __future__ import annotations

import html
import html.parser
import itertools
import json
import re
import shutil
import subprocess
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from boostlist.evaluation import report, tables
from boostlist.evaluation.drawing import Drawing
from boostlist.evaluation.figures import _focus, mean_curve
from boostlist.evaluation.palette import dark, distance, light
from boostlist.evaluation.panel import Model
from boostlist.evaluation.report import breakdowns, default_pair, verdict, write_report
from boostlist.evaluation.summary import summarize, wins_losses
from boostlist.evaluation.training import Failure
from tests.evaluation.made_up import FOLDS, GRID, LEVEL, NAMES, QUERIES, made_up

CHROMIUM = next(
    (path for name in ("chromium", "chromium-browser", "google-chrome", "chrome") if (path := shutil.which(name))), None
)
VOID = {"meta", "link", "br", "wbr", "img", "input", "hr"}


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    data = folder / "letters & <more>.txt"
    data.write_text("content")
    summary = summarize(made_up(data))
    page = write_report(summary, folder, command="boostlist compare 'a&b' --models <x>", jobs=2)
    return summary, page


class Balance(html.parser.HTMLParser):
    """Checks that elements are closed in order, and collects ids and addresses."""

    def __init__(self):
        super().__init__()
        self.open, self.ids, self.addresses, self.tags, self.attributes = [], [], [], [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        if tag not in VOID:
            self.open.append(tag)
        found = dict(attrs)
        self.attributes += found
        if "id" in found:
            self.ids.append(found["id"])
        self.addresses += [value for name, value in attrs if name in ("src", "href", "xlink:href")]

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_the_page_is_well_formed_and_needs_nothing_else(written):
    text = written[1].read_text(encoding="utf-8")
    balance = Balance()
    balance.feed(text)
    assert balance.open == []
    assert len(balance.ids) == len(set(balance.ids))
    assert all(address.startswith(("#", "data:")) for address in balance.addresses)
    # What refers to an id within the page finds it.
    assert {address[1:] for address in balance.addresses if address.startswith("#")} <= set(balance.ids)
    assert not re.search(r"url\((?!#)|@import", text)


def test_the_page_has_every_section_and_figure(written):
    text = written[1].read_text(encoding="utf-8")
    for section in ("ranking", "curves", "queries", "where", "families", "repeat"):
        assert f'<section id="{section}">' in text
    for figure in (
        "bars",
        "differences",
        "ndcg",
        "ndcg-differences",
        "learning",
        "convergence",
        "winloss",
        "same-loss",
        "folds",
    ):
        assert re.search(rf'<svg [^>]*id="{figure}"', text), figure
    assert "Tree against kernel" in text
    assert "Bold: beyond 1.96 standard errors." in text


def test_what_comes_from_outside_is_escaped(written):
    text = written[1].read_text(encoding="utf-8")
    assert "boostlist compare &#39;a&amp;b&#39; --models &lt;x&gt;" in text
    assert "letters &amp; &lt;more&gt;" in text
    assert "<more>" not in text
    assert "<x>" not in text


ATTACK = """x"'><img src=x onerror=document.title='taken'></script><script>document.title='taken'</script>$x^#fe0001"""


@pytest.fixture(scope="module")
def attacked(tmp_path_factory):
    """A page in which every text from outside is hostile: models, parameters, folder, query ids, reasons, command."""
    folder = tmp_path_factory.mktemp("attack")
    data = folder / f"{ATTACK.replace('/', '|')}.txt"
    data.write_text("content")
    losses = (
        "lightgbm:lambdarank?extra=",
        "lightgbm:cs_listmle?extra=",
        "kernel:cs_listmle?kernel=",
        "linear:wub?loss=",
    )
    models = tuple(Model(*name.partition("?")[0].split(":"), ((ATTACK, ATTACK),)) for name in losses)
    outcome = made_up(data, models=models, grid={name: {**axes, ATTACK: [ATTACK]} for name, axes in GRID.items()})
    outcome.trouble = ATTACK
    for facts in outcome.facts.values():
        facts.qid[:] = ATTACK
        facts.parts["train"]["grades"][ATTACK] = 1
    outcome.failures.append(Failure(outcome.plan.tasks()[-1], ATTACK))
    outcome.results.pop()
    return write_report(summarize(outcome), folder, command=ATTACK)


def test_hostile_names_stay_text(attacked):
    text = attacked.read_text(encoding="utf-8")
    balance = Balance()
    balance.feed(text)
    assert balance.open == []
    assert "img" not in balance.tags
    assert balance.tags.count("script") == 2
    assert not any(name.startswith("on") for name in balance.attributes)
    # Names are in the figures as they are: neither a colour nor a formula is made of them.
    assert text.count("$x^#fe0001</text>") > 5


def test_figures_take_their_colours_and_font_from_the_page(written):
    text = written[1].read_text(encoding="utf-8")
    body = text[text.index("<main>") :]
    drawings = re.findall(r"<svg.*?</svg>", body, flags=re.DOTALL)
    assert len(drawings) == 2 * 8 + 1
    for drawing in drawings:
        assert not re.search(r"#[0-9a-f]{6}", drawing)
        assert "DejaVu" not in drawing
        assert "var(--" in drawing
    used = set(re.findall(r"var\(--([\w-]+)\)", text))
    styles = text[text.index("<style>") : text.index("</style>")]
    assert used - {"hue"} <= set(re.findall(r"--([\w-]+):", styles))


def test_the_same_figure_twice_is_the_same_text():
    def draw(axes, palette):
        axes.plot([1, 2], [3, 4])

    assert Drawing("a", "t", 80, draw).svg(1) == Drawing("a", "t", 80, draw).svg(1)


def test_files_beside_the_page(written):
    summary, page = written
    folder = page.parent
    frame = pd.read_parquet(folder / "per_query.parquet")
    assert len(frame) == len(NAMES) * len(FOLDS) * QUERIES
    assert frame.groupby("model")["err"].mean()["lightgbm:lambdarank"] == pytest.approx(summary.baseline.mean("err"))
    results = pd.read_csv(folder / "results.csv")
    assert results["chosen"].sum() == len(NAMES) * len(FOLDS)
    assert "**lightgbm:cs_listmle**" in (folder / "results.md").read_text()


def test_embedded_values_give_the_counts_of_the_table(written):
    summary, page = written
    text = page.read_text(encoding="utf-8")
    data = json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)[1])
    first, second = default_pair(summary)
    assert data["first"] == [first.name, second.name] == ["lightgbm:cs_listmle", "lightgbm:lambdarank"]
    a, b = (data["values"]["ndcg@10"][data["models"].index(entry.name)] for entry in (first, second))
    counts = sum(x > y for x, y in zip(a, b, strict=True)), sum(x < y for x, y in zip(a, b, strict=True))
    assert counts == wins_losses(first.pooled("ndcg@10"), second.pooled("ndcg@10"))
    assert f"{counts[0]} : {counts[1]}</td>" in text


def test_verdict(written):
    found = verdict(written[0])
    assert found.best == "lightgbm:cs_listmle"
    assert re.fullmatch(r"0\.0\d+ above lightgbm:lambdarank: a significant difference \(p < 0\.001 .*\)", found.text)


def test_breakdowns(written):
    summary = written[0]
    by_length = breakdowns(summary)[0]
    entry, cells = by_length.rows[0]
    rows = by_length.bins[0].rows
    difference = (entry.pooled("ndcg@10") - summary.baseline.pooled("ndcg@10"))[rows].mean()
    assert cells[0].text.replace("−", "-") == f"{difference:+.3f}"
    assert report._cell(np.array([1e-4, -3e-4])).text == "0.000"
    assert cells[0].colour == pytest.approx(max(-1, min(1, difference / 0.05)))


@pytest.mark.parametrize("errors", [1.95, 1.97])
def test_bold_is_what_is_beyond_the_95_per_cent_of_a_normal_distribution(errors):
    values = np.array([-1.0, 1.0, -1.0, 1.0]) * np.sqrt(3 / 4)  # standard deviation 1, so the standard error is 1/2
    assert report._cell(values + errors / 2).sure == (errors > 1.96)
    # Queries that do not count are not counted.
    assert report._cell(np.append(values + errors / 2, [np.nan] * 12)).sure == (errors > 1.96)


def test_a_scale_is_not_flattened_by_what_is_far_away():
    assert _focus([1.0, 1.0, 2.0, 10.0]) == pytest.approx(2.2)
    assert _focus([1.0, 2.0, 3.0, 4.0]) == pytest.approx(4.4)


def test_the_first_pair_is_the_best_and_the_baseline(tmp_path):
    data = tmp_path / "d.txt"
    data.write_text("x")
    outcome = made_up(data, ["linear:cs_listmle", *NAMES])
    summary = summarize(outcome)
    assert summary.entries[-1] is summary.baseline
    assert [entry.name for entry in default_pair(summary)] == ["lightgbm:cs_listmle", "linear:cs_listmle"]


def test_queries_that_do_not_count(tmp_path):
    data = tmp_path / "d.txt"
    data.write_text("x")
    outcome = made_up(data)
    for result in outcome.results:
        for values in result.test.values():
            values[:10] = np.nan  # the ten shortest lists of each fold, and so a whole bin
    summary = summarize(outcome)
    assert f"Means over {len(FOLDS) * (QUERIES - 10)} test queries" in tables.footnote(summary)
    by_length = breakdowns(summary)[0]
    assert by_length.base[0] == by_length.rows[0][1][0].text == "–"
    text = write_report(summary, tmp_path).read_text(encoding="utf-8")
    content = json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)[1])
    assert content["values"]["ndcg@10"][0][9] is None
    assert content["values"]["ndcg@10"][0][10] == pytest.approx(summary.entries[0].pooled("ndcg@10")[10], abs=1e-5)


@pytest.mark.parametrize(
    "names",
    [
        ("linear:cs_listmle",),
        ("lightgbm:cs_listmle", "lightgbm:lambdarank"),
        ("kernel:cs_listmle", "linear:cs_listmle"),
    ],
)
def test_panels_of_every_kind_have_a_page(tmp_path, names):
    data = tmp_path / "d.txt"
    data.write_text("x")
    page = write_report(summarize(made_up(data, names)), tmp_path)
    balance = Balance()
    balance.feed(page.read_text(encoding="utf-8"))
    assert balance.open == []


def test_twelve_models_have_colours_and_lines_of_their_own(tmp_path):
    data = tmp_path / "d.txt"
    data.write_text("x")
    losses = (
        "listmle",
        "weighted_pl",
        "cs_rglist",
        "reverse_pl",
        "gbrank",
        "group_pl",
        "listnet",
        "isotonic",
        "pointwise",
        "wub",
        "wpll",
        "cs_listmle",
    )
    page = write_report(summarize(made_up(data, [f"lightgbm:{loss}" for loss in losses])), tmp_path)
    text = page.read_text(encoding="utf-8")
    for figure in ("ndcg", "bars"):
        drawing = text[text.index(f'id="{figure}"') :]
        drawing = drawing[: drawing.index("</svg>")]
        assert set(re.findall(r"var\(--s(\d+)\)", drawing)) == {str(i) for i in range(12)}
    assert set(re.findall(r"background:var\(--s(\d+)\)", text)) == {str(i) for i in range(12)}


def test_colours_of_many_models_are_different():
    for palette in (light(40), dark(40)):
        apart = [distance(a, b) for a, b in itertools.combinations(palette.models, 2)]
        assert min(apart) > 20
        assert len(set(palette.models)) == 40
    assert min(distance(a, b) for a, b in itertools.combinations(light(12).models, 2)) > 70
    assert light(12).models == light(40).models[:12]
    assert len(light(60).models) == 60


def test_a_fold_that_has_stopped_stays_at_the_trees_it_keeps(tmp_path):
    outcome = made_up(tmp_path / "d.txt", names=["lightgbm:lambdarank"])
    first, second = outcome.results[:2]
    first = replace(first, history={"rounds": [0.1, 0.5, 0.4, 0.3]}, chosen_rounds=2)
    second = replace(second, history={"rounds": [0.2, 0.3, 0.4, 0.7, 0.6]}, chosen_rounds=4)
    np.testing.assert_allclose(mean_curve([first, second]), [0.15, 0.4, 0.45, 0.6])


def notes_of(outcome):
    """Return what is written beside the titles of figures, by title."""
    outcome.plan.source.path.write_text("x")
    page = report.render(summarize(outcome), "", 1)
    return dict(re.findall(r"<figcaption><b>(.*?)</b> <span>(.*?)</span>", page))


def test_intervals_of_several_differences_are_said_not_to_be_corrected(tmp_path):
    said = "intervals, unlike p, are not corrected for the number of models"
    assert said in notes_of(made_up(tmp_path / "d.txt"))["Against the baseline"]
    # Holm's method leaves a single p-value as it is.
    assert said not in notes_of(made_up(tmp_path / "d.txt", NAMES[:2]))["Against the baseline"]


def test_what_is_further_away_is_explained_only_where_something_is(tmp_path, monkeypatch):
    names = [*NAMES[:2], "lightgbm:wub", "lightgbm:listmle"]
    monkeypatch.setitem(LEVEL, "lightgbm:wub", 0.63)
    monkeypatch.setitem(LEVEL, "lightgbm:listmle", 0.62)
    note = notes_of(made_up(tmp_path / "d.txt", names))["Against the baseline"]
    assert "further away" not in note
    monkeypatch.setitem(LEVEL, "lightgbm:wub", 0.2)
    note = notes_of(made_up(tmp_path / "d.txt", names))["Against the baseline"]
    assert "◂ ▸ further away" in note


def test_an_ensemble_is_said_to_have_no_learning_curve(tmp_path):
    grid = {**GRID, "ensemble": {"n_bags": [1]}}
    outcome = made_up(tmp_path / "d.txt", [*NAMES, "ensemble"], grid=grid)
    outcome.results = [replace(each, history={}) if each.model == "ensemble" else each for each in outcome.results]
    assert "; ensemble has no curve, since members stop" in notes_of(outcome)["Learning"]
    assert "no curve" not in notes_of(made_up(tmp_path / "d.txt"))["Learning"]


def test_a_missing_library_is_named(monkeypatch):
    monkeypatch.setattr(report, "_LIBRARIES", ("jinja2", "no_such_library"))
    with pytest.raises(ImportError, match=r'no_such_library: pip install "boostlist\[report\]"'):
        report.require_libraries()


def browse(page, profile):
    command = [
        CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
        "--disable-background-networking", "--disable-component-update", "--disable-sync", "--enable-logging=stderr",
        f"--user-data-dir={profile}", "--window-size=1280,2000", "--dump-dom", page.as_uri(),
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=180, check=True)
    return done.stdout, [line for line in done.stderr.splitlines() if "CONSOLE" in line]


FRAMES = """<!doctype html><body>{frames}<script>
addEventListener("load", () => {{
  const found = [...document.querySelectorAll("iframe")].map((frame) => {{
    const page = frame.contentDocument, all = (what) => [...page.querySelectorAll(what)];
    const texts = all("figure svg text").filter((text) => text.getClientRects().length && !text.closest("#win-loss"));
    const tables = all("main > section > .scroll, .pair .scroll");
    return {{
      hidden: Math.max(...tables.map((each) => each.scrollWidth - each.clientWidth)),
      across: page.documentElement.scrollWidth - frame.clientWidth,
      text: Math.min(...texts.map((text) => text.getBoundingClientRect().height)),
      figures: all("figure > svg").filter((svg) => svg.getClientRects().length).length,
    }};
  }});
  document.body.innerHTML = `<pre>${{JSON.stringify(found)}}</pre>`;
}});
</script>"""


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed")
def test_a_screen_shows_five_metrics_and_a_phone_text_that_can_be_read(tmp_path):
    data = tmp_path / "d.txt"
    data.write_text("x")
    names = [*NAMES, "lightgbm:weighted_pl?num_leaves=15&learning_rate=0.05"]
    outcome = made_up(data, names, metrics=("ndcg@10", "err", "map", "p@10", "mrr"))
    page = write_report(summarize(outcome), tmp_path).read_text(encoding="utf-8")
    page = html.escape(re.sub(r"<meta http-equiv[^>]*>", "", page))  # so that a script may measure it
    frames = "".join(f'<iframe width="{width}" height="900" srcdoc="{page}"></iframe>' for width in (1280, 390))
    (tmp_path / "frames.html").write_text(FRAMES.format(frames=frames), encoding="utf-8")
    dom, complaints = browse(tmp_path / "frames.html", tmp_path / "profile")
    assert complaints == []
    screen, phone = json.loads(re.search(r"<pre>(.*?)</pre>", dom)[1])
    assert screen["hidden"] == 0
    assert max(screen["across"], phone["across"]) <= 0
    assert screen["figures"] == phone["figures"] > 7
    assert phone["text"] > 12
    assert screen["text"] > 12


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed")
def test_a_browser_opens_it_without_complaint(written, attacked, tmp_path):
    page = written[1]
    dom, complaints = browse(page, tmp_path / "profile")
    assert complaints == []
    # The script has drawn the comparison of the first pair, and made the table sortable.
    score = re.search(r'<p class="score"[^>]*>(.*?)</p>', dom, re.DOTALL)[1]
    assert score.startswith("<b>lightgbm:cs_listmle</b> is better in <b>")
    assert dom.count("<option") == 2 * len(NAMES) + 2
    assert re.search(r"<th class=\"number\"><button", dom)

    dom, complaints = browse(attacked, tmp_path / "attacked")
    assert complaints == []
    assert "<title>taken" not in dom
    assert "<img" not in dom

    # What complaints are is seen where there is one: a script other than ours is not run.
    broken = tmp_path / "broken.html"
    broken.write_text(page.read_text(encoding="utf-8").replace('"use strict";', '"use strict"; undefined_name();', 1))
    dom, complaints = browse(broken, tmp_path / "other")
    assert any("Content Security Policy" in line for line in complaints)
    assert "<option" not in dom
