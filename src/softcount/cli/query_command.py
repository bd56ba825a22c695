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
  softcount query asia.bif --of lung --given 'smoke=yes:0.8|no:0.3' --samples 10000
  softcount query asia.bif --likeliest --given dysp=yes

MODEL may be a network file (.bif, .xmlbif, .xml, gzipped or not). Of a network several nodes can be asked for at once:
the answer is their joint distribution. What is given of a node is a level, one of several (a|b), how likely levels make
what was seen (a:0.8|b:0.2), or of numbers a range (20..30); of a number that was cut into levels, the levels that the
range reaches into. Without --of, --likeliest answers with the likeliest levels of all nodes together.

Answers are exact. A network too dense for that is refused with what it would cost; then more --memory helps, or
--samples, whose answers have standard errors beside them."""


@click.command("query", epilog=EPILOG, short_help="Ask for the distribution of one column, given others.")
@options.model_argument
@click.option("--of", "of", multiple=True, metavar="COL", help="The column asked about; of a network, several.")
@options.given_option
@click.option("--likeliest", is_flag=True, help="Of a network, the likeliest levels of all nodes together.")
@click.option("--samples", type=click.IntRange(1), metavar="N", help="Of a network, answer from N samples.")
@click.option("--memory", metavar="SIZE", help="Of a network, what an exact answer may take, such as 2GB.")
@options.json_option
def command(  # noqa: PLR0913 - what can be asked for
    model: str,
    of: tuple[str, ...],
    given: tuple[str, ...],
    likeliest: bool,
    samples: int | None,
    memory: str | None,
    json_wanted: bool,
) -> None:
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

    if bool(of) == likeliest:
        raise click.UsageError(
            "--of says which column is asked about, and --likeliest asks about all: give one of them"
        )
    if likeliest and samples is not None:
        raise click.UsageError("--likeliest has no answer by --samples")
    fitted = library.load_any(model)
    if not isinstance(fitted, Fitted):
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
        raise click.UsageError("several --of are for networks; ask this model for one column at a time")
    key, known = column_key(fitted, of[0], "--of"), understood_given(fitted, given)
    refuse_text(fitted, key, model)
    answer = query(fitted, key, known)
    question = key, known, answer
    put_answer(lambda: query_document(*question), lambda: query_page(*question), json_wanted)


def with_memory(fitted: FittedNet, memory: str | None) -> FittedNet:
    """The network, allowed so much memory for an exact answer."""
    from dataclasses import replace

    from softcount.networks.elimination import cells_within

    try:
        return replace(fitted, room=cells_within(memory))
    except DataError as error:
        raise click.UsageError(f"--{error}") from None


def tell_likeliest(fitted: FittedNet, given: tuple[str, ...], json_wanted: bool) -> None:
    """The likeliest levels of all nodes together."""
    from softcount.cli.node_questions import given_nodes
    from softcount.cli.outputs import put_answer
    from softcount.report.network_page import likeliest_document, likeliest_page, said_given

    known = given_nodes(fitted, given)
    found = fitted.most_probable(known)
    put_answer(lambda: likeliest_document(known, found), lambda: likeliest_page(said_given(known), found), json_wanted)


def ask_network(
    fitted: FittedNet, of: tuple[str, ...], given: tuple[str, ...], samples: int | None, json_wanted: bool
) -> None:
    """What a network says of one node, or of several together."""
    from softcount.cli.node_questions import given_nodes, node_key
    from softcount.cli.outputs import put_answer
    from softcount.fitted.net_samples import sampled_query
    from softcount.report.answer_page import query_document, query_page
    from softcount.report.network_page import joint_document, joint_page, said_given

    keys = [node_key(fitted, name, "--of") for name in dict.fromkeys(of)]
    known = given_nodes(fitted, given)
    numbers = [key for key in keys if fitted.is_number(key)]
    if numbers and len(keys) > 1:
        raise DataError(f"--of: node {str(numbers[0])!r} holds numbers, which have no joint table. Ask for it alone.")
    asked: Any = keys[0] if len(keys) == 1 else keys
    answer = fitted.query(asked, known) if samples is None else sampled_query(fitted, asked, known, samples)
    question = asked, said_given(known), answer
    if len(keys) == 1:
        put_answer(lambda: query_document(asked, known, answer), lambda: query_page(*question), json_wanted)
    else:
        put_answer(lambda: joint_document(asked, known, answer), lambda: joint_page(*question), json_wanted)
