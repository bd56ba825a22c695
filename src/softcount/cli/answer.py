"""Commands that put rows or questions to a model: predict, impute, evaluate, explain, query, sample, generate.

Each imports what it needs when it runs, so that its help is shown at once.
"""

from __future__ import annotations

from typing import Any

import click
from msgspec.structs import replace

from softcount.cli import options
from softcount.cli.options import DecisionRequest, InputFormat, SequenceForm, decision_options, sequence_form
from softcount.cli.outputs import check_output, is_parquet, progress, put_answer, put_bytes, put_rows
from softcount.errors import DataError

PREDICT_EPILOG = """\b
Examples:
  softcount predict adult.sc new.csv -o predicted.csv
  softcount predict adult.sc new.csv --keep name,age --digits 3 | head
  softcount predict cars.sc - < cars.csv
  softcount predict spam.sc mail/                    one line per document, its file first
  softcount predict spam.sc - < messages.txt         one line per line
  softcount predict alarm.bif rows.csv --of HISTORY
  softcount predict wealth.sc new.csv --cost 'rich,poor=5'
  softcount predict ill.sc rows.csv --prior ill=0.01 --threshold ill=0.2
  softcount predict visits.sc events.csv --sequence customer --order time

One line per row of DATA, in its order: the predicted class, then the probability of each class. Columns may
be in any order; a missing cell or column is no evidence, and what is not in the model is left out. With --anomaly
the last column is the row's anomaly score; `softcount show MODEL DATA` says which columns make a row odd.

--cost, --prior and --threshold say what to make of the probabilities; `softcount evaluate` finds the threshold for a
wanted precision or recall. Classes not named in --prior divide what is left as they did in training.

A folder or a tar file holds one document in each file. Where text is all that MODEL reads, each line of any other
file, or of standard input, is a document, unless the first line (as CSV or TSV) names the model's column or
--no-header is given: then it is a table. What looks like a table without that column is refused. --lines and
--document leave nothing to be decided.

Of hidden states in sequences, one line per step: its place, the state on the likeliest path, the probability of each
state. Of a Markov chain, one line per sequence: what comes next.

Of a network, which may also be a network file (.bif, gzipped or not), any node can be predicted from
the rest of each row: a level with its probabilities, or the expected value of a number."""


@click.command("predict", epilog=PREDICT_EPILOG, short_help="Predict the class of every row of a table.")
@options.model_argument
@options.data_argument
@click.option("--of", "of", metavar="NODE", help="The node of a network to predict.  [default: its class]")
@click.option("--anomaly", is_flag=True, help="Add how odd each row is: nats of log-density below the usual.")
@decision_options
@sequence_form
@options.format_options(document=True)
@options.keep_option
@options.digits_option
@options.rows_output_option
@options.json_option
def predict(  # noqa: PLR0913 - what can be asked for
    model: str,
    data: str,
    of: str | None,
    anomaly: bool,
    decide: DecisionRequest,
    layout: SequenceForm,
    form: InputFormat,
    keep: tuple[str, ...],
    digits: int | None,
    output: str | None,
    json_wanted: bool,
) -> None:
    """Predict the class of every row of DATA by MODEL."""
    from softcount.cli.predict import predict_rows

    check_output(output, model, data)
    found, tell_notes = predict_rows(model, data, of, anomaly, decide, layout, form, keep, digits)
    put_rows(found, output, json_wanted)
    tell_notes()


IMPUTE_EPILOG = """\b
Examples:
  softcount impute cars.sc cars.csv -o whole.csv
  softcount impute cars.sc cars.csv --digits 2 | head
  softcount impute asia.bif rows.csv -o whole.parquet

All columns of DATA, in its order, as they are written there. A missing number is what the model expects given the rest
of the row, a missing level the likeliest. Text, and columns that the model does not know, stay as they are."""


@click.command("impute", epilog=IMPUTE_EPILOG, short_help="Fill the holes of a table.")
@options.model_argument
@options.data_argument
@options.digits_option
@options.format_options()
@options.rows_output_option
@options.json_option
def impute(model: str, data: str, digits: int | None, form: InputFormat, output: str | None, json_wanted: bool) -> None:
    """Fill the holes of DATA by what MODEL expects there."""
    from softcount.cli.predict import impute_rows

    check_output(output, model, data)
    found, tell_notes = impute_rows(model, data, digits, form)
    put_rows(found, output, json_wanted)
    tell_notes()


EVALUATE_EPILOG = """\b
Examples:
  softcount evaluate adult.sc kept-back.csv
  softcount evaluate adult.sc kept-back.csv --precision '>50K=0.9'
  softcount evaluate ill.sc rows.csv --cost ill,well=10 --lift ill --json

DATA holds rows the model has not learned from, with their class; rows without one are passed over. The figures stand
beside those of always saying how frequent each class was in training. AUC is how often a row of a class has a higher
probability of it than one of another, averaged over the classes.

--precision and --recall find the probability from which on to decide for a class (`softcount predict --threshold`),
and what it gives here: for every fold of DATA also by the threshold that its other rows would have chosen."""


@click.command("evaluate", epilog=EVALUATE_EPILOG, short_help="Say how well a model does on rows whose class is known.")
@options.model_argument
@options.data_argument
@click.option("--target", metavar="COL", help="The column that holds the class.  [default: as in the fit]")
@click.option("--weight", metavar="COL", help="A column of row weights.")
@click.option("--cost", "costs", multiple=True, metavar="TRUE,DECIDED=N", help="As for predict: what decisions cost.")
@click.option(
    "--prior", "prior", multiple=True, metavar="CLASS=SHARE", help="As for predict: how frequent classes are."
)
@click.option("--precision", metavar="CLASS=P", help="Find the threshold for this precision.")
@click.option("--recall", metavar="CLASS=R", help="Find the threshold for this recall.")
@click.option("--lift", metavar="CLASS", help="The class of the lift table.  [default: the rarer of two]")
@options.format_options()
@options.json_option
def evaluate(  # noqa: PLR0913 - what can be asked for
    model: str,
    data: str,
    target: str | None,
    weight: str | None,
    costs: tuple[str, ...],
    prior: tuple[str, ...],
    precision: str | None,
    recall: str | None,
    lift: str | None,
    form: InputFormat,
    json_wanted: bool,
) -> None:
    """Say how well MODEL does on the rows of DATA, whose class is known."""
    from softcount.cli.predict import EvaluateRequest, document_of, page_of, rows_of, told_of

    if precision is not None and recall is not None:
        raise click.UsageError("--precision and --recall each choose a threshold: give one of them")
    decide = DecisionRequest(costs, prior)
    with progress() as tell:
        found = rows_of(EvaluateRequest(model, data, target, weight, decide, form), tell)
    told = told_of(found, decide, {"precision": precision, "recall": recall}, lift)
    put_answer(lambda: document_of(told), lambda: page_of(told), json_wanted)


EXPLAIN_EPILOG = """\b
Examples:
  softcount explain adult.sc new.csv --row 17
  softcount explain adult.sc new.csv --row 17 --against '>50K'
  softcount explain adult.sc new.csv -o reasons.csv
  softcount explain spam.sc message.txt
  softcount explain spam.sc mail/ --row 3
  softcount explain visits.sc events.csv --sequence customer --order time -o why.csv

The figures are log-odds, in nats, of the predicted class against the runner-up (or the class of --against).
They add up exactly: (prior) plus every column gives (total). A missing cell gives 0. Rows are counted from 1.
Without --row, every row is explained, one line of CSV each; with --against, rows of that class itself get 0.

Of hidden states every step is explained: what the steps before, each column, and the steps after say for its state
against the runner-up. Of a Markov chain: how surprising each step is after those before it.

Of a network the class is explained, or the node of --of: what every node adds to what those before
it, parents first, have said.

A column of text is explained by its words too, whose log-odds add up to the column's, and the document is shown
with them marked. Where text is all that MODEL reads, a file (or standard input) is one document, unless its first
line names the model's column or --no-header is given: then it is a table. With --row or --lines each line is a
document, as for `softcount predict`."""


@click.command("explain", epilog=EXPLAIN_EPILOG, short_help="Say why a row got its class, column by column.")
@options.model_argument
@options.data_argument
@click.option(
    "--row", "rows", multiple=True, type=click.IntRange(1), metavar="N", help="A row to explain. May be repeated."
)
@click.option("--of", "of", metavar="NODE", help="The node of a network to explain.  [default: its class]")
@click.option("--against", metavar="CLASS", help="The class to compare with.  [default: the runner-up]")
@sequence_form
@options.format_options(document=True)
@options.output_option("Write the CSV here instead of to standard output.")
@options.json_option
def explain(  # noqa: PLR0913 - what can be asked for
    model: str,
    data: str,
    rows: tuple[int, ...],
    of: str | None,
    against: str | None,
    layout: SequenceForm,
    form: InputFormat,
    output: str | None,
    json_wanted: bool,
) -> None:
    """Say why each row of DATA, or the document that it is, got its class from MODEL."""
    from softcount.cli.explain import explain_rows

    form = replace(form, default_unit="lines" if rows else "document")
    check_output(output, model, data)
    explain_rows(model, data, rows, (of, against), layout, form, (output, json_wanted))


QUERY_EPILOG = """\b
Examples:
  softcount query adult.sc --of income --given education=Masters --given sex=Female
  softcount query adult.sc --of age --given income='>50K'
  softcount query cars.sc --given price=1000..2000 --given 'brakes=disc|rim'
  softcount query cars.sc --of brakes --given 'price>1000' --given 'colour!=red'
  softcount query spam.sc --of class --given text='claim your prize'
  softcount query asia.bif --of lung --of bronc --given smoke=yes
  softcount query asia.bif --of lung --given 'smoke=yes:0.8|no:0.3' --samples 10000
  softcount query asia.bif --likeliest --given dysp=yes

What is given of a column is its value, a range of numbers (price=100..200, price=100.., 'price>1000', 'price<=5'), one
of several values ('brakes=disc|rim'), or anything but some ('brakes!=disc'); in quotes, where the shell would take a
sign for its own. Answers are exact: ranges count by their probability.

MODEL may be a network file (.bif, gzipped or not). Of a network several nodes can be asked for at once:
the answer is their joint distribution. What is given may also be how likely levels make what was seen (a:0.8|b:0.2); of
a number that was cut into intervals, a range counts by the share of each interval that it covers. A network too dense
for an exact answer is refused with what it would cost; then more --memory helps, or --samples, whose answers have
standard errors."""


@click.command("query", epilog=QUERY_EPILOG, short_help="Ask for the distribution of columns, given others.")
@options.model_argument
@click.option("--of", "of", multiple=True, metavar="COL", help="The column asked about; of a network, several.")
@options.given_option
@click.option("--likeliest", is_flag=True, help="Of a network, the likeliest levels of all nodes together.")
@click.option("--samples", type=click.IntRange(1), metavar="N", help="Of a network, answer from N samples.")
@click.option("--memory", metavar="SIZE", help="Of a network, what an exact answer may take, such as 2GB.")
@options.json_option
def query(
    model: str,
    of: tuple[str, ...],
    given: tuple[str, ...],
    likeliest: bool,
    samples: int | None,
    memory: str | None,
    json_wanted: bool,
) -> None:
    """Say what MODEL expects of one column, or of every column, when others are known.

    A column of words answers with the probability of each level, a column of numbers with its mean, spread and
    quantiles.
    """
    if of and likeliest:
        raise click.UsageError("--likeliest asks about all nodes together: leave out --of")
    if samples is not None and not of:
        raise click.UsageError("--samples answers what is asked by --of: give one")
    from softcount.cli.ask import ask_model, ask_network, tell_likeliest, with_memory
    from softcount.cli.models import is_network, load_any

    fitted: Any = load_any(model)
    if is_network(fitted):
        fitted = with_memory(fitted, memory)
        if likeliest:
            tell_likeliest(fitted, given, json_wanted)
        else:
            ask_network(fitted, of, given, samples, json_wanted)
        return
    for option, asked in (("likeliest", likeliest), ("samples", samples), ("memory", memory)):
        if asked:
            raise click.UsageError(f"--{option} is for networks, and {model} is none")
    if len(of) > 1:
        raise click.UsageError("several --of are for networks; ask this model for one column at a time, or for all")
    ask_model(fitted, model, of[0] if of else None, given, json_wanted)


SAMPLE_EPILOG = """\b
Examples:
  softcount sample adult.sc -n 1000 -o imagined.csv
  softcount sample adult.sc -n 5 --given income='>50K' --seed 7
  softcount sample alarm.bif -n 20000 -o alarm.csv
  softcount sample visits.sc -n 5 --length 40        sequences, with their hidden states

MODEL may be a network file (.bif, gzipped or not); of a network, hidden nodes are drawn too."""


@click.command("sample", epilog=SAMPLE_EPILOG, short_help="Draw new rows from a model.")
@options.model_argument
@click.option(
    "-n",
    "n",
    type=click.IntRange(0),
    default=100,
    show_default=True,
    metavar="N",
    help="How many rows; sequences, where there are hidden states; steps, of a chain.",
)
@click.option(
    "--length",
    type=click.IntRange(1),
    metavar="STEPS",
    help="How long a sequence with hidden states is.  [default: 100]",
)
@options.given_option
@options.seed_option
@options.rows_output_option
@options.json_option
def sample(
    model: str, n: int, length: int | None, given: tuple[str, ...], seed: int, output: str | None, json_wanted: bool
) -> None:
    """Draw N new rows from MODEL, as CSV."""
    from softcount.cli.ask import draw_rows
    from softcount.cli.models import say_answering_model

    check_output(output, model)
    rows, fitted = draw_rows(model, n, length, given, seed, spelt=not json_wanted and not is_parquet(output))
    put_rows(rows, output, json_wanted)
    if fitted is not None:
        say_answering_model(fitted)


GENERATE_EPILOG = """\b
Examples:
  softcount generate names.sc -n 20 --seed 7         twenty names
  softcount generate shakespeare.sc -n 500           a text of 500 characters
  softcount generate names.sc -n 5 --start el

A chain learned with --ends makes N sequences, each to its end, one on a line; another makes one of N steps.
Characters stand close, words and other symbols with blanks between them. `softcount sample` has the same as CSV, and
is for models of tables and of hidden states too."""


@click.command("generate", epilog=GENERATE_EPILOG, short_help="Write new text or sequences from a chain.")
@options.model_argument
@click.option("-n", "n", type=click.IntRange(1), default=100, show_default=True, metavar="N", help="How many.")
@click.option("--start", metavar="STEPS", help="How each begins: characters, or symbols with blanks between them.")
@options.seed_option
@options.output_option("Write here instead of to standard output.")
def generate(model: str, n: int, start: str | None, seed: int, output: str | None) -> None:
    """Write N new sequences, or one of N steps, as the Markov chain MODEL makes them."""
    from softcount.cli import ask
    from softcount.cli.models import is_hidden, sequence_model

    check_output(output, model)
    chain = sequence_model(model)
    if chain is None or is_hidden(chain):
        raise DataError(f"{model}: no Markov chain, which this command needs. New rows: softcount sample {model}")
    put_bytes(ask.generate(chain, n, start, seed).encode(), output)
