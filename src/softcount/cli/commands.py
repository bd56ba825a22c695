"""Every command: its line in `softcount --help`, its options, its help, and the function that runs it.

The module of a command is imported when the command runs, so that help is shown without loading anything heavy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import click

from softcount.cli.options import (
    DATA,
    DECISIONS,
    DIGITS,
    DOCUMENT,
    FORMAT,
    GIVEN,
    JSON,
    KIND,
    MODEL,
    OPTIONAL_DATA,
    ROWS_OUTPUT,
    SEED,
    SEQUENCES,
    THRESHOLD,
    VERBOSITY_OPTIONS,
    Request,
    by_name,
    option,
    output_option,
    read_bins,
    read_categories,
    read_document_limit,
    read_edges,
    read_ngrams,
    read_prior,
)
from softcount.core.lazy import lazy_function
from softcount.export import DIALECTS

Groups = Mapping[str, Sequence[click.Option]]
HIDDEN = ("Naive Bayes", "Networks", "Sequences", "Text columns", "File format", "Large data", "Output", "Help")
"""Groups of options that `--help` leaves out and `--help-all` shows."""
SHARED: Groups = {
    "Sequences": SEQUENCES, "File format": (*FORMAT, DOCUMENT), "Output": (DIGITS, JSON, *VERBOSITY_OPTIONS)
}  # fmt: skip
"""Groups of the options that several commands have."""
FEW_EXAMPLES = 6
"""Examples that `--help` shows."""
ALL_HELP = "softcount.all_help"
PICTURES = {
    "confusion": "Confusion matrix",
    "reliability": "Reliability",
    "lift": "Gain and lift",
    "influence": "Columns that matter most",
    "nomogram": "Nomogram",
    "profile": "Class profiles",
    "ellipses": "Class ellipses",
    "regions": "Decision regions",
    "selection": "How many classes",
    "trace": "Objective by iteration",
    "frames": "The first iterations of EM",
    "certainty": "Certainty of the class of each row",
    "missing": "Missing cells",
    "drift": "Drift by column",
    "rows": "Row ",
    "network": "Nodes and edges",
    "transitions": "Transition probabilities",
    "graph": "Transition graph",
    "centres": "Centres",
    "cost": "Cost by half-step",
}
"""Names of pictures for `plot`, and how the title of each begins in a report."""
HELP_TEXT = Path(__file__).with_name("help.txt").read_text("utf-8").replace("{pictures}", ", ".join(PICTURES))
HELP = dict(part.split(": ", 1) for part in HELP_TEXT.split("\n== ")[1:])
"""The line of each command in `softcount --help`, and its own help below it."""


def show_all_help(ctx: click.Context, param: click.Parameter, given: bool) -> None:
    if given and not ctx.resilient_parsing:
        ctx.meta[ALL_HELP] = True
        click.echo(ctx.get_help(), color=ctx.color)
        ctx.exit()


HELP_ALL = option("--help-all", "Show all options and details.", is_eager=True, expose_value=False,
                  callback=show_all_help)  # fmt: skip


class Command(click.Command):
    """A command whose function is imported when it runs, with its options in groups.

    Its help is a section of `help.txt`. `--help` shows the summary, a few examples, and the first sentence on each
    option that is not in a group of `HIDDEN`; `--help-all` shows everything.
    """

    def __init__(self, path: str, *params: click.Parameter, groups: Groups = {}, name: str = ""):  # noqa: B006
        module, _, function = path.partition(":")
        run = lazy_function(f"softcount.cli.{module}", function)
        summary, _, help = HELP[name or function].partition("\n")
        text, _, rest = help.partition("\nExamples:\n")
        self.examples, _, self.details = rest.partition("\n\n")
        every = [*params, *(each for part in groups.values() for each in part), *VERBOSITY_OPTIONS]
        own = {heading: part for heading, part in groups.items() if heading not in SHARED}
        own |= {
            heading: [each for each in every if each in (*part, *groups.get(heading, ()))]
            for heading, part in SHARED.items()
        }
        grouped = {each for part in own.values() for each in part}
        plain = [each for each in every if isinstance(each, click.Option) and each not in grouped]
        self.groups = {heading: part for heading, part in {"Options": plain, **own}.items() if part}
        super().__init__(
            name or function,
            params=[*every, HELP_ALL],
            help=text,
            short_help=summary,
            epilog=f"\b\nExamples:\n{self.examples}",
            callback=lambda **values: run(Request.collect(values)),
        )

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        everything = ctx.meta.get(ALL_HELP, False)
        helps = [each for each in self.get_params(ctx) if each.name in ("help", "help_all")]
        for heading, part in {**self.groups, "Help": helps}.items():
            if everything or heading not in HIDDEN:
                records = [record for each in part if (record := each.get_help_record(ctx)) is not None]
                with formatter.section(heading):
                    formatter.write_dl(records if everything else [(flag, first_sentence(x)) for flag, x in records])

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        everything = ctx.meta.get(ALL_HELP, False)
        lines = self.examples.strip("\n").split("\n")
        with formatter.section("Examples"):
            for line in lines if everything else lines[:FEW_EXAMPLES]:
                formatter.write(f"  {line.strip()}\n")
        if everything:
            for part in self.details.split("\n\n"):
                formatter.write_paragraph()
                formatter.write_text(part.replace("\n", " "))
        else:
            hidden = ", ".join(heading[0].lower() + heading[1:] for heading in HIDDEN if heading in self.groups)
            formatter.write_paragraph()
            formatter.write(f"  More ({hidden}): {ctx.command_path} --help-all\n")


def first_sentence(help: str) -> str:
    """Shorten the help of an option to its first sentence, and whether it is required or its default.

    >>> first_sentence("Number of classes. Fewer are faster.  [default: auto; x>=1]")
    'Number of classes.  [default: auto]'
    """
    text, *extra = help.replace("]", "").split("  [")
    first, more, _ = text.partition(". ")
    facts = [fact for part in extra for fact in part.split("; ") if fact.startswith(("default", "required"))]
    return f"{first}{'.' if more else ''}" + (f"  [{'; '.join(facts)}]" if facts else "")


# -- options of fit

NETWORK_OPTIONS = (
    option(
        "--net EDGES|FILE|WORD",
        "Learn a Bayesian network: edges (A>B), a .bif file, or search. Words that find the edges are naive, tan, "
        "joint (with --target), chow-liu and search; a network file gives its edges.",
    ),
    option(
        "--hidden NODE=N",
        "A hidden node and its number of categories, or their names (Bag=one,two), or auto to choose the number by "
        "marginal likelihood.",
        multiple=True,
        callback=by_name(read_categories, "Bag=2, Bag=auto or Bag=one,two"),
    ),
    option(
        "--cut COL=N",
        "Discretise a numeric column into N bins of about equal count, or at these edges (age=18,65).",
        multiple=True,
        callback=by_name(read_bins, "age=5 or age=18,65"),
    ),
    option("--required A>B", "An edge that --net search keeps.", multiple=True, callback=read_edges),
    option("--forbidden A>B", "An edge that --net search leaves out.", multiple=True, callback=read_edges),
    option("--max-parents K", parameter="max_parents"),
)
CHAIN_OPTIONS = (
    option("--states N|auto", parameter="n_states"),
    option("--symbols COL", "The column that a chain is learned from, if there are several."),
    option("--order N|auto|variable", parameter="order"),
    option("--ends", parameter="ends", default=None),
    *SEQUENCES,
)
TEXT_OPTIONS = (
    option(
        "--text",
        "Distribution of words: counts (multinomial), presence (bernoulli), or counts in the other classes.",
        type=("multinomial", "bernoulli", "complement"),
        unset="multinomial",
    ),
    option("--min-count N", parameter="min_count", type=click.IntRange(1), unset="1"),
    option("--min-df N|SHARE", parameter="min_df", type=read_document_limit),
    option("--max-df N|SHARE", parameter="max_df", type=read_document_limit),
    option("--drop-top N", parameter="drop_top", type=click.IntRange(0), unset="0"),
    option("--stop-words english|FILE", "Words to leave out: the built-in list, or those in a file."),
    option("--ngrams N-M", parameter="ngrams", type=read_ngrams, unset="1-1"),
)

FIT_GROUPS = {
    "Task": (
        option("--target COL", "The column to predict. Without it, classes are found."),
        option(
            "--classes N|auto", "Number of classes to find.", parameter="n_components", unset="auto"
        ),
        option(
            "--model NAME",
            "Model of the target: auto, naive-bayes, aode. auto is the ensemble with the best cross-validated "
            "log-loss; aode is averaged one-dependence estimators. With them, query, impute, sample and explore use "
            "naive Bayes. Models of all columns, with the target as an ordinary one: joint, a mixture of trees, which "
            "answers questions about any columns best; network, found by search; mixture, of independent columns.",
            type=("auto", "naive-bayes", "aode", "network", "mixture", "joint"), unset="auto",
        ),
        NETWORK_OPTIONS[0],
        CHAIN_OPTIONS[0],
        output_option("The model file.", unset="DATA's name with .sc"),
        option("--full", "Print all columns, models tried, classes, notes."),
    ),
    "Columns": (
        KIND,
        option("--weight COL", "A column of row weights: weight 2 counts a row twice."),
    ),
    "Evaluation": (
        option("--folds K", "Folds of the cross-validation. 0 skips it.", type=click.IntRange(0), unset="5"),
        option(
            "--holdout FRACTION",
            "Evaluate on this share of the rows, which are left out of training.",
            type=click.FloatRange(0, 1, min_open=True, max_open=True),
        ),
        SEED,
    ),
    "Model": (
        option(
            "--criterion NAME",
            "Criterion for the number of classes: evidence, bic, icl, cv. evidence is the marginal likelihood by "
            "Cheeseman-Stutz, cv the likelihood of held-out rows. With --net search, the score of its edges: bic or "
            "bdeu (default bic).",
            type=("evidence", "bic", "icl", "cv", "bdeu"), unset="evidence",
        ),
        option("--starts N", "Number of initialisations of EM.", parameter="n_init", unset="10"),
        option(
            "--prior A",
            "Pseudo-counts per category: a number, auto, flat, jeffreys or row. For a network also bdeu, or bdeu:10 "
            "for ten rows in every table.",
            type=read_prior,
        ),
        option("--estimate NAME", parameter="estimate", default="mean",
               help="Estimate of the parameters: ml, map, mean, predictive. Maximum likelihood, posterior mode, "
               "posterior mean, or the predictive density."),
    ),
    "Naive Bayes": (
        option("--calibrate NAME", parameter="calibration",
               help="Correct the probabilities of naive Bayes: temperature, isotonic. Learned by cross-validation: one "
               "temperature, or a curve for every class."),
        option("--expert FILE", "Beliefs that naive Bayes counts in addition to the data. A CSV with the columns "
               "column, level, class, n, m: n of m rows."),
        option("--unlabelled-weight W", parameter="unlabelled_weight",
               help="Weight of a row without a label, for naive Bayes. EM learns from it if above 0. The default is 1 "
               "for text, 0 for other tables."),
    ),
    "Networks": NETWORK_OPTIONS[1:],
    "Sequences": CHAIN_OPTIONS[1:],
    "Text columns": TEXT_OPTIONS,
    "Large data": (
        option("--jobs N", "Number of threads.", type=click.IntRange(1), unset="all cores"),
        option("--spill DIR", parameter="spill"),
        option(
            "--checkpoint FILE",
            "File to which the search for classes or hidden states writes its progress. It is removed when the model "
            "is saved.",
        ),
        option("--resume", "Continue from the checkpoint, if it exists, to a bit-for-bit identical model."),
        option(
            "--engine dask|spark[=ADDRESS]",
            "Let workers of Dask or Spark read the files and count: those at an address, or --jobs of them started "
            "here. The ensemble for a --target is chosen here, from a sample of at most 100,000 rows of all files.",
        ),
    ),
}  # fmt: skip

# -- all commands


def _models_argument(metavar: str) -> click.Argument:
    return click.Argument(["models"], metavar=metavar, nargs=-1, required=True)


def _node_option(verb: str) -> click.Option:
    return option("--of NODE", f"The node of a network to {verb}.", unset="its class")


PLOT_OPTION = option("--plot FILE", "Write the picture as SVG (- is standard output).")

COMMANDS = (
    Command("fit:fit", DATA, *FORMAT, JSON, groups=FIT_GROUPS),
    Command(
        "predict:predict", MODEL, DATA, _node_option("predict"),
        option("--anomaly", "Add the anomaly score of each row: nats of log-density below the usual."),
        *DECISIONS, THRESHOLD, *FORMAT, DOCUMENT,
        option("--keep COLS|all", "Copy these columns of DATA (a,b,c), or all, to the output.", multiple=True),
        DIGITS, ROWS_OUTPUT, JSON,
        *SEQUENCES,
    ),
    Command("predict:impute", MODEL, DATA, DIGITS, *FORMAT, ROWS_OUTPUT, JSON),
    Command(
        "predict:evaluate", MODEL, DATA,
        option("--target COL", "The column that holds the class.", unset="as in the fit"),
        option("--weight COL", "A column of row weights."),
        *DECISIONS,
        option("--precision CLASS=P", "Find the threshold for this precision."),
        option("--recall CLASS=R", "Find the threshold for this recall."),
        option("--lift CLASS", "The class of the lift table.", unset="the rarer of two"),
        *FORMAT, JSON,
    ),
    Command(
        "tables:compare", DATA,
        option("--target COL", "The column that holds the classes.", required=True),
        KIND,
        option("--curve", "Also learn from increasing numbers of rows."),
        PLOT_OPTION,
        option("--folds N", "Folds of the cross-validation.", type=click.IntRange(2), unset="by the rows"),
        *FORMAT, SEED, JSON,
    ),
    Command(
        "show:show", MODEL, OPTIONAL_DATA,
        option("--anomalies N", "Number of worst-fitting rows to show.", type=click.IntRange(0), unset="10"),
        option("--parameters", "Show the parameters that rows are scored with, which include the prior."),
        option("--dot FILE", "Write the graph of a network, or of states, for Graphviz (- is standard output)."),
        option("--svg FILE", "Write the graph of a network, or of states, as SVG (- is standard output)."),
        *FORMAT, JSON,
        *SEQUENCES,
    ),
    Command(
        "show:report", MODEL, OPTIONAL_DATA,
        option("--redact", "Leave out every cell, and the name of every category of fewer than five rows."),
        *FORMAT,
        output_option("The page: .html, .json or .txt.", unset="MODEL's name with .html, in this folder"),
    ),
    Command(
        "show:plot", MODEL, OPTIONAL_DATA, click.Argument(["picture"], metavar="PICTURE", required=False),
        option("--what PICTURE", "The picture, if it is not the last argument.", hidden=True),
        option("--column COL", "The column to draw: its density, or the shares of its categories."),
        *FORMAT, output_option("The picture: .svg or .png.", unset="PICTURE.svg"),
    ),
    Command("transfer:diff", click.Argument(["old"], metavar="OLD"), click.Argument(["new"], metavar="NEW"), JSON),
    Command("transfer:merge", _models_argument("MODEL MODEL..."), output_option("The merged model.", required=True)),
    Command("tables:schema", DATA, KIND, *FORMAT, JSON),
    Command(
        "predict:explain", MODEL, DATA,
        option("--row N", "A row to explain.", multiple=True, type=click.IntRange(1)),
        _node_option("explain"),
        option("--against CLASS", "The class to compare with.", unset="the runner-up"),
        *FORMAT, DOCUMENT, output_option("Output file, CSV.", unset="standard output"), JSON,
        *SEQUENCES,
    ),
    Command(
        "query:query", MODEL,
        option("--of COL", "The column to print; for a network, several.", multiple=True),
        GIVEN,
        option("--likeliest", "For a network, the most probable categories of all nodes together."),
        option("--samples N", "For a network, answer from N samples.", type=click.IntRange(1)),
        option("--memory SIZE", parameter="memory"),
        JSON,
    ),
    Command(
        "show:explore", MODEL, OPTIONAL_DATA,
        output_option("The page.", unset="the model's name with .html"),
        option("--serve", "Serve the page on this machine instead of writing it."),
        *FORMAT,
    ),
    Command(
        "fit:open_explorer", DATA,
        *(each for each in FIT_GROUPS["Task"] if each.name in ("target", "classes", "model", "net")),
        KIND,
        output_option("The page.", unset="DATA's name with .html"),
        option("--model-file FILE", "The model file.", unset="DATA's name with .sc"),
        option("--no-browser", "Write the page and do not open it."),
        *FORMAT, SEED, name="open",
    ),
    Command(
        "transfer:serve", _models_argument("MODEL..."),
        option("--host ADDRESS", "The address to listen at.", default="127.0.0.1"),
        option("--port N", "The port; 0 for any free one.", type=click.IntRange(0, 65535), default=8000),
        option(
            "--allow-host NAME",
            "A host name that clients may use, in addition to localhost and ADDRESS; * for any.",
            multiple=True,
        ),
        option("--body-limit MB", "Size of the largest request.", type=click.IntRange(1), default=8),
        option(
            "--deadline SECONDS", "Time limit of an answer.", type=click.FloatRange(0, min_open=True), default=30.0
        ),
    ),
    Command(
        "query:sample", MODEL,
        option(
            "-n N", "Number of rows, of sequences with hidden states, or of steps of a chain.",
            type=click.IntRange(0), default=100,
        ),
        option("--length STEPS", "Length of a sequence with hidden states.", type=click.IntRange(1), unset="100"),
        GIVEN, SEED, ROWS_OUTPUT, JSON,
    ),
    Command(
        "query:generate", MODEL,
        option("-n N", "Number of sequences, or of steps.", type=click.IntRange(1), default=100),
        option("--start STEPS", "First characters of each sequence, or its first symbols, separated by spaces."),
        SEED, output_option("Output file.", unset="standard output"),
    ),
    Command(
        "transfer:export", MODEL,
        option("--to", "The format.", required=True, type=("sql", "onnx", "bif")),
        option("--dialect", "The dialect of a query.", type=DIALECTS, default="duckdb"),
        option("--table NAME", "The table that a query reads.", default="rows"),
        option("--keep COLS", "Columns of the table that a query adds in front (a,b).", multiple=True),
        output_option("Output file.", unset="standard output for a query"),
    ),
    Command(
        "tables:density", DATA,
        option("--column COL", "The numeric column.", required=True),
        option("--by COL", "A column whose categories get separate densities."),
        option("--compare", "Show every density that was tried, not only the best one."),
        PLOT_OPTION, *FORMAT, SEED, JSON,
    ),
    Command("demo:completion", click.Argument(["shell"], type=click.Choice(("bash", "zsh", "fish")))),
    Command(
        "demo:demo", click.Argument(["name"], required=False, metavar="[NAME]"),
        option("--keep FOLDER", "Put the table and the model in this folder and leave them there."),
    ),
)  # fmt: skip
