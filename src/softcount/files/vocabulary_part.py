"""Words with their counts as a document and arrays, and back, trusting nothing that is read."""

from __future__ import annotations

from typing import Any

import numpy as np

from softcount.errors import DataError, ModelFileError
from softcount.files.archive import write
from softcount.files.text_part import put_words, words_from
from softcount.text import Chosen
from softcount.text.hashing import Hashed

Document = dict[str, Any]
Arrays = dict[str, np.ndarray]
MOST_HELD = 2**31
"""Most pairs of a word and a document that held it: each is a step when the words are learned again."""


def save_vocabulary(known: Chosen, path: Any, settings: Document) -> None:
    """Write words, or the columns of hashing, with how often they were met; `settings` are the transformer's own."""
    hashed = isinstance(known.words, Hashed)
    told = {"n_documents": int(known.n_documents), "hashed": len(known.words) if hashed else None}
    arrays = {"counts": known.counts.astype(np.int64), "documents": known.documents.astype(np.int64)}
    if not hashed:
        put_words(arrays, "words", known.words)
        _refuse_no_text(arrays)
    write(path, {"vocabulary": told, "estimator": settings}, arrays)


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
    told = document["vocabulary"]
    hashed, n_documents = told["hashed"], told["n_documents"]
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
