"""Text tables that are right in unusual ways, and the cutting of bytes into rows."""

from __future__ import annotations

import csv
import gzip
import io
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.table.reading import cells, read, written

from softcount.sources.bytestream import TextFile
from softcount.sources.csv_dialect import padded_columns, runs
from softcount.sources.csv_file import CsvSource
from softcount.table import open_table

SAME = [
    ("plain", b"a,b\n1.5,x\n2.5,y\n"),
    ("byte-order mark", b"\xef\xbb\xbfa,b\n1.5,x\n2.5,y\n"),
    ("carriage returns", b"a,b\r\n1.5,x\r\n2.5,y\r\n"),
    ("carriage returns only", b"a,b\r1.5,x\r2.5,y\r"),
    ("a carriage return, then newlines", b"a,b\r1.5,x\n2.5,y\n"),
    ("newlines, then a carriage return", b"a,b\n1.5,x\r2.5,y\r\n"),
    ("no last newline", b"a,b\n1.5,x\n2.5,y"),
    ("blank lines", b"\na,b\n\n1.5,x\n\n\n2.5,y\n\n"),
    ("blanks around cells", b"a, b\n 1.5 , x\n2.5,y \n"),
    ("quotes", b'"a","b"\n"1.5","x"\n"2.5","y"\n'),
    ("tabs", b"a\tb\n1.5\tx\n2.5\ty\n"),
    ("semicolons", b"a;b\n1.5;x\n2.5;y\n"),
    ("bars", b"a|b\n1.5|x\n2.5|y\n"),
    ("gzip", gzip.compress(b"a,b\n1.5,x\n2.5,y\n")),
    ("two gzips in one", gzip.compress(b"a,b\n1.5,x\n") + gzip.compress(b"2.5,y\n")),
]


@pytest.mark.parametrize("name", ["t.csv", "t.parquet", "t.gz", "t"])
@pytest.mark.parametrize("content", [pytest.param(content, id=name) for name, content in SAME])
def test_the_same_table_however_written_and_whatever_its_file_is_called(
    tmp_path: Path, content: bytes, name: str
) -> None:
    found = read(written(tmp_path / name, content))
    assert found.table.keys == ["a", "b"]
    assert cells(found, "a") == [1.5, 2.5]
    assert cells(found, "b") == ["x", "y"]
    assert found.table.n_rows == 2


def test_mixed_line_ends_lose_no_row(tmp_path: Path) -> None:
    found = read(written(tmp_path / "t.csv", b"a,b\r1,2\r3,4\n5,6\n7,8\n"))
    assert (cells(found, "a"), cells(found, "b")) == ([1, 3, 5, 7], [2, 4, 6, 8])


def test_leading_zeros_stay_text_after_a_carriage_return(tmp_path: Path) -> None:
    found = read(written(tmp_path / "t.csv", b"a,b\r" + b"007,x\r08,y\r" * 5))
    assert found.settled.schema["a"].levels == ("007", "08")


def test_only_the_mark_that_begins_a_file_is_dropped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("softcount.sources.csv_file.CHUNK_BYTES", 20)  # a chunk for every few rows
    marked = "\ufeffx"
    for header in ("a,b", "\ufeffa,b"):
        path = written(tmp_path / "t.csv", f"{header}\n" + f"{marked},1.5\ny,2.5\n" * 40)
        found = read(path, kinds={"a": "categorical"})
        assert found.table.keys == ["a", "b"]
        assert cells(found, "a") == [marked, "y"] * 40


def test_a_first_line_of_many_blocks_names_every_column(tmp_path: Path) -> None:
    names = [f"a column with a long name and the number {place}" for place in range(30_000)]
    path = written(tmp_path / "t.csv", ",".join(names) + "\n" + ",".join("1" for _ in names) + "\n")
    assert CsvSource(TextFile(path), ()).keys == names


def test_a_name_may_be_as_long_as_a_row(tmp_path: Path) -> None:
    name = "long" * 40_000
    assert read(written(tmp_path / "t.csv", f'a,"{name}"\n1.5,2.5\n3.5,1.5\n')).table.keys == ["a", name]


def test_chunks_of_long_rows_end_sooner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("softcount.sources.csv_file.CHUNK_BYTES", 1_000)
    notes = [f"word{place} " * (200 if place % 7 == 3 else 1) for place in range(50)]
    found = read(
        written(tmp_path / "t.csv", "note\n" + "".join(f"{note}\n" for note in notes)), kinds={"note": "categorical"}
    )
    assert len(found.chunks) > 7
    assert cells(found, "note") == [note.strip() for note in notes]


def test_every_usual_word_for_missing_is_missing(tmp_path: Path) -> None:
    words = ["", "NA", "NaN", "nan", "null", "NULL", "None", "?", " ? ", '"NA"']
    path = written(tmp_path / "t.csv", "a,b\n" + "".join(f"{word},{word}\n1.5,x\n2.5,y\n" for word in words))
    found = read(path)
    assert found.table.missing == {"a": len(words), "b": len(words)}
    assert set(cells(found, "b")) == {None, "x", "y"}


def test_whole_numbers_become_whole_levels_and_leading_zeros_stay_text(tmp_path: Path) -> None:
    found = read(written(tmp_path / "t.csv", "n,z\n" + "1,01\n2.0,02\n+3,10\n" * 5))
    assert found.settled.schema["n"].levels == (1, 2, 3)
    assert found.settled.schema["z"].levels == ("01", "02", "10")


def test_a_single_unnamed_first_column_is_an_index(tmp_path: Path) -> None:
    content = ",x\n" + "".join(f"{row},{row % 2}\n" for row in range(20))
    table = open_table(written(tmp_path / "t.csv", content))
    assert table.keys == ["Unnamed: 0", "x"]
    assert not table.schema["Unnamed: 0"].used


def test_a_file_without_names_can_be_read_by_saying_so(tmp_path: Path) -> None:
    found = read(written(tmp_path / "t.csv", "1.5,x\n2.5,y\n"), header=False)
    assert found.table.keys == ["c1", "c2"]
    assert cells(found, "c1") == [1.5, 2.5]


def test_quotes_inside_unquoted_cells_are_letters(tmp_path: Path) -> None:
    found = read(written(tmp_path / "t.csv", 'a,b\n5" pipe,1.5\n"6"" pipe",2.5\n5" pipe,3.5\n'))
    assert cells(found, "a") == ['5" pipe', '6" pipe', '5" pipe']
    assert cells(found, "b") == [1.5, 2.5, 3.5]


def test_cells_over_several_lines_are_kept_and_noted(tmp_path: Path) -> None:
    found = read(written(tmp_path / "t.csv", 'a,b\n"one\ntwo",1.5\nx,2.5\n'))
    assert cells(found, "a") == ["one\ntwo", "x"]
    assert any(note.startswith("1 line break inside quoted cells") for note in found.table.notes)


def test_reading_says_how_far_it_is(tmp_path: Path) -> None:
    path = written(tmp_path / "t.csv", "a,b\n" + "1.5,x\n2.5,y\n" * 500_000)
    said: list[tuple[int, int]] = []
    read(path, progress=lambda done, total: said.append((done, total)))
    size = Path(path).stat().st_size
    assert said[-1] == (size, size)
    assert [done for done, _ in said] == sorted(done for done, _ in said)


text = st.text(st.characters(exclude_characters="\0\r", exclude_categories=["Cs"]), max_size=8)


@settings(max_examples=60, deadline=None)
@given(rows=st.lists(st.tuples(text, text), min_size=1, max_size=12), size=st.integers(1, 9))
def test_any_text_survives_a_csv_file(tmp_path_factory: pytest.TempPathFactory, rows, size: int) -> None:
    """Up to blanks around a cell, which a text file does not keep, and cells that mean missing."""
    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer, lineterminator="\n", quoting=csv.QUOTE_ALL)
    writer.writerows([("first", "second"), *rows])
    path = written(tmp_path_factory.mktemp("csv") / "t.csv", buffer.getvalue())
    table = read(path, kinds={"first": "categorical", "second": "categorical"}, missing=("missing",))
    for place, key in enumerate(("first", "second")):
        plain = [row[place].strip() for row in rows]
        got = [None if cell is None else str(cell) for cell in cells(table, key)]
        same = table.settled.schema[key].levels and isinstance(table.settled.schema[key].levels[0], str)
        expected = [cell if cell and cell != "missing" else None for cell in plain]
        assert got == expected if same else [cell is None for cell in got] == [cell is None for cell in expected]


def rows_by_hand(content: str) -> list[str]:
    """The rows of a text table, letter by letter."""
    found, row, quoted, begins = [], "", False, True
    for letter in content:
        row += letter
        if letter == '"' and (quoted or begins):
            quoted = not quoted
            begins = not quoted  # a doubled quote opens again at once
            continue
        begins = not quoted and letter in ",\n"
        if letter == "\n" and not quoted:
            found.append(row)
            row = ""
    return [row for row in [*found, row + "\n"] if row.strip("\n")]


cell = st.one_of(
    st.sampled_from(["a", "1", "", "xy", 'q"q', '5"']),
    st.text(st.sampled_from('a,\n"'), max_size=5).map(lambda inner: '"' + inner.replace('"', '""') + '"'),
)


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.lists(cell, min_size=2, max_size=3).map(",".join), max_size=8), st.integers(1, 20), st.integers(1, 4)
)
def test_bytes_are_cut_into_the_same_rows_however_they_arrive(lines: list[str], block: int, rows: int) -> None:
    content = "\n".join(lines)
    data = content.encode()
    blocks = [data[at : at + block] for at in range(0, len(data), block)]
    found = list(runs(blocks, rows, ",", 1 << 20))
    expected = rows_by_hand(content)
    groups = [expected[at : at + rows] for at in range(0, len(expected), rows)]
    assert [run.data.decode() for run in found] == ["".join(group) for group in groups]
    assert [run.n_rows for run in found] == [len(group) for group in groups]
    assert [run.start for run in found] == list(range(0, len(expected), rows))


number = st.sampled_from(["0", "00", "01", "-01", "1", "10", "a0", "", "0.5", "-0", "+007", " 05", "1e-05", "-", "0-0"])


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(number, number, number), min_size=1, max_size=60))
def test_leading_zeros_are_found_in_the_columns_they_are_in(rows) -> None:
    content = "".join(",".join(row) + "\n" for row in rows)
    expected = {place for row in rows for place, one in enumerate(row) if _is_padded(one)}
    assert padded_columns(content.encode(), ",", 3) == expected


def _is_padded(one: str) -> bool:
    bare = one.lstrip(" ")
    bare = bare[1:] if bare[:1] in ("+", "-") else bare
    return bare[:1] == "0" and bare[1:2].isdigit()
