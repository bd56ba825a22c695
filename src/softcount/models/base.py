"""What learning knows of a model: expected counts from rows, and parameters from counts."""

from __future__ import annotations

from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from softcount.core import remedies
from softcount.core.counts import Counts
from softcount.errors import DataError
from softcount.families import Params as Own
from softcount.models.nodes import Bundle, Imagined, Node, Nodes, Params
from softcount.run.local import Runner, Threads
from softcount.run.rows import Rows, Step, rows_here
from softcount.table import Settled
from softcount.table.chunk import Chunk
from softcount.table.schema import Key, Schema

if TYPE_CHECKING:
    from softcount.models.nodes import Params

HERE = __name__


def expecting(model: Model, params: Params, assign: Assign | None = None) -> Step:
    """The step whose total are the expected counts, under the model's own names."""
    return Step(f"{HERE}:expect", (model, params, assign), model.worth_threads())


def expect(state: tuple[Model, Params, Assign | None]) -> Callable[[Any], Counts]:
    """Expected counts of a prepared part."""
    model, params, assign = state
    return partial(_expected, model, model.compile(params), assign)


def _expected(model: Model, compiled: Any, assign: Assign | None, ready: Any) -> Counts:
    return model.expect(compiled, ready, assign)


def finding_impossible(model: Model, params: Params) -> Step:
    """The step that finds rows of probability zero."""
    return Step(f"{HERE}:find_impossible", (model, params), model.worth_threads())


def find_impossible(state: tuple[Model, Params]) -> Callable[[Any], DataError | None]:
    """The error where a prepared part has such a row, or nothing."""
    model, params = state
    return partial(_impossible, model, params, model.compile(params))


def _impossible(model: Model, params: Params, compiled: Any, ready: Any) -> DataError | None:
    fits = np.isfinite(model.expect(compiled, ready).log_likelihood)
    return None if fits else model.impossible(params, [ready])


def preparing(model: Model) -> Step:
    """The step that makes chunks what the model wants them to be."""
    return Step(f"{HERE}:prepare", model)


def prepare(model: Model) -> Callable[[Any], Any]:
    """A chunk as the model wants it."""
    return model.prepare


def arranging(model: Model) -> Step:
    """The step that puts prepared rows into parts of a good length for many passes."""
    return Step(f"{HERE}:arrange", model)


def arrange(model: Model) -> Callable[[Sequence[Any]], Iterable[Any]]:
    """Prepared parts in a better length."""
    return partial(_arranged, model)


def _arranged(model: Model, ready: Sequence[Any]) -> Iterable[Any]:
    return model.arranged(list(ready))


def counting_equally(model: ClassModel) -> Step:
    """The step whose total are the counts of rows that are shared equally between the groups."""
    return Step(f"{HERE}:count_equally", model)


def count_equally(model: ClassModel) -> Callable[[Any], Counts]:
    """The counts of prepared rows, each shared equally between the groups."""
    return partial(_equally, model)


def _equally(model: ClassModel, ready: Any) -> Counts:
    return model.tally_members(ready, np.full((ready.n_rows, model.groups), 1.0 / model.groups))


def tallying(model: ClassModel) -> Step:
    """The step whose total are the counts of rows of known class."""
    return Step(f"{HERE}:tally", model)


def tally(model: ClassModel) -> Callable[[Any], Counts]:
    """The counts of prepared rows of known class."""
    return model.tally


def weighing(factor: float) -> Step:
    """The step that makes rows weigh so many times as much."""
    return Step(f"{HERE}:weigh", factor)


def weigh(factor: float) -> Callable[[Any], Any]:
    """Rows, encoded or prepared, that weigh so many times as much."""
    return partial(with_weight, factor=factor)


def with_weight(rows: Any, factor: float) -> Any:
    """The same for some rows."""
    weights = np.ones(rows.n_rows) if rows.weights is None else rows.weights
    return replace(rows, weights=weights * factor)


# What learning knows of a model: expected counts from rows, and parameters from counts.

Assign = Callable[[np.ndarray, int], None]
"""Turns rows' posteriors into memberships, in place; told the number of the first row."""
ASSIGNED = "(assigned)"
"""The name, among the notes of counts, of the log-likelihood of the rows together with the groups they were put in."""


class Model:
    """Structure only: frozen, pickles small. Parameters and rows are passed in."""

    name: ClassVar[str] = ""
    """What it is called in a model file."""
    nodes: Nodes

    @abstractmethod
    def prepare(self, chunk: Chunk, base: bool = True) -> Any:
        """A part of the rows as the model wants them, made once; without `base` its likelihood is up to a constant."""

    @abstractmethod
    def compile(self, params: Params) -> Any:
        """The parameters as the model wants them, made once a pass."""

    @abstractmethod
    def expect(self, compiled: Any, ready: Any, assign: Assign | None = None) -> Counts:
        """Expected counts and log-likelihood of a part of the rows.

        With `assign` the counts are those of the memberships it makes, and the notes say, as `ASSIGNED`, how likely
        rows and groups are together. Their names are the model's own as long as `gathered` understands them.
        """

    def gathered(self, counts: Counts) -> Counts:
        """Counts of all rows, under the names of the bundles."""
        return counts

    def arranged(self, ready: list[Any]) -> list[Any]:
        """The same rows in parts of a better length for many passes."""
        return ready

    def worth_threads(self) -> bool:
        """Whether two runner do not wait for each other."""
        return False

    def group_shares(self, params: Params, bundle: Bundle) -> np.ndarray:
        """About which share of the rows each group of a bundle has: what a step of its parameters weighs."""
        return np.full(bundle.groups, 1.0 / bundle.groups)

    def by_group(self, params: Params) -> np.ndarray:
        """(groups x numbers): parameters whose rows in any order are the same model; one row where order matters."""
        return np.concatenate([part.ravel() for own in params.bundles.values() for part in own.values()])[None]

    def cells_per_row(self) -> int:
        """How much work a row is, in cells times groups."""
        return sum(bundle.groups * len(bundle.nodes) for bundle in self.nodes.bundles)

    def impossible(self, params: Params, ready: Sequence[Any]) -> DataError:
        """The error where the parameters of the start give some row probability zero."""
        return DataError("the start gives some row probability zero. Start from probabilities above zero.")

    def document(self) -> dict[str, Any]:
        """What a model file needs beside schema, nodes and parameters, as JSON holds it."""
        return {}

    @classmethod
    def from_document(cls, document: Mapping[str, Any], schema: Schema, nodes: tuple[Node, ...]) -> Model:
        """Back from a model file, trusting nothing that is read."""
        raise NotImplementedError


MODELS: dict[str, type[Model]] = {}
Kind = TypeVar("Kind", bound=type[Model])


def register_model(model: Kind) -> Kind:
    """Make a model known by its name, to the model file and to the laws in the tests."""
    MODELS[model.name] = model
    return model


class ClassModel(Model):
    """A model of one class, known, hidden or both, that says of each row how likely every group is."""

    schema: Schema
    groups: int
    leaves: tuple[Node, ...]
    unknown_weight: float
    kernels: Any

    @abstractmethod
    def tally(self, ready: Any) -> Counts:
        """Counts of rows whose class is known; the others are passed over. Classes yet unknown make room."""

    @abstractmethod
    def tally_members(self, ready: Any, memberships: np.ndarray) -> Counts:
        """Counts under given memberships (rows x groups)."""

    @abstractmethod
    def score(self, ready: Any, compiled: Any, rows: slice, out: np.ndarray | None = None) -> np.ndarray:
        """(rows x groups) log of share times density, without the part no group changes."""

    @abstractmethod
    def memberships(self, ready: Any, compiled: Any, rows: slice | None = None) -> np.ndarray:
        """(rows x groups) probability of every group given the row, whatever its label."""

    def posterior(self, ready: Any, compiled: Any, out: np.ndarray) -> np.ndarray | None:
        """The same of all rows of a chunk written to `out`; their log evidence comes back, or None: ask for scores."""
        return None

    @abstractmethod
    def compile(self, params: Params, contrast: bool = False) -> Any:
        """The parameters as the model wants them; with `contrast` all that tells groups apart."""

    @abstractmethod
    def score_parts(self, compiled: Any, ready: Any) -> dict[Key, np.ndarray]:
        """Each leaf's own part of what `score` adds up, by the same stacks: (rows x groups) log-densities."""

    @abstractmethod
    def with_leaves(
        self, leaves: tuple[Node, ...], groups: int | None = None, schema: Schema | None = None
    ) -> ClassModel:
        """The same model of other leaves, and of other groups or another schema where they are given."""

    @abstractmethod
    def in_order(self, counts: Counts, settled: Settled, groups: int) -> Counts:
        """What was counted while levels and classes were still being met, in their settled order."""

    @abstractmethod
    def public(self, params: Params) -> dict[Key, Own]:
        """Every leaf's parameters in the user's units, groups first."""

    @abstractmethod
    def regrouped(self, params: Params, order: np.ndarray) -> Params:
        """Some of the groups, in this order; their shares again add up to one."""

    @abstractmethod
    def params(self, shares: np.ndarray, leaves: Mapping[Key, Own]) -> Params:
        """Parameters from the shares of the groups and those of every leaf."""

    def named(self, counts: Counts) -> Counts:
        """What rows were counted as, under the names of the nodes: what is saved, merged and shown."""
        return self.nodes.unstacked(self.gathered(counts))

    def products(self, ready: Any) -> Any:
        """The rows as one table of features, for many sets of parameters at once; None where scores are no products."""
        return None

    @abstractmethod
    def is_sparse(self, leaf: Node) -> bool:
        """Whether a leaf is kept as the rows of a sparse matrix."""

    @abstractmethod
    def column(self, leaf: Node, chunk: Chunk) -> Any:
        """One leaf's own values in a chunk: codes, numbers, a block of numbers, or sparse counts."""


class GraphModel(Model):
    """A model whose nodes depend on each other, some of them hidden or not seen in every row."""

    schema: Schema

    @property
    @abstractmethod
    def has_hidden(self) -> bool:
        """Whether some node is never seen, so that EM may come to several tops."""

    @abstractmethod
    def seen(self, ready: Any) -> Counts:
        """Counts, by node, of what rows show without anything being guessed."""

    def likelihood_told(self, counts: Counts, params: Params) -> float | None:
        """The log-likelihood of rows that show everything, by the counts alone; None where they do not tell."""
        return None

    @abstractmethod
    def shown(self, ready: Any) -> Counts:
        """The same with numbers of unknown group in the first one, so that all of them are there: for priors."""

    @abstractmethod
    def holes_in(self, ready: Any) -> bool:
        """Whether EM has something to guess in these rows."""

    def unseen_notes(self, counts: Counts) -> list[str]:
        """What is to be said of groups that no row is in."""
        return []

    def guessed_notes(self, ready: Sequence[Any]) -> list[str]:
        """What is to be said of how EM guessed in these rows, where that was not exact."""
        return []

    @abstractmethod
    def drawn_start(self, ready: Any, imagined: Imagined, rng: np.random.Generator) -> Params:
        """Parameters to climb from, in which the levels of what is hidden differ; nothing is impossible in them."""


class DeadEnd(DataError):
    """No path of states can have made a sequence; `row` is the step, counted over all sequences, at which it shows."""

    def __init__(self, row: int, place: str | None = None) -> None:
        super().__init__(
            f"{place or f'step {row + 1} of all'}: no path of states can have come here (probability zero). Allow more "
            f"transitions, or let a prior imagine rows ({remedies.estimate_mean()}) so that nothing else is impossible."
        )
        self.row = row

    def at(self, place: str) -> DeadEnd:
        """The same, saying where that is."""
        return DeadEnd(self.row, place)


class StateModel(Model):
    """A model of sequences with a hidden state at every step."""

    schema: Schema
    leaves: tuple[Node, ...]
    kernels: Any
    links: Any
    """Which states may come first, which may follow each, and which share what they show."""
    star: ClassModel
    """What states show, as a model of single steps."""

    @property
    @abstractmethod
    def states(self) -> int:
        """How many states there are."""

    @property
    @abstractmethod
    def groups(self) -> int:
        """How many different things states show."""

    @property
    @abstractmethod
    def sharing(self) -> np.ndarray:
        """(states x groups): 1 where a state shows that."""

    @abstractmethod
    def counts_under(self, ready: Any, members: np.ndarray) -> Counts:
        """Counts under given (steps x states) memberships, a step's state being independent of the one before."""

    @abstractmethod
    def with_steps(self, shown: Counts, firsts: np.ndarray, nexts: np.ndarray) -> Counts:
        """Counts of what is shown, by stack, with those of first states and of transitions beside them."""

    @abstractmethod
    def step_params(self, first: np.ndarray, following: np.ndarray) -> dict[Key, Own]:
        """Probabilities of first states and transitions as the parameters of their nodes."""

    @abstractmethod
    def occupied(self, counts: Counts) -> np.ndarray:
        """How many steps each state has, by counts under the names of the nodes."""

    @abstractmethod
    def reordered(self, params: Params, order: np.ndarray) -> Params:
        """The same with its states, which are told apart by nothing else, in this order."""

    @abstractmethod
    def reordered_counts(self, counts: Counts, order: np.ndarray) -> Counts:
        """Counts by node in the same order of states."""


class Problem(Struct, frozen=True, eq=False, dict=True):
    """Model, imagined counts and prepared rows: all that the driver, the starts and the search ever see."""

    model: Model
    imagined: Imagined
    ready: Rows | Sequence[Any]
    runner: Runner = field(default_factory=lambda: Threads(1))
    exact: bool = True  # false where the rows are a sample of the table
    log: Any = None  # where climbs over these rows are taken down

    @cached_property
    def _priors(self) -> deque[tuple[Params, float]]:
        return deque(maxlen=2)

    @property
    def nodes(self) -> Nodes:
        return self.model.nodes

    @cached_property
    def rows(self) -> Rows:
        """The rows in parts of a good length for many passes."""
        return rows_here(self.ready, self.runner).arranged(arranging(self.model))

    @property
    def n_rows(self) -> int:
        return rows_here(self.ready, self.runner).n_rows

    @property
    def work(self) -> int:
        """Rows times columns times groups."""
        return self.n_rows * self.model.cells_per_row()

    def expected(self, params: Params, assign: Assign | None = None) -> Counts:
        """Expected counts of all rows under these parameters."""
        return expected(self.model, params, self.rows, self.runner, assign)

    def impossible(self, params: Params) -> DataError:
        """The error where these parameters give some row probability zero."""
        found = (error for error in self.rows.each(finding_impossible(self.model, params)) if error is not None)
        return next(found, None) or self.model.impossible(params, [])

    def estimate(self, counts: Counts) -> Params:
        """The M-step."""
        return self.nodes.estimate(counts, self.imagined)

    def held(self, params: Params) -> Params:
        """The parameters with the fixed ones in their place."""
        return self.nodes.held(params, self.imagined)

    def log_prior(self, params: Params) -> float:
        """The prior's part of the objective; a step asks for that of two sets of parameters, some of them twice."""
        for known, found in self._priors:
            if known is params:
                return found
        self._priors.append((params, self.nodes.log_prior(params, self.imagined)))
        return self._priors[-1][1]

    def bound(self, counts: Counts, params: Params) -> float:
        """The lower bound, but for the memberships' entropy: what an M-step raises."""
        return self.nodes.completed(counts, params) + self.log_prior(params)

    def slope(self, counts: Counts, params: Params) -> Params | None:
        return self.nodes.slope(counts, params, self.imagined)

    def units(self, counts: Counts) -> float:
        """What the units of the columns add to the objective, each column's deviation being its unit."""
        return self.nodes.log_units(counts) - self.nodes.log_spreads(counts, self.imagined)


def expected(
    model: Model, params: Params, rows: Rows | Sequence[Any], runner: Runner, assign: Assign | None = None
) -> Counts:
    """Expected counts of these rows, by bundle."""
    return model.gathered(rows_here(rows, runner).total(expecting(model, params, assign)))
