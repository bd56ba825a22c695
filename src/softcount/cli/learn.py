"""What `softcount fit` asks for, as requests to the front door."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field
from msgspec.structs import replace

from softcount import __version__
from softcount import fit as front_door
from softcount.cli.data_input import InputFormat, TextSettings, may_be_lines, source_of
from softcount.cli.library_calls import bytes_read, declared, table_of
from softcount.cli.named_columns import suggestion
from softcount.cli.network_options import WORDS, NetRequest, is_network_file
from softcount.cli.options import BDEU
from softcount.errors import DataError
from softcount.evaluate.learn_model import ClassSearch
from softcount.files.data_digest import data_digest
from softcount.fit.classes import ClassRequest
from softcount.learn.em import Stop
from softcount.learn.record import Provenance
from softcount.learn.settings import Plan
from softcount.run.local import Threads
from softcount.run.progress import Tell, starts_told
from softcount.sources import wording
from softcount.table.inspect_columns import NO_VALUES

if TYPE_CHECKING:
    from softcount.evaluate.scores import Evaluation
    from softcount.fit.network import NetworkRequest
    from softcount.fitted.fitted import Fitted
    from softcount.models.declare import Declared
    from softcount.networks.network import Graph
    from softcount.table import Table

DEFAULT_STARTS = 10
DEFAULT_CRITERION = "evidence"
FINE_INTERVALS = 8
"""Intervals that --model network cuts a number into: with 5, an interval often holds two modes of different classes."""


class FitRequest(Struct, frozen=True):
    """What the person asked `fit` for; None where the choice is ours."""

    data: str
    target: str | None = None
    classes: int | str | None = None
    kinds: Mapping[str, str] = field(default_factory=dict)
    form: InputFormat = field(default_factory=InputFormat)
    weight: str | None = None
    prior: Any = None
    estimate: str = "mean"
    holdout: float | None = None
    folds: int | None = None
    calibrate: str | None = None
    seed: int = 0
    criterion: str | None = None
    starts: int | None = None
    jobs: int | None = None
    spill: str | None = None
    checkpoint: str | None = None
    resume: bool = False
    engine: str | None = None
    texts: TextSettings = field(default_factory=TextSettings)
    unlabelled_weight: float | None = None
    net: NetRequest | None = None
    expert: str | None = None
    model: str | None = None
    command: str = ""

    @property
    def of_naive_bayes(self) -> str | None:
        """An option that asks something of naive Bayes, so that it tells the classes unless somebody says otherwise."""
        asked = {name: getattr(self, name) for name in ("prior", "expert", "calibrate", "unlabelled_weight")}
        asked["estimate"] = None if self.estimate == "mean" else self.estimate
        return next((f"--{name.replace('_', '-')}" for name, value in asked.items() if value is not None), None)

    @property
    def decides(self) -> bool:
        """Whether rows held out decide what tells the classes."""
        return self.of_naive_bayes is None if self.model is None else self.model == "auto"

    @property
    def looks_for_classes(self) -> bool:
        """Whether something was asked that only makes sense where the classes are not known."""
        return self.model in ("mixture", "network") or any(
            x is not None for x in (self.classes, self.criterion, self.starts)
        )


class FitResult(Struct, frozen=True):
    """A model, how many rows it has seen, and what an expert believes beside the data."""

    fitted: Any
    n_rows: int
    beliefs: Any = None

    @property
    def evaluation(self) -> Evaluation | None:
        """How the model did on rows it has not seen; None if it was not tried."""
        found: Evaluation | None = self.fitted.record.evaluation
        return found


def fit(request: FitRequest, tell: Tell) -> FitResult:
    """The model that was asked for, how many rows it has seen, and what an expert believes beside the data."""
    with may_be_lines(request.data, request.form):
        request, asked, table = open_request(request, tell)
    if (why := table.schema.unsaveable) is not None:
        raise DataError(f"{request.data}: {why}")
    origin, beliefs = provenance_of(request), None
    with runner_for(request) as runner:
        wanted: Any = (
            class_request(request, asked, tell) if request.net is None else network_request(request, asked, table, tell)
        )
        first = None if request.expert is None else wanted.learn(table, runner)
        if first is not None and first.interrupted:
            fitted = front_door.complete(first, table, wanted, runner, origin)
        else:
            if first is not None:
                table, wanted, beliefs = _with_expert(request, wanted, table, asked, first)
            fitted = front_door.fit(table, wanted, runner, origin)
    notes = [*_file_notes(request), *fitted.notes, *_model_notes(request)]
    return FitResult(replace(fitted, notes=notes), table.n_rows or 0, beliefs)


def runner_for(request: FitRequest) -> AbstractContextManager[Any]:
    """What runs the passes: threads of this process, or the workers of an engine."""
    if request.engine is None:
        return Threads(request.jobs, request.spill)
    name, _, address = request.engine.partition("=")
    if name == "spark":
        from softcount.cli import NoPandas
        from softcount.run.spark import session_at

        sys.meta_path[:] = [finder for finder in sys.meta_path if finder is not NoPandas]  # Spark asks for pandas
        return session_at(address or None, request.jobs)
    from softcount.run.dask import connected

    return connected(address or None, request.jobs)


def _model_notes(request: FitRequest) -> list[str]:
    """Why naive Bayes predicts the classes, if it was an option that asked for it."""
    if request.target is None or request.net is not None or request.model is not None or request.decides:
        return []
    return [f"{request.of_naive_bayes} is for naive Bayes, which tells the classes as the textbook has it."]


def _file_notes(request: FitRequest) -> list[str]:
    if request.net is None or not is_network_file(request.net.said):
        return []
    return [f"of {request.net.said} the edges were taken, and nothing else"]


def provenance_of(request: FitRequest) -> Provenance:
    """Where a model comes from."""
    digest = None if request.engine is not None else data_digest(request.data)  # which reads all that it holds
    return Provenance(__version__, request.command, request.seed, request.data, digest)


def class_request(request: FitRequest, asked: Declared, tell: Tell) -> ClassRequest:
    """What to learn of classes: those of the target, as many as were asked for, or as many as the criterion chooses."""
    known = request.target is not None
    plan = Plan(
        declared=asked,
        prior=(1.0 if known else "row") if request.prior is None else request.prior,
        estimate=request.estimate,  # type: ignore[arg-type]  # one of the words that the option takes
        unlabelled_weight=request.unlabelled_weight,
        stop=Stop(accelerate=True),
        target=request.target,
        watch=starts_told(tell, "unlabelled rows") if known else starts_told(tell),
    )
    tried: dict[str, Any] = {"folds": request.folds, "holdout": request.holdout, "seed": request.seed}
    if not known:
        from softcount.learn.mixture import Starts  # with all that searches for classes

        number = request.classes if isinstance(request.classes, int) else None
        starts = Starts(number or 1, n_init=request.starts or DEFAULT_STARTS, seed=request.seed)
        search = ClassSearch(starts, None if number else request.criterion or DEFAULT_CRITERION)
        return ClassRequest(plan, search, checkpoint=request.checkpoint, **tried)
    stars = None
    if request.model == "averaged":
        from softcount.evaluate.aode import StarPlan

        stars = StarPlan()
    decides = stars is None and request.decides
    return ClassRequest(plan, calibration=request.calibrate, stars=stars, ensemble=decides, **tried)


def _with_expert(
    request: FitRequest, wanted: ClassRequest, table: Table, asked: Declared, first: Fitted
) -> tuple[Table, ClassRequest, Any]:
    """The table with the levels that beliefs name, the request with them as its prior, and both beside the data."""
    from softcount.bayes.expert import expert_beside_data, expert_prior

    prior = expert_prior(request.expert, first)
    levels = {key: list(belief.levels) for key, belief in prior.items() if belief.levels is not None}
    again = table_of(table.source, asked, request.form, target=request.target, weight=request.weight, levels=levels)
    again.notes = table.notes
    believing = replace(wanted, plan=replace(wanted.plan, prior=prior))
    return again, believing, expert_beside_data(request.expert, first)


def open_request(request: FitRequest, tell: Tell) -> tuple[FitRequest, Declared, Table]:
    """The table to learn from, what is asked of its columns, and the request with its target settled.

    Documents in folders are learned from to tell the folder, unless classes are to be looked for.
    """
    source = source_of(request.data, request.form, bytes_read(tell))
    column = request.target if request.model in ("mixture", "network") else None
    if column is not None:
        wording.refuse_unknown(source.keys, column, "target")
        request = replace(request, target=None)
    chosen = None if request.target is not None or request.looks_for_classes else source.default_target
    if chosen in request.kinds:  # declared a feature, or nothing
        chosen = None
    request = replace(request, target=chosen or request.target)
    if request.target is None:
        _refuse_unlabelled(request)
    asked, sides = declared(request.kinds), {"target": request.target, "weight": request.weight}
    table = table_of(source, asked, request.form, **sides)
    kinds, notes = request.texts.kinds(table), table.notes
    if kinds:
        asked = declared({**request.kinds, **kinds})
        table = table_of(source, asked, request.form, **sides)
        table.notes = notes
    if column is not None:
        table.notes.append(
            f"{column!r} is an ordinary column of the {request.model}: ask for it with query --of {column}"
        )
    if chosen:
        table.notes.append("what to predict is 'class', the sub-folder a document is in (or find classes: --classes N)")
    elif request.target is None and source.default_target not in (None, *request.kinds):
        table.notes.append("the sub-folders are not used: classes are looked for")
    return request, asked, table


def _refuse_unlabelled(request: FitRequest) -> None:
    for name in ("holdout", "folds", "calibrate", "unlabelled_weight", "expert"):
        if getattr(request, name) is not None:
            option = name.replace("_", "-")
            raise DataError(
                f"--{option} needs something to predict, and {request.data} has no sub-folders that are its classes. "
                "Name a column: --target COL"
            )


# -- networks


def network_request(request: FitRequest, asked: Declared, table: Table, tell: Tell) -> NetworkRequest:
    """What to learn of a network; names that are neither columns nor hidden nodes are refused."""
    from softcount.files.network_file import read_network
    from softcount.fit.network import FOLDS, NetworkRequest
    from softcount.fit.network_structure import SearchSettings, graph_of_text
    from softcount.learn.networks import GraphStarts

    net = request.net
    assert net is not None
    if asked.blocks:
        name = ",".join(map(str, next(iter(asked.blocks))))
        raise DataError(f"--kind {name}=...: a network has no blocks of columns, only columns. Leave that out.")
    graph = None
    if net.said not in WORDS:
        graph = read_network(net.said).graph if is_network_file(net.said) else graph_of_text(net.said)
    check_names(net, graph, table, request.target)
    prior = ("row" if net.said == "tan" else 1.0) if request.prior is None else request.prior
    word, _, rows = str(prior).partition(":")
    prior, sample_size = (word, float(rows or 1)) if word == BDEU else (prior, 1.0)
    plan = Plan(
        declared=asked, prior=prior, estimate=request.estimate,  # type: ignore[arg-type]  # a word the option takes
        stop=Stop(accelerate=True), target=request.target, watch=starts_told(tell),
    )  # fmt: skip
    return NetworkRequest(
        plan, net.said if graph is None else graph,
        SearchSettings(net.criterion, net.required, net.forbidden, net.max_parents),
        net.hidden, net.cut, prior, sample_size, GraphStarts(request.starts or DEFAULT_STARTS, request.seed),
        intervals=FINE_INTERVALS if request.model == "network" else None,
        folds=FOLDS if request.folds is None else request.folds, holdout=request.holdout, seed=request.seed,
    )  # fmt: skip


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
