"""softcount fit: options are checked, a request is built and learned from, and the model is saved and described."""

from __future__ import annotations

import os
import re
import shlex
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import click
from msgspec.structs import replace

from softcount import __version__
from softcount import fit as front_door
from softcount.cli import TYPED, commands, outputs
from softcount.cli.models import is_network_file, read_network
from softcount.cli.options import BDEU, Request, suggestion
from softcount.cli.read import declare_kinds, holds_classes, make_table, may_be_lines, open_data_source, read_sequences
from softcount.core.lazy import LazyModule
from softcount.core.remedies import without_password
from softcount.errors import DataError
from softcount.families.text import Text
from softcount.files.archive import data_digest
from softcount.files.model_file import save_model
from softcount.files.other_models import remove_checkpoint
from softcount.fit.classes import ClassRequest, ClassSearch
from softcount.learn.record import Plan, Provenance, Stop
from softcount.models.declare import Declared
from softcount.report.evaluation import summarize_evaluation
from softcount.report.fit import FitOutcome, fit_page, fit_record, full_page
from softcount.run.local import Threads
from softcount.run.progress import Tell, end_on_interrupt, report_starts
from softcount.sources import wording
from softcount.sources.bytestream import TextFile, recoded
from softcount.table import Table
from softcount.table.inspect_columns import NO_VALUES

aode: Any = LazyModule("softcount.evaluate.aode")
dask: Any = LazyModule("softcount.run.dask")
expert: Any = LazyModule("softcount.bayes.expert")
hidden_markov: Any = LazyModule("softcount.estimators.hidden_markov")
joint: Any = LazyModule("softcount.fit.joint")
markov_chain: Any = LazyModule("softcount.estimators.markov_chain")
mixture: Any = LazyModule("softcount.learn.mixture")
network: Any = LazyModule("softcount.fit.network")
network_learning: Any = LazyModule("softcount.learn.networks")
networks: Any = LazyModule("softcount.networks.network")
show: Any = LazyModule("softcount.cli.show")
spark: Any = LazyModule("softcount.run.spark")

JOINT = ("network", "mixture", "joint")
"""Models of all columns, of which the target is one."""
WITH_CLASS = ("naive", "tan", "joint")
NETWORK_WORDS = (*WITH_CLASS, "chow-liu", "search")
"""Ways to find a structure; the first ones need the class."""
EVALUATED = "holdout folds calibrate unlabelled_weight expert"
"""Options that need a target."""
TEXT_SETTINGS = ("min_count", "min_df", "max_df", "drop_top", "stop_words", "ngrams")
SUFFIXES = {
    ".gz", ".tar", ".tgz", ".csv", ".tsv", ".tab", ".txt", ".data", ".parquet", ".pq", ".arrow", ".feather",
    ".arff", ".json", ".jsonl", ".ndjson", ".xlsx", ".db", ".sqlite", ".sqlite3", ".duckdb",
}  # fmt: skip
"""Endings of data files, removed to name the model."""
STARTS = 10
CRITERION = "evidence"
FINE_INTERVALS = 8
"""Bins of --model network: with 5, a bin often holds two modes of different classes."""


def fit(request: Request) -> None:
    outcome = learn(request)
    page = full_page if request.full else fit_page
    outputs.write_answer(request.json, fit_record, page, outcome, to_stderr=outcome.saved == outputs.STANDARD)
    end_interrupted(request, outcome)


def learn(request: Request) -> FitOutcome:
    """Learn the model of a request and save it."""
    texts = {"model": request.text} | {name: getattr(request, name) for name in TEXT_SETTINGS}
    if texts["stop_words"] not in (None, "english"):
        texts["stop_words"] = read_stop_words(texts["stop_words"])
    request.texts = {setting: value for setting, value in texts.items() if value is not None}
    request.in_sequences = request.layout.is_given or any(
        getattr(request, name) is not None for name in ("states", "order", "symbols", "ends")
    )
    check_model(request)
    check_run(request)
    output = request.output or default_output(request.data)
    if output == outputs.STANDARD and sys.stdout.isatty():
        raise click.UsageError("refusing to write a binary model to the terminal; use -o FILE")
    outputs.check_output(output, request.data)
    with outputs.progress() as tell, interruptible():
        save, outcome = (learn_sequences if request.in_sequences else learn_table)(request, output, tell)
    outputs.save_model_to(output, save)
    if request.checkpoint is not None and not outcome.interrupted:
        remove_checkpoint(request.checkpoint)
    return outcome


def end_interrupted(request: Request, outcome: FitOutcome) -> None:
    """End the command with the exit code of an interrupt if the search was interrupted."""
    if outcome.interrupted:
        output = outcome.saved
        kept = "this is the best so far" if output == outputs.STANDARD else f"the best so far is saved in {output}"
        more = "" if request.checkpoint is None else f"; --checkpoint {request.checkpoint} --resume goes on"
        outputs.print_message(f"interrupted: {kept}{more}")
        raise click.exceptions.Exit(outputs.INTERRUPTED)


def open_explorer(request: Request) -> None:
    """Fit a table with the usual options, write the explorer of the model, and open it in the browser."""
    if request.data == outputs.STANDARD:
        raise click.UsageError("open reads DATA twice: give a file, not standard input")
    fit_command = next(command for command in commands.COMMANDS if command.name == "fit")
    asked = Request.collect(fit_command.make_context("fit", [request.data]).params)
    for name in ("target", "classes", "model", "net", "kind", "form", "seed"):
        setattr(asked, name, getattr(request, name))
    asked.output = request.model_file or default_output(request.data)
    page = request.output or f"{Path(asked.output).stem}.html"
    outputs.check_output(page, request.data)
    outcome = learn(asked)
    end_interrupted(asked, outcome)
    if (found := outcome.fitted.record.evaluation) is not None:
        outputs.print_info(summarize_evaluation(found))
    show.write_explorer(Request(model=outcome.saved, data=request.data, form=request.form, output=page, serve=False))
    outputs.print_message(f"model: {outcome.saved}, explorer: {page}")
    on_screen = sys.platform in ("win32", "darwin") or os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    if on_screen and not request.no_browser:
        import webbrowser

        webbrowser.open(Path(page).resolve().as_uri())


def default_output(data: str) -> str:
    """The data's name with the ending .sc, in the working directory.

    >>> default_output("tables/adult.csv.gz"), default_output("-"), default_output("no-such/mail/")
    ('adult.sc', 'model.sc', 'mail.sc')
    >>> default_output("parts/day-*.csv"), default_output("shop.db::orders"), default_output("*.csv")
    ('day.sc', 'orders.sc', 'model.sc')
    >>> default_output("postgresql://ann@host/shop?sslmode=require"), default_output("shop.duckdb")
    ('shop.sc', 'shop.sc')
    """
    if os.path.isdir(data):  # a folder's name has no ending: news.tar/ is news.tar.sc
        return f"{Path(os.path.abspath(data)).name or 'model'}.sc"
    within = re.sub(r"[*?\[].*", "", data.rpartition("::")[2]).rstrip("-_. ")  # a table of a file, a pattern of files
    path = Path("model" if data == outputs.STANDARD else Path(within).name or "model")
    while path.suffix.lower() in SUFFIXES:
        path = path.with_suffix("")
    return f"{path.name}.sc"


# -- options that contradict each other


def refuse(request: Request, names: str, why: str, error: type[Exception] = click.UsageError) -> None:
    """Raise an error at the first of these options that was given."""
    for name in names.split():
        if getattr(request, name) not in (None, (), {}):
            raise error(f"--{name.replace('_', '-')} {why}")


def check_model(request: Request) -> None:
    """Refuse options that do not belong to the kind of model, and read the structure of a network."""
    request.graph = None
    if request.model in JOINT:
        if request.net is not None:
            raise click.UsageError(f"--net is a network already: leave out --model {request.model}")
        why = f"is for predicting a target, which is an ordinary column with --model {request.model}"
        refuse(request, EVALUATED, why)
        if request.model == "network":
            request.net = "search"
        if request.model == "joint":
            refuse(request, "classes criterion starts checkpoint spill engine", "cannot be given with --model joint")
    if request.in_sequences:
        check_sequences(request)
        return
    if request.net is not None:
        check_network(request)
        request.graph = read_structure(request)
        return
    refuse(request, "hidden cut required forbidden max_parents", "needs --net")
    if request.criterion == "bdeu":
        raise click.UsageError("--criterion bdeu is for --net search; a number of classes is chosen by the others")
    if str(request.prior).startswith(BDEU):
        raise click.UsageError("--prior bdeu is for networks: --net")
    check_classes(request)


def check_classes(request: Request) -> None:
    """Refuse options that contradict each other; documents in folders need no --target."""
    searching = "classes criterion starts checkpoint"
    if request.target is not None and request.model != "mixture":
        refuse(request, searching, "is for finding classes; it cannot be given with --target")
    elif request.model not in JOINT:
        given = any(getattr(request, name) is not None for name in searching.split())
        if given or not holds_classes(request.data):
            refuse(request, f"{EVALUATED} model", "needs --target")
    if request.expert is not None:
        refuse(request, "prior", "adds pseudo-counts as --expert does; give one of the two")
    if isinstance(request.classes, int):
        refuse(request, "criterion", "chooses the number of classes, which --classes has given")
    if request.target is not None:
        check_naive_bayes(request)


def check_naive_bayes(request: Request) -> None:
    """Refuse options of naive Bayes if another model predicts the target."""
    if request.model in (None, "auto", "aode"):
        why = "is for naive Bayes: add --model naive-bayes"
        refuse(request, "prior expert calibrate", why)
        if request.unlabelled_weight:  # 0 is what the others do
            raise click.UsageError(f"--unlabelled-weight {why}")
        if request.estimate != "mean":
            raise click.UsageError(f"--estimate {why}")


def check_network(request: Request) -> None:
    net = request.net = request.net.strip()
    joint = request.model in JOINT
    refuse(request, "classes checkpoint", "is for finding classes; it cannot be given with --net")
    refuse(request, "calibrate unlabelled_weight expert", "is for naive Bayes; it cannot be given with --net")
    if not joint:
        refuse(request, "model", "is for naive Bayes; it cannot be given with --net")
    if request.texts:
        raise click.UsageError("a network has no columns of text, so options for them cannot be given with --net")
    if request.target is None or joint:
        refuse(request, "holdout folds", "needs --target")
        if net in WITH_CLASS:
            raise click.UsageError(f"--net {net} needs the class: --target COL")
    if net != "search":
        refuse(request, "required forbidden max_parents criterion", "needs --net search")
    elif request.criterion not in (None, "bic", "bdeu"):
        raise click.UsageError(f"--criterion {request.criterion} chooses a number of classes; --net search: bic, bdeu")
    both = [f"{a}>{b}" for a, b in request.required if (a, b) in request.forbidden]
    if both:
        raise click.UsageError(f"{both[0]} is both --required and --forbidden")
    if net in NETWORK_WORDS and request.hidden:
        raise click.UsageError('--hidden needs edges, such as --net "Bag>Flavor, Bag>Wrapper": none are found for it')
    if not request.hidden:
        refuse(request, "starts", "with --net needs --hidden: only hidden nodes are searched for")


def read_structure(request: Request) -> Any:
    """The graph of --net, or None for a word; cycles and invalid edges are refused before the data is read."""
    option = "--required"
    try:
        networks.Graph.of(request.required)
        option = "--net"
        if request.net in NETWORK_WORDS or is_network_file(request.net):
            return None
        return network.parse_graph(request.net)
    except DataError as error:
        raise click.UsageError(f"{option}: {error}") from None


def check_sequences(request: Request) -> None:
    refuse(
        request,
        f"classes net hidden cut required forbidden max_parents {EVALUATED} model spill engine",
        "is for tables; it cannot be given with sequences",
    )
    if request.texts:
        raise click.UsageError("options for columns of text cannot be given with sequences")
    if request.states is None:
        refuse(request, "target criterion starts kind checkpoint", "needs --states if DATA holds sequences")
    elif any(getattr(request, name) is not None for name in ("order", "symbols", "ends")):
        raise click.UsageError("--order, --symbols and --ends are for chains; they cannot be given with --states")
    elif request.criterion not in (None, "evidence", "bic"):
        raise click.UsageError(f"--criterion {request.criterion} is for classes; of states: evidence, bic")


def check_run(request: Request) -> None:
    """Refuse two ways to evaluate, a checkpoint that is not to be continued, and what an engine cannot do."""
    if request.holdout is not None and request.folds is not None:
        raise click.UsageError("--holdout and --folds cannot both be given")
    if request.folds == 1:
        raise click.UsageError("--folds 1 leaves nothing to learn from; give 2 or more, or 0 for none")
    path = request.checkpoint
    if request.resume and path is None:
        raise click.UsageError("--resume needs --checkpoint FILE")
    if path is not None and os.path.exists(path) and not request.resume:
        raise click.UsageError(f"{path} is there already: give --resume to go on from it, or remove it")
    if request.engine is None:
        return
    if request.engine.partition("=")[0] not in ("dask", "spark"):
        raise click.UsageError(f"--engine {request.engine} is not known; give dask or spark, with =ADDRESS or without")
    elsewhere = "needs all rows on one machine; it cannot be given with --engine"
    refuse(request, "net calibrate expert spill", elsewhere)
    if request.model == "aode":
        raise click.UsageError(f"--model aode {elsewhere}")


# -- columns of text


def read_stop_words(path: str) -> tuple[str, ...]:
    """The words of a file in lower case, with blanks or line ends between them."""
    try:
        raw = TextFile(path).whole()
    except DataError as error:
        raise DataError(f"--stop-words: {error}\n  Name a file of words, or use the built-in list: english") from None
    words = () if b"\0" in raw else tuple(sorted(set(recoded(raw)[0].decode().lower().split())))
    if not words:
        raise DataError(f"{path} holds no stop words. Write one word per line, or use the built-in list: english")
    return words


def text_kinds(settings: Mapping[str, Any], table: Table) -> dict[Any, Any]:
    """The family of every column of text; an error if settings are given and there is none."""
    if not settings:
        return {}
    found = {key: table.schema[key].why for key in table.schema.texts}
    if not found:
        option = next(iter(settings)).replace("_", "-").replace("model", "text")
        raise DataError(f"--{option} is for columns of text, but the table has none. Declare one: --kind COL=text")
    table.source.whys = found  # the reason why each is text stays, although it is declared from now on
    return dict.fromkeys(found, Text(**settings))


# -- learning

Learned = tuple[Callable[[Any], None], FitOutcome]
"""The function that saves a model, and the model as its page needs it."""


def learn_table(request: Request, output: str, tell: Tell) -> Learned:
    with may_be_lines(request.data, request.form):
        kinds, table = open_request(request, tell)
    if (why := table.schema.unsaveable) is not None:
        raise DataError(f"{request.data}: {why}")
    digest = None if request.engine is not None else data_digest(request.data)  # which reads all of it
    typed = map(without_password, click.get_current_context().meta.get(TYPED, []))
    origin = Provenance(__version__, shlex.join(["softcount", *typed]), request.seed, request.data, digest)
    beliefs = None
    with open_runner(request) as runner:
        wanted: Any
        if request.model == "joint":
            wanted = joint_request(request, kinds, tell)
        elif request.net is None:
            wanted = class_request(request, kinds, tell)
        else:
            wanted = network_request(request, kinds, table, tell)
        first = None
        if request.expert is not None:
            settled, learner = wanted.settle(table, runner)
            first = learner.learn(settled, runner)
        if first is not None and first.interrupted:
            fitted = front_door.complete(first, table, wanted, runner, origin)
        else:
            if first is not None:
                # The table again, with the categories that the expert names, and the beliefs as the prior.
                prior, notes = expert.expert_prior(request.expert, first), table.notes
                levels = {key: list(belief.levels) for key, belief in prior.items() if belief.levels is not None}
                sides = {"target": request.target, "weight": request.weight, "levels": levels}
                table = make_table(table.source, kinds, request.form, **sides)
                table.notes = notes
                wanted = replace(wanted, plan=replace(wanted.plan, prior=prior))
                beliefs = expert.compare_beliefs(request.expert, first)
            fitted = front_door.fit(table, wanted, runner, origin)
    notes = [*fitted.notes]
    if request.net is not None and is_network_file(request.net):
        notes.insert(0, f"only the edges of {request.net} are used")
    fitted = replace(fitted, notes=notes)
    outcome = FitOutcome(fitted, table.n_rows or 0, output, request.data, request.form.options, beliefs)
    return partial(save_model, fitted), outcome


def open_runner(request: Request) -> AbstractContextManager[Any]:
    if request.engine is None:
        return Threads(request.jobs, request.spill)
    name, _, address = request.engine.partition("=")
    connect: Callable[..., AbstractContextManager[Any]] = spark.session_at if name == "spark" else dask.connected
    return connect(address or None, request.jobs)


def open_request(request: Request, tell: Tell) -> tuple[Declared, Table]:
    """The declared kinds and the table to learn from; settles the target of the request.

    The target of documents in folders is the folder, unless classes are to be found.
    """
    source = open_data_source(request.data, request.form, tell)
    column = request.target if request.model in JOINT else None
    if column is not None:
        wording.refuse_unknown(source.keys, column, "target")
        request.target = None
    searching = request.model in JOINT or any(
        getattr(request, name) is not None for name in ("classes", "criterion", "starts")
    )
    chosen = None if request.target is not None or searching else source.default_target
    if chosen in request.kind:  # declared a feature, or ignored
        chosen = None
    request.target = chosen or request.target
    if request.target is None:
        why = f"needs something to predict, and {request.data} has no sub-folders that are its classes."
        refuse(request, EVALUATED, f"{why} Name a column: --target COL", DataError)
    kinds, sides = declare_kinds(request.kind), {"target": request.target, "weight": request.weight}
    table = make_table(source, kinds, request.form, **sides)
    texts, notes = text_kinds(request.texts, table), table.notes
    if texts:
        kinds = declare_kinds({**request.kind, **texts})
        table = make_table(source, kinds, request.form, **sides)
        table.notes = notes
    if column is not None:
        notes.append(f"{column!r} is an ordinary column of the {request.model}: query it with --of {column}")
    if chosen:
        if request.net is None:
            check_naive_bayes(request)
        notes.append("the target is 'class', the sub-folder of a document (to find classes instead: --classes N)")
    elif request.target is None and source.default_target not in (None, *request.kind):
        notes.append("the sub-folders are not used: classes are searched for")
    return kinds, table


def class_request(request: Request, kinds: Declared, tell: Tell) -> ClassRequest:
    known = request.target is not None
    plan = Plan(
        declared=kinds,
        prior=(1.0 if known else "row") if request.prior is None else request.prior,
        estimate=request.estimate,
        unlabelled_weight=request.unlabelled_weight,
        stop=Stop(accelerate=True),
        target=request.target,
        watch=report_starts(tell, "unlabelled rows") if known else report_starts(tell),
    )
    tried: dict[str, Any] = {"folds": request.folds, "holdout": request.holdout, "seed": request.seed}
    if not known:
        number = request.classes if isinstance(request.classes, int) else None
        starts = mixture.Starts(number or 1, n_init=request.starts or STARTS, seed=request.seed)
        search = ClassSearch(starts, None if number else request.criterion or CRITERION)
        return ClassRequest(plan, search, checkpoint=request.checkpoint, **tried)
    averaged = aode.AodePlan() if request.model == "aode" else None
    ensemble = request.model in (None, "auto")
    return ClassRequest(plan, calibration=request.calibrate, aode=averaged, ensemble=ensemble, **tried)


def joint_request(request: Request, kinds: Declared, tell: Tell) -> Any:
    if kinds.auto or kinds.all_auto or kinds.blocks:
        raise DataError("--kind: a joint model takes the kind of a single column, such as zip=categorical.")
    return joint.JointRequest(Plan(declared=kinds, prior="row", watch=report_starts(tell)), seed=request.seed)


# -- networks


def network_request(request: Request, kinds: Declared, table: Table, tell: Tell) -> Any:
    """The request for a network; names that are neither columns nor hidden nodes are refused."""
    if kinds.blocks:
        name = ",".join(map(str, next(iter(kinds.blocks))))
        raise DataError(f"--kind {name}=...: a network has no blocks of columns, only columns. Leave that out.")
    graph = read_network(request.net).graph if is_network_file(request.net) else request.graph
    check_names(request, graph, table)
    prior = ("row" if request.net == "tan" else 1.0) if request.prior is None else request.prior
    word, _, rows = str(prior).partition(":")
    prior, sample_size = (word, float(rows or 1)) if word == BDEU else (prior, 1.0)
    plan = Plan(
        declared=kinds, prior=prior, estimate=request.estimate, stop=Stop(accelerate=True), target=request.target,
        watch=report_starts(tell),
    )  # fmt: skip
    return network.NetworkRequest(
        plan, request.net if graph is None else graph,
        network.SearchSettings(
            request.criterion or "bic", request.required, request.forbidden, request.max_parents
        ),
        request.hidden, request.cut, prior, sample_size,
        network_learning.GraphStarts(request.starts or STARTS, request.seed),
        intervals=FINE_INTERVALS if request.model == "network" else network.MOST_INTERVALS,
        folds=network.FOLDS if request.folds is None else request.folds, holdout=request.holdout, seed=request.seed,
    )  # fmt: skip


def check_names(request: Request, graph: Any, table: Table) -> None:
    """Refuse names that are neither columns nor hidden nodes, and columns of the wrong kind."""
    target = request.target
    if table.schema.texts:
        key = table.schema.texts[0]
        raise DataError(f"column {key!r} is text, which no network holds. Leave it out: --kind {key}=ignore")
    columns = [str(key) for key in (*table.keys, *([] if target is None else [target]))]
    for name in request.hidden if graph is not None else ():
        if name in columns:
            raise DataError(f"--hidden: {name!r} is a column of the table, so it is not hidden. Give another name.")
        if name not in graph.number:
            raise DataError(f"--hidden: {name!r} is in no edge of --net.")
    for name in map(str, graph.names if graph is not None else ()):
        if name not in columns and name not in request.hidden:
            hint = f"A node that no column shows is declared so: --hidden {name}=2"
            raise DataError(f"--net: the table has no column {name!r}. {suggestion(name, columns)}\n  {hint}")
        if name in table.keys and not table.schema[name].used:
            why = table.schema[name].why
            hint = f"To keep it: --kind {name}=categorical"
            if why == NO_VALUES:
                hint = f"Take it out of --net, or put a hidden node of another name in its place: --hidden {name}2=2"
            raise DataError(f"--net: column {name!r} is left out ({why}). {hint}")
    if graph is not None and target is not None and target not in graph.number:
        raise DataError(f"--target {target!r} is in no edge of --net, so the network could not predict it.")
    edges = {"--required": request.required, "--forbidden": request.forbidden}
    named = {"--cut": list(request.cut), **{option: [x for edge in own for x in edge] for option, own in edges.items()}}
    for option, names in named.items():
        for name in names:
            if name not in columns:
                raise DataError(f"{option}: the table has no column {name!r}. {suggestion(name, columns)}")
    for name in request.cut:
        if name == target or not table.schema[name].kind.numeric:
            kind = "the target" if name == target else table.schema[name].kind
            raise DataError(
                f"--cut: column {name!r} is {kind}. Only numbers are discretised (declare one: --kind {name}=normal)."
            )


# -- sequences


def learn_sequences(request: Request, output: str, tell: Tell) -> Learned:
    """Learn a hidden Markov model with --states, otherwise a Markov chain."""
    sequences = read_sequences(request, request.weight, request.symbols, tell)
    if request.states is None:
        prior = "kneser-ney" if request.prior is None else request.prior
        model = markov_chain.MarkovChain(1 if request.order is None else request.order, prior, bool(request.ends))
        model.fit(sequences)
    else:
        families = declare_kinds(request.kind)
        ignored = {key: "ignore" for key, kind in families.forced.items() if kind == "ignore"}
        model = hidden_markov.HiddenMarkov(
            request.states, kinds={**families.families, **ignored} or None,
            prior="row" if request.prior is None else request.prior, estimate=request.estimate,
            criterion=request.criterion or CRITERION, n_init=request.starts or STARTS,
            missing=request.form.missing or None, n_jobs=request.jobs, random_state=request.seed,
            checkpoint=request.checkpoint,
        )  # fmt: skip
        model._watch, model._keep_checkpoint = report_starts(tell), True
        model.fit(sequences, request.target)
    return model.save, FitOutcome(model, len(sequences), output, request.data)


# -- interrupts


@contextmanager
def interruptible() -> Iterator[None]:
    """Let the first Ctrl-C end the search for classes with the best model so far, and the second end the process.

    Other signals that interrupt do the same. Signals that the process ignores (nohup) stay ignored.
    """
    main = threading.current_thread() is threading.main_thread()
    numbers = [one for one in signal.valid_signals() if main and signal.getsignal(one) is signal.default_int_handler]

    def handle_by(handler: Callable[[int, Any], Any]) -> None:
        for number in numbers:
            signal.signal(number, handler)

    def interrupt(number: int, frame: Any) -> None:
        handle_by(stop)
        raise KeyboardInterrupt

    def stop(number: int, frame: Any) -> None:
        outputs.print_message("error: interrupted twice; nothing was saved")
        raise SystemExit(outputs.INTERRUPTED)

    handle_by(interrupt)
    try:
        with end_on_interrupt(False):
            yield
    finally:
        handle_by(signal.default_int_handler)
