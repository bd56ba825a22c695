"""What a report tells of a table's rows: how well they are told, how surely, and a few of them one by one.

The table is gone through chunk by chunk, and only sums and a few rows are kept of each.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import field, replace
from typing import Any

import numpy as np

from softcount.counts import ROOT
from softcount.evaluate.scores import Evaluation, Sums, summed
from softcount.fitted.classes import cells
from softcount.fitted.explain import explained
from softcount.fitted.fitted_model import Fitted
from softcount.records import dataclass
from softcount.run.threads import Threads
from softcount.table import Chunk
from softcount.table.chunk import Chunks
from softcount.table.schema import Key

BINS = 10
PICKED = {"right": 1, "wrong": 2, "unsure": 2}
"""How many rows of each kind are shown; where no class is known, `sure` ones stand for right and wrong."""
MOST_POINTS = 250
"""Rows kept to be drawn as points."""
HOW = "rows given with their classes"


@dataclass(frozen=True, slots=True)
class PickedRow:
    """A row to be explained: why it was picked, its class and runner-up, and what each column adds between the two."""

    row: int
    kind: str
    chosen: int
    against: int
    probability: float
    truth: int | None
    odds: dict[Key, float]
    start: float
    cells: dict[Key, Any]


@dataclass(frozen=True, slots=True)
class RowFindings:
    """All that is kept. `sureness` counts rows by likeliest group and by its probability in ten bins from 0 to 1."""

    rows: int
    evaluation: Evaluation | None
    sureness: np.ndarray
    picked: list[PickedRow]
    points: list[tuple[Chunk, np.ndarray]] = field(default_factory=list)


@dataclass(slots=True)
class _Candidate:
    merit: float
    row: int
    chunk: Chunk
    proba: np.ndarray
    truth: int | None


def row_findings(
    fitted: Fitted, chunks: Iterable[Chunk], threads: Threads, labels: np.ndarray | None = None
) -> RowFindings:
    """Go through a table once; `labels` are the places of the rows' classes, below 0 where they are not known."""
    groups = fitted.n_groups
    sums, sureness, tested = Sums.none(1, groups), np.zeros((groups, BINS)), np.zeros(groups)
    best: dict[str, list[_Candidate]] = {}
    points: list[tuple[Chunk, np.ndarray]] = []
    rows = 0
    for chunk in chunks:
        proba = fitted.proba(Chunks([replace(chunk, start=0)]), threads)  # type: ignore[arg-type]
        own = None if labels is None else labels[chunk.start : chunk.start + chunk.n_rows]
        sure = proba.max(axis=1, initial=0.0)
        np.add.at(sureness, (proba.argmax(axis=1), np.minimum((sure * BINS).astype(int), BINS - 1)), 1.0)
        if own is not None and (own >= 0).any():
            known = np.flatnonzero(own >= 0)
            sums.add(0, proba[known], own[known], np.ones(len(known)), len(known))
            tested += np.bincount(own[known], minlength=groups)
        for kind, candidate in _offered(chunk, proba, own):
            ranked = sorted([*best.get(kind, []), candidate], key=lambda x: (-x.merit, x.row))
            best[kind] = ranked[: PICKED.get(kind, 2)]
        room = MOST_POINTS - sum(len(part) for _, part in points)
        if room > 0:
            points.append((chunk.take(slice(0, room)), proba[:room]))
        rows += chunk.n_rows
    evaluation = summed(sums, HOW, tested, fitted.shares) if tested.sum() > 0 else None
    picked = [_picked(fitted, kind, candidate) for kind in best for candidate in best[kind]]
    return RowFindings(rows, evaluation, sureness, picked, points)


def _offered(chunk: Chunk, proba: np.ndarray, labels: np.ndarray | None) -> Iterator[tuple[str, _Candidate]]:
    """The rows of a chunk that could be shown: surest right, surest wrong, least sure."""
    if proba.shape[1] < 2 or not len(proba):
        return
    sure, said = proba.max(axis=1), proba.argmax(axis=1)
    merits = {"unsure": (-sure, np.ones(len(sure), dtype=bool))}
    if labels is None or not (labels >= 0).any():
        merits = {"sure": (sure, merits["unsure"][1]), **merits}
    else:
        right, wrong = said == labels, (said != labels) & (labels >= 0)
        merits = {"right": (sure, right), "wrong": (sure, wrong), **merits}
    for kind, (merit, those) in merits.items():
        chosen = np.flatnonzero(those)
        for place in chosen[np.argsort(-merit[chosen], kind="stable")[: PICKED.get(kind, 2)]]:
            truth = None if labels is None or labels[place] < 0 else int(labels[place])
            alone = chunk.take(np.array([place]))
            yield kind, _Candidate(float(merit[place]), chunk.start + int(place), alone, proba[place], truth)


def _picked(fitted: Fitted, kind: str, found: _Candidate) -> PickedRow:
    table: Any = Chunks([found.chunk])
    why = explained(fitted, table)
    odds = {key: float(part[0]) for key, part in why.parts.items() if key is not ROOT}
    chosen = int(why.chosen[0])
    return PickedRow(
        found.row, kind, chosen, int(why.against[0]), float(found.proba[chosen]), found.truth, odds,
        float(why.parts[ROOT][0]), cells(fitted, found.chunk),
    )  # fmt: skip
