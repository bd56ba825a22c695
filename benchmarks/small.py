"""Small tables, one thread, one process: naive Bayes, mixtures and k-means beside scikit-learn and StepMix.

Both sides get ten starts (StepMix's, which take minutes, are timed as ten times one) and stop at the same tolerance:
scikit-learn's mixture when an iteration gains less than 0.001 nats a row, ours when that is all there is left to gain;
StepMix at the relative 1e-8 that is our default. Round r is the fit with random state r; times are the best round's,
objectives the mean of all rounds'. But for the shell, time is the processor's, which a busy machine disturbs least.
`small/kmeans`, `small/mixture,digits` and the like run the lines whose names hold all these words.
"""

from __future__ import annotations

import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.small_tables import MIXED, NUMERIC, MixedTable, mixed, numeric
from benchmarks.timing import Bound, Paired, Result

STARTS = 10
COVARIANCES = ("full", "tied", "diag", "spherical")
A_ROW = 1e-3
"""Nats a row that the stopping rules of Gaussian mixtures are about: scikit-learn's default."""
ENOUGH_SECONDS = 1.5
"""Seconds of a line after which no further round is begun."""
CALLS = 200
"""Calls of one row that are timed together."""
OWN_LIMITS = {"iris": 0.3, "breast cancer": 1.5, "titanic": 1.5, "digits": 3.0}
"""Seconds that finding the number of classes may take."""
SHELL_LIMIT = 0.6
CLOSE = 1e-7
"""Nats a row at which StepMix stops: about a 1e-8th of the log-likelihood of these tables, which is where ours does."""
SAME = 1e-6
"""Relative difference of two objectives that is none."""
ONE_ROW, SHELL = "one row predict_proba", "shell fit 150 rows"

Fit = Callable[[int], Any]
"""A fitted model, by its random state."""


class Case(NamedTuple):
    """A line: two fits and their targets; `objective` says how good a model is, more is better."""

    name: str
    ours: Fit
    peer: Fit
    against: str
    most: float
    unnoticed: float
    objective: Callable[[Any], float] | None = None
    is_held: bool | Callable[[Any], bool] = True
    """Whether the objective is the same on both sides, given a fit of the peer's, and ours must be no worse."""
    times: int = 1
    """How many times what is timed of the peer's the whole is: its starts, where one after another takes minutes."""


def naive_bayes_cases() -> Iterator[Case]:
    from sklearn.naive_bayes import GaussianNB

    import softcount as sc

    for name in NUMERIC:
        ours, peer = partial(labelled, sc.NaiveBayes, name, n_jobs=1), partial(labelled, GaussianNB, name)
        yield Case(f"naivebayes {name}", ours, peer, "GaussianNB", 1.2, 0.005, partial(accuracy, name), is_held=False)


def labelled(model: Callable[..., Any], name: str, seed: int, **settings: Any) -> Any:
    return model(**settings).fit(*numeric(name))


def accuracy(name: str, model: Any) -> float:
    return float(model.score(*numeric(name)))


def mixture_cases() -> Iterator[Case]:
    from sklearn.mixture import GaussianMixture as Peer

    for name in NUMERIC:
        X, _ = numeric(name)
        for kind in COVARIANCES:
            for count in (2, 3, 10):
                peer = partial(seeded, Peer, X, n_components=count, covariance_type=kind, n_init=STARTS, max_iter=1000)
                ours = our_gaussian(X, count, kind)
                height = partial(log_likelihood, X)
                yield Case(f"mixture {name} {kind} {count}", ours, peer, "scikit-learn", 1.2, 0.025, height, is_wide)


def is_wide(model: Any) -> bool:
    """Whether no component is as narrow as what is added to its variances, which its likelihood would then tell of."""
    spreads = model.covariances_
    if model.covariance_type in ("full", "tied"):
        spreads = np.linalg.eigvalsh(spreads)
    return bool(np.min(spreads) > 100.0 * model.reg_covar)


def our_gaussian(X: np.ndarray, count: int, kind: str) -> Fit:
    """Ours, with the peer's tolerance: ours is a share of the log-likelihood, whose size the round before tells."""
    import softcount as sc

    size: list[float] = []

    def fit(seed: int) -> Any:
        tolerance = A_ROW * len(X) / max(1.0, size[-1]) if size else 1e-5
        model = sc.GaussianMixture(
            count, kind, n_init=STARTS if size else 1, tol=tolerance, n_jobs=1, random_state=seed
        ).fit(X)
        size.append(abs(model.log_likelihood_))
        return model

    return fit


def log_likelihood(X: np.ndarray, model: Any) -> float:
    own = getattr(model, "log_likelihood_", None)
    return float(model.score(X)) * len(X) if own is None else float(own)


def kmeans_cases() -> Iterator[Case]:
    from sklearn.cluster import KMeans as Peer

    import softcount as sc

    tables = {name: numeric(name)[0] for name in NUMERIC} | {"500 x 60": noisy_blobs()}
    for name, X in tables.items():
        for count in (3, 10) if name in NUMERIC else (8,):
            ours = partial(seeded, sc.KMeans, X, n_clusters=count, n_init=STARTS, n_jobs=1)
            peer = partial(seeded, Peer, X, n_clusters=count, n_init=STARTS)
            yield Case(f"kmeans {name} {count}", ours, peer, "scikit-learn", 1.2, 0.025, minus_inertia)


def minus_inertia(model: Any) -> float:
    return -float(model.inertia_)


def noisy_blobs() -> np.ndarray:
    """500 rows of 60 columns, mostly noise, around eight centres."""
    rng = np.random.default_rng(0)
    return rng.normal(size=(8, 60))[rng.integers(0, 8, 500)] + rng.normal(size=(500, 60))


def latent_cases() -> Iterator[Case]:
    for name in MIXED:
        table = mixed(name)
        if table is None:
            print(f"{name} is not here: set SOFTCOUNT_DATA to the folder that holds {MIXED[name][0]}.", flush=True)
            continue
        for count in (2, 3):
            peer, data = stepmix(table, count)
            height = partial(log_likelihood, data)
            ours = our_latent(table, count)
            held = partial(is_number, height)
            yield Case(f"latent {name} {count}", ours, peer, "StepMix", 0.5, 0.0, height, held, STARTS)


def is_number(height: Callable[[Any], float], model: Any) -> bool:
    """Whether a fit has come to any likelihood: StepMix's of columns that do not vary in a class is none."""
    return bool(np.isfinite(height(model)))


def our_latent(table: MixedTable, count: int) -> Fit:
    """Ours by maximum likelihood, which is what StepMix climbs: a prior would have another optimum."""
    import softcount as sc

    kinds = {name: "normal" if name in table.numbers else "categorical" for name in table.frame.columns}
    settings = {"n_components": count, "kinds": kinds, "estimate": "ml", "n_init": STARTS, "n_jobs": 1}
    return partial(seeded, sc.Mixture, table.frame, **settings)


def stepmix(table: MixedTable, count: int) -> tuple[Fit, Any]:
    """The same columns for StepMix, levels as codes: one start, which is timed for all of them."""
    from stepmix.stepmix import StepMix
    from stepmix.utils import get_mixed_descriptor

    frame = table.frame.copy()
    levels = [name for name in frame.columns if name not in table.numbers]
    for name in levels:
        codes = frame[name].astype("category").cat.codes.astype(float)
        frame[name] = codes.where(codes >= 0)
    parts = {"categorical_nan": levels, "gaussian_diag_nan": table.numbers}
    data, measurement = get_mixed_descriptor(frame, **{model: names for model, names in parts.items() if names})
    settings = {"measurement": measurement, "n_init": 1, "abs_tol": CLOSE, "max_iter": 1000, "progress_bar": 0}
    return partial(seeded, StepMix, data, n_components=count, **settings), data


def seeded(model: Callable[..., Any], X: Any, seed: int, **settings: Any) -> Any:
    return model(random_state=seed, **settings).fit(X)


def timed(case: Case, rounds: int) -> Paired:
    """Best times and mean objectives of both sides in turns; a first fit of ours, which may compile, is extra."""
    sides = (case.ours, case.peer)
    best, reached = [np.inf, np.inf], ([], [])  # type: tuple[list[float], list[float]]
    held = bool(case.is_held)
    case.ours(0)
    begun = time.perf_counter()
    for turn in range(rounds):
        if time.perf_counter() - begun > ENOUGH_SECONDS:
            break
        for side, fit in enumerate(sides):
            started = time.process_time()
            model = fit(turn)
            best[side] = min(best[side], time.process_time() - started)
            if case.objective is not None:
                reached[side].append(case.objective(model))
            if side == 1 and callable(case.is_held):
                held &= case.is_held(model)
    objectives = None if case.objective is None else (float(np.mean(reached[0])), float(np.mean(reached[1])))
    peer, bound = best[1] * case.times, SAME if held else None
    return Paired(case.name, best[0], peer, case.against, case.most, case.unnoticed, objectives, bound)


def one_row(rounds: int) -> Paired:
    """A call of `predict_proba` with one row of iris."""
    from sklearn.naive_bayes import GaussianNB

    import softcount as sc

    X, y = numeric("iris")
    models = sc.NaiveBayes(n_jobs=1).fit(X, y), GaussianNB().fit(X, y)
    best = [np.inf, np.inf]
    for _ in range(rounds + 1):
        for side, model in enumerate(models):
            begun = time.process_time()
            for _ in range(CALLS):
                model.predict_proba(X[:1])
            best[side] = min(best[side], (time.process_time() - begun) / CALLS)
    return Paired(ONE_ROW, best[0], best[1], "GaussianNB", 1.2)


def deciding(name: str, rounds: int) -> Bound:
    """Seconds of `Mixture()`, which looks for the number of classes itself; on one thread they are the processor's."""
    import softcount as sc

    table = mixed(name) if name in MIXED else None
    X = numeric(name)[0] if table is None else table.frame
    begun, best = time.perf_counter(), np.inf
    for turn in range(rounds):
        if turn > 1 and time.perf_counter() - begun > ENOUGH_SECONDS:  # the first loads as well
            break
        started = time.process_time()
        model = sc.Mixture(n_jobs=1, random_state=turn).fit(X)
        best = min(best, time.process_time() - started)
    return Bound(f"auto {name}", best, "s", OWN_LIMITS[name], f"{len(model.weights_)} classes")


def shell(rounds: int) -> Bound:
    from benchmarks.child import softcount
    from benchmarks.startup import best_of, small_table

    with tempfile.TemporaryDirectory() as folder:
        command = [*softcount(), "fit", str(small_table(folder)), "--target", "kind", "-o", "small.sc"]
        took = best_of(command, rounds, folder)
    return Bound(SHELL, took["seconds"], "s", SHELL_LIMIT, f"CPU {took['cpu']:.2f} s")


def wanted(name: str, words: Sequence[str]) -> bool:
    return all(word in name for word in words)


def run(rounds: int, words: Sequence[str] = ()) -> Iterator[Result]:
    kinds = (naive_bayes_cases, mixture_cases, kmeans_cases, latent_cases)
    import_module("sklearn.cluster")  # only threads of libraries that are loaded are limited
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for cases in kinds:
            yield from (timed(case, rounds) for case in cases() if wanted(case.name, words))
        if wanted(ONE_ROW, words):
            yield one_row(rounds)
        for name in OWN_LIMITS:
            if wanted(f"auto {name}", words) and (name in NUMERIC or mixed(name) is not None):
                yield deciding(name, rounds)
        if wanted(SHELL, words):
            yield shell(rounds)
