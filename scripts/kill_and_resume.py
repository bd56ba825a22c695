"""Kill a fit with SIGKILL at many moments, let it go on from its checkpoint, and compare: all bits must be the same.

python scripts/kill_and_resume.py [MOMENTS]
"""

from __future__ import annotations

import hashlib
import os
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import softcount as sc
from softcount.learn import checkpoints

ROWS = 40_000


def table() -> np.ndarray:
    rng = np.random.default_rng(0)
    return rng.normal(size=(ROWS, 6)) + 1.2 * rng.integers(0, 3, ROWS)[:, None]


def digest(X: np.ndarray, checkpoint: Any) -> str:
    """What a fit comes to, in a few letters."""
    found = sc.Mixture(3, n_init=2, max_iter=300, random_state=0, n_jobs=1, checkpoint=checkpoint).fit(X)
    parts = [half for array in found.counts_.arrays.values() for half in (array.hi, array.lo)]
    return hashlib.sha256(b"".join([np.array(found.trace_).tobytes(), *(x.tobytes() for x in parts)])).hexdigest()


def in_child(X: np.ndarray, folder: Path) -> int:
    """A process that fits and writes down what it came to."""
    child = os.fork()
    if child == 0:
        (folder / "digest").write_text(digest(X, folder / "checkpoint"))
        os._exit(0)
    return child


def main(moments: int) -> int:
    X, same, killed = table(), 0, 0
    checkpoints.EVERY = checkpoints.SELDOM = 0.0
    whole = digest(X, None)
    began = time.monotonic()
    digest(X, None)
    lasts = time.monotonic() - began
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for moment in np.random.default_rng(1).random(moments):
            child = in_child(X, folder)
            time.sleep(float(moment) * lasts)
            os.kill(child, signal.SIGKILL)
            killed += os.WIFSIGNALED(os.waitpid(child, 0)[1])
            os.waitpid(in_child(X, folder), 0)
            same += (folder / "digest").read_text() == whole
            (folder / "digest").unlink()
    print(f"{killed} of {moments} were killed under way; {same} of {moments} came to the same bits")
    return 0 if same == moments else 1


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 50))
