"""Print which files, functions and packages of Softcount a call enters, and how often it crosses between packages.

`python scripts/walk.py [TABLE.csv TARGET]` walks through `softcount fit TABLE.csv --target TARGET`, through
`NaiveBayes().fit(frame, TARGET)` and through one EM iteration of `Mixture`. A file counts if one of its functions runs,
not if it is only imported. A crossing is a pair of packages of which one calls a function of the other.
"""

from __future__ import annotations

import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import CodeType, FrameType

import pyarrow.csv
from click.testing import CliRunner

import softcount
from softcount.cli import main

ROOT = Path(softcount.__file__).parent
Calls = Counter[tuple[CodeType | None, CodeType]]
"""How often one function of the package (or, as None, something outside it) called another."""


def record_calls(work: Callable[[], object]) -> Calls:
    """The calls of functions of the package in any thread, in a second run: imports ran in the first."""
    work()
    found: Calls = Counter()

    def note(frame: FrameType, event: str, argument: object) -> None:
        if event != "call" or not _is_ours(frame.f_code):
            return
        caller = frame.f_back
        while caller is not None and not _is_ours(caller.f_code):
            caller = caller.f_back
        found[caller.f_code if caller else None, frame.f_code] += 1

    threading.setprofile(note)
    sys.setprofile(note)
    work()
    sys.setprofile(None)
    threading.setprofile(None)
    return found


def _is_ours(code: CodeType) -> bool:
    return code.co_filename.startswith(str(ROOT))


def fit_command(table: str, target: str) -> None:
    """Run `softcount fit TABLE --target TARGET` and drop its output."""
    with tempfile.TemporaryDirectory() as folder:
        result = CliRunner().invoke(main, ["fit", table, "--target", target, "-o", f"{folder}/model.sc"])
    assert result.exit_code == 0, result.output


def fit_naive_bayes(table: str, target: str) -> None:
    """Fit the table as a frame in memory."""
    softcount.NaiveBayes().fit(pyarrow.csv.read_csv(table), target)


def fit_mixture(table: str, steps: int) -> None:
    """Run this many EM iterations from one initialisation."""
    softcount.Mixture(n_components=2, n_init=1, max_iter=steps, tol=0, accelerate=False, random_state=0).fit(table)


def files(calls: Calls) -> list[str]:
    """The files entered, relative to the package."""
    return sorted({str(Path(code.co_filename).relative_to(ROOT)) for _, code in calls})


def functions(calls: Calls) -> int:
    """How many functions run."""
    return len({code for _, code in calls})


def crossings(calls: Calls) -> Counter[tuple[str, str]]:
    """Calls from one package to another, by the pair of packages."""
    found: Counter[tuple[str, str]] = Counter()
    for (caller, code), n in calls.items():
        if caller is not None and _package(caller) != _package(code):
            found[_package(caller), _package(code)] += n
    return found


def _package(code: CodeType) -> str:
    return Path(code.co_filename).relative_to(ROOT).parts[0].removesuffix(".py")


def describe(title: str, calls: Calls) -> str:
    """One line of figures, the crossings by package, and the files."""
    packages = {_package(code) for _, code in calls}
    pairs = crossings(calls)
    by_caller: dict[str, list[str]] = {}
    for caller, called in sorted(pairs):
        by_caller.setdefault(caller, []).append(called)
    lines = [
        f"{title}: {len(files(calls))} files, {functions(calls)} functions, {len(packages)} packages, "
        f"{len(pairs)} crossings ({pairs.total():,} calls)"
    ]
    lines += [f"  {caller} -> {', '.join(called)}" for caller, called in by_caller.items()]
    return "\n".join(lines + [f"    {name}" for name in files(calls)])


if __name__ == "__main__":
    table, target = sys.argv[1:] or (str(ROOT / "demo" / "bicycles.csv"), "type")
    step = record_calls(partial(fit_mixture, table, 4)) - record_calls(partial(fit_mixture, table, 3))
    print(describe("softcount fit", record_calls(partial(fit_command, table, target))))
    print(describe("NaiveBayes().fit", record_calls(partial(fit_naive_bayes, table, target))))
    print(describe("one iteration of EM", step))
