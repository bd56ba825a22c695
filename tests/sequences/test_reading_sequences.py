"""Sequences from every kind of input are the same rows with the same borders; what cannot be read is named."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from softcount.errors import DataError
from softcount.sequences import Sequences, open_sequences

CLICKS: list[list[Any]] = [["home", "shop", None, "buy"], ["home"], ["shop", "shop", "home"]]


def decoded(found: Sequences) -> list[list[Any]]:
    """The first column of every sequence, as levels."""
    table = found.table(kinds="categorical")
    chunks = list(found.chunks(table))
    settled = table.settle()
    levels = [None, *settled.schema.used[0].levels]
    rows = [
        [levels[code] for code in part]
        for chunk in map(settled.recoded, chunks)
        for part in np.split((chunk.codes if chunk.codes.shape[1] else chunk.wide)[:, 0], chunk.borders[1:])
    ]
    assert [len(row) for row in rows] == found.lengths.tolist()
    return rows


def long_rows() -> dict[str, list[Any]]:
    """The clicks a row each, sequences and times mixed up."""
    rows = [(who, at, page) for who, pages in enumerate(CLICKS) for at, page in enumerate(pages)]
    rows = [rows[place] for place in (2, 4, 6, 0, 7, 5, 3, 1)]
    return {"who": [f"c{row[0]}" for row in rows], "at": [row[1] for row in rows], "page": [row[2] for row in rows]}


def _csv(folder: Path) -> Sequences:
    pd.DataFrame(long_rows()).to_csv(folder / "clicks.csv", index=False)
    return open_sequences(folder / "clicks.csv", sequence="who", sort_by="at")


def _parquet(folder: Path) -> Sequences:
    pq.write_table(pa.table({"clicks": CLICKS, "size": [1, 2, 3]}), folder / "clicks.parquet")
    return open_sequences(str(folder / "clicks.parquet"))


def _folder(folder: Path) -> Sequences:
    (folder / "visits").mkdir()
    for at, pages in enumerate(CLICKS):
        pd.DataFrame({"page": pages}).to_csv(folder / "visits" / f"{at}.csv", index=False, na_rep="NA")
    return open_sequences(folder / "visits")


WAYS: dict[str, Callable[[Path], Sequences]] = {
    "lists": lambda _: open_sequences(CLICKS),
    "tuples": lambda _: open_sequences(tuple(map(tuple, CLICKS))),
    "arrays": lambda _: open_sequences([np.array(pages, dtype=object) for pages in CLICKS]),
    "rows": lambda _: open_sequences([[(page,) for page in pages] for pages in CLICKS]),
    "records": lambda _: open_sequences([[{"page": page} for page in pages] for pages in CLICKS]),
    "frames": lambda _: open_sequences([pd.DataFrame({"page": pages}) for pages in CLICKS]),
    "series": lambda _: open_sequences(pd.Series(CLICKS)),
    "arrow": lambda _: open_sequences(pa.array(CLICKS)),
    "large arrow": lambda _: open_sequences(pa.chunked_array([CLICKS[:1], CLICKS[1:]], pa.large_list(pa.string()))),
    "polars": lambda _: open_sequences(pl.Series(CLICKS)),
    "polars frame": lambda _: open_sequences(pl.DataFrame({"clicks": CLICKS})),
    "long": lambda _: open_sequences(pd.DataFrame(long_rows()), sequence="who", sort_by="at"),
    "long csv": _csv,
    "parquet": _parquet,
    "folder": _folder,
}


@pytest.mark.parametrize("way", WAYS)
def test_every_input_gives_the_same_rows_and_borders(way: str, tmp_path: Path) -> None:
    found = WAYS[way](tmp_path)
    assert decoded(found) == CLICKS
    assert len(found) == 3 and found.n_steps == 8


def test_rows_put_in_order_are_said_and_sequences_come_as_first_met() -> None:
    found = open_sequences(long_rows(), sequence="who", sort_by="at")
    assert found.names == ["c0", "c1", "c2"] and found.place(5) == "sequence 'c2', step 1"
    assert found.notes == ("2 sequences were not in order of 'at' and sorted, first 'c0'",)
    assert "no sort_by column" in open_sequences(long_rows(), sequence="who").notes[-1]


def test_times_that_are_text_are_sorted_by_spelling_with_a_note_unless_it_is_dates() -> None:
    def notes(times: list[Any]) -> tuple[str, ...]:
        table = {"who": ["a", "a", "a"], "at": times, "page": ["x", "y", "z"]}
        found = open_sequences(table, sequence="who", sort_by="at")
        assert decoded(found) == [["x", "y", "z"]]
        return found.notes

    assert notes(["2024-01-31", "2024-02-01 09:30", "2024-02-01 10:00"]) == ()
    assert notes(["9", "10", "11.5"]) == ()
    assert notes(["3/1/2024", "4/1/2024", "5/1/2024"]) == (
        "column 'at' is text and sorted by its spelling, first '3/1/2024'",
    )
    stamps = pd.to_datetime(["2024-01-01 09:00", "2024-01-01 10:00", "2024-01-03 08:00"])
    assert notes(list(stamps)) == ()


def test_steps_have_several_columns_of_mixed_kinds_and_weights() -> None:
    visits = [[("a", 1.5), None, ("b", float("nan"))], [("a", 2.25)]]
    found = open_sequences(visits, weights=[2.0, 0.5])
    chunk = next(found.chunks(found.table(kinds={0: "categorical", 1: "real"})))
    assert chunk.codes[:, 0].tolist() == [1, 0, 2, 1] and chunk.weights.tolist() == [2, 2, 2, 0.5]
    assert np.array_equal(chunk.reals[:, 0], [1.5, np.nan, np.nan, 2.25], equal_nan=True)
    weighed = {"s": [1, 1, 2], "t": [1, 2, 1], "w": [3, 3, 1], "x": ["a", "b", "b"]}
    assert open_sequences(weighed, sequence="s", sort_by="t", weight="w").weights.tolist() == [3, 1]
    table = pa.table({"x": [["a", "b"], ["c"]], "y": [[1.0, 2.0], [3.0]]})
    assert open_sequences(table).source.keys == ["x", "y"]
    numbers = open_sequences([np.ones((3, 2)), np.zeros((1, 2))])
    assert numbers.source.keys == [0, 1] and numbers.lengths.tolist() == [3, 1]


def test_text_is_characters_or_words_of_lines_or_files(tmp_path: Path) -> None:
    (tmp_path / "song.txt").write_text("Who? NA\n\nme, me\n", "utf-8")
    lines = open_sequences(tmp_path / "song.txt", steps="characters")
    assert ["".join(row) for row in decoded(lines)] == ["Who? NA", "me, me"]
    assert lines.notes == ("1 empty line was left out",)
    assert decoded(open_sequences(tmp_path / "song.txt", steps="words")) == [["Who", "?", "NA"], ["me", ",", "me"]]
    whole = open_sequences(tmp_path / "song.txt", steps="characters", sequence="file")
    assert "".join(decoded(whole)[0]) == "Who? NA\n\nme, me\n"
    folder = open_sequences(tmp_path, steps="characters")
    assert folder.names == ["song.txt"] and folder.lengths.tolist() == [16]
    assert decoded(open_sequences(["a ?", "b"])) == [["a", " ", "?"], ["b"]]


@given(st.lists(st.integers(1, 9_000), min_size=1, max_size=30))
def test_no_chunk_parts_a_sequence(lengths: list[int]) -> None:
    found = open_sequences([np.arange(length) % 3 for length in lengths])
    chunks = list(found.chunks(found.table(kinds="categorical")))
    assert [found.within(chunk) for chunk in chunks][-1][1] == len(lengths)
    borders = np.concatenate([chunk.borders + chunk.start for chunk in chunks])
    assert np.array_equal(borders, found.starts[:-1]) and all(chunk.borders[0] == 0 for chunk in chunks)
    assert all(chunk.n_rows <= 32_768 or len(chunk.borders) == 1 for chunk in chunks)


BAD: dict[str, tuple[Callable[[], Any], str]] = {
    "no sequences": (lambda: open_sequences([]), "no sequences"),
    "an empty sequence": (lambda: open_sequences([["a"], []]), "sequence 2 is empty"),
    "one sequence bare": (lambda: open_sequences([1, 2, 3]), r"item 1 is 1.*\[sequence\]"),
    "an array": (lambda: open_sequences(np.ones((3, 2))), r"2 axes.*\[array\].*list\(array\)"),
    "symbols bare": (lambda: open_sequences(["a", "b"]), "one character"),
    "steps of two widths": (lambda: open_sequences([[(1, 2)], [(1, 2), (1,)]]), "sequence 2, step 2, has 1 value"),
    "arrays of two widths": (lambda: open_sequences([np.ones((2, 2)), np.ones((2, 3))]), "sequence 2 has 3 values"),
    "a step of several values": (lambda: open_sequences([[1, 2], [1, (2, 3)]]), "sequence 2, step 2 has several"),
    "other columns": (lambda: open_sequences([pd.DataFrame({"a": [1]}), pd.DataFrame({"b": [1]})]), "other columns"),
    "a time twice": (
        lambda: open_sequences({"s": [1, 1, 1], "t": [5, 4, 5], "x": [1, 2, 3]}, sequence="s", sort_by="t"),
        "sequence 1, step 3: rows 1 and 3 have the same 't'",
    ),
    "a missing time": (
        lambda: open_sequences({"s": [1, 1], "t": [None, 4], "x": [1, 2]}, sequence="s", sort_by="t"),
        "column 't', row 1: missing",
    ),
    "a missing sequence": (lambda: open_sequences({"s": [1, None], "x": [1, 2]}, sequence="s"), "'s', row 2: missing"),
    "a column that is not there": (
        lambda: open_sequences({"s": [1], "x": [1]}, sequence="t"),
        "the table has no column 't'",
    ),
    "a table without a sequence": (lambda: open_sequences({"s": [1], "x": [1]}), "sequence='...'"),
    "two weights": (
        lambda: open_sequences({"s": [1, 1], "w": [1, 2], "x": [1, 2]}, sequence="s", weight="w"),
        "sequence 1, step 2: its weight 2",
    ),
    "weights too few": (lambda: open_sequences([["a"], ["b"]], weights=[1]), "1 weights for 2 sequences"),
    "a null list": (lambda: open_sequences(pa.array([["a"], None])), "sequence 2 is missing"),
    "lists of two lengths": (
        lambda: open_sequences(pa.table({"x": [["a"], ["b"]], "y": [[1], [1, 2]]})),
        "sequence 2 has 1 steps in column 'x' and 2",
    ),
    "steps of unknown name": (lambda: open_sequences(["ab", "c"], steps="letters"), "'letters' is not known"),
    "a path that is not there": (lambda: open_sequences("nowhere.csv", sequence="s"), "nowhere.csv"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_cannot_be_read_is_named(case: str) -> None:
    call, said = BAD[case]
    with pytest.raises(DataError, match=said):
        call()
