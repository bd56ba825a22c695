"""Raw documents to a matrix of word counts beside scikit-learn's CountVectorizer, on 20 Newsgroups."""

from __future__ import annotations

import os
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.child import measured
from benchmarks.timing import THREADS, Bound, Ratio, race, read

ARCHIVE = Path(os.environ.get("SOFTCOUNT_DATA", "../shared/data")) / "newsgroups20_19997" / "20_newsgroups.tar.gz"
TARGETS = {1: 8.0, 2: 12.0}
"""How many times as long CountVectorizer should take, by number of threads (it has no use for a second)."""

LOAD = """
import sys, tarfile
with tarfile.open(sys.argv[1]) as archive:
    texts = [archive.extractfile(each).read().decode("latin-1") for each in archive if each.isfile()]
"""
MAKERS = {
    "ours": "from softcount import BagOfWords as Maker",
    "peer": "from sklearn.feature_extraction.text import CountVectorizer as Maker",
}


def messages() -> list[str]:
    with tarfile.open(ARCHIVE) as archive:
        return [archive.extractfile(each).read().decode("latin-1") for each in archive if each.isfile()]  # type: ignore[union-attr]


def run(rounds: int) -> Iterator[Ratio | Bound]:
    if not ARCHIVE.exists():
        yield Bound("20 Newsgroups: not run, the archive is not there", float("nan"), "s")
        return
    from sklearn.feature_extraction.text import CountVectorizer

    from softcount import BagOfWords

    texts = messages()
    best = race(
        {
            "ours": lambda threads: BagOfWords(n_jobs=threads).fit_transform(texts),
            "peer": lambda threads: CountVectorizer().fit_transform(texts),
            "scan": read(np.frombuffer("".join(texts).encode(), dtype=np.uint8)),
        },
        rounds,
        alone=["peer"],
    )
    for threads in THREADS:
        yield Ratio(
            "20 Newsgroups to counts of words", threads, best["ours", threads], best["peer", threads],
            "CountVectorizer", TARGETS[threads], {"a look at every byte": best["scan", threads]},
        )  # fmt: skip
    yield memory()


def memory() -> Bound:
    """What the matrix takes on top of the documents, ours over the peer's."""
    held = {}
    for name, maker in {"documents": "", **MAKERS}.items():
        code = f"{maker}\n{LOAD}\n" + ("rows = Maker().fit_transform(texts)" if maker else "")
        held[name] = measured([sys.executable, "-c", code, str(ARCHIVE)])["megabytes"]
    beside = ", ".join(f"{name} {size:.0f} MB" for name, size in held.items()) + ", peaks of whole processes"
    return Bound("peak memory over CountVectorizer's", held["ours"] / held["peer"], "", None, beside)
