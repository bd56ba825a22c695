"""Text in model files: words as bytes, how documents were read, and files of words alone; nothing read is trusted."""

from __future__ import annotations

from typing import Any

import numpy as np

from softcount.errors import DataError, ModelFileError
from softcount.files.codec import Arrays, Document, decode, encode
from softcount.text import Chosen
from softcount.text.vocabulary import Hashed
from softcount.text.word_list import Words
from softcount.text.words import Reading


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


def reading_document(reading: Reading) -> Document:
    """How documents become words, as JSON; a `DataError` where it would not be read back."""
    document: Document = encode(reading, {}, "reading")
    try:
        reading_from(document, "text")
    except ModelFileError as error:
        raise DataError(f"text read in this way cannot be kept in a model file: {error}") from None
    return document


def reading_from(document: Any, key: object) -> Reading:
    """A reading back from JSON, every part of the type and size that it must have."""
    found = decode(Reading, document, {}, "reading", f"how the text of column {key!r} is read")
    check_reading(found, key)
    return found


def check_reading(reading: Reading, key: object) -> None:
    """Refuse limits that no table has."""
    limits = (reading.min_count, reading.min_df, reading.max_df, reading.drop_top, reading.max_words or 0)
    if not all(limit < 1 << 62 for limit in limits):
        raise ModelFileError(f"how the text of column {key!r} is read makes no sense: its limits are too large.")


# -- words alone, with their counts

MOST_HELD = 2**31
"""Most pairs of a word and a document that held it: each is a step when the words are learned again."""


def vocabulary_document(known: Chosen, arrays: Arrays) -> Document:
    """Words, or the columns of hashing, with how often they were met."""
    hashed = isinstance(known.words, Hashed)
    arrays |= {"counts": known.counts.astype(np.int64), "documents": known.documents.astype(np.int64)}
    if not hashed:
        put_words(arrays, "words", known.words)
        _refuse_no_text(arrays)
    return {"n_documents": int(known.n_documents), "hashed": len(known.words) if hashed else None}


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
