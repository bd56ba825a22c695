"""The table of docs/guide/classifier.md on text: `python scripts/text_classifiers.py SMSSpamCollection`.

A folder or tar file of documents by class, such as 20_newsgroups.tar.gz, is measured with its headers and without.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
import pyarrow as pa

import softcount as sc
from softcount.sources.source import Wanted

Documents = tuple[str, np.ndarray, np.ndarray]


def measured(path: str) -> Iterator[Documents]:
    """What is measured of a file: a name, documents and their classes."""
    if Path(path).is_file() and not path.endswith((".gz", ".tar", ".tgz")):
        lines = Path(path).read_text("utf-8").splitlines()
        cells = np.array([line.split("\t", 1) for line in lines], dtype=object)
        yield Path(path).name, cells[:, 1], cells[:, 0].astype(str)
        return
    wanted: dict[Any, Wanted] = {"text": Wanted(numeric=False, text=True), "class": Wanted(numeric=False)}
    columns = [piece.load() for piece in sc.read(path).source.pieces(wanted)]
    texts = [text for column in columns for text in column["text"].to_pylist()]
    labels = np.array([label for column in columns for label in column["class"].to_pylist()])
    yield "without headers", np.array([text.split("\n\n", 1)[-1] for text in texts], dtype=object), labels
    yield "with headers", np.array(texts, dtype=object), labels


def contestants() -> dict[str, Callable[[], Any]]:
    """All that are compared, by name."""
    from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.naive_bayes import ComplementNB, MultinomialNB
    from sklearn.pipeline import make_pipeline

    kinds = {"text": "text"}

    def logistic(strength: float) -> Any:
        return make_pipeline(TfidfVectorizer(sublinear_tf=True), LogisticRegression(C=strength, max_iter=500))

    return {
        "NaiveBayes": lambda: sc.NaiveBayes(kinds, n_jobs=1),
        "weights='columns'": lambda: sc.NaiveBayes(kinds, weights="columns", n_jobs=1),
        "Classifier": lambda: sc.Classifier(kinds, n_jobs=1),
        "MultinomialNB": lambda: make_pipeline(CountVectorizer(), MultinomialNB()),
        "ComplementNB": lambda: make_pipeline(CountVectorizer(), ComplementNB()),
        "ComplementNB, tf-idf": lambda: make_pipeline(TfidfVectorizer(), ComplementNB()),
        "logistic, tf-idf": lambda: make_pipeline(TfidfVectorizer(), LogisticRegression(max_iter=500)),
        **{f"logistic, C={strength:g}": partial(logistic, strength) for strength in (10.0, 100.0)},
    }


def figures(make: Callable[[], Any], texts: np.ndarray, labels: np.ndarray) -> tuple[float, ...]:
    """Log-loss, accuracy and CPU seconds of a fit, each the mean of five folds."""
    from sklearn.metrics import log_loss
    from sklearn.model_selection import StratifiedKFold

    found = []
    for train, test in StratifiedKFold(5, shuffle=True, random_state=0).split(texts, labels):
        model = make()
        ours = isinstance(model, sc.NaiveBayes)
        given = [pa.table({"text": list(texts[rows])}) if ours else texts[rows] for rows in (train, test)]
        begun = process_time()
        model.fit(given[0], labels[train])
        taken, shares = process_time() - begun, model.predict_proba(given[1])
        right = np.mean(model.classes_[shares.argmax(axis=1)] == labels[test])
        found.append((log_loss(labels[test], shares, labels=model.classes_), right, taken))
    return tuple(np.mean(found, axis=0).tolist())


def main(path: str) -> None:
    for name, texts, labels in measured(path):
        for who, make in contestants().items():
            loss, right, taken = figures(make, texts, labels)
            print(f"{name}: {who:22s} {loss:.4f} / {100 * right:.1f} %   {taken:.2f} s of CPU", flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
