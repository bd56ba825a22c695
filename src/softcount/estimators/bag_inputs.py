"""What users pass as documents, checked and handed on in pieces."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from msgspec import Struct

from softcount.core.lazy_scipy import sparse
from softcount.errors import DataError
from softcount.sources.bytestream import as_utf8
from softcount.sources.frames import is_missing
from softcount.table import Table
from softcount.text import Chosen, Reading
from softcount.text.count_words import cut


class DocumentTally(Struct):
    """What the documents were, counted while they are read."""

    documents: int = 0
    missing: int = 0
    latin: int = 0
    said: tuple[str, ...] = ()  # of words that were learned elsewhere

    def __add__(self, other: DocumentTally) -> DocumentTally:
        documents, missing = self.documents + other.documents, self.missing + other.missing
        said = tuple(dict.fromkeys(self.said + other.said))
        return DocumentTally(documents, missing, self.latin + other.latin, said)

    def notes(self) -> list[str]:
        """What the owner of the documents wants to know."""
        said = {
            "missing, counted as documents without words": self.missing,
            "no UTF-8, read as Latin-1": self.latin,
        }
        counted = [f"{number:,} of {self.documents:,} documents: {what}." for what, number in said.items() if number]
        return [*self.said, *counted]


def pieces_of(X: Any, tally: DocumentTally) -> Iterator[Any]:
    """The documents in pieces, each a span of Arrow text or a list of text and None; nothing else is held."""
    _refuse_other(X)
    arrow = _as_arrow(X)
    if arrow is not None:
        tally.documents += len(arrow)
        tally.missing += arrow.null_count
        yield from cut(arrow)
        return
    values = X.tolist() if isinstance(X, np.ndarray) else X
    for piece in cut(iter(values)):  # also of an Arrow array of something else
        yield _cleaned(piece, tally)


def _refuse_other(X: Any) -> None:
    """Raise where X is not one document after another, saying what to give instead."""
    if isinstance(X, (str, bytes)):
        raise DataError("Iterable over raw text documents expected, a single string received. Give a list: [text].")
    if isinstance(X, os.PathLike):
        raise DataError(
            f"documents are expected, not the path {os.fspath(X)!r}. Read it first: open(path) gives lines."
        )
    shape = getattr(X, "shape", None)
    wide = isinstance(shape, tuple) and len(shape) != 1
    if wide or isinstance(X, (Mapping, Table)) or sparse.issparse(X) or hasattr(X, "column_names"):
        raise DataError(
            f"one column of documents is expected, not a table ({type(X).__name__}).\n"
            "  Give the column: X['note'], and in a ColumnTransformer its name alone, 'note' and not ['note']."
        )
    if not isinstance(X, Iterable) and not hasattr(X, "__arrow_c_array__"):
        raise DataError(f"documents are expected, one after another, not {X!r:.60} ({type(X).__name__}).")


def _as_arrow(X: Any) -> Any:
    """An Arrow array of text where X is kept as one; None where it is not, or holds what Arrow has no text for."""
    if not hasattr(X, "__arrow_c_stream__") and not hasattr(X, "__arrow_c_array__"):
        return None
    import pyarrow as pa

    try:
        if not isinstance(X, (pa.Array, pa.ChunkedArray)):
            X = pa.chunked_array(X) if hasattr(X, "__arrow_c_stream__") else pa.array(X)
        if pa.types.is_dictionary(X.type):
            X = X.cast(X.type.value_type)
        if pa.types.is_string_view(X.type):
            X = X.cast(pa.large_string())
    except (pa.ArrowException, UnicodeError):  # Python objects that are not all text
        return None
    if pa.types.is_string(X.type) or pa.types.is_large_string(X.type):
        return X
    if not _is_asked_cell_by_cell(X.type):
        raise DataError(f"documents are text, but this column holds {X.type}. Give a column of strings.")
    return None


def _is_asked_cell_by_cell(kind: Any) -> bool:
    """Bytes, which may be any text, and nulls; pandas keeps a column without a single document as NaN."""
    import pyarrow as pa

    binary = pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind)
    return bool(binary or pa.types.is_null(kind) or pa.types.is_floating(kind))


def _cleaned(piece: list[Any], tally: DocumentTally) -> list[str | None]:
    """Text and None only."""
    kinds = set(map(type, piece))
    if not kinds <= {str, type(None)}:
        piece = [_document(value, tally.documents + place, tally) for place, value in enumerate(piece)]
    tally.documents += len(piece)
    tally.missing += piece.count(None)
    return piece


def _document(value: Any, place: int, tally: DocumentTally) -> str | None:
    if isinstance(value, str):
        return str(value)
    if isinstance(value, bytes):
        spelled, latin = as_utf8(value)
        tally.latin += latin
        return spelled.decode()
    if hasattr(value, "as_py"):  # an Arrow scalar
        return _document(value.as_py(), place, tally)
    if is_missing(value):
        return None
    split = isinstance(value, Sequence) and all(isinstance(word, str) for word in value)
    remedy = "Words already apart: join them, ' '.join(words)." if split else "Make it text: str(value)."
    raise DataError(f"document {place} is {value!r:.60} ({type(value).__name__}), not text. {remedy}")


LIMITS = {"min_count": 1, "min_df": 1, "max_df": 1.0, "drop_top": 0, "max_words": None}
"""The settings that choose among words, where they choose nothing."""


def refuse_limits(bag: Any) -> None:
    """Raise an error if hashing, which keeps no words, is to choose among them."""
    if _limits(bag):
        raise DataError(f"hashing keeps no words to choose from, so {_limits(bag)} cannot be used with it.")


def _limits(bag: Any) -> str:
    """The limits that were asked for, as they were written."""
    asked = [f"{name}={getattr(bag, name)!r}" for name in LIMITS]
    off = [f"{name}={value!r}" for name, value in LIMITS.items()]  # 1 is a document, 1.0 all of them
    return ", ".join(limit for limit in asked if limit not in off)


def reading_of(bag: Any) -> Reading:
    """How the documents are read."""
    stop_words = () if bag.stop_words is None else bag.stop_words
    limits = {name: getattr(bag, name) for name in LIMITS}
    found = Reading(bag.analyzer, bag.ngrams, bag.pattern, bag.lowercase, stop_words, **limits)
    found.refuse_steps()
    return found


def not_empty(chosen: Chosen, bag: Any) -> Chosen:
    """What was chosen, which must not be nothing."""
    if not chosen.n_documents:
        raise DataError("empty vocabulary: there are no documents. Give at least one.")
    if len(chosen.words):
        return chosen
    if not len(chosen.columns):
        raise DataError(
            f"empty vocabulary: {chosen.n_documents:,} documents, and no word that counts in them.\n"
            "  Words have two or more letters or digits and are no stop words; for others: pattern=r'\\w+'."
        )
    raise DataError(
        f"empty vocabulary: of {len(chosen.columns):,} words in {chosen.n_documents:,} documents, none is left by "
        f"{_limits(bag)}.\n  Ask for less: a smaller min_count, min_df or drop_top, a larger max_df."
    )
