"""Running the command in a process of its own, as a shell would."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import softcount.cli

SOURCES = str(Path(softcount.cli.__file__).parents[2])


def python(*arguments: str, **options: object) -> subprocess.CompletedProcess[bytes]:
    """A fresh Python that finds the library under test."""
    environment = {**os.environ, "PYTHONPATH": SOURCES, **dict(options.pop("env", {}))}  # type: ignore[call-overload]
    command = [sys.executable, *arguments]
    return subprocess.run(command, capture_output=True, check=False, env=environment, **options)  # type: ignore[call-overload]


def softcount_command(*arguments: str, **options: object) -> subprocess.CompletedProcess[bytes]:
    return python("-m", "softcount.cli", *arguments, **options)
