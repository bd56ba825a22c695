"""The nearest centre of every row, compiled. Rows whose bounds rule out every other centre are skipped.

Each row keeps an upper bound on the distance to its own centre (`reach`). For every block of centres it keeps a lower
bound on the distance to the others in the block (`margins`). Centres move a little at a time. A row is examined again
only when the moves add up to the difference of its bounds, and then only against the blocks in question.

The bounds are stored without the drift of the centres, so that skipped rows are not written. They include the rounding
of float32 products. On 300,000 x 32 float32 rows and 64 centres a full pass took 18 ms (the matrix product alone 12), a
late pass 4 ms.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from softcount.kernels import Array
from softcount.kernels.jit import jit, register_jitable
from softcount.kernels.lanes import fused
from softcount.kernels.nearest import Goal, MovedCentres, State
from softcount.kernels.registers import add_row, apart, dot_rows, nearest_centres

BLOCKED = True
"""Whether this kernel takes centres in blocks and keeps bounds."""
BATCH = 256
"""Rows compared with the centres together: 32 columns of float32 fill most of the first-level cache."""


class BatchRoom(NamedTuple):
    """Memory for a batch: its rows, the queue and the results of each block, and the best centres so far."""

    queued: Array
    places: Array
    length: Array
    least: Array
    following: Array
    which: Array
    best: Array
    runner: Array
    choice: Array
    doubt: Array
    own: Array
    squares: Array
    moved: Array
    before: Array


class CentreSums(NamedTuple):
    """Sums, weights and numbers of rows that centres gained. `fall` (one element) is the decrease of the cost."""

    sums: Array
    mass: Array
    members: Array
    fall: Array


@fused
def advance(rows: Array, state: State, goal: Goal) -> MovedCentres:
    """Give every row the label of its nearest centre, the same as `nearest.advance`. Return the changes."""
    count, columns = goal.centres.shape
    tally = CentreSums(np.zeros((count, columns)), np.zeros(count), np.zeros(count, np.int64), np.zeros(1))
    changed = watch(rows, state, goal, tally) if goal.bounded else sweep(rows, state, goal, tally)
    return MovedCentres(tally.sums, tally.mass, tally.members, tally.fall[0], changed)


@register_jitable
def sweep(rows: Array, state: Any, goal: Any, tally: Any) -> int:
    """Compare every row with every centre, without bounds. Return the number of changed labels."""
    desk = desk_of(goal)
    batch = np.empty(BATCH, np.int64)
    changed = 0
    for start in range(0, rows.shape[0], BATCH):
        stop = min(start + BATCH, rows.shape[0])
        for p in range(BATCH):
            batch[p] = min(start + p, stop - 1)
        for at in range(0, stop - start, goal.packed.shape[2]):
            out = (desk.best, desk.runner, desk.which[0])
            nearest_centres(rows, batch, at, goal.packed, out, 0, goal.packed.shape[0])
        moved = 0
        for p in range(stop - start):
            i, after = batch[p], np.int64(desk.which[0, p])
            before = state.labels[i]
            if before < 0:
                state.norms[i] = dot_rows(rows, i, rows, i, rows.shape[1])
            if desk.runner[p] - desk.best[p] <= goal.slack * (state.norms[i] + goal.furthest):
                after = first_nearest(rows, i, goal.across, desk.squares)
            state.labels[i] = after
            desk.moved[moved], desk.before[moved] = i, before
            moved += after != before
        move(rows, state, goal, desk, tally, moved)
        changed += moved
    return changed


@register_jitable
def watch(rows: Array, state: Any, goal: Any, tally: Any) -> int:
    """Compare the rows that their bounds do not settle. Return the number of changed labels."""
    desk = desk_of(goal)
    batch = np.empty(BATCH, np.int64)
    held = 0
    changed = 0
    for i in range(rows.shape[0]):
        if is_settled(state, goal, i):
            continue
        batch[held] = i
        held += 1
        if held == BATCH:
            changed += look_again(rows, state, goal, desk, batch, tally)
            held = 0
    if held:
        changed += look_again(rows, state, goal, desk, batch[:held], tally)
    return changed


@register_jitable
def desk_of(goal: Any) -> Any:
    blocks, _, width = goal.packed.shape
    kind, wide = goal.packed.dtype, (blocks, BATCH + width)
    queues = np.empty(wide, np.int64), np.empty((blocks, BATCH), np.int64), np.zeros(blocks, np.int64)
    answers = np.empty(wide, kind), np.empty(wide, kind), np.empty(wide, np.int32)
    best = np.empty(BATCH, kind), np.empty(BATCH, kind), np.empty(BATCH, np.int64)
    measures = np.empty(BATCH), np.empty(BATCH), np.empty(len(goal.centres))
    return BatchRoom(*queues, *answers, *best, *measures, np.empty(BATCH, np.int64), np.empty(BATCH, np.int64))


@register_jitable
def is_settled(state: Any, goal: Any, i: int) -> bool:
    """Return whether the bounds prove that a row keeps its label."""
    label = state.labels[i]
    if label < 0:
        return False
    reach = state.reach[i] + goal.drift[label]
    nearest = np.inf
    for g in range(state.margins.shape[1]):
        nearest = min(nearest, state.margins[i, g] - goal.block_drift[g])
    return bool(nearest > reach)


@register_jitable
def look_again(rows: Array, state: Any, goal: Any, desk: Any, batch: Array, tally: Any) -> int:
    """Assign labels to a batch of rows. Return the number of changed labels."""
    queue(rows, state, goal, desk, batch)
    search(rows, goal, desk)
    changed = settle(rows, state, goal, desk, batch)
    remember(state, goal, desk, batch)
    move(rows, state, goal, desk, tally, changed)
    return changed


@register_jitable
def queue(rows: Array, state: Any, goal: Any, desk: Any, batch: Array) -> None:
    """Recompute each row's distance to its own centre, and queue the row for the blocks that may hold a nearer one."""
    columns, width = rows.shape[1], goal.packed.shape[2]
    desk.length[:] = 0
    for p in range(len(batch)):
        i = batch[p]
        label = state.labels[i]
        if label < 0:
            state.norms[i] = dot_rows(rows, i, rows, i, columns)
        norm = float(state.norms[i])
        doubt = goal.slack * (norm + goal.furthest)
        upper = np.inf
        desk.doubt[p], desk.best[p], desk.runner[p], desk.choice[p] = doubt, np.inf, np.inf, label
        if label >= 0:
            desk.own[p] = desk.best[p] = goal.half[label] - dot_rows(rows, i, goal.near, label, columns)
            upper = math.sqrt(max(norm + 2.0 * desk.own[p] + doubt, 0.0))
        for g in range(goal.packed.shape[0]):
            at = desk.length[g]
            needed = state.margins[i, g] - goal.block_drift[g] <= upper
            desk.queued[g, at], desk.places[g, at] = i, p
            desk.length[g] = at + needed
            if needed and g == label // width:
                desk.best[p] = np.inf  # the block will find it


@register_jitable
def search(rows: Array, goal: Any, desk: Any) -> None:
    """Compare every block with the rows in its queue. Keep the two lowest scores of each row."""
    width = goal.packed.shape[2]
    for g in range(goal.packed.shape[0]):
        length = desk.length[g]
        if length == 0:
            continue
        desk.queued[g, length : length + width] = desk.queued[g, length - 1]
        out = (desk.least[g], desk.following[g], desk.which[g])
        for at in range(0, length, width):
            nearest_centres(rows, desk.queued[g], at, goal.packed, out, g, g + 1)
        for at in range(length):
            # Without a branch: which score is lower is unpredictable, and a misprediction cost 10 ns per row and block.
            p = desk.places[g, at]
            least, best = desk.least[g, at], desk.best[p]
            desk.runner[p] = min(min(desk.runner[p], desk.following[g, at]), max(least, best))
            desk.best[p] = min(least, best)
            desk.choice[p] = desk.which[g, at] if least < best else desk.choice[p]


@register_jitable
def settle(rows: Array, state: Any, goal: Any, desk: Any, batch: Array) -> int:
    """Set the label and the upper bound of each row. List the rows that changed and return their number."""
    changed = 0
    for p in range(len(batch)):
        i, after = batch[p], desk.choice[p]
        before = state.labels[i]
        square = state.norms[i] + 2.0 * desk.best[p] + desk.doubt[p]
        if desk.runner[p] - desk.best[p] <= desk.doubt[p]:
            after = first_nearest(rows, i, goal.across, desk.squares)
            square = desk.squares[after] * (1.0 + goal.slack)
        upper = math.sqrt(max(square, 0.0))
        state.reach[i] = upper - goal.drift[after] + goal.tiny * (upper + goal.drift[after])
        if after == before:
            continue
        state.labels[i] = after
        desk.moved[changed], desk.before[changed] = i, before
        changed += 1
        if before >= 0:
            # The centre that the row left is now one of the others, so the bound of its block must cover it.
            g = before // goal.packed.shape[2]
            lower = math.sqrt(max(state.norms[i] + 2.0 * desk.own[p] - desk.doubt[p], 0.0))
            bound = (lower + goal.block_drift[g]) * (1.0 - goal.tiny)
            state.margins[i, g] = min(state.margins[i, g], bound)
    return changed


@jit(error_model="numpy")
def first_nearest(rows: Array, i: int, across: Array, squares: Array) -> Any:
    """Return the nearest centre by squared differences added column by column; the first one if several are equal.

    Compiled without fusing products and sums, because the plain kernel must give bit-for-bit identical results.
    """
    squares[:] = 0.0
    for j in range(across.shape[0]):
        x = float(rows[i, j])
        for k in range(across.shape[1]):
            apart = x - across[j, k]
            squares[k] += apart * apart
    return int(squares.argmin())


@register_jitable
def move(rows: Array, state: Any, goal: Any, desk: Any, tally: Any, changed: int) -> None:
    """Move the listed rows from the sums of one centre to those of another.

    One call handles all rows: a call with this many arrays counts references to each, which takes 300 ns, more than a
    row.
    """
    columns = rows.shape[1]
    for place in range(changed):
        i, before = desk.moved[place], desk.before[place]
        after = state.labels[i]
        weight = state.weights[i] if len(state.weights) else 1.0
        fall = -apart(rows, i, goal.centres, after, columns)
        add_row(tally.sums, after, rows, i, weight)
        tally.mass[after] += weight
        tally.members[after] += 1
        if before >= 0:
            fall += apart(rows, i, goal.centres, before, columns)
            add_row(tally.sums, before, rows, i, -weight)
            tally.mass[before] -= weight
            tally.members[before] -= 1
        tally.fall[0] += weight * fall


@register_jitable
def remember(state: Any, goal: Any, desk: Any, batch: Array) -> None:
    """Write the lower bounds of the examined blocks. A row's own centre is excluded from the bound of its block."""
    for g in range(goal.packed.shape[0]):
        for at in range(desk.length[g]):
            p = desk.places[g, at]
            i = batch[p]
            is_own = desk.which[g, at] == state.labels[i]
            score = float(desk.following[g, at] if is_own else desk.least[g, at])
            lower = math.sqrt(max(float(state.norms[i]) + 2.0 * score - desk.doubt[p], 0.0))
            state.margins[i, g] = (lower + goal.block_drift[g]) * (1.0 - goal.tiny)


def row_hashes(rows: Array) -> Array:
    """Return a hash per row that depends only on its cells, equal to that of `nearest.row_hashes`."""
    return hash_bits(np.ascontiguousarray(rows, np.float64).view(np.uint64))


@jit()
def hash_bits(bits: Array) -> Array:
    """Return the sum of the mixed bits of every row's cells. Zeros of either sign add nothing."""
    out = np.zeros(bits.shape[0], np.uint64)
    for i in range(bits.shape[0]):
        for j in range(bits.shape[1]):
            if bits[i, j] << np.uint64(1) != np.uint64(0):
                x = bits[i, j] ^ (np.uint64(j + 1) * np.uint64(0x9E3779B97F4A7C15))
                x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
                x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
                out[i] += x ^ (x >> np.uint64(31))
    return out


@fused
def spread(rows: Array, labels: Array, centres: Array) -> Array:
    out = np.empty(rows.shape[0])
    for i in range(rows.shape[0]):
        out[i] = apart(rows, i, centres, labels[i], rows.shape[1])
    return out


@fused
def recount(rows: Array, state: State, centres: Array) -> MovedCentres:
    sums, mass, members = np.zeros(centres.shape), np.zeros(len(centres)), np.zeros(len(centres), np.int64)
    for i in range(rows.shape[0]):
        label = state.labels[i]
        weight = state.weights[i] if len(state.weights) else 1.0
        add_row(sums, label, rows, i, weight)
        mass[label] += weight
        members[label] += 1
    return MovedCentres(sums, mass, members, 0.0, 0)
