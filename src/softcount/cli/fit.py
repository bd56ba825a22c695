"""softcount fit: options in, a request out; `softcount.cli.learn` does the work."""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Callable, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import click

from softcount.cli import WORDS as TYPED
from softcount.cli import options
from softcount.cli.options import SequenceForm, as_number, headed_option, parameter_option
from softcount.cli.outputs import check_output
from softcount.cli.request import (
    BDEU,
    NETWORK_WORDS,
    WITH_CLASS,
    Edges,
    FitRequest,
    NetRequest,
    holds_classes,
    is_network_file,
)
from softcount.core.remedies import without_password
from softcount.errors import DataError

NETWORKS, TEXTS = headed_option("Networks"), headed_option("Text columns")
CRITERIA = ("evidence", "bic", "icl", "cv", "bdeu")
"""Ways to choose the number of classes, or the edges of a network."""
MODELS = ("auto", "naive-bayes", "averaged", "network", "mixture")
JOINT = ("network", "mixture")
"""Models of all columns, of which the target is one."""
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


# -- how the text of options is understood


PRIORS = ("auto", "flat", "jeffreys", "row")


def prior_word(text: str) -> float | str:
    """Imagined counts per level: a number, or the name of a way to choose one."""
    word, _, rows = text.partition(":")
    if word == BDEU and 0 < as_number(float, rows or "1") < float("inf"):
        return text
    number = as_number(float, text)
    if text not in PRIORS and not 0 <= number < float("inf"):
        words = f"{', '.join(PRIORS)}, bdeu, bdeu:10"
        raise click.BadParameter(f"{text!r} is neither a number from 0 up nor one of {words}")
    return text if text in PRIORS else number


def ngram_range(text: str) -> tuple[int, int]:
    """The shortest and longest run of words that counts as one: "1-2", or "2" for pairs alone."""
    from softcount.text.words import LONGEST_RUN

    low, dash, high = text.partition("-")
    found = int(as_number(int, low)), int(as_number(int, high if dash else low))
    if not 1 <= found[0] <= found[1] <= LONGEST_RUN:
        most = f"of at most {LONGEST_RUN:,} words"
        raise click.BadParameter(f"{text!r} is not a shortest and a longest run {most}, such as 1-2")
    return found


def document_limit(text: str) -> int | float:
    """A number of documents (3) or a share of them (0.5)."""
    found = as_number(int if text.isdecimal() else float, text)
    if found < 0 or (isinstance(found, float) and not found <= 1):
        raise click.BadParameter(f"{text!r} is neither a number of documents (3) nor a share of them (0.5)")
    return found


ENGLISH = "english"


def stop_words(said: str) -> str | tuple[str, ...]:
    """The name of the built-in list, or the words in a file, in lower case, blanks or lines between them."""
    if said == ENGLISH:
        return said
    from softcount.sources.bytestream import TextFile, recoded

    try:
        raw = TextFile(said).whole()
    except DataError as error:
        raise DataError(f"--stop-words: {error}\n  Name a file of words, or use the built-in list: english") from None
    words = () if b"\0" in raw else tuple(sorted(set(recoded(raw)[0].decode().lower().split())))
    if not words:
        raise DataError(f"{said} holds no stop words. Write one word per line, or use the built-in list: english")
    return words


# -- networks


SCORES = ("bic", "bdeu")
"""Ways to score a structure."""


def hidden_nodes(ctx: click.Context, param: click.Parameter, texts: tuple[str, ...]) -> dict[str, Any]:
    """Node -> its number of levels, or their names, or "auto"."""
    return _by_name(ctx, param, texts, "Bag=2, Bag=auto or Bag=one,two", _levels)


def cut_columns(ctx: click.Context, param: click.Parameter, texts: tuple[str, ...]) -> dict[str, Any]:
    """Column -> its number of intervals, or where it is cut."""
    return _by_name(ctx, param, texts, "age=5 or age=18,65", _cuts)


def edge_list(ctx: click.Context, param: click.Parameter, texts: tuple[str, ...]) -> Edges:
    """Edges that must be, or must not."""
    found: list[tuple[str, str]] = []
    for part in ",".join(texts).split(",") if texts else ():
        edge = tuple(name.strip() for name in part.replace("->", ">").split(">"))
        if len(edge) != 2 or not all(edge) or edge[0] == edge[1]:
            raise click.BadParameter(f"{part.strip()!r} is not an edge, such as A>B", ctx, param)
        found.append((edge[0], edge[1]))
    return tuple(dict.fromkeys(found))


def _by_name(
    ctx: click.Context, param: click.Parameter, texts: tuple[str, ...], such: str, read: Callable[[str], Any]
) -> dict[str, Any]:
    """What is said of each name; a name may itself hold "=", so the last one divides."""
    found: dict[str, Any] = {}
    for text in texts:
        name, _, said = text.rpartition("=")
        value = read(said) if name else None
        if value is None:
            raise click.BadParameter(f"{text!r} is not {such}", ctx, param)
        if name in found:
            raise click.BadParameter(f"{name!r} is given twice", ctx, param)
        found[name] = value
    return found


def _levels(said: str) -> int | str | tuple[str, ...] | None:
    if said == "auto":
        return "auto"
    if said.isdecimal():
        return int(said) if 2 <= int(said) <= 1_000_000 else None
    names = tuple(name.strip() for name in said.split(","))
    return names if len(names) >= 2 and all(names) and len(set(names)) == len(names) else None


def _cuts(said: str) -> int | tuple[float, ...] | None:
    if said.isdecimal():
        return int(said) if int(said) >= 2 else None
    parts = said.split(",")
    if len(parts) < 2 or any(as_number(_is_float, part) < 0 for part in parts):
        return None
    edges = tuple(map(float, parts))
    return edges if all(low < high for low, high in pairwise(edges)) else None


def _is_float(text: str) -> float:
    """0 for a number, which must be finite."""
    return 0.0 if abs(float(text)) < float("inf") else -1.0


# -- the command


NETWORK_OPTIONS = (
    click.option(
        "--net",
        cls=NETWORKS,
        metavar="EDGES|FILE|WORD",
        help="Learn a Bayesian network: edges (A>B, A>C), a network file to take them from (.bif), or how to "
        "find them: naive, tan, joint (with --target), chow-liu, search.",
    ),
    click.option(
        "--hidden",
        cls=NETWORKS,
        multiple=True,
        metavar="NODE=N",
        callback=hidden_nodes,
        help="A node of the network that no column shows, and how many levels it has (or which: Bag=one,two; or "
        "auto, as many as there is evidence for). May be repeated.",
    ),
    click.option(
        "--cut",
        cls=NETWORKS,
        multiple=True,
        metavar="COL=N",
        callback=cut_columns,
        help="Cut a column of numbers into N levels of about equal count (or where: age=18,65). May be repeated.",
    ),
    click.option(
        "--required",
        cls=NETWORKS,
        multiple=True,
        metavar="A>B",
        callback=edge_list,
        help="An edge that --net search keeps. May be repeated.",
    ),
    click.option(
        "--forbidden",
        cls=NETWORKS,
        multiple=True,
        metavar="A>B",
        callback=edge_list,
        help="An edge that --net search leaves out. May be repeated.",
    ),
    parameter_option("max_parents", "--max-parents", cls=NETWORKS, metavar="K"),
)
CHAIN_OPTIONS = (
    parameter_option("n_states", "--states", cls=options.SEQUENCES, metavar="N|auto"),
    click.option(
        "--symbols",
        cls=options.SEQUENCES,
        metavar="COL",
        help="The column that a chain is of, where there are several beside --sequence, --order.",
    ),
    parameter_option("order", "--context", cls=options.SEQUENCES, metavar="N|auto|variable"),
    click.option(
        "--ends", cls=options.SEQUENCES, is_flag=True, default=None, help="A chain learns how sequences begin and end."
    ),
)
TEXT_OPTIONS = (
    click.option(
        "--text",
        "model_of_text",
        cls=TEXTS,
        type=click.Choice(("multinomial", "bernoulli", "complement")),
        help="Words drawn one by one, each there or not, or by what the other classes hold.  [default: multinomial]",
    ),
    click.option(
        "--min-count",
        cls=TEXTS,
        type=click.IntRange(1),
        metavar="N",
        help="Keep words that occur at least N times in all.  [default: 1]",
    ),
    click.option(
        "--min-df",
        cls=TEXTS,
        type=document_limit,
        metavar="N|SHARE",
        help="Keep words that are in at least so many documents (3), or a share (0.01).",
    ),
    click.option(
        "--max-df",
        cls=TEXTS,
        type=document_limit,
        metavar="N|SHARE",
        help="Keep words that are in at most so many documents, or a share (0.5).",
    ),
    click.option(
        "--drop-top",
        cls=TEXTS,
        type=click.IntRange(0),
        metavar="N",
        help="Leave out the N most frequent words.  [default: 0]",
    ),
    click.option(
        "--stop-words",
        cls=TEXTS,
        metavar="english|FILE",
        help="Leave out the words of a list: the built-in one, or those in a file.",
    ),
    click.option(
        "--ngrams",
        cls=TEXTS,
        type=ngram_range,
        metavar="N-M",
        help="Count runs of N to M words, such as 1-2.  [default: 1-1]",
    ),
)


def all_of(*wanted: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Several options as one decorator, in the order in which the help lists them."""

    def decorate(command: Any) -> Any:
        for option in reversed(wanted):
            command = option(command)
        return command

    return decorate


@click.command("fit", cls=options.HeadedCommand, epilog=EPILOG, short_help="Learn a model from a table.")
@options.data_argument
@click.option("--target", metavar="COL", help="The column to predict. Without it, classes are looked for.")
@parameter_option(
    "n_components", "--classes", metavar="N|auto", help="How many classes to look for (no --target).  [default: auto]"
)
@click.option(
    "--criterion",
    type=click.Choice(CRITERIA),
    help="What chooses the number of classes: evidence (Cheeseman-Stutz), BIC, ICL, or the likelihood of rows held "
    "out (cv).  [default: evidence]  With --net search, what scores its edges: bic or bdeu.  [default: bic]",
)
@options.kind_option
@options.format_options()
@all_of(*NETWORK_OPTIONS)
@all_of(*CHAIN_OPTIONS)
@options.sequence_form
@all_of(*TEXT_OPTIONS)
@click.option("--weight", metavar="COL", help="A column of row weights: weight 2 is the row twice.")
@click.option(
    "--prior",
    type=prior_word,
    metavar="A",
    help="Imagined counts per level: a number, or auto, flat, jeffreys, row; of a network also bdeu, or bdeu:10 for "
    "ten imagined rows in every table.",
)
@click.option(
    "--model",
    type=click.Choice(MODELS),
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
@parameter_option("estimate", "--estimate", default="mean", show_default=True)
@click.option(
    "--holdout",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    metavar="FRACTION",
    help="Try the model on this share of the rows, left out of its training.",
)
@click.option(
    "--folds", type=click.IntRange(0), metavar="K", help="Try the model on each of K parts in turn.  [default: 5]"
)
@parameter_option("calibration", "--calibrate")
@parameter_option("unlabelled_weight", "--unlabelled-weight", type=click.FloatRange(0), metavar="W")
@options.seed_option
@parameter_option(
    "n_init",
    "--starts",
    metavar="N",
    help="Initialisations of the search for classes, states or hidden nodes.  [default: 10]",
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
def fit(data: str, output: str | None, json_wanted: bool, layout: SequenceForm, **asked: Any) -> None:
    """Learn a model from the table DATA and say what it found.

    Prints the columns as understood, how well the model predicts rows it has not seen, the columns that matter
    most, and what was missing or left out; saves the model.
    """
    texts = take_text_settings(asked)
    take_joint_model(asked)
    sequences = {name: asked.pop(name) for name in ("states", "context", "symbols", "ends")}
    in_sequences = layout.is_asked_for or any(value is not None for value in sequences.values())
    if in_sequences:
        check_with_sequences(asked, sequences, texts)
    elif asked["net"] is not None:
        joint = {"target": None, "model": None} if asked["model"] in JOINT else {}
        check_with_network(asked | joint, texts)
    else:
        refuse(asked, OF_NETWORKS, "needs --net")
        if asked["criterion"] == "bdeu":
            raise click.UsageError("--criterion bdeu is for --net search; a number of classes is chosen by the others")
        if str(asked["prior"]).startswith(BDEU):
            raise click.UsageError("--prior bdeu is for networks: --net")
        check_classes(asked, data)
    check_run(asked)
    saved = output or default_output(data)
    if saved == "-" and sys.stdout.isatty():
        raise click.UsageError("a model is not for reading: send standard output to a file, or name one with -o")
    check_output(saved, data)
    net = take_network(asked)
    words = map(without_password, click.get_current_context().meta.get(TYPED, []))
    request = FitRequest(
        data=data, texts=texts, net=net, layout=layout if in_sequences else None, **sequences, **asked,
        command=shlex.join(["softcount", *words]),
    )  # fmt: skip
    from softcount.cli import learn

    learn.run(request, saved, json_wanted)


def take_text_settings(asked: dict[str, Any]) -> dict[str, Any]:
    """The settings of the family `Text` that were asked for; their options are taken out of `asked`."""
    names = ("min_count", "min_df", "max_df", "drop_top", "stop_words", "ngrams")
    found = {"model": asked.pop("model_of_text")} | {name: asked.pop(name) for name in names}
    if found["stop_words"] is not None:
        found["stop_words"] = stop_words(found["stop_words"])
    return {setting: value for setting, value in found.items() if value is not None}


def take_joint_model(asked: dict[str, Any]) -> None:
    """Turn --model network into the network that it stands for, and refuse what only a target can have."""
    if asked["model"] not in JOINT:
        return
    if asked["net"] is not None:
        raise click.UsageError(f"--net is a network already: leave out --model {asked['model']}")
    why = f"is for predicting a target, which is an ordinary column with --model {asked['model']}"
    refuse(asked, FOR_TARGET[:-1], why)
    if asked["model"] == "network":
        asked["net"] = "search"


def take_network(asked: dict[str, Any]) -> NetRequest | None:
    """What was asked of a network, taken out of `asked`; None without --net.

    Edges in a circle, and a text that is neither a word nor a file nor edges, are refused before data is read.
    """
    said = asked.pop("net")
    found = {name: asked.pop(name) for name in OF_NETWORKS}
    if said is None:
        return None
    request = NetRequest(said.strip(), criterion=asked.pop("criterion") or SCORES[0], **found)
    from softcount.fit.network_structure import graph_of_text
    from softcount.networks.network import Graph

    option = "--required"
    try:
        Graph.of(request.required)
        option = "--net"
        if request.said not in NETWORK_WORDS and not is_network_file(request.said):
            graph_of_text(request.said)
    except DataError as error:
        raise click.UsageError(f"{option}: {error}") from None
    return request


# -- what goes together

LOOKING = ("classes", "criterion", "starts", "checkpoint")
FOR_TARGET = ("holdout", "folds", "calibrate", "unlabelled_weight", "expert", "model")
FOR_NAIVE_BAYES = "is for naive Bayes: give --model naive-bayes, or leave --model out"
OF_NETWORKS = ("hidden", "cut", "required", "forbidden", "max_parents")
FOR_TABLES = (
    "classes", "net", *OF_NETWORKS, "holdout", "folds", "calibrate", "unlabelled_weight", "expert", "model", "spill",
    "engine",
)  # fmt: skip


def refuse(asked: Mapping[str, Any], names: tuple[str, ...], why: str) -> None:
    """Raise a usage error at the first option of these that was given."""
    for name in names:
        if asked[name] not in (None, (), {}):
            raise click.UsageError(f"--{name.replace('_', '-').replace('kinds', 'kind')} {why}")


def check_classes(asked: Mapping[str, Any], data: str) -> None:
    """Refuse options that contradict each other; documents in folders may tell what is to be predicted."""
    known = asked["target"] is not None and asked["model"] != "mixture"
    if known:
        refuse(asked, LOOKING, "is for looking for classes; it cannot be given with --target")
    elif asked["model"] not in JOINT and (any(asked[name] is not None for name in LOOKING) or not holds_classes(data)):
        refuse(asked, FOR_TARGET, "needs --target")
    if asked["expert"] is not None:
        refuse(asked, ("prior",), "imagines counts as --expert does; give one of the two")
    if asked["model"] == "auto":
        refuse(asked, ("calibrate", "expert"), FOR_NAIVE_BAYES)
    if asked["model"] == "averaged":
        refuse(asked, ("calibrate", "expert", "prior", "unlabelled_weight"), FOR_NAIVE_BAYES)
    if isinstance(asked["classes"], int):
        refuse(asked, ("criterion",), "chooses the number of classes, which --classes has given")


def check_run(asked: Mapping[str, Any]) -> None:
    """Refuse two ways to evaluate, a checkpoint that is not to be continued, and what an engine cannot do."""
    if asked["holdout"] is not None and asked["folds"] is not None:
        raise click.UsageError("--holdout and --folds cannot both be given")
    if asked["folds"] == 1:
        raise click.UsageError("--folds 1 leaves nothing to learn from; give 2 or more, or 0 for none")
    path = asked["checkpoint"]
    if asked["resume"] and path is None:
        raise click.UsageError("--resume needs --checkpoint FILE")
    if path is not None and os.path.exists(path) and not asked["resume"]:
        raise click.UsageError(f"{path} is there already: give --resume to go on from it, or remove it")
    if asked["engine"] is None:
        return
    if asked["engine"].partition("=")[0] not in ("dask", "spark"):
        raise click.UsageError(f"--engine {asked['engine']} is not known; give dask or spark, with =ADDRESS or without")
    elsewhere = "needs all rows on one machine; it cannot be given with --engine"
    refuse(asked, ("net", "calibrate", "expert", "spill"), elsewhere)
    if asked["model"] == "averaged":
        raise click.UsageError(f"--model averaged {elsewhere}")


def check_with_network(asked: Mapping[str, Any], texts: Mapping[str, Any]) -> None:
    """Refuse what contradicts --net."""
    said, target = asked["net"].strip(), asked["target"]
    refuse(asked, ("classes", "checkpoint"), "is for looking for classes; it cannot be given with --net")
    refuse(
        asked,
        ("calibrate", "unlabelled_weight", "expert", "model"),
        "is for naive Bayes; it cannot be given with --net",
    )
    if texts:
        raise click.UsageError("a network has no columns of text, so options for them cannot be given with --net")
    if target is None:
        refuse(asked, ("holdout", "folds"), "needs --target")
        if said in WITH_CLASS:
            raise click.UsageError(f"--net {said} needs the class: --target COL")
    if said != "search":
        refuse(asked, ("required", "forbidden", "max_parents", "criterion"), "needs --net search")
    elif asked["criterion"] not in (None, *SCORES):
        raise click.UsageError(f"--criterion {asked['criterion']} chooses a number of classes; --net search: bic, bdeu")
    both = [f"{a}>{b}" for a, b in asked["required"] if (a, b) in asked["forbidden"]]
    if both:
        raise click.UsageError(f"{both[0]} is both --required and --forbidden")
    if said in NETWORK_WORDS and asked["hidden"]:
        raise click.UsageError('--hidden needs edges, such as --net "Bag>Flavor, Bag>Wrapper": none are found for it')
    if not asked["hidden"]:
        refuse(asked, ("starts",), "with --net needs --hidden: only hidden nodes have something to look for")


def check_with_sequences(asked: Mapping[str, Any], sequences: Mapping[str, Any], texts: Mapping[str, Any]) -> None:
    """Refuse what contradicts sequences."""
    refuse(asked, FOR_TABLES, "is for tables; it cannot be given with sequences")
    if texts:
        raise click.UsageError("options for columns of text cannot be given with sequences")
    if sequences["states"] is None:
        refuse(
            asked, ("target", "criterion", "starts", "kinds", "checkpoint"), "needs --states where DATA holds sequences"
        )
    elif any(sequences[name] is not None for name in ("context", "symbols", "ends")):
        raise click.UsageError("--context, --symbols and --ends are for chains; they cannot be given with --states")
    elif asked["criterion"] not in (None, "evidence", "bic"):
        raise click.UsageError(f"--criterion {asked['criterion']} is for classes; of states: evidence, bic")


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
