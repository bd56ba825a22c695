"""Chunks from arrays of numbers: views where the array can be used as it is, else one conversion per chunk."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from softcount.table.arrays import arrow_of
from softcount.table.columns import MissingWords, refuse_infinite, without
from softcount.table.encode import Encoded, LevelCoder, check_domain, count_unseen
from softcount.table.plan import Plan
from softcount.table.recoding import Recoder
from softcount.table.schema import Key, Kind
from softcount.table.source import Piece


class DenseEncoder:
    """Encodes row ranges of one array.

    `checked` reads every number once to refuse infinite ones and to count missing ones. An engine whose own sums
    would show them can leave that out: reading 400 MB a second time costs as much as a naive Bayes fit.
    """

    def __init__(
        self,
        array: np.ndarray,
        plans: Sequence[Plan],
        coders: Mapping[Key, LevelCoder],
        located: Mapping[Key, Any],
        words: MissingWords,
        closed: bool,
        checked: bool = True,
    ) -> None:
        used = [plan for plan in plans if plan.field.used]
        self.numeric = [plan for plan in used if plan.field.kind.numeric]
        narrow = [coders[plan.key] for plan in used if plan.field.kind.coded and not plan.field.wide]
        wide = [coders[plan.key] for plan in used if plan.field.kind.coded and plan.field.wide]
        self.wide = [(coder, located[coder.plan.key]) for coder in wide]
        self.words, self.closed, self.checked = words, closed, checked
        self.at = [located[plan.key] for plan in self.numeric]
        self.bounded = [pair for pair in enumerate(self.numeric) if pair[1].field.kind is not Kind.REAL]
        self.as_is = self.at == list(range(array.shape[1])) and array.dtype == np.float64 and not words.numbers
        whole = array.dtype.kind in "iub" and not words.numbers
        self.narrow = [(coder, located[coder.plan.key]) for coder in narrow]
        places = [place for _, place in self.narrow]
        self.recoder = Recoder(array, narrow, places) if narrow and whole else None

    def encode(self, piece: Piece, block: np.ndarray) -> Encoded:
        missing: dict[Key, int] = {}
        unseen: dict[Key, int] = {}
        reals = self._reals(block, piece.start, missing)
        if self.recoder is not None:
            codes, counts = self.recoder.codes(block, piece.start)
            unseen.update(zip((coder.plan.key for coder in self.recoder.coders), counts, strict=True))
        else:
            codes = _levels(self.narrow, block, piece.start, missing, unseen).astype(np.uint8)
        wide = _levels(self.wide, block, piece.start, missing, unseen)
        return Encoded(reals, codes, wide, missing, unseen)

    def _reals(self, block: np.ndarray, start: int, missing: dict[Key, int]) -> np.ndarray:
        if self.as_is:
            reals = block
        else:
            reals = without(np.ascontiguousarray(block[:, self.at], dtype=np.float64), self.words.numbers)
        if (self.checked or not self.as_is) and not _all_finite(reals):
            for slot, plan in enumerate(self.numeric):
                refuse_infinite(reals[:, slot], plan.key, start)
                missing[plan.key] = int(np.count_nonzero(np.isnan(reals[:, slot])))
        for slot, plan in self.bounded:
            check_domain(plan, reals[:, slot], start, self.closed)
        return reals


def _all_finite(block: np.ndarray) -> bool:
    """Whether no number is missing or infinite; a false alarm (a sum that overflows) only costs a second look."""
    with np.errstate(over="ignore", invalid="ignore"):
        return math.isfinite(float(block.sum()))


def _levels(
    coders: Sequence[tuple[LevelCoder, int]],
    block: np.ndarray,
    start: int,
    missing: dict[Key, int],
    unseen: dict[Key, int],
) -> np.ndarray:
    out = np.zeros((len(block), len(coders)), dtype=np.int32)
    for slot, (coder, place) in enumerate(coders):
        key = coder.plan.key
        out[:, slot] = coder.codes(arrow_of(block[:, place]), start)
        missing[key] = int(len(block) - np.count_nonzero(out[:, slot]))
        unseen[key] = count_unseen(out[:, slot], coder)
    return out
