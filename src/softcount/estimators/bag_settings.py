"""The settings of a bag of words, checked."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np

from softcount.errors import DataError
from softcount.estimators.inputs import refuse_fraction
from softcount.text import Chosen, Reading
from softcount.text.weighting import IDFS, WEIGHTINGS

LIMITS = {"min_count": 1, "min_df": 1, "max_df": 1.0, "drop_top": 0, "max_words": None}
"""The settings that choose among words, where they choose nothing."""
CHOICES: dict[str, tuple[Any, ...]] = {"weighting": WEIGHTINGS, "idf": IDFS, "normalize": ("auto", "l2", None)}
MOST_COLUMNS = 2**31 - 1


def check_settings(bag: Any) -> None:
    """Raise where a setting of a bag of words cannot be used."""
    for name, known in CHOICES.items():
        value = getattr(bag, name)
        if not isinstance(value, (str, type(None))) or value not in known:
            raise DataError(f"{name}={value!r} is not known. Use one of: {', '.join(map(repr, known))}.")
    refuse_fraction("min_count", bag.min_count, 1)
    refuse_fraction("drop_top", bag.drop_top, 0)
    for name in ("max_words", "hashing"):
        if getattr(bag, name) is not None:
            refuse_fraction(name, getattr(bag, name), 1)
    for name in ("min_df", "max_df"):
        _refuse_share(name, getattr(bag, name))
    if np.shape(bag.ngrams) != (2,) or not all(isinstance(n, (int, np.integer)) for n in bag.ngrams):
        raise DataError(f"ngrams={bag.ngrams!r}: give the shortest and the longest, such as (1, 2).")
    _refuse_stop_words(bag.stop_words)
    whole = isinstance(bag.n_jobs, (int, np.integer)) and not isinstance(bag.n_jobs, bool)
    if bag.n_jobs is not None and not (whole and bag.n_jobs != 0):
        raise DataError(f"n_jobs must be None, a number of threads, or -1 for all cores, not {bag.n_jobs!r}.")
    if bag.hashing is not None:
        _refuse_hashing(bag)


def _refuse_share(name: str, value: Any) -> None:
    """Raise where a limit is neither a number of documents nor a share of them."""
    whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    if not (whole and value >= 1) and not (isinstance(value, (float, np.floating)) and 0 <= value <= 1):
        raise DataError(f"{name} must be a number of documents (1, 2, ...) or a share (0.0 to 1.0), not {value!r}.")


def _refuse_stop_words(stop_words: Any) -> None:
    if stop_words is None or (isinstance(stop_words, str) and stop_words == "english"):
        return
    if isinstance(stop_words, str) or not isinstance(stop_words, Collection):
        raise DataError(f"stop_words={stop_words!r}: give a list of words, or 'english'.")
    other = [word for word in stop_words if not isinstance(word, str)]
    if other:
        raise DataError(f"stop_words holds {other[0]!r}, which is not text.")


def _refuse_hashing(bag: Any) -> None:
    if bag.hashing > MOST_COLUMNS:
        raise DataError(f"hashing={bag.hashing:,} columns are too many; use at most {MOST_COLUMNS:,}.")
    if _limits(bag):
        raise DataError(f"hashing keeps no words to choose from, so {_limits(bag)} cannot be used with it.")


def _limits(bag: Any) -> str:
    """The limits that were asked for, as they were written."""
    asked = [f"{name}={getattr(bag, name)!r}" for name in LIMITS]
    off = [f"{name}={value!r}" for name, value in LIMITS.items()]  # 1 is a document, 1.0 all of them
    return ", ".join(limit for limit in asked if limit not in off)


def reading_of(bag: Any) -> Reading:
    """How the documents are read."""
    said = () if bag.stop_words is None else bag.stop_words
    stop_words = said if isinstance(said, str) else tuple(sorted(set(said)))
    low, high = (int(length) for length in bag.ngrams)
    limits = {name: _plain(getattr(bag, name)) for name in LIMITS}
    return Reading(bag.analyzer, (low, high), bag.pattern, bool(bag.lowercase), stop_words, **limits)


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def some(chosen: Chosen, bag: Any) -> Chosen:
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
