"""Learning as `softcount fit` asks for it: requests to the front door, the model saved, and its page."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import click
from msgspec import Struct
from msgspec.structs import replace

from softcount import __version__
from softcount import fit as front_door
from softcount.cli.options import suggestion
from softcount.cli.outputs import INTERRUPTED, progress, put_answer, save_by, say
from softcount.cli.read import bytes_read, declared, may_be_lines, read_sequences, source_of, table_of
from softcount.cli.request import BDEU, NETWORK_WORDS, FitRequest, NetRequest, is_network_file
from softcount.errors import DataError
from softcount.families.text import Text
from softcount.files.checkpoint_file import remove_checkpoint
from softcount.files.data_digest import data_digest
from softcount.files.model_file import save_model
from softcount.fit.classes import ClassRequest, ClassSearch
from softcount.fitted.fitted import Fitted
from softcount.learn.em import Stop
from softcount.learn.record import Provenance
from softcount.learn.settings import Plan
from softcount.models.declare import Declared
from softcount.report.classes import FitOutcome, fit_page, fit_record
from softcount.run.local import Threads
from softcount.run.progress import Tell, interrupts_end, starts_told
from softcount.sources import wording
from softcount.table import Table
from softcount.table.inspect_columns import NO_VALUES

if TYPE_CHECKING:
    from softcount.fit.network import NetworkRequest
    from softcount.networks.network import Graph


DEFAULT_STARTS = 10


DEFAULT_CRITERION = "evidence"


FINE_INTERVALS = 8
"""Intervals that --model network cuts a number into: with 5, an interval often holds two modes of different classes."""


def run(request: FitRequest, saved: str, json_wanted: bool) -> None:
    """Learn, save, and say what was found."""
    with progress() as tell, interruptible():
        fitted, document, page, write = (fit_table if request.layout is None else fit_sequences)(request, saved, tell)
    save_by(write, saved)
    interrupted = getattr(fitted, "interrupted", False)
    if request.checkpoint is not None and not interrupted:
        remove_checkpoint(request.checkpoint)
    put_answer(document, page, json_wanted, on_error_stream=saved == "-")
    if interrupted:
        kept = "this is the best so far" if saved == "-" else f"the best so far is saved in {saved}"
        more = "" if request.checkpoint is None else f"; --checkpoint {request.checkpoint} --resume goes on"
        say(f"interrupted: {kept}{more}")
        raise click.exceptions.Exit(INTERRUPTED)


Learned = tuple[Any, Callable[[], Any], Callable[[], Any], Callable[[Any], None]]
"""A model, what is said of it as data and as a page, and what writes it to a file."""


def fit_table(request: FitRequest, saved: str, tell: Tell) -> Learned:
    """Learn a model of classes, or a network."""
    result = fit(request, tell)
    fitted = result.fitted
    outcome = FitOutcome(fitted, result.n_rows, saved, request.data, request.form.options, result.beliefs)
    write = partial(save_model, fitted)
    if request.net is not None:
        from softcount.report.network import network_fit_page, network_fit_record

        return fitted, lambda: network_fit_record(outcome), lambda: network_fit_page(outcome), write
    return fitted, lambda: fit_record(outcome), lambda: fit_page(outcome), write


def fit_sequences(request: FitRequest, saved: str, tell: Tell) -> Learned:
    """Learn a hidden Markov model where states are asked for, otherwise a chain."""
    from softcount.report.sequences import sequence_page, sequence_record

    assert request.layout is not None
    sequences = read_sequences(
        request.layout, request.data, request.form, request.weight, request.symbols,
        lambda done, of: tell("reading", done, of),
    )  # fmt: skip
    model: Any
    if request.states is None:
        from softcount.estimators.markov_chain import MarkovChain

        prior: Any = "kneser-ney" if request.prior is None else request.prior
        model = MarkovChain(1 if request.context is None else request.context, prior, bool(request.ends))
    else:
        from softcount.estimators.hidden_markov import HiddenMarkov

        families = declared(request.kinds)
        kinds: dict[Any, Any] = {
            **families.families,
            **{k: "ignore" for k, v in families.forced.items() if v == "ignore"},
        }
        model = HiddenMarkov(
            request.states, kinds=kinds or None, prior="row" if request.prior is None else request.prior,
            estimate=request.estimate, criterion=request.criterion or DEFAULT_CRITERION,
            n_init=request.starts or DEFAULT_STARTS, missing=request.form.missing or None, n_jobs=request.jobs,
            random_state=request.seed, checkpoint=request.checkpoint,
        )  # fmt: skip
        model._watch, model._keep_checkpoint = starts_told(tell), True
    model.fit(sequences, *([] if request.states is None else [request.target]))
    found = getattr(model, "fitted_", model)
    return found, lambda: sequence_record(model), lambda: sequence_page(model), model.save


class FitResult(Struct, frozen=True):
    """A model, how many rows it has seen, and what an expert believes beside the data."""

    fitted: Any
    n_rows: int
    beliefs: Any = None


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
    aode = None
    if request.model == "averaged":
        from softcount.evaluate.aode import AodePlan

        aode = AodePlan()
    decides = aode is None and request.decides
    return ClassRequest(plan, calibration=request.calibrate, aode=aode, ensemble=decides, **tried)


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
        for name in ("holdout", "folds", "calibrate", "unlabelled_weight", "expert"):
            if getattr(request, name) is not None:
                raise DataError(
                    f"--{name.replace('_', '-')} needs something to predict, and {request.data} has no sub-folders "
                    "that are its classes. Name a column: --target COL"
                )
    asked, sides = declared(request.kinds), {"target": request.target, "weight": request.weight}
    table = table_of(source, asked, request.form, **sides)
    kinds, notes = text_kinds(request.texts, table), table.notes
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


def text_kinds(settings: Mapping[str, Any], table: Table) -> dict[Any, Any]:
    """The family of every column of text; an error if settings are given and there is none."""
    if not settings:
        return {}
    found = {key: table.schema[key].why for key in table.schema.texts}
    if not found:
        option = next(iter(settings)).replace("_", "-").replace("model", "text")
        raise DataError(f"--{option} is about columns of text, and there is none. Declare one: --kind COL=text")
    table.source.whys = found  # why each is text stays what it was, though it is declared from now on
    return dict.fromkeys(found, Text(**settings))


def network_request(request: FitRequest, asked: Declared, table: Table, tell: Tell) -> NetworkRequest:
    """What to learn of a network; names that are neither columns nor hidden nodes are refused."""
    from softcount.files.bif import read_network
    from softcount.fit.network import FOLDS, NetworkRequest
    from softcount.fit.network_structure import SearchSettings, graph_of_text
    from softcount.learn.networks import GraphStarts

    net = request.net
    assert net is not None
    if asked.blocks:
        name = ",".join(map(str, next(iter(asked.blocks))))
        raise DataError(f"--kind {name}=...: a network has no blocks of columns, only columns. Leave that out.")
    graph = None
    if net.said not in NETWORK_WORDS:
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


# -- interrupts


@contextmanager
def interruptible() -> Iterator[None]:
    """The first Ctrl-C is a KeyboardInterrupt, which the search for classes answers with what it has; the second ends.

    So are other signals that interrupt. A process that was told to ignore one (nohup, a script in the background) goes
    on ignoring it.
    """
    main = threading.current_thread() is threading.main_thread()
    numbers = [one for one in signal.valid_signals() if main and signal.getsignal(one) is signal.default_int_handler]

    def keep(number: int, frame: Any) -> None:
        _handle_signals(numbers, _stop)
        raise KeyboardInterrupt

    _handle_signals(numbers, keep)
    try:
        with interrupts_end(False):
            yield
    finally:
        _handle_signals(numbers, signal.default_int_handler)


def _handle_signals(numbers: Iterable[int], handler: Callable[[int, Any], Any]) -> None:
    for number in numbers:
        signal.signal(number, handler)


def _stop(number: int, frame: Any) -> None:
    say("error: interrupted twice; nothing was saved")
    raise SystemExit(INTERRUPTED)
