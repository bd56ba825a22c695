"""Compiled passes over rows for mixtures of trees: log-densities, expected counts, posteriors and draws.

A mixture has K components over D discrete parts and R numbers. In every component the discrete parts form a forest
(`parents`, -1 for a root; `order` lists parents before children), and the numbers form blocks: normal vectors whose
means and covariances depend on the code of one discrete part, the `anchor` (-1: none). A cell is a block with a code of
its anchor. A code of -1 and a NaN are missing.

All kernels take the same tuples of flat arrays, which `tree_mixtures.mixture.TreeMixture.compiled` makes:

- `rows`: codes (rows x D), numbers (rows x R), and `soft` (rows x 1 or K x levels), the log-likelihoods of the codes of
  missing parts, or without rows if there are none;
- `tree`: parents, order and offsets of the tables (each K x D), sizes (D), first levels of the parts (D + 1), and the
  logarithms of all tables, each (parent codes x codes), and the tables themselves;
- `normal`: first block of every component (K + 1), blocks (B x 6: anchor, first member, size, first cell, place of the
  first mean, place of the first covariance), members, means, covariances, and their lower triangular whitening
  matrices.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from softcount.kernels import Array
from softcount.kernels.jit import jit, register_jitable

LOG_2PI, SQRT_2, SQRT_2PI = math.log(2 * math.pi), math.sqrt(2.0), math.sqrt(2 * math.pi)
ANCHOR, FIRST, SIZE, CELL, MEAN, COVARIANCE = range(6)
"""Columns of the table of blocks."""
LEAST_SHARE = 1e-10
"""Components with a smaller posterior probability of a row are not answered from."""
LEAST_COUNTED = 1e-7
"""Components with a smaller posterior probability of a row do not count the row."""
LEAST_INSIDE = 1e-3
"""Least share of a normal within the bounds of its column; below it the normal is not truncated."""


@register_jitable
def make_room(tree: Any, normal: Any) -> Any:
    """Return working memory: messages, beliefs, marks of parts with evidence, and matrices for the widest block."""
    widest, levels = 1, tree[4][-1]
    for b in range(len(normal[1])):
        widest = max(widest, normal[1][b, SIZE])
    marks = np.zeros(len(tree[3]), dtype=np.bool_)
    square, vectors = np.zeros((widest, widest)), np.zeros((3, widest))
    return np.zeros(levels + 1), np.zeros(levels + 1), marks, square, vectors, np.zeros(widest, dtype=np.int64)


# -- messages between discrete parts


@register_jitable
def log_sum(logs: Array, base: int, messages: Array, start: int, size: int) -> float:
    """Return the logarithm of the sum of exp(logs + messages) over the codes of a part."""
    most = -np.inf
    for c in range(size):
        most = max(most, logs[base + c] + messages[start + c])
    if most == -np.inf:
        return most
    total = 0.0
    for c in range(size):
        total += np.exp(logs[base + c] + messages[start + c] - most)
    return float(most + np.log(total))


@register_jitable
def reset_messages(row: int, k: int, rows: Any, tree: Any, room: Any) -> None:
    """Set the messages of missing parts to their soft evidence."""
    codes, soft, (sizes, starts), (up, marks) = rows[0], rows[2], tree[3:5], (room[0], room[2])
    for d in range(len(sizes)):
        marks[d] = False
        if codes[row, d] >= 0:
            continue
        for level in range(starts[d], starts[d + 1]):
            up[level] = 0.0
        if len(soft) > 0:
            own = k if soft.shape[1] > 1 else 0
            for level in range(starts[d], starts[d + 1]):
                up[level] = soft[row, own, level]
                marks[d] = marks[d] or up[level] != 0.0


@register_jitable
def send_up(row: int, k: int, rows: Any, tree: Any, room: Any) -> float:
    """Return the log-probability of a row's discrete parts, and pass all messages to the parents."""
    codes, (parents, order, offsets, sizes, starts, logs, _), (up, marks) = rows[0], tree, (room[0], room[2])
    total = 0.0
    for at in range(len(sizes) - 1, -1, -1):
        d = order[k, at]
        p, code, size = parents[k, d], codes[row, d], sizes[d]
        if code < 0 and not marks[d]:
            continue
        above = codes[row, p] if p >= 0 else 0
        if above >= 0:
            base = offsets[k, d] + above * size
            total += logs[base + code] if code >= 0 else log_sum(logs, base, up, starts[d], size)
            continue
        marks[p] = True
        for a in range(sizes[p]):
            base = offsets[k, d] + a * size
            up[starts[p] + a] += logs[base + code] if code >= 0 else log_sum(logs, base, up, starts[d], size)
    return total


@register_jitable
def send_down(row: int, k: int, rows: Any, tree: Any, room: Any) -> None:
    """Write the posterior of the codes of every part to the beliefs, after `send_up`."""
    codes, (parents, order, offsets, sizes, starts, logs, tables) = rows[0], tree
    up, belief, marks = room[0:3]
    for at in range(len(sizes)):
        d = order[k, at]
        p, code, size, start = parents[k, d], codes[row, d], sizes[d], starts[d]
        for c in range(size):
            belief[start + c] = 1.0 if c == code else 0.0
        if code >= 0:
            continue
        for a in range(sizes[p] if p >= 0 else 1):
            share = belief[starts[p] + a] if p >= 0 else 1.0
            if share > 0.0:
                add_posterior(share, offsets[k, d] + a * size, size, start, logs, tables, up, marks[d], belief, start)


@register_jitable
def add_posterior(
    share: float, base: int, size: int, start: int, logs: Array, tables: Array, up: Array, marked: bool, out: Array,
    at: int,
) -> None:  # fmt: skip
    """Add the posterior of a missing part given its parent's code, times a share, to `out` from `at` on."""
    if not marked:  # no evidence: three quarters of the time of an iteration on titanic went into these exponentials
        for c in range(size):
            out[at + c] += share * tables[base + c]
        return
    whole = log_sum(logs, base, up, start, size)
    for c in range(size):
        out[at + c] += share * np.exp(logs[base + c] + up[start + c] - whole)


# -- blocks of numbers


@register_jitable
def condition_block(row: int, b: int, c: int, rows: Any, normal: Any, room: Any) -> tuple[int, float]:
    """Condition a block in one cell on its observed members; return how many these are, and their log-density.

    `room` gets the members with the observed ones first, the Cholesky factor of the covariance in this order, whose
    lower right corner is the factor of the conditional covariance, and the members' conditional means.
    """
    numbers, (_, blocks, members, means, covs, _), (factor, vectors, place) = rows[1], normal, room[3:6]
    first, size = blocks[b, FIRST], blocks[b, SIZE]
    mean, cov = blocks[b, MEAN] + c * size, blocks[b, COVARIANCE] + c * size * size
    seen = 0
    for missing in range(2):
        count = seen
        for j in range(size):
            if np.isnan(numbers[row, members[first + j]]) == (missing == 1):
                place[count] = j
                count += 1
        if missing == 0:
            seen = count
    log = -0.5 * seen * LOG_2PI
    for i in range(size):
        for j in range(i + 1):
            total = covs[cov + place[i] * size + place[j]]
            for x in range(j):
                total -= factor[i, x] * factor[j, x]
            factor[i, j] = np.sqrt(max(total, 1e-300)) if i == j else total / factor[j, j]
        shift = 0.0
        for x in range(min(i, seen)):
            shift += factor[i, x] * vectors[0, x]
        middle = means[mean + place[i]] + shift
        vectors[1, place[i]] = middle
        if i < seen:
            value = numbers[row, members[first + place[i]]]
            vectors[0, i] = (value - middle) / factor[i, i]
            vectors[1, place[i]] = value
            log -= 0.5 * vectors[0, i] ** 2 + np.log(factor[i, i])
    return seen, log


@register_jitable
def score_whole(row: int, b: int, c: int, rows: Any, normal: Any) -> float:
    """Return the log-density of a block without missing members in one cell."""
    numbers, (_, blocks, members, means, _, whites) = rows[1], normal
    first, size = blocks[b, FIRST], blocks[b, SIZE]
    mean, at = blocks[b, MEAN] + c * size, blocks[b, COVARIANCE] + c * size * size
    log = -0.5 * size * LOG_2PI
    for i in range(size):
        value = 0.0
        for j in range(i + 1):
            value += whites[at + i * size + j] * (numbers[row, members[first + j]] - means[mean + j])
        log += np.log(whites[at + i * size + i]) - 0.5 * value * value
    return float(log)


@register_jitable
def count_seen(row: int, b: int, rows: Any, normal: Any) -> int:
    seen = 0
    for j in range(normal[1][b, FIRST], normal[1][b, FIRST] + normal[1][b, SIZE]):
        if not np.isnan(rows[1][row, normal[2][j]]):
            seen += 1
    return seen


@register_jitable
def score_row(row: int, k: int, rows: Any, tree: Any, normal: Any, room: Any) -> float:
    """Return the log-density of a row in a component; `room` gets the messages of its missing parts."""
    reset_messages(row, k, rows, tree, room)
    codes, sizes, starts, blocks, up, marks = rows[0], tree[3], tree[4], normal[1], room[0], room[2]
    total = 0.0
    for b in range(normal[0][k], normal[0][k + 1]):
        seen, anchor = count_seen(row, b, rows, normal), blocks[b, ANCHOR]
        if seen == 0:
            continue
        hidden = anchor >= 0 and codes[row, anchor] < 0
        low = 0 if anchor < 0 or hidden else codes[row, anchor]
        for c in range(low, sizes[anchor] if hidden else low + 1):
            if seen == blocks[b, SIZE]:
                log = score_whole(row, b, c, rows, normal)
            else:
                log = condition_block(row, b, c, rows, normal, room)[1]
            if hidden:
                up[starts[anchor] + c] += log
                marks[anchor] = True
            else:
                total += log
    return total + send_up(row, k, rows, tree, room)


@register_jitable
def normalise(logs: Array) -> float:
    """Turn log-densities into posterior probabilities in place; return their log-sum."""
    most = -np.inf
    for k in range(len(logs)):
        most = max(most, logs[k])
    if most == -np.inf:
        logs[:] = 0.0
        return most
    total = 0.0
    for k in range(len(logs)):
        logs[k] = np.exp(logs[k] - most)
        total += logs[k]
    for k in range(len(logs)):
        logs[k] /= total
    return float(most + np.log(total))


# -- passes


@jit()
def score(rows: Any, tree: Any, normal: Any, first: Array, out: Array) -> None:
    """Write the (rows x K) log-densities plus `first` (1 or rows x K) to `out`."""
    room = make_room(tree, normal)
    for row in range(len(out)):
        for k in range(out.shape[1]):
            start = first[row if len(first) > 1 else 0, k]
            out[row, k] = start if start == -np.inf else start + score_row(row, k, rows, tree, normal, room)


@jit()
def expect(rows: Any, tree: Any, normal: Any, first: Array, weights: Array, counts: Any, members: Array) -> float:
    """Return the weighted log-likelihood, and add expected counts of the rows to `counts`.

    `counts` are the weight of every component (K), of table cells, of the blocks' cells, and the sums and products of
    the numbers there. `members` (rows x K) gets the posterior probabilities.
    """
    room = make_room(tree, normal)
    n_components, total = members.shape[1], 0.0
    for row in range(len(members)):
        for k in range(n_components):
            members[row, k] = first[0, k] + score_row(row, k, rows, tree, normal, room)
        total += weights[row] * normalise(members[row])
        complete = True
        for d in range(rows[0].shape[1]):
            complete = complete and rows[0][row, d] >= 0
        for k in range(n_components):
            share = weights[row] * members[row, k]
            if members[row, k] <= LEAST_COUNTED:
                continue
            counts[0][k] += share
            if not complete:
                score_row(row, k, rows, tree, normal, room)
                send_down(row, k, rows, tree, room)
            count_tables(row, k, share, rows, tree, room, counts[1])
            count_blocks(row, k, share, rows, tree, normal, room, counts)
    return total


@register_jitable
def count_tables(row: int, k: int, share: float, rows: Any, tree: Any, room: Any, counts: Array) -> None:
    """Add the expected counts of a row to the tables of a component."""
    codes, (parents, _, offsets, sizes, starts, logs, tables) = rows[0], tree
    up, belief, marks = room[0:3]
    for d in range(len(sizes)):
        p, code, size = parents[k, d], codes[row, d], sizes[d]
        above = codes[row, p] if p >= 0 else 0
        if code >= 0 and above >= 0:
            counts[offsets[k, d] + above * size + code] += share
            continue
        for a in range(sizes[p] if above < 0 else 1):
            part = share * belief[starts[p] + a] if above < 0 else share
            base = offsets[k, d] + (a if above < 0 else above) * size
            if part <= 0.0:
                continue
            if code >= 0:
                counts[base + code] += part
                continue
            add_posterior(part, base, size, starts[d], logs, tables, up, marks[d], counts, base)


@register_jitable
def count_blocks(row: int, k: int, share: float, rows: Any, tree: Any, normal: Any, room: Any, counts: Any) -> None:
    """Add the expected mass, sums and products of the numbers; a block without an observed member adds nothing."""
    codes, numbers, blocks, members, belief = rows[0], rows[1], normal[1], normal[2], room[1]
    factor, vectors, place = room[3:6]
    mass, sums, products = counts[2:5]
    for b in range(normal[0][k], normal[0][k + 1]):
        seen, anchor, first, size = count_seen(row, b, rows, normal), blocks[b, 0], blocks[b, FIRST], blocks[b, SIZE]
        if seen == 0:
            continue
        hidden = anchor >= 0 and codes[row, anchor] < 0
        low = 0 if anchor < 0 or hidden else codes[row, anchor]
        for c in range(low, tree[3][anchor] if hidden else low + 1):
            part = share * belief[tree[4][anchor] + c] if hidden else share
            if part <= LEAST_SHARE:
                continue
            if seen == size:
                for j in range(size):
                    vectors[1, j] = numbers[row, members[first + j]]
            else:
                condition_block(row, b, c, rows, normal, room)
            mean, at = blocks[b, MEAN] + c * size, blocks[b, COVARIANCE] + c * size * size
            mass[blocks[b, CELL] + c] += part
            for i in range(size):
                sums[mean + i] += part * vectors[1, i]
                for j in range(size):
                    products[at + i * size + j] += part * vectors[1, i] * vectors[1, j]
            for i in range(seen, size):
                for j in range(seen, size):
                    total = 0.0
                    for x in range(seen, min(i, j) + 1):
                        total += factor[i, x] * factor[j, x]
                    products[at + place[i] * size + place[j]] += part * total


@jit()
def tally(rows: Any, tree: Any, normal: Any, weights: Array, counts: Any, members: Array) -> None:
    """Add the counts of rows with known memberships to `counts`, as in `expect`; missing cells are left out."""
    room = make_room(tree, normal)
    codes, (parents, offsets, sizes) = rows[0], (tree[0], tree[2], tree[3])
    for row in range(len(members)):
        for k in range(members.shape[1]):
            share = weights[row] * members[row, k]
            if share <= LEAST_SHARE:
                continue
            counts[0][k] += share
            for d in range(len(sizes)):
                p = parents[k, d]
                above = codes[row, p] if p >= 0 else 0
                if codes[row, d] >= 0 and above >= 0:
                    counts[1][offsets[k, d] + above * sizes[d] + codes[row, d]] += share
            for b in range(normal[0][k], normal[0][k + 1]):
                anchor = normal[1][b, ANCHOR]
                if anchor < 0 or codes[row, anchor] >= 0:
                    whole = count_seen(row, b, rows, normal) == normal[1][b, SIZE]
                    if whole:
                        count_block(row, b, share, rows, normal, room, counts)


@register_jitable
def count_block(row: int, b: int, share: float, rows: Any, normal: Any, room: Any, counts: Any) -> None:
    """Add a block without missing members, whose anchor is observed."""
    anchor, first, size = normal[1][b, ANCHOR], normal[1][b, FIRST], normal[1][b, SIZE]
    c = rows[0][row, anchor] if anchor >= 0 else 0
    mean, at = normal[1][b, MEAN] + c * size, normal[1][b, COVARIANCE] + c * size * size
    counts[2][normal[1][b, CELL] + c] += share
    for i in range(size):
        value = share * rows[1][row, normal[2][first + i]]
        counts[3][mean + i] += value
        for j in range(size):
            counts[4][at + i * size + j] += value * rows[1][row, normal[2][first + j]]


@jit()
def count_pairs(codes: Array, numbers: Array, starts: Array, members: Array, weights: Array, k: int, pairs: Array,
                sums: Array) -> None:  # fmt: skip
    """Add the weighted counts of all pairs of codes of a component's rows to `pairs` (levels x levels).

    `sums` (levels x R x 3) gets the mass, sum and sum of squares of every number by level. Missing cells are left out.
    """
    n_parts = codes.shape[1]
    for row in range(len(codes)):
        share = members[row, k] * weights[row]
        if share <= 1e-6:
            continue
        for d in range(n_parts):
            if codes[row, d] < 0:
                continue
            level = starts[d] + codes[row, d]
            for e in range(d + 1):
                if codes[row, e] >= 0:
                    pairs[level, starts[e] + codes[row, e]] += share
            for r in range(numbers.shape[1]):
                value = numbers[row, r]
                if not np.isnan(value):
                    sums[level, r, 0] += share
                    sums[level, r, 1] += share * value
                    sums[level, r, 2] += share * value * value


# -- answers


@register_jitable
def truncated_moments(
    mean: float, sd: float, x: Array, z: Array, low: float, high: float
) -> tuple[float, float, float]:
    """Return the mass, mean and mean square of a number whose transform is normal, within two bounds.

    The number is a piecewise linear function of the transform through the knots (z, x), extended at both ends.
    """
    mass, first, second = 0.0, 0.0, 0.0
    knots = len(x)
    for j in range(knots + 1):
        left = low if j == 0 else max(low, z[j - 1])
        right = high if j == knots else min(high, z[j])
        if right <= left:
            continue
        a = min(max(j, 1), knots - 1)
        slope = (x[a] - x[a - 1]) / (z[a] - z[a - 1])
        base = x[a - 1] - slope * z[a - 1]
        u, v = (left - mean) / sd, (right - mean) / sd
        if u > 0:  # the upper tail, without cancellation
            share = 0.5 * (math.erfc(u / SQRT_2) - math.erfc(v / SQRT_2))
        else:
            share = 0.5 * (math.erfc(-v / SQRT_2) - math.erfc(-u / SQRT_2))
        at_left = math.exp(-0.5 * u * u) / SQRT_2PI if abs(u) < 40 else 0.0
        at_right = math.exp(-0.5 * v * v) / SQRT_2PI if abs(v) < 40 else 0.0
        one = mean * share - sd * (at_right - at_left)
        two = (mean * mean + sd * sd) * share
        if at_right > 0:
            two -= sd * (right + mean) * at_right
        if at_left > 0:
            two += sd * (left + mean) * at_left
        mass += share
        first += base * share + slope * one
        second += base * base * share + 2 * base * slope * one + slope * slope * two
    return mass, first, second


@jit()
def number_terms(rows: Any, tree: Any, normal: Any, members: Array, r: int, out: Array) -> None:
    """Write the terms of a missing number to `out` (rows x K x codes x 3): weight, mean and variance of a normal.

    `members` (rows x K) are the weights of the components, and the third axis holds the codes of the anchor.
    """
    room = make_room(tree, normal)
    blocks, codes = normal[1], rows[0]
    for row in range(len(members)):
        for k in range(members.shape[1]):
            if members[row, k] <= 0.0:
                continue
            b = find_block(k, r, normal)
            anchor = blocks[b, ANCHOR]
            hidden = anchor >= 0 and codes[row, anchor] < 0
            if hidden:
                score_row(row, k, rows, tree, normal, room)
                send_down(row, k, rows, tree, room)
            low = 0 if anchor < 0 or hidden else codes[row, anchor]
            for c in range(low, tree[3][anchor] if hidden else low + 1):
                share = room[1][tree[4][anchor] + c] if hidden else 1.0
                out[row, k, c, 0] = members[row, k] * share
                out[row, k, c, 1], out[row, k, c, 2] = condition_number(row, b, c, r, rows, normal, room)


@register_jitable
def find_block(k: int, r: int, normal: Any) -> int:
    """Return the block of a number in a component."""
    for b in range(normal[0][k], normal[0][k + 1]):
        for j in range(normal[1][b, FIRST], normal[1][b, FIRST] + normal[1][b, SIZE]):
            if normal[2][j] == r:
                return b
    return -1


@register_jitable
def condition_number(row: int, b: int, c: int, r: int, rows: Any, normal: Any, room: Any) -> tuple[float, float]:
    """Return the mean and variance of a missing number given the observed members of its block."""
    seen, _ = condition_block(row, b, c, rows, normal, room)
    first, size, (factor, vectors, place) = normal[1][b, FIRST], normal[1][b, SIZE], room[3:6]
    for i in range(seen, size):
        if normal[2][first + place[i]] == r:
            mean, variance = vectors[1, place[i]], 0.0
            for x in range(seen, i + 1):
                variance += factor[i, x] ** 2
            return mean, variance
    return np.nan, np.nan


@jit()
def fill(rows: Any, tree: Any, normal: Any, first: Array, units: Any, beliefs: Array, moments: Array) -> None:
    """Write posteriors of all codes to `beliefs` (rows x levels), and of missing numbers to `moments` (rows x R x 2).

    `units` are the first knots of every number (R + 1), the knots x and z, and the bounds of the transform (R x 2).
    Moments are the mean and the mean square.
    """
    room = make_room(tree, normal)
    codes, _numbers = rows[0], rows[1]
    sizes, starts, blocks = tree[3], tree[4], normal[1]
    members = np.empty(first.shape[1])
    for row in range(len(beliefs)):
        for k in range(len(members)):
            members[k] = first[0, k] + score_row(row, k, rows, tree, normal, room)
        normalise(members)
        for k in range(len(members)):
            if members[k] <= LEAST_SHARE:
                continue
            score_row(row, k, rows, tree, normal, room)
            send_down(row, k, rows, tree, room)
            for level in range(starts[-1]):
                beliefs[row, level] += members[k] * room[1][level]
            for b in range(normal[0][k], normal[0][k + 1]):
                anchor = blocks[b, ANCHOR]
                hidden = anchor >= 0 and codes[row, anchor] < 0
                low = 0 if anchor < 0 or hidden else codes[row, anchor]
                if count_seen(row, b, rows, normal) == blocks[b, SIZE]:
                    continue
                for c in range(low, sizes[anchor] if hidden else low + 1):
                    share = members[k] * (room[1][starts[anchor] + c] if hidden else 1.0)
                    if share > LEAST_SHARE:
                        fill_block(row, b, c, share, rows, normal, units, room, moments)


@register_jitable
def fill_block(row: int, b: int, c: int, share: float, rows: Any, normal: Any, units: Any, room: Any,
               moments: Array) -> None:  # fmt: skip
    """Add the moments of the missing members of a block in one cell."""
    seen, _ = condition_block(row, b, c, rows, normal, room)
    first, size, (factor, vectors, place) = normal[1][b, FIRST], normal[1][b, SIZE], room[3:6]
    for i in range(seen, size):
        r = normal[2][first + place[i]]
        variance = 0.0
        for x in range(seen, i + 1):
            variance += factor[i, x] ** 2
        x, z = units[1][units[0][r] : units[0][r + 1]], units[2][units[0][r] : units[0][r + 1]]
        mean, sd = vectors[1, place[i]], math.sqrt(variance)
        mass, one, two = truncated_moments(mean, sd, x, z, units[3][r, 0], units[3][r, 1])
        if mass < LEAST_INSIDE:
            mass, one, two = truncated_moments(mean, sd, x, z, -np.inf, np.inf)
        moments[row, r, 0] += share * one / mass
        moments[row, r, 1] += share * two / mass


@jit()
def draw(rows: Any, tree: Any, normal: Any, first: Array, uniforms: Array, normals: Array, codes: Array,
         numbers: Array, chosen: Array) -> None:  # fmt: skip
    """Draw the missing parts of every row into `codes` and `numbers`, and its component into `chosen`.

    `uniforms` (rows x 1 + D) and `normals` (rows x R) are the random numbers that decide.
    """
    room = make_room(tree, normal)
    parents, order, offsets, sizes, starts, logs, _ = tree
    up, belief = room[0], room[1]
    members = np.empty(first.shape[1])
    for row in range(len(chosen)):
        for k in range(len(members)):
            start = first[row if len(first) > 1 else 0, k]
            members[k] = start if start == -np.inf else start + score_row(row, k, rows, tree, normal, room)
        normalise(members)
        k = pick(members, 0, len(members), uniforms[row, 0])
        chosen[row] = k
        score_row(row, k, rows, tree, normal, room)
        for d in order[k]:
            codes[row, d] = rows[0][row, d]
            if codes[row, d] >= 0:
                continue
            p = parents[k, d]
            base = offsets[k, d] + (codes[row, p] if p >= 0 else 0) * sizes[d]
            whole = log_sum(logs, base, up, starts[d], sizes[d])
            for c in range(sizes[d]):
                belief[c] = np.exp(logs[base + c] + up[starts[d] + c] - whole)
            codes[row, d] = pick(belief, 0, sizes[d], uniforms[row, 1 + d])
        for b in range(normal[0][k], normal[0][k + 1]):
            anchor = normal[1][b, ANCHOR]
            draw_block(row, b, codes[row, anchor] if anchor >= 0 else 0, rows, normal, room, normals, numbers)


@register_jitable
def pick(shares: Array, start: int, size: int, uniform: float) -> int:
    """Return the index at which the sum of shares exceeds a uniform random number."""
    total, last = 0.0, 0
    for c in range(size):
        if shares[start + c] > 0.0:
            total += shares[start + c]
            last = c
            if uniform < total:
                break
    return last


@register_jitable
def draw_block(row: int, b: int, c: int, rows: Any, normal: Any, room: Any, normals: Array, numbers: Array) -> None:
    seen, _ = condition_block(row, b, c, rows, normal, room)
    first, size, (factor, vectors, place) = normal[1][b, FIRST], normal[1][b, SIZE], room[3:6]
    for i in range(size):
        r = normal[2][first + place[i]]
        value = vectors[1, place[i]]
        for x in range(seen, i + 1):
            value += factor[i, x] * normals[row, normal[2][first + place[x]]]
        numbers[row, r] = value


@jit()
def sum_moments(terms: Array, x: Array, z: Array, low: float, high: float) -> tuple[float, float]:
    """Return the mean and the mean square of a mixture of transformed normals within bounds."""
    first, second = 0.0, 0.0
    for t in range(len(terms)):
        mean, sd = terms[t, 1], math.sqrt(terms[t, 2])
        mass, one, two = truncated_moments(mean, sd, x, z, low, high)
        if mass < LEAST_INSIDE:
            mass, one, two = truncated_moments(mean, sd, x, z, -np.inf, np.inf)
        first += terms[t, 0] * one / mass
        second += terms[t, 0] * two / mass
    return first, second


@jit()
def code_shares(rows: Any, tree: Any, normal: Any, members: Array, out: Array) -> None:
    """Add the posteriors of the codes of all parts to `out` (levels), with the weights of rows and components."""
    room = make_room(tree, normal)
    for row in range(len(members)):
        for k in range(members.shape[1]):
            if members[row, k] > 0.0:
                score_row(row, k, rows, tree, normal, room)
                send_down(row, k, rows, tree, room)
                for level in range(len(out)):
                    out[level] += members[row, k] * room[1][level]


@jit()
def condition_rows(rows: Any, tree: Any, normal: Any, chosen: Array, r: int, out: Array) -> None:
    """Write mean and variance of a missing number given the rest of each row and its component to `out` (rows x 2)."""
    room = make_room(tree, normal)
    for row in range(len(chosen)):
        b = find_block(chosen[row], r, normal)
        anchor = normal[1][b, ANCHOR]
        c = rows[0][row, anchor] if anchor >= 0 else 0
        out[row, 0], out[row, 1] = condition_number(row, b, c, r, rows, normal, room)


@jit()
def edge_gains(pairs: Array, starts: Array, penalty: float, out: Array) -> None:
    """Write the mutual information of all pairs of parts, times the rows, less `penalty` per free cell, to `out`.

    `pairs` (levels x levels) are counts below the diagonal of parts; rows and columns of a table count as free if they
    hold more than half a row.
    """
    for d in range(len(starts) - 1):
        for e in range(d):
            down, across = np.zeros(starts[d + 1] - starts[d]), np.zeros(starts[e + 1] - starts[e])
            for i in range(len(down)):
                for j in range(len(across)):
                    down[i] += pairs[starts[d] + i, starts[e] + j]
                    across[j] += pairs[starts[d] + i, starts[e] + j]
            total = down.sum()
            gain = 0.0
            if total <= 1.0:
                continue
            for i in range(len(down)):
                for j in range(len(across)):
                    count = pairs[starts[d] + i, starts[e] + j]
                    if count > 0.0:
                        gain += count * np.log(count * total / (down[i] * across[j]))
            cells = max((down > 0.5).sum() - 1, 1) * max((across > 0.5).sum() - 1, 1)
            out[d, e] = gain - penalty * cells
