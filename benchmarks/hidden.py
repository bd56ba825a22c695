"""Hidden states, 100 sequences of 1,000 steps, 8 states: an iteration of Baum-Welch and Viterbi paths, beside hmmlearn.

An iteration is the difference of a long and a short run from one start, divided by how many iterations longer it was.
hmmlearn has two ways to sum over paths: logarithms, which it takes unless told otherwise and which targets are held
against, and scaled probabilities, which underflow where a path is all but ruled out; both are shown. Ours takes
whichever of the two is exact for the transitions at hand. The last line is the memory of a pass over one sequence of
1,000,000 steps, in arrays of steps x states.
"""

from __future__ import annotations

import logging
import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from benchmarks.timing import Best, Bound, Ratio, race, ratios

SEQUENCES, STEPS, STATES, SYMBOLS = 100, 1_000, 8, 10
LONG_STEPS = 1_000_000
LENGTHS = [STEPS] * SEQUENCES
USUAL, SCALED = "hmmlearn", "hmmlearn scaling"
OURS_SHORT, OURS_LONG, PEER_SHORT, PEER_LONG = 2, 22, 1, 4


def made() -> tuple[np.ndarray, np.ndarray]:
    """Numbers and symbols that eight slow states show."""
    rng = np.random.default_rng(5)
    moves, fresh = rng.random(SEQUENCES * STEPS) < 0.1, rng.integers(0, STATES, SEQUENCES * STEPS)
    moves[::STEPS] = True
    states = fresh[np.maximum.accumulate(np.where(moves, np.arange(len(moves)), 0))]
    numbers = rng.normal(1.5 * states, 1.0)
    symbols = (states + rng.integers(0, 3, len(states))) % SYMBOLS
    return numbers, symbols


def ours(steps: np.ndarray, kind: str, iterations: int) -> Callable[[int], Any]:
    import softcount as sc

    sequences = sc.read_sequences(np.split(steps, SEQUENCES))

    def run(threads: int) -> Any:
        return sc.HiddenMarkov(
            STATES, kinds=kind, estimate="ml", n_init=1, max_iter=iterations, tol=0, random_state=0, n_jobs=threads
        ).fit(sequences)

    return run


def peer(steps: np.ndarray, kind: str, iterations: int, way: str) -> Callable[[int], Any]:
    from hmmlearn import hmm

    logging.getLogger("hmmlearn").setLevel(logging.ERROR)
    table = steps[:, None]

    def run(threads: int) -> Any:
        how = {"n_iter": iterations, "tol": -np.inf, "random_state": 0, "implementation": way}
        model = hmm.GaussianHMM(STATES, **how) if kind == "normal" else hmm.CategoricalHMM(STATES, **how)
        return model.fit(table, LENGTHS)

    return run


def per_iteration(best: Best, name: str) -> Best:
    """Seconds of one iteration, from the long and the short runs."""
    spans = {"ours": OURS_LONG - OURS_SHORT, name: PEER_LONG - PEER_SHORT}
    counts = {count for _, count in best}
    return {(n, c): (best[f"{n} long", c] - best[f"{n} short", c]) / span for n, span in spans.items() for c in counts}


def run(rounds: int) -> Iterator[Ratio | Bound]:
    numbers, symbols = made()
    for kind, steps in (("normal", numbers), ("categorical", symbols)):
        work = f"Baum-Welch 100 x 1,000 steps, {kind}, K = 8: an iteration"
        for name, way, targets in ((USUAL, "log", (5, 9)), (SCALED, "scaling", None)):
            contestants = {
                "ours short": ours(steps, kind, OURS_SHORT),
                "ours long": ours(steps, kind, OURS_LONG),
                f"{name} short": peer(steps, kind, PEER_SHORT, way),
                f"{name} long": peer(steps, kind, PEER_LONG, way),
            }
            turns = rounds if targets else 1
            yield from ratios(
                work,
                per_iteration(race(contestants, turns, alone=[f"{name} short", f"{name} long"]), name),
                name,
                targets,
            )
        yield from decoded(steps, kind, rounds)
    yield remembered()


def decoded(steps: np.ndarray, kind: str, rounds: int) -> Iterator[Ratio]:
    """Viterbi paths of the same sequences; ours from sequences that were read, as theirs from an array."""
    import softcount as sc

    sequences = sc.read_sequences(np.split(steps, SEQUENCES))
    mine, theirs = ours(steps, kind, OURS_SHORT)(1), peer(steps, kind, PEER_SHORT, "log")(1)

    def by_us(threads: int) -> object:
        return mine.set_params(n_jobs=threads).predict(sequences)

    contestants = {"ours": by_us, USUAL: lambda threads: theirs.decode(steps[:, None], LENGTHS)}
    yield from ratios(f"Viterbi paths of the same, {kind}", race(contestants, rounds, alone=[USUAL]), USUAL, (5, 5))


def remembered() -> Bound:
    """The most memory of a pass over one long sequence, beside that of its steps x states once."""
    from softcount.kernels.hidden_paths import expect_paths

    rng = np.random.default_rng(6)
    following = rng.dirichlet(np.ones(STATES), STATES)
    tracemalloc.start()
    scores = rng.normal(size=(LONG_STEPS, STATES))
    expect_paths(scores, np.array([0, LONG_STEPS]), None, np.full(STATES, 1 / STATES), following)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return Bound("sums over the paths of 1,000,000 steps, K = 8: memory", most / scores.nbytes, "steps x states", 1.2)
