"""Columns of text in SQL: documents are taken apart into words, and what these add is summed up by document.

Every different document is read once and looked up by its text, so that no row needs a number of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import pairwise

from softcount import remedies
from softcount.errors import DataError
from softcount.export.sql_formulas import sqlglot_expressions
from softcount.table.schema import Key
from softcount.text import Reading

READING = ("duckdb", "postgres", "spark", "bigquery")
"""Dialects that find all words of a document."""


def refuse_words(key: Key, where: str) -> DataError:
    """The error of a column of text that is not read somewhere."""
    return DataError(
        f"column {key!r} is text, of which {where} cannot find the words: the model cannot be exported there. "
        f"Export it as SQL for {', '.join(READING[:-1])} or {READING[-1]}, or fit without it: "
        f"{remedies.kind(key, 'ignore')}"
    )


def refuse_reading(key: Key, reading: Reading) -> None:
    """Raise where the words of a column are no plain ones."""
    if reading.analyzer != "word" or reading.pattern is not None or reading.ngrams != (1, 1):
        raise DataError(
            f"column {key!r} is text of which runs of words, characters or a pattern of its own are counted; only "
            "plain words can be exported. Fit again with Text() alone, or without it: " + remedies.kind(key, "ignore")
        )


@cache
def word_letters() -> str:
    """What words are made of, as what stands in the brackets of a regular expression: databases differ in their own.

    >>> word_letters()[:10]
    '0-9A-Z_a-z'
    """
    there = [chr(code).isalnum() or code == 95 for code in range(0x110000)]
    edges = [code for code, (one, other) in enumerate(pairwise([False, *there, False])) if one != other]
    runs = zip(edges[::2], edges[1::2], strict=True)
    return "".join(chr(a) if b == a + 1 else f"{chr(a)}-{chr(b - 1)}" for a, b in runs)


def word_rows(dialect: str, documents: str, lowercase: bool) -> str:
    """A selection of the words of documents, one in each row."""
    exp = sqlglot_expressions()
    expression = exp.Literal.string(f"[{word_letters()}]{{2,}}").sql(dialect)
    text = _lowered(dialect) if lowercase else "document"
    ways = {
        "duckdb": "UNNEST(REGEXP_EXTRACT_ALL({text}, {found})) AS word FROM {documents}",
        "postgres": "found[1] AS word FROM {documents}, REGEXP_MATCHES({text}, {found}, 'g') AS w(found)",
        "spark": "EXPLODE(REGEXP_EXTRACT_ALL({text}, {found}, 0)) AS word FROM {documents}",
        "bigquery": "word FROM {documents}, UNNEST(REGEXP_EXTRACT_ALL({text}, {found})) AS word",
    }
    return "SELECT document, " + ways[dialect].format(text=text, found=expression, documents=documents)


def word_sums(found: str, table: str, groups: Sequence[str], each: str) -> str:
    """A selection of what the words of every document add, as they are looked up in a table."""
    counted = f"SELECT document, word, COUNT(*) AS n FROM {found} GROUP BY document, word"
    own = {"once": f"SELECT DISTINCT document, word FROM {found}", "times": f"SELECT document, word FROM {found}"}
    times = {"log": " * LN(1 + n)", "square": " * LN(1 + n) * LN(1 + n)"}.get(each, "")
    sums = ", ".join(f"SUM({group}{times}) AS {group}" for group in groups)
    words = f"({own.get(each, counted)}) AS d"
    return f"SELECT document AS k, {sums} FROM {words} JOIN {table} AS w ON w.k = d.word GROUP BY document"


def _lowered(dialect: str) -> str:
    """A document in lower case; Postgres may know that of the English letters only, as its locale has it."""
    if dialect != "postgres":
        return "LOWER(document)"
    exp, pairs = sqlglot_expressions(), dict(_capitals())
    large, small = (exp.Literal.string("".join(own)).sql(dialect) for own in (pairs, pairs.values()))
    some = exp.Literal.string(f"[{''.join(pairs)}]").sql(dialect)
    return f"CASE WHEN document ~ {some} THEN TRANSLATE(LOWER(document), {large}, {small}) ELSE LOWER(document) END"


@cache
def _capitals() -> tuple[tuple[str, str], ...]:
    """Capitals beyond the English ones, and what each is as a small letter."""
    return tuple((x, x.lower()) for x in map(chr, range(128, 0x110000)) if x.lower() != x and len(x.lower()) == 1)
