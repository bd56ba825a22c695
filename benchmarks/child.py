"""Run a command and print what it took as JSON: seconds, CPU seconds, peak resident memory in MB.

Run as a script of its own, because a process starts out with the memory of the one that made it, and that one must be
small not to be measured instead.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from typing import Any


def measured(command: list[str], folder: str | None = None) -> dict[str, Any]:
    """What the command took, measured by a small process in between; a failure raises with what it said."""
    told = subprocess.run(
        [sys.executable, "-S", "-E", __file__, *command], capture_output=True, text=True, cwd=folder, env=surroundings()
    )
    if told.returncode:
        raise RuntimeError(f"{' '.join(command)} failed:\n{told.stderr}")
    return json.loads(told.stdout)


def surroundings() -> dict[str, str]:
    """The environment, with compiled modules kept on disk and paths that hold in any folder."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    if "PYTHONPATH" in kept:
        kept["PYTHONPATH"] = os.pathsep.join(map(os.path.abspath, kept["PYTHONPATH"].split(os.pathsep)))
    return kept


def softcount() -> list[str]:
    """The command line, as installed or else from the source."""
    script = os.path.join(os.path.dirname(sys.executable), "softcount")
    return [script] if os.path.exists(script) else [sys.executable, "-m", "softcount.cli"]


def main() -> int:
    begun = time.perf_counter()
    done = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    took = time.perf_counter() - begun
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    unit = 1e6 if sys.platform == "darwin" else 1e6 / 1024
    if done.returncode:
        sys.stderr.buffer.write(done.stderr[-2000:])
        return done.returncode
    print(json.dumps({"seconds": took, "cpu": used.ru_utime + used.ru_stime, "megabytes": used.ru_maxrss / unit}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
