"""20 Newsgroups from a folder to a fitted model to predictions for other documents, beside a scikit-learn pipeline."""

from __future__ import annotations

import sys
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.child import measured
from benchmarks.timing import Bound, Ratio, race
from benchmarks.words import ARCHIVE

TARGET = 6.0
LEAST_SAVED = 0.5
"""Peak memory of ours over the peer's, at most."""
TEST_EVERY = 3
"""One document in so many is for testing."""

OURS = """
import sys, softcount
def run(train, test, threads):
    return softcount.NaiveBayes(kinds={"text": "text"}, n_jobs=threads).fit(train, y="class").predict(test)
"""

IMPORTS = {
    "ours": "softcount.NaiveBayes; from softcount.text import Reading, block_of; block_of(['aa'] * 600_000, Reading())",
    "peer": "pass",
}
"""What loads a contestant's code, compiled kernels too, and does next to nothing."""

PEER = """
import sys
from sklearn.datasets import load_files
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import make_pipeline
def run(train, test, threads):
    known = load_files(train, encoding="latin-1")
    model = make_pipeline(CountVectorizer(), MultinomialNB()).fit(known.data, known.target)
    return model.predict(load_files(test, encoding="latin-1", shuffle=False).data)
"""


def unpacked(folder: Path) -> tuple[Path, Path]:
    """The messages as two folders of folders, one to learn from and one to be tried on."""
    train, test = folder / "train", folder / "test"
    with tarfile.open(ARCHIVE) as archive:
        for place, member in enumerate(m for m in archive if m.isfile()):
            group, name = Path(member.name).parts[-2:]
            path = (train if place % TEST_EVERY else test) / group / name
            path.parent.mkdir(parents=True, exist_ok=True)
            content = archive.extractfile(member)
            assert content is not None
            path.write_bytes(content.read())
    return train, test


def read_all(folder: Path) -> None:
    """The limit: every file's bytes and nothing else."""
    for path in folder.rglob("*"):
        if path.is_file():
            path.read_bytes()


def run(rounds: int) -> Iterator[Ratio | Bound]:
    if not ARCHIVE.exists():
        yield Bound("20 Newsgroups: not run, the archive is not there", float("nan"), "s")
        return
    ours: dict[str, object] = {}
    peer: dict[str, object] = {}
    exec(OURS, ours)
    exec(PEER, peer)
    with tempfile.TemporaryDirectory() as made:
        train, test = unpacked(Path(made))
        where = str(train), str(test)
        best = race(
            {
                "ours": lambda threads: ours["run"](*where, threads),  # type: ignore[operator]
                "peer": lambda threads: peer["run"](*where, threads),  # type: ignore[operator]
                "read": lambda threads: read_all(Path(made)),
            },
            rounds,
            alone=["peer", "read"],
        )
        for threads in (1, 2):
            yield Ratio(
                "folder to model to predictions", threads, best["ours", threads], best["peer", threads],
                "load_files, CountVectorizer, MultinomialNB", TARGET if threads == 2 else None,
                {"reading the files": best["read", threads]},
            )  # fmt: skip
        took = {}
        for name, code in (("ours", OURS), ("peer", PEER)):
            for what, last in (("all", "run(sys.argv[1], sys.argv[2], 2)"), ("imports", IMPORTS[name])):
                took[name, what] = measured([sys.executable, "-c", f"{code}\n{last}", *where])["megabytes"]
    beside = ", ".join(f"{name} {took[name, 'all']:.0f} MB ({took[name, 'imports']:.0f} imported)" for name in IMPORTS)
    yield Bound("peak memory over the peer's", took["ours", "all"] / took["peer", "all"], "", LEAST_SAVED, beside)
