"""Columns of text: the words of documents from anywhere, counted row by row against a plain count."""

from __future__ import annotations

import csv
import gzip
import io
import re
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.table.reading import Read, cells, chunks_of, read, written

from softcount.errors import DataError
from softcount.sources.frames import ArrowSource, columns_source, text_column
from softcount.sources.source import TablePiece, chunk_rows_for
from softcount.table import Kind, open_table, text_columns
from softcount.text import Reading, Words

NOTES = ["Free money NOW, free!", None, "see you at noon", "", "Noon? NOON.", "naïve Öl 你好", 'a "quoted"\ntwo, lines']


def counted(document: str | None) -> dict[str, int]:
    """The oracle: a document's words and how often each occurs."""
    return dict(Counter(re.findall(r"\b\w\w+\b", (document or "").lower())))


def bags(found: Read, key: Any = "note") -> list[dict[str, int] | None]:
    """Each row's words as counted, None where there is no document."""
    place = found.table.schema.places[key]
    assert place.store == "bags"
    words = list(found.settled.schema[key].levels)
    rows: list[dict[str, int] | None] = []
    for chunk in found.chunks:
        matrix = chunk.bags[place.slot]
        assert matrix.dtype == np.float64
        assert matrix.shape == (chunk.n_rows, 1 + len(words))
        for row in matrix.toarray():
            assert row[0] in (0.0, 1.0)
            assert row[0] == 1.0 or not row.any()
            rows.append({words[at]: int(row[1 + at]) for at in np.flatnonzero(row[1:])} if row[0] else None)
    return rows


def expected(notes: list[str | None], empty: bool = True) -> list[dict[str, int] | None]:
    """What the bags should be; in text files an empty cell is a missing one."""
    return [None if note is None or (not note and not empty) else counted(note) for note in notes]


def csv_text(notes: list[str | None], **how: Any) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n", **how)
    writer.writerow(["note", "size"])
    writer.writerows([["" if note is None else note, place + 0.5] for place, note in enumerate(notes)])
    return out.getvalue()


def as_csv(notes: list[str | None], folder: Path) -> Any:
    return written(folder / "notes.csv", csv_text(notes))


def as_tsv(notes: list[str | None], folder: Path) -> Any:
    return written(folder / "notes.tsv", csv_text(notes, delimiter="\t"))


def as_gzip(notes: list[str | None], folder: Path) -> Any:
    return written(folder / "notes.csv.gz", gzip.compress(csv_text(notes).encode()))


def as_parquet(notes: list[str | None], folder: Path, kind: Any = None) -> Any:
    column = pa.array(notes, kind or pa.string())
    pq.write_table(pa.table({"note": column, "size": sizes(notes)}), folder / "notes.parquet")
    return folder / "notes.parquet"


def sizes(notes: list[str | None]) -> list[float]:
    return [place + 0.5 for place in range(len(notes))]


DICTIONARY = pa.dictionary(pa.int32(), pa.string())
IN_MEMORY: dict[str, Callable[[list[str | None]], Any]] = {
    "a mapping": lambda notes: {"note": notes, "size": sizes(notes)},
    "pandas": lambda notes: pd.DataFrame({"note": notes, "size": sizes(notes)}),
    "pandas categories": lambda notes: pd.DataFrame({"note": pd.Categorical(notes), "size": sizes(notes)}),
    "polars": lambda notes: pl.DataFrame({"note": notes, "size": sizes(notes)}),
    "Arrow": lambda notes: pa.table({"note": pa.array(notes, pa.string()), "size": sizes(notes)}),
    "Arrow in chunks": lambda notes: pa.table(
        {"note": pa.chunked_array([notes[:2], notes[2:]], pa.large_string()), "size": sizes(notes)}
    ),
    "an Arrow dictionary": lambda notes: pa.table(
        {"note": pa.array(notes, pa.string()).dictionary_encode(), "size": sizes(notes)}
    ),
}
FILES: dict[str, Callable[[list[str | None], Path], Any]] = {"CSV": as_csv, "TSV": as_tsv, "gzipped": as_gzip}
PARQUET = [pa.string(), pa.large_string(), DICTIONARY]


@pytest.mark.parametrize("form", IN_MEMORY)
def test_words_are_counted_in_any_form_of_table(form: str) -> None:
    found = read(IN_MEMORY[form](NOTES), kinds={"note": "text"})
    assert bags(found) == expected(NOTES)
    assert found.table.missing["note"] == 1
    assert cells(found, "size") == sizes(NOTES)


@pytest.mark.parametrize("form", FILES)
def test_words_are_counted_in_files_where_an_empty_cell_is_missing(form: str, tmp_path: Path) -> None:
    found = read(FILES[form](NOTES, tmp_path), kinds={"note": Kind.TEXT})
    assert bags(found) == expected(NOTES, empty=False)
    assert found.table.missing["note"] == 2


@pytest.mark.parametrize("kind", PARQUET, ids=str)
def test_words_are_counted_in_parquet(kind: Any, tmp_path: Path) -> None:
    found = read(as_parquet(NOTES, tmp_path, kind), kinds={"note": "text"})
    assert bags(found) == expected(NOTES)


def test_words_are_counted_on_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.TextIOWrapper(io.BytesIO(csv_text(NOTES).encode()))
    monkeypatch.setattr("sys.stdin", stream)
    assert bags(read("-", kinds={"note": "text"})) == expected(NOTES, empty=False)


def test_an_array_of_objects_has_text_by_position() -> None:
    rows = np.array([[note, place] for place, note in enumerate(NOTES)], dtype=object)
    assert bags(read(rows, kinds={0: "text"}), 0) == expected(NOTES)


def in_chunks(columns: dict[str, Any], rows: int) -> ArrowSource:
    """Columns that come in chunks of so many rows."""
    source = columns_source(columns)
    source.chunk_rows = rows
    return source


documents = st.lists(st.none() | st.text(st.sampled_from("ab éßİσΣ_1 .\n你"), max_size=12), min_size=1, max_size=12)


@settings(max_examples=60)
@given(documents, st.integers(1, 5))
def test_bags_are_the_plain_count_whatever_is_held(notes: list[str | None], rows: int) -> None:
    for held in (text_columns.MOST_HELD, len(notes), 0):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(text_columns, "MOST_HELD", held)
            table = in_chunks({"note": notes, "size": sizes(notes)}, rows)
            assert bags(read(table, kinds={"note": "text", "size": "real"})) == expected(notes)


def test_words_stand_in_order_and_are_the_levels_of_the_column() -> None:
    found = read({"note": NOTES}, kinds={"note": "text"})
    spec = found.settled.schema["note"]
    words = sorted({word for note in NOTES for word in counted(note)})
    assert isinstance(spec.levels, Words)
    assert list(spec.levels) == words
    assert found.table.schema["note"].levels == spec.levels
    assert spec.reading is not None
    assert spec.why == f"declared; {len(words)} different words"
    assert "note" not in found.settled.remap


def test_two_columns_of_text_have_words_of_their_own() -> None:
    other = ["one two", "two three", None, "four", "", "five six", "one"]
    found = read({"note": NOTES, "size": sizes(NOTES), "other": other}, kinds={"note": "text", "other": "text"})
    assert bags(found, "note") == expected(NOTES)
    assert bags(found, "other") == expected(other)
    assert [place.store for place in found.table.schema.places.values()] == ["bags", "reals", "bags"]


def test_a_reading_says_how_words_are_read_and_kept() -> None:
    notes = ["the cat", "the dog", "the cat sat", None]
    found = read({"note": notes}, kinds={"note": Reading(min_count=2, lowercase=False)})
    assert list(found.settled.schema["note"].levels) == ["cat", "the"]
    assert bags(found) == [{"the": 1, "cat": 1}, {"the": 1}, {"the": 1, "cat": 1}, None]


# -- one pass that gathers, any number that count


class WatchedSource(ArrowSource):
    """Columns that write down how many notes are read each time."""

    def __init__(self, columns: dict[str, Any]) -> None:
        super().__init__(columns_source(columns).table, list(columns))
        self.read: list[int] = []

    def pieces(self, wanted: Any) -> Iterator[TablePiece]:
        for piece in super().pieces(wanted):
            yield piece._replace(load=partial(self.load, piece, "note" in wanted))

    def load(self, piece: TablePiece, noted: bool) -> Any:
        self.read += [piece.n_rows] * noted
        return piece.load()


def test_documents_are_read_once_however_often_the_table_is() -> None:
    source = WatchedSource({"note": NOTES, "size": sizes(NOTES)})
    table = open_table(source, kinds={"note": "text"})
    for _ in range(3):
        table.gather_words()
        chunks_of(table)
    chunks_of(table.unchecked())
    chunks_of(open_table(table, kinds={"note": "text"}, labels=np.zeros(len(NOTES))))
    assert source.read == [len(NOTES)]


def test_documents_beyond_what_is_held_are_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_columns, "MOST_HELD", 3)
    source = WatchedSource({"note": NOTES})
    found = read(source, kinds={"note": "text"})
    assert source.read == [len(NOTES)] * 2
    assert bags(found) == expected(NOTES)


def test_a_column_that_turns_out_otherwise_costs_no_second_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("softcount.sources.source.LOOK_ROWS", 4)
    source = WatchedSource({"note": NOTES, "odd": ["1", "2", "1", "2", "x", "y", "1"]})
    found = read(source, kinds={"note": "text"})
    assert found.kinds["odd"] == "categorical"
    assert any("'odd' is read as" in note for note in found.table.notes)
    assert source.read == [len(NOTES)]
    assert bags(found) == expected(NOTES)
    assert found.table.schema["note"].why.count("different") == 1


def test_a_table_of_nothing_but_text_is_not_read_a_second_time(tmp_path: Path) -> None:
    path = Path(written(tmp_path / "notes.csv", csv_text(NOTES)))
    table = open_table(path, kinds={"note": "text", "size": "ignore"})
    table.gather_words()
    path.unlink()
    assert sum(chunk.n_rows for chunk in chunks_of(table)) == len(NOTES)


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_threads_change_no_bit(threads: int) -> None:
    drawn = np.random.default_rng(3)
    notes = [" ".join(f"w{n}" for n in drawn.geometric(0.02, drawn.integers(0, 30))) for _ in range(200)]
    alone = read(in_chunks({"note": notes}, 7), kinds={"note": "text"})
    table = open_table(in_chunks({"note": notes}, 7), kinds={"note": "text"})
    with ThreadPoolExecutor(threads) as pool:
        table.gather_words(pool.map)
    together = chunks_of(table, threads)
    assert table.schema["note"].levels == alone.settled.schema["note"].levels
    for one, other in zip(alone.chunks, together, strict=True):
        for name in ("indptr", "indices", "data"):
            assert np.array_equal(getattr(one.bags[0], name), getattr(other.bags[0], name))


def test_chunks_of_long_documents_have_fewer_rows() -> None:
    assert chunk_rows_for(1_000) == chunk_rows_for(1_000, 100.0) == 4_096
    assert chunk_rows_for(10**6, 100.0) == 32_768
    assert chunk_rows_for(20_000, 2_200.0) == 2_048
    assert chunk_rows_for(10**6, 1e9) == 64
    long = open_table({"note": ["word " * 2_000] * 2_000, "x": [1.5, 2.5] * 1_000}, kinds={"note": "text"})
    assert max(chunk.n_rows for chunk in chunks_of(long)) < 1_000


# -- what is missing, what is empty


def test_in_a_frame_only_a_null_is_missing_and_in_a_file_the_words_for_it_too(tmp_path: Path) -> None:
    notes: list[str | None] = ["NA", "?", None, "none at all", " null "]
    assert bags(read({"note": notes}, kinds={"note": "text"})) == expected(notes)
    gone = expected([None, None, None, "none at all", None])
    assert bags(read(as_csv(notes, tmp_path), kinds={"note": "text"})) == gone


def test_words_for_missing_cells_that_were_asked_for_count_everywhere(tmp_path: Path) -> None:
    notes: list[str | None] = ["no answer", "some words", "", " no answer ", "NA"]
    gone = expected([None, "some words", None, None, "NA"])
    for data in ({"note": notes, "size": sizes(notes)}, as_csv(notes, tmp_path)):
        assert bags(read(data, kinds={"note": "text"}, missing=["no answer"])) == gone


def test_a_text_column_that_is_not_there_is_missing_in_every_row() -> None:
    schema = read({"note": NOTES, "size": sizes(NOTES)}, kinds={"note": "text"}).settled.schema
    found = read({"size": [1.5, 2.5]}, schema=schema)
    assert bags(found) == [None, None]
    assert found.table.missing["note"] == 2


# -- read for prediction


def test_prediction_counts_the_words_it_knows_and_the_documents_without_any(monkeypatch: pytest.MonkeyPatch) -> None:
    schema = read({"note": NOTES}, kinds={"note": "text"}).settled.schema
    found = read({"note": ["free noon noon later", "all unknown", None, "", "Money"]}, schema=schema)
    assert bags(found) == [{"free": 1, "noon": 2}, {}, None, {}, {"money": 1}]
    assert found.table.unseen == {"note": 2}
    assert found.table.missing == {"note": 1}


@pytest.mark.parametrize("column", [[3.5, None, 7.0], [True, False, None], ["1.5", "x2", None]])
def test_cells_of_any_type_are_read_as_they_are_written(column: list[Any]) -> None:
    found = read({"note": column, "x": [1.5, 2.5, 3.5]}, kinds={"note": Reading(pattern=r"[^ ]+")})
    words = set(found.settled.schema["note"].levels)
    assert words in ({"3.5", "7"}, {"true", "false"}, {"1.5", "x2"})
    assert found.table.missing["note"] == sum(cell is None for cell in column)


# -- lists of documents

SERIES: dict[str, Callable[[list[Any]], Any]] = {
    "list": list,
    "tuple": tuple,
    "objects": lambda notes: np.array(notes, dtype=object),
    "pandas": pd.Series,
    "pandas strings": lambda notes: pd.Series(notes, dtype="string"),
    "polars": pl.Series,
    "Arrow": pa.array,
    "Arrow in chunks": lambda notes: pa.chunked_array([notes[:3], notes[3:]]),
}


@pytest.mark.parametrize("form", SERIES)
@pytest.mark.parametrize("said", ["text", Kind.TEXT, Reading(), {"text": "text"}], ids=repr)
def test_a_list_of_documents_is_a_table_of_one_column(form: str, said: Any) -> None:
    found = read(SERIES[form](NOTES), kinds=said)
    assert found.used == ["text"]
    assert bags(found, "text") == expected(NOTES)


def test_an_array_of_strings_and_a_list_with_nan_are_documents() -> None:
    assert bags(read(np.array(["see you", "you"]), kinds="text"), "text") == [{"see": 1, "you": 1}, {"you": 1}]
    assert bags(read(["see you", float("nan")], kinds="text"), "text") == [{"see": 1, "you": 1}, None]


NO_DOCUMENTS = [
    [1, 2],
    [1.5, None],
    [["see"], ["you"]],
    ["see", 3],
    "see you",
    {"note": ["see"]},
    np.zeros(3),
    np.array([["see"], ["you"]]),
    pd.DataFrame({"note": ["see"]}),
    pl.DataFrame({"note": ["see"]}),
    pa.table({"note": ["see"]}),
    pd.Series([1, 2]),
    pl.Series([1, 2]),
    pa.array([1, 2]),
    [],
    (word for word in ("see", "you")),
]


@pytest.mark.parametrize("data", NO_DOCUMENTS, ids=lambda data: type(data).__name__)
def test_anything_else_is_no_list_of_documents(data: Any) -> None:
    assert text_column(data) is None


def test_a_list_of_documents_is_read_by_a_model_of_text_whatever_its_column_is_called() -> None:
    schema = read({"note": NOTES}, kinds={"note": "text"}).settled.schema
    assert bags(read(["free noon", "unknown"], schema=schema)) == [{"free": 1, "noon": 1}, {}]


def test_one_kind_for_all_makes_every_column_text() -> None:
    found = read({"a": ["one two", "two"], "b": ["three", "four"], "c": ["x", "y"]}, kinds="text", target="c")
    assert found.kinds == {"a": "text", "b": "text"}


# -- undeclared columns


def sentences(words: int, rows: int = 40) -> list[str]:
    return [" ".join(f"w{(row * 7 + word) % 50}" for word in range(words)) + f" n{row}" for row in range(rows)]


def test_running_text_is_counted_and_said_to_be() -> None:
    found = read({"note": sentences(12), "x": [1.5, 2.5] * 20})
    spec = found.settled.schema["note"]
    assert spec.kind is Kind.TEXT
    assert spec.used
    assert not spec.declared
    assert spec.reading is not None
    assert spec.reading.max_words == 1_000_000
    assert re.fullmatch(r"text of about 13 words; \d+ different words", spec.why)
    assert any("'note' is running text: its words are counted" in note for note in found.table.notes)
    assert bags(found) == expected(list(sentences(12)))


def test_short_text_is_left_out_and_the_note_says_how_to_use_it() -> None:
    table = open_table({"note": sentences(4), "x": [1.5, 2.5] * 20})
    assert not table.schema["note"].used
    (note,) = table.notes
    assert "kinds={'note': 'text'}" in note
    assert "kinds={'note': 'categorical'}" in note


@pytest.mark.parametrize(
    ("words", "longer", "said"), [(6, 24, "7.6"), (6, 39, "7.9"), (6, 19, "7"), (7, 0, "8"), (7, 20, "8"), (7, 30, "9")]
)
def test_text_just_short_of_running_text_is_not_said_to_be_that_long(words: int, longer: int, said: str) -> None:
    """Each has a word of its own besides; some have one more."""
    notes = [note + " more" * (row < longer) for row, note in enumerate(sentences(words))]
    spec = open_table({"note": notes, "x": [1.5, 2.5] * 20}).schema["note"]
    assert spec.why == f"text of about {said} words"
    assert spec.used == (words == 7)


def test_short_text_is_kept_as_text_where_the_table_has_nothing_else() -> None:
    found = read({"same": [1] * 40, "note": sentences(4)})
    assert found.used == ["note"]
    assert bags(found) == expected(list(sentences(4)))


def test_long_texts_are_judged_by_the_first_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("softcount.table.column_facts.FEW_CELLS", 50)
    notes = [*sentences(30, 60), *[""] * 60, *sentences(30, 500)]
    for column in (pa.array(notes), pa.array(notes, pa.large_string()), pa.array(notes).dictionary_encode()):
        spec = open_table({"note": column, "x": sizes(list(notes))}).schema["note"]
        assert (spec.kind, spec.why) == (Kind.TEXT, "text of about 31 words")
    few = [sentences(30, 4)[row % 4] for row in range(200)]
    assert open_table({"note": few, "x": sizes(list(few))}).schema["note"].kind is Kind.CATEGORICAL


# -- what is refused, and what is said

WORDLESS = [
    ([None, None], "text", "every document is missing"),
    (["", "..."], "text", "none in 2 documents"),
    (["one two", "three"], Reading(min_count=2), "of 3 different ones none is kept; lower min_count, min_df"),
]


@pytest.mark.parametrize(("notes", "said", "why"), WORDLESS, ids=[why for _, _, why in WORDLESS])
def test_text_without_words_is_noted_and_refused_where_it_is_all_there_is(notes: Any, said: Any, why: str) -> None:
    found = read({"note": notes, "x": [1.5, 2.5]}, kinds={"note": said})
    assert any("'note' is text without words" in note and re.search(why, note) for note in found.table.notes)
    assert found.chunks[0].bags[0].shape == (2, 1)
    with pytest.raises(DataError, match=rf"'note' is text without words, and there is nothing else.*{why}"):
        read({"note": notes}, kinds={"note": said})


def test_numbers_in_an_array_are_no_text() -> None:
    with pytest.raises(DataError, match="column 1 is declared text, but the table is an array of numbers"):
        open_table(np.zeros((3, 2)), kinds={1: "text"})
    with pytest.raises(DataError, match="declared text, but the table is an array of numbers"):
        open_table(np.zeros((3, 2)), kinds="text")


def test_a_model_of_text_and_a_table_without_it_are_told_apart() -> None:
    text = read({"note": NOTES}, kinds={"note": "text"}).settled.schema
    with pytest.raises(DataError, match="the model reads a column of text, 'note'; the table has 'size', 'colour'"):
        open_table({"size": [1.5], "colour": ["red"]}, schema=text)
    with pytest.raises(DataError, match="column 'note' of the model is text, but the table is an array of numbers"):
        open_table(np.zeros((3, 1)), schema=text)


def test_a_model_without_text_and_a_list_of_documents_are_told_apart() -> None:
    plain = read({"size": [1.5, 2.5], "colour": ["red", "blue"]}).settled.schema
    with pytest.raises(DataError, match=r"a list of documents, but the model reads no text. It reads 'size', 'colour'"):
        open_table(["free money"], schema=plain)
    both = read({"note": NOTES, "size": sizes(NOTES)}, kinds={"note": "text"}).settled.schema
    with pytest.raises(DataError, match="the model reads 'note', 'size', so a list of documents is not enough"):
        open_table(["free money"], schema=both)


def test_a_list_of_documents_nobody_declared_is_refused_with_the_remedy() -> None:
    with pytest.raises(DataError, match=r"Expected 2D array, got 1D array instead.*kinds='text'"):
        open_table(["free money", "see you"])


def test_no_documents_and_broken_ones_are_refused_by_name_and_row() -> None:
    with pytest.raises(DataError, match=r"Found array with 0 sample\(s\)"):
        open_table([], kinds="text")
    with pytest.raises(DataError, match="column 'text', row 2, holds text that is not valid Unicode"):
        open_table(["see you", "half a \ud83d face"], kinds="text")


def test_nested_cells_are_no_text() -> None:
    with pytest.raises(DataError, match="'note' holds nested or binary values"):
        open_table({"note": pa.array([[1], [2]]), "x": [1, 2]}, kinds={"note": "text"})
    schema = read({"note": NOTES, "size": sizes(NOTES)}, kinds={"note": "text"}).settled.schema
    with pytest.raises(DataError, match="'note' holds nested or binary values"):
        read({"note": pa.array([[1], [2]]), "size": [1.5, 2.5]}, schema=schema)


def test_a_cell_longer_than_many_blocks_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("softcount.sources.bytestream.BLOCK", 64)
    long = "free\nmoney " * 400
    for notes in ([long, "see you"], ["see you", long], ["see you", long, "see", long, long]):
        assert bags(read(as_csv(list(notes), tmp_path), kinds={"note": "text"})) == expected(list(notes))


def test_a_cell_too_long_is_refused_by_its_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("softcount.sources.bytestream.BLOCK", 64)
    monkeypatch.setattr("softcount.sources.csv_dialect.LONGEST", 256)
    path = as_csv(["see you", "free " * 4_000, "noon"], tmp_path)
    with pytest.raises(DataError, match=r"row 2 is longer than .* or a cell holds too much"):
        read(path, kinds={"note": "text"})


@pytest.mark.parametrize("rows", [1, 7, 60])
def test_no_more_words_are_kept_than_were_asked_for_and_those_are_counted_exactly(rows: int) -> None:
    notes = [f"often word{n} word{n} rare{n} seldom{n} {'late' if n > 50 else ''}" for n in range(60)]
    for most in (4, 10, 100):
        found = read(in_chunks({"note": notes}, rows), kinds={"note": Reading(max_words=most)})
        words = list(found.settled.schema["note"].levels)
        assert len(words) == most
        assert {"often", "late"} <= set(words)
        assert found.table.schema["note"].why == f"declared; {most} different words"
        assert any(f"'note' has more than {most} different words" in note for note in found.table.notes)
        kept = [{word: count for word, count in counted(note).items() if word in words} for note in notes]
        assert bags(found) == kept
