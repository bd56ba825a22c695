"""What every test may ask for: the folder of real tables."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
DATA = Path(os.environ.get("SOFTCOUNT_DATA") or ROOT.parent / "shared" / "data")


@pytest.fixture(scope="session")
def data() -> Callable[[str], Path]:
    """The path of a real table by its name under the data folder; absent, the test is skipped and says so."""

    def find(name: str) -> Path:
        path = DATA / name
        if not path.exists():
            pytest.skip(f"real table {name!r} is not here; set SOFTCOUNT_DATA to the folder that holds it")
        return path

    return find
