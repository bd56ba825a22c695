"""softcount query: the distribution of one column, given others; of a network, of one or several nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from softcount.cli import options
from softcount.errors import DataError

if TYPE_CHECKING:
    from softcount.fitted.fitted import Fitted
    from softcount.fitted.network import FittedNet
    from softcount.table import Key

EPILOG = """\b
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


@click.command("query", epilog=EPILOG, short_help="Ask for the distribution of columns, given others.")
@options.model_argument
@click.option("--of", "of", multiple=True, metavar="COL", help="The column asked about; of a network, several.")
@options.given_option
@click.option("--likeliest", is_flag=True, help="Of a network, the likeliest levels of all nodes together.")
@click.option("--samples", type=click.IntRange(1), metavar="N", help="Of a network, answer from N samples.")
@click.option("--memory", metavar="SIZE", help="Of a network, what an exact answer may take, such as 2GB.")
@options.json_option
def command(
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
    from softcount.cli import library_calls as library
    from softcount.fitted.fitted import Fitted

    if of and likeliest:
        raise click.UsageError("--likeliest asks about all nodes together: leave out --of")
    if samples is not None and not of:
        raise click.UsageError("--samples answers what is asked by --of: give one")
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
        raise click.UsageError("several --of are for networks; ask this model for one column at a time, or for all")
    ask_model(fitted, model, of[0] if of else None, given, json_wanted)


def ask_model(fitted: Fitted, model: str, of: str | None, given: tuple[str, ...], json_wanted: bool) -> None:
    """What naive Bayes or a mixture says of one column, or of all that are not given."""
    from softcount.cli.given_values import given_columns
    from softcount.cli.named_columns import column_key, refuse_text
    from softcount.fitted.answers import query

    key, known = None if of is None else column_key(fitted, of, "--of"), given_columns(fitted, given)
    if key is not None:
        refuse_text(fitted, key, model)
    put_query(fitted, key, known, query(fitted, key, known), json_wanted)


def put_query(fitted: Fitted | FittedNet, of: Key | None, known: dict[Key, Any], answer: Any, as_json: bool) -> None:
    """The answer of one column, or without `of` of every column, and the model that answers."""
    from softcount.cli.named_columns import say_answering_model
    from softcount.cli.outputs import put_answer
    from softcount.fitted.answers import answering_model
    from softcount.fitted.conditions import spoken_given
    from softcount.report.answer_page import answers_document, answers_page, query_document, query_page

    said, model = spoken_given(known), {"model": answering_model(fitted)}
    if of is None:
        put_answer(lambda: answers_document(known, answer) | model, lambda: answers_page(said, answer), as_json)
    else:
        put_answer(lambda: query_document(of, known, answer) | model, lambda: query_page(of, said, answer), as_json)
    say_answering_model(fitted, None if of is None else [of, *known])


def with_memory(fitted: FittedNet, memory: str | None) -> FittedNet:
    """The network, allowed so much memory for an exact answer."""
    from msgspec.structs import replace

    from softcount.networks.elimination import cells_within

    try:
        return replace(fitted, room=cells_within(memory))
    except DataError as error:
        raise click.UsageError(f"--{error}") from None


def as_written(fitted: FittedNet, known: dict[Key, Any]) -> dict[Key, Any]:
    """What is given of a network with numbers as the cells of their columns are written."""
    from softcount.fitted.conditions import written_given

    return written_given(known, {key: spec.written for key, spec in fitted.schema.by_key.items()})


def tell_likeliest(fitted: FittedNet, given: tuple[str, ...], json_wanted: bool) -> None:
    """The likeliest levels of all nodes together."""
    from softcount.cli.given_values import given_nodes
    from softcount.cli.outputs import put_answer
    from softcount.fitted.conditions import spoken_given
    from softcount.report.network_page import likeliest_document, likeliest_page

    known = given_nodes(fitted, given)
    found, known = fitted.most_probable(known), as_written(fitted, known)
    said = spoken_given(known)
    put_answer(lambda: likeliest_document(known, found), lambda: likeliest_page(said, found), json_wanted)


def ask_network(
    fitted: FittedNet, of: tuple[str, ...], given: tuple[str, ...], samples: int | None, json_wanted: bool
) -> None:
    """What a network says of one node, of several together, or of every node."""
    from softcount.cli.given_values import given_nodes
    from softcount.cli.named_columns import node_key
    from softcount.cli.outputs import put_answer
    from softcount.fitted.conditions import spoken_given
    from softcount.fitted.network_rows import sampled_query
    from softcount.report.network_page import joint_document, joint_page

    keys = [node_key(fitted, name, "--of") for name in dict.fromkeys(of)]
    known = given_nodes(fitted, given)
    numbers = [key for key in keys if fitted.is_number(key)]
    if numbers and len(keys) > 1:
        raise DataError(f"--of: node {str(numbers[0])!r} holds numbers, which have no joint table. Ask for it alone.")
    asked: Any = keys if len(keys) > 1 else keys[0] if keys else None
    answer = fitted.query(asked, known) if samples is None else sampled_query(fitted, asked, known, samples)
    known = as_written(fitted, known)
    if len(keys) < 2:
        put_query(fitted, asked, known, answer, json_wanted)
        return
    said = spoken_given(known)
    put_answer(lambda: joint_document(asked, known, answer), lambda: joint_page(asked, said, answer), json_wanted)
