"""Naive Bayes, a full mixture and k-means beside Spark's MLlib on two local cores: CPU seconds of all processes.

Two million rows in 16 Parquet files, from files to a fitted model. Ours runs on Spark's frame, on Spark with files read
in the tasks, and on this machine alone. JVM, Python workers and this process are counted. `python -m benchmarks.spark
65536` takes fewer rows, which is mostly what starting costs.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.timing import Paired, Ratio, Result, tables

ROWS, PARTS, COLUMNS, GROUPS = 2_097_152, 16, 20, 8
MANY, FEW_PARTS = 1 << 20, 4
"""Rows from which a table has all parts, and session and workers do a small fit first: fewer only show that it runs."""
ITERATIONS = 20
FEW, MORE, MANY_MORE = 1, 3, 21
"""Iterations of two fits of a mixture, whose difference is what iterations take; of ours, which are quicker, more."""
TARGETS = {
    "Gaussian naive Bayes": {"frame": 1.4, "files": 4.0, "one machine": 7.0},
    "categorical naive Bayes": {"frame": 2.8, "files": 10.0, "one machine": 25.0},
    "full mixture, an iteration": {"files": 6.0, "one machine": 10.0},
    "k-means": {"one machine": 15.0},
}


SEEN: dict[tuple[int, str], int] = {}
"""Ticks of every process that was looked at, by its number and when it began."""


def processor_seconds() -> float:
    """CPU time of this process and all it has started; of those that ended, what they had when last looked at.

    Spark's daemon lets its workers go without taking over their times, so these cannot be had from the parents.
    """
    living, parents = {}, {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                fields = Path("/proc", name, "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            parents[int(name)], living[int(name)] = int(fields[1]), (fields[19], sum(map(int, fields[11:13])))
    left = [os.getpid()]
    while left:
        own = left.pop()
        begun, ticks = living[own]
        SEEN[own, begun] = ticks
        left += [child for child, parent in parents.items() if parent == own]
    return sum(SEEN.values()) / os.sysconf("SC_CLK_TCK")


def spent(work: Callable[[], Any]) -> tuple[float, Any]:
    """CPU seconds of something, and what it gave."""
    begun = processor_seconds()
    found = work()
    return processor_seconds() - begun, found


def write(folder: Path, rows: int) -> None:
    """Overlapping groups of numbers and of levels, each in files of their own, with the group as the class."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(0)
    centres = rng.normal(size=(GROUPS, COLUMNS))
    names = pa.array([f"level{k}" for k in range(GROUPS)])
    for name in ("numbers", "levels"):
        (folder / name).mkdir()
    parts = PARTS if rows >= MANY else FEW_PARTS
    for part in range(parts):
        group = rng.integers(0, GROUPS, rows // parts)
        cells = rng.normal(size=(len(group), COLUMNS)) + centres[group]
        numbers: dict[str, Any] = {f"x{j}": cells[:, j] for j in range(COLUMNS)}
        pq.write_table(pa.table(numbers | {"label": group.astype(float)}), folder / f"numbers/part-{part:02d}.parquet")
        levels: dict[str, Any] = {}
        for j in range(COLUMNS):
            drawn = (rng.integers(0, 3, len(group)) + group * (j + 1)) % GROUPS
            levels[f"c{j}"] = names.take(pa.array(drawn))
        pq.write_table(pa.table(levels | {"label": group.astype(float)}), folder / f"levels/part-{part:02d}.parquet")


@dataclass(frozen=True)
class Case:
    """A session and the folders of the two tables."""

    session: Any
    numbers: str
    levels: str

    def frame(self, folder: str) -> Any:
        return self.session.read.parquet(folder)

    def vectors(self, *more: str) -> Any:
        from pyspark.ml.feature import VectorAssembler

        columns = [*(f"x{j}" for j in range(COLUMNS)), *more]
        return VectorAssembler(inputCols=columns, outputCol="features").transform(self.frame(self.numbers))


def naive_bayes(case: Case) -> Iterator[Result]:
    """Classes of numbers."""
    from pyspark.ml.classification import NaiveBayes

    import softcount as sc

    theirs, _ = spent(lambda: NaiveBayes(modelType="gaussian").fit(case.vectors()))
    yield from beside(
        "Gaussian naive Bayes", theirs,
        {
            "frame": lambda: sc.NaiveBayes().fit(case.frame(case.numbers), "label"),
            "files": lambda: sc.NaiveBayes(engine=case.session).fit(case.numbers, "label"),
            "one machine": lambda: sc.NaiveBayes().fit(case.numbers, "label"),
        },
    )  # fmt: skip


def categorical(case: Case) -> Iterator[Result]:
    """Classes of levels, which MLlib wants as vectors of ones."""
    from pyspark.ml import Pipeline
    from pyspark.ml.classification import NaiveBayes
    from pyspark.ml.feature import OneHotEncoder, StringIndexer, VectorAssembler

    import softcount as sc

    columns = [f"c{j}" for j in range(COLUMNS)]
    codes, ones = [f"{name}_code" for name in columns], [f"{name}_ones" for name in columns]
    stages = [
        StringIndexer(inputCols=columns, outputCols=codes),
        OneHotEncoder(inputCols=codes, outputCols=ones, dropLast=False),
        VectorAssembler(inputCols=ones, outputCol="features"),
        NaiveBayes(modelType="multinomial"),
    ]
    theirs, _ = spent(lambda: Pipeline(stages=stages).fit(case.frame(case.levels)))
    yield from beside(
        "categorical naive Bayes", theirs,
        {
            "frame": lambda: sc.NaiveBayes().fit(case.frame(case.levels), "label"),
            "files": lambda: sc.NaiveBayes(engine=case.session).fit(case.levels, "label"),
            "one machine": lambda: sc.NaiveBayes().fit(case.levels, "label"),
        },
    )  # fmt: skip


def mixture(case: Case) -> Iterator[Result]:
    """An iteration of EM with full covariances: what two more of them take."""
    from pyspark.ml.clustering import GaussianMixture

    import softcount as sc

    vectors = case.vectors()

    def theirs(iterations: int) -> Any:
        return GaussianMixture(k=GROUPS, maxIter=iterations, tol=0.0, seed=0).fit(vectors)

    def ours(engine: Any) -> Callable[[int], Any]:
        setting = {"n_init": 1, "tol": 0.0, "random_state": 0, "kinds": KINDS}
        return lambda iterations: sc.Mixture(GROUPS, max_iter=iterations, engine=engine, **setting).fit(case.numbers)

    peer = an_iteration(theirs, MORE)
    for where, engine in (("files", case.session), ("one machine", None)):
        yield line("full mixture, an iteration", where, an_iteration(ours(engine), MANY_MORE), peer)


KINDS = {tuple(f"x{j}" for j in range(COLUMNS)): "multinormal", "label": "ignore"}


def an_iteration(fit: Callable[[int], Any], most: int) -> float:
    """CPU seconds of an iteration, by fits of one and of so many."""
    few, more = (spent(partial(fit, number))[0] for number in (FEW, most))
    return (more - few) / (most - FEW)


def clusters(case: Case) -> Iterator[Result]:
    """k-means from one start of MLlib's, and as ours comes, of which the best of ten is kept."""
    from pyspark.ml.clustering import KMeans

    import softcount as sc

    setting: dict[str, Any] = {"max_iter": ITERATIONS, "random_state": 0}
    theirs, found = spent(lambda: KMeans(k=GROUPS, maxIter=ITERATIONS, seed=0).fit(case.vectors("label")))
    costs = -found.summary.trainingCost
    for where, data, engine in (
        ("frame", case.frame(case.numbers), None),
        ("files", case.numbers, case.session),
        ("one machine", case.numbers, None),
    ):
        took, model = spent(partial(sc.KMeans(GROUPS, engine=engine, **setting).fit, data))
        yield line("k-means", where, took, theirs)
        objectives = -model.inertia_, costs
        yield Paired(f"k-means, {where}: cost", took, theirs, "MLlib", 1.0, objectives=objectives, same=1e-3)


def beside(work: str, theirs: float, ours: dict[str, Callable[[], Any]]) -> Iterator[Result]:
    for where, run in ours.items():
        yield line(work, where, spent(run)[0], theirs)


def line(work: str, where: str, ours: float, theirs: float) -> Ratio:
    return Ratio(f"{work}, {where}", 2, ours, theirs, "MLlib", TARGETS[work].get(where))


def started() -> Any:
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    quiet = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false", "spark.log.level": "ERROR"}
    memory = {"spark.driver.memory": "3g", "spark.sql.files.maxPartitionBytes": str(1 << 27)}
    return SparkSession.builder.master("local[2]").config(map=quiet | memory).getOrCreate()


def run(rounds: int, rows: int = ROWS) -> Iterator[Result]:
    """Every line, once: what takes so long varies little."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        for name, size in (("warm", 1 << 14), ("timed", rows)):
            (folder / name).mkdir()
            write(folder / name, size)
        session = started()
        try:
            for name, suites in (("warm", WARMING if rows >= MANY else ()), ("timed", SUITES)):
                case = Case(session, str(folder / name / "numbers"), str(folder / name / "levels"))
                for suite in suites:
                    for found in suite(case):
                        if name == "timed":
                            yield found
        finally:
            session.stop()


SUITES = naive_bayes, categorical, mixture, clusters
WARMING = (naive_bayes,)


if __name__ == "__main__":
    told = []
    for result in run(1, int(sys.argv[1]) if len(sys.argv) > 1 else ROWS):
        print(*result.cells(), sep="  ", file=sys.stderr)
        told.append(result)
    print(tables(told))
