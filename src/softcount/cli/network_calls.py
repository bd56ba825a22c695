"""Learning a network and putting tables to it, as the commands want it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from softcount.cli.named_columns import suggestion
from softcount.cli.network_options import WORDS, NetRequest, is_network_file
from softcount.cli.options import BDEU
from softcount.errors import DataError
from softcount.records import dataclass
from softcount.run.progress import Tell, keep_quiet, starts_told

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

    from softcount.cli.data_input import InputFormat
    from softcount.cli.library_calls import FitRequest
    from softcount.evaluate.scores import Evaluation
    from softcount.fitted.fitted_net import FittedNet
    from softcount.fitted.net_rows import ExplainedLevels
    from softcount.models.declared import Declared
    from softcount.networks.graph import Graph
    from softcount.report.answer_page import ExplainedRow
    from softcount.run.threads import Threads
    from softcount.table import Chunk, Key, Table


# -- learning

JOINT_NETWORK = "network"
FINE_INTERVALS = 8
"""Intervals that --model network cuts a number into: with 5, an interval often holds two modes of different classes."""


def fit_net(request: FitRequest, tell: Tell) -> tuple[FittedNet, Evaluation | None, int]:
    """The network that was asked for, how it tells the class of unseen rows (None: not tried), and how many rows."""
    from softcount.cli.data_input import may_be_lines
    from softcount.cli.library_calls import fit_record, open_request
    from softcount.run.threads import Threads

    with may_be_lines(request.data, request.form):
        request, asked, table = open_request(request, tell)
    assert request.net is not None
    if asked.blocks:
        name = ",".join(map(str, next(iter(asked.blocks))))
        raise DataError(f"--kind {name}=...: a network has no blocks of columns, only columns. Leave that out.")
    graph = given_graph(request.net)
    check_names(request.net, graph, table, request.target)
    is_file = is_network_file(request.net.said)
    with Threads(request.jobs, request.spill) as threads:
        fitting = NetFitting(request, asked, graph, threads)
        fitted = fitting.fit(table, starts_told(tell))
        closed = fitting.closed(fitted, table)
        for task in closed.tasks():
            task()
        missing = {key: float(n) for key, n in closed.missing.items() if key in fitted.net.graph.number}
        if request.target is not None:
            missing[request.target] = float(closed.unknown_labels)
        notes = [f"of {request.net.said} the edges were taken, and nothing else"] if is_file else []
        fitted = replace(fitted, missing=missing, notes=[*notes, *fitted.notes])
        tried = None if request.target is None or fitted.interrupted else fitting.evaluated(fitted, table)
        fitted = replace(fitted, record=fit_record(request, fitted, closed, threads, tried))
        return fitted, tried, table.n_rows or 0


def given_graph(net: NetRequest) -> Graph | None:
    """The edges that were given; None where they are to be found."""
    from softcount.estimators.net_structure import graph_of_text
    from softcount.files.network_file import read_network

    if net.said in WORDS:
        return None
    return read_network(net.said).graph if is_network_file(net.said) else graph_of_text(net.said)


def check_names(net: NetRequest, graph: Graph | None, table: Table, target: str | None) -> None:
    """Refuse names that are neither columns nor hidden nodes, and columns that cannot be what is asked of them."""
    if table.schema.texts:
        key = table.schema.texts[0]
        raise DataError(f"column {key!r} is text, which no network holds. Leave it out: --kind {key}=ignore")
    columns = [str(key) for key in (*table.keys, *([] if target is None else [target]))]
    if graph is not None:
        _check_graph(net, graph, table, columns)
        if target is not None and target not in graph.number:
            raise DataError(f"--target {target!r} is in no edge of --net, so the network could not tell it.")
    _refuse_unknown("--cut", net.cut, columns)
    for option, edges in (("--required", net.required), ("--forbidden", net.forbidden)):
        _refuse_unknown(option, [name for edge in edges for name in edge], columns)
    for name in net.cut:
        if name == target or not table.schema[name].kind.numeric:
            kind = "the target" if name == target else table.schema[name].kind
            raise DataError(f"--cut: column {name!r} is {kind}. Only numbers are cut (--kind {name}=normal is one).")


def _check_graph(net: NetRequest, graph: Graph, table: Table, columns: list[str]) -> None:
    from softcount.table.look import NO_VALUES

    for name in net.hidden:
        if name in columns:
            raise DataError(f"--hidden: {name!r} is a column of the table, so it is not hidden. Give another name.")
        if name not in graph.number:
            raise DataError(f"--hidden: {name!r} is in no edge of --net.")
    for name in map(str, graph.names):
        if name not in columns and name not in net.hidden:
            hint = f"A node that no column shows is declared so: --hidden {name}=2"
            raise DataError(f"--net: the table has no column {name!r}. {suggestion(name, columns)}\n  {hint}")
        if name in table.keys and not table.schema[name].used:
            why = table.schema[name].why
            hint = f"To keep it: --kind {name}=categorical"
            if why == NO_VALUES:
                hint = f"Take it out of --net, or put a hidden node of another name in its place: --hidden {name}2=2"
            raise DataError(f"--net: column {name!r} is left out ({why}). {hint}")


def _refuse_unknown(option: str, names: Iterable[str], columns: list[str]) -> None:
    for name in names:
        if name not in columns:
            raise DataError(f"{option}: the table has no column {name!r}. {suggestion(name, columns)}")


@dataclass(frozen=True, slots=True)
class NetFitting:
    """How the network that was asked for is learned, from all rows and from those of folds."""

    request: FitRequest
    asked: Declared
    graph: Graph | None
    threads: Threads

    def fit(self, table: Table, watch: Any = None) -> FittedNet:
        """The network of a table."""
        from softcount.cli.library_calls import DEFAULT_STARTS
        from softcount.estimators.net_levels import chosen_levels
        from softcount.estimators.net_priors import network_priors
        from softcount.fitted.fitted_net import FittedNet
        from softcount.learn.networks import GraphStarts, fit_network
        from softcount.learn.plan import Plan
        from softcount.learn.rules import Stop

        request = self.request
        usual = "row" if request.net is not None and request.net.said == "tan" else 1.0
        prior = usual if request.prior is None else request.prior
        word, _, rows = str(prior).partition(":")
        prior, sample_size = (word, float(rows or 1)) if word == BDEU else (prior, 1.0)
        plan = Plan(
            declared=self.asked, prior=prior, estimate=request.estimate,  # type: ignore[arg-type]  # a word the option takes
            stop=Stop(accelerate=True), target=request.target, watch=watch,
        )  # fmt: skip
        starts = GraphStarts(request.starts or DEFAULT_STARTS, request.seed)
        priors = partial(network_priors, prior=prior, sample_size=sample_size)
        fit = partial(fit_network, table, priors_of=priors, plan=plan, starts=starts, runner=self.threads)
        found = chosen_levels(self._declared(table), fit)
        return replace(FittedNet.of(found), target=request.target)

    def _declared(self, table: Table) -> Any:
        from softcount.estimators.net_structure import SearchSettings, structure_of
        from softcount.models.declared_net import DeclaredNet

        net, target = self.request.net, self.request.target
        assert net is not None
        settings = SearchSettings(net.criterion, net.required, net.forbidden, net.max_parents)
        found = structure_of(net.said if self.graph is None else self.graph, target, settings)
        cells = 0 if table.n_rows is None else table.n_rows * max(1, len(table.schema.used))
        said = DeclaredNet(self.asked, found.graph, found.shape, found.search, net.hidden, net.cut, target, cells=cells)
        return replace(said, intervals=FINE_INTERVALS) if self.request.model == JOINT_NETWORK else said

    def closed(self, fitted: FittedNet, table: Table) -> Table:
        """The same rows under the schema that was learned."""
        from softcount.table import open_table

        return open_table(
            table.source, schema=fitted.schema, missing=fitted.schema.missing, target=self.request.target,
            weight=self.request.weight,
        )  # fmt: skip

    def evaluated(self, fitted: FittedNet, table: Table) -> Evaluation | None:
        """How the class of unseen rows is told: a network for every fold, its structure found anew where it is found.

        None where nothing is to be tried, or too few rows have a class.
        """
        import numpy as np

        from softcount.cli.library_calls import DEFAULT_FOLDS
        from softcount.evaluate.refits import LabelledRows, refitted
        from softcount.table.chunk import Split

        request = self.request
        folds = DEFAULT_FOLDS if request.folds is None else request.folds
        if folds == 0:
            return None
        closed = self.closed(fitted, table)
        codes = class_codes(fitted, closed)
        parts = [np.ones(0), *(w for _, w in closed.weights() if w is not None)]
        weights = np.concatenate(parts) if closed.has_weights else np.ones(len(codes))
        rows = LabelledRows(codes, weights, len(fitted.levels[fitted.target]))
        split, how = Split(folds, request.seed), f"{folds}-fold cross-validation"
        if request.holdout is not None:
            split, how = Split(2, request.seed, request.holdout), f"{100 * request.holdout:g} % held out"
        return refitted(rows, split, how, partial(self._answers, fitted, table))

    def _answers(self, fitted: FittedNet, table: Table, weights: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """The class of some rows by a network that was learned with these weights."""
        from softcount.table import Chunks, open_table

        request = self.request
        kinds: Any = {**self.asked.forced, **({} if request.weight is None else {request.weight: "ignore"})}
        words = request.form.words()
        again = open_table(table.source, kinds=kinds, missing=words, target=request.target, weights=weights)
        net = self.fit(again)
        chunks = (task() for task in self.closed(net, table).tasks())
        some: Any = Chunks(list(_rows_of(chunks, rows)))
        proba = net.proba(some, request.target)
        order = [net.levels[request.target].index(level) for level in fitted.levels[request.target]]
        return proba[:, order]


def _rows_of(chunks: Iterable[Chunk], rows: np.ndarray) -> Iterator[Chunk]:
    for chunk in chunks:
        own = rows[(rows >= chunk.start) & (rows < chunk.start + chunk.n_rows)] - chunk.start
        if len(own):
            yield chunk.take(own)


# -- answering for tables


def class_codes(fitted: FittedNet, table: Table) -> np.ndarray:
    """The class of every row of a table that is open with its target, as the network numbers it; -1 where unknown."""
    import numpy as np

    known = {str(level): place for place, level in enumerate(fitted.levels[fitted.target])}
    return np.array([-1 if x is None else known.get(str(x), -1) for x in table.labels()], dtype=np.int64)


def open_rows(fitted: FittedNet, data: str, form: InputFormat, of: Any, tell: Tell = keep_quiet) -> tuple[Table, Any]:
    """A table to be answered for, and its rows: with their classes as evidence where another node is asked for."""
    from softcount.cli.library_calls import open_like
    from softcount.table import Chunks, open_table

    table = open_like(fitted, data, form, tell)
    label = fitted.net.target
    if label is None or of == label or label not in table.source.keys:
        return table, table
    words = form.words(fitted.schema.missing)
    table = open_table(table.source, schema=fitted.schema, missing=words, target=label)
    codes = class_codes(fitted, table)
    chunks = (task() for task in table.tasks())
    return table, Chunks([replace(x, labels=codes[x.start : x.start + x.n_rows]) for x in chunks])


def explained_lines(
    fitted: FittedNet, data: str, form: InputFormat, wanted: Sequence[int], of: str | None, against: str | None
) -> tuple[pa.Table, list[ExplainedRow]]:
    """A line for each row, or each of those wanted, counted from 1: what every node adds to its log-odds.

    Of the rows wanted also what a page says of them.
    """
    import numpy as np

    from softcount.cli.named_columns import node_key
    from softcount.counts import ROOT
    from softcount.fitted.net_rows import explained_rows
    from softcount.fitted.odd_rows import shown_cells
    from softcount.report.answer_page import OURS, ExplainedRow
    from softcount.report.class_page import value_text
    from softcount.table.names import apart, labels

    if of is None and fitted.target is None:
        raise DataError("the network was learned without a class. Say which node to explain: --of NODE")
    node = fitted.target if of is None else node_key(fitted, of, "--of")
    assert node is not None
    _, rows = open_rows(fitted, data, form, node)
    found = explained_rows(fitted, rows, node, against)
    count = len(found.chosen)
    for row in wanted:
        if row > count:
            raise DataError(f"there is no row {row}: the table has {count:,}. Rows are counted from 1.")
    names = labels(key for key in found.parts if key is not ROOT)
    ours = {name: apart(name, names.values()) for name in OURS}
    places = [row - 1 for row in wanted]
    table = _reasons(found, fitted.levels[node], names, ours)
    table = table.take(places) if wanted else table
    cells = shown_cells(fitted, rows, np.unique(places).astype(np.int64)) if wanted else {}
    few = [
        ExplainedRow(
            line, {names[key]: value_text(cell) for key, cell in cells[place].items() if key in names},
            probability=float(found.probability[place]), ours=ours,
        )
        for place, line in zip(places, table.to_pylist() if wanted else [], strict=True)
    ]  # fmt: skip
    return table, few


def _reasons(found: ExplainedLevels, levels: Sequence[Any], names: dict[Key, str], ours: dict[str, str]) -> pa.Table:
    """A line for each row, counted from 1: its level and the one beside it, and what every node adds to their odds."""
    import numpy as np
    import pyarrow as pa

    from softcount.counts import ROOT
    from softcount.report.answer_page import AGAINST, CLASS, PRIOR, ROW, TOTAL, cells_array

    count, cells = len(found.chosen), cells_array(levels)
    return pa.table(
        {
            ours[ROW]: pa.array(range(1, count + 1)),
            ours[CLASS]: cells.take(pa.array(found.chosen)),
            ours[AGAINST]: cells.take(pa.array(found.against)),
            **{ours[PRIOR] if key is ROOT else names[key]: own for key, own in found.parts.items()},
            ours[TOTAL]: sum(found.parts.values(), np.zeros(count)),
        }
    )
