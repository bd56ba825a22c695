"""Learning a mixture of trees: EM with shrunken estimates, growth by splitting, and a race on held-out rows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from softcount.core.special import log_sum_exp
from softcount.tree_mixtures.mixture import Block, Layout, Parts, Shape, TreeMixture, join_mixtures
from softcount.tree_mixtures.structure import Form, count_component, find_shape

TABLE_ROWS = 1.0
"""Prior rows of a table row, divided as the component's column is. Of .3, 1, 3 and 10 on car, credit approval, heart
and titanic, 1 was within .05 of the best."""
COLUMN_ROWS = 1.0
"""Prior rows of a component's column, divided as the table's column is."""
MEAN_ROWS = 0.5
"""Prior rows of a mean, at the component's mean and there at the table's."""
CELL_ROWS = 4.0
"""Prior rows of a variance in one cell, with the variance of its component."""
VARIANCE_ROWS = 2.0
"""Prior rows of the variances of a component."""
FLOOR = 1e-6
"""Least variance of a number, as a share of its variance in the table."""


class Marginals(Struct, frozen=True, eq=False):
    """The columns of the whole table: shares of all levels, means and variances of the numbers."""

    shares: np.ndarray
    means: np.ndarray
    variances: np.ndarray

    @classmethod
    def of(cls, parts: Parts, sizes: Sequence[int]) -> Marginals:
        shares = [np.zeros(0)]
        for d, size in enumerate(sizes):
            seen = parts.codes[:, d] >= 0
            counts = np.bincount(parts.codes[seen, d], parts.weights[seen], minlength=size) + 0.5
            shares.append(counts / counts.sum())
        there = ~np.isnan(parts.numbers)
        values, weights = np.where(there, parts.numbers, 0.0), there * parts.weights[:, None]
        mass = np.maximum(weights.sum(axis=0), 1e-9)
        means = (weights * values).sum(axis=0) / mass
        variances = (weights * (values - means) ** 2).sum(axis=0) / mass
        return cls(np.concatenate(shares), means, np.maximum(variances, 1e-9))


# -- estimates from counts


def estimate(layout: Layout, counts: Sequence[np.ndarray], whole: Marginals, form: Form) -> TreeMixture:
    """Return the parameters from expected counts, shrunk towards the component's and the table's marginals."""
    weights = counts[0] + 1.0
    tables = estimate_tables(layout, counts[1], whole)
    means, covariances = estimate_blocks(layout, counts[2:], whole, form)
    return TreeMixture(layout, np.log(weights / weights.sum()), tables, means, covariances)


def estimate_tables(layout: Layout, counts: np.ndarray, whole: Marginals) -> np.ndarray:
    rows, levels, inner = layout.entries
    if not len(rows):
        return np.zeros(0)
    n_levels = int(layout.starts[-1])
    each = np.bincount(levels, counts, minlength=n_levels * len(layout.shapes))
    columns = each.reshape(-1, n_levels) + COLUMN_ROWS * whole.shares
    totals = np.add.reduceat(columns, layout.starts[:-1], axis=1)
    own = (columns / np.repeat(totals, layout.sizes, axis=1)).ravel()[levels]
    mass = np.bincount(rows, counts)[rows]
    return np.asarray(np.where(inner, (counts + TABLE_ROWS * own) / (mass + TABLE_ROWS), own))


def estimate_blocks(
    layout: Layout, counts: Sequence[np.ndarray], whole: Marginals, form: Form
) -> tuple[np.ndarray, np.ndarray]:
    """Return means and covariances: those of a cell are shrunk to the component's, and these to the pooled ones."""
    mass, sums, products = counts
    means, covariances = np.empty_like(sums), np.empty_like(products)
    pooled = pool_covariance(layout, counts, form) if form.block else None
    for b in range(len(layout.blocks)):
        cells, at, square, n, size = layout.cells(b)
        own = layout.members_of(b)
        rows, first = mass[cells], sums[at].reshape(n, size)
        second = products[square].reshape(n, size, size)
        total = rows.sum()
        middle = (first.sum(axis=0) + MEAN_ROWS * whole.means[own]) / (total + MEAN_ROWS)
        mean = (first + MEAN_ROWS * middle) / (rows + MEAN_ROWS)[:, None]
        cross = first[:, :, None] * mean[:, None, :]
        scatter = second - cross - cross.transpose(0, 2, 1) + rows[:, None, None] * mean[:, :, None] * mean[:, None, :]
        variances = whole.variances[own]
        if pooled is None:
            prior, strength = np.diag(variances) * min(1.0, 4.0 / len(layout.shapes) ** 2), VARIANCE_ROWS
        else:
            prior, strength = pooled + form.ridge * np.diag(variances), VARIANCE_ROWS + size + 1
        of_all = (scatter.sum(axis=0) + strength * prior) / (total + strength)
        some = CELL_ROWS * size
        each = (scatter + some * of_all) / (rows + some)[:, None, None] + FLOOR * np.diag(variances)
        means[at], covariances[square] = mean.ravel(), (0.5 * (each + each.transpose(0, 2, 1))).ravel()
    return means, covariances


def pool_covariance(layout: Layout, counts: Sequence[np.ndarray], form: Form) -> np.ndarray:
    """Return the covariance within the cells of all components together."""
    mass, sums, products = counts
    total = np.zeros((layout.n_numbers, layout.n_numbers))
    for b in range(len(layout.blocks)):
        cells, at, square, n, size = layout.cells(b)
        first = sums[at].reshape(n, size)
        means = first / np.maximum(mass[cells], 1e-9)[:, None]
        total += products[square].reshape(n, size, size).sum(axis=0) - first.T @ means
    return total / max(float(mass.sum()), 1e-9)


# -- EM


class Training(Struct, frozen=True, eq=False):
    """Rows to learn from, the number of codes of every part, marginals, and the numbers with missing ones filled."""

    parts: Parts
    sizes: tuple[int, ...]
    whole: Marginals
    filled: Parts

    @classmethod
    def of(cls, parts: Parts, sizes: Sequence[int]) -> Training:
        whole = Marginals.of(parts, sizes)
        numbers = np.where(np.isnan(parts.numbers), whole.means, parts.numbers)
        return cls(parts, tuple(sizes), whole, replace(parts, numbers=numbers))


def fit_members(training: Training, members: np.ndarray, form: Form) -> TreeMixture:
    """Return structures and parameters that fit given memberships; missing cells are left out or at their mean."""
    starts = np.concatenate([[0], np.cumsum(training.sizes)]).astype(np.int64)
    shapes = tuple(
        find_shape(count_component(training.parts, starts, members, k, form), form) for k in range(members.shape[1])
    )
    return fit_shapes(training, members, shapes, form)


def fit_shapes(training: Training, members: np.ndarray, shapes: tuple[Shape, ...], form: Form) -> TreeMixture:
    from softcount.kernels.trees import tally

    layout = Layout(training.sizes, training.parts.numbers.shape[1], shapes)
    counts = layout.empty_counts()
    empty = TreeMixture(layout, np.zeros(len(shapes)), *(np.ones(w) for w in (layout.widths[0], *layout.widths[2:])))
    normal = (layout.block_starts, layout.blocks, layout.members, empty.means, empty.covariances, empty.covariances)
    rows = (training.filled if form.block else training.parts).rows
    tally(rows, (*layout.tree, empty.tables, empty.tables), normal, training.parts.weights, counts, members)
    return estimate(layout, counts, training.whole, form)


def expect_counts(mixture: TreeMixture, parts: Parts, members: np.ndarray) -> tuple[float, tuple[np.ndarray, ...]]:
    """Return the log-likelihood and the expected counts of rows; `members` gets their memberships."""
    from softcount.kernels.trees import expect

    counts = mixture.layout.empty_counts()
    log = expect(parts.rows, *mixture.compiled, mixture.log_weights[None], parts.weights, counts, members)
    return float(log), counts


def run_em(
    training: Training, mixture: TreeMixture, form: Form, most: int, tol: float, relearn: Sequence[int] = ()
) -> tuple[TreeMixture, np.ndarray, list[float]]:
    """Run EM; after the iterations in `relearn` the structure is found again. Also return memberships and trace."""
    parts, trace = training.parts, list[float]()
    members = np.empty((parts.n_rows, mixture.n_components))
    size = float(parts.weights.sum())
    for iteration in range(most):
        log, counts = expect_counts(mixture, parts, members)
        trace.append(log / size)
        if iteration in relearn:
            mixture = fit_members(training, members, form)
            continue
        settled = iteration > max(relearn, default=0) + 1
        if settled and trace[-1] - trace[-2] < tol:
            break
        mixture = estimate(mixture.layout, counts, training.whole, form)
    return mixture, members, trace


def split_members(training: Training, members: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Split every component along the leading principal axis of its rows: (rows x 2K) memberships."""
    parts, whole = training.parts, training.whole
    columns = [np.zeros((parts.n_rows, 0))]
    for d, size in enumerate(training.sizes):
        hits = (parts.codes[:, d, None] == np.arange(size)).astype(float)
        shares = np.maximum(hits.mean(axis=0), 1e-3)
        columns.append((hits - shares) / np.sqrt(shares * max(size - 1, 1)))
    numbers = (training.filled.numbers - whole.means) / np.sqrt(whole.variances)
    x = np.hstack([*columns, np.clip(numbers, -4, 4)])
    found = np.empty((parts.n_rows, 2 * members.shape[1]))
    for k in range(members.shape[1]):
        own = members[:, k] * parts.weights
        own = own / max(own.sum(), 1e-300)
        middle, axis = own @ x, rng.standard_normal(x.shape[1])
        for _ in range(3):
            along = x @ axis - middle @ axis
            axis = (along * own) @ x - (along @ own) * middle
            axis /= np.linalg.norm(axis) + 1e-300
        along = x @ axis - middle @ axis
        share = 1 / (1 + np.exp(-np.clip(4 * along / (np.sqrt(own @ along**2) + 1e-12), -30, 30)))
        found[:, 2 * k], found[:, 2 * k + 1] = members[:, k] * share, members[:, k] * (1 - share)
    return found


# -- the race

LEAST_ROWS = 8
"""Least rows per component."""
MOST_COMPONENTS = 64
LEAST_GAIN = 0.01
"""Nats per held-out row that twice as many components must gain."""
LARGEST_LOSS = 0.05
"""Nats per held-out row that twice as many components may lose for the search to go on."""
MOST_SEARCHED = 8_000
"""Rows of a large table on which structures and numbers of components are tried. Of fewer rows several candidates are
combined; of more the best one alone is fitted."""
HELD_OUT = 0.25
LEAST_WEIGHT = 0.02
"""Least weight of a candidate in the combination."""
RELEARN = (1, 3, 6)
"""Iterations of EM after which the structure is found again."""
TRY_ITERATIONS, TRY_TOLERANCE = 20, 2e-3
FINAL_ITERATIONS, FINAL_TOLERANCE = 10, 1e-3
FINAL_CELLS = 8_000_000
"""Rows times components times columns of all final iterations together."""
MOST_JOINED = 96
"""Most components of a combination."""
EXTEND_ITERATIONS = 4
"""Iterations of EM over all rows of a large table, twice as many for twice the components."""
BROAD = 9.0
"""Variance of the background component, in variances of the table."""


class Candidate(Struct, frozen=True, eq=False):
    """A mixture of a form, its memberships of the training rows, and the log-densities of held-out rows."""

    form: Form
    mixture: TreeMixture
    members: np.ndarray
    held: np.ndarray

    @property
    def n_components(self) -> int:
        return self.mixture.n_components


class Trial(Struct, frozen=True):
    """A candidate that was tried: the units and form, the components, and nats per held-out row."""

    units: str
    numbers: str
    components: int
    edges: int
    held_out: float


class Rows(Struct, frozen=True, eq=False):
    """Rows under one coding: all of them, those to learn from and those held out, and constants of the latter.

    `rest` marks all rows that are not held out, of which `training` is a sample if the table is large.
    """

    units: str
    whole: Training
    training: Training
    held: Parts
    logs: np.ndarray
    rest: np.ndarray

    @property
    def large(self) -> bool:
        return self.whole.parts.n_rows > MOST_SEARCHED

    def mean(self, logs: np.ndarray) -> float:
        return float(np.average(logs + self.logs, weights=self.held.weights))


def hold_out(copies: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Hold out a quarter of the rows, or of the sample of a large table: the held-out rows, and those to learn from.

    Rows with the same number in `copies` are held out together.
    """
    turns = rng.permutation(int(copies.max(initial=-1)) + 1)[copies]
    order = np.argsort(turns, kind="stable")[:MOST_SEARCHED]
    n_held = max(1, int(HELD_OUT * len(order)))
    n_held += int((turns[order[n_held:]] == turns[order[n_held - 1]]).sum())
    held, rest = np.sort(order[:n_held]), np.sort(order[n_held:])
    return held, rest if len(rest) else held


def split_rows(
    units: str, parts: Parts, tried: Parts, sizes: Sequence[int], logs: np.ndarray, held: np.ndarray, rest: np.ndarray
) -> Rows:
    """Split rows for the search. `tried` are the same rows in units that do not know the held-out ones."""
    beyond = np.ones(parts.n_rows, dtype=bool)
    beyond[held] = False
    training = Training.of(tried.take(rest), sizes)
    return Rows(units, Training.of(parts, sizes), training, tried.take(held), logs[held], beyond)


def attempt(rows: Rows, form: Form, members: np.ndarray) -> Candidate:
    training = rows.training
    mixture = fit_members(training, members, form)
    single = (
        mixture.n_components == 1 and not np.isnan(training.parts.numbers).any() and (training.parts.codes >= 0).all()
    )
    most = 1 if single else TRY_ITERATIONS
    mixture, members, _ = run_em(training, mixture, form, most, TRY_TOLERANCE, () if single else RELEARN)
    return Candidate(form, mixture, members, mixture.log_density(rows.held))


def grow(rows: Rows, start: Candidate, rng: np.random.Generator, limit: int) -> list[Candidate]:
    """Double the components of a candidate until held-out rows get less probable twice."""
    found, worse = [start], 0
    most = min(limit, MOST_COMPONENTS, rows.training.parts.n_rows // LEAST_ROWS)
    patience = 1 if rows.large else 2
    while worse < patience and 2 * found[-1].n_components <= most:
        members = split_members(rows.training, found[-1].members, rng)
        before = max(rows.mean(own.held) for own in found)
        found.append(attempt(rows, start.form, members))
        gain = rows.mean(found[-1].held) - before
        worse = 0 if gain > LEAST_GAIN else 2 if gain < -LARGEST_LOSS else worse + 1
    return found


def race(choices: Sequence[Rows], rng: np.random.Generator, limit: int) -> tuple[Rows, list[Candidate], list[Trial]]:
    """Try all units and forms with one and two components, and grow the best; return all candidates in its units."""
    found: list[tuple[Rows, Candidate]] = []
    for rows in choices:
        n_numbers = rows.held.numbers.shape[1]
        forms = [Form(), Form(True, 1e-3), Form(True, 0.1)] if n_numbers > 1 else [Form()]
        for form in forms:
            one = attempt(rows, form, np.ones((rows.training.parts.n_rows, 1)))
            found.append((rows, one))
            if limit > 1 and rows.training.parts.n_rows >= 4 * LEAST_ROWS:
                found.append((rows, attempt(rows, form, split_members(rows.training, one.members, rng))))
    rows, best = max(found, key=lambda pair: pair[0].mean(pair[1].held))
    same = [own for other, own in found if other is rows]
    most = max((own for own in same if own.form == best.form), key=lambda own: own.n_components)
    grown = grow(rows, most, rng, limit)[1:]
    trials = [_trial(*pair) for pair in found] + [_trial(rows, own) for own in grown]
    return rows, [*same, *grown], trials


def _trial(rows: Rows, own: Candidate) -> Trial:
    edges = sum(shape.n_edges for shape in own.mixture.layout.shapes)
    numbers = "one vector" if own.form.block else "single"
    return Trial(rows.units, numbers, own.n_components, edges, rows.mean(own.held))


def stack_weights(held: np.ndarray, weights: np.ndarray, floor: np.ndarray) -> np.ndarray:
    """Return the weights of (rows x candidates) log-densities that make held-out rows most probable."""
    shares = np.full(held.shape[1], 1.0 / held.shape[1])
    for _ in range(200):
        logs = held + np.log(shares)
        members = np.exp(logs - np.asarray(log_sum_exp(logs, axis=1))[:, None])
        shares = np.maximum(weights @ members / weights.sum(), np.maximum(floor, 1e-12))
        shares /= shares.sum()
    return shares


def choose_stack(held: np.ndarray, weights: np.ndarray, floor: np.ndarray, sizes: Sequence[int]) -> list[int]:
    """Return the candidates of the combination: those of the least weight are left out while it is too large."""
    kept = list(range(len(sizes)))
    while len(kept) > 1:
        shares = stack_weights(held[:, [*kept, -1]], weights, floor[[*kept, -1]])[:-1]
        total = sum(sizes[place] for place in kept)
        least = int(shares.argmin())
        if shares[least] >= LEAST_WEIGHT and total <= MOST_JOINED:
            break
        del kept[least]
    return kept


def extend(rows: Rows, own: Candidate, rng: np.random.Generator, limit: int) -> Candidate:
    """Fit a candidate to all rows of a large table that are not held out, with twice as many components if they gain.

    More rows bear more components: on adult 8 are best of 6,000 rows, and 16 of 24,000 gain .2 nats more.
    """
    training = Training.of(rows.whole.parts.take(np.flatnonzero(rows.rest)), rows.whole.sizes)

    def fit(mixture: TreeMixture, most: int, relearn: Sequence[int]) -> Candidate:
        mixture, members, _ = run_em(training, mixture, own.form, most, TRY_TOLERANCE, relearn)
        return Candidate(own.form, mixture, members, mixture.log_density(rows.held))

    found = fit(own.mixture, EXTEND_ITERATIONS, ())
    if 2 * found.n_components > limit or training.parts.n_rows < 2 * MOST_SEARCHED:
        return found
    members = split_members(training, found.members, rng)
    more = fit(fit_members(training, members, own.form), 2 * EXTEND_ITERATIONS, (1, 3))
    return more if rows.mean(more.held) > rows.mean(found.held) else found


def background(training: Training) -> TreeMixture:
    """Return the component of rows that fit nowhere: independent columns, with numbers spread widely."""
    n_parts, n_numbers = len(training.sizes), training.parts.numbers.shape[1]
    shape = Shape((-1,) * n_parts, tuple(Block(-1, (r,)) for r in range(n_numbers)))
    whole = training.whole
    layout = Layout(training.sizes, n_numbers, (shape,))
    return TreeMixture(layout, np.zeros(1), whole.shares, whole.means, BROAD * whole.variances)


def finish(rows: Rows, own: Candidate) -> tuple[TreeMixture, list[float]]:
    """Fit a candidate to all rows, with its structure."""
    parts = rows.whole.parts
    cells = parts.n_rows * own.n_components * max(parts.codes.shape[1] + parts.numbers.shape[1], 1)
    most = int(np.clip(FINAL_CELLS // cells, 1, FINAL_ITERATIONS))
    mixture, _, trace = run_em(rows.whole, own.mixture, own.form, most, FINAL_TOLERANCE)
    return mixture, trace


class Learned(Struct, frozen=True, eq=False):
    """The mixture that was learned, the units of its numbers, the trials, and nats per held-out row."""

    mixture: TreeMixture
    units: str
    trials: list[Trial]
    held_out: float
    trace: list[float]


def learn(choices: Sequence[Rows], rng: np.random.Generator, limit: int | None = None) -> Learned:
    """Learn a mixture of trees from the rows under one or several codings."""
    rows, candidates, trials = race(choices, rng, limit or MOST_COMPONENTS)
    best = max(candidates, key=lambda own: rows.mean(own.held))
    broad = background(rows.training)
    if rows.large:
        best = extend(rows, best, rng, limit or MOST_COMPONENTS)
        candidates = [best]
    held = np.column_stack([*(own.held for own in candidates), broad.log_density(rows.held)])
    floor = np.array([0.0] * len(candidates) + [1.0 / (rows.whole.parts.weights.sum() + 1.0)])
    kept = choose_stack(held, rows.held.weights, floor, [own.n_components for own in candidates])
    shares = np.zeros(len(floor))
    shares[[*kept, -1]] = stack_weights(held[:, [*kept, -1]], rows.held.weights, floor[[*kept, -1]])
    finished = [finish(rows, candidates[place]) for place in kept]
    weights = np.maximum([*(shares[place] for place in kept), shares[-1]], 1e-12)
    mixtures = [*(mixture for mixture, _ in finished), background(rows.whole)]
    logs = held[:, [*kept, -1]] + np.log(weights / weights.sum())
    reached = rows.mean(np.asarray(log_sum_exp(logs, axis=1)))
    traces = max((trace for _, trace in finished), key=len)
    return Learned(join_mixtures(mixtures, weights / weights.sum()), rows.units, trials, reached, traces)
