"""Ranking answers to questions
============================

Rank answers to questions by words alone: bilinear and distance functionals under the three losses of table 4.

    python examples/rank_answers.py [--questions 1500] [--seed 0]

After Tran, Phung, Venkatesh, *Learning Rank Functionals: An Empirical Study* (2011), who ranked answers of Yahoo!
Answers (MRR .55 at best). The text here is generated: every topic has words of its own, others for questions than for
answers, and the best answer is the one on the question's topic. Common words and off-topic slips blur this. Questions
and answers share no features, so that no overlap of words helps: A and B must learn which words belong together. C is
chosen on a development set.

The picture shows what the functionals have learned: how they score an answer made of one topic's words to a question
made of another's. Nobody told them that there are topics.
"""

from __future__ import annotations

import argparse

import matplotlib.pyplot as plt
import numpy as np
from scipy.sparse import csr_matrix, hstack, vstack
from sklearn.feature_extraction.text import TfidfVectorizer

from boostlist import BilinearRanker, DistanceRanker, Queries
from boostlist.losses import MulticlassLogistic, PairwiseLogistic, SmoothMRR
from boostlist.metrics import MRR

TOPICS, WORDS, COMMON, ANSWERS = 12, 25, 60, 6
CHOICES = (100.0, 1000.0, 10000.0)
LOSSES = {
    "multiclass logistic": MulticlassLogistic(),
    "smoothed MRR": SmoothMRR(),
    "pairwise logistic": PairwiseLogistic(),
}


def text(rng: np.random.Generator, kind: str, topic: int, length: int) -> str:
    """Return words of a topic, mixed with common words and slips into other topics."""
    words = []
    for _ in range(length):
        draw = rng.random()
        about = topic if draw < 0.45 else int(rng.integers(TOPICS))
        common = f"common{rng.integers(COMMON)}"
        words.append(common if draw > 0.6 else f"{kind}{about}word{rng.integers(WORDS)}")
    return " ".join(words)


def make(questions: int, seed: int) -> tuple[list[str], list[str], np.ndarray]:
    """Return questions, ANSWERS answers to each, and labels: 1 for the answer on the question's topic."""
    rng = np.random.default_rng(seed)
    asked, answers, labels = [], [], []
    for _ in range(questions):
        topics = rng.choice(TOPICS, ANSWERS, replace=False)
        best = int(rng.integers(ANSWERS))
        asked.append(text(rng, "asking", int(topics[best]), 8))
        answers += [text(rng, "answering", int(topic), 12) for topic in topics]
        labels += [float(i == best) for i in range(ANSWERS)]
    return asked, answers, np.array(labels)


def design(asked: csr_matrix, answers: csr_matrix) -> csr_matrix:
    """Return a row for each answer: the question's features, then its own."""
    repeated = vstack([asked[i] for i in np.repeat(np.arange(asked.shape[0]), ANSWERS)])
    return hstack([repeated, answers], format="csr")


def mrr(ranker: BilinearRanker | DistanceRanker, X: csr_matrix, y: np.ndarray) -> float:
    return MRR().mean(ranker.predict(X), Queries.from_sizes(y, np.full(len(y) // ANSWERS, ANSWERS)))


def topics_of(vectorizer: TfidfVectorizer, kind: str) -> np.ndarray:
    """Return a row for each topic: the share of each of its words, 0 for all others."""
    words = vectorizer.get_feature_names_out()
    member = np.array([[word.startswith(f"{kind}{topic}word") for word in words] for topic in range(TOPICS)], float)
    return member / member.sum(axis=1, keepdims=True)


def draw(rankers: dict[str, BilinearRanker | DistanceRanker], asked: np.ndarray, answers: np.ndarray) -> None:
    """Show how each ranker scores answers on every topic to questions on every topic."""
    _, axes = plt.subplots(1, len(rankers), figsize=(9, 4.2), layout="constrained")
    pairs = np.hstack([np.repeat(asked, TOPICS, axis=0), np.tile(answers, (TOPICS, 1))])
    for ax, (name, ranker) in zip(axes, rankers.items(), strict=True):
        scores = ranker.predict(pairs).reshape(TOPICS, TOPICS)
        image = ax.imshow(scores - scores.mean(axis=1, keepdims=True), cmap="viridis")
        plt.colorbar(image, ax=ax, label="score above the question's mean", shrink=0.8)
        ax.set(xlabel="topic of the answer", ylabel="topic of the question", title=name)
    plt.show()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--questions", type=int, default=1500)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    seed = arguments.seed
    parts = make(arguments.questions, seed), make(300, seed + 1), make(500, seed + 2)
    asking, answering = TfidfVectorizer().fit(parts[0][0]), TfidfVectorizer().fit(parts[0][1])
    train, development, test = (
        (design(asking.transform(asked), answering.transform(answers)), y) for asked, answers, y in parts
    )
    words = len(asking.vocabulary_)
    print(
        f"{len(train[1]):,} answers to {arguments.questions:,} questions; {words} + {len(answering.vocabulary_)} words"
    )
    print(f"MRR by chance {np.mean(1 / np.arange(1, ANSWERS + 1)):.3f}\n")
    print(f"{'':<12}" + "".join(f"{name:>22}" for name in LOSSES))
    best = {}
    for name, kind in {"bilinear": BilinearRanker, "distance": DistanceRanker}.items():
        row = ""
        for loss in LOSSES.values():
            rankers = [
                kind(loss, n_query_features=words, C=C, tol=0.01 * C**0.5, random_state=0).fit(
                    *train, group=np.full(arguments.questions, ANSWERS)
                )
                for C in CHOICES
            ]
            chosen = max(rankers, key=lambda ranker: mrr(ranker, *development))
            best[name] = max(best.get(name, chosen), chosen, key=lambda ranker: mrr(ranker, *development))
            row += f"{mrr(chosen, *test):22.3f}"
        print(f"{name:<12}{row}", flush=True)
    draw(best, topics_of(asking, "asking"), topics_of(answering, "answering"))


if __name__ == "__main__":
    main()
