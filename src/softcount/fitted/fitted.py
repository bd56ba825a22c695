"""A fitted model of a table: schema, parameters, and how it scores rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, TypeVar

import numpy as np
from msgspec.structs import replace

from softcount.core import remedies
from softcount.core.counts import ROOT
from softcount.core.lazy import sparse
from softcount.errors import DataError
from softcount.families import Family, Params
from softcount.families.base import family_title
from softcount.fitted.answers import Conditioned, Expect, absent_cells
from softcount.fitted.class_answers import ClassesGiven, expected_cells
from softcount.fitted.classes import anomaly_scores, describe, make_cards
from softcount.fitted.conditions import plain_row, refuse_several, refuse_words, warn_of_given
from softcount.fitted.derived_columns import Fills, find_derived_fields, join_fills, move_to_leads
from softcount.fitted.explain import Explanation, explain_rows, measure_departures, measure_known_influence
from softcount.fitted.scorers import Scorer
from softcount.learn.record import Learned
from softcount.models.nodes import refuse_families
from softcount.models.star import TILE
from softcount.run.local import Runner
from softcount.table import Chunk, Table, open_table
from softcount.table.schema import Key
from softcount.table.text_columns import Map


def complete_names(known: Sequence[Any], count: int) -> list[Any]:
    """Return names of `count` groups: the known ones, then numbers that are not among them."""
    names = [name.item() if isinstance(name, np.generic) else name for name in known]
    while len(names) < count:
        names.append(next(number for number in range(len(names), 2 * count + 1) if number not in names))
    return names


# The fitted model that the estimators and the command line wrap.

Finish = Callable[[np.ndarray], np.ndarray]
"""Turns (rows x groups) scores into results in place.

It returns one number per row, which is finite if the row is possible.
"""

DependentPairs = tuple[tuple[Key, Key, float], ...]
"""Pairs of columns, and their mutual information in nats given the class."""

FEW_ROWS, SMALL_SHARE = 5, 0.01
"""Minimum rows, and minimum share of all rows, for a group to count fully in the ranking of columns."""


FITTED: dict[str, type[Learned]] = {}
"""The class that answers for a model, by the name of the model. A file of another model is read as `Learned`."""
AnyFitted = TypeVar("AnyFitted", bound=type[Learned])


def register_fitted(model: str) -> Callable[[AnyFitted], AnyFitted]:
    """Register the class that answers for a model, so that a file of this model is read as one."""

    def register(fitted: AnyFitted) -> AnyFitted:
        FITTED[model] = fitted
        return fitted

    return register


class FittedTable(Learned, frozen=True, eq=False):
    """A fitted model of a table: the answers that estimators, commands, pages and servers call.

    A kind of model implements those that it can give. Rows are read by `run` or the threads, which are a `Runner`.
    """

    caches_answers: ClassVar[bool] = True
    """Whether an answer changes what the model keeps, so that threads may not ask it at once."""

    def table(self, data: Any, **how: Any) -> Table:
        """Open data with this model's schema."""
        return open_table(data, schema=self.schema, missing=self.schema.missing, **how)

    # -- answers

    def proba(self, table: Table, threads: Runner) -> np.ndarray:
        """Return (rows x classes) probabilities."""
        raise NotImplementedError

    def score_rows(self, table: Table, threads: Runner) -> np.ndarray:
        """Return the log-density of each row."""
        raise NotImplementedError

    def anomaly_scores(self, table: Table, runner: Runner) -> np.ndarray:
        """Return how much less likely each row is than usual, in nats."""
        raise NotImplementedError

    def explain(self, table: Table, against: Any = None, run: Map = map) -> Explanation:
        """Return what each column contributes to the log-odds of each row's class against another."""
        raise NotImplementedError

    def condition(self, given: Any) -> Conditioned:
        """Return the model given some values, which answers for columns and draws rows."""
        raise NotImplementedError

    @property
    def imputed_columns(self) -> list[Key]:
        """The columns whose missing cells can be imputed."""
        raise NotImplementedError

    def expected_cells(self, table: Table) -> Iterator[tuple[Chunk, Expect]]:
        """Yield every chunk with a function that imputes cells of it."""
        raise NotImplementedError

    # -- questions, in terms of these answers

    given_form: ClassVar[str] = "columns to values, such as {'age': 40}"

    def read_given(self, given: Any) -> dict[Key, Any]:
        if given is not None and not isinstance(given, Mapping):
            raise DataError(f"given is a mapping of {self.given_form}, not an object of type {type(given).__name__}.")
        return dict(given or {})

    def asked(self, of: Any) -> list[Key]:
        """Return the columns that are asked for; none if all are."""
        return [] if of is None else [of]

    def query(self, of: Any = None, given: Any = None, each: bool = False) -> Any:
        """Return category -> probability for a column given others, or the distribution of a number.

        Without `of`, answer for all columns. A given column has a value, a condition such as `between(1, 2)`, a range
        (1, 2) or a list of values. A network answers for several nodes jointly or, with `each`, one by one.
        """
        known = self.read_given(given)
        asked = self.asked(of)
        for name in asked:
            if name in known and not isinstance(known[name], Mapping):
                raise DataError(f"{name!r} is both `of` and given: leave it out of one.")
        shown = self.condition(known)
        if of is None:
            return shown.answers(key for key in shown.columns if key not in known)
        return shown.answers(asked) if each and asked != [of] else shown.answer(of)

    def log_probability(self, given: Any) -> float:
        """Return the log-probability of given values; of a density if they hold numbers."""
        return float(self.condition(given).log_probability)

    def sample(self, n: int, given: Any, rng: np.random.Generator) -> dict[str, Any]:
        """Draw new rows, as columns by name; given values are kept."""
        return self.condition(given).draw(n, rng)

    def fills(self, table: Table) -> Fills:
        """Return for each column with missing cells their rows (from 0) and the mean or the most probable category."""
        found: dict[Key, list[tuple[np.ndarray, np.ndarray]]] = {}
        shares: dict[Key, dict[int, np.ndarray]] = {}
        leads = {rule.lead for _, rule in find_derived_fields(self.schema)}
        for chunk, expect in self.expected_cells(table):
            for column in self.imputed_columns:
                rows = np.flatnonzero(absent_cells(self.schema, chunk, column))
                rows = np.setdiff1d(rows, table.outside.get(column, np.zeros(0)) - chunk.start)
                if len(rows):
                    values, own = expect(column, rows)
                    found.setdefault(column, []).append((rows + chunk.start, values))
                    if own is not None and column in leads:
                        shares.setdefault(column, {}).update(zip((rows + chunk.start).tolist(), own, strict=True))
        return join_fills(self.schema, table, found, shares)

    # -- facts

    @property
    def names(self) -> list[Any]:
        """The classes; empty if the model predicts none."""
        raise NotImplementedError

    @property
    def bag(self) -> bool:
        """Whether the table is one sparse block of counts."""
        return False

    @property
    def column_families(self) -> dict[Key, Family]:
        """The family of every column or block of columns."""
        raise NotImplementedError

    @property
    def column_titles(self) -> dict[Key, str]:
        """The name of the distribution of every column or block of columns."""
        return {key: family_title(family) for key, family in self.column_families.items()}

    @property
    def answering_model(self) -> str:
        """The name of the model that answers queries, draws rows and imputes missing cells."""
        return "Bayesian network"

    def dependence_warning(self, columns: Iterable[Key] | None = None) -> str | None:
        """Return a warning if the model may answer badly about these columns (None: all columns), else None."""
        return None


def fitted_table(model: Any) -> FittedTable | None:
    """Return the model itself, or the one that an estimator has fitted; None if neither is a model of a table."""
    found = getattr(model, "fitted_", model)
    return found if isinstance(found, FittedTable) else None


@register_fitted("star")
class Fitted(FittedTable, frozen=True, eq=False):
    """A fitted model of known classes, or of classes that were found."""

    scorer: Scorer = Scorer()
    """Scores the classes; it may be learned for that alone."""
    dependent: DependentPairs | None = None
    """Pairs of columns that depend strongly on each other given the class, strongest first; None if not measured."""

    caches_answers: ClassVar[bool] = False

    def suitable_estimator(self) -> tuple[str, dict[str, Any]]:
        if self.classes is None:
            return "Mixture", {"n_components": self.n_groups, "prior": self.prior, "estimate": self.estimate}
        return self.scorer.estimator, self.scorer.estimator_settings(self)

    def with_notes(self, *notes: str) -> Fitted:
        return replace(self, notes=[*self.notes, *notes])

    # -- what was learned

    @property
    def params(self) -> dict[Key, Params]:
        return self.model.public(self.estimates)

    @property
    def levels(self) -> dict[Key, Sequence[object]]:
        """Categories of discrete columns and words of text columns, in the order of their probabilities."""
        found: dict[Key, Sequence[object]] = {}
        for leaf in self.model.leaves:
            levels = leaf.levels_of()
            if levels is not None:
                found[leaf.key] = list(levels)
            elif leaf.family.facts.words:
                found[leaf.key] = leaf.setting.levels
        return found

    @property
    def families(self) -> dict[Key, Family]:
        return {x.key: x.family for x in self.model.leaves}

    @property
    def column_families(self) -> dict[Key, Family]:
        return {leaf.key: leaf.family for leaf in self.model.leaves if leaf.columns}

    @property
    def bag(self) -> bool:
        return any(not leaf.columns for leaf in self.model.leaves)

    @property
    def texts(self) -> tuple[Key, ...]:
        """The keys of all bags of words: texts in their order, or the one block of a sparse table."""
        return tuple(spec.key for spec in self.schema.stored("bags")) or tuple(
            leaf.key for leaf in self.model.leaves if not leaf.columns
        )

    @property
    def n_rows(self) -> float:
        return self.counts.rows

    @property
    def group_rows(self) -> np.ndarray:
        """The number of rows counted in each group; fractional for soft memberships."""
        return np.asarray(self.counts.arrays[ROOT].value, dtype=float)

    @property
    def row_shares(self) -> np.ndarray:
        """The share of each group in the rows, without a prior."""
        rows = self.group_rows
        return rows / rows.sum() if rows.sum() > 0 else self.shares

    @property
    def names(self) -> list[Any]:
        """Names of the groups: known classes first, the others numbered from 0."""
        known = (self.named or []) if self.classes is None else self.classes
        return complete_names(known, self.n_groups)

    def group_of(self, name: Any) -> int:
        if name not in self.names:
            raise DataError(f"there is no class {name!r}. The classes are: {', '.join(map(str, self.names))}.")
        return self.names.index(name)

    def posterior(self, key: Key) -> Any:
        """Return the posterior of one column's parameters in every group, as a conjugate object."""
        leaf = self.model.nodes[key]
        return leaf.family.posterior(self.counts.arrays[key], self.imagined.hypers[key], leaf.setting)

    def influence(self) -> list[tuple[Key, float]]:
        """Rank columns by their influence on the classes, largest first.

        With known classes, the value is the reduction of the log-loss in nats per row (`known_influence`). Otherwise it
        is the divergence of the groups from the whole table in nats, summed over the groups. A group with less than 1 %
        of the rows, or fewer than five, counts in proportion to its rows, because a few rows may be outliers.
        """
        if self.classes is not None:
            return measure_known_influence(self)
        rows = self.group_rows
        tiny = rows < max(FEW_ROWS, SMALL_SHARE * rows.sum())
        worth = np.where(tiny, np.minimum(1.0, rows / max(rows.mean(), 1e-300)), 1.0)
        values = [(key, float(far @ worth)) for key, far in measure_departures(self).items()]
        return sorted(values, key=lambda pair: -pair[1])

    # -- answers

    explain = explain_rows
    anomaly_scores = anomaly_scores
    cards = make_cards
    describe = describe
    expected_cells = expected_cells

    @property
    def imputed_columns(self) -> list[Key]:
        return [column for leaf in self.model.leaves for column in leaf.columns]

    def asked(self, of: Any) -> list[Key]:
        if isinstance(of, list | set | dict):
            raise DataError(
                f"query: {of!r} names several columns, but this model answers for one. Leave `of` out to get each "
                f"column. A BayesNet answers for several jointly."
            )
        return super().asked(of)

    def condition(self, given: Any) -> ClassesGiven:
        return ClassesGiven.of(self, move_to_leads(self.schema, self.read_given(given)))

    @property
    def answering_model(self) -> str:
        return f"mixture of {self.n_groups} classes" if self.classes is None else "naive Bayes"

    def dependence_warning(self, columns: Iterable[Key] | None = None) -> str | None:
        wanted = None if columns is None else set(columns)
        found = [pair for pair in self.dependent or () if wanted is None or wanted >= {pair[0], pair[1]}]
        if not found:
            return None
        first, second, nats = found[0]
        more = "" if len(found) == 1 else f" and {len(found) - 1} more {'pair' if len(found) == 2 else 'pairs'}"
        remedy = remedies.either("JointModel().fit(table)", "fit --model joint")
        return (
            f"naive Bayes takes columns as independent given the class, but {first!r} and {second!r} ({nats:.2f} nats)"
            f"{more} depend on each other: answers that involve them can be far off. Ask a model of all columns: "
            f"{remedy}"
        )

    # -- scoring

    def log_proba(self, table: Table, threads: Runner) -> np.ndarray:
        """Return (rows x groups) log-probabilities, calibrated if the model has a calibration."""
        return self.scorer.log_proba(self, table, threads)

    def proba(self, table: Table, threads: Runner) -> np.ndarray:
        """Return (rows x groups) probabilities, calibrated if the model has a calibration."""
        return self.scorer.proba(self, table, threads)

    def score_rows(self, table: Table, threads: Runner) -> np.ndarray:
        """Return the log-density of each row, summed over the groups."""
        refuse_families(self.model.leaves, "has no density")
        return self.score_each(table, threads, None)

    def joint_of(self, chunk: Chunk, compiled: Any) -> np.ndarray:
        """Return (rows x groups) logs of share times density of a chunk, up to a constant per row."""
        ready = self.model.prepare(chunk, base=False)
        return self.scorer.score(self, ready, compiled, slice(0, chunk.n_rows))

    def log_joint(self, table: Table, threads: Runner) -> np.ndarray:
        """Return (rows x groups) logs of share times density, up to a constant per row."""
        return self.score_each(table, threads, lambda joint: np.zeros(len(joint)))

    def score_each(self, table: Table, threads: Runner, finish: Finish | None, plain: bool = False) -> np.ndarray:
        """Score every chunk in tiles and finish each tile in place; without `finish`, return each row's log-density.

        With `plain`, uncalibrated probabilities are needed, which a kernel may compute directly.
        """
        compiled = self.model.compile(self.estimates) if finish is None else self.scorer.compile(self)
        shape = () if finish is None else (self.n_groups,)
        whole = None if table.n_rows is None else np.empty((table.n_rows, *shape))

        def work(task: Callable[[], Chunk]) -> np.ndarray:
            chunk = task()
            places = slice(chunk.start, chunk.start + chunk.n_rows)
            out = np.empty((chunk.n_rows, *shape)) if whole is None else whole[places]
            ready = self.model.prepare(chunk, base=finish is None)
            evidence = self.model.posterior(ready, compiled, out) if plain else None
            if evidence is not None:
                self.refuse_impossible(chunk, np.isfinite(evidence))
                return out
            for a in range(0, chunk.n_rows, TILE):
                rows = slice(a, min(a + TILE, chunk.n_rows))
                if finish is None:
                    out[rows] = self.model.kernels.normalise(self.model.score(ready, compiled, rows))
                else:
                    joint = self.scorer.score(self, ready, compiled, rows, out[rows])
                    self.refuse_impossible(chunk, np.isfinite(finish(joint)), a)
            if finish is None:
                out += ready.base
                out[np.isnan(out)] = -np.inf  # terms of finite cells near 1e308 overflow
            return out

        parts = list(threads.map(work, table.tasks()))
        if whole is not None:
            return whole
        return np.concatenate(parts) if parts else np.empty((0, *shape))

    def refuse_impossible(self, chunk: Chunk, possible: np.ndarray, first: int = 0) -> None:
        """Raise at the first row, of those that begin at `first`, that is impossible in every group."""
        if possible.all():
            return
        row = first + int(np.argmin(possible))
        values = chunk.reals[row]
        if np.isinf(values).any():
            key = self.schema.stored("reals")[int(np.argmax(np.isinf(values)))].key
            raise DataError(
                f"column {key!r}, row {chunk.start + row + 1}: Input contains infinity, which no model can score."
            )
        raise DataError(
            f"row {chunk.start + row + 1} is impossible under every class (probability zero), so no class can be "
            f"preferred. Fit with a prior ({remedies.estimate_mean()}) so that nothing is impossible."
        )

    def chunks(self, table: Table) -> Iterator[Chunk]:
        for task in table.tasks():
            yield task()

    def single(self, given: Mapping[Key, Any], ways: Mapping[Key, Sequence[Any]] | None = None) -> Chunk:
        """Return one row with the given values and all other cells missing; warn about unseen values.

        With `ways`, return one row for every cell of these columns.
        """
        known = [spec.key for spec in self.schema.used]
        for key in given:
            if key not in known:
                hint = remedies.similar(key, known, f"It has: {', '.join(map(str, known))}.", any_case=True)
                raise DataError(f"the model has no column {key!r}. {hint}")
        if self.bag:
            nothing = np.zeros((1, 0))
            empty = sparse.csr_matrix((1, len(self.model.leaves[0].setting.levels)))
            return Chunk(0, 1, nothing, nothing.astype(np.uint8), nothing.astype(np.int32), (empty,))
        refuse_several(self.schema, given)
        plain = None if ways else plain_row(self.schema, given)
        if plain is not None:
            return plain
        rows = len(next(iter(ways.values()))) if ways else 1
        table = self.table({key: [given.get(key)] * rows for key in known} | dict(ways or {}))
        try:
            chunk = next(self.chunks(table))
        except DataError:  # about a row of a table, which the user did not give
            refuse_words(self, given)
            raise
        warn_of_given(table, given)
        return chunk
