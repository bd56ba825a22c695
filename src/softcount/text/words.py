"""Words: how text is split into them, and lists of words as bytes, millions of them without Python objects."""

from __future__ import annotations

import re
import sys
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import pairwise
from operator import eq
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
from msgspec import Meta, Struct
from msgspec.structs import force_setattr, replace

from softcount.core.lazy import arrow_compute, pa
from softcount.errors import DataError

Analyzer = Literal["word", "char", "char_wb", "steps"]

WORD = r"(?u)\b\w\w+\b"
"""Two or more letters, digits or underscores in a row."""

BLANKS = re.compile(r"\s\s+")
"""White space that counts as one space in runs of characters."""

_ENGLISH_LINES = """
the an this that these those some any each every either neither both all another other such
of to in on at by for from with without into onto upon over under between among through during before after
about against until since within as than like off out up down
and or but nor so yet if because while although though unless whether
it its itself he him his himself she her hers herself they them their theirs themselves
we us our ours ourselves you your yours yourself yourselves me my mine myself
who whom whose which what when where why how there here
is am are was were be been being do does did doing done has have had having
will would shall should can could may might must cannot
not no very too also just only even then now again ever never more most much many few less own same once
"""

ENGLISH = tuple(_ENGLISH_LINES.split())
"""Function words; single letters are not words anyway."""

LONGEST_RUN = 1_000
"""Longest n-gram."""

LONGEST_PATTERN = 10_000
"""Longest regular expression in a model file.

Compiling one runs nothing of it. Searching with it may take for ever on a single document, which no length rules out:
the worst that a file of unknown origin can do.
"""

Limit = Annotated[int, Meta(lt=1 << 62)]
"""A number of words or documents; a file with more is refused."""
LEAST = {"min_count": 1, "drop_top": 0, "max_words": 1}
"""Integer settings and the smallest value of each."""


class Reading(Struct, frozen=True):
    r"""Words as scikit-learn's CountVectorizer reads them: lower case, runs of two or more word characters.

    `ngrams` are the shortest and longest run of words (or, with `analyzer="char"`, of characters) that counts as one.
    `pattern` is a regular expression for words of another kind, which is slower. `stop_words` are words to leave out,
    or "english" for a short list. Words are kept that occur at least `min_count` times in all, in at least `min_df` and
    at most `max_df` documents (a float: a share of them), without the `drop_top` most frequent; of more than
    `max_words` the most frequent stay. All of these count documents and words, whatever rows weigh.

    >>> Reading(stop_words=["the", "of"], ngrams=[1, 2]).stop_words
    ('of', 'the')
    """

    analyzer: Analyzer = "word"
    ngrams: tuple[int, int] = (1, 1)
    pattern: Annotated[str, Meta(max_length=LONGEST_PATTERN)] | None = None
    lowercase: bool = True
    stop_words: str | tuple[str, ...] = ()
    min_count: Limit = 1
    min_df: Limit | float = 1
    max_df: Limit | float = 1.0
    drop_top: Limit = 0
    max_words: Limit | None = None

    def __post_init__(self) -> None:
        for name in ("lowercase", "min_df", "max_df", *LEAST):
            force_setattr(self, name, _plain(getattr(self, name)))
        if self.analyzer not in ("word", "char", "char_wb", "steps"):
            raise DataError(f"analyzer={self.analyzer!r} is not known. Use 'word', 'char' or 'char_wb'.")
        pair = [_plain(length) for length in self.ngrams] if isinstance(self.ngrams, Collection) else []
        if len(pair) != 2 or not all(map(_is_whole, pair)) or not 1 <= pair[0] <= pair[1]:
            raise DataError(f"ngrams={self.ngrams!r}: give the shortest and the longest, such as (1, 2).")
        if pair[1] > LONGEST_RUN:
            raise DataError(f"ngrams={self.ngrams!r}: a run has at most {LONGEST_RUN:,} words or characters.")
        force_setattr(self, "ngrams", tuple(pair))
        self._check_stop_words()
        self._check_pattern()
        if not isinstance(self.lowercase, bool):
            raise DataError(f"lowercase={self.lowercase!r}: give True or False.")
        for name in ("min_df", "max_df"):
            limit = getattr(self, name)
            share = isinstance(limit, float) and 0 <= limit <= 1
            if not share and not (_is_whole(limit) and limit >= 1):
                raise DataError(
                    f"{name} must be a number of documents (1, 2, ...) or a share (0.0 to 1.0), not {limit!r}."
                )
        for name, least in LEAST.items():
            value = getattr(self, name)
            if not (_is_whole(value) and value >= least) and not (name == "max_words" and value is None):
                raise DataError(f"{name} must be a whole number of at least {least}, not {value!r}.")

    def refuse_steps(self) -> None:
        if self.analyzer == "steps":
            raise DataError("analyzer='steps' is not known for text. Use 'word', 'char' or 'char_wb'.")

    def _check_stop_words(self) -> None:
        if isinstance(self.stop_words, str):
            if self.stop_words != "english":
                raise DataError(f"stop_words={self.stop_words!r} is not known. Use 'english' or a list of words.")
            return
        if not isinstance(self.stop_words, Collection):
            raise DataError(f"stop_words={self.stop_words!r}: give a list of words, or 'english'.")
        for word in self.stop_words:
            if not isinstance(word, str):
                raise DataError(f"stop_words holds {word!r}, which is not text.")
        force_setattr(self, "stop_words", tuple(sorted(set(self.stop_words))))

    def _check_pattern(self) -> None:
        if self.pattern is None:
            return
        if not isinstance(self.pattern, str):
            raise DataError(f"pattern={self.pattern!r}: give a regular expression as text.")
        try:
            groups = re.compile(self.pattern).groups
        except re.error as error:
            raise DataError(f"pattern={self.pattern!r} is not a regular expression: {error}.") from None
        if groups > 1:
            raise DataError(
                f"pattern={self.pattern!r} has {groups} groups. Use one for the word, and (?:...) elsewhere."
            )

    @property
    def unlimited(self) -> Reading:
        """This reading without limits: every word is kept."""
        return replace(self, min_count=1, min_df=1, max_df=1.0, drop_top=0, max_words=None)

    @property
    def stopped(self) -> tuple[str, ...]:
        """The stop words."""
        return ENGLISH if isinstance(self.stop_words, str) else self.stop_words


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _plain(value: Any) -> Any:
    """A NumPy number as a Python number."""
    return value.item() if hasattr(value, "item") else value


# -- documents as UTF-8 bytes one after another, from Arrow or from Python strings


class Spelled(NamedTuple):
    """Document i is the bytes from `offsets[i]` to `offsets[i + 1]`, and empty where it is `hidden` (null)."""

    data: np.ndarray  # uint8
    offsets: np.ndarray  # int64
    hidden: np.ndarray  # uint8

    @property
    def size(self) -> int:
        return int(self.offsets[-1] - self.offsets[0])

    def bytes_of(self, place: int) -> bytes:
        return b"" if self.hidden[place] else bytes(self.data[self.offsets[place] : self.offsets[place + 1]])

    def texts(self) -> Iterator[str]:
        return (decoded(self.bytes_of(place)) for place in range(len(self.hidden)))


def decoded(spelled: bytes) -> str:
    """Bytes as text. Half of a surrogate pair stands for itself; invalid UTF-8 becomes U+FFFD, never in a word."""
    try:
        return spelled.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return spelled.decode("utf-8", "replace")


def encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def joined(parts: Sequence[bytes]) -> tuple[np.ndarray, np.ndarray]:
    """The concatenated bytes, and the offsets of the parts."""
    return np.frombuffer(b"".join(parts), dtype=np.uint8), offsets_of(parts)


def offsets_of(parts: Sequence[Any]) -> np.ndarray:
    offsets = np.zeros(len(parts) + 1, dtype=np.int64)
    np.cumsum(np.fromiter(map(len, parts), np.int64, len(parts)), out=offsets[1:])
    return offsets


def spelled_arrow(array: Any) -> Spelled:
    """An Arrow array of text, whole, chunked or sliced; dictionaries and views are cast first."""
    if isinstance(array, pa.ChunkedArray):
        # Wide offsets first: put together, chunks may hold more than 2 GB.
        array = array.chunk(0) if array.num_chunks == 1 else array.cast(pa.large_string()).combine_chunks()
    if isinstance(array, pa.ChunkedArray):
        array = pa.concat_arrays(array.chunks) if array.num_chunks else pa.array([], pa.large_string())
    if not (pa.types.is_string(array.type) or pa.types.is_large_string(array.type)):
        array = array.cast(pa.large_string())
    width = np.int32 if pa.types.is_string(array.type) else np.int64
    _, places, letters = array.buffers()
    offsets = np.zeros(1, np.int64)
    if len(array):
        offsets = np.frombuffer(places, dtype=width, count=len(array) + 1, offset=array.offset * width().itemsize)
    hidden = np.zeros(len(array), np.uint8)
    if array.null_count:
        hidden[:] = array.is_null().to_numpy(zero_copy_only=False)
    data = np.frombuffer(letters or b"", dtype=np.uint8)
    return Spelled(data, np.ascontiguousarray(offsets, dtype=np.int64), hidden)


def spelled(documents: Any) -> Spelled:
    """Documents of any kind as bytes; None is a null."""
    if isinstance(documents, Spelled):
        return documents
    if hasattr(documents, "to_pylist"):
        return spelled_arrow(documents)
    texts: Sequence[Any] = documents if isinstance(documents, (list, tuple)) else list(documents)
    hidden = np.fromiter((text is None for text in texts), np.uint8, len(texts))
    known = [text or "" for text in texts] if hidden.any() else texts
    if all(map(str.isascii, known)):
        return Spelled(np.frombuffer("".join(known).encode("ascii"), dtype=np.uint8), offsets_of(known), hidden)
    # Not by Arrow, which would leave a second copy of each of these strings in the caller's hands.
    return Spelled(*joined([encoded(text) for text in known]), hidden)


# -- lists of words as bytes one after another: millions of them without a Python object each

WORTH_BYTES = 1_000_000
"""Bytes of text that Python reads in 0.15 s."""
WORTH_WORDS = 400_000
"""Distinct words that Python puts in a dictionary in 0.2 s."""
LOADED_BYTES, LOADED_WORDS = 2_000, 500
"""Sizes from which the kernels are faster once they are loaded. Both ways give the same words."""

SORT_ROUNDS = 4
"""Rounds of sorting by eight bytes, or by five or six after the first; words that share more are few."""

SHOWN, LONGEST = 5, 24
"""Words in a repr, and bytes of each."""


def worth_bytes(size: int) -> bool:
    return size >= (LOADED_BYTES if "softcount.kernels.token_counts" in sys.modules else WORTH_BYTES)


def worth_words(number: int) -> bool:
    return number >= (LOADED_WORDS if "softcount.kernels.token_counts" in sys.modules else WORTH_WORDS)


def read_only(array: np.ndarray) -> np.ndarray:
    """A read-only view, so that a kernel is compiled for one kind of array."""
    view = array.view()
    view.flags.writeable = False
    return view


class Words(Sequence[str]):
    """Words in the order of their spelling (of their code points), each once; or any list of words, as met.

    They equal a list of the same words, but no tuple, which has another hash.

    >>> words = Words.of(["ink", "öl"])
    >>> words, words[1], len(words), words == ["ink", "öl"]
    (Words(['ink', 'öl']), 'öl', 2, True)
    """

    __slots__ = ("_cells", "_places", "data", "offsets")

    _cells: np.ndarray | None
    _places: dict[bytes, int] | None

    def __init__(self, data: np.ndarray, offsets: np.ndarray) -> None:
        # Compiled kernels read both by their addresses.
        self.data = read_only(np.ascontiguousarray(data, np.uint8))
        self.offsets = read_only(np.ascontiguousarray(offsets, np.int64))
        self._cells = self._places = None

    @classmethod
    def of(cls, words: Iterable[str]) -> Words:
        return cls.of_bytes([encoded(word) for word in words])

    @classmethod
    def of_bytes(cls, words: Sequence[bytes]) -> Words:
        return cls(*joined(words))

    def to_arrow(self, kind: Any = None) -> Any:
        """The words as an Arrow array of `large_string`, or of another kind, which shares their bytes."""
        buffers = [None, pa.py_buffer(self.offsets), pa.py_buffer(self.data)]
        return pa.Array.from_buffers(kind or pa.large_string(), len(self), buffers)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.data, self.offsets)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, at: Any) -> Any:
        if isinstance(at, slice):
            return [self[i] for i in range(*at.indices(len(self)))]
        place = range(len(self))[at]
        return bytes(self.data[self.offsets[place] : self.offsets[place + 1]]).decode("utf-8", "surrogatepass")

    def __iter__(self) -> Iterator[str]:
        whole, ends = self.data.tobytes(), self.offsets.tolist()
        if whole.isascii():
            text = whole.decode("ascii")
            return (text[start:stop] for start, stop in pairwise(ends))
        return (whole[start:stop].decode("utf-8", "surrogatepass") for start, stop in pairwise(ends))

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Words):
            return np.array_equal(self.offsets, other.offsets) and np.array_equal(self.data, other.data)
        if isinstance(other, list):
            return len(self) == len(other) and all(map(eq, self, other))
        return NotImplemented

    def __hash__(self) -> int:
        return hash((len(self), self.data[:256].tobytes()))

    def __repr__(self) -> str:
        words = []
        for place in range(min(SHOWN, len(self))):
            start, stop = self.offsets[place : place + 2].tolist()
            cut = bytes(self.data[start : start + LONGEST]).decode("utf-8", "ignore") + "..."
            words.append(repr(self[place] if stop - start <= LONGEST else cut))
        shown = ", ".join(words)
        return f"Words([{shown}])" if len(self) <= SHOWN else f"Words([{shown}, ...]: {len(self):,} words)"

    @property
    def nbytes(self) -> int:
        return int(self.data.nbytes + self.offsets.nbytes)

    def spelled(self) -> list[bytes]:
        whole = self.data.tobytes()
        return [whole[start:stop] for start, stop in pairwise(self.offsets.tolist())]

    def take(self, places: np.ndarray) -> Words:
        if not len(places):
            return Words.of_bytes([])
        wanted = pa.py_buffer(np.ascontiguousarray(places, np.int64))
        cells = self.to_arrow(pa.large_binary()), pa.Array.from_buffers(pa.int64(), len(places), [None, wanted])
        _, ends, letters = arrow_compute.call_function("take", list(cells)).buffers()
        return Words(np.frombuffer(letters, np.uint8), np.frombuffer(ends, np.int64, len(places) + 1))

    def order(self) -> np.ndarray:
        """The places of the words sorted by spelling: the order of bytes is that of code points.

        If the kernels are worth it, by the first eight bytes as one number, then words that share these by their next
        bytes: 50,000 words take 2 ms. Arrow compares words one with another, and takes 12 ms.
        """
        found, tied = np.arange(len(self)), np.arange(len(self))
        groups, skip, bits = tied, 0, 0
        for _ in range(SORT_ROUNDS if worth_words(len(self)) else 0):
            from softcount.kernels.token_counts import sort_keys

            words = found[tied]
            keys = sort_keys(self.data, self.offsets, words, groups, skip, bits)
            by = np.argsort(keys)
            found[tied], keys = words[by], keys[by]
            same = np.zeros(len(keys) + 1, dtype=bool)
            same[1:-1] = keys[1:] == keys[:-1]
            stay = np.flatnonzero(same[1:] | same[:-1])
            tied, groups = tied[stay], np.cumsum(~same[stay])
            skip += (64 - bits) // 8
            if not len(tied):
                break
            bits = int(groups[-1]).bit_length()
        if len(tied):  # groups keep their places if all that are left are sorted as one
            words = found[tied]
            cells = [self.take(words).to_arrow(pa.large_binary())]
            how = arrow_compute.ArraySortOptions()
            by = arrow_compute.call_function("array_sort_indices", cells, how).buffers()[1]
            found[tied] = words[np.frombuffer(by, np.uint64, len(words))]
        return found

    def columns(self, words: Words) -> np.ndarray:
        """The place of each of the other words in this list, or -1."""
        if worth_words(len(self) if self._places is None else 0) or worth_words(len(words)):
            from softcount.kernels.token_counts import find_words, learn_words, new_table
            from softcount.kernels.tokenise import EVERY

            if self._cells is None:
                self._cells = learn_words(self.data, self.offsets, new_table(), np.zeros(2, np.int64), EVERY)[1][0]
            return find_words(words.data, words.offsets, self._cells, self.data, self.offsets, EVERY)
        if self._places is None:
            self._places = {word: place for place, word in enumerate(self.spelled())}
        found = self._places.get
        return np.array([found(word, -1) for word in words.spelled()], dtype=np.int32)
