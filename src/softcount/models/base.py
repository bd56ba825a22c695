"""The interface between models and learning: expected counts from rows, and parameters from counts."""

from __future__ import annotations

from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias, TypeVar

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from softcount.core import remedies
from softcount.core.counts import Counts
from softcount.errors import DataError
from softcount.models.nodes import Bundle, Imagined, Node, Nodes, Params
from softcount.run.local import Rows, Runner, Threads, rows_here
from softcount.table.chunk import Chunk
from softcount.table.schema import Schema

if TYPE_CHECKING:
    from softcount.models.star import Star

ClassModel: TypeAlias = "Star"
"""A model of one class variable, known, hidden or partly known. Learning uses this name and imports no model."""
Assign = Callable[[np.ndarray, int], None]
"""Turns posteriors of rows into memberships, in place. The second argument is the number of the first row."""
ASSIGNED = "(assigned)"
"""Name, among the notes of counts, of the log-likelihood of the rows together with their assigned groups."""


class FiledStructure(Struct, frozen=True):
    """Structure of a model of one group, which follows from its nodes."""

    groups: Literal[1] = 1


class Model:
    """The structure of a model: frozen, small when pickled. Parameters and rows are passed in."""

    name: ClassVar[str] = ""
    """Name of the model in a model file."""
    one_class: ClassVar[bool] = False
    """Whether the groups of every node are the classes of one variable."""
    nodes: Nodes

    @abstractmethod
    def prepare(self, chunk: Chunk, base: bool = True) -> Any:
        """Prepare a part of the rows, once for all passes. Without `base` the likelihood is up to a constant."""

    @abstractmethod
    def compile(self, params: Params) -> Any:
        """Convert the parameters into the form that `expect` takes, once per pass."""

    @abstractmethod
    def expect(self, compiled: Any, ready: Any, assign: Assign | None = None) -> Counts:
        """Return expected counts and log-likelihood of a part, under internal names that `gathered` understands.

        With `assign`, the counts are those of the memberships it makes, and the note `ASSIGNED` holds the
        log-likelihood of rows and groups together.
        """

    def gathered(self, counts: Counts) -> Counts:
        """Convert counts of all rows to counts under the names of the bundles."""
        return counts

    def arranged(self, ready: list[Any]) -> list[Any]:
        """Return the rows in parts of a better length for many passes."""
        return ready

    def worth_threads(self) -> bool:
        return False

    def group_shares(self, params: Params, bundle: Bundle) -> np.ndarray:
        """Return the approximate share of rows in each group of a bundle, which weights steps of its parameters."""
        return np.full(bundle.groups, 1.0 / bundle.groups)

    def by_group(self, params: Params) -> np.ndarray:
        """Return (groups x numbers) parameters.

        Permuting groups gives the same model; one row if their order matters.
        """
        return np.concatenate([part.ravel() for own in params.bundles.values() for part in own.values()])[None]

    def cells_per_row(self) -> int:
        """Return the work per row, in cells times groups."""
        return sum(bundle.groups * len(bundle.nodes) for bundle in self.nodes.bundles)

    def impossible_row(self, compiled: Any, ready: Any) -> DataError | None:
        """Return an error that names a row of probability zero in a part; None if no row is known."""
        return None

    filed_as: ClassVar[type[Struct]] = FiledStructure
    """Record of its structure in a model file, without schema, nodes and parameters."""

    def filed(self) -> Struct:
        return FiledStructure()

    @classmethod
    def from_filed(cls, filed: Any, schema: Schema, nodes: tuple[Node, ...]) -> Model:
        """Return the model of a record. Only the types of the record have been checked."""
        raise NotImplementedError


MODELS: dict[str, type[Model]] = {}
Kind = TypeVar("Kind", bound=type[Model])


def register_model(model: Kind) -> Kind:
    """Register a model by its name, for the model file and for the laws in the tests."""
    MODELS[model.name] = model
    return model


class DeadEnd(DataError):
    """No path of states can have made a sequence. `row` is the step, counted over all sequences, that shows it."""

    def __init__(self, row: int, place: str | None = None) -> None:
        super().__init__(
            f"{place or f'step {row + 1} of all'}: no path of states leads here (probability zero). Allow more "
            f"transitions, or use a prior ({remedies.estimate_mean()}) so that nothing else is impossible."
        )
        self.row = row

    def at(self, place: str) -> DeadEnd:
        return DeadEnd(self.row, place)


class Problem(Struct, frozen=True, eq=False, dict=True):
    """Model, prior counts and prepared rows: the input of the EM driver, of initialisation and of searches."""

    model: Model
    imagined: Imagined
    ready: Rows | Sequence[Any]
    runner: Runner = field(default_factory=lambda: Threads(1))
    exact: bool = True  # false if the rows are a sample of the table
    log: Any = None  # the checkpoint that records EM runs over these rows

    @cached_property
    def _priors(self) -> deque[tuple[Params, float]]:
        return deque(maxlen=2)

    @property
    def nodes(self) -> Nodes:
        return self.model.nodes

    @cached_property
    def rows(self) -> Rows:
        """The rows in parts of a good length for many passes."""
        return rows_here(self.ready, self.runner).arranged(self.model.arranged)

    @property
    def n_rows(self) -> int:
        return rows_here(self.ready, self.runner).n_rows

    @property
    def work(self) -> int:
        return self.n_rows * self.model.cells_per_row()

    def expected(self, params: Params, assign: Assign | None = None) -> Counts:
        return expected(self.model, params, self.rows, self.runner, assign)

    def impossible(self, params: Params) -> DataError:
        found = self.rows.each(partial(find_impossible, self.model, params))
        error: DataError = next(filter(None, found))
        return error

    def estimate(self, counts: Counts) -> Params:
        return self.nodes.estimate(counts, self.imagined)

    def log_prior(self, params: Params) -> float:
        """Return the log-prior.

        The last two results are cached, because a step needs those of two sets of parameters.
        """
        for known, found in self._priors:
            if known is params:
                return found
        self._priors.append((params, self.nodes.log_prior(params, self.imagined)))
        return self._priors[-1][1]

    def bound(self, counts: Counts, params: Params) -> float:
        """Return the lower bound without the entropy of the memberships: the quantity that an M-step increases."""
        return self.nodes.completed(counts, params) + self.log_prior(params)

    def units(self, counts: Counts) -> float:
        """Return the part of the objective that depends on the units of the columns, in units of their deviations."""
        return self.nodes.log_units(counts, self.imagined)


def expected(
    model: Model, params: Params, rows: Rows | Sequence[Any], runner: Runner, assign: Assign | None = None
) -> Counts:
    step = CompiledStep(model, params, partial(type(model).expect, assign=assign), model.worth_threads())
    return model.gathered(rows_here(rows, runner).total(step))


class CompiledStep(Struct, frozen=True):
    """A step over prepared parts. The parameters are compiled once per pass and process."""

    model: Any
    params: Params
    work: Callable[[Any, Any, Any], Any]
    threads: bool = True

    def begin(self) -> Callable[[Any], Any]:
        return partial(self.work, self.model, self.model.compile(self.params))


def find_impossible(model: Model, params: Params, ready: Any) -> DataError | None:
    """Return the error for a row of probability zero in a prepared part, or None."""
    compiled = model.compile(params)
    possible = np.isfinite(model.expect(compiled, ready).log_likelihood)
    return None if possible else impossible_error(model, compiled, ready)


def impossible_error(model: Model, compiled: Any, ready: Any) -> DataError:
    unknown = DataError("the start gives some row probability zero. Start from probabilities above zero.")
    return model.impossible_row(compiled, ready) or unknown


def tally_equally(model: ClassModel, ready: Any) -> Counts:
    return model.tally_members(ready, np.full((ready.n_rows, model.groups), 1.0 / model.groups))


def with_weight(rows: Any, factor: float) -> Any:
    weights = np.ones(rows.n_rows) if rows.weights is None else rows.weights
    return replace(rows, weights=weights * factor)
