"""The settings of a bag of words, checked."""

from __future__ import annotations

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
    reading_of(bag)  # which refuses what it cannot mean
    whole = isinstance(bag.n_jobs, (int, np.integer)) and not isinstance(bag.n_jobs, bool)
    if bag.n_jobs is not None and not (whole and bag.n_jobs != 0):
        raise DataError(f"n_jobs must be None, a number of threads, or -1 for all cores, not {bag.n_jobs!r}.")
    if bag.hashing is not None:
        _refuse_hashing(bag)


def _refuse_hashing(bag: Any) -> None:
    refuse_fraction("hashing", bag.hashing, 1)
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
    stop_words = () if bag.stop_words is None else bag.stop_words
    limits = {name: getattr(bag, name) for name in LIMITS}
    return Reading(bag.analyzer, bag.ngrams, bag.pattern, bag.lowercase, stop_words, **limits)


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
