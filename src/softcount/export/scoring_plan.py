"""The scoring plan of a model: its columns, the formula of its score, its classes, and rows to check an export with."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Literal, Protocol

import numpy as np
from msgspec import Struct

from softcount.classify.encode import LARGEST, Binning, NumberScale, column_keys, measured_count, number_count
from softcount.classify.features import Terms
from softcount.classify.logistic import spread
from softcount.classify.members import FARTHEST, Additive, Aode, Member, NormalsAndTables, ShrunkBlock, WordModel
from softcount.core import remedies
from softcount.core.formulas import (
    CLAMPED,
    Apply,
    BlockDensity,
    Cell,
    Choose,
    Code,
    CombinedCode,
    Compare,
    Formula,
    IntervalCode,
    LevelCode,
    LookUp,
    Once,
    Whole,
    WordsCode,
    clamp,
    clip,
    formula,
    largest,
    log,
    merge_terms,
    normal_density,
    smallest,
    total,
    unless_missing,
)
from softcount.core.special import log_of
from softcount.errors import DataError
from softcount.families.setting import IMPOSSIBLE
from softcount.fitted.answers import drawn, labels_in
from softcount.fitted.fitted import Calibration, Fitted
from softcount.models.nodes import Node
from softcount.models.star import LOWEST, Star, WeighedStar
from softcount.run.local import Threads
from softcount.sources.frames import number_words
from softcount.table.cell_forms import CellForm, NumberForm, TimeForm, is_plain, write_cell
from softcount.table.schema import BLANK, DASHES, MISSING, Key, Kind, asked_words, labels
from softcount.text import Reading

NOT_A_NUMBER = ("nan", "NaN", "NAN")
SINCE_1970 = "seconds since 1970"


class InputColumn(Struct, frozen=True, eq=False):
    """A column to read: its name, texts that mean missing, and its levels or the kind of its numbers."""

    key: Key
    name: str
    missing: tuple[str, ...]
    levels: tuple[object, ...] | None = None
    kind: Kind = Kind.REAL
    valued: bool = False
    """Whether its levels are numbers and are read as numbers; others are missing."""
    form: CellForm | None = None
    """How its cells are written if they are no plain numbers: dates, times, numbers with a unit."""
    reading: Reading | None = None
    """How the words of a text are found; they are its levels."""

    @property
    def number(self) -> bool:
        """Whether its cells are read as numbers."""
        return self.levels is None or self.valued

    @property
    def expected(self) -> str:
        """What other programs must give as the numbers of the column."""
        form = self.form
        if form is None:
            return "numbers"
        if isinstance(form, NumberForm):
            return f"numbers in {form.unit}" if form.unit else "numbers"
        if isinstance(form, TimeForm) and form.is_date:
            return SINCE_1970
        clock = isinstance(form, TimeForm) and "%D" not in form.pattern and not form.typed.startswith("duration")
        return "seconds since midnight" if clock else "seconds"

    def numbers(self, cells: Sequence[Any]) -> list[float | None]:
        """Cells as the numbers they stand for."""
        if self.form is None:
            return [None if cell is None else float(cell) for cell in cells]
        found = self.form.read([None if cell is None else str(cell) for cell in cells])[0]
        return [None if np.isnan(value) else float(value) for value in found]

    def spellings(self) -> Iterator[tuple[str, int]]:
        """Every way that a level is written, and which it is, counted from 1."""
        for place, level in enumerate(self.levels or (), start=1):
            for text in ("", *self.missing, BLANK) if level == BLANK else spellings(level):
                yield text, place


class ScoringPlan(Struct, frozen=True, eq=False):
    """The columns, the terms whose sum is the score of every group, and the groups' names.

    The result is "probabilities" with the most probable group, or only the group with the "highest" score.
    """

    columns: tuple[InputColumn, ...]
    terms: tuple[Formula, ...]
    names: tuple[Any, ...]
    finish: Literal["probabilities", "highest"] = "probabilities"
    calibration: Calibration | None = None

    @property
    def headings(self) -> list[str]:
        return list(labels(self.names).values())

    def column(self, key: Key) -> InputColumn:
        return next(column for column in self.columns if column.key == key)


class Exported(Protocol):
    """A model that can be exported."""

    def _export_plan(self) -> ScoringPlan: ...

    def _export_rows(self) -> DrawnRows: ...


def plan_of(model: Any) -> ScoringPlan:
    """The plan of a fitted model; what is no sum over columns is refused."""
    if not isinstance(model, Fitted) or not isinstance(model.model, Star):
        raise DataError(
            "only models that add up what each column says can be exported: naive Bayes, mixtures, k-means and "
            "classifiers; networks, chains and hidden states cannot. "
            f"Fit one of these: {remedies.either('Classifier().fit(X, y)', 'softcount fit DATA --target COL')}"
        )
    if model.bag:
        raise DataError(
            "the model is of a sparse table, which has no columns to read elsewhere: it cannot be exported. "
            "Fit a table whose columns have names, or the texts themselves."
        )
    if model.ensemble is None:
        return scoring_plan(model)
    columns, terms = ensemble_terms(model)
    sparse = model.ensemble.sparse
    texts = columns.texts if any(isinstance(member, WordModel) for member in model.ensemble.members) else ()
    if sparse is not None and sparse.presence[len(columns.keys) :].any():  # whether a text is there counts
        texts = columns.texts
    numbered = columns.keys[measured_count(model.schema) : columns.numbers]
    inputs = input_columns(model, (*columns.keys, *texts), numbered)
    return ScoringPlan(tuple(inputs), tuple(terms), tuple(model.names), calibration=model.calibration)


def scoring_plan(model: Fitted) -> ScoringPlan:
    """The plan of naive Bayes or a mixture; an error names a column that has no formula."""
    learned = model.learned_weights
    bias = log_of(model.shares) if learned is None else learned.bias
    scaled, params, terms = _scales(model), model.params, []
    for place, leaf in enumerate(model.model.leaves):
        sizes = [len(model.schema[key].levels) for key in leaf.columns]
        if model.linear is not None:
            found = leaf.family.weighted_formula(model.linear.weights[place], leaf.setting, leaf.columns, sizes)
        else:
            found = leaf.family.formula(params[leaf.key], leaf.columns, sizes)
        terms.append(_term(leaf, found, scaled.get(leaf.key)))
    columns = input_columns(model, [key for leaf in model.model.leaves for key in leaf.columns])
    whole = (formula(bias), *terms)
    return ScoringPlan(tuple(columns), whole, tuple(model.names), calibration=model.calibration)


def centres_plan(centres: np.ndarray, keys: Sequence[Any], unit: bool) -> ScoringPlan:
    """The plan of clusters around centres; with `unit`, of directions."""
    columns = tuple(InputColumn(key, name, MISSING) for key, name in labels(keys).items())
    each = list(zip(keys, centres.T, strict=True))
    if unit:
        score = total([Cell(key) * centre for key, centre in each])
    else:
        offs = [Cell(key) - centre for key, centre in each]
        score = formula(0.0) - total([off * off for off in offs])
    return ScoringPlan(columns, (score,), tuple(range(len(centres))), "highest")


def _scales(model: Fitted) -> dict[Key, tuple[float, bool]]:
    """By column the weight of its log-density, and whether that is bounded first; empty if columns have no weights."""
    telling = model.telling
    if not isinstance(telling, WeighedStar):
        return {}
    compiled = telling.compile(model.estimates)
    weights = dict(zip((leaf.key for leaf in telling.star.leaves), telling.weights.tolist(), strict=True))
    stacks = zip(telling.star.stacks, compiled[1:], strict=True)
    return {node.key: (weights[node.key], own is not None) for stack, (_, own) in stacks for node in stack.nodes}


def _term(leaf: Node, found: Formula | None, scaled: tuple[float, bool] | None) -> Formula:
    """The score of a leaf, 0 if its cells are missing."""
    if found is None:
        raise refused(leaf.key, f"is {leaf.family.title}", "has no formula without special functions")
    if not leaf.family.block and not isinstance(found, LookUp):
        found = unless_missing(leaf.columns[0], found)
    if scaled is None:
        return found
    weight, bounded = scaled
    if bounded and leaf.family.words_of(leaf.setting) is not None:
        raise refused(leaf.key, f"is {leaf.family.title}", "with a weight has words that are impossible in some class")
    if isinstance(found, LookUp):
        return LookUp(found.code, clamp(weight * (np.maximum(found.table, LOWEST) if bounded else found.table)))
    return (Apply("largest", (found, formula(LOWEST))) if bounded else found) * weight


def refused(key: Key, what: str, why: str) -> DataError:
    """The error about a column that cannot be exported."""
    first = key[0] if isinstance(key, tuple) else key
    return DataError(
        f"column {key!r} {what}, which {why}: the model cannot be exported. "
        f"Fit again with {remedies.estimate_mean()} or another kind, or without it: {remedies.kind(first, 'ignore')}"
    )


def input_columns(model: Fitted, keys: Sequence[Key], valued: Sequence[Key] = ()) -> list[InputColumn]:
    """How these columns of a model are read."""
    names, schema, found = labels_in(model), model.schema, []
    for key in dict.fromkeys(keys):
        spec = schema[key]
        form = None if is_plain(spec.written) else spec.written
        if form is not None and not spec.kind.numeric:
            raise refused(key, f"holds {form.description}", "other programs read otherwise")
        if spec.kind is Kind.TEXT:
            reading = spec.reading or Reading()
            if reading.analyzer == "steps":
                raise refused(key, "holds sequences", "only Softcount counts the steps of")
            asked = () if set(schema.missing) == set(MISSING) else ("", *map(str.strip, schema.missing))
            found.append(InputColumn(key, names[key], asked, tuple(spec.levels), spec.kind, reading=reading))
            continue
        levels = None if spec.kind.numeric else tuple(spec.levels)
        dashes = DASHES if spec.kind.numeric and set(MISSING) <= set(schema.missing) else ()
        # Databases have real nulls: among categories the usual words are words, as in frames.
        given = schema.missing if levels is None else asked_words(schema.missing)
        words = dict.fromkeys(("", *map(str.strip, given), *spec.missing, *dashes))
        marks = (text for mark in number_words(tuple(words)) for text in spellings(mark))
        of_numbers = levels is None or not all(isinstance(level, str) for level in levels)
        missing = dict.fromkeys((*words, *marks, *(NOT_A_NUMBER if of_numbers else ())))
        kept = tuple(word for word in missing if levels is None or word not in levels)
        found.append(InputColumn(key, names[key], kept, levels, spec.kind, key in valued, form))
    return found


def spellings(level: object) -> list[str]:
    """How databases write a level as text.

    >>> spellings(2), spellings(0.5), spellings(True)
    (['2', '2.0'], ['0.5'], ['True', 'true', '1', '1.0'])
    """
    if isinstance(level, (bool, np.bool_)):
        return [str(bool(level)), str(bool(level)).lower(), *spellings(int(level))]
    if isinstance(level, (float, np.floating)) and not float(level).is_integer():
        return [repr(float(level))]
    if isinstance(level, (int, float, np.integer, np.floating)):
        return [str(int(level)), f"{float(level)!r}"] if abs(float(level)) < 1e16 else [repr(level)]
    return [str(level)]


def plain_names(names: Sequence[Any]) -> Mapping[str, Any]:
    """The names of the groups as text, numbers or Booleans, and their type."""
    own = [name.item() if isinstance(name, np.generic) else name for name in names]
    for kind in (bool, int, float):
        if all(type(name) is kind for name in own):
            return {"type": kind, "values": own}
    return {"type": str, "values": list(labels(own).values())}


# -- ensembles


class AodeMean(Whole, Struct, frozen=True, eq=False):
    """The logarithm of the mean over the stars of all columns; `codes` are those of parents."""

    stars: Aode
    codes: tuple[Code, ...]

    @cached_property
    def out(self) -> Formula:
        """The logarithm of the mean over the parents that are known; the shares of the classes if none is.

        Each parent has the joint log-probability of class and row, which is impossible if the parent is missing.
        """
        if not self.codes:
            return formula(self.stars.shares)
        ends = [*self.stars.terms.offsets.tolist(), self.stars.terms.width]
        cells = [slice(ends[place], ends[place + 1]) for place in range(len(self.codes))]
        stars: list[Formula] = []
        impossible, nothing = np.full(len(self.stars.shares), CLAMPED), np.zeros(len(self.stars.shares))
        for parent, (code, own) in enumerate(zip(self.codes, cells, strict=True)):
            table = self.stars.shares[:, None] + self.stars.alone[:, own]
            terms: list[Formula] = [look_up((code,), table.T, impossible)]
            for child, others in enumerate(cells):
                given = self.stars.given[:, others, own]
                if child < parent:
                    terms.append(look_up((self.codes[child], code), given.transpose(1, 2, 0), nothing))
                elif child > parent:
                    terms.append(look_up((code, self.codes[child]), given.transpose(2, 1, 0), nothing))
            stars.append(Once(total(terms)))
        top = Once(largest(stars))
        sums = total([Apply("exp", (star - top,)) for star in stars])
        known = [Choose((Compare("<", star, formula(IMPOSSIBLE)),), formula(0.0), formula(1.0)) for star in stars]
        there = Once(total(known))
        mean = top + log(sums) - log(largest([there, formula(1.0)]))
        return Choose((Compare("=", there, formula(0.0)),), formula(self.stars.shares), mean)


def look_up(codes: tuple[Code, ...], table: np.ndarray, unknown: np.ndarray) -> Formula:
    """A look-up in a (cells of each column x classes) table; `unknown` is for missing cells and levels never seen."""
    sizes = tuple(size + 1 for size in table.shape[:-1])
    whole = np.broadcast_to(unknown, (*sizes, len(unknown))).copy()
    whole[(slice(1, None),) * len(codes)] = table
    if len(codes) > 1:
        return LookUp(CombinedCode(codes, sizes), whole.reshape(-1, len(unknown)))
    return LookUp(codes[0], np.vstack([whole, unknown]) if isinstance(codes[0], LevelCode) else whole)


# -- words of a classifier

SHORTEST = 0.25
"""The square of a document's length, below any that has a word: what weighs least is log(2) squared, or .48."""


def word_terms(texts: Sequence[Key], member: WordModel, weight: float) -> list[Formula]:
    """The terms of texts in the scores of all classes, and the intercept."""
    scale = member.scale
    found: list[Formula] = [formula(weight * spread(member.coefficients[:1])[0])]
    each = scale.of_each(spread(member.coefficients)[1 : 1 + scale.width])
    for place, key in enumerate(texts):
        factors, coefficients = scale.factors[place][1:, None], weight * each[place][1:]
        if scale.counts:
            found.append(LookUp(WordsCode(key, "times"), coefficients * factors))
            continue
        words = LookUp(WordsCode(key, "log"), coefficients * factors)
        squares = largest([LookUp(WordsCode(key, "square"), factors**2), formula(SHORTEST)])
        found.append(words * Apply("exp", (log(squares / SHORTEST) * -0.5,)) * SHORTEST**-0.5)
        slopes = weight * spread(member.lengths)[place]
        if slopes.any():
            words = LookUp(WordsCode(key, "times"), (scale.factors[place][1:, None] > 0).astype(np.float64))
            length = (log(words + 1.0) - float(scale.middle[place])) / float(scale.spread[place])
            found.append(unless_missing(key, length * slopes))
    return found


def ensemble_terms(model: Fitted) -> tuple[EnsembleColumns, list[Formula]]:
    """The columns of an ensemble, and the terms of all its members, each times its weight."""
    assert model.ensemble is not None
    columns = EnsembleColumns(column_keys(model.schema), number_count(model.schema), model.texts)
    ensemble = model.ensemble
    terms: list[Formula] = [formula(ensemble.bias)]
    words: list[Formula] = []
    for name, member, weight in zip(ensemble.names, ensemble.members, ensemble.weights.tolist(), strict=True):
        own = words if isinstance(member, WordModel) else terms
        own += _member_terms(columns, name, member, weight)
    sparse = ensemble.sparse
    if sparse is not None:
        # The terms count by the share of the evidence that a row has, the rest comes from single columns.
        shares = np.tile(sparse.presence[:, None], len(spread(sparse.member.coefficients)[0]))
        known = [_known(columns, sparse.member.cuts, place, each) for place, each in enumerate(shares) if each.any()]
        share = Once(smallest(total(known), formula(1.0)))
        single = total(merge_terms(_additive(columns, sparse.member, 1.0)))
        terms = [total(merge_terms(terms)) * share, single * (formula(1.0) - share)]
    return columns, merge_terms([*terms, *words])


def _known(columns: EnsembleColumns, cuts: Binning, place: int, share: np.ndarray) -> Formula:
    if place >= len(columns.keys):
        return unless_missing(columns.texts[place - len(columns.keys)], formula(share[0]))
    if place < columns.numbers:
        return unless_missing(columns.keys[place], formula(share[0]))
    return look_up((columns.code(place, cuts),), np.tile(share, (cuts.sizes[place], 1)), np.zeros_like(share))


class EnsembleColumns(Struct, frozen=True):
    """The columns of the members, of which the first `numbers` are numbers, and those of text."""

    keys: tuple[Key, ...]
    numbers: int
    texts: tuple[Key, ...]

    def code(self, column: int, cuts: Binning) -> Code:
        """The code of a column: its interval, or its level."""
        if column < self.numbers:  # an interval holds its upper edge
            return IntervalCode(self.keys[column], np.nextafter(cuts.edges[column], np.inf))
        return LevelCode(self.keys[column], cuts.sizes[column])

    def tables(self, cuts: Binning, terms: Terms, table: np.ndarray) -> list[Formula]:
        """A look-up for every term; the first row of the table is for unknown cells."""
        found: list[Formula] = []
        for term, first in zip(terms.columns, terms.offsets.tolist(), strict=True):
            sizes = [cuts.sizes[column] for column in term]
            own = table[first : first + int(np.prod(sizes))].reshape(*sizes, table.shape[1])
            found.append(look_up(tuple(self.code(column, cuts) for column in term), own, table[0]))
        return found


def _member_terms(columns: EnsembleColumns, name: str, member: Member, weight: float) -> list[Formula]:
    if isinstance(member, Additive):
        return _additive(columns, member, weight)
    if isinstance(member, NormalsAndTables):
        found = [formula(weight * member.shares), *columns.tables(member.cuts, member.terms, weight * member.tables)]
        keys = tuple(columns.keys[place] for place in member.columns.tolist())
        cells = [_standard(member.block.scale, place, key) for place, key in enumerate(keys)]
        if isinstance(member.block, ShrunkBlock):
            form = {"mean": member.block.means, "covariance": member.block.covariances}
            return [*found, *([BlockDensity(form, keys, tuple(cells)) * weight] if keys else [])]
        deviations = np.sqrt(member.block.variances)
        for place, (key, cell) in enumerate(zip(keys, cells, strict=True)):
            bell = normal_density(cell, member.block.means[:, place], deviations[:, place])
            found.append(unless_missing(key, bell * weight))
        return found
    if isinstance(member, WordModel):
        return word_terms(columns.texts, member, weight)
    if isinstance(member, Aode):
        codes = tuple(columns.code(column, member.cuts) for (column,) in member.terms.columns)
        return [AodeMean(member, codes) * weight]
    raise DataError(
        f"the classifier is {name}, of which no formula is known: it cannot be exported. "
        f"Fit naive Bayes instead: {remedies.either('NaiveBayes().fit(X, y)', 'softcount fit --model naive-bayes')}"
    )


def _additive(columns: EnsembleColumns, member: Additive, weight: float) -> list[Formula]:
    coefficients = weight * spread(member.coefficients)
    found = [formula(coefficients[0]), *columns.tables(member.cuts, member.terms, coefficients[1:])]
    for place, slope in enumerate(coefficients[1 + member.terms.width :]):
        key = columns.keys[place]
        line = _standard(member.scale, place, key, FARTHEST) * slope
        found.append(unless_missing(key, line))
    return found


def _standard(scale: NumberScale, place: int, key: Key, most: float = LARGEST) -> Formula:
    """A number, or its logarithm, in standard deviations from the mean, at most `most` on either side."""
    floor, cell = float(scale.floor[place]), Cell(key)
    sign = float(np.sign(floor))
    value = log(largest([cell * sign, formula(abs(floor))])) * sign if floor else cell
    return clip((value - formula(scale.middle[place])) / formula(scale.spread[place]), most)


# -- rows to check an export with: drawn from the model, with missing cells and unseen levels

ROWS = 1_000
HOLES = 0.15
"""Share of missing cells in the second half of the rows."""
UNSEEN = "(never seen)"
WRONG = 1e-9
"""A difference of probabilities from which an export is refused: it is no rounding."""


class DrawnRows(Struct, frozen=True, eq=False):
    """Cells by column, None if missing, and the model's answer for each row: probabilities and place of the class."""

    cells: Mapping[Key, list[Any]]
    proba: np.ndarray | None
    places: np.ndarray


class ExportCheck(Struct, frozen=True):
    """The result of a check: where it ran, on how many rows, the largest difference, and rows of another class."""

    where: str
    rows: int
    difference: float
    otherwise: int
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        apart = f"probabilities differ by at most {self.difference:.1e}" if np.isfinite(self.difference) else ""
        told = "every row has the same class" if not self.otherwise else f"{self.otherwise:,} rows have another class"
        said = ", ".join(part for part in (apart, told) if part)
        return f"checked on {self.rows:,} rows drawn from the model, by {self.where}: {'; '.join((said, *self.notes))}"


def drawn_rows(model: Fitted) -> DrawnRows:
    """Rows of a fitted model, the same every time."""
    rng = np.random.default_rng(0)
    found = drawn(model, ROWS, None, rng)[0]
    columns: dict[Key, list[Any]] = {}
    for key in (spec.key for spec in model.schema.used if spec.key in found):
        cells = [cell.item() if isinstance(cell, np.generic) else cell for cell in found[key]]
        holes = rng.random(len(cells)) < HOLES
        holes[: len(cells) // 2] = False
        columns[key] = [None if hole else cell for cell, hole in zip(cells, holes, strict=True)]
    for key, cells in columns.items():
        cells[:] = [write_cell(model.schema[key].written, cell) for cell in cells]
        if not model.schema[key].kind.numeric and all(isinstance(x, str) for x in cells if x is not None):
            cells[-1] = UNSEEN
    # An array has a column for what is left out, too.
    whole = {spec.key: columns.get(spec.key, [None] * ROWS) for spec in model.schema.fields}
    with Threads(1) as threads:
        proba = model.proba(model.table(whole), threads)
    return DrawnRows(columns, proba, proba.argmax(axis=1))


def rows_around(centres: np.ndarray, keys: Sequence[Any]) -> dict[Key, list[Any]]:
    """Rows between and around centres, the same every time."""
    rng = np.random.default_rng(0)
    spread = np.maximum(centres.std(axis=0), 1e-3 * np.abs(centres).max(axis=0))
    own = centres[rng.integers(len(centres), size=ROWS)] + rng.normal(size=(ROWS, len(keys))) * spread
    return {key: own[:, place].tolist() for place, key in enumerate(keys)}


def compare(
    plan: ScoringPlan, rows: DrawnRows, where: str, places: np.ndarray, proba: np.ndarray | None
) -> ExportCheck:
    """Compare the answers of an export with those of the model; an error if they differ by more than rounding.

    A row that the export cannot score has a place below 0; at least half of the rows must be scored.
    """
    scored = places >= 0
    difference, near = float("nan"), np.zeros(len(places), dtype=bool)
    if rows.proba is not None and proba is not None:
        difference = float(np.abs(proba - rows.proba)[scored].max(initial=0.0))
        top = np.sort(rows.proba, axis=1)
        near = top[:, -1] - top[:, -2] < WRONG if top.shape[1] > 1 else near
    otherwise = int(((places != rows.places) & scored & ~near).sum())
    if scored.mean() < 0.5 or difference > WRONG or otherwise > (0 if proba is not None else len(places) // 100):
        raise DataError(
            f"what was exported does not say what the model says ({where}: probabilities differ by {difference:.1e}, "
            f"{otherwise} of {len(places)} rows have another class), so it was not written. "
            "Columns with offsets beyond 1e10 of their spread lose their digits elsewhere."
        )
    return ExportCheck(where, int(scored.sum()), difference, otherwise)
