"""What every test may ask for: the folder of real tables. Drawn tables are the same in every run and have no deadline.

With SOFTCOUNT_TRIES set they are fresh each time, to search for what the fixed ones miss.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Generator
from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("repeatable", derandomize=not os.environ.get("SOFTCOUNT_TRIES"), deadline=None)
settings.load_profile("repeatable")

collect_ignore = ["typed_names.py"]  # for mypy; running it is an error
ROOT = Path(__file__).resolve().parent.parent
DATA = Path(os.environ.get("SOFTCOUNT_DATA") or ROOT.parent / "shared" / "data")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """No garbage is looked for while tests are collected, nor ever among what was: it took a quarter of that time."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.fixture(scope="session")
def data() -> Callable[[str], Path]:
    """The path of a real table by its name under the data folder; absent, the test is skipped and says so."""

    def find(name: str) -> Path:
        path = DATA / name
        if not path.exists():
            pytest.skip(f"real table {name!r} is not here; set SOFTCOUNT_DATA to the folder that holds it")
        return path

    return find
