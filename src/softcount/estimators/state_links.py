"""What users say of states: which may follow which, which may come first, which show the same."""

from __future__ import annotations

from typing import Any

import numpy as np

from softcount.errors import DataError
from softcount.models.hidden_chain import Links

LEFT_RIGHT = "left-right"


def links_of(states: int, transitions: Any, first: Any, tied: Any) -> Links:
    """The links that the settings stand for, with so many states."""
    free = Links.free(states)
    nexts = free.nexts
    firsts = free.firsts
    if isinstance(transitions, str):
        nexts, firsts = tuple(tuple(range(i, states)) for i in range(states)), (0,)
    elif transitions is not None:
        nexts = tuple(tuple(np.flatnonzero(row).tolist()) for row in np.asarray(transitions, dtype=float))
    if first is not None:
        firsts = tuple(sorted({int(state) for state in np.atleast_1d(first)}))
    return Links(firsts, nexts, free.shown if tied is None else _numbered(tied))


def checked_links(states: int | None, transitions: Any, first: Any, tied: Any) -> None:
    """Refuse what cannot be links of so many states."""
    if isinstance(transitions, str):
        if transitions != LEFT_RIGHT:
            raise DataError(f"transitions={transitions!r} is not known. Use {LEFT_RIGHT!r} or a matrix.")
    elif transitions is not None:
        _check_matrix(states, transitions)
    if tied is not None and (isinstance(tied, str) or len(list(tied)) != states):
        raise DataError(f"tied has a word or number for each of {states} states: those with the same show the same.")
    if first is None:
        return
    said = np.atleast_1d(np.asarray(first))
    if not said.size or said.dtype.kind not in "iu" or said.min() < 0 or (states is not None and said.max() >= states):
        most = "" if states is None else f" to {states - 1}"
        raise DataError(f"first has the numbers of states that may come first, 0{most}, not {first!r}.")


def _check_matrix(states: int | None, transitions: Any) -> None:
    try:
        matrix = np.asarray(transitions, dtype=float)
    except (TypeError, ValueError):
        raise DataError("transitions is a matrix that is zero where no step may go.") from None
    if matrix.shape != (states, states) or not np.isfinite(matrix).all() or (matrix < 0).any():
        raise DataError(
            f"transitions must be {states} x {states}, zero where no step may go and above zero elsewhere, "
            f"not an array of shape {matrix.shape}."
        )
    none = np.flatnonzero(~matrix.any(axis=1))
    if len(none):
        raise DataError(f"transitions: nothing may follow state {none[0]}. Let it stay where it is, at least.")


def _numbered(tied: Any) -> tuple[int, ...]:
    """Equal words as equal numbers, in the order in which they first come."""
    known: dict[Any, int] = {}
    return tuple(known.setdefault(word, len(known)) for word in tied)
