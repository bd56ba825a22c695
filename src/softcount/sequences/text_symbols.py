"""Texts as sequences: of characters, or of words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Literal, get_args

import numpy as np

from softcount.errors import DataError
from softcount.sequences.steps import Steps
from softcount.sources.arrow_columns import arrow_of, text_of

Symbols = Literal["characters", "words"]
"""What the steps of a text are."""

WORD = re.compile(r"\w+(?:['\u2019-]\w+)*|[^\w\s]")
"""A word, with apostrophes and hyphens inside it, or one mark of punctuation."""


def text_steps(texts: Sequence[str], symbols: str, names: Sequence[str] = (), notes: tuple[str, ...] = ()) -> Steps:
    """Each text as a sequence of characters, or of words and marks, as they are written.

    >>> found = text_steps(["It's me!"], "words")
    >>> found.columns["word"].dictionary.to_pylist()
    ["It's", 'me', '!']
    """
    if symbols not in get_args(Symbols):
        raise DataError(f"steps={symbols!r} is not known. Text is read as 'characters' or as 'words'.")
    if symbols == "characters":
        return Steps(
            {"character": _characters("".join(texts))}, np.array([*map(len, texts)], np.int64), names, None, notes
        )
    words = [WORD.findall(text) for text in texts]
    lengths = np.array([*map(len, words)], np.int64)
    return Steps({"word": _words([word for line in words for word in line])}, lengths, names, None, notes)


def _characters(text: str) -> Any:
    """An Arrow column of characters, without a Python string for each."""
    import pyarrow as pa

    try:
        points = np.frombuffer(text.encode("utf-32-le"), dtype=np.uint32)
    except UnicodeEncodeError as error:
        raise DataError(f"a text is not valid Unicode: {error}. Decode it with errors='replace'.") from None
    met = np.zeros(int(points.max(initial=0)) + 1, dtype=bool)  # at most 1,114,112 of them
    met[points] = True
    different, places = np.flatnonzero(met), (np.cumsum(met) - 1)[points]
    spelt = text_of([chr(point) for point in different.tolist()])
    return pa.DictionaryArray.from_arrays(arrow_of(places.astype(np.int32)), spelt)


def _words(words: list[str]) -> Any:
    import pyarrow as pa

    place = {word: at for at, word in enumerate(dict.fromkeys(words))}
    places = np.fromiter(map(place.__getitem__, words), np.int32, len(words))
    return pa.DictionaryArray.from_arrays(arrow_of(places), text_of(list(place)))


def without_blank(
    texts: Sequence[str], names: Sequence[str] = (), what: str = "line"
) -> tuple[Any, Any, tuple[str, ...]]:
    """Texts that hold something, their names, and a note of how many do not."""
    kept = [place for place, text in enumerate(texts) if text.strip()]
    blank = len(texts) - len(kept)
    were = f"1 empty {what} was" if blank == 1 else f"{blank:,} empty {what}s were"
    notes = (f"{were} left out",) if blank else ()
    if not kept:
        raise DataError(f"there is no {what} that holds anything.")
    return [texts[place] for place in kept], [names[place] for place in kept] if names else [], notes
