"""Files with the words of a BagOfWords, the centres of k-means, or EM runs. Nothing that is read is trusted."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from msgspec import Meta, Struct
from msgspec.structs import asdict, replace

from softcount.errors import DataError, ModelFileError
from softcount.files.archive import naming, read, write
from softcount.files.atomic import check_writable
from softcount.files.codec import Arrays, Document, decode, encode, require
from softcount.files.schema import decode_words, put_words
from softcount.learn.checkpoints import Checkpoint
from softcount.text import Chosen
from softcount.text.vocabulary import Hashed

if TYPE_CHECKING:
    from softcount.learn.k_means import Centres

MOST_HELD = 2**31
"""Maximum number of (word, document) pairs: each costs a step when the words are learned again."""


class Vocabulary(Struct, frozen=True):
    """How often each word (or hashed column) occurs, and in how many documents.

    The words themselves are stored as separate arrays.
    """

    n_documents: int
    hashed: Annotated[int, Meta(ge=1)] | None
    counts: np.ndarray
    documents: np.ndarray
    met: dict[str, Any]


def encode_vocabulary(known: Chosen, arrays: Arrays, met: Document) -> Document:
    """Encode words or hashed columns as a part of a file; `met` describes the documents seen."""
    hashed = len(known.words) if isinstance(known.words, Hashed) else None
    counts = (known.counts.astype(np.int64), known.documents.astype(np.int64))
    found: Document = encode(Vocabulary(int(known.n_documents), hashed, *counts, met), arrays, "vocabulary")
    if hashed is None:
        put_words(arrays, "words", known.words)
        try:
            decode_words(arrays, "words", "text")
        except ModelFileError:  # Python strings can hold a lone surrogate, UTF-8 files cannot
            raise DataError("the words hold halves of characters (lone surrogates), which cannot be saved.") from None
    return found


def refuse_vocabulary(path: Any, document: Document) -> None:
    """Raise if a file of words is given instead of a model."""
    if "vocabulary" in document:
        use = f"softcount.load({str(path)!r}).transform(documents)"
        raise ModelFileError(f"{path}: it holds the words of a BagOfWords and no model.\n  Use it in Python: {use}")


def decode_vocabulary(document: Document, arrays: Arrays) -> Chosen:
    found = decode(Vocabulary, document["vocabulary"], arrays, "vocabulary", "its vocabulary")
    counts, documents, hashed = found.counts, found.documents, found.hashed
    words: Any = decode_words(arrays, "words", "text") if hashed is None else Hashed(hashed)
    width = len(words)
    require(len(arrays) == 2 + 2 * (hashed is None), f"it has the arrays {sorted(arrays)}, of which some are too many.")
    require(counts.dtype == documents.dtype == np.int64, "its counts are not whole numbers.")
    fit = counts.shape == documents.shape == (width,)
    require(fit, f"{width} words, {counts.shape} counts and {documents.shape} documents do not go together.")
    least = 1 if hashed is None else 0
    sound = not width or (least <= documents.min() and documents.max() <= found.n_documents)
    sound = sound and (documents <= counts).all()
    require(sound, "its words occur in more documents than there are, or more often than they occur.")
    if hashed is None:
        sound = documents.sum(dtype=np.float64) <= MOST_HELD and (counts // documents <= 2**30).all()
        require(sound, "its words claim to have been met more often than can be.")
    return Chosen(words, np.arange(width, dtype=np.int32), counts, documents, found.n_documents)


def encode_centres(found: Centres, arrays: Arrays) -> Document:
    trace = [float(x) for x in found.trace]
    return {"centres": encode(replace(found, trace=trace), arrays, "centres")}


def decode_centres(document: Document, arrays: Arrays) -> Centres:
    from softcount.learn.k_means import Centres  # imported only for k-means files
    from softcount.learn.lloyd import BEYOND

    found = decode(Centres, document["centres"], arrays, "centres", "its centres", sizes={})
    frame, centres = found.frame, found.centres
    table = centres.size > 0 and bool(found.trace) and frame.anchor.shape == centres.shape[1:]
    require(table, f"centres of shape {centres.shape} make no sense, or have no trace.")
    require(np.frexp(frame.scale)[0] == 0.5, "its scale is no power of two.")
    require(found.trace[-1] == found.inertia, "its cost is not where its trace ends.")
    require(0 <= found.agreed[0] <= found.agreed[1], "the starts that agreed make no sense.")
    require((np.abs(frame.inside(centres)) <= BEYOND).all(), "its centres are too far from its anchor.")
    unit = not frame.unit or np.abs((centres**2).sum(axis=1) - 1).max() <= 1e-9
    require(unit, "its centres should have length one and do not.")
    require(found.sizes.sum() > 0, "its clusters' sizes are all zero.")
    return found


# -- checkpoints of EM


class CheckpointHeader(Struct, frozen=True):
    """The digest of the counts, the seed, and the state of every EM run."""

    data: str
    seed: int
    climbs: list[dict[str, Any]]


@contextmanager
def open_checkpoint(path: str) -> Iterator[Checkpoint]:
    """Open a checkpoint file, which remains after the block until `remove_checkpoint`."""
    check_writable(path)
    checkpoint = Checkpoint(partial(write, path), _read_checkpoint(path) if os.path.exists(path) else None, path)
    try:
        yield checkpoint
    except KeyboardInterrupt:
        checkpoint.interrupt()
        raise


def remove_checkpoint(path: str) -> None:
    with suppress(FileNotFoundError):
        os.unlink(path)


def _read_checkpoint(path: str) -> tuple[Document, Arrays]:
    document, arrays = read(path)
    if set(document) != {"checkpoint"}:
        raise ModelFileError(f"{path} is a model, not a checkpoint. Name another file.")
    with naming(path, "it is not a checkpoint that makes sense"):
        header = decode(CheckpointHeader, document["checkpoint"], {}, "checkpoint", "its header")
        sound = all(isinstance(run["start"], str) and isinstance(run["ended"], bool) for run in header.climbs)
        require(sound, "its EM runs make no sense.")
        return asdict(header), arrays
