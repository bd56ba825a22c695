"""Options that several commands share, and how their text is understood."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Literal, TypeVar

import click

from softcount.errors import DataError
from softcount.sources.databases import address_of
from softcount.sources.source import ORDERS, FileFormat

Command = TypeVar("Command", bound=Callable[..., Any])

CRITERIA = ("evidence", "bic", "icl", "cv", "bdeu")
"""Ways to choose the number of classes, or the edges of a network."""

TELLING = ("auto", "naive-bayes", "averaged", "network", "mixture")
HOW = ("ml", "map", "mean", "predictive")
"""Ways to turn counts into probabilities."""

METHODS = ("temperature", "isotonic")
"""Ways to calibrate probabilities."""


def shown_address(ctx: click.Context, param: click.Parameter, data: str | None) -> str | None:
    """DATA; the address of a database without its password, which is for connecting only."""
    return None if data is None else address_of(data)


data_argument = click.argument("data", metavar="DATA", callback=shown_address)
optional_data_argument = click.argument("data", metavar="[DATA]", required=False, callback=shown_address)
model_argument = click.argument("model", metavar="MODEL")
json_option = click.option("--json", "json_wanted", is_flag=True, help="Answer with one JSON document.")
seed_option = click.option(
    "--seed",
    type=click.IntRange(0, 2**32 - 1),
    metavar="N",
    default=0,
    show_default=True,
    help="Seed of every random choice; the same seed gives the same answer.",
)
given_option = click.option(
    "--given",
    "given",
    multiple=True,
    metavar="COL=VALUE",
    help="What is known of a column: a=5, a=1..5, 'a>5', 'a=x|y', 'a!=x'. May be repeated.",
)


def output_option(help_text: str, required: bool = False) -> Callable[[Command], Command]:
    """Where to write the result."""
    return click.option("-o", "--output", "output", metavar="FILE", required=required, help=help_text)


rows_output_option = output_option("Write here instead of to standard output (CSV; Parquet if it ends in .parquet).")
digits_option = click.option(
    "--digits", type=click.IntRange(0, 17), metavar="N", help="Round numbers to N digits after the point."
)
keep_option = click.option(
    "--keep",
    multiple=True,
    metavar="COLS|all",
    help="Begin lines with these columns of DATA (a,b,c), or with all. May be repeated.",
)


FILE_PARTS = tuple(part for part in FileFormat.__struct_fields__)
FORMAT_OPTIONS = (
    click.option(
        "--missing",
        "missing",
        multiple=True,
        metavar="WORD",
        help="A cell that means missing, besides the usual (empty, NA, N/A, NaN, null, None, ?, ...). May be repeated.",
    ),
    click.option(
        "--only-missing", "only_missing", multiple=True, metavar="WORD", help="The same, instead of the usual ones."
    ),
    click.option(
        "--header/--no-header",
        "header",
        default=None,
        help="The first line names the columns, or is data (columns are c1, c2, ...).  [default: what it looks like]",
    ),
    click.option("--names", "names", metavar="A,B,C", help="What the columns are called, in order."),
    click.option("--delimiter", "delimiter", metavar="CHAR", help="What parts the cells: a character, tab, or spaces."),
    click.option("--decimal", "decimal", type=click.Choice([".", ","]), help="The mark before a number's decimals."),
    click.option("--dates", "dates", type=click.Choice(list(ORDERS)), help="The order of the parts of a date."),
    click.option("--encoding", "encoding", metavar="NAME", help="How letters are written: utf-8, cp1252, utf-16, ..."),
    click.option("--skip-lines", "skip_lines", type=click.IntRange(0), metavar="N", help="Leave out the first lines."),
    click.option("--comment", "comment", metavar="SIGN", help="Leave out lines that begin so."),
    click.option("--file-column", "file_column", metavar="COL", help="A column for the name of a row's file."),
    click.option(
        "--sql",
        "sql",
        metavar="QUERY",
        help="The rows of a query; DATA is a file of SQLite or DuckDB, or postgresql://USER@HOST/NAME.",
    ),
    click.option("--lines", "lines", is_flag=True, help="Each line of DATA is a document."),
    click.option("--document", "document", is_flag=True, help="The whole of DATA is one document."),
)


def format_options(document: bool = False) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """How DATA is read, which the command gets as `form`, an `InputFormat`; `document` where it may be a single one."""

    def decorated(command: Callable[..., None]) -> Callable[..., None]:
        @wraps(command)
        def with_form(**asked: Any) -> None:
            from softcount.cli.data_input import InputFormat

            said = {name: asked.pop(name) for name in FILE_PARTS}
            file = FileFormat.of(**{name: value for name, value in said.items() if value is not None})
            unit = unit_of(asked.pop("lines"), asked.pop("document", False))
            form = InputFormat(asked.pop("missing"), asked.pop("only_missing"), file, unit, sql=asked.pop("sql"))
            if form.sql is not None and unit is not None:
                raise click.UsageError("--sql is for rows of a table: leave out --lines and --document")
            command(form=form, **asked)

        for option in reversed(FORMAT_OPTIONS if document else FORMAT_OPTIONS[:-1]):
            with_form = option(with_form)
        return with_form

    return decorated


def unit_of(lines: bool, document: bool) -> Literal["lines", "document"] | None:
    """What a document is; None where the content of DATA decides."""
    if lines and document:
        raise click.UsageError("--lines and --document cannot both be given")
    return "document" if document else "lines" if lines else None


def understood_kinds(ctx: click.Context, param: click.Parameter, texts: tuple[str, ...]) -> dict[str, str]:
    """Column -> kind. A column's name may itself hold "=", a kind never does, so the last one divides.

    "auto" alone is for every column that is not named, and stands beside no name.
    """
    kinds: dict[str, str] = {}
    for text in texts:
        if text == "auto":
            kinds[""] = text
            continue
        column, sign, kind = text.rpartition("=")
        if not sign or not column or not kind:
            raise click.BadParameter(f"{text!r} is not COL=KIND, such as zip=categorical", ctx, param)
        if kinds.setdefault(column, kind) != kind:
            raise click.BadParameter(f"column {column!r} is declared both {kinds[column]} and {kind}", ctx, param)
    return kinds


kind_option = click.option(
    "--kind",
    "kinds",
    multiple=True,
    metavar="COL=KIND",
    callback=understood_kinds,
    help="Declare a column's kind (categorical, normal, poisson, text, ..., ignore), or a block of columns' "
    "(x,y=multinormal). `auto` lets the rows choose a column's density, alone those of all. May be repeated.",
)


def as_number(read: Callable[[str], float], text: str) -> float:
    """The number that a text is; -1 where it is none."""
    try:
        return read(text)
    except ValueError:
        return -1


def class_number(text: str) -> int | str:
    """A number of classes, or "auto"."""
    number = as_number(int, text)
    if text != "auto" and number < 1:
        raise click.BadParameter(f"{text!r} is neither a number of classes (1, 2, ...) nor auto")
    return text if text == "auto" else int(number)


PRIORS = ("auto", "flat", "jeffreys", "row")
BDEU = "bdeu"
"""The prior of networks: imagined rows shared by the cells of each table; bdeu:10 says how many."""


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


# -- columns of text, under a heading of their own in the help of `fit`

HEADING = "Text columns"
ENGLISH = "english"

ALIKE = ("min_count", "min_df", "max_df", "drop_top", "stop_words", "ngrams")
SETTINGS = {"text": "model"} | dict(zip(ALIKE, ALIKE, strict=True))
"""Each option and the setting of the family `Text` it is."""


class TextOption(click.Option):
    """An option that is listed under the heading for text."""


class HeadedCommand(click.Command):
    """A command some of whose options stand apart in its help, under the heading of their class."""

    headings: tuple[tuple[type[click.Option], str], ...] = ()

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The options in the help, those with a heading of their own last."""
        parts: dict[str, list[tuple[str, str]]] = {"Options": [], **{heading: [] for _, heading in self.headings}}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx) if isinstance(param, click.Option) else None
            if record is not None:
                own = (heading for kind, heading in self.headings if isinstance(param, kind))
                parts[next(own, "Options")].append(record)
        for heading, records in parts.items():
            with formatter.section(heading):
                formatter.write_dl(records)


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


def text_options(command: Command) -> Command:
    """How documents become words, which of them are kept, and how they are modelled."""
    for name, kind, metavar, text in reversed(OPTIONS):
        command = click.option(name, cls=TextOption, type=kind, metavar=metavar, help=text)(command)
    return command


OPTIONS: list[tuple[str, Any, str | None, str]] = [
    (
        "--text",
        click.Choice(("multinomial", "bernoulli", "complement")),
        None,
        "Words drawn one by one, each there or not, or told by what the other classes hold.  [default: multinomial]",
    ),
    ("--min-count", click.IntRange(1), "N", "Keep words that occur at least N times in all.  [default: 1]"),
    (
        "--min-df",
        document_limit,
        "N|SHARE",
        "Keep words that are in at least so many documents (3), or a share (0.01).",
    ),
    ("--max-df", document_limit, "N|SHARE", "Keep words that are in at most so many documents, or a share (0.5)."),
    ("--drop-top", click.IntRange(0), "N", "Leave out the N most frequent words.  [default: 0]"),
    ("--stop-words", str, "english|FILE", "Leave out the words of a list: the built-in one, or those in a file."),
    ("--ngrams", ngram_range, "N-M", "Count runs of N to M words, such as 1-2.  [default: 1-1]"),
]


def settings_of(asked: dict[str, Any]) -> dict[str, Any]:
    """The settings of `Text` that were asked for; their options are taken out of `asked`."""
    found = {setting: asked.pop(option) for option, setting in SETTINGS.items()}
    if found["stop_words"] is not None:
        found["stop_words"] = stop_words(found["stop_words"])
    return {setting: value for setting, value in found.items() if value is not None}


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
