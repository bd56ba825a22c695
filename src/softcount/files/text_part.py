"""Text in model files: words as bytes, how documents were read, and files of words alone; nothing read is trusted."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np

from softcount.errors import DataError, ModelFileError
from softcount.files.archive import Arrays, Document, write
from softcount.files.json_document import plain
from softcount.text import Chosen
from softcount.text.vocabulary import Hashed
from softcount.text.word_list import Words
from softcount.text.words import LONGEST_RUN, Reading

MOST_PATTERN = 10_000
"""Longest regular expression a file may give.

Compiling one runs nothing of it, and groups within groups end in an error. Searching with it is another matter: an
expression can be written so that a single document takes for ever, and no length rules that out. That is all a file
of unknown origin can do: answer late.
"""


def put_words(arrays: Arrays, prefix: str, words: Words) -> None:
    """The words as two arrays: their bytes one after another, and where each begins and ends."""
    arrays[f"{prefix}/bytes"] = np.ascontiguousarray(words.data, dtype=np.uint8)
    arrays[f"{prefix}/offsets"] = np.ascontiguousarray(words.offsets, dtype=np.int64)


def words_from(arrays: Arrays, prefix: str, key: object) -> Words:
    """The words of a column, if they are UTF-8, in order and each there once."""
    data, offsets = arrays.get(f"{prefix}/bytes"), arrays.get(f"{prefix}/offsets")
    if data is None or offsets is None:
        raise ModelFileError(f"the words of column {key!r} are not there.")
    if data.dtype != np.uint8 or data.ndim != 1 or offsets.dtype != np.int64 or offsets.ndim != 1:
        raise ModelFileError(f"the words of column {key!r} are not bytes and where each word begins.")
    if not len(offsets) or offsets[0] != 0 or offsets[-1] != len(data) or (np.diff(offsets) < 0).any():
        raise ModelFileError(f"the words of column {key!r} do not begin and end where their bytes do.")
    wrong = _misspelt(data, offsets)
    if wrong:
        raise ModelFileError(f"the words of column {key!r} {wrong}.")
    return Words(data, offsets)


def _misspelt(data: np.ndarray, offsets: np.ndarray) -> str | None:
    import pyarrow as pa
    import pyarrow.compute as pc

    spelt = pa.Array.from_buffers(
        pa.large_binary(), len(offsets) - 1, [None, pa.py_buffer(offsets), pa.py_buffer(data)]
    )
    try:
        spelt.cast(pa.large_string())
    except pa.ArrowInvalid:
        return "are not all UTF-8"
    in_order = pc.all(pc.less(spelt[:-1], spelt[1:])).as_py() if len(spelt) > 1 else True
    return None if in_order else "are not in order, or not each there once"


def reading_document(reading: Reading) -> dict[str, Any]:
    """How documents become words, as JSON; a `DataError` where it would not be read back."""
    document = {part: plain(getattr(reading, part)) for part in reading.__struct_fields__}
    for name, said in document.items():
        if not _SOUND[name](said):
            raise DataError(f"text read with {name}={said!r:.80} cannot be kept in a model file.")
    return document


def reading_from(value: Any, key: object) -> Reading:
    """A reading back from JSON, every part of the type and size that it must have."""
    known = set(Reading.__struct_fields__)
    if not isinstance(value, dict) or set(value) - known:
        raise ModelFileError(f"column {key!r} does not say how its text is read.")
    for name, said in value.items():
        if not _SOUND[name](said):
            raise ModelFileError(f"the text of column {key!r} is read with {name}={said!r:.80}, which makes no sense.")
    parts: dict[str, Any] = {name: tuple(said) if isinstance(said, list) else said for name, said in value.items()}
    try:
        return Reading(**parts)
    except (DataError, OverflowError, RecursionError, re.error) as error:
        said = " ".join(str(error).split())
        raise ModelFileError(f"the text of column {key!r} cannot be read: {said:.200}") from None


def _whole(least: int) -> Callable[[Any], bool]:
    return lambda said: type(said) is int and least <= said < 1 << 62


def _bound(said: Any) -> bool:
    """A number of documents, or a share of them."""
    return (type(said) is int and 0 <= said < 1 << 62) or (type(said) is float and 0.0 <= said <= 1.0)


def _words(said: Any) -> bool:
    return isinstance(said, str) or (isinstance(said, list) and all(isinstance(word, str) for word in said))


_SOUND: dict[str, Callable[[Any], bool]] = {
    "analyzer": lambda said: isinstance(said, str),
    "ngrams": lambda said: (
        isinstance(said, list) and len(said) == 2 and all(_whole(1)(n) and n <= LONGEST_RUN for n in said)
    ),
    "pattern": lambda said: said is None or (isinstance(said, str) and len(said) <= MOST_PATTERN),
    "lowercase": lambda said: isinstance(said, bool),
    "stop_words": _words,
    "min_count": _whole(0),
    "min_df": _bound,
    "max_df": _bound,
    "drop_top": _whole(0),
    "max_words": lambda said: said is None or _whole(0)(said),
}
"""What every part of a reading may be."""


# -- words alone, with their counts

MOST_HELD = 2**31
"""Most pairs of a word and a document that held it: each is a step when the words are learned again."""


def save_vocabulary(known: Chosen, path: Any, settings: Document) -> None:
    """Write words, or the columns of hashing, with how often they were met; `settings` are the transformer's own."""
    hashed = isinstance(known.words, Hashed)
    about = {"n_documents": int(known.n_documents), "hashed": len(known.words) if hashed else None}
    arrays = {"counts": known.counts.astype(np.int64), "documents": known.documents.astype(np.int64)}
    if not hashed:
        put_words(arrays, "words", known.words)
        _refuse_no_text(arrays)
    write(path, {"vocabulary": about, "estimator": settings}, arrays)


def _refuse_no_text(arrays: Arrays) -> None:
    """Half a surrogate pair is a character to Python, and to `analyzer="char"`, but no text that a file can hold."""
    try:
        words_from(arrays, "words", "text")
    except ModelFileError:
        raise DataError("the words hold halves of characters (lone surrogates), which cannot be saved.") from None


def holds_vocabulary(document: Document) -> bool:
    """Whether a model file is one of words alone."""
    return "vocabulary" in document


def refuse_vocabulary(path: Any, document: Document) -> None:
    """Raise where a file of words is given in the place of a model."""
    if holds_vocabulary(document):
        use = f"softcount.load({str(path)!r}).transform(documents)"
        raise ModelFileError(f"{path}: it holds the words of a BagOfWords and no model.\n  Use it in Python: {use}")


def vocabulary_of(document: Document, arrays: Arrays) -> Chosen:
    """The words in a file's content, if they make sense."""
    about = document["vocabulary"]
    hashed, n_documents = about["hashed"], about["n_documents"]
    if hashed is not None and (type(hashed) is not int or hashed < 1):
        raise ModelFileError("its columns have no number.")
    wanted = {"counts", "documents"} | (set() if hashed is not None else {"words/bytes", "words/offsets"})
    if set(arrays) != wanted:
        raise ModelFileError(f"it has the arrays {sorted(arrays)}, not {sorted(wanted)}.")
    counts, documents = arrays["counts"], arrays["documents"]
    words: Any = Hashed(hashed) if hashed is not None else words_from(arrays, "words", "text")
    width = len(words)
    if type(n_documents) is not int or any(a.dtype != np.int64 for a in (counts, documents)):
        raise ModelFileError("its counts are not whole numbers.")
    if counts.shape != (width,) or documents.shape != (width,):
        raise ModelFileError(
            f"{width} words, {counts.shape} counts and {documents.shape} documents do not go together."
        )
    least = 0 if hashed is not None else 1
    if width and not (least <= documents.min() and documents.max() <= n_documents and (documents <= counts).all()):
        raise ModelFileError("its words occur in more documents than there are, or more often than they occur.")
    if hashed is None and (documents.sum(dtype=np.float64) > MOST_HELD or (counts // documents > 2**30).any()):
        raise ModelFileError("its words claim to have been met more often than can be.")
    return Chosen(words, np.arange(width, dtype=np.int32), counts, documents, n_documents)
