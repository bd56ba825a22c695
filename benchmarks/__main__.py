"""`python -m benchmarks [NAME ...]`: run some or all of the suites and print their tables."""

from __future__ import annotations

import argparse
import json
import logging
import os
import platform
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks.timing import Result, tables

SUITES = {
    "small": "small tables everybody knows: naive Bayes, mixtures, k-means beside scikit-learn and StepMix",
    "normal": "normal naive Bayes beside GaussianNB",
    "categorical": "categorical naive Bayes beside CategoricalNB",
    "latent": "an EM iteration of latent classes beside StepMix",
    "sequences": "transitions of ten million steps beside a plain read of their codes; chains of letters",
    "hidden": "hidden Markov models: an iteration of Baum-Welch and Viterbi paths beside hmmlearn",
    "gaussian": "an EM iteration of Gaussian mixtures, full and diagonal, beside scikit-learn",
    "overlap": "overlapping normal components to the top beside scikit-learn",
    "auto": "how many classes Adult has, found",
    "kmeans": "k-means to convergence beside scikit-learn and faiss",
    "frame": "a mixed pandas frame to a fitted model beside a scikit-learn pipeline",
    "words": "20 Newsgroups to a matrix of word counts beside CountVectorizer",
    "documents": "20 Newsgroups from a folder to a model to predictions beside a scikit-learn pipeline",
    "networks": "Bayesian networks: EM with holes, questions, tables and edges beside pyAgrum and pgmpy",
    "densities": "a kernel density of 100,000 points at 20,000 queries beside scikit-learn and SciPy",
    "classifiers": "Classifier as it comes beside logistic regression, gradient boosting and Khiops on twelve tables",
    "joint": "a joint model of a table: density, filling, every column, synthetic rows, anomalies, beside many",
    "export": "rows scored by SQLite, DuckDB and onnxruntime beside Softcount",
    "startup": "`softcount --help` and a small fit from the shell",
    "large": "a CSV of 500 MB, made in a temporary folder, fitted from the shell",
    "kernels": "each compiled kernel by itself (only when named)",
    "spark": "naive Bayes, a mixture and k-means beside Spark's MLlib, in CPU seconds (only when named)",
}
ASKED_FOR = ("kernels", "spark")
"""Suites that run only when named: they have no targets of their own, or need what others do not."""
BY_WORDS = ("small", "joint")
"""Suites of which some lines can be asked for."""
NAMES = "suites to run; all but kernels and spark if none is named; small/kmeans,iris runs its lines with both words"


def arguments(given: Sequence[str] | None = None) -> argparse.Namespace:
    listed = "\n".join(f"  {name:<12} {what}" for name, what in SUITES.items())
    parser = argparse.ArgumentParser(
        "benchmarks", description=f"Times on this machine.\n\n{listed}", formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=NAMES)
    parser.add_argument("--rounds", type=int, default=3, help="how often each thing is timed (3); the best counts")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results there too")
    asked = parser.parse_args(given)
    for name, _, words in (each.partition("/") for each in asked.names):
        if name not in SUITES:
            parser.error(f"there is no suite {name!r}. There are: {', '.join(SUITES)}.")
        if words and name not in BY_WORDS:
            parser.error(f"lines can be picked of {', '.join(BY_WORDS)} only, not of {name}.")
    if asked.rounds < 1:
        parser.error("--rounds must be at least 1.")
    return asked


def chosen(asked: argparse.Namespace) -> list[str]:
    return list(dict.fromkeys(asked.names)) or [name for name in SUITES if name not in ASKED_FOR]


def results(name: str, rounds: int) -> Iterable[Result]:
    suite, _, words = name.partition("/")
    run: Callable[..., Iterable[Result]] = import_module(f"benchmarks.{suite}").run
    return run(rounds, words.split(",")) if words else run(rounds)


def machine() -> str:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    busy = f", load {os.getloadavg()[0]:.1f} before the start" if hasattr(os, "getloadavg") else ""
    return f"{platform.machine()}, {cores} cores{busy}, Python {platform.python_version()}"


def main() -> int:
    """Print the tables of every suite; of a single one nothing else, what it took and the machine as errors are."""
    asked = arguments()
    logging.getLogger("softcount").setLevel(logging.ERROR)  # that loops are compiled
    here, names = f"{machine()}; best of {asked.rounds}", chosen(asked)
    tell = partial(print, file=sys.stdout if len(names) > 1 else sys.stderr, flush=True)
    tell(f"{here}\n")
    found: dict[str, list[Result]] = {}
    for name in names:
        begun = time.perf_counter()
        tell(f"### {name}: {SUITES[name.partition('/')[0]]}\n")
        found[name] = list(results(name, asked.rounds))
        print(tables(found[name]), flush=True)
        tell(f"\n({time.perf_counter() - begun:.0f} s)\n")
    every: list[Any] = [result for results in found.values() for result in results if result.met is not None]
    tell(f"{sum(result.met for result in every)} of {len(every)} targets met")
    if asked.json is not None:
        facts = {name: [result.facts() for result in results] for name, results in found.items()}
        asked.json.write_text(json.dumps({"machine": here, "results": facts}, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
