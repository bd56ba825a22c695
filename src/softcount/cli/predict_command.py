"""softcount predict: the class of every row, or any node of a network, with its probabilities."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import click

from softcount.cli import options
from softcount.cli.decision_options import DecisionRequest, decision_options
from softcount.cli.sequence_options import SequenceForm, sequence_form
from softcount.errors import DataError

if TYPE_CHECKING:
    import pyarrow as pa

    from softcount.cli.data_input import InputFormat
    from softcount.fitted.fitted import Fitted
    from softcount.fitted.network import FittedNet
    from softcount.table import Table

EPILOG = """\b
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


@click.command("predict", epilog=EPILOG, short_help="Predict the class of every row of a table.")
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
def command(  # noqa: PLR0913 - what can be asked for
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
    from softcount.cli import library_calls as library
    from softcount.cli import sequence_calls
    from softcount.cli.data_columns import rounded, with_kept
    from softcount.cli.named_columns import say_prediction_notes
    from softcount.cli.outputs import check_output, put_rows
    from softcount.fitted.fitted import Fitted

    check_output(output, model, data)
    states = sequence_calls.sequence_model(model)
    if states is not None:
        if of is not None or anomaly or keep or decide != DecisionRequest():
            raise DataError(
                f"{model}: a model of sequences, for which --of, --anomaly, --keep, --cost and such mean nothing."
            )
        put_rows(rounded(sequence_calls.predicted(states, data, layout, form), digits), output, json_wanted)
        return
    layout.refuse(model)
    fitted = library.load_any(model)
    if not isinstance(fitted, Fitted):
        found, table = predict_node(fitted, data, of, anomaly, form, decide)
    elif of is None or of == str(fitted.target):
        found, table = predict_classes(fitted, data, anomaly, form, decide)
    else:
        raise DataError(f"{model}: no network, so it predicts its class alone. Leave out --of.")
    put_rows(with_kept(rounded(found, digits), table.source, keep), output, json_wanted)
    say_prediction_notes(fitted, table)


def predict_classes(
    fitted: Fitted, data: str, anomaly: bool, form: InputFormat, decide: DecisionRequest
) -> tuple[pa.Table, Table]:
    """The class of every row, with the probability of each; and the table as it was read."""
    from softcount.cli import library_calls as library
    from softcount.cli.outputs import progress
    from softcount.fitted.classes import anomaly_scores
    from softcount.report.answer_page import prediction_table
    from softcount.run.local import Threads

    with progress() as tell, Threads() as threads:
        table = library.open_like(fitted, data, form, tell)
        proba = decide.reweighted(partial(fitted.log_proba, table, threads), fitted.names, lambda: fitted.shares)
        proba = fitted.proba(table, threads) if proba is None else proba
        scores = anomaly_scores(fitted, table, threads) if anomaly else None
    chosen = decide.choose(proba, fitted.names)
    return prediction_table(fitted.names, proba, chosen, scores, table.source.files), table


def predict_node(
    fitted: FittedNet,
    data: str,
    of: str | None,
    anomaly: bool,
    form: InputFormat,
    decide: DecisionRequest,
) -> tuple[pa.Table, Table]:
    """A node of a network in every row, given the rest of it; and the table as it was read."""
    import numpy as np
    import pyarrow as pa

    from softcount.cli.named_columns import node_key
    from softcount.cli.network_calls import open_rows
    from softcount.cli.outputs import progress
    from softcount.fitted.decisions import log_of
    from softcount.fitted.network_rows import surprises
    from softcount.report.answer_page import prediction_table

    if of is None and fitted.target is None:
        raise DataError("the network was learned without a class. Say which node to predict: --of NODE")
    node = fitted.target if of is None else node_key(fitted, of, "--of")
    assert node is not None
    with progress() as tell:
        table, rows = open_rows(fitted, data, form, node, tell)
        scores = np.asarray(sum(surprises(fitted, rows).values())) if anomaly else None
        if fitted.is_number(node) or node in fitted.net.cuts:
            if decide != DecisionRequest():
                raise DataError(f"{node!r} is a number: --cost, --prior and --threshold are for classes.")
            found = pa.table({"predicted": pa.array(fitted.means(rows, node))})
            if scores is not None:
                found = found.append_column("anomaly", pa.array(scores))
        else:
            levels, plain = list(fitted.levels[node]), fitted.proba(rows, node)
            proba = decide.reweighted(
                partial(log_of, plain), levels, lambda: np.array(list(fitted.query(node).values()))
            )
            proba = plain if proba is None else proba
            found = prediction_table(levels, proba, decide.choose(proba, levels), scores, table.source.files)
    return found, table
