"""Files that are wrong: each one clear line, naming column and row, never a wrong answer."""

from __future__ import annotations

import gzip
import io
import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from tests.table.reading import cells, csv_of, read, written

from softcount.errors import DataError
from softcount.sources import csv_dialect
from softcount.sources.bytestream import unreadable
from softcount.table import open_table

GOOD = "a,b\n" + "1.5,x\n2.5,y\n" * 10

BROKEN = [
    ("empty", b"", "is empty"),
    ("only blank lines", b"\n\r\n\n", "is empty"),
    ("header only", b"a,b\n", "no rows"),
    ("header without its newline", b"a,b", "no rows"),
    ("short row", b"a,b\n1,2\n3\n4,5\n", "row 2 .*has 1 cells .*2 columns"),
    ("long row", b"a,b\n1,2\n3,4,5\n", "row 2 .*has 3 cells .*2 columns"),
    ("rows numbered without blank lines", b"a,b\n1,2\n\n\n3\n", "row 2 .*has 1 cells"),
    ("unclosed quote", b'a,b\n1,x\n2,"y\n3,z\n', "row 2: a quote is never closed"),
    ("unclosed quote at the end", b'a,b\n1,x\n2,"y', "row 2: a quote is never closed"),
    ("repeated name", b"a,b,a\n1,2,3\n", "columns 1 and 3 are both named 'a'"),
    ("no name", b",,\n1,2,3\n", "no column has a name"),
    ("blank name that is taken", b"a,,column 2\n1,2,3\n", "columns 2 and 3 are both named 'column 2'"),
    ("data for a header", b"1,2\n3,4\n", "looks like data, not names.*header=False"),
    ("data with repeats for a header", b"5,x,5,x\n6,y,7,y\n", "looks like data, not names"),
    ("damaged UTF-8", b"a,b\n1,\xc3\xa9\n2,caf\xe9\n", r"not UTF-8.*byte 14 \(in row 2\).*encoding='cp1252'"),
    ("damaged UTF-8 in the header", b"caf\xe9,\xc3\xa9\n1,2\n", "byte 3 .*header"),
    ("neither UTF-8 nor cp1252", b"a,b\n1,\x81\n", "not UTF-8"),
    ("UTF-16 without its mark", "a,b\n1,2\n".encode("utf-16-le"), "NUL"),
    ("NUL", b"a,b\n1,2\n3,\x004\n", "NUL byte in row 2"),
    ("NUL in the header", b"a,\x00b\n1,2\n", "NUL byte in the first line"),
    ("NUL after lines in quotes", b'a,b\n"1\n\n1",2\n\n3,4\n5,\x006\n', "NUL byte in row 3"),
    ("latin-1 in a row too short", b"a,b\n1,2\n\xff\n", "row 2 .*has 1 cells"),
    ("too many columns", b"a," * 40_000 + b"b\n", "t.csv has 40,001 columns or more"),
    (
        "a class too large for a number",
        b"a,b\n" + b"1," + b"7" * 5_000 + b"\n2,3\n",
        "'b', row 1.*too large for a number",
    ),
    ("a name that is never closed", b'a,"b\n1,2\n', "quote opens in it and is never closed"),
    ("zip", b"PK\x03\x04" + b"\0" * 30, "zip or spreadsheet"),
    ("infinite", b"a,b\n1.5,2\n2.5,3\ninf,4\n", "'a'"),
    ("cut-off gzip", gzip.compress(GOOD.encode() * 500)[:-40], "ends too early"),
    ("damaged gzip", gzip.compress(GOOD.encode())[:20] + b"\xff" * 40, "damaged|ends too early"),
    ("Parquet cut off", b"PAR1" + b"\x15" * 200, "Parquet"),
]


@pytest.mark.parametrize(("content", "said"), [pytest.param(c, s, id=name) for name, c, s in BROKEN])
def test_a_broken_file_is_refused_in_one_clear_line(tmp_path: Path, content: bytes, said: str) -> None:
    path = written(tmp_path / "t.csv", content)
    with pytest.raises(DataError, match=said) as caught:
        read(path, kinds={"a": "real"} if b"inf" in content else None)
    assert "\n" not in str(caught.value)


def test_columns_without_a_name_are_called_by_their_place(tmp_path: Path) -> None:
    found = read(written(tmp_path / "t.csv", "a,,c,\n" + "1.5,x,2.5,u\n2.5,y,3.5,v\n" * 3))
    assert found.used == ["a", "column 2", "c", "column 4"]
    assert found.table.notes == ["2 columns have no name in the first line: called 'column 2', 'column 4'"]


def test_text_that_is_not_utf8_is_read_as_cp1252_with_a_note(tmp_path: Path) -> None:
    rows = "gr\xf6\xdfe,b\n" + "1.5,caf\xe9\n2.5,10\u20ac\n" * 5
    for content in (rows.encode("cp1252"), gzip.compress(rows.encode("cp1252"))):
        found = read(written(tmp_path / "t.csv", content))
        assert cells(found, "b") == ["caf\xe9", "10\u20ac"] * 5 and found.used == ["gr\xf6\xdfe", "b"]
        assert any("t.csv is not UTF-8: read as cp1252" in note for note in found.table.notes)


def test_a_quote_that_is_never_closed_is_refused_before_much_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("softcount.sources.csv_dialect.LONGEST", 10_000)
    monkeypatch.setattr("softcount.sources.bytestream.BLOCK", 1_000)
    looked_at = []
    row_ends = csv_dialect.row_ends
    monkeypatch.setattr(
        csv_dialect, "row_ends", lambda data, *how: (looked_at.append(len(data)), row_ends(data, *how))[1]
    )
    path = written(tmp_path / "t.csv", 'a,b\n1,x\n2,"y\n' + "3,z\n" * 100_000)
    with pytest.raises(DataError, match="row 2 is longer than 0 MB: a quote is never closed"):
        read(path)
    assert sum(looked_at) < 5_000


def test_long_stretches_of_blank_lines_are_passed_over_quickly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("softcount.sources.csv_file.LONGEST", 10_000)
    monkeypatch.setattr("softcount.sources.bytestream.BLOCK", 5_000)
    with pytest.raises(DataError, match=r"t\.csv begins with more than 0 MB of blank lines"):
        read(written(tmp_path / "t.csv", "\n" * 30_000 + GOOD))
    for end in ("\n", "\r\n"):
        seen = []
        without = csv_dialect.without_blank_lines
        monkeypatch.setattr(
            csv_dialect,
            "without_blank_lines",
            lambda data, ends, w=without, s=seen: (s.append(len(ends)), w(data, ends))[1],
        )
        path = written(tmp_path / "t.csv", end * 900 + "a,b\n1.5,x\n" + end * 90_000 + "2.5,y\n3.5,x\n")
        assert cells(read(path), "b") == ["x", "y", "x"]
        assert max(seen) < 5_000 and sum(seen) < 30_000
        monkeypatch.setattr(csv_dialect, "without_blank_lines", without)


def test_a_missing_file_and_an_empty_folder_are_refused(tmp_path: Path) -> None:
    written(tmp_path / "cars.csv", GOOD)
    with pytest.raises(DataError, match=r"no such file. Did you mean .*cars\.csv"):
        open_table(tmp_path / "car.csv")
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="empty holds no documents"):
        open_table(tmp_path / "empty")


def test_a_file_that_may_not_be_read_is_refused() -> None:
    """Said of the error itself: some users may read every file."""
    with pytest.raises(DataError, match="may not be read by this user"):
        raise unreadable("t.csv", PermissionError())


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes with a name are not known here")
def test_a_pipe_is_read_whole_though_it_can_be_read_only_once(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_text, args=(GOOD,))
    writer.start()
    found = read(pipe)
    writer.join()
    assert cells(found, "b") == ["x", "y"] * 10


def late(first: str, then: str, rows: int = 66_000) -> str:
    """Rows of `first`, more than are looked at, and one of `then`."""
    return "a,b\n" + f"{first},x\n{first}1,y\n" * (rows // 2) + f"{then},x\n"


@pytest.mark.parametrize("word", ["oops", "1,5", "nan(1)", "0x10", "00042", "1_000", "-007"])
def test_a_word_late_in_a_number_column_is_refused_by_column_and_row(tmp_path: Path, word: str) -> None:
    cell = f'"{word}"' if "," in word else word
    path = written(tmp_path / "t.csv", late("2.5", cell))
    with pytest.raises(DataError, match=r"'a' holds numbers, but row 66001 .*missing=.*kinds={'a': 'categorical'}"):
        read(path)


@pytest.mark.parametrize("word", ["inf", "-Infinity", "1e400", "-1e999"])
def test_an_infinite_number_late_is_refused_by_column_and_row(tmp_path: Path, word: str) -> None:
    with pytest.raises(DataError, match=r"'a'.*row 66001.*[Ii]nfinite"):
        read(written(tmp_path / "t.csv", late("2.5", word)))


def test_a_word_can_be_declared_missing(tmp_path: Path) -> None:
    found = read(written(tmp_path / "t.csv", late("2.5", " oops ")), missing=("oops",))
    assert found.table.missing["a"] == 1


def test_nan_is_a_word_where_it_does_not_mean_missing(tmp_path: Path) -> None:
    path = written(tmp_path / "t.csv", late("2.5", "nan"))
    assert read(path).table.missing["a"] == 1
    with pytest.raises(DataError, match="row 66001 holds 'nan'"):
        read(path, missing=("NA",))


def test_numbers_declared_real_may_have_leading_zeros(tmp_path: Path) -> None:
    path = written(tmp_path / "t.csv", csv_of(["a", "b"], [["007", "x"], ["08.5", "y"], ["-01", "x"]]))
    assert cells(read(path, kinds={"a": "real"}), "a") == [7.0, 8.5, -1.0]


def test_late_bytes_that_are_not_utf8_are_placed(tmp_path: Path) -> None:
    content = late("2.5", "3.5").replace("y", "\xe9", 1).encode() + b"4.5,\xff\n"
    with pytest.raises(DataError, match=rf"byte {len(content) - 2} \(in row 66002\)"):
        read(written(tmp_path / "t.csv", content))


def test_late_ragged_rows_are_numbered_from_the_first(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"row 66002 .*has 3 cells"):
        read(written(tmp_path / "t.csv", late("2.5", "3.5") + "4.5,x,y\n"))


@pytest.mark.parametrize("cut", [4, 100, 400])
def test_a_cut_off_parquet_file_is_refused(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "t.parquet"
    pd.DataFrame({"a": np.arange(50) * 0.5, "b": ["x", "y"] * 25}).to_parquet(path)
    path.write_bytes(path.read_bytes()[:-cut])
    with pytest.raises(DataError, match="damaged or cut-off Parquet"):
        read(path)


def test_a_damaged_page_of_a_parquet_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    frame = pd.DataFrame({"a": np.random.default_rng(0).normal(size=4000)})
    frame.to_parquet(path, write_page_checksum=True)
    content = bytearray(path.read_bytes())
    content[5000] ^= 0xFF
    path.write_bytes(bytes(content))
    with pytest.raises(DataError, match="damaged"):
        read(path)


def test_a_parquet_file_without_rows_is_refused(tmp_path: Path) -> None:
    pd.DataFrame({"a": np.zeros(0)}).to_parquet(tmp_path / "t.parquet")
    with pytest.raises(DataError, match=r"0 sample\(s\)"):
        open_table(tmp_path / "t.parquet")


def test_a_file_that_changes_between_passes_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path / "t.csv", GOOD)
    table = open_table(path)
    written(tmp_path / "t.csv", GOOD + "9.5,z\n")
    with pytest.raises(DataError, match="changed while"):
        list(table.tasks())


class WrittenTo:
    """Somebody who writes to a file while it is read, at the moment named."""

    def __init__(self, path: Path, change: Callable[[Path], object], after: int) -> None:
        self.path, self.change, self.left = path, change, after

    def __call__(self, done: int, total: int) -> None:
        self.left -= 1
        if self.left == 0:
            self.change(self.path)


def grow(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b"9.5,z\n")


def replace(path: Path) -> None:
    other = path.with_name("other")
    other.write_bytes(path.read_bytes())
    os.utime(other, ns=(path.stat().st_atime_ns, path.stat().st_mtime_ns))
    os.replace(other, path)


@pytest.mark.parametrize("change", [grow, replace, Path.unlink])
@pytest.mark.parametrize("after", [1, 2])
def test_a_text_file_that_changes_within_a_pass_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: Callable[[Path], object], after: int
) -> None:
    monkeypatch.setattr("softcount.sources.bytestream.BLOCK", 64)
    path = tmp_path / "t.csv"
    written(path, GOOD)
    with pytest.raises(DataError, match="changed while"):
        read(path, progress=WrittenTo(path, change, after))


@pytest.mark.parametrize("change", [grow, replace])
@pytest.mark.parametrize("within", [True, False])
def test_a_parquet_file_that_changes_is_refused(tmp_path: Path, change: Callable[[Path], object], within: bool) -> None:
    path = tmp_path / "t.parquet"
    pd.DataFrame({"a": np.arange(9_000) * 0.5, "b": ["x", "y"] * 4_500}).to_parquet(path)
    table = open_table(path, progress=WrittenTo(path, change, 1) if within else None)
    if not within:
        change(path)
    with pytest.raises(DataError, match="changed while"):
        list(table.tasks())


def test_standard_input_is_read_and_may_be_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(GOOD.encode())))
    found = read("-")
    assert cells(found, "b") == ["x", "y"] * 10
    assert len(list(found.table.tasks())) == 1


def test_errors_on_standard_input_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"a,b\n")))
    with pytest.raises(DataError, match="standard input has column names but no rows"):
        open_table("-")
