"""softcount query: the distribution of one column, given others."""

from __future__ import annotations

import click

from softcount.cli import options

EPILOG = """\b
Examples:
  softcount query adult.sc --of income --given education=Masters --given sex=Female
  softcount query adult.sc --of age --given income='>50K'
  softcount query cars.sc --of price
  softcount query spam.sc --of class --given text='claim your prize'"""


@click.command("query", epilog=EPILOG, short_help="Ask for the distribution of one column, given others.")
@options.model_argument
@click.option("--of", "of", required=True, metavar="COL", help="The column asked about.")
@options.given_option
@options.json_option
def command(model: str, of: str, given: tuple[str, ...], json_wanted: bool) -> None:
    """Say what MODEL expects of one column when others are known.

    A column of words answers with the probability of each level, a column of numbers with its mean, spread and
    quantiles.
    """
    from softcount.cli import library_calls as library
    from softcount.cli.named_columns import column_key, refuse_text, understood_given
    from softcount.cli.outputs import put_answer
    from softcount.fitted.answers import query
    from softcount.report.answer_page import query_document, query_page

    fitted = library.load(model)
    key, known = column_key(fitted, of, "--of"), understood_given(fitted, given)
    refuse_text(fitted, key, model)
    answer = query(fitted, key, known)
    question = key, known, answer
    put_answer(lambda: query_document(*question), lambda: query_page(*question), json_wanted)
