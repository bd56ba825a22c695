"""ARFF, JSON, SQLite, Excel, several files, and odd columns of frames: taken, or refused in a clear line."""

from __future__ import annotations

import datetime
import decimal
import gzip
import json
import re
import sqlite3
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from click.testing import CliRunner

import softcount
from softcount.cli import main
from softcount.errors import DataError
from table.reading import cells, read_table

ROWS = [{"size": 1.5 + n % 7, "colour": "red" if n % 3 else "dark blue", "n": n % 4} for n in range(40)]

ORANGE = "size\twing\twhich\ncontinuous\tdiscrete\td\n\t\tclass\n" + "6.29\tshort\twasp\n" * 20


def kinds(data: Any, **how: Any) -> dict[Any, str]:
    return {spec.key: spec.kind.value for spec in softcount.read(data, **how).schema.fields}


def shell(*words: object) -> dict[str, Any]:
    result = CliRunner().invoke(main, [str(word) for word in words])
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return found


EXPECTED = kinds(pd.DataFrame(ROWS))


def arff(path: Path) -> str:
    lines = [f"{row['size']}, '{row['colour']}', {row['n']}" for row in ROWS]
    head = "% a comment\n@RELATION 'paint'\n@attribute size numeric\n@attribute n integer\n".splitlines(keepends=True)
    head.insert(3, "@attribute 'colour' {red, 'dark blue'}\n")
    path.write_text("".join(head) + "\n@data\n" + "\n".join(lines) + "\n?, ?, 3\n")
    return str(path)


def json_lines(path: Path) -> str:
    path.write_text("".join(json.dumps(row) + "\n" for row in [*ROWS, {"size": None, "n": 3}]))
    return str(path)


def json_list(path: Path) -> str:
    path.write_text(json.dumps([*ROWS, {"n": 3}], indent=1))
    return str(path)


def database(path: Path) -> str:
    with sqlite3.connect(path) as base:
        base.execute('CREATE TABLE "my ""paint" (size REAL, colour TEXT, n INTEGER)')
        base.execute("CREATE TABLE other (x INTEGER)")
        rows = [tuple(row.values()) for row in [*ROWS, {"size": None, "colour": None, "n": 3}]]
        base.executemany('INSERT INTO "my ""paint" VALUES (?, ?, ?)', rows)
    return f'{path}::my "paint'


def workbook(path: Path) -> str:
    pytest.importorskip("openpyxl")
    pd.DataFrame([*ROWS, {"n": 3}]).to_excel(path.with_suffix(".xlsx"), index=False)
    return str(path.with_suffix(".xlsx"))


@pytest.mark.parametrize("write", [arff, json_lines, json_list, database, workbook])
def test_a_table_is_the_same_in_whatever_file(write: Any, tmp_path: Path) -> None:
    path = write(tmp_path / "t.data")
    found = read_table(softcount.read(path))
    assert found.kinds == EXPECTED
    assert cells(found, "colour") == [*(row["colour"] for row in ROWS), None]
    assert found.table.missing["size"] == 1
    told = shell("schema", path, "--json")
    assert {x["column"]: x["kind"] for x in told["columns"]} == EXPECTED and told["rows"] == 41


def test_a_model_predicts_from_any_of_these_files(tmp_path: Path) -> None:
    model = tmp_path / "m.sc"
    run = CliRunner().invoke(main, ["fit", database(tmp_path / "a.db"), "--target", "colour", "-o", str(model)])
    assert run.exit_code == 0, run.output
    told = [CliRunner().invoke(main, ["predict", str(model), write(tmp_path / name)]).stdout
            for write, name in ((arff, "a.arff"), (json_lines, "a.jsonl"))]  # fmt: skip
    assert told[0] == told[1] and len(told[0].splitlines()) == 42


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("t.arff", "@relation t\n@attribute a numeric\n@data\nx\n", "'a', line 4 of .* is not a number"),
        ("t.arff", "@relation t\n@attribute a numeric\n@data\n1,2\n", "line 4 .* has 2 cells where it declares 1"),
        ("t.arff", "@relation t\n@attribute a numeric\n", "without @data"),
        ("t.arff", "@relation t\n@attribute a numeric\n@data\n{0 1}\n", "sparse"),
        ("t.jsonl", '{"a": 1}\n{"a": 2\n', "line 2 .* is not valid JSON"),
        ("t.jsonl", '{"a": 1}\n[3]\n', "line 2 .* not a row"),
        ("t.json", '[{"a": 1}, 3]', "row 2 .* not a row with names"),
        ("t.jsonl", '{"a": 1}\n{"a": 2, "b": {"c": 1, "c": 2}}\n', "line 2 .* has two values for 'c'"),
        ("t.json", '[{"a": 1, "a": 2}]', "has two values for 'a'"),
        ("t.jsonl", '{"a.b": 1}\n{"a": {"b": "x"}}\n', "two columns .* both named 'a.b': 'a.b' and 'b' in 'a'"),
        ("t.jsonl", "[1, 2]\n[3, 4]\n", "holds JSON arrays, whose cells have no names"),
        ("t.json", "[\n[1, 2],\n[3, 4]\n]\n", "holds JSON arrays"),
        ("t.jsonl", '{"a": ' + "[" * 10_000 + "]" * 10_000 + "}", "line 1 .* is nested too deeply"),
        ("t.json", '[{"a": ' + '{"b":' * 10_000 + "1" + "}" * 10_001 + "]", "is nested too deeply"),
        ("t.csv", '{"a": ' + "1" * 5_000 + '}\n{"a": 2}\n', "'a', row 1: inf is infinite or too large"),
        ("t.jsonl", "".join(f'{{"key {n}": 1}}\n' for n in range(40_000)), "has 30,001 columns or more"),
        ("t.jsonl", "".join(f'{{"key {n}": 1}}\n' for n in range(5_000)), "5,000 different names in 5,000 rows"),
        ("t.arff", "@relation t\n@attribute a numeric\n@attribute a numeric\n@data\n1,2\n", "both named 'a'"),
        ("t.db2", "1 2\n", "a table of AutoClass, which is not read. Save it as plain CSV"),
        ("t.data", "!#; AutoClass C data file\n1 2\n", "a table of AutoClass, which is not read"),
        ("t.tab", ORANGE, "types and roles in Orange's format, which is not supported. Delete these two lines"),
    ],
)
def test_a_broken_file_is_refused_by_its_line(name: str, content: str, said: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(DataError, match=said):
        softcount.read(tmp_path / name)


@pytest.mark.parametrize("encode", [gzip.compress, lambda text: text.decode().encode("utf-16"),
                                    lambda text: text.replace(b"\n", b"\r")], ids=["gzip", "UTF-16", "CR"])  # fmt: skip
def test_json_lines_are_known_by_their_content_whatever_the_name(encode: Any, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes(encode(Path(json_lines(tmp_path / "t.jsonl")).read_bytes()))
    assert kinds(tmp_path / "t.csv") == EXPECTED


def saved_sheet(path: Path, rows: list[list[Any]], *more: str) -> Path:
    book = pytest.importorskip("openpyxl").Workbook()
    book.active.title = "first"
    for row in rows:
        book.active.append(row)
    for name in more:
        book.create_sheet(name).append(["other"])
    book.save(path)
    return path


def with_sheet(path: Path, change: Any) -> Path:
    """The same workbook with the XML of its first sheet changed."""
    with zipfile.ZipFile(path) as old:
        entries = {entry: old.read(entry) for entry in old.namelist()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as new:
        for name, content in entries.items():
            new.writestr(name, change(content) if name == "xl/worksheets/sheet1.xml" else content)
    return path


SHEET = [["size", "colour"], *([1.5 + n % 7, "red" if n % 3 else "blue"] for n in range(30))]


def test_a_stale_dimension_of_a_sheet_loses_no_rows(tmp_path: Path) -> None:
    path = saved_sheet(tmp_path / "t.xlsx", SHEET)
    with_sheet(path, lambda xml: re.sub(rb'<dimension ref="[^"]*"', b'<dimension ref="A1:A5"', xml))
    assert len(cells(read_table(softcount.read(path)), "colour")) == 30


def test_the_first_sheet_is_read_and_the_others_are_named(tmp_path: Path) -> None:
    table = softcount.read(saved_sheet(tmp_path / "t.xlsx", [["a", None], [1.5, 2], [2.5, 3]], "second", "third"))
    assert "t.xlsx has 3 sheets: 'first', the first, is read" in table.notes[0]
    assert table.notes[1] == "column 2 has no name in the first line: called 'column 2'" and table.n_rows == 2
    with pytest.raises(DataError, match=r"the sheet 'second' of .* has column names but no rows"):
        softcount.read(f"{tmp_path / 't.xlsx'}::second")


def test_dates_among_text_in_a_sheet_are_text(tmp_path: Path) -> None:
    day = datetime.datetime(2024, 1, 31)
    path = saved_sheet(tmp_path / "t.xlsx", [["a", "b"], *([n % 3, day if n % 2 else "never"] for n in range(12))])
    assert set(cells(read_table(softcount.read(path)), "b")) == {"2024-01-31", "never"}
    assert kinds(path, kinds={"b": "ignore"})["b"] == "identifier"
    assert set(cells(read_table(softcount.read({"b": [day, "never", 3]})), "b")) == {"2024-01-31", "never", "3"}


def test_bad_sheets_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = saved_sheet(tmp_path / "t.xlsx", [["a", "b", "a"], [1, 2, 3]])
    with pytest.raises(DataError, match="columns 1 and 3 are both named 'a'"):
        softcount.read(path)
    with pytest.raises(DataError, match=r"t\.xlsx cannot be read as a spreadsheet: .*Save the sheet as CSV"):
        softcount.read(with_sheet(path, lambda xml: xml[:300]))
    monkeypatch.setattr("softcount.sources.databases.LARGEST", 1 << 20)
    with pytest.raises(DataError, match=r"t\.xlsx unpacks to 2 MB, and spreadsheets of up to 1 MB are read"):
        softcount.read(with_sheet(path, lambda xml: b"x" * (2 << 20)))


def test_a_table_of_a_database_must_be_one(tmp_path: Path) -> None:
    database(tmp_path / "a.db")
    with pytest.raises(DataError, match=r"has 2 tables: .*Name one: .*a\.db::"):
        softcount.read(tmp_path / "a.db")
    with pytest.raises(DataError, match="there is no table 'paint'"):
        softcount.read(f"{tmp_path / 'a.db'}::paint")


def parts(folder: Path) -> list[str]:
    for place, letter in enumerate("ab"):
        rows = "".join(f"{n + place}.5,{letter}\n" for n in range(30))
        (folder / f"day-{place}.csv").write_text(
            f"x,who\n{rows}" if not place else "who,x\n" + "".join(f"{letter},{n + place}.5\n" for n in range(30))
        )
    return [str(folder / f"day-{place}.csv") for place in range(2)]


def test_several_files_are_one_table_whatever_the_order_of_their_columns(tmp_path: Path) -> None:
    files = parts(tmp_path)
    joined = read_table(softcount.read(str(tmp_path / "day-*.csv")))
    assert cells(joined, "x") == [n + 0.5 for n in range(30)] + [n + 1.5 for n in range(30)]
    assert cells(joined, "who") == ["a"] * 30 + ["b"] * 30
    listed = read_table(softcount.read(files, file_column="file"))
    assert cells(listed, "file") == ["day-0.csv"] * 30 + ["day-1.csv"] * 30
    assert shell("schema", tmp_path / "day-*.csv", "--json")["rows"] == 60
    one = softcount.NaiveBayes().fit(softcount.read(files), "who")
    assert len(one.predict(str(tmp_path / "day-*.csv"))) == 60


def test_files_of_one_table_have_the_same_columns(tmp_path: Path) -> None:
    parts(tmp_path)
    (tmp_path / "day-2.csv").write_text("x,whom\n1.5,c\n")
    with pytest.raises(DataError, match=r"day-2\.csv lacks 'who' and has 'whom' more, compared with .*day-0\.csv"):
        softcount.read(str(tmp_path / "day-*.csv"))
    with pytest.raises(DataError, match="no file matches"):
        softcount.read(str(tmp_path / "night-*.csv"))


def test_odd_columns_of_frames_are_taken() -> None:
    values = np.arange(60) % 13 / 2
    frame = pd.DataFrame({
        "cut": pd.cut(values, [-1, 2, 4, 9]),
        "month": pd.period_range("2020-01", periods=60, freq="M"),
        "exact": [decimal.Decimal(n) / 4 for n in range(60)],
        "large": [10**20 + n % 7 * 10**19 for n in range(60)],
        "y": values,
    })  # fmt: skip
    found = kinds(frame)
    assert found["cut"] == "categorical" and found["month"] == found["exact"] == "real"
    assert len(softcount.Mixture(2, random_state=0).fit(frame).sample(3)) == 3
    with pytest.raises(DataError, match="'x' holds a whole number that is too large"):
        softcount.read({"x": [10**400, 1, 2]})


def test_a_lazy_frame_is_collected() -> None:
    lazy = pl.LazyFrame({"x": [n / 3 for n in range(30)], "y": ["a", "b", "c"] * 10})
    model = softcount.NaiveBayes().fit(lazy, "y")
    assert len(model.predict(lazy)) == 30
