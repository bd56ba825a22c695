"""softcount fit: a table in, a model and what it says out."""

from __future__ import annotations

import os
import re
import shlex
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from softcount.cli import WORDS, network_options, options, sequence_options
from softcount.cli.failures import INTERRUPTED
from softcount.cli.outputs import say
from softcount.run.progress import interrupts_end
from softcount.sources.databases import without_password

if TYPE_CHECKING:
    from softcount.cli.learn import FitRequest
    from softcount.cli.sequence_calls import SequenceRequest
    from softcount.fitted.fitted import Fitted
    from softcount.fitted.network import FittedNet
    from softcount.report.page import Page


SUFFIXES = {
    ".gz", ".tar", ".tgz", ".csv", ".tsv", ".tab", ".txt", ".data", ".parquet", ".pq", ".arrow", ".feather",
    ".arff", ".json", ".jsonl", ".ndjson", ".xlsx", ".db", ".sqlite", ".sqlite3", ".duckdb",
}  # fmt: skip
"""Endings of data files, taken off to name the model."""

EPILOG = """\b
Examples:
  softcount fit adult.csv --target income            learn to predict income
  softcount fit cars.csv                             find classes of cars, as many as there is evidence for
  softcount fit cars.csv --classes 4                 find four classes of cars
  softcount fit visits.csv --target stayed --kind zip=categorical --kind id=ignore
  zcat big.csv.gz | softcount fit - --target y -o big.sc
  softcount fit mail/ -o spam.sc                     learn to tell the sub-folder a document is in
  softcount fit news.tar.gz --min-count 3 --drop-top 100 --holdout 0.3
  softcount fit reviews.csv --target stars --kind review=text --stop-words english
  softcount fit adult.csv --target income --net tan
  softcount fit candy.csv --net "Bag>Flavor, Bag>Wrapper" --hidden Bag=2
  softcount fit asia.csv --net search --criterion bdeu --forbidden "lung>smoke"
  softcount fit visits.csv --target stayed --expert beliefs.csv
  softcount fit adult.csv --target income --model naive-bayes
  softcount fit adult.csv --target income --model mixture    answer about any column, given any others
  softcount fit events.csv --sequence customer --order time --states 3
  softcount fit names.txt --steps characters --context auto --ends
  softcount fit visits.parquet --target bought --kind clicks=markov
  softcount fit shop.duckdb --sql "SELECT * FROM visits" --target bought --model naive-bayes

A folder, or a tar file of one, is a table with a document in each row: column text is its content, and class the
sub-folder it is in, which is what to predict unless --target or --classes says otherwise. Documents are read as
UTF-8, those that are not UTF-8 as Latin-1; binary files are left out. The options for text are for every column
of text that the table has.

With --target, rows whose target is missing are used only in tables of text, unless --unlabelled-weight says
otherwise. The model is also tried on rows it has not seen: in five folds unless --holdout or --folds says
otherwise (--folds 0 skips that).

Passwords in the address of a database are neither shown nor saved; PGPASSWORD may hold one.

With --net the model is a Bayesian network of the columns, of hidden nodes, and of the target. Numbers that others
depend on are cut into levels. Of a network file only the edges are taken.

With --states hidden states are looked for in sequences: in a long table with a row for each step (--sequence,
--order), or in text (--steps). Without it, a Markov chain is learned of what comes after what. With --weight a
sequence counts that many times; with --target the states of some steps are known.

Ctrl-C while classes are looked for keeps the best so far, saves it, and ends with exit code 130; a second
Ctrl-C stops at once. SIGTERM does the same."""


class FitCommand(options.HeadedCommand):
    """The command, its options for networks and for text under headings of their own."""

    headings = (
        (network_options.NetworkOption, network_options.HEADING),
        (sequence_options.SequenceOption, sequence_options.HEADING),
        (options.TextOption, options.HEADING),
    )


@click.command("fit", cls=FitCommand, epilog=EPILOG, short_help="Learn a model from a table.")
@options.data_argument
@click.option("--target", metavar="COL", help="The column to predict. Without it, classes are looked for.")
@click.option(
    "--classes",
    type=options.class_number,
    metavar="N|auto",
    help="How many classes to look for (no --target).  [default: auto]",
)
@click.option(
    "--criterion",
    type=click.Choice(options.CRITERIA),
    help="What chooses the number of classes: evidence (Cheeseman-Stutz), BIC, ICL, or the likelihood of rows held "
    "out (cv).  [default: evidence]  With --net search, what scores its edges: bic or bdeu.  [default: bic]",
)
@options.kind_option
@options.format_options()
@network_options.network_options
@sequence_options.sequence_options
@options.text_options
@click.option("--weight", metavar="COL", help="A column of row weights: weight 2 is the row twice.")
@click.option(
    "--prior",
    type=options.prior_word,
    metavar="A",
    help="Imagined counts per level: a number, or auto, flat, jeffreys, row; of a network also bdeu, or bdeu:10 for "
    "ten imagined rows in every table.",
)
@click.option(
    "--model",
    type=click.Choice(options.TELLING),
    help="What tells the target's classes: whatever does best on rows held out (auto: weighted columns, correlated "
    "blocks, pairs of columns and more), naive Bayes as the textbook has it, or averaged one-dependence stars (AODE: "
    "every column in turn a second parent of all others).  [default: auto, but naive-bayes with "
    "--prior, --estimate, --expert, --calibrate or --unlabelled-weight]  Of all these, query, impute, sample and "
    "explore answer from naive Bayes. Two models account for columns that depend on each other, with the target as an "
    "ordinary column: a mixture of as many classes as there is evidence for, and a network found by search (quicker).",
)
@click.option(
    "--expert",
    metavar="FILE",
    help="A CSV of beliefs, n of m imagined rows (column, level, class, n, m), counted beside the data.",
)
@click.option(
    "--estimate",
    type=click.Choice(options.HOW),
    default="mean",
    show_default=True,
    help="How counts become parameters.",
)
@click.option(
    "--holdout",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    metavar="FRACTION",
    help="Try the model on this share of the rows, left out of its training.",
)
@click.option(
    "--folds", type=click.IntRange(0), metavar="K", help="Try the model on each of K parts in turn.  [default: 5]"
)
@click.option(
    "--calibrate",
    type=click.Choice(options.METHODS),
    help="Correct the model's probabilities by what rows held out show: one number (temperature), or a curve for "
    "every class (isotonic).",
)
@click.option(
    "--unlabelled-weight",
    type=click.FloatRange(0),
    metavar="W",
    help="Weight of a row without a target; EM learns from it if above 0.  [default: 1 in tables of text, else 0]",
)
@options.seed_option
@click.option(
    "--starts",
    type=click.IntRange(1),
    metavar="N",
    help="Starts of the search for classes, or for hidden nodes.  [default: 10]",
)
@click.option("--jobs", type=click.IntRange(1), metavar="N", help="Threads.  [default: all cores]")
@click.option(
    "--spill",
    metavar="DIR",
    help="Keep the rows in a file in this folder between passes.  [default: only if they would not fit into memory, "
    "where temporary files are]",
)
@click.option(
    "--checkpoint",
    metavar="FILE",
    help="Write down in this file how far the search for classes or hidden states is; it is removed when the model "
    "is saved.",
)
@click.option(
    "--engine",
    metavar="dask|spark[=ADDRESS]",
    help="Have the workers of Dask or Spark read the files and count: those at an address, or --jobs of them started "
    "here. What tells the classes of a --target is chosen here by rows drawn from all files, 100,000 at most.",
)
@click.option("--resume", is_flag=True, help="Go on from the checkpoint, if it is there, to the same bits.")
@options.output_option("The model file.  [default: DATA's name with .sc, in this folder]")
@options.json_option
def command(
    data: str, output: str | None, json_wanted: bool, layout: sequence_options.SequenceForm, **asked: Any
) -> None:
    """Learn a model from the table DATA and say what it found.

    Prints the columns as understood, how well the model predicts rows it has not seen, the columns that matter
    most, and what was missing or left out; saves the model.
    """
    from softcount.cli.data_input import TextSettings, may_hold_classes
    from softcount.cli.learn import FitRequest
    from softcount.cli.outputs import check_output
    from softcount.cli.sequence_calls import SequenceRequest

    texts = options.settings_of(asked)
    take_joint_model(asked)
    in_sequences = sequence_options.is_for_sequences(asked, layout)
    if in_sequences:
        sequence_options.check_with_sequences(asked, texts)
    elif asked["net"] is not None:
        joint = {"target": None, "model": None} if asked["model"] in JOINT else {}
        network_options.check_with_network(asked | joint, texts)
    else:
        network_options.check_without_network(asked)
        mixture = asked["model"] == "mixture"
        known = asked["target"] is not None and not mixture
        check_together(asked, known=known, sure=mixture or not may_hold_classes(data))
    check_folds(asked)
    check_checkpoint(asked)
    check_engine(asked)

    saved = output or default_output(data)
    if saved == "-" and sys.stdout.isatty():
        raise click.UsageError("a model is not for reading: send standard output to a file, or name one with -o")
    check_output(saved, data)
    net = network_options.take_request(asked)
    wanted = SequenceRequest(layout, **{name: asked.pop(name) for name in ("states", "context", "symbols", "ends")})
    request = FitRequest(data=data, texts=TextSettings(texts), net=net, command=as_typed(), **asked)
    if in_sequences:
        run(request, saved, json_wanted, partial(fit_sequences, asked=wanted))
    else:
        run(request, saved, json_wanted, fit_table)


def as_typed() -> str:
    """The command line that runs, as one would type it again; without the password of a database."""
    words = map(without_password, click.get_current_context().meta.get(WORDS, []))
    return shlex.join(["softcount", *words])


JOINT = ("network", "mixture")
"""Models of all columns, of which the target is one."""


def take_joint_model(asked: dict[str, Any]) -> None:
    """Turn --model network into the network that it stands for, and refuse what only a target can have."""
    if asked["model"] not in JOINT:
        return
    if asked["net"] is not None:
        raise click.UsageError(f"--net is a network already: leave out --model {asked['model']}")
    _refuse(asked, KNOWN[:-1], f"is for predicting a target, which is an ordinary column with --model {asked['model']}")
    if asked["model"] == "network":
        asked["net"] = "search"


LOOKING = ("classes", "criterion", "starts", "checkpoint")
FOR_NAIVE_BAYES = "is for naive Bayes: give --model naive-bayes, or leave --model out"
KNOWN = ("holdout", "folds", "calibrate", "unlabelled_weight", "expert", "model")


def check_together(asked: dict[str, Any], known: bool, sure: bool = True) -> None:
    """Refuse options that contradict each other; unless sure, what is to be predicted may be told by the data."""
    looking = any(asked[name] is not None for name in LOOKING)
    if known:
        _refuse(asked, LOOKING, "is for looking for classes; it cannot be given with --target")
    elif (sure or looking) and asked["model"] not in JOINT:
        _refuse(asked, KNOWN, "needs --target")
    if asked["expert"] is not None:
        _refuse(asked, ("prior",), "imagines counts as --expert does; give one of the two")
    if asked["model"] == "auto":
        _refuse(asked, ("calibrate", "expert"), FOR_NAIVE_BAYES)
    if asked["model"] == "averaged":
        _refuse(asked, ("calibrate", "expert", "prior", "unlabelled_weight"), FOR_NAIVE_BAYES)
    if isinstance(asked["classes"], int):
        _refuse(asked, ("criterion",), "chooses the number of classes, which --classes has given")


def check_checkpoint(asked: dict[str, Any]) -> None:
    """Refuse to go on from nothing, and to begin anew where something was begun."""
    path = asked["checkpoint"]
    if asked["resume"] and path is None:
        raise click.UsageError("--resume needs --checkpoint FILE")
    if path is not None and os.path.exists(path) and not asked["resume"]:
        raise click.UsageError(f"{path} is there already: give --resume to go on from it, or remove it")


BESIDE_NO_ENGINE = ("net", "calibrate", "expert", "spill")


def check_engine(asked: dict[str, Any]) -> None:
    """Refuse engines that are not known, and what needs all rows here."""
    if asked["engine"] is None:
        return
    if asked["engine"].partition("=")[0] not in ("dask", "spark"):
        raise click.UsageError(f"--engine {asked['engine']} is not known; give dask or spark, with =ADDRESS or without")
    _refuse(asked, BESIDE_NO_ENGINE, "needs all rows on one machine; it cannot be given with --engine")
    if asked["model"] == "averaged":
        raise click.UsageError("--model averaged needs all rows on one machine; it cannot be given with --engine")


def check_folds(asked: dict[str, Any]) -> None:
    """Refuse two ways to try a model, and one that leaves nothing to learn from."""
    if asked["holdout"] is not None and asked["folds"] is not None:
        raise click.UsageError("--holdout and --folds cannot both be given")
    if asked["folds"] == 1:
        raise click.UsageError("--folds 1 leaves nothing to learn from; give 2 or more, or 0 for none")


def _refuse(asked: dict[str, Any], names: tuple[str, ...], why: str) -> None:
    for name in names:
        if asked[name] is not None:
            raise click.UsageError(f"--{name.replace('_', '-')} {why}")


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
    path = Path("model" if data == "-" else Path(within).name or "model")
    while path.suffix.lower() in SUFFIXES:
        path = path.with_suffix("")
    return f"{path.name}.sc"


def run(request: FitRequest, saved: str, json_wanted: bool, fit: Callable[[FitRequest, str], Told]) -> None:
    """Learn, save, and say what was found."""
    from softcount.cli.outputs import put_answer

    fitted, document, page = fit(request, saved)
    put_answer(document, page, json_wanted, on_error_stream=saved == "-")
    if getattr(fitted, "interrupted", False):
        kept = "this is the best so far" if saved == "-" else f"the best so far is saved in {saved}"
        more = "" if request.checkpoint is None else f"; --checkpoint {request.checkpoint} --resume goes on"
        say(f"interrupted: {kept}{more}")
        raise click.exceptions.Exit(INTERRUPTED)


Told = tuple["Fitted | FittedNet", Callable[[], Any], Callable[[], "Page"]]
"""What was learned and saved, and what is said of it: as data and as a page."""


def fit_table(request: FitRequest, saved: str) -> Told:
    """Learn a model of classes, or a network, and save it."""
    from softcount.cli import learn
    from softcount.cli import library_calls as library
    from softcount.cli.outputs import progress

    with progress() as tell, interruptible():
        result = learn.fit(request, tell)
    library.save(result.fitted, saved)
    end_checkpoint(request, result.fitted.interrupted)
    found = result.fitted, result.evaluation, result.n_rows, saved, request.data
    if request.net is not None:
        from softcount.report.network_page import NetFitReport, net_fit_document, net_fit_page

        net_report = NetFitReport(*found, request.form.options)
        return result.fitted, lambda: net_fit_document(net_report), lambda: net_fit_page(net_report)
    from softcount.report.model_page import FitReport, fit_document, fit_page

    criterion = request.criterion or learn.DEFAULT_CRITERION
    report = FitReport(*found, criterion, request.form.options, result.beliefs)
    return result.fitted, lambda: fit_document(report), lambda: fit_page(report)


def end_checkpoint(request: FitRequest, interrupted: bool) -> None:
    """Take the checkpoint away: the model is saved; one that was interrupted may go on."""
    if request.checkpoint is not None and not interrupted:
        from softcount.files.checkpoint_file import remove_checkpoint

        remove_checkpoint(request.checkpoint)


def fit_sequences(request: FitRequest, saved: str, asked: SequenceRequest) -> Told:
    """Learn hidden states, or a chain, and save it."""
    from softcount.cli import library_calls as library
    from softcount.cli import sequence_calls
    from softcount.cli.outputs import progress
    from softcount.report.sequence_page import sequence_document, sequence_page

    with progress() as tell, interruptible():
        model = sequence_calls.fit_sequences(request, asked, tell)
    library.save_by(model.save, saved)
    fitted = getattr(model, "fitted_", model)
    end_checkpoint(request, getattr(fitted, "interrupted", False))
    return fitted, lambda: sequence_document(model), lambda: sequence_page(model)


@contextmanager
def interruptible() -> Iterator[None]:
    """The first Ctrl-C is a KeyboardInterrupt, which the search for classes answers with what it has; the second ends.

    So are other signals that interrupt. A process that was told to ignore one (nohup, a script in the background) goes
    on ignoring it.
    """
    main = threading.current_thread() is threading.main_thread()
    numbers = [one for one in signal.valid_signals() if main and signal.getsignal(one) is signal.default_int_handler]

    def keep(number: int, frame: Any) -> None:
        _answer(numbers, _stop)
        raise KeyboardInterrupt

    _answer(numbers, keep)
    try:
        with interrupts_end(False):
            yield
    finally:
        _answer(numbers, signal.default_int_handler)


def _answer(numbers: Iterable[int], handler: Callable[[int, Any], Any]) -> None:
    for number in numbers:
        signal.signal(number, handler)


def _stop(number: int, frame: Any) -> None:
    say("error: interrupted twice; nothing was saved")
    raise SystemExit(INTERRUPTED)
