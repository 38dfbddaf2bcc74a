"""Ranking answers to questions
============================

Rank answers to questions by words alone: bilinear and distance functionals under the three losses of table 4.

    python examples/rank_answers.py [--questions 1500] [--seed 0]
    python examples/rank_answers.py --table answers.csv
    python examples/rank_answers.py --letor questions.txt answers.txt

After Tran, Phung, Venkatesh, *Learning Rank Functionals: An Empirical Study* (2011), who ranked answers of Yahoo!
Answers (MRR .55 at best): the 3,000 most frequent words of questions and of answers, but for stop words, as separate
features, and matrices A and B into 10 dimensions. C is chosen on a development set.

``--table`` takes a CSV file with columns question, answer and best, which is 1 for the best answer to its question and
0 for others; the answers to a question stand in adjacent rows. ``--letor`` takes two LETOR files with the same labels
and query ids in the same order, the first with features of the question, the second with those of the answers. Both are
cut into 80 % of the questions for training, 10 % for development and 10 % for testing.

Without either the text is generated: every topic has words of its own, others for questions than for answers, and the
best answer is the one on the question's topic. Common words and off-topic slips blur this. Questions and answers share
no features, so that no overlap of words helps: A and B must learn which words belong together.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from scipy.sparse import csr_matrix, hstack
from sklearn.feature_extraction.text import TfidfVectorizer

from boostlist import BilinearRanker, DistanceRanker
from boostlist.datasets import RankingData, load_letor
from boostlist.losses import MulticlassLogistic, PairwiseLogistic, SmoothMRR
from boostlist.metrics import MRR

TOPICS, WORDS, COMMON, ANSWERS = 12, 25, 60, 6
VOCABULARY = 3000
CHOICES = (1e3, 1e4, 1e5, 1e6)
LOSSES = {
    "multiclass logistic": MulticlassLogistic(),
    "smoothed MRR": SmoothMRR(),
    "pairwise logistic": PairwiseLogistic(),
}

Parts = tuple[RankingData, RankingData, RankingData]
"""Training, development and test data; a row has the features of the question, then those of the answer."""


def text(rng: np.random.Generator, kind: str, topic: int, length: int) -> str:
    """Return words of a topic, mixed with common words and slips into other topics."""
    words = []
    for _ in range(length):
        draw = rng.random()
        about = topic if draw < 0.45 else int(rng.integers(TOPICS))
        common = f"common{rng.integers(COMMON)}"
        words.append(common if draw > 0.6 else f"{kind}{about}word{rng.integers(WORDS)}")
    return " ".join(words)


def generated(questions: int, seed: int) -> pd.DataFrame:
    """Return questions, ANSWERS answers to each, and which is the one on the question's topic."""
    rng = np.random.default_rng(seed)
    rows = []
    for _ in range(questions):
        topics = rng.choice(TOPICS, ANSWERS, replace=False)
        best = int(rng.integers(ANSWERS))
        asked = text(rng, "asking", int(topics[best]), 8)
        rows += [(asked, text(rng, "answering", int(topic), 12), int(i == best)) for i, topic in enumerate(topics)]
    return pd.DataFrame(rows, columns=["question", "answer", "best"])


def cut(rows: pd.DataFrame) -> list[pd.DataFrame]:
    """Return 80, 10 and 10 % of the questions, with their answers."""
    number = rows["question"].ne(rows["question"].shift()).cumsum() - 1
    order = np.random.default_rng(0).permutation(number.iloc[-1] + 1)
    part = np.digitize(order[number] / len(order), (0.8, 0.9))
    return [rows[part == k] for k in range(3)]


def from_text(parts: list[pd.DataFrame]) -> tuple[Parts, int]:
    """Return the data of tables of text, with weights of words as features, and the number of words of questions."""
    options = {"max_features": VOCABULARY, "stop_words": "english"}
    asking = TfidfVectorizer(**options).fit(parts[0]["question"].drop_duplicates())
    answering = TfidfVectorizer(**options).fit(parts[0]["answer"])

    def data(rows: pd.DataFrame) -> RankingData:
        X = hstack([asking.transform(rows["question"]), answering.transform(rows["answer"])], format="csr")
        qid = rows["question"].ne(rows["question"].shift()).cumsum().to_numpy()
        return RankingData(csr_matrix(X), rows["best"].to_numpy(np.float64), qid)

    train, development, test = map(data, parts)
    return (train, development, test), len(asking.vocabulary_)


def from_table(path: Path) -> tuple[Parts, int]:
    """Read a table of questions and answers."""
    rows = pd.read_csv(path)
    missing = {"question", "answer", "best"} - set(rows.columns)
    if missing:
        sys.exit(f"{path} has no column {', '.join(sorted(missing))}; it needs question, answer and best")
    return from_text(cut(rows))


def from_letor(questions: Path, answers: Path) -> tuple[Parts, int]:
    """Read two files of features of the same rows."""
    asked, given = load_letor(questions), load_letor(answers)
    if not (np.array_equal(asked.y, given.y) and np.array_equal(asked.qid, given.qid)):
        sys.exit(f"{questions} and {answers} differ in their labels or query ids; they must have the same rows")
    X = hstack([csr_matrix(asked.X), csr_matrix(given.X)], format="csr")
    train, development, test = RankingData(X, given.y, given.qid).split(0.8, 0.1, 0.1)
    return (train, development, test), asked.n_features


def read(arguments: argparse.Namespace) -> tuple[Parts, int]:
    """Read or generate the data."""
    if arguments.letor:
        return from_letor(*arguments.letor)
    if arguments.table:
        return from_table(arguments.table)
    sizes = (arguments.questions, 300, 500)
    return from_text([generated(size, arguments.seed + k) for k, size in enumerate(sizes)])


def mrr(ranker: BilinearRanker | DistanceRanker, data: RankingData) -> float:
    return MRR().mean(ranker.predict(data.X), data.queries)


def draw(found: dict[str, list[float]], chance: float) -> None:
    """Show the MRR of each function and loss, beside that of answers in any order."""
    _, ax = plt.subplots(figsize=(7, 3.8), layout="constrained")
    width = 0.8 / len(LOSSES)
    for k, loss in enumerate(LOSSES):
        at = np.arange(len(found)) + (k - (len(LOSSES) - 1) / 2) * width
        bars = ax.bar(at, [values[k] for values in found.values()], 0.92 * width, label=loss)
        ax.bar_label(bars, fmt="%.3f", padding=2, fontsize=8)
    ax.axhline(chance, color="grey", ls=":", label="by chance")
    ax.set(xticks=range(len(found)), xticklabels=list(found), ylabel="MRR on the test questions", ylim=(0, 1))
    ax.legend(ncols=2, loc="upper center", bbox_to_anchor=(0.5, -0.1), frameon=False)
    plt.show()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--questions", type=int, default=1500, help="how many to generate for training")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--table", type=Path, metavar="CSV", help="questions and answers")
    parser.add_argument("--letor", type=Path, nargs=2, metavar=("QUESTIONS", "ANSWERS"), help="features of both")
    arguments = parser.parse_args()
    try:
        parts, words = read(arguments)
    except (OSError, ValueError) as error:
        sys.exit(str(error).splitlines()[0])
    train, development, test = parts
    print(f"{len(train):,} answers to {train.n_queries:,} questions; {words:,} + {train.n_features - words:,} features")
    chance = np.mean([np.mean(1 / np.arange(1, size + 1)) for size in test.queries.sizes])
    print(f"MRR by chance {chance:.3f}\n")
    print(f"{'':<12}" + "".join(f"{name:>22}" for name in LOSSES))
    found: dict[str, list[float]] = {}
    for name, kind in {"bilinear": BilinearRanker, "distance": DistanceRanker}.items():
        found[name] = []
        for loss in LOSSES.values():
            rankers = [
                kind(loss, n_query_features=words, C=C, tol=0.01 * C**0.5, random_state=0).fit(
                    train.X, train.y, qid=train.qid
                )
                for C in CHOICES
            ]
            found[name].append(mrr(max(rankers, key=lambda ranker: mrr(ranker, development)), test))
        print(f"{name:<12}" + "".join(f"{value:22.3f}" for value in found[name]), flush=True)
    draw(found, float(chance))


if __name__ == "__main__":
    main()
