"""softcount query: the distribution of one column, given others; of a network, of one or several nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from softcount.cli import options
from softcount.errors import DataError

if TYPE_CHECKING:
    from softcount.fitted.fitted_net import FittedNet

EPILOG = """\b
Examples:
  softcount query adult.sc --of income --given education=Masters --given sex=Female
  softcount query adult.sc --of age --given income='>50K'
  softcount query cars.sc --of price
  softcount query spam.sc --of class --given text='claim your prize'
  softcount query asia.bif --of lung --of bronc --given smoke=yes
  softcount query survey.sc --of job --given 'town=small|middle' --given age=20..30

MODEL may be a network file (.bif, .xmlbif, .xml, gzipped or not). Of a network several nodes can be asked for at once:
the answer is their joint distribution. What is given of a node is a level, one of several (a|b), or of numbers a range
(20..30); of a number that was cut into levels, the levels that the range reaches into."""


@click.command("query", epilog=EPILOG, short_help="Ask for the distribution of one column, given others.")
@options.model_argument
@click.option(
    "--of", "of", required=True, multiple=True, metavar="COL", help="The column asked about; of a network, several."
)
@options.given_option
@options.json_option
def command(model: str, of: tuple[str, ...], given: tuple[str, ...], json_wanted: bool) -> None:
    """Say what MODEL expects of one column when others are known.

    A column of words answers with the probability of each level, a column of numbers with its mean, spread and
    quantiles.
    """
    from softcount.cli import library_calls as library
    from softcount.cli.named_columns import column_key, refuse_text, understood_given
    from softcount.cli.outputs import put_answer
    from softcount.fitted.answers import query
    from softcount.fitted.fitted_model import Fitted
    from softcount.report.answer_page import query_document, query_page

    fitted = library.load_any(model)
    if not isinstance(fitted, Fitted):
        ask_network(fitted, of, given, json_wanted)
        return
    if len(of) > 1:
        raise click.UsageError("several --of are for networks; ask this model for one column at a time")
    key, known = column_key(fitted, of[0], "--of"), understood_given(fitted, given)
    refuse_text(fitted, key, model)
    answer = query(fitted, key, known)
    question = key, known, answer
    put_answer(lambda: query_document(*question), lambda: query_page(*question), json_wanted)


def ask_network(fitted: FittedNet, of: tuple[str, ...], given: tuple[str, ...], json_wanted: bool) -> None:
    """What a network says of one node, or of several together."""
    from softcount.cli.node_questions import given_nodes, node_key
    from softcount.cli.outputs import put_answer
    from softcount.report.answer_page import query_document, query_page
    from softcount.report.network_page import joint_document, joint_page, said_given

    keys = [node_key(fitted, name, "--of") for name in dict.fromkeys(of)]
    known = given_nodes(fitted, given)
    numbers = [key for key in keys if fitted.is_number(key)]
    if numbers and len(keys) > 1:
        raise DataError(f"--of: node {str(numbers[0])!r} holds numbers, which have no joint table. Ask for it alone.")
    asked: Any = keys[0] if len(keys) == 1 else keys
    answer = fitted.query(asked, known)
    question = asked, said_given(known), answer
    if len(keys) == 1:
        put_answer(lambda: query_document(asked, known, answer), lambda: query_page(*question), json_wanted)
    else:
        put_answer(lambda: joint_document(asked, known, answer), lambda: joint_page(*question), json_wanted)
