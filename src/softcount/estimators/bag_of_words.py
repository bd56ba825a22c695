"""Documents to counts of words: the transformer, and the documents that it reads."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import Any, ClassVar, Self

import msgspec
import numpy as np
import pyarrow as pa
from msgspec import Struct
from msgspec.structs import asdict, replace
from sklearn import get_config
from sklearn.base import TransformerMixin, clone
from sklearn.utils.validation import check_is_fitted

from softcount.core.lazy import sparse
from softcount.errors import DataError, ModelFileError
from softcount.estimators.base import Estimator
from softcount.estimators.docstrings import IGNORED
from softcount.estimators.inputs import RandomState, attribute, refuse_unlike
from softcount.estimators.parameters import SETTLED
from softcount.files.codec import Arrays, Document
from softcount.files.other_models import decode_vocabulary, encode_vocabulary
from softcount.files.schema import encode_reading
from softcount.run.local import Threads
from softcount.sources.bytestream import as_utf8
from softcount.sources.frames import CellType, cell_type, is_missing
from softcount.table import Table
from softcount.text import Chosen, Gathered, Reading, WordBlock, Words, block_of, matrix_of, vocabulary
from softcount.text.count_words import cut


class DocumentTally(Struct):
    """What the documents were, counted while they are read."""

    documents: int = 0
    missing: int = 0
    latin: int = 0
    said: tuple[str, ...] = ()  # of words that were learned elsewhere

    def __add__(self, other: DocumentTally) -> DocumentTally:
        return DocumentTally(
            self.documents + other.documents, self.missing + other.missing, self.latin + other.latin,
            tuple(dict.fromkeys(self.said + other.said)),
        )  # fmt: skip

    def notes(self) -> list[str]:
        """Remarks on the documents."""
        kinds = {"missing, counted as documents without words": self.missing, "no UTF-8, read as Latin-1": self.latin}
        counted = [f"{number:,} of {self.documents:,} documents: {what}." for what, number in kinds.items() if number]
        return [*self.said, *counted]


def cut_documents(X: Any, tally: DocumentTally) -> Iterator[Any]:
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
        if not set(map(type, piece)) <= {str, type(None)}:
            piece = [_document(value, tally.documents + place, tally) for place, value in enumerate(piece)]
        tally.documents += len(piece)
        tally.missing += piece.count(None)
        yield piece


def _refuse_other(X: Any) -> None:
    """Raise an error if X is not a sequence of documents."""
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
    """X as an Arrow array of text without a copy; None if it is not one, or not all text."""
    if not hasattr(X, "__arrow_c_stream__") and not hasattr(X, "__arrow_c_array__"):
        return None
    try:
        if not isinstance(X, (pa.Array, pa.ChunkedArray)):
            X = pa.chunked_array(X) if hasattr(X, "__arrow_c_stream__") else pa.array(X)
    except (pa.ArrowException, UnicodeError):  # Python objects that are not all text
        return None
    kind = X.type.value_type if pa.types.is_dictionary(X.type) else X.type
    if cell_type(kind) is CellType.TEXT:
        return X
    # Bytes may be any text, and pandas keeps a column without a single document as NaN: these are read cell by cell.
    binary = pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind)
    if not (binary or pa.types.is_null(kind) or pa.types.is_floating(kind)):
        raise DataError(f"documents are text, but this column holds {kind}. Give a column of strings.")
    return None


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
    remedy = "Words that are already split: join them, ' '.join(words)." if split else "Make it text: str(value)."
    raise DataError(f"document {place} is {value!r:.60} ({type(value).__name__}), not text. {remedy}")


LIMITS = {"min_count": 1, "min_df": 1, "max_df": 1.0, "drop_top": 0, "max_words": None}
"""The settings that choose among words, where they choose nothing."""


def _limits(bag: Any) -> str:
    """The limits that differ from the defaults, as they were written: 1 is a document, 1.0 all of them."""
    own = {name: repr(getattr(bag, name)) for name in LIMITS}
    return ", ".join(f"{name}={value}" for name, value in own.items() if value != repr(LIMITS[name]))


def make_reading(bag: Any) -> Reading:
    """How the documents are read."""
    stop_words = () if bag.stop_words is None else bag.stop_words
    limits = {name: getattr(bag, name) for name in LIMITS}
    found = Reading(bag.analyzer, bag.ngrams, bag.pattern, bag.lowercase, stop_words, **limits)
    found.refuse_steps()
    return found


def check_chosen(chosen: Chosen, bag: Any) -> Chosen:
    """The chosen words; an error if there are none."""
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


NOTHING = np.zeros(0, dtype=np.int64)


class BagOfWords(TransformerMixin, Estimator):  # type: ignore[misc]  # scikit-learn has no types
    """A sparse matrix with a row per document and a column per word, as CountVectorizer and TfidfVectorizer make it.

    Words are runs of two or more word characters in lower case, unless `pattern` or `analyzer` sets another rule. `X`
    is a list, array, Series, Arrow array or any iterable of text, which is read once, a few MB at a time. None or NaN
    is a document without words (CountVectorizer raises); bytes are UTF-8, or else Latin-1, which `notes_` counts. With
    `hashing`, `transform` needs no `fit`, except for the rarity of words ("idf", "tfidf").

    A model of text needs no matrix: `NaiveBayes(kinds="text")` and `Classifier` read documents.

    See Also
    --------
    SphericalKMeans : Clusters the rows.
    families.Text : A column of documents within a model.

    References
    ----------
    .. [1] G. Salton and C. Buckley (1988). "Term-weighting approaches in automatic text retrieval". Information
       Processing and Management 24 (5), 513-523.
    .. [2] K. Weinberger, A. Dasgupta, J. Langford, A. Smola and J. Attenberg (2009). "Feature hashing for large scale
       multitask learning". ICML 2009, 1113-1120.

    Examples
    --------
    >>> bag = BagOfWords().fit(["Free call, call now", "I call you"])
    >>> bag.get_feature_names_out().tolist(), bag.transform(["call me, call now"]).toarray().tolist()
    (['call', 'free', 'now', 'you'], [[2, 0, 1, 0]])
    """

    _arguments: ClassVar = {
        "X": ("list, array, Series, Arrow array or other iterable of str", "Documents."),
        "y": IGNORED,
        "other": ("", "A fitted transformer with the same settings."),
    }
    _learned: ClassVar = "_gathered"
    _input_tags: ClassVar = {"string": True, "two_d_array": False}
    _varied: ClassVar = SETTLED
    _gathered: Gathered | vocabulary.GatheredHashes
    _chosen: Chosen | None
    _tally: DocumentTally
    _vocabulary: dict[str, int] | None

    def __init__(  # noqa: PLR0913
        self,
        weighting: str = "count",
        idf: str = "smooth",
        normalize: str | None = "auto",
        min_count: int = 1,
        min_df: int | float = 1,
        max_df: int | float = 1.0,
        drop_top: int = 0,
        max_words: int | None = None,
        stop_words: str | Iterable[str] | None = None,
        ngrams: tuple[int, int] = (1, 1),
        analyzer: str = "word",
        pattern: str | None = None,
        lowercase: bool = True,
        hashing: int | None = None,
        n_jobs: int | None = None,
        random_state: RandomState = None,
        verbose: bool = False,
    ) -> None:
        self._keep_parameters(locals())

    def _check_settings(self) -> None:
        super()._check_settings()
        make_reading(self)  # which refuses what it cannot mean
        if self.hashing is not None and _limits(self):
            raise DataError(f"hashing keeps no words to choose from, so {_limits(self)} cannot be used with it.")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.requires_fit = self.hashing is None or self._uses_idf
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_gathered") or not (self.hashing is None or self._uses_idf)

    @property
    def _uses_idf(self) -> bool:
        return self.weighting in ("idf", "tfidf")

    # Learning

    def fit(self, X: Any, y: object = None) -> Self:
        """Learn the words of the documents.

        Parameters
        ----------
        X : list, array, Series, Arrow array or other iterable of str
            Documents. They are read once, a few megabytes at a time.

        Raises
        ------
        DataError
            If no word is left by the settings, or a document is not text.
        """
        gathered, tally = self._start_gathering(), DocumentTally()
        with Threads(self.n_jobs) as threads:
            for block in self._blocks(X, tally, threads):
                gathered.add(block)
        return self._keep(gathered, check_chosen(gathered.chosen(), self), tally)

    def fit_transform(self, X: Any, y: object = None) -> Any:
        """Learn the words and return the matrix of the same documents.

        The documents are read once, so `X` may be a generator.

        Returns
        -------
        csr_matrix of shape (n_documents, n_words)
            Counts or weights, as `transform` returns them.

        Examples
        --------
        >>> bag = BagOfWords(stop_words="english")
        >>> bag.fit_transform(["the cat sat", "the cat and the dog"]).toarray().tolist()
        [[1, 0, 1], [1, 1, 0]]
        """
        gathered, tally = self._start_gathering(), DocumentTally()
        with Threads(self.n_jobs) as threads:
            kept = deque((replace(b, words=Words.of(())), gathered.add(b)) for b in self._blocks(X, tally, threads))
            chosen = check_chosen(gathered.chosen(), self)
            idf = self._idf(chosen)
            parts = threads.map(
                lambda pair: self._rows(pair[0], chosen.columns[pair[1]], chosen, idf), vocabulary.emptied(kept)
            )
            rows = vocabulary.stacked(parts, len(chosen.words), self._cell_type)
        self._keep(gathered, chosen, tally)
        return self._convert(rows, X)

    def partial_fit(self, X: Any, y: object = None) -> Self:
        """Learn the words of further documents.

        The kept words are chosen from all documents so far when they are next needed, so columns may move after a call.
        """
        gathered, tally = self._start_gathering(), DocumentTally()
        with Threads(self.n_jobs) as threads:
            blocks = list(self._blocks(X, tally, threads))  # all are read before any is learned
        if hasattr(self, "_gathered"):
            gathered = vocabulary.continued(self._gathered, gathered)
            tally += self._tally
        for block in blocks:
            gathered.add(block)
        return self._keep(gathered, None, tally)

    def merge(self, other: BagOfWords) -> Self:
        """Return a new transformer that has learned the documents of both.

        Raises
        ------
        DataError
            If the settings differ.

        Examples
        --------
        >>> both = BagOfWords().fit(["one fish"]).merge(BagOfWords().fit(["two fish"]))
        >>> both.get_feature_names_out().tolist(), both.counts_.tolist()
        (['fish', 'one', 'two'], [2, 1, 1])
        """
        refuse_unlike(self, other, BagOfWords)
        mine, theirs = (bag.get_params() | {"stop_words": make_reading(bag).stop_words} for bag in (self, other))
        unlike = [name for name in mine if name != "n_jobs" and mine[name] != theirs[name]]
        if unlike:
            both = ", ".join(f"{name}={mine[name]!r} and {theirs[name]!r}" for name in unlike)
            raise DataError(f"the two read documents in different ways: {both}. Fit both with the same settings.")
        gathered, tally = self._start_gathering(), DocumentTally()
        for part in (self, other):
            check_is_fitted(part, "_gathered")
            known = part._gathered.every()
            gathered.add_totals(known.words, known.totals)
            tally += part._tally + DocumentTally(said=known.notes)
        whole: BagOfWords = clone(self)
        return whole._keep(gathered, None, tally)

    def _start_gathering(self) -> Gathered | vocabulary.GatheredHashes:
        self._check_settings()
        return (
            Gathered(make_reading(self))
            if self.hashing is None
            else vocabulary.GatheredHashes(make_reading(self), self.hashing)
        )

    def _keep(self, gathered: Any, chosen: Chosen | None, tally: DocumentTally) -> Self:
        self._gathered, self._chosen, self._tally, self._vocabulary = gathered, chosen, tally, None
        return self

    @property
    def _known(self) -> Chosen:
        """The kept words; with hashing and without a fit, columns without counts."""
        if not hasattr(self, "_gathered"):
            check_is_fitted(self)
            self._check_settings()
            return Chosen(vocabulary.Hashed(self.hashing or 0), NOTHING, NOTHING, NOTHING, 0)  # type: ignore[arg-type]
        if self._chosen is None:
            self._chosen = check_chosen(self._gathered.chosen(), self)
        return self._chosen

    # Using

    def transform(self, X: Any) -> Any:
        """Return the matrix of documents. Words without a column are dropped.

        Returns
        -------
        csr_matrix of shape (n_documents, n_words)
            Whole numbers for plain counts, else floats; after `set_output(transform="pandas")` a sparse DataFrame.

        Examples
        --------
        >>> bag = BagOfWords("tfidf").fit(["red bike", "blue bike"])
        >>> bag.transform(["red red bike"]).toarray().round(3)
        array([[0.335, 0.   , 0.942]])
        """
        self._check_settings()
        chosen, reading, tally = self._known, make_reading(self), DocumentTally()
        idf = self._idf(chosen)

        def rows_of(piece: Any) -> sparse.csr_matrix:
            block = block_of(piece, reading)
            return self._rows(block, chosen.words.columns(block.words), chosen, idf)

        with Threads(self.n_jobs) as threads:
            rows = vocabulary.stacked(threads.map(rows_of, cut_documents(X, tally)), len(chosen.words), self._cell_type)
        return self._convert(rows, X)

    def inverse_transform(self, X: Any) -> list[np.ndarray]:
        """Return the words of each row that are not zero.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_documents, n_words)
            Rows such as `transform` returns.

        Returns
        -------
        list of ndarray of str
            For each row its words, in the order of the columns.

        Examples
        --------
        >>> bag = BagOfWords().fit(["red bike", "blue bike"])
        >>> [words.tolist() for words in bag.inverse_transform(bag.transform(["a blue bike"]))]
        [['bike', 'blue']]
        """
        if self.hashing is not None:
            raise DataError(
                "with hashing, the words are not stored, so they cannot be returned. Use hashing=None for a vocabulary."
            )
        names = self.get_feature_names_out()
        rows = sparse.csr_matrix(X, copy=True)
        if rows.shape[1] != len(names):
            raise DataError(f"X has {rows.shape[1]:,} columns, but {len(names):,} words were learned.")
        rows.sum_duplicates()
        rows.eliminate_zeros()
        return [names[rows.indices[start:stop]] for start, stop in pairwise(rows.indptr)]

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return the names of the columns.

        Parameters
        ----------
        input_features : object, default=None
            Ignored; present for pipelines.

        Returns
        -------
        ndarray of str, shape (n_words,)
            The words; with `hashing` "hash0", "hash1" and so on.
        """
        return np.array(list(self._known.words), dtype=object)

    words_: Sequence[str] = attribute(
        "words",
        "The kept words in alphabetical order. They are stored compactly, without a Python object for each.",
        "_known",
    )
    counts_: np.ndarray = attribute(
        "counts", "Number of occurrences of each word in all documents, shape (n_words,).", "_known"
    )
    documents_: np.ndarray = attribute(
        "documents", "Number of documents that hold each word, shape (n_words,).", "_known"
    )
    n_documents_: int = attribute("n_documents", "Number of documents that were learned from.", "_known")

    @property
    def vocabulary_(self) -> dict[str, int]:
        """Column of each word, created when it is first read."""
        if self.hashing is not None:
            raise AttributeError("hashing keeps no vocabulary. Use hashing=None for one.")
        known = self._known
        if self._vocabulary is None:
            self._vocabulary = {word: column for column, word in enumerate(known.words)}
        return self._vocabulary

    @property
    def idf_(self) -> np.ndarray:
        """Inverse document frequency of each word by the formula `idf`, shape (n_words,)."""
        return vocabulary.idf_of(self._known.documents, self._known.n_documents, self.idf)

    @property
    def notes_(self) -> list[str]:
        """Remarks on the documents and on the limits of the vocabulary."""
        return [*self._known.notes, *(self._tally.notes() if hasattr(self, "_tally") else [])]

    def _parts(self, arrays: Arrays) -> Document:
        """All words are in it, kept or not."""
        gathered = self._fitted
        encode_reading(make_reading(self))  # what would not be read back is refused here
        known = gathered.every()
        met = asdict(self._tally + DocumentTally(said=known.notes))
        return {"vocabulary": encode_vocabulary(known, arrays, met)}

    def _restore(self, document: Document, arrays: Arrays) -> None:
        known = decode_vocabulary(document, arrays)
        if self.hashing != getattr(known.words, "width", None):
            raise ModelFileError("its settings are not those of its words.")
        gathered = self._start_gathering()
        encode_reading(gathered.reading)
        gathered.add_totals(known.words, known.totals)
        self._keep(gathered, None, msgspec.convert(document["vocabulary"]["met"], DocumentTally))
        _ = self._known  # which refuses words of which none is left

    # Parts of the above

    def _blocks(self, X: Any, tally: DocumentTally, threads: Threads) -> Iterator[WordBlock]:
        return threads.map(partial(block_of, reading=make_reading(self)), cut_documents(X, tally))

    def _idf(self, chosen: Chosen) -> np.ndarray | None:
        return vocabulary.idf_of(chosen.documents, chosen.n_documents, self.idf) if self._uses_idf else None

    def _rows(self, block: WordBlock, columns: np.ndarray, chosen: Chosen, idf: np.ndarray | None) -> sparse.csr_matrix:
        rows = matrix_of(block, columns, len(chosen.words), self._cell_type)
        return vocabulary.weighted(rows, self.weighting, idf, self._has_unit_rows)

    @property
    def _has_unit_rows(self) -> bool:
        return bool(self.normalize == "l2" or (self.normalize == "auto" and self.weighting == "tfidf"))

    @property
    def _cell_type(self) -> Any:
        return np.int64 if self.weighting == "count" and not self._has_unit_rows else np.float64

    def _convert(self, rows: sparse.csr_matrix, X: Any) -> Any:
        """The matrix as `set_output` wants it: a pandas frame keeps its columns sparse."""
        wanted = getattr(self, "_sklearn_output_config", {}).get("transform") or get_config()["transform_output"]
        if wanted == "default":
            return rows
        if wanted != "pandas":
            raise DataError(f"a bag of words is sparse, which a {wanted} frame cannot be. Use 'default' or 'pandas'.")
        import pandas as pd

        index = X.index if isinstance(X, pd.Series) else None
        return pd.DataFrame.sparse.from_spmatrix(rows, index=index, columns=self.get_feature_names_out())
