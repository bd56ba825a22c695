"""Which files of Softcount a newcomer walks through: those with a function that runs, not those only imported.

`python scripts/walk.py [TABLE.csv TARGET]` lists them for `softcount fit TABLE.csv --target TARGET` and for one
iteration of `Mixture`: what runs more often when there is one iteration more.
"""

from __future__ import annotations

import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import FrameType

from click.testing import CliRunner

import softcount
from softcount.cli import main

ROOT = Path(softcount.__file__).parent


def calls(work: Callable[[], object]) -> Counter[str]:
    """How often functions of each file of the package run, in any thread; what runs on import has run before."""
    work()
    found: Counter[str] = Counter()

    def note(frame: FrameType, event: str, argument: object) -> None:
        found[frame.f_code.co_filename] += event == "call"

    threading.setprofile(note)
    sys.setprofile(note)
    work()
    sys.setprofile(None)
    threading.setprofile(None)
    return Counter({name: n for name, n in found.items() if name.startswith(str(ROOT))})


def fit_command(table: str, target: str) -> None:
    """`softcount fit TABLE --target TARGET`, its page thrown away."""
    with tempfile.TemporaryDirectory() as folder:
        result = CliRunner().invoke(main, ["fit", table, "--target", target, "-o", f"{folder}/model.sc"])
    assert result.exit_code == 0, result.output


def mixture(table: str, steps: int) -> None:
    """So many iterations of EM from one start."""
    softcount.Mixture(n_components=2, n_init=1, max_iter=steps, tol=0, accelerate=False, random_state=0).fit(table)


if __name__ == "__main__":
    table, target = sys.argv[1:] or (str(ROOT / "demo" / "bicycles.csv"), "type")
    step = calls(partial(mixture, table, 4)) - calls(partial(mixture, table, 3))
    for title, found in {"softcount fit": calls(partial(fit_command, table, target)), "one iteration": step}.items():
        names = sorted(str(Path(name).relative_to(ROOT)) for name in found)
        print(f"{title}: {len(names)} files", *names, sep="\n  ")
