"""The bundled table is what its page says, and the script makes it again."""

from __future__ import annotations

import csv
import importlib.util
import io
from collections import Counter
from pathlib import Path

import pytest

from softcount.demo import TABLES, table_path
from softcount.errors import DataError

ROOT = Path(__file__).resolve().parent.parent
CONTENT = table_path("bicycles").read_bytes()
ROWS = list(csv.DictReader(io.StringIO(CONTENT.decode("utf-8-sig"), newline="")))


def column(name: str) -> list[str]:
    return [row[name] for row in ROWS]


def test_the_script_makes_the_same_bytes() -> None:
    spec = importlib.util.spec_from_file_location("make_demo_table", ROOT / "scripts" / "make_demo_table.py")
    assert spec is not None and spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    assert script.table() == CONTENT


def test_the_file_is_as_messy_as_it_should_be() -> None:
    assert CONTENT.startswith(b"\xef\xbb\xbf") and b"\r\n" in CONTENT
    assert len(ROWS) == 520 and set(column("currency")) == {"EUR"}
    assert len(set(column("listing"))) == len(ROWS)
    assert any(code.startswith("0") for code in column("postcode"))
    assert any("\n" in note for note in column("note")) and any('"' in note for note in column("note"))
    assert {"", "NA", "?"} <= set(column("age_years"))
    assert 1 <= Counter(column("brakes"))["drum"] < 10


def test_the_target_has_three_classes_and_a_few_holes() -> None:
    found = Counter(column("type"))
    assert set(found) == {"city", "road", "mountain", "", "?"}
    assert 5 <= found[""] + found["?"] <= 25


def test_the_page_counts_right() -> None:
    page = (ROOT / "docs" / "contributing" / "demo-table.md").read_text(encoding="utf-8")
    for name in ROWS[0]:
        holes = sum(cell in ("", "NA", "NaN", "?") for cell in column(name))
        line = next(line for line in page.splitlines() if line.startswith(f"| `{name}` |"))
        assert line.split("|")[3].strip() == str(holes), name


def test_every_table_is_there_with_its_target() -> None:
    for name, target in TABLES.items():
        assert target in table_path(name).read_text(encoding="utf-8-sig").split("\n", 1)[0].split(",")


def test_an_unknown_table_is_refused_with_the_names_there_are() -> None:
    with pytest.raises(DataError, match="bicycles"):
        table_path("boats")
