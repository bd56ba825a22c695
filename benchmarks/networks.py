"""Bayesian networks beside pyAgrum and pgmpy, one process: EM with holes, questions, tables, the search for edges.

An iteration of EM is the difference of a long and a short run, divided by how many iterations longer it was, so that
reading, starting and finishing drop out. Peers that take long are timed on a part of the work, which they do row by row
and question by question, and the time is multiplied: the name of the line says which part. All have one thread, and
beside a peer time is the processor's, which a busy machine disturbs least.
"""

from __future__ import annotations

import gzip
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.child import surroundings
from benchmarks.timing import Bound, Paired, Ratio, Result

ALARM = Path(__file__).parents[2] / "shared" / "data" / "bif" / "alarm.bif.gz"
PYAGRUM, PGMPY = "pyAgrum", "pgmpy"
ROWS = 20_000
ROWS_WITH_HOLES = 2_000
OURS_SHORT, OURS_LONG = 5, 55
PEER_SHORT, PEER_LONG = 1, 2
QUESTIONS = 10_000
ASKED_OF_PEER = 200
ASKED = "HYPOVOLEMIA"
SMALL = """
import time
import numpy as np
from softcount import BayesNet
rng = np.random.default_rng(3)
codes = rng.integers(0, 3, (500, 8)).astype(object)
for child in range(1, 8):
    copied = rng.random(500) < 0.7
    codes[copied, child] = codes[copied, (child - 1) // 2]
rows = {f"n{node}": [f"level {code}" for code in codes[:, node]] for node in range(8)}
for node in range(8):
    for row in np.flatnonzero(rng.random(500) < 0.1):
        rows[f"n{node}"][row] = None
edges = [(f"n{(child - 1) // 2}", f"n{child}") for child in range(1, 8)] + [("n1", "n2")]
begun = time.perf_counter()
net = BayesNet(edges).fit(rows)
took = time.perf_counter() - begun
assert net.converged_
print(took)
"""


def busy(run: Callable[[], object]) -> float:
    """Seconds of the processor."""
    begun = time.process_time()
    run()
    return time.process_time() - begun


def best_of(runs: dict[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """The least seconds of each, all taking turns after a first time that is not counted."""
    with threadpool_limits(1):
        for run in runs.values():
            run()
        times = [{name: busy(run) for name, run in runs.items()} for _ in range(rounds)]
    return {name: min(turn[name] for turn in times) for name in runs}


def run(rounds: int) -> Iterator[Result]:
    yield from _latent(rounds)
    yield _small(rounds)
    if not ALARM.exists():
        print(f"no {ALARM.name} in {ALARM.parent}: the lines that need it are left out", file=sys.stderr)
        return
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        alarm = Alarm(Path(folder))
        yield from _holes(alarm, 0.1, 100, 500, rounds)
        yield from _holes(alarm, 0.4, 50, 150, rounds)
        yield from _questions(alarm, rounds)
        yield from _complete(alarm, rounds)
        yield from _edges(alarm, rounds)


class Alarm:
    """The network as both sides read it, and rows drawn from it in a frame and in a file."""

    def __init__(self, folder: Path) -> None:
        import pyagrum

        import softcount as sc

        pyagrum.setNumberOfThreads(1)
        plain = folder / "alarm.bif"
        plain.write_bytes(gzip.decompress(ALARM.read_bytes()))
        self.theirs = pyagrum.loadBN(str(plain))
        self.ours = sc.BayesNet.read(ALARM)
        self.frame = self.ours.sample(ROWS, random_state=1)[sorted(self.theirs.names())]
        self.file = folder / "alarm.csv"
        self.frame.to_csv(self.file, index=False)

    def with_holes(self, share: float) -> Any:
        part = self.frame.head(ROWS_WITH_HOLES)
        return part.mask(np.random.default_rng(2).random(part.shape) < share, None)

    def learner(self, data: Any, *missing: Any) -> Any:
        import pyagrum

        found = pyagrum.BNLearner(data, self.theirs, *missing)
        found.useSmoothingPrior(1)
        return found


def _holes(alarm: Alarm, share: float, part: int, target: float, rounds: int) -> Iterator[Result]:
    import softcount as sc

    rows = sc.read(alarm.with_holes(share))
    some = alarm.with_holes(share).head(part).fillna("?")

    def ours(iterations: int) -> Callable[[], object]:
        net = sc.BayesNet(alarm.ours.edges_, tol=0, max_iter=iterations, n_jobs=1)
        return lambda: net.fit(rows)

    def theirs(iterations: int) -> float:
        learner = alarm.learner(some, ["?"])
        learner.useEM(1e-12)
        learner.EMsetMaxIter(iterations)
        return busy(lambda: learner.learnParameters(alarm.theirs.dag()))

    best = best_of({"short": ours(OURS_SHORT), "long": ours(OURS_LONG)}, rounds)
    mine = (best["long"] - best["short"]) / (OURS_LONG - OURS_SHORT)
    peer = (theirs(PEER_LONG) - theirs(PEER_SHORT)) / (PEER_LONG - PEER_SHORT) * ROWS_WITH_HOLES / part
    work = f"alarm, 2,000 rows, {100 * share:.0f} % missing: an EM iteration (pyAgrum's of {part} rows, scaled)"
    yield Ratio(work, 1, mine, peer, PYAGRUM, target)


def _latent(rounds: int) -> Iterator[Result]:
    """One binary hidden node and eight binary columns, 2,000 rows: what pgmpy finishes."""
    import logging

    import pandas as pd
    from pgmpy.models import DiscreteBayesianNetwork
    from pgmpy.parameter_estimator import DiscreteEM

    import softcount as sc

    logging.getLogger("pgmpy").setLevel(logging.ERROR)
    rng = np.random.default_rng(5)
    hidden = rng.integers(0, 2, 2_000)
    columns = {f"x{j}": (rng.random(2_000) < np.where(hidden, 0.8, 0.3)).astype(int) for j in range(8)}
    frame, edges = pd.DataFrame(columns), [("bag", name) for name in columns]
    rows = sc.read(frame.astype(str))

    def ours(iterations: int) -> Callable[[], object]:
        net = sc.BayesNet(edges, hidden={"bag": 2}, tol=0, max_iter=iterations, n_init=1, random_state=0, n_jobs=1)
        return lambda: net.fit(rows)

    def theirs(iterations: int) -> float:
        model = DiscreteBayesianNetwork(edges, latents={"bag"})
        fit = DiscreteEM(max_iter=iterations, atol=0.0, seed=0, show_progress=False)
        return busy(lambda: fit.fit(model, frame))

    best = best_of({"short": ours(10), "long": ours(210)}, rounds)
    peer = theirs(PEER_SHORT + 2) - theirs(PEER_SHORT)
    work = "a hidden node, 8 binary columns, 2,000 rows: an EM iteration"
    yield Ratio(work, 1, (best["long"] - best["short"]) / 200, peer / 2, PGMPY, 1000)


def _small(rounds: int) -> Bound:
    """A process of its own: nothing has been compiled, asked or cached before."""
    command = [sys.executable, "-c", SMALL]
    took = min(
        float(subprocess.run(command, capture_output=True, text=True, check=True, env=surroundings()).stdout)
        for _ in range(rounds)
    )
    return Bound("8 nodes, 500 rows with holes: data to fitted, a new process after its import", took, "s", 0.2)


def _questions(alarm: Alarm, rounds: int) -> Iterator[Result]:
    import pyagrum

    import softcount as sc

    given = alarm.frame.head(QUESTIONS).drop(columns=ASKED)
    given = given.mask(np.random.default_rng(6).random(given.shape) < 0.5, None)
    assert len(given.drop_duplicates()) == QUESTIONS
    engine = pyagrum.LazyPropagation(alarm.theirs)
    asked = [row.dropna().to_dict() for _, row in given.head(ASKED_OF_PEER).iterrows()]

    def answer(known: dict[str, str]) -> np.ndarray:
        engine.eraseAllEvidence()
        engine.setEvidence(known)
        engine.setTargets({ASKED})
        engine.makeInference()
        return engine.posterior(ASKED).toarray()

    mine = alarm.ours.predict_proba(given.head(ASKED_OF_PEER), of=ASKED)
    np.testing.assert_allclose(mine, [answer(known) for known in asked], atol=1e-5)  # its file reader keeps 7 digits
    one, read = {"CVP": "HIGH", "BP": "LOW"}, sc.read(given)
    runs = {
        "batch": lambda: alarm.ours.predict_proba(read, of=ASKED),
        "loop": lambda: [answer(known) for known in asked],
        "one": lambda: [alarm.ours.query(ASKED, one) for _ in range(20)],
        "their one": lambda: [answer(one) for _ in range(20)],
    }
    best = best_of(runs, rounds)
    loop = best["loop"] * QUESTIONS / ASKED_OF_PEER
    work = "alarm, 10,000 different questions from a table that was read (pyAgrum's loop of 200, scaled)"
    yield Ratio(work, 1, best["batch"], loop, PYAGRUM, 50)
    yield Ratio("alarm, one question", 1, best["one"] / 20, best["their one"] / 20, PYAGRUM, 1)


def _complete(alarm: Alarm, rounds: int) -> Iterator[Result]:
    import softcount as sc

    encoded, loaded, dag = sc.read(alarm.frame), alarm.learner(alarm.frame), alarm.theirs.dag()
    net = sc.BayesNet(alarm.ours.edges_, n_jobs=1)
    runs = {
        "encoded": lambda: net.fit(encoded),
        "loaded": lambda: loaded.learnParameters(dag),
        "frame": lambda: net.fit(alarm.frame),
        "their frame": lambda: alarm.learner(alarm.frame).learnParameters(dag),
        "file": lambda: net.fit(alarm.file),
        "their file": lambda: alarm.learner(str(alarm.file)).learnParameters(dag),
    }
    best = best_of(runs, 2 * rounds)
    work = "alarm, 20,000 complete rows to tables"
    yield Ratio(f"{work}: from an encoded table", 1, best["encoded"], best["loaded"], PYAGRUM, 1)
    yield Ratio(f"{work}: from a pandas frame", 1, best["frame"], best["their frame"], PYAGRUM, 1)
    yield Ratio(f"{work}: from a CSV file", 1, best["file"], best["their file"], PYAGRUM, 1)


def _edges(alarm: Alarm, rounds: int) -> Iterator[Result]:
    """Both sides' graphs are scored here, by the same rows."""
    import softcount as sc
    from softcount.networks.network import Graph
    from softcount.networks.scores import Bdeu, Bic, CodeCounts, network_score

    names = list(alarm.frame.columns)
    levels = [sorted(alarm.frame[name].unique()) for name in names]
    codes = np.stack([np.searchsorted(own, alarm.frame[name]) for own, name in zip(levels, names, strict=True)], axis=1)
    counting, encoded = CodeCounts(codes, list(map(len, levels))), sc.read(alarm.frame)
    for criterion, score in (("bic", Bic()), ("bdeu", Bdeu())):
        mine = sc.BayesNet("search", criterion=criterion, n_jobs=1)
        learner = alarm.learner(alarm.frame)
        learner.useNoPrior()
        learner.useGreedyHillClimbing()
        (learner.useScoreBIC if criterion == "bic" else learner.useScoreBDeu)()
        found: dict[str, Any] = {}
        runs = {
            "ours": lambda mine=mine, found=found: found.update(ours=mine.fit(encoded).edges_),
            "theirs": lambda learner=learner, found=found: found.update(theirs=learner.learnDAG().arcs()),
        }
        best = best_of(runs, 1)
        ids = {alarm.theirs.idFromName(name): name for name in names}
        graphs = (
            Graph.of(found["ours"], names),
            Graph.of([(ids[parent], ids[child]) for parent, child in found["theirs"]], names),
        )
        heights = tuple(float(network_score(counting, score, graph)) for graph in graphs)
        work = f"alarm, 20,000 rows: the search for edges by {criterion}"
        yield Paired(work, best["ours"], best["theirs"], PYAGRUM, 1.0, objectives=heights, same=0.0)
