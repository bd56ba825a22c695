"""Every command: its line in `softcount --help`, its options, its help, and the function that runs it.

The module of a command is imported when the command runs, so that help is shown without loading anything heavy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

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


def show_all_help(ctx: click.Context, param: click.Parameter, given: bool) -> None:
    if given and not ctx.resilient_parsing:
        ctx.meta[ALL_HELP] = True
        click.echo(ctx.get_help(), color=ctx.color)
        ctx.exit()


HELP_ALL = option("--help-all", "Show all options and details.", is_eager=True, expose_value=False,
                  callback=show_all_help)  # fmt: skip


class Command(click.Command):
    """A command whose function is imported when it runs, with its options in groups.

    `help` is a summary, examples, and details. `--help` shows the summary, a few examples, and the first sentence on
    each option that is not in a group of `HIDDEN`; `--help-all` shows everything.
    """

    def __init__(
        self,
        path: str,
        summary: str,
        help: str,
        params: Sequence[click.Parameter],
        groups: Groups = {},  # noqa: B006
        name: str = "",
    ):
        module, _, function = path.partition(":")
        run = lazy_function(f"softcount.cli.{module}", function)
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


# -- learning

FIT = """
Learn a model from the table DATA, print how good it is and which columns matter, and save it.

Examples:
  softcount fit adult.csv --target income            learn to predict income
  softcount fit cars.csv                             find classes of cars and their number
  softcount fit cars.csv --classes 4                 find four classes of cars
  softcount fit visits.csv --target stayed --kind zip=categorical --kind id=ignore
  softcount fit adult.csv --target income --full     print everything
  softcount fit mail/ -o spam.sc                     learn to predict the sub-folder of a document
  zcat big.csv.gz | softcount fit - --target y -o big.sc
  softcount fit news.tar.gz --min-count 3 --drop-top 100 --holdout 0.3
  softcount fit reviews.csv --target stars --kind review=text --stop-words english
  softcount fit adult.csv --target income --net tan
  softcount fit candy.csv --net "Bag>Flavor, Bag>Wrapper" --hidden Bag=2
  softcount fit asia.csv --net search --criterion bdeu --forbidden "lung>smoke"
  softcount fit visits.csv --target stayed --model naive-bayes --expert beliefs.csv
  softcount fit adult.csv --target income --model naive-bayes
  softcount fit adult.csv --target income --model mixture    query any column given any others
  softcount fit events.csv --sequence customer --sort-by time --states 3
  softcount fit names.txt --steps characters --order auto --ends
  softcount fit visits.parquet --target bought --kind clicks=markov
  softcount fit shop.duckdb --sql "SELECT * FROM visits" --target bought --model naive-bayes

A folder, or a tar file of one, is a table with one document per row: column text is its content, and class the
sub-folder it is in, which is the target unless --target or --classes is given. Documents are read as UTF-8, and as
Latin-1 if they are not UTF-8; binary files are left out. The options for text apply to every column of text.

With --target, rows whose target is missing are used only in tables of text, unless --unlabelled-weight is given. The
model is also evaluated by five-fold cross-validation, unless --holdout or --folds is given (--folds 0 skips it).

Passwords in the address of a database are neither shown nor saved; PGPASSWORD may hold one.

With --net the model is a Bayesian network of the columns, of hidden nodes, and of the target. Numeric columns with
children are discretised. Only the edges of a network file are used.

With --states a hidden Markov model is learned from sequences: from a long table with a row for each step
(--sequence, --sort-by), or from text (--steps). Without it, a Markov chain is learned. With --weight a sequence of
weight 2 counts twice; with --target the states of some steps are known.

Ctrl-C during a search for classes saves the best model so far and ends with exit code 130; a second Ctrl-C stops
immediately. SIGTERM does the same."""

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
            "Model of the target: auto, naive-bayes, aode, network, mixture. auto is the ensemble with the best "
            "cross-validated log-loss; aode is averaged one-dependence estimators. With auto, naive-bayes and aode, "
            "query, impute, sample and explore use naive Bayes. Two models of all columns, with the target as an "
            "ordinary one, account for dependent columns: a mixture whose number of classes is chosen, and a network "
            "found by search (faster).",
            type=("auto", "naive-bayes", "aode", "network", "mixture"), unset="auto",
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

# -- rows and questions

PREDICT = """
Predict the class of every row of DATA by MODEL.

Examples:
  softcount predict adult.sc new.csv -o predicted.csv
  softcount predict adult.sc new.csv --keep name,age --digits 3 | head
  softcount predict cars.sc - < cars.csv
  softcount predict spam.sc mail/                    one line per document, its file first
  softcount predict spam.sc - < messages.txt         one line per line
  softcount predict alarm.bif rows.csv --of HISTORY
  softcount predict wealth.sc new.csv --cost 'rich,poor=5'
  softcount predict ill.sc rows.csv --class-prior ill=0.01 --threshold ill=0.2
  softcount predict visits.sc events.csv --sequence customer --sort-by time

One line per row of DATA, in its order: the predicted class, then the probability of each class. Columns may be in any
order. Missing cells and missing columns are not evidence, and columns that are not in the model are ignored. With
--anomaly the last column is the anomaly score of the row; `softcount show MODEL DATA` shows which columns cause it.

--cost, --class-prior and --threshold turn probabilities into decisions; `softcount evaluate` finds the threshold for a
wanted precision or recall. Classes not named in --class-prior share the rest in proportion to their shares in training.

A folder or a tar file holds one document in each file. If MODEL reads nothing but text, each line of any other file, or
of standard input, is a document, unless the first line (as CSV or TSV) names the model's column or --no-header is
given: then it is a table. A table without that column is refused. --lines and --document override the detection.

A hidden Markov model gives one line per step: its place, the state on the most probable path, the probability of each
state. A Markov chain gives one line per sequence: the next symbol.

A network, which may also be a network file (.bif, gzipped or not), predicts any node from the rest of each row: a
category with its probabilities, or the expected value of a number."""

IMPUTE = """
Fill the missing cells of DATA with the values that MODEL expects.

Examples:
  softcount impute cars.sc cars.csv -o whole.csv
  softcount impute cars.sc cars.csv --digits 2 | head
  softcount impute asia.bif rows.csv -o whole.parquet

Writes all columns of DATA, in their order and notation. A missing number becomes its expected value given the rest of
the row, a missing category the most probable one. Text, and columns that the model does not know, stay as they are."""

EVALUATE = """
Evaluate MODEL on the rows of DATA, whose class is known.

Examples:
  softcount evaluate adult.sc kept-back.csv
  softcount evaluate adult.sc kept-back.csv --precision '>50K=0.9'
  softcount evaluate ill.sc rows.csv --cost ill,well=10 --lift ill --json

DATA holds rows the model has not learned from, with their class; rows without one are skipped. The baseline predicts
the shares of the classes in training. AUC is how often a row of a class has a higher probability of it than one of
another, averaged over the classes.

--precision and --recall find the probability from which on to decide for a class (`softcount predict --threshold`),
and what it gives here: also for every fold of DATA by the threshold chosen on its other rows."""

EXPLAIN = """
Explain the class that MODEL predicts for each row of DATA, or for DATA as one document.

Examples:
  softcount explain adult.sc new.csv --row 17
  softcount explain adult.sc new.csv --row 17 --against '>50K'
  softcount explain adult.sc new.csv -o reasons.csv
  softcount explain spam.sc message.txt
  softcount explain spam.sc mail/ --row 3
  softcount explain visits.sc events.csv --sequence customer --sort-by time -o why.csv

The figures are log-odds, in nats, of the predicted class against the runner-up (or the class of --against).
They add up exactly: (prior) plus every column gives (total). A missing cell gives 0. Rows are counted from 1.
Without --row, every row is explained, one line of CSV each; with --against, rows of that class itself get 0.

For hidden states every step is explained: the contributions of the steps before, of each column, and of the steps
after to its state against the runner-up. For a Markov chain: how surprising each step is after those before it.

For a network the class is explained, or the node of --of: what every node adds to those before it, parents first.

A column of text is also explained by its words, whose log-odds add up to the column's, and the document is shown with
them marked. If MODEL reads nothing but text, a file (or standard input) is one document, unless its first line names
the model's column or --no-header is given: then it is a table. With --row or --lines each line is a document, as for
`softcount predict`."""

QUERY = """
Print the distribution of one column of MODEL, or of every column, given others.

A categorical column is answered by the probability of each category, a numeric one by its mean, spread and quantiles.

Examples:
  softcount query adult.sc --of income --given education=Masters --given sex=Female
  softcount query adult.sc --of age --given income='>50K'
  softcount query cars.sc --given price=1000..2000 --given 'brakes=disc|rim'
  softcount query cars.sc --of brakes --given 'price>1000' --given 'colour!=red'
  softcount query spam.sc --of class --given text='claim your prize'
  softcount query asia.bif --of lung --of bronc --given smoke=yes
  softcount query asia.bif --of lung --given 'smoke=yes:0.8|no:0.3' --samples 10000
  softcount query asia.bif --likeliest --given dysp=yes

A condition is a value, a range of numbers (price=100..200, price=100.., 'price>1000', 'price<=5'), one of several
values ('brakes=disc|rim'), or a value to exclude ('brakes!=disc'); in quotes if the shell would interpret a character.
Answers are exact: ranges count by their probability.

MODEL may be a network file (.bif, gzipped or not). Several nodes of a network give their joint distribution. A
condition may also be the likelihood of each category (a:0.8|b:0.2); for a discretised number, a range counts by the
share of each bin that it covers. A network too dense for an exact answer is refused with the memory it would need; then
increase --memory, or use --samples, whose answers have standard errors."""

SAMPLE = """
Draw N new rows from MODEL, as CSV.

Examples:
  softcount sample adult.sc -n 1000 -o imagined.csv
  softcount sample adult.sc -n 5 --given income='>50K' --seed 7
  softcount sample alarm.bif -n 20000 -o alarm.csv
  softcount sample visits.sc -n 5 --length 40        sequences, with their hidden states

MODEL may be a network file (.bif, gzipped or not); hidden nodes of a network are drawn too."""

GENERATE = """
Write N new sequences, or one of N steps, drawn from the Markov chain MODEL.

Examples:
  softcount generate names.sc -n 20 --seed 7         twenty names
  softcount generate shakespeare.sc -n 500           a text of 500 characters
  softcount generate names.sc -n 5 --start el

A chain learned with --ends makes N sequences, each to its end, one per line; another makes one of N steps. Characters
are written without blanks, words and other symbols with blanks between them. `softcount sample` writes the same as CSV,
and also draws from models of tables and of hidden states."""

# -- pages about models

SHOW = """
Summarise MODEL: its classes, its columns, and how the classes differ; or the nodes of a network.

With DATA, also the rows of each class, and the rows that fit no class.

Examples:
  softcount show adult.sc
  softcount show cars.sc cars.csv --anomalies 20
  softcount show adult.sc --json | jq .classes
  softcount show alarm.bif --svg alarm.svg           the picture of a network
  softcount show alarm.bif --dot alarm.dot
  softcount show visits.sc events.csv --sequence customer --sort-by time

With DATA, its rows are assigned to the classes: the most and least certain members of each, how uncertain the rows
are, and the rows that fit worst, with the columns that make them odd. Rows are counted from 1.

Shares, means and deviations are those of the training rows. Rows are scored with parameters that include the prior;
--parameters shows those.

Influence is how far the distribution of a column in a class departs from that in the whole table, in nats, as in
AutoClass: summed over the classes for a column, and relative to the most influential.

A column of text has the characteristic words of each class: more probable there than in all other classes together,
ranked by certainty. Log-odds are in nats.

For hidden states: how many steps each has, how long it lasts, its successors and its distributions; with DATA, the
steps that fit worst after those before them, and why. --svg and --dot draw the transitions; with DATA --svg draws the
states of its first sequences under their first number.

With DATA, a network shows the rows that fit it worst, with the nodes that make them odd.

For a network, which may also be a network file (.bif, gzipped or not), the graph is drawn and the table of each node
shown: a line for every combination of its parents' categories. Hidden nodes are in parentheses; in the pictures of
--dot and --svg, dashed."""

REPORT = """
Write a report on MODEL as one page: verdict, data, accuracy, influence, classes, rows, fit, origin.

With DATA, a table with the columns of the model, also its rows and how its columns differ from training.

Examples:
  softcount report adult.sc -o report.html           the contents of the model file, with pictures
  softcount report adult.sc new.csv -o report.html   also explained rows, and drift of new.csv against training
  softcount report adult.sc --redact -o for-all.html
  softcount report adult.sc -o report.json

The page is one self-contained file without scripts. A name that ends in .json or .txt gets the same page as data or as
text. The accuracy on held-out rows was found by `softcount fit` and is read from the model file; if DATA holds the
target, the page also has the accuracy there."""

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

PLOT = f"""
Write one picture of MODEL, and of DATA if the picture is about rows.

Pictures: density (with --column), {", ".join(PICTURES)}.

Examples:
  softcount plot adult.sc influence                  writes influence.svg
  softcount plot adult.sc density --column age -o age.png
  softcount plot cars.sc cars.csv ellipses -o cars.svg

Some pictures need DATA (rows, drift, frames, certainty), others depend on the kind of model. They are the pictures of
`softcount report`; a name that ends in .png needs matplotlib (pip install "softcount[plot]")."""

OPEN = """
Fit the table DATA, and open an explorer of the model in the browser.

Examples:
  softcount open adult.csv --target income               writes adult.sc and adult.html
  softcount open cars.csv                                classes of cars
  softcount open asia.csv --net search --no-browser      print the path only

The model is that of `softcount fit` with the same options. The page is that of `softcount explore MODEL DATA`. Without
a display the page is written and not opened."""

EXPLORE = """
Write an interactive explorer of MODEL: choose values of columns, and all other columns update.

Examples:
  softcount explore adult.sc                             writes adult.html
  softcount explore adult.sc -o explore.html
  softcount explore adult.sc new.csv -o explore.html     with the first rows of new.csv, to load
  softcount explore spam.sc --serve                      from a server on this machine, until Ctrl+C

The page is one self-contained HTML file; everything runs in the browser. Click a category or a bar to condition on it.
The page holds the model's probabilities, and with DATA its first 200 rows. For a model of sequences it has the first
steps, each given any others, before and after.

A page of more than 3 MB is slow to open and to send: --serve serves it on 127.0.0.1 instead, to anyone who has the
address it prints. It then also shows the answer of `predict`, with everything that a classifier learned, calibrated."""

DIFF = """
Print what changed from the model OLD to the model NEW.

Examples:
  softcount diff monday.sc tuesday.sc
  softcount diff old.sc new.sc --json | jq '.columns[0]'

Prints columns and categories that were added or removed, rows, shares of classes, and columns by how far they moved:
the total variation distance, 0 % if nothing changed and 100 % if the two have nothing in common. Classes that were
found have numbers, which mean nothing in another model: then whole columns are compared."""

# -- tables

SCHEMA = """
Print how the table DATA is read: the kind of each column and why, its categories, and what is missing.

Examples:
  softcount schema adult.csv
  softcount schema adult.csv --kind zip=categorical --missing unknown
  softcount schema adult.csv --kind auto
  softcount schema adult.csv --json | jq '.columns[].kind'
  softcount schema mail/"""

COMPARE = """
Compare classifiers of a column of DATA on held-out rows.

Examples:
  softcount compare adult.csv --target income
  softcount compare adult.csv --target income --curve         the best with few rows, and with many
  softcount compare adult.csv --target income --plot curves.svg
  softcount compare adult.csv --target income --json | jq '.models[0]'

Compared are naive Bayes with numbers as they are, discretised and under kernels, with a weight for each column, and
with a tree of columns; AODE; a mixture for every class; the default ensemble; scikit-learn's logistic regression and
gradient boosting. All are trained and tested on the same rows: five folds, or above 15,000 rows a third held out once.
Rows without a class are left out."""

DENSITY = """
Rank densities of a column of DATA by the log-likelihood of held-out rows, and draw them.

Examples:
  softcount density adult.csv --column age
  softcount density adult.csv --column age --compare         every density, ranked
  softcount density adult.csv --column age --by income --plot age.svg
  softcount density adult.csv --column age --json | jq '.densities[0]'

The candidates are those of --kind auto: normal; lognormal and gamma (if every value is above 0); exponential (if no
value is below 0); Student's t; Poisson and geometric (if the values are counts); a spike and a density (if many values
are equal); a histogram, Gaussian kernels, and two to four normals. Each is fitted to four fifths of the rows and scored
on the others, five times. With --by every group has its own densities. A density is never narrower than the rounding
of the values."""

# -- models for others

MERGE = """
Merge models by adding their counts.

Examples:
  softcount merge monday.sc tuesday.sc -o both.sc
  softcount merge shops/*.sc -o all.sc

The result is the model that one fit of all rows gives. Naive Bayes, networks without hidden nodes, Markov chains,
densities and bags of words can be merged. Mixtures cannot: the classes of one model are not those of another."""

EXPORT = """
Write MODEL in a form that other programs run.

Examples:
  softcount export adult.sc --to sql --dialect postgres --table people --keep id -o score.sql
  softcount export adult.sc --to sql --dialect sqlite | sqlite3 people.db
  softcount export adult.sc --to onnx -o adult.onnx
  softcount export asia.sc --to bif -o asia.bif

A query reads the columns of the model from --table and returns a line for every row: the predicted class, then the
probability of each, as `softcount predict` does; --keep adds columns of the table in front. Missing cells and unseen
categories are treated as by the model. Dates, durations and amounts with a unit go in as numbers (seconds since 1970,
numbers in the unit): the first lines of the query name the columns to cast in a view.

Words of a text are found in DuckDB, Postgres, Spark and BigQuery. An ONNX graph takes a tensor for every column:
numbers (dates as seconds since 1970) with NaN for missing, categories as text.

The export is first run on 1,000 rows drawn from the model, and the largest difference is printed; if the two differ by
more than rounding, nothing is written. Naive Bayes, mixtures, k-means, AODE and classifiers can be exported, networks
as BIF; a column that the other program cannot compute is named, with what to do."""

SERVE = """
Serve MODELs over HTTP until interrupted.

Examples:
  softcount serve titanic.sc                          at 127.0.0.1, port 8000, until Ctrl+C
  softcount serve titanic.sc spam.sc --port 0         several models, on any free port
  softcount serve titanic.sc --host 0.0.0.0 --allow-host models.example.org

A model has the name of its file without the ending, in the Open Inference Protocol (version 2): POST
/v2/models/titanic/infer with one tensor for each column, null for a missing cell, returns the label of each row,
the probability of each class, and the classes. /v2/models/titanic/explain returns the reasons. GET /v2/models/titanic
lists its columns, /v2/health/live and /v2/health/ready report health, /metrics has counters for Prometheus.

Classifiers, mixtures, networks with a class, models of text, and k-means can be served. Requests neither read nor write
files. Anyone who reaches the address may send requests: there are no passwords and no encryption, so beyond this
machine put it behind a proxy that has both."""

DEMO = """
Run the main commands on the table NAME that comes with Softcount, showing each command before it runs.

Examples:
  softcount demo
  softcount demo --keep playground      keep the table and the model"""

COMPLETION = """
Print the lines with which SHELL completes commands and options of softcount.

Examples:
  softcount completion bash >> ~/.bashrc
  softcount completion zsh >> ~/.zshrc
  softcount completion fish > ~/.config/fish/completions/softcount.fish"""


def _models_argument(metavar: str) -> click.Argument:
    return click.Argument(["models"], metavar=metavar, nargs=-1, required=True)


def _node_option(verb: str) -> click.Option:
    return option("--of NODE", f"The node of a network to {verb}.", unset="its class")


PLOT_OPTION = option("--plot FILE", "Write the picture as SVG (- is standard output).")

COMMANDS = (
    Command(
        "fit:fit", "Learn a model from a table: predict a column, or find classes.", FIT,
        (DATA, *FORMAT, JSON), FIT_GROUPS,
    ),
    Command(
        "predict:predict", "Predict the class of every row of a table.", PREDICT,
        (
            MODEL, DATA, _node_option("predict"),
            option("--anomaly", "Add the anomaly score of each row: nats of log-density below the usual."),
            *DECISIONS, THRESHOLD, *FORMAT, DOCUMENT,
            option("--keep COLS|all", "Copy these columns of DATA (a,b,c), or all, to the output.", multiple=True),
            DIGITS, ROWS_OUTPUT, JSON,
            *SEQUENCES,
        ),
    ),
    Command(
        "predict:impute", "Fill the missing cells of a table.", IMPUTE,
        (MODEL, DATA, DIGITS, *FORMAT, ROWS_OUTPUT, JSON),
    ),
    Command(
        "predict:evaluate", "Evaluate a model on rows whose class is known.", EVALUATE,
        (
            MODEL, DATA,
            option("--target COL", "The column that holds the class.", unset="as in the fit"),
            option("--weight COL", "A column of row weights."),
            *DECISIONS,
            option("--precision CLASS=P", "Find the threshold for this precision."),
            option("--recall CLASS=R", "Find the threshold for this recall."),
            option("--lift CLASS", "The class of the lift table.", unset="the rarer of two"),
            *FORMAT, JSON,
        ),
    ),
    Command(
        "tables:compare", "Compare classifiers on held-out rows.", COMPARE,
        (
            DATA,
            option("--target COL", "The column that holds the classes.", required=True),
            KIND,
            option("--curve", "Also learn from increasing numbers of rows."),
            PLOT_OPTION,
            option("--folds N", "Folds of the cross-validation.", type=click.IntRange(2), unset="by the rows"),
            *FORMAT, SEED, JSON,
        ),
    ),
    Command(
        "show:show", "Summarise a model.", SHOW,
        (
            MODEL, OPTIONAL_DATA,
            option("--anomalies N", "Number of worst-fitting rows to show.", type=click.IntRange(0), unset="10"),
            option("--parameters", "Show the parameters that rows are scored with, which include the prior."),
            option("--dot FILE", "Write the graph of a network, or of states, for Graphviz (- is standard output)."),
            option("--svg FILE", "Write the graph of a network, or of states, as SVG (- is standard output)."),
            *FORMAT, JSON,
            *SEQUENCES,
        ),
    ),
    Command(
        "show:report", "Write a report on a model, with pictures.", REPORT,
        (
            MODEL, OPTIONAL_DATA,
            option("--redact", "Leave out every cell, and the name of every category of fewer than five rows."),
            *FORMAT,
            output_option("The page: .html, .json or .txt.", unset="MODEL's name with .html, in this folder"),
        ),
    ),
    Command(
        "show:plot", "Write one picture of a model.", PLOT,
        (
            MODEL, OPTIONAL_DATA, click.Argument(["picture"], metavar="PICTURE", required=False),
            option("--what PICTURE", "The picture, if it is not the last argument.", hidden=True),
            option("--column COL", "The column to draw: its density, or the shares of its categories."),
            *FORMAT, output_option("The picture: .svg or .png.", unset="PICTURE.svg"),
        ),
    ),
    Command(
        "transfer:diff", "Print what changed between two models.", DIFF,
        (click.Argument(["old"], metavar="OLD"), click.Argument(["new"], metavar="NEW"), JSON),
    ),
    Command(
        "transfer:merge", "Merge models by adding their counts.", MERGE,
        (_models_argument("MODEL MODEL..."), output_option("The merged model.", required=True)),
    ),
    Command(
        "tables:schema", "Print how a table is read: the kind of each column, and why.", SCHEMA,
        (DATA, KIND, *FORMAT, JSON),
    ),
    Command(
        "predict:explain", "Explain the class of a row, column by column.", EXPLAIN,
        (
            MODEL, DATA,
            option("--row N", "A row to explain.", multiple=True, type=click.IntRange(1)),
            _node_option("explain"),
            option("--against CLASS", "The class to compare with.", unset="the runner-up"),
            *FORMAT, DOCUMENT, output_option("Output file, CSV.", unset="standard output"), JSON,
            *SEQUENCES,
        ),
    ),
    Command(
        "query:query", "Print the distribution of columns, given others.", QUERY,
        (
            MODEL,
            option("--of COL", "The column to print; for a network, several.", multiple=True),
            GIVEN,
            option("--likeliest", "For a network, the most probable categories of all nodes together."),
            option("--samples N", "For a network, answer from N samples.", type=click.IntRange(1)),
            option("--memory SIZE", parameter="memory"),
            JSON,
        ),
    ),
    Command(
        "show:explore", "Write an interactive explorer of a model.", EXPLORE,
        (
            MODEL, OPTIONAL_DATA,
            output_option("The page.", unset="the model's name with .html"),
            option("--serve", "Serve the page on this machine instead of writing it."),
            *FORMAT,
        ),
    ),
    Command(
        "fit:open_explorer", "Fit a table, and open the explorer in the browser.", OPEN,
        (
            DATA,
            *(each for each in FIT_GROUPS["Task"] if each.name in ("target", "classes", "model", "net")),
            KIND,
            output_option("The page.", unset="DATA's name with .html"),
            option("--model-file FILE", "The model file.", unset="DATA's name with .sc"),
            option("--no-browser", "Write the page and do not open it."),
            *FORMAT, SEED,
        ),
        name="open",
    ),
    Command(
        "transfer:serve", "Serve models over HTTP, by the Open Inference Protocol.", SERVE,
        (
            _models_argument("MODEL..."),
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
    ),
    Command(
        "query:sample", "Draw new rows from a model.", SAMPLE,
        (
            MODEL,
            option(
                "-n N", "Number of rows, of sequences with hidden states, or of steps of a chain.",
                type=click.IntRange(0), default=100,
            ),
            option("--length STEPS", "Length of a sequence with hidden states.", type=click.IntRange(1), unset="100"),
            GIVEN, SEED, ROWS_OUTPUT, JSON,
        ),
    ),
    Command(
        "query:generate", "Write new text or sequences from a Markov chain.", GENERATE,
        (
            MODEL,
            option("-n N", "Number of sequences, or of steps.", type=click.IntRange(1), default=100),
            option("--start STEPS", "First characters of each sequence, or its first symbols, separated by spaces."),
            SEED, output_option("Output file.", unset="standard output"),
        ),
    ),
    Command(
        "transfer:export", "Export a model to SQL, ONNX or BIF.", EXPORT,
        (
            MODEL,
            option("--to", "The format.", required=True, type=("sql", "onnx", "bif")),
            option("--dialect", "The dialect of a query.", type=DIALECTS, default="duckdb"),
            option("--table NAME", "The table that a query reads.", default="rows"),
            option("--keep COLS", "Columns of the table that a query adds in front (a,b).", multiple=True),
            output_option("Output file.", unset="standard output for a query"),
        ),
    ),
    Command(
        "tables:density", "Rank densities of a column, and draw them.", DENSITY,
        (
            DATA,
            option("--column COL", "The numeric column.", required=True),
            option("--by COL", "A column whose categories get separate densities."),
            option("--compare", "Show every density that was tried, not only the best one."),
            PLOT_OPTION, *FORMAT, SEED, JSON,
        ),
    ),
    Command(
        "demo:completion", "Print a shell completion script.", COMPLETION,
        (click.Argument(["shell"], type=click.Choice(("bash", "zsh", "fish"))),),
    ),
    Command(
        "demo:demo", "Run the main commands on a small table.", DEMO,
        (
            click.Argument(["name"], required=False, metavar="[NAME]"),
            option("--keep FOLDER", "Put the table and the model in this folder and leave them there."),
        ),
    ),
)  # fmt: skip
