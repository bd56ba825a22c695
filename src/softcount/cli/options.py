"""Options that several commands share, how their text is understood, and how loud a command is."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence
from difflib import get_close_matches
from functools import wraps
from typing import Any, Literal, TypeVar

import click
from msgspec import Struct

from softcount.core.remedies import address_of
from softcount.errors import DataError
from softcount.estimators.parameters import PARAMETERS, Parameter
from softcount.pictures.text import format_list
from softcount.sources.source import CONTENT_DECIDES, ORDERS, FileFormat

Command = TypeVar("Command", bound=Callable[..., Any])


def parameter_type(parameter: Parameter) -> Any:
    """How the text of an option becomes a value of an estimator's parameter."""
    words = [word for word in parameter.words if word is not None]
    if parameter.type is None:
        return click.Choice(words)
    if not words:
        kind: Any = click.IntRange if parameter.type is int else click.FloatRange
        return kind(parameter.least)

    def read(text: str) -> Any:
        number = as_number(int, text)
        if text not in words and number < parameter.least:
            raise click.BadParameter(
                f"{text!r} is neither a whole number from {parameter.least} on nor {' nor '.join(words)}"
            )
        return text if text in words else int(number)

    return read


def parameter_option(name: str, *flags: str, **how: Any) -> Callable[[Command], Command]:
    """The option that sets a parameter of estimators, with its type, range and meaning."""
    parameter: Parameter = PARAMETERS[name]
    given = {"type": parameter_type(parameter), "help": parameter.help} | how
    return click.option(*flags, **given)


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


# -- how DATA is read


TextUnit = Literal["lines", "document"]
"""Each line of DATA is a document, or the whole of it is one."""
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


class InputFormat(Struct, frozen=True):
    """How the cells and lines of DATA are read, and what a document is: None where the content decides.

    `default_unit` is what a document is in a file that is no table, where text is all that the model reads. With `sql`
    DATA is a database, and its rows are those of the query.
    """

    missing: tuple[str, ...] = ()
    only_missing: tuple[str, ...] = ()
    file: FileFormat = CONTENT_DECIDES
    unit: TextUnit | None = None
    default_unit: TextUnit = "lines"
    sql: str | None = None

    @property
    def is_asked_for(self) -> bool:
        """Whether anything was said of how to read DATA."""
        return bool(self.missing or self.only_missing or self.file.document or self.unit or self.sql)

    def words(self, usual: tuple[str, ...] | None = None) -> tuple[str, ...]:
        """The cells that mean missing: the usual ones, or a model's own, and those added; or those asked for alone."""
        from softcount.table import MISSING

        return self.only_missing or (*(MISSING if usual is None else usual), *self.missing)

    @property
    def options(self) -> tuple[str, ...]:
        """What to say again on the command line, for other commands to read DATA the same way."""
        query = () if self.sql is None else ("--sql", shlex.quote(self.sql))
        return (*query, f"--{self.unit}") if self.unit else query


def format_options(document: bool = False) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """How DATA is read, which the command gets as `form`, an `InputFormat`; `document` where it may be a single one."""

    def decorated(command: Callable[..., None]) -> Callable[..., None]:
        @wraps(command)
        def with_form(**asked: Any) -> None:
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


def unit_of(lines: bool, document: bool) -> TextUnit | None:
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


class HeadedCommand(click.Command):
    """A command some of whose options stand in its help under a heading of their own."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The options in the help, those with a heading of their own last."""
        parts: dict[str, list[tuple[str, str]]] = {"Options": []}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx) if isinstance(param, click.Option) else None
            if record is not None:
                parts.setdefault(getattr(param, "heading", "Options"), []).append(record)
        for heading, records in parts.items():
            with formatter.section(heading):
                formatter.write_dl(records)


def headed_option(heading: str) -> type[click.Option]:
    """The class of options that are listed under a heading."""
    return type("HeadedOption", (click.Option,), {"heading": heading})


# -- how DATA holds sequences


SEQUENCES = headed_option("Sequences")


class SequenceForm(Struct, frozen=True):
    """How DATA holds sequences: in a long table with these columns, or as text of these steps."""

    sequence: str | None = None
    order: str | None = None
    steps: str | None = None

    @property
    def is_asked_for(self) -> bool:
        return any(said is not None for said in (self.sequence, self.order, self.steps))

    @property
    def options(self) -> tuple[str, ...]:
        """What to say again on the command line, for other commands to read DATA the same way."""
        said = (("sequence", self.sequence), ("order", self.order), ("steps", self.steps))
        return tuple(word for name, value in said if value is not None for word in (f"--{name}", value))

    def refuse(self, model: str) -> None:
        """Raise where sequences are asked for of a model of rows."""
        if self.is_asked_for:
            raise DataError(f"{model}: no model of sequences. Leave out {self.options[0]}.")


def sequence_form(command: Callable[..., None]) -> Callable[..., None]:
    """How DATA holds sequences, which the command gets as `layout`, a `SequenceForm`."""

    @click.option(
        "--sequence", cls=SEQUENCES, metavar="COL", help="The column that says which sequence a row is a step of."
    )
    @click.option(
        "--order", cls=SEQUENCES, metavar="COL", help="The column that says in which order: a number, a date or a time."
    )
    @click.option(
        "--steps",
        cls=SEQUENCES,
        type=click.Choice(("characters", "words")),
        help="DATA is text, each line a sequence of these; with --sequence file, all of it.",
    )
    @wraps(command)
    def with_layout(sequence: str | None, order: str | None, steps: str | None, **asked: Any) -> None:
        command(layout=SequenceForm(sequence, order, steps), **asked)

    return with_layout


# -- what mistakes cost, how frequent classes are, and thresholds


PRIOR_WORDS = ("uniform", "estimate")


class DecisionRequest(Struct, frozen=True):
    """What was asked: costs as TRUE,DECIDED=COST, shares as CLASS=SHARE or a word, a threshold as CLASS=P."""

    costs: tuple[str, ...] = ()
    prior: tuple[str, ...] = ()
    threshold: str | None = None

    def __post_init__(self) -> None:
        if self.costs and self.threshold is not None:
            raise click.UsageError("--cost and --threshold each decide by themselves: give one of them")
        if len(self.prior) > 1 and any(text in PRIOR_WORDS for text in self.prior):
            raise click.UsageError("--prior is shares, or one word: uniform, estimate")

    def cost_pairs(self, names: Sequence[Any]) -> dict[tuple[Any, Any], float] | None:
        """Costs by (true class, class decided for); None where nobody asked."""
        return dict(_costs(self.costs, names)) if self.costs else None

    def shares(self, names: Sequence[Any]) -> Any:
        """The prior as the library takes it; None where nobody asked."""
        if len(self.prior) == 1 and self.prior[0] in PRIOR_WORDS:
            return self.prior[0]
        return dict(class_numbers("--prior", self.prior, names)) if self.prior else None


def class_numbers(option: str, texts: Iterable[str], names: Sequence[Any]) -> Iterator[tuple[Any, float]]:
    """A class and its number for each CLASS=NUMBER; a class may hold "=", a number does not."""
    for text in texts:
        name, sign, value = text.rpartition("=")
        if not sign:
            raise click.UsageError(f"{option} {text!r} is not CLASS=NUMBER, such as yes=0.1")
        yield _class(option, name, names), _number(option, value)


def _costs(texts: Iterable[str], names: Sequence[Any]) -> Iterator[tuple[tuple[Any, Any], float]]:
    """Pair and cost of each TRUE,DECIDED=COST; names may hold commas, so the comma that parts two classes counts."""
    known = {str(name) for name in names}
    for text in texts:
        pair, sign, value = text.rpartition("=")
        cuts = [place for place, char in enumerate(pair) if char == ","]
        if not sign or not cuts:
            raise click.UsageError(f"--cost {text!r} is not TRUE,DECIDED=COST, such as ill,well=10")
        both = [cut for cut in cuts if pair[:cut] in known and pair[cut + 1 :] in known]
        cut = (both or cuts)[0]
        true, decided = (_class("--cost", part, names) for part in (pair[:cut], pair[cut + 1 :]))
        yield (true, decided), _number("--cost", value)


def _class(option: str, text: str, names: Sequence[Any]) -> Any:
    known = {str(name): name for name in names}
    if text not in known:
        raise DataError(f"{option}: there is no class {text!r}.\n  {suggestion(text, known)}")
    return known[text]


def _number(option: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise click.UsageError(f"{option}: {text!r} is not a number") from None


DECISION_OPTIONS = (
    click.option(
        "--cost",
        "costs",
        multiple=True,
        metavar="TRUE,DECIDED=N",
        help="What deciding for a class costs where another is true; decide by the lowest expected cost. Mistakes not "
        "named cost 1. May be repeated.",
    ),
    click.option(
        "--prior",
        "prior",
        multiple=True,
        metavar="CLASS=SHARE",
        help="How frequent a class is among these rows, if not as in training; or: uniform, estimate (from the rows "
        "themselves). May be repeated.",
    ),
    click.option(
        "--threshold",
        "threshold",
        metavar="CLASS=P",
        help="Decide for CLASS from this probability on, else for the likeliest other class.",
    ),
)


def decision_options(command: Callable[..., None]) -> Callable[..., None]:
    """How classes are decided for, which the command gets as `decide`."""

    @wraps(command)
    def with_request(costs: tuple[str, ...], prior: tuple[str, ...], threshold: str | None, **asked: Any) -> None:
        command(decide=DecisionRequest(costs, prior, threshold), **asked)

    for option in reversed(DECISION_OPTIONS):
        with_request = option(with_request)
    return with_request


def suggestion(name: str, known: Iterable[str]) -> str:
    """What the person may have meant.

    >>> suggestion("incom", ["age", "income"])
    "Did you mean 'income'?"
    """
    names = list(known)
    near = get_close_matches(name, names, n=1)
    return f"Did you mean {near[0]!r}?" if near else f"It has {format_list(names, most=20)}."


# -- how much is said in addition to the results: -q and -v, before a command or after it


KEY = "softcount.loudness"
QUIET, USUAL, LOUD = -1, 0, 1


def _keep_loudness(ctx: click.Context, param: click.Parameter, asked: bool) -> None:
    if not asked:
        return
    wanted = QUIET if param.name == "quiet" else LOUD
    if ctx.meta.setdefault(KEY, wanted) != wanted:
        raise click.UsageError("-q and -v cannot both be given")


def loudness_options() -> list[click.Option]:
    """-q and -v, for a command or for the group of them."""
    how: dict[str, Any] = {"is_flag": True, "expose_value": False, "is_eager": True, "callback": _keep_loudness}
    return [
        click.Option(["-q", "--quiet"], help="No notes and no progress, errors alone.", **how),
        click.Option(["-v", "--verbose"], help="Also notes of what is normal, such as missing cells.", **how),
    ]


def loudness() -> int:
    """How much was asked to be said."""
    ctx = click.get_current_context(silent=True)
    return USUAL if ctx is None else int(ctx.meta.get(KEY, USUAL))
