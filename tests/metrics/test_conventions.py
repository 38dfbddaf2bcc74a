"""The parameter sets of `metrics.conventions` against the tools: ties, short lists, empty queries, weights."""

import math

import numpy as np
import pytest

from boostlist import Queries, metrics


def random_lists(grades=4, n_queries=60, seed=0):
    """Lists of 1 to 30 documents, a seventh without relevant ones; few distinct scores, so that many tie."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 31, n_queries)
    query = np.repeat(np.arange(n_queries), sizes)
    labels = np.where(query % 7 == 0, 0, rng.integers(0, grades, len(query)))
    # Quarters are exact in float32, in which XGBoost and trec_eval keep scores.
    return labels, sizes, rng.integers(0, 12, len(query)) / 4


def ours(tool, name):
    return metrics.get(name, **metrics.conventions(tool)[name.partition("@")[0]])


def host_mean(metric, scores, queries):
    """The mean as both hosts take it: their NDCG counts a query without relevant documents 1, whatever its weight."""
    if not isinstance(metric, metrics.NDCG):
        return metric.mean(scores, queries)
    bound = metric.bind(queries)
    values = np.where(bound.empty, metric.empty, queries.weight * bound.per_query(scores))
    return values.sum() / queries.weight.sum()


@pytest.mark.parametrize("weighted", [False, True])
def test_lightgbm(weighted):
    lgb = pytest.importorskip("lightgbm")
    labels, sizes, scores = random_lists()
    weight = np.random.default_rng(1).integers(1, 9, len(sizes)) / 4 if weighted else None  # exact in float32
    data = lgb.Dataset(
        np.zeros((len(labels), 1)),
        labels,
        group=sizes,
        init_score=scores,
        weight=None if weight is None else np.repeat(weight, sizes),
        params={"feature_pre_filter": False, "verbose": -1},
    )
    params = {"objective": "lambdarank", "metric": ["ndcg", "map"], "eval_at": [1, 2, 5, 10, 100], "verbose": -1}
    theirs = {name: value for _, name, value, _ in lgb.Booster(params, data).eval_train()}
    assert len(theirs) == 10
    queries = Queries.from_sizes(labels, sizes, weight)
    for name, value in theirs.items():
        assert host_mean(ours("lightgbm", name), scores, queries) == pytest.approx(value, abs=1e-9), name


def test_lightgbm_map_counts_labels_above_one_half():
    lgb = pytest.importorskip("lightgbm")
    labels, scores = np.array([0.5, 0.75, 0.0, 0.25]), np.array([4.0, 3.0, 2.0, 1.0])
    data = lgb.Dataset(np.zeros((4, 1)), labels, group=[4], init_score=scores, params={"verbose": -1})
    params = {"objective": "none", "metric": "map", "eval_at": [4], "verbose": -1}
    ((_, name, value, _),) = lgb.Booster(params, data).eval_train()
    assert ours("lightgbm", name).mean(scores, Queries.from_sizes(labels, [4])) == pytest.approx(value, abs=1e-12)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    ("grades", "names"),
    [
        (4, ["ndcg@1", "ndcg@3", "ndcg@10", "ndcg@100", "ndcg"]),
        (2, ["map@1", "map@3", "map@10", "map", "pre@1", "pre@5", "pre@20", "ndcg@5"]),
    ],
)
def test_xgboost(grades, names, weighted):
    xgb = pytest.importorskip("xgboost")
    labels, sizes, scores = random_lists(grades)
    weight = np.random.default_rng(1).integers(1, 9, len(sizes)) / 4 if weighted else None  # exact in float32
    data = xgb.DMatrix(np.zeros((len(labels), 1)), labels, base_margin=scores)
    data.set_group(sizes)
    if weighted:
        data.set_weight(weight)
    theirs = {}
    params = {"objective": "rank:ndcg", "eta": 0, "eval_metric": names}
    xgb.train(params, data, 1, evals=[(data, "data")], evals_result=theirs, verbose_eval=False)
    queries = Queries.from_sizes(labels, sizes, weight)
    for name in names:
        metric = ours("xgboost", name.replace("pre", "p"))
        assert host_mean(metric, scores, queries) == pytest.approx(theirs["data"][name][0], abs=1e-9), name


def test_sklearn():
    from sklearn.metrics import dcg_score, ndcg_score

    labels, sizes, scores = random_lists()
    queries = Queries.from_sizes(labels, sizes)
    for name, theirs in (("ndcg", ndcg_score), ("dcg", dcg_score)):
        for k in (1, 3, 10, 100, None):
            values = ours("sklearn", name if k is None else f"{name}@{k}").per_query(scores, queries)
            for q in np.flatnonzero(sizes > 1):  # ndcg_score refuses single documents
                rows = slice(queries.start[q], queries.start[q + 1])
                expected = theirs(labels[None, rows], scores[None, rows], k=k)
                assert values[q] == pytest.approx(expected, abs=1e-9)


def test_trec():
    pytrec_eval = pytest.importorskip("pytrec_eval")
    labels, sizes, scores = random_lists()
    queries = Queries.from_sizes(labels, sizes)
    # trec_eval ranks equal scores by document name, descending: these names descend with the rows.
    names = [f"d{len(labels) - row:05d}" for row in range(len(labels))]
    runs, qrels = {}, {}
    for q in range(len(sizes)):
        rows = range(queries.start[q], queries.start[q + 1])
        qrels[f"q{q}"] = {names[row]: int(labels[row]) for row in rows}
        runs[f"q{q}"] = {names[row]: float(scores[row]) for row in rows}
    cuts = "5,10,100"
    measures = {f"{name}.{cuts}" for name in ("ndcg_cut", "P", "recall", "map_cut")} | {"ndcg", "map", "recip_rank"}
    theirs = pytrec_eval.RelevanceEvaluator(qrels, measures).evaluate(runs)
    pairs = [("ndcg", "ndcg"), ("map", "map"), ("mrr", "recip_rank")]
    for k in cuts.split(","):
        pairs += [(f"{a}@{k}", f"{b}_{k}") for a, b in (("ndcg", "ndcg_cut"), ("p", "P"), ("recall", "recall"))]
        pairs += [(f"map@{k}", f"map_cut_{k}")]
    for name, theirs_name in pairs:
        expected = [theirs[f"q{q}"][theirs_name] for q in range(len(sizes))]
        np.testing.assert_allclose(ours("trec", name).per_query(scores, queries), expected, atol=1e-9, err_msg=name)


# LETOR's Eval-Score-3.0.pl and Eval-Score-4.0.pl, worked by hand. Grades 0, 1, 2 have gains 0, 1, 3; ranks 1 to 5 have
# discounts 1, 1, 1/log2(3), 1/2, 1/log2(5). Query 1, ranked: 1, 0, 2, 0, 1 (rows 2 and 3 tie and stay in row order).
# Query 2: 0, 2. Query 3 has no relevant document.
LETOR_LABELS, LETOR_SIZES = [1, 0, 2, 0, 1, 2, 0, 0, 0], [5, 2, 2]
LETOR_SCORES = [5.0, 4.0, 4.0, 1.0, 0.5, 0.1, 0.2, 1.0, 2.0]
D3, D5 = 1 / math.log2(3), 1 / math.log2(5)
LETOR_BOTH = {
    "ndcg@1": [1 / 3, 0, 0],
    "ndcg@2": [1 / 4, 1, 0],
    "ndcg@3": [(1 + 3 * D3) / (4 + D3), 0, 0],  # lists of two documents score 0 at rank 3
    "ndcg@5": [(1 + 3 * D3 + D5) / (4 + D3), 0, 0],
    "map": [(1 + 2 / 3 + 3 / 5) / 3, 1 / 2, 0],
    "p@2": [1 / 2, 1 / 2, 0],
}


@pytest.mark.parametrize(
    ("tool", "values"),
    [
        ("letor3", {**LETOR_BOTH, "p@3": [2 / 3, 0, 0]}),
        ("letor4", {**LETOR_BOTH, "p@3": [2 / 3, 1 / 3, 0], "avgndcg": None}),
    ],
)
def test_letor(tool, values):
    queries = Queries.from_sizes(LETOR_LABELS, LETOR_SIZES)
    if "avgndcg" in values:  # "MeanNDCG" of version 4.0: the mean over all ranks of the list
        first = (1 / 3 + 1 / 4 + (1 + 3 * D3) / (4 + D3) * 2 + (1 + 3 * D3 + D5) / (4 + D3)) / 5
        values["avgndcg"] = [first, (0 + 1) / 2, 0]
    for name, expected in values.items():
        np.testing.assert_allclose(
            ours(tool, name).per_query(LETOR_SCORES, queries), expected, atol=1e-14, err_msg=name
        )


def test_the_tools_disagree():
    """The same scores have another NDCG@5 by every convention but LightGBM's and XGBoost's."""
    labels, sizes, scores = random_lists(grades=3)
    queries = Queries.from_sizes(labels, sizes)
    values = {tool: ours(tool, "ndcg@5").mean(scores, queries) for tool in ("lightgbm", "sklearn", "letor4", "trec")}
    assert len({round(value, 3) for value in values.values()}) == 4


def test_unknown_tool():
    with pytest.raises(ValueError, match=r"no conventions are known for 'catboost'; known are lightgbm, xgboost"):
        metrics.conventions("catboost")


def test_conventions_are_copies():
    metrics.conventions("trec")["ndcg"]["gain"] = "exp2"
    assert metrics.conventions("trec")["ndcg"]["gain"] == "linear"
