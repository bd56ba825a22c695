"""The ensemble of classifiers: its members and their weights."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from time import perf_counter
from typing import Annotated, Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from softcount.classify import recipes
from softcount.classify.encode import EncodedColumns, EncodedRows
from softcount.classify.logistic import contrast_first
from softcount.classify.members import Member, Tables, Training, Words, if_known, log_tables
from softcount.core.formulas import Formula, Once, formula, merge_terms, smallest, total
from softcount.core.ranges import Floats
from softcount.core.special import log_sum_exp, softmax_rows
from softcount.errors import SoftcountError
from softcount.run.local import Runner, one_blas_thread
from softcount.run.progress import announce
from softcount.table import Chunk, Table
from softcount.table.column_summary import RepeatedRows, find_repeats, fold_units, row_keys
from softcount.table.schema import Schema

FOLDS = 5
SMALLEST = 1e-15
"""Log-losses count smaller probabilities as this."""
PULL = 3.0
"""Rows' worth by which the members' weights are drawn to equal ones."""
DOUBTED, MOST_DOUBTED, DOUBT = 0.05, 0.5, 10.0
"""Prior rows of the other classes, so that an ensemble without errors in cross-validation does not become certain.

They are DOUBT divided by the number of rows, within these bounds.
"""
LEAST_WEIGHT = 0.02
"""Members of a smaller weight are dropped."""
LEAST_GAIN = 0.001
"""Nats per row that several members together must gain over the best one alone."""
FEW_TO_CHOOSE = 100
"""Rows below which all members are kept: which one is best alone is then chance."""
ENOUGH = 0.0002
"""Log-loss in nats per row below which nothing more is tried."""
ENOUGH_ROWS = 500
"""Rows of a fold below which such a log-loss may be chance: naive Bayes has no errors in twenty rows of breast cancer.
"""
FEW_CELLS = 20_000
"""Rows times columns, plus words, up to which all folds are fitted side by side."""
FEW_WORK = 1 << 18
"""Rows times columns, plus words, times classes up to which all folds are tested; with more work, two of them."""
MANY_ROWS = 20_000
"""Rows from which one fold is enough."""
USUALLY_GIVEN = 0.05
"""Share of the training rows that may have less evidence than a row that the ensemble scores alone."""
FAR_WORSE, CONFIRMED_ROWS = 0.05, 4096
"""Nats per row by which a refit may be worse than its folds on the same rows, and rows that it is judged by."""
LEAST_RANKED, MOST_RANKED, MOST_RANKED_CELLS = 50, 300, 1 << 21
"""Held-out rows of a fold by which columns are ranked, and the numbers that they may take."""
MOST_WRITTEN = 100_000
"""Rows, each repeated as often as it weighs, unless there are 4 for each row given."""
PIECES = 100
"""Repetitions of a very heavy row: enough to be spread evenly over folds."""
MUCH_WORK = 1 << 25
"""Words times classes from which one fold is all there is time for."""


class Tried(Struct, frozen=True, eq=False):
    """A member that was tried: its best setting, its scores on held-out rows, and its weight in the end."""

    name: str
    setting: Any
    log_loss: float
    accuracy: float
    weight: float = 0.0


class PartialRows(Struct, frozen=True, eq=False):
    """Scores of rows with few cells: naive Bayes of single columns, exact if cells are missing.

    `presence` is the share of each column in the evidence of a row, divided by the share that training rows have. A row
    whose columns add up to 1 or more is scored by the ensemble alone, a row with less by that share of the ensemble and
    the rest of `member`. An empty row gets the class shares.
    """

    member: Member
    presence: Annotated[np.ndarray, Floats(least=0.0)]  # of numbers, levels and texts

    def share(self, rows: EncodedRows) -> np.ndarray:
        """(rows x 1) share of the ensemble."""
        return np.asarray(np.minimum(given_cells(rows) @ self.presence, 1.0)[:, None])


def given_cells(rows: EncodedRows) -> np.ndarray:
    """(rows x columns) 1 if a cell is known, else 0."""
    texts = [bag[:, :1].toarray() > 0 for bag in rows.bags]
    return np.hstack([~np.isnan(rows.numbers), rows.codes > 0, *texts]).astype(np.float64)


class Ensemble(Struct, frozen=True, eq=False):
    """The weighted sum of the members' log-posteriors, plus a bias for every class.

    With `sparse`, rows with missing cells are scored by a smaller share of that sum, except for members of words.
    """

    names: tuple[str, ...]
    members: tuple[Member, ...]
    weights: Annotated[np.ndarray, Floats(("members",), least=0.0)]
    bias: Annotated[np.ndarray, Floats(("classes",))]
    tried: tuple[Tried, ...] = ()
    log_loss: float = float("nan")  # on rows held out
    plain: float = float("nan")  # that of standard naive Bayes
    plain_accuracy: float = float("nan")
    sparse: PartialRows | None = None

    def __repr__(self) -> str:
        members = [f"{name} (weight {weight:.2f})" for name, weight in zip(self.names, self.weights, strict=True)]
        return f"<{type(self).__name__} of {', '.join(members)}; cross-validated log-loss {self.log_loss:.4g}>"

    @property
    def together(self) -> list[str]:
        """Names of the members that are not a sum over columns."""
        return [name for name, member in zip(self.names, self.members, strict=True) if not member.by_column]

    def _weigh_members(self, rows: EncodedRows) -> Iterator[tuple[Any, Member]]:
        """The members, the bias and the model of rows with few cells, each with its weight or (rows x 1) weights."""
        share = np.ones((1, 1)) if self.sparse is None else self.sparse.share(rows)
        for weight, member in zip(self.weights, self.members, strict=True):
            yield weight if member.reads_texts else weight * share, member
        yield share, Member(self.bias, ())
        if self.sparse is not None and (share < 1.0).any():
            yield 1.0 - share, self.sparse.member

    def scores(self, rows: EncodedRows) -> np.ndarray:
        """(rows x classes) log-posteriors up to a constant."""
        found = np.zeros((len(rows), len(self.bias)))
        for weight, member in self._weigh_members(rows):
            found += weight * member.scores(rows)
        return found

    def split(self, rows: EncodedRows) -> tuple[np.ndarray, np.ndarray]:
        """(rows x columns x classes) contributions of the columns, and (rows x classes) what no column adds."""
        columns = np.zeros((len(rows), rows.plain_columns + len(rows.bags), len(self.bias)))
        shared = np.zeros((len(rows), len(self.bias)))
        for weight, member in self._weigh_members(rows):
            own, rest = member.split(rows)
            columns += np.reshape(weight, (-1, 1, 1)) * own
            shared += weight * rest
        return columns, shared

    def word_parts(self, text: int, bag: Any) -> np.ndarray:
        """(cells x classes) contribution of each cell of a text's bag; its length may add more."""
        found = np.zeros((len(bag.data), len(self.bias)))
        for weight, member in zip(self.weights, self.members, strict=True):
            for part in member.parts:
                if isinstance(part, Words):
                    found += weight * part.word_parts(text, bag)
        return found

    def log_proba(self, schema: Schema, table: Table, runner: Runner) -> np.ndarray:
        """(rows x classes) log-probabilities of the classes of a table's rows."""

        def work(task: Callable[[], Chunk]) -> np.ndarray:
            rows = EncodedRows.of(schema, [task()])
            places = [np.arange(a, min(a + AT_ONCE, len(rows))) for a in range(0, len(rows), AT_ONCE)]
            parts = [log_posteriors(self.scores(rows.take(place))) for place in places]
            return np.concatenate(parts) if parts else np.empty((0, len(self.bias)))

        with one_blas_thread():
            parts = list(runner.map(work, table.tasks()))
        return np.concatenate(parts) if parts else np.empty((0, len(self.bias)))

    def formula(self, columns: EncodedColumns) -> list[Formula]:
        """Terms whose sum is the score."""
        terms: list[Formula] = [formula(self.bias)]
        words: list[Formula] = []
        for member, weight in zip(self.members, self.weights.tolist(), strict=True):
            own = words if member.reads_texts else terms
            own += member.formula(columns, weight)
        if self.sparse is not None:
            # The terms count by the share of the evidence that a row has, the rest comes from single columns.
            single, classes = self.sparse.member, len(self.bias)
            each = np.tile(self.sparse.presence[:, None], classes)
            known = [if_known(columns, place, own) for place, own in enumerate(each) if own.any()]
            share = Once(smallest(total(known), formula(1.0)))
            rest = total(merge_terms(single.formula(columns, 1.0)))
            terms = [total(merge_terms(terms)) * share, rest * (formula(1.0) - share)]
        return merge_terms([*terms, *words])

    def reads_texts(self, columns: EncodedColumns) -> bool:
        """Whether the scores depend on the words of a text, or on whether there is one."""
        texts = self.sparse is not None and bool(self.sparse.presence[len(columns.keys) :].any())
        return texts or any(member.reads_texts for member in self.members)

    @property
    def pair_cells(self) -> int:
        """Numbers in tables of pairs of columns with a second parent."""
        return sum(part.pair_cells for member in self.members for part in member.parts)


AT_ONCE = 8192
"""Rows that are scored at a time."""


class HeldScores(Struct, frozen=True, eq=False):
    """Held-out rows, with their predictions by an ensemble whose members and weights have not seen them."""

    logs: np.ndarray  # (rows x classes) log-probabilities
    labels: np.ndarray
    weights: np.ndarray
    folds: np.ndarray
    repeats: RepeatedRows | None = None
    gains: tuple[float, ...] = ()  # of every column, in nats per row


class FoldScores(Struct, frozen=True, eq=False):
    """Log-posteriors of one fold's rows, by recipe and setting.

    `members` are those of the best setting of each recipe. The rows `ranked` rank the columns, and `single` is the log-
    probability of their class given each column by itself.
    """

    rows: np.ndarray
    logs_of: dict[tuple[str, Any], np.ndarray]
    members: dict[str, Member]
    ranked: np.ndarray
    single: np.ndarray  # (ranked rows x columns)


@one_blas_thread()
def fit_ensemble(
    whole: Training, runner: Runner, budget: float | None = None, folds: int | None = None
) -> tuple[Ensemble, HeldScores]:
    """The ensemble of lowest cross-validated log-loss, and its predictions for the held-out rows.

    After `budget` seconds no further member is tried. All of `folds` are tested. Nothing depends on the order of the
    rows, and a row of whole weight n counts as n rows.
    """
    until = None if budget is None else perf_counter() + budget
    training, repeats, units = _order_rows(whole)
    split = deal_folds(training.labels, units, folds or FOLDS)
    work = max(len(training.labels), training.rows.cells) * training.classes
    few = FOLDS if work <= FEW_WORK else 2
    if len(training.labels) >= MANY_ROWS or (training.rows.bags and work >= MUCH_WORK):
        few = 1
    tested = range(folds or few)
    # Of a small table all folds are fitted in one call: the calls would take longer than the work.
    small = max(len(training.labels), training.rows.cells) <= FEW_CELLS
    tasks = [tuple(tested)] if small else [(fold,) for fold in tested]
    progress = Progress("cross-validating the ensemble", len(tasks) * len(recipes.recipes_for(training.rows)))
    score = partial(_score_folds, training, split, until, progress)
    held = [part for parts in runner.map(score, tasks) for part in parts]
    announce("fitting the ensemble")
    out = np.concatenate([part.rows for part in held])
    keys = [key for key in held[0].logs_of if all(key in part.logs_of for part in held)]
    logs_of = {key: np.concatenate([part.logs_of[key] for part in held]) for key in keys}
    labels, weights = training.labels[out], training.weights[out]
    settings = _best_settings(logs_of, labels, weights)
    starts: dict[tuple[Any, ...], recipes.SharedWeights] = {}
    chosen, found = _choose_members({key: logs_of[key] for key in settings.values()}, labels, weights, starts)
    members = list(runner.map(partial(_refit, training, out), [(*key, logs_of[key]) for key in chosen]))
    kept = dict(zip(chosen, found.weights, strict=True))
    lines = []
    for name, key in settings.items():
        right = float(weights @ (logs_of[key].argmax(axis=1) == labels) / weights.sum())
        lines.append(Tried(name, key[1], _loss(logs_of[key], labels, weights), right, float(kept.get(key, 0.0))))
    tried = sorted(lines, key=lambda line: line.log_loss)
    names = tuple(key[0] for key in chosen)
    groups = split[out] if len(tested) > 1 else np.unique(units[out], return_inverse=True)[1] % 2
    logs = _score_nested(logs_of, labels, weights, groups, starts)
    gains = _column_gains(training, held, Ensemble(names, (), found.weights, found.bias))
    scored = HeldScores(logs, labels, weights, split[out], repeats, gains)
    loss = _loss(scored.logs, scored.labels, scored.weights)
    ensemble = Ensemble(names, tuple(members), found.weights, found.bias, tuple(tried), loss)
    return replace(ensemble, sparse=_fit_partial_rows(ensemble, training)), scored


def _fit_partial_rows(ensemble: Ensemble, training: Training) -> PartialRows:
    """Naive Bayes of the discretised columns, and the share of each column in the evidence.

    A column has the weight that suits it alone, by leave-one-out counts. Columns repeat each other: all are multiplied
    by the mean of 1 and of the weight that suits them together.
    """
    sizes, terms, texts = training.sizes, training.terms, len(training.rows.bags)
    prior = np.log(sizes / sizes.sum()) if (sizes > 0).all() else training.shares
    columns = [column for (column,) in terms.columns]
    information, weights = np.zeros(training.rows.plain_columns + texts), np.ones(len(columns))
    if columns:
        some = recipes.sample_rows(training)
        evidence, labels, heavy = recipes.leave_one_out(training, some), training.labels[some], training.weights[some]
        weights = np.array([min(recipes.temper(own, labels, heavy, prior), 1.0) for own in evidence.transpose(1, 0, 2)])
        evidence *= weights[:, None]
        weights *= 0.5 + 0.5 * min(recipes.temper(evidence.sum(axis=1), labels, heavy, prior), 1.0)
        known = (training.codes[some][:, columns] > 0) * heavy[:, None]
        own = evidence[np.arange(len(some)), :, labels] - log_sum_exp(evidence + prior, axis=2)
        information[columns] = np.maximum((own * known).sum(axis=0) / np.maximum(known.sum(axis=0), 1e-300), 0.0)
    if texts:  # as much as the columns leave of the uncertainty about the class
        information[-texts:] = max(float(-np.exp(prior) @ prior) - information.sum(), 0.01) / texts
    if not information.any():
        information[:] = 1.0
    given = given_cells(training.rows) @ information
    order = np.argsort(given)
    usual = given[order[np.searchsorted(np.cumsum(training.weights[order]), USUALLY_GIVEN * training.weights.sum())]]
    each = np.concatenate([[0.0], np.repeat(weights, terms.widths)])
    row, start = training.rows.take(np.zeros(1, dtype=np.int64)), prior.copy()
    bags = tuple(0 * bag for bag in row.bags)
    empty = EncodedRows(np.full_like(row.numbers, np.nan), np.zeros_like(row.codes), bags)
    for weight, member in zip(ensemble.weights, ensemble.members, strict=True):
        if member.reads_texts:
            start -= weight * member.scores(empty)[0]
    tables = contrast_first(log_tables(training.tables, terms) * each[:, None])
    single = Member(start, (Tables(training.cuts, terms, tables),))
    return PartialRows(single, information / (usual or information.sum()))


def _column_gains(training: Training, held: Sequence[FoldScores], ensemble: Ensemble) -> tuple[float, ...]:
    """Nats per held-out row by which each column lowers the log-loss: alone, or added to all others if that is more.

    Alone, a column is compared with the class shares. Added last, its part of the ensemble's scores is removed. By the
    latter only, two copies of a column would both gain nothing; by the former only, columns that interact would. Every
    gain is between 0 and the entropy of the classes.
    """
    columns, texts = training.rows.plain_columns, len(training.rows.bags)
    rows = np.concatenate([part.ranked for part in held])
    labels, weights = training.labels[rows], training.weights[rows]
    shares = np.log(np.maximum(np.bincount(labels, weights, training.classes) / weights.sum(), SMALLEST))
    nothing = _loss(np.tile(shares, (len(rows), 1)), labels, weights)
    each, total = _fold_parts(training, held, ensemble)
    alone = [-(weights @ own) / weights.sum() for own in np.concatenate([part.single for part in held]).T]
    if texts:
        words = next(name for name in held[0].members if held[0].members[name].reads_texts)
        parts = _fold_parts(training, held, replace(ensemble, names=(words,), weights=np.ones(1)))[0][:, columns:]
        logs = [log_posteriors(parts[:, place] + shares) for place in range(texts)]
        alone += [_loss(log_posteriors(own * recipes.temper(own, labels, weights)), labels, weights) for own in logs]
    whole = min(nothing, _loss(log_posteriors(total), labels, weights))
    last = [_loss(log_posteriors(total - each[:, place]), labels, weights) for place in range(columns + texts)]
    return tuple(max(nothing - first, min(nothing, rest) - whole, 0.0) for first, rest in zip(alone, last, strict=True))


def _fold_parts(training: Training, held: Sequence[FoldScores], ensemble: Ensemble) -> tuple[np.ndarray, np.ndarray]:
    """Contributions of the columns to the scores of some held-out rows, less their mean over rows, and the scores.

    `ensemble` has the names and weights; its members are those of each fold.
    """
    each, totals = [], []
    for part in held:
        fold = replace(ensemble, members=tuple(part.members[name] for name in ensemble.names))
        columns, shared = fold.split(training.rows.take(part.ranked))
        each.append(columns - columns.mean(axis=0))
        totals.append(shared + columns.sum(axis=1))
    return np.concatenate(each), np.concatenate(totals)


def _score_single_columns(inside: Training, out: Training) -> np.ndarray:
    """(rows x columns) log-probability of each held-out row's class given the cell of one column."""
    shares = np.exp(inside.shares)
    counts = inside.tables[inside.terms.places(inside.cuts.codes(out.rows))] + shares
    own = np.take_along_axis(counts, out.labels[:, None, None], axis=2)[:, :, 0] / counts.sum(axis=2)
    found = np.tile(inside.shares[out.labels][:, None], (1, out.rows.plain_columns))
    found[:, [column for (column,) in inside.terms.columns]] = np.log(own)
    return found


def _score_nested(
    logs_of: dict[tuple[str, Any], np.ndarray],
    labels: np.ndarray,
    weights: np.ndarray,
    groups: np.ndarray,
    starts: dict[tuple[Any, ...], recipes.SharedWeights],
) -> np.ndarray:
    """(rows x classes) log-posteriors of each group of rows under the ensemble that the other groups choose.

    Settings, members and weights are chosen without the group. `starts` are the weights for all rows, by members.
    """
    logs = np.empty(next(iter(logs_of.values())).shape)
    for group in np.unique(groups):
        inside, others = np.flatnonzero(groups == group), np.flatnonzero(groups != group)
        rest = {key: each[others] for key, each in logs_of.items()}
        settings = _best_settings(rest, labels[others], weights[others])
        kept = {key: rest[key] for key in settings.values()}
        chosen, found = _choose_members(kept, labels[others], weights[others], dict(starts))
        logs[inside] = log_posteriors(found.scores(np.stack([logs_of[key][inside] for key in chosen], axis=1)))
    return logs


def _order_rows(given: Training) -> tuple[Training, RepeatedRows, np.ndarray]:
    """The rows in canonical order, a row of whole weight n written n times; the repeated rows; and the fold units."""
    order = given.rows.order_rows(given.labels)
    blocks, bags = (given.rows.numbers, given.rows.codes), given.rows.bags
    keys = row_keys(blocks, bags)
    counts = given.weights if (given.weights == np.round(given.weights)).all() else np.ones(len(order))
    repeats = find_repeats(keys, given.labels, counts, blocks, bool(bags))
    times = count_copies(given.weights[order], repeats.copies)
    weights = given.weights[order] / np.maximum(times, 1)
    order = np.repeat(order, times)
    training = replace(given.take(order), weights=np.repeat(weights, times))
    return training, repeats, fold_units(keys[order], training.labels, repeats.copies)


def count_copies(weights: np.ndarray, copies: bool = True) -> np.ndarray:
    """How many times each row is written out: its weight, if all weights are whole numbers.

    Beyond MOST_WRITTEN rows in all, copies stay one row with a weight, and independent rows are written at most PIECES
    times, each with its part of the weight.
    """
    counts = np.round(weights).astype(np.int64)
    limit = max(MOST_WRITTEN, 4 * len(weights))
    if np.array_equal(counts, weights) and (counts.sum() <= limit or not copies):
        return counts if counts.sum() <= limit else np.minimum(counts, min(PIECES, limit // len(weights)))
    return np.ones(len(weights), dtype=np.int64)


def deal_folds(labels: np.ndarray, units: np.ndarray, folds: int) -> np.ndarray:
    """A fold for each row: rows of a unit share one, and the units of every class are spread evenly.

    Units are numbered as they are first met. A unit counts for the class of its first row.
    """
    _, first = np.unique(units, return_index=True)
    own_class = labels[first]
    found = np.empty(len(first), dtype=np.int64)
    shift = 0
    for label in np.unique(own_class):
        own = np.flatnonzero(own_class == label)
        found[own] = (np.random.default_rng(len(own)).permutation(len(own)) + shift) % folds
        shift += len(own)
    return np.asarray(found[units])


class Progress(Struct):
    """Steps of a phase that are done, of how many."""

    phase: str
    of: int
    done: int = 0

    def step(self, detail: str) -> None:
        announce(self.phase, self.done, self.of, detail)
        self.done += 1


def _score_folds(
    training: Training, split: np.ndarray, until: float | None, progress: Progress, folds: tuple[int, ...]
) -> list[FoldScores]:
    """Log-posteriors of some folds under every recipe fitted to the others; no recipe starts after the time `until`."""
    places = [np.flatnonzero(split == fold) for fold in folds]
    trainings = [training.take(np.flatnonzero(split != fold)) for fold in folds]
    outside = [training.take(out) for out in places]
    labels, heavy = (np.concatenate([each[out] for out in places]) for each in (training.labels, training.weights))
    logs_of: dict[tuple[str, Any], list[np.ndarray]] = {}
    best: dict[str, Sequence[Member]] = {}
    for recipe in recipes.recipes_for(training.rows):
        if until is not None and perf_counter() > until and logs_of:
            break
        progress.step(recipe.name)
        losses: list[float] = []
        every = [recipe.settings(training) for training in trainings]
        settings = tuple(setting for setting in every[0] if all(setting in each for each in every))
        fits = recipe.fit_folds(trainings, settings) if settings else ()
        for setting, members in zip(settings, fits, strict=True):
            scores = [log_posteriors(member.scores(out.rows)) for member, out in zip(members, outside, strict=True)]
            logs_of[recipe.name, setting] = scores
            losses.append(_comparable_loss(recipe, np.concatenate(scores), labels, heavy))
            if losses[-1] == min(losses):
                best[recipe.name] = members
            if recipe.ordered and losses[-1] > min(losses):
                break
        if len(labels) >= ENOUGH_ROWS * len(folds) and min(losses, default=1.0) <= ENOUGH:
            break
    width = training.rows.plain_columns + len(training.rows.bags)
    most = max(LEAST_RANKED, min(MOST_RANKED, MOST_RANKED_CELLS // max(1, width * max(width, training.classes))))
    found = []
    for k, (inside, out, rows) in enumerate(zip(trainings, outside, places, strict=True)):
        some = np.linspace(0, len(rows) - 1, min(len(rows), most)).astype(np.int64)
        logs, kept = {key: own[k] for key, own in logs_of.items()}, {name: own[k] for name, own in best.items()}
        found.append(FoldScores(rows, logs, kept, rows[some], _score_single_columns(inside, out.take(some))))
    return found


def log_posteriors(scores: np.ndarray) -> np.ndarray:
    """(rows x classes) logarithms of probabilities that sum to one."""
    return np.asarray(scores - softmax_rows(scores)[1][:, None])


def _loss(logs: np.ndarray, labels: np.ndarray, weights: np.ndarray) -> float:
    return float(weights @ _row_losses(logs, labels) / weights.sum())


def _row_losses(logs: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Negative log-probability of every row's class, at most -log(SMALLEST)."""
    return np.asarray(-np.maximum(logs[np.arange(len(labels)), labels], np.log(SMALLEST)))


def _comparable_loss(recipe: recipes.Recipe, logs: np.ndarray, labels: np.ndarray, weights: np.ndarray) -> float:
    """The loss by which settings of a recipe are compared."""
    return _loss(
        log_posteriors(logs * recipes.temper(logs, labels, weights)) if recipe.tempered else logs, labels, weights
    )


def _best_settings(
    logs_of: dict[tuple[str, Any], np.ndarray], labels: np.ndarray, weights: np.ndarray
) -> dict[str, Any]:
    losses = {
        key: _comparable_loss(recipes.ALL_RECIPES[key[0]], logs, labels, weights) for key, logs in logs_of.items()
    }
    names = dict.fromkeys(name for name, _ in logs_of)
    return {name: min((key for key in logs_of if key[0] == name), key=losses.__getitem__) for name in names}


def _choose_members(
    logs_of: dict[tuple[str, Any], np.ndarray],
    labels: np.ndarray,
    heavy: np.ndarray,
    starts: dict[tuple[Any, ...], recipes.SharedWeights],
) -> tuple[list[Any], recipes.SharedWeights]:
    """The members that are kept and their weights: with enough rows, the best one alone if others add next to nothing.

    Newton's method begins at the `starts` of the same members, which are filled in.
    """

    def learn(keys: list[Any]) -> tuple[recipes.SharedWeights, float]:
        parts = np.stack([logs_of[key] for key in keys], axis=1)
        centre = np.full(parts.shape[1], 1.0 / parts.shape[1])
        rows = float(heavy.sum())
        doubted = min(MOST_DOUBTED, max(DOUBTED, DOUBT / max(rows, 1.0)))
        doubt, start = doubted / (rows + 2.0 * doubted), starts.get(tuple(keys))
        found = starts[tuple(keys)] = recipes.fit_weights(parts, labels, heavy, centre, PULL, doubt, start)
        return found, _loss(log_posteriors(found.scores(parts)), labels, heavy)

    alone = {key: learn([key]) for key in logs_of}
    best = min(alone, key=lambda key: alone[key][1])
    keys = list(logs_of)
    together, loss = learn(keys)
    kept = [key for key, weight in zip(keys, together.weights, strict=True) if weight >= LEAST_WEIGHT]
    if len(kept) < len(keys) and kept:
        together, loss = learn(kept)
    tied = alone[best][1] - loss < LEAST_GAIN and len(labels) >= FEW_TO_CHOOSE
    if len(kept) < 2 or tied:
        return [best], alone[best][0]
    return kept, together


def _refit(training: Training, out: np.ndarray, chosen: tuple[str, Any, np.ndarray]) -> Member:
    """The member of a recipe and setting, fitted to all rows; `logs` are those of the rows `out` when held out.

    A member that is far worse on rows it has seen stopped early: it is fitted again through all settings of its recipe,
    each starting where the last one ended. If that is no better, the fit is refused.
    """
    name, setting, logs = chosen
    recipe = recipes.ALL_RECIPES[name]
    member = next(iter(recipe.fit(training, (setting,))))
    if not _is_far_worse(member, logs, training, out):
        return member
    settings = recipe.settings(training)
    path = settings[: settings.index(setting) + 1] if setting in settings else (setting,)
    *_, again = recipe.fit(training, path)
    if not _is_far_worse(again, logs, training, out):
        return again
    held = _loss(logs, training.labels[out], training.weights[out])
    raise SoftcountError(
        f"the final fit of {name!r} failed: cross-validation gave a log-loss of {held:.4g} on held-out rows, and the "
        "final fit is far worse on the same rows. Use NaiveBayes() for this table, and please report it."
    )


def _is_far_worse(member: Member, logs: np.ndarray, training: Training, out: np.ndarray) -> bool:
    """Whether a member loses more than FAR_WORSE nats per row, beyond chance, against the held-out `logs`."""
    some = np.unique(np.linspace(0, len(out) - 1, min(CONFIRMED_ROWS, len(out))).astype(np.int64))
    rows, heavy = out[some], training.weights[out[some]]
    own, labels = log_posteriors(member.scores(training.rows.take(rows))), training.labels[rows]
    more = _row_losses(own, labels) - _row_losses(logs[some], labels)
    mean = float(heavy @ more / heavy.sum())
    error = float(np.sqrt(heavy**2 @ (more - mean) ** 2)) / float(heavy.sum())
    return not mean <= max(FAR_WORSE, 5.0 * error)
