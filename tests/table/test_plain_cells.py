"""Rows that the kernel reads beside what Arrow and Python make of them: the same columns, or left to Arrow."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv

from softcount.kernels.csv_cells import MOST_LEVELS
from softcount.sources.csv_dialect import RowBytes, row_ends
from softcount.sources.csv_file import plain_columns
from softcount.sources.source import Wanted
from softcount.table.schema import MISSING

WORDS = ["", *MISSING]
KEYS = ["x", "word", "unused", "y"]
WANTED = {"word": Wanted(numeric=False), "x": Wanted(numeric=True), "y": Wanted(numeric=True, padded=True)}
TYPES = {"word": pa.dictionary(pa.int32(), pa.string()), "x": pa.float64(), "y": pa.float64()}


def read(data: bytes, n_rows: int, delimiter: str = ",", words: Sequence[str] = WORDS) -> dict[str, pa.Array] | None:
    return plain_columns(RowBytes(0, n_rows, data), KEYS, delimiter, WANTED, words)


def by_arrow(data: bytes, delimiter: str) -> dict[str, pa.Array]:
    table = csv.read_csv(
        pa.BufferReader(data),
        read_options=csv.ReadOptions(column_names=KEYS, block_size=len(data) + 1, use_threads=False),
        parse_options=csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
        convert_options=csv.ConvertOptions(
            column_types=TYPES, include_columns=list(WANTED), null_values=WORDS, strings_can_be_null=True
        ),
    )
    return {key: table.column(key).combine_chunks() for key in WANTED}


def number(random: Random) -> str:
    """A number as somebody may write it."""
    value = random.choice([random.gauss(0, 1), random.random() * 10 ** random.randint(-8, 8), random.randint(-999, 9)])
    form = random.choice(["{!r}", "{:.3f}", "{:.17g}", "{:.12e}", "{:.0f}", "{:.19g}", "{:.0f}.", "{:E}"])
    return random.choice(["", "", "", "+"] if value >= 0 else [""]) + form.format(value)


def cell(text: str, random: Random) -> str:
    return f'"{text}"' if random.random() < 0.3 else text


def test_numbers_are_those_python_reads() -> None:
    random = Random(1)
    texts = [number(random) for _ in range(1_000)]
    texts += [f"{random.getrandbits(64)}e{random.randint(-30, 30)}" for _ in range(500)]
    texts += [f"{2**53 + 1 + 2 * k}" for k in range(50)] + ["9007199254740993", "0", "-0", "0.0", ".5", "5.", "1e22"]
    left = 0
    for text in texts:
        found = read(f"{text},a,,1\n".encode(), 1)
        if found is None:
            left += 1
        else:
            value = found["x"][0].as_py()
            assert (value, np.signbit(value)) == (float(text), np.signbit(float(text))), text
    assert left < len(texts) / 4


def test_what_python_writes_is_read() -> None:
    random = Random(2)
    texts = [repr(random.gauss(0, 1) * 10 ** random.randint(-3, 12)) for _ in range(5_000)]
    found = read("".join(f"{text},a,,1\n" for text in texts).encode(), len(texts))
    assert found is not None
    np.testing.assert_array_equal(found["x"].to_numpy(), [float(text) for text in texts])


@pytest.mark.parametrize("seed", range(20))
def test_columns_are_those_arrow_reads(seed: int) -> None:
    random = Random(seed)
    delimiter, end = random.choice(",;\t|"), random.choice(["\n", "\r\n"])
    levels = ["".join(random.choices("ab,;|\téx 0\n", k=random.choice([0, 1, 3, 7, 8, 9, 20]))) for _ in range(9)] + [
        "NA",
        "?",
        "nan",
        "longer than eight bytes",
        "longer than eight bytez",
        "12345678",
        "1234567",
    ]
    lines = []
    for _ in range(300):
        level = random.choice(levels)
        words = [f'"{level}"' if set(level) & set(",;|\t\n") else cell(level, random), cell("no use", random)]
        value = random.choice([*WORDS, *(repr(random.gauss(0, 9)), str(random.randint(-99, 99))) * 99])
        padded = random.choice(["007", "1", "", "-0.5e-3"])
        lines.append(delimiter.join([cell(value, random), *words, padded]) + end)
    data = "".join(lines).encode()
    found, arrow = read(data, len(lines), delimiter), by_arrow(data, delimiter)
    assert found is not None
    assert list(found) == list(arrow)
    for key, column in arrow.items():
        assert found[key].equals(column), key


ODD = {
    "a doubled quote": '1,"say ""hi""",,2\n',
    "a quote inside a cell": '1,5" pipe,,2\n',
    "letters after a quote": '1,"a"b,,2\n',
    "a blank before a number": " 1,a,,2\n",
    "a blank after a number": "1 ,a,,2\n",
    "leading zeros": "007,a,,2\n",
    "a word for a number": "many,a,,2\n",
    "an infinite number": "inf,a,,2\n",
    "a number too large": "1e400,a,,2\n",
    "a sign alone": "-,a,,2\n",
    "an exponent without digits": "1e,a,,2\n",
    "more digits than 64 bits hold": "0.12345678901234567891,a,,2\n",
    "half way between two numbers": "9007199254740993,a,,2\n",
    "too few cells": "1,a,2\n",
    "too many cells": "1,a,,2,3\n",
    "a carriage return in a cell": "1,a\rb,,2\n",
    "a cell that ends nowhere": '1,"a,,2\n',
    "more rows than were counted": "1,a,,2\n1,a,,2\n",
}


@pytest.mark.parametrize("text", ODD.values(), ids=ODD)
def test_what_is_not_plain_is_left_to_arrow(text: str) -> None:
    assert read(text.encode(), 1) is None


def test_bytes_that_are_no_text_and_very_many_levels_are_left_to_arrow() -> None:
    assert read(b"1,\xff,,2\n", 1) is None
    assert read("".join(f"1,{k},,2\n" for k in range(MOST_LEVELS)).encode(), MOST_LEVELS) is None


@pytest.mark.parametrize("word", ["-9", "0", "not given", ".", "+"])
def test_words_for_missing_that_the_kernel_cannot_tell_leave_all_to_arrow(word: str) -> None:
    assert read(b"1,a,,2\n", 1, words=["", word]) is None


@pytest.mark.parametrize("seed", range(20))
def test_rows_end_where_they_do_without_the_kernel(seed: int) -> None:
    random = Random(seed)
    for _ in range(100):
        parts = ['"', '"a"', '""', "\n", "\n", "\r\n", ",", "b" * random.randint(1, 70)] + ["\r"] * (
            random.random() < 0.3
        )
        data = "".join(random.choices(parts, k=random.randint(0, 60))).encode()
        ends, is_open = row_ends(data, ",", compiled=True)
        expected, was_open = row_ends(data, ",")
        np.testing.assert_array_equal(ends, expected)
        assert is_open == was_open, data
