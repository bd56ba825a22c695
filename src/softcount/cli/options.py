"""Options as data: how each is written, its meaning, and how its text becomes a value. Loads nothing heavy."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from math import inf
from types import SimpleNamespace
from typing import Any, Literal, TypeVar

import click
from msgspec import Struct

from softcount.core.remedies import address_of, similar
from softcount.errors import DataError
from softcount.estimators.parameters import PARAMETERS, Parameter
from softcount.pictures.text import format_list
from softcount.sources.source import CONTENT_DECIDES, ORDERS, FileFormat

Record = TypeVar("Record")


def option(spec: str, help: str = "", *, parameter: str = "", unset: str = "", **settings: Any) -> click.Option:
    """An option as its help shows it, such as "-o,--output FILE"; without a metavar and a type it is a flag.

    `parameter` names the parameter of estimators that the option sets: its declaration gives type, range and help.
    `unset` describes what happens if the option is not given.
    """
    flags, _, metavar = spec.partition(" ")
    if parameter:
        declared = PARAMETERS[parameter]
        help = help or declared.help
        kind = parameter_type(declared)
        settings = settings if kind is None else {"type": kind} | settings
    if isinstance(settings.get("type"), tuple):
        settings["type"] = click.Choice(settings["type"])
    if metavar:
        settings["metavar"] = metavar
    elif "type" not in settings:
        settings.setdefault("is_flag", True)
    help += " May be repeated." if settings.get("multiple") else ""
    help += f"  [default: {unset}]" if unset else ""
    return click.Option(flags.split(","), help=help, show_default="default" in settings, **settings)


def parameter_type(parameter: Parameter) -> Any:
    """The click type of a declared parameter; None for one that estimators check themselves."""
    words = [word for word in parameter.words if word is not None]
    if parameter.type is None:
        return click.Choice(words)
    if parameter.type not in (int, float):
        return None
    if not words:
        return click.IntRange(int(parameter.least)) if parameter.type is int else click.FloatRange(parameter.least)

    def read(text: str) -> Any:
        number = as_number(int, text)
        if text not in words and number < parameter.least:
            raise click.BadParameter(
                f"{text!r} is not {', '.join(words)} or a whole number of at least {parameter.least}"
            )
        return text if text in words else int(number)

    return read


def as_number(read: Callable[[str], float], text: str) -> float:
    """The number that a text is; -1 if it is not a number."""
    try:
        return read(text)
    except ValueError:
        return -1


class Request(SimpleNamespace):
    """The values of a command's arguments and options, by name.

    Options about the format of DATA are collected in `form`, those about sequences in `layout`, and those about
    decisions in `decide`.
    """

    model: str
    data: Any
    output: str | None
    json: bool
    seed: int
    form: InputFormat
    layout: SequenceForm
    decide: DecisionRequest

    @classmethod
    def collect(cls, values: dict[str, Any]) -> Request:
        if "missing" in values:
            values["form"] = InputFormat.of(values)
        if "steps" in values:
            values["layout"] = _take(SequenceForm, values)
        if "cost" in values:
            values["decide"] = _take(DecisionRequest, values)
        return cls(**values)


def _take(record: type[Record], values: dict[str, Any]) -> Record:
    fields: tuple[str, ...] = record.__struct_fields__  # type: ignore[attr-defined]
    return record(**{name: values.pop(name) for name in fields if name in values})


def suggestion(name: str, known: Iterable[str]) -> str:
    """A similar name, or the names that there are.

    >>> suggestion("incom", ["age", "income"])
    "Did you mean 'income'?"
    """
    names = list(known)
    return similar(name, names, f"It has {format_list(names, most=20)}.")


def find_name(known: Mapping[str, Any], name: str, flag: str, there_is_no: str = "the model has no column") -> Any:
    """The object of that name; otherwise an error of the option with a suggestion."""
    if name not in known:
        raise DataError(f"{flag}: {there_is_no} {name!r}.\n  {suggestion(name, known)}")
    return known[name]


# -- arguments and options of several commands


def _hide_password(ctx: click.Context, param: click.Parameter, data: str | None) -> str | None:
    return None if data is None else address_of(data)


DATA = click.Argument(["data"], metavar="DATA", callback=_hide_password)
OPTIONAL_DATA = click.Argument(["data"], metavar="[DATA]", required=False, callback=_hide_password)
MODEL = click.Argument(["model"], metavar="MODEL")
JSON = option("--json", "Print one JSON document.")
SEED = option(
    "--seed N",
    "Seed of every random choice. The same seed gives the same result.",
    type=click.IntRange(0, 2**32 - 1),
    default=0,
)
GIVEN = option("--given COL=VALUE", "Condition on a column: a=5, a=1..5, 'a>5', 'a=x|y', 'a!=x'.", multiple=True)
DIGITS = option(
    "--digits N",
    "Round numbers to N digits after the point.",
    unset="six significant digits in CSV",
    type=click.IntRange(0, 17),
)


def output_option(help: str, **settings: Any) -> click.Option:
    return option("-o,--output FILE", help, **settings)


ROWS_OUTPUT = output_option("Output file: CSV, or Parquet if it ends in .parquet.", unset="CSV on standard output")


# -- the format of DATA


TextUnit = Literal["lines", "document"]
"""Whether each line of DATA is a document, or all of it is one."""

FORMAT = (
    option(
        "--missing WORD",
        "A cell that means missing, in addition to the usual ones (empty, NA, N/A, NaN, null, None, ?, ...).",
        multiple=True,
    ),
    option("--only-missing WORD", "A cell that means missing, instead of the usual ones.", multiple=True),
    option(
        "--header/--no-header",
        "Whether the first line names the columns. Without names, columns are c1, c2, ...",
        unset="detected",
        is_flag=True,
        default=None,
    ),
    option("--names A,B,C", "Column names, in order."),
    option("--delimiter CHAR", "Field delimiter: a character, tab, or spaces."),
    option("--decimal", "Decimal mark.", type=(".", ",")),
    option("--dates", "Order of day, month and year in dates.", type=tuple(ORDERS)),
    option("--encoding NAME", "Character encoding: utf-8, cp1252, utf-16, ..."),
    option("--skip-lines N", "Number of lines to skip at the start.", type=click.IntRange(0)),
    option("--comment PREFIX", "Ignore lines starting with this prefix."),
    option("--file-column COL", "Add a column of this name that holds the file of each row."),
    option(
        "--sql QUERY", "Read the rows of a query; DATA is an SQLite or DuckDB file, or postgresql://USER@HOST/NAME."
    ),
    option("--lines", "Each line of DATA is a document."),
)
DOCUMENT = option("--document", "All of DATA is one document.")


class InputFormat(Struct, frozen=True):
    """The format of DATA; what is None or empty is detected.

    `default_unit` is the unit of documents in a file that is not a table, if the model reads nothing but text.
    """

    missing: tuple[str, ...] = ()
    only_missing: tuple[str, ...] = ()
    file: FileFormat = CONTENT_DECIDES
    unit: TextUnit | None = None
    default_unit: TextUnit = "lines"
    sql: str | None = None

    @classmethod
    def of(cls, values: dict[str, Any]) -> InputFormat:
        """Take the options of the format out of the values of a command."""
        given = {name: values.pop(name) for name in FileFormat.__struct_fields__}
        lines, document = values.pop("lines"), values.pop("document", False)
        file = FileFormat.of(**{name: value for name, value in given.items() if value is not None})
        if lines and document:
            raise click.UsageError("--lines and --document cannot both be given")
        unit: TextUnit | None = "document" if document else "lines" if lines else None
        sql = values.pop("sql")
        if sql is not None and unit is not None:
            raise click.UsageError("--sql is for rows of a table: leave out --lines and --document")
        return cls(values.pop("missing"), values.pop("only_missing"), file, unit, sql=sql)

    @property
    def is_given(self) -> bool:
        return bool(self.missing or self.only_missing or self.file.document or self.unit or self.sql)

    @property
    def options(self) -> tuple[str, ...]:
        """The options with which other commands read DATA in the same way."""
        query = () if self.sql is None else ("--sql", shlex.quote(self.sql))
        return (*query, f"--{self.unit}") if self.unit else query


def _read_kinds(ctx: click.Context, param: click.Parameter, texts: tuple[str, ...]) -> dict[str, str]:
    """Kinds by column. A column's name may contain "=", a kind never does. "auto" alone has the column ""."""
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


KIND = option(
    "--kind COL=KIND",
    "Kind of a column: categorical, normal, poisson, text, ..., ignore. A block of columns is "
    "x,y=multinormal. COL=auto picks the best-fitting distribution of a column, and auto does so for every column.",
    multiple=True,
    callback=_read_kinds,
)


# -- sequences


class SequenceForm(Struct, frozen=True):
    """How DATA holds sequences: in a long table with these columns, or as text of these steps."""

    sequence: str | None = None
    sort_by: str | None = None
    steps: str | None = None

    @property
    def is_given(self) -> bool:
        return self != SequenceForm()

    def refuse(self, model: str) -> None:
        """Raise an error if an option for sequences is given for a model of rows."""
        for name in self.__struct_fields__:
            if getattr(self, name) is not None:
                raise DataError(f"{model}: not a model of sequences. Leave out --{name.replace('_', '-')}.")


SEQUENCES = (
    option("--sequence COL", "The column that identifies the sequence of a row."),
    option("--sort-by COL", "The column that sorts the steps of a sequence: a number, a date or a time."),
    option(
        "--steps",
        "DATA is text, and each line is a sequence of characters or words; with --sequence file, DATA is one sequence.",
        type=("characters", "words"),
    ),
)


# -- decisions: costs of errors, shares of classes, thresholds

PRIOR_WORDS = ("uniform", "estimate")

DECISIONS = (
    option(
        "--cost TRUE,DECIDED=N",
        "Cost of deciding for one class if another is true; rows get the class of the lowest expected cost. Errors "
        "that are not named cost 1.",
        multiple=True,
    ),
    option(
        "--class-prior CLASS=SHARE",
        "Share of a class among these rows, if it differs from training; or uniform, or estimate (from these rows).",
        multiple=True,
    ),
)
THRESHOLD = option(
    "--threshold CLASS=P", "Decide for CLASS from this probability on, otherwise for the most probable other class."
)


class DecisionRequest(Struct, frozen=True):
    """Costs as TRUE,DECIDED=COST, shares of classes as CLASS=SHARE or one word, and a threshold as CLASS=P."""

    cost: tuple[str, ...] = ()
    class_prior: tuple[str, ...] = ()
    threshold: str | None = None

    def __post_init__(self) -> None:
        if self.cost and self.threshold is not None:
            raise click.UsageError("--cost and --threshold are two rules for the same decision: give only one of them")
        if len(self.class_prior) > 1 and any(text in PRIOR_WORDS for text in self.class_prior):
            raise click.UsageError("--class-prior is shares, or one word: uniform, estimate")

    def costs(self, names: Sequence[Any]) -> dict[tuple[Any, Any], float] | None:
        """Costs by (true class, predicted class); None if none are given.

        Names of classes may contain commas: the comma between two known classes divides.
        """
        found: dict[tuple[Any, Any], float] = {}
        known = {str(name) for name in names}
        for text in self.cost:
            pair, sign, value = text.rpartition("=")
            splits = [(pair[:at], pair[at + 1 :]) for at, char in enumerate(pair) if char == ","]
            if not sign or not splits:
                raise click.UsageError(f"--cost {text!r} is not TRUE,DECIDED=COST, such as ill,well=10")
            true, decided = next((both for both in splits if known.issuperset(both)), splits[0])
            classes = find_class("--cost", true, names), find_class("--cost", decided, names)
            found[classes] = _number("--cost", value)
        return found or None

    def shares(self, names: Sequence[Any]) -> Any:
        """Shares by class, or a word; None if none are given."""
        if len(self.class_prior) == 1 and self.class_prior[0] in PRIOR_WORDS:
            return self.class_prior[0]
        return dict(class_numbers("--class-prior", self.class_prior, names)) if self.class_prior else None


def class_numbers(flag: str, texts: Iterable[str], names: Sequence[Any]) -> Iterator[tuple[Any, float]]:
    """Class and number of each CLASS=NUMBER; the name of a class may contain "="."""
    for text in texts:
        name, sign, value = text.rpartition("=")
        if not sign:
            raise click.UsageError(f"{flag} {text!r} is not CLASS=NUMBER, such as yes=0.1")
        yield find_class(flag, name, names), _number(flag, value)


def find_class(flag: str, text: str, names: Sequence[Any]) -> Any:
    return find_name({str(name): name for name in names}, text, flag, "there is no class")


def _number(flag: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise click.UsageError(f"{flag}: {text!r} is not a number") from None


# -- values of options of fit

BDEU = "bdeu"
"""The prior of networks: rows that the cells of each table share; bdeu:10 says how many."""
PRIORS = ("auto", "flat", "jeffreys", "row")

Edges = tuple[tuple[str, str], ...]


def read_prior(text: str) -> float | str:
    word, _, rows = text.partition(":")
    if text in PRIORS or (word == BDEU and 0 < as_number(float, rows or "1") < inf):
        return text
    number = as_number(float, text)
    if not 0 <= number < inf:
        words = f"{', '.join(PRIORS)}, bdeu, bdeu:10"
        raise click.BadParameter(f"{text!r} is neither a number from 0 up nor one of {words}")
    return number


def read_ngrams(text: str) -> tuple[int, int]:
    """The shortest and longest run of words that is counted: "1-2", or "2" for pairs alone."""
    from softcount.text.words import LONGEST_RUN

    low, dash, high = text.partition("-")
    found = int(as_number(int, low)), int(as_number(int, high if dash else low))
    if not 1 <= found[0] <= found[1] <= LONGEST_RUN:
        most = f"of at most {LONGEST_RUN:,} words"
        raise click.BadParameter(f"{text!r} is not a shortest and a longest run {most}, such as 1-2")
    return found


def read_document_limit(text: str) -> int | float:
    """A number of documents (3) or a share of them (0.5)."""
    found = as_number(int if text.isdecimal() else float, text)
    if found < 0 or (isinstance(found, float) and not found <= 1):
        raise click.BadParameter(f"{text!r} is neither a number of documents (3) nor a share of them (0.5)")
    return found


def read_edges(ctx: click.Context, param: click.Parameter, texts: tuple[str, ...]) -> Edges:
    found: list[tuple[str, str]] = []
    for part in ",".join(texts).split(",") if texts else ():
        edge = tuple(name.strip() for name in part.replace("->", ">").split(">"))
        if len(edge) != 2 or not all(edge) or edge[0] == edge[1]:
            raise click.BadParameter(f"{part.strip()!r} is not an edge, such as A>B", ctx, param)
        found.append((edge[0], edge[1]))
    return tuple(dict.fromkeys(found))


def by_name(read: Callable[[str], Any], example: str) -> Callable[..., dict[str, Any]]:
    """A callback that reads NAME=VALUE texts; a name may contain "=", so the last one divides."""

    def collect(ctx: click.Context, param: click.Parameter, texts: tuple[str, ...]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for text in texts:
            name, _, written = text.rpartition("=")
            value = read(written) if name else None
            if value is None:
                raise click.BadParameter(f"{text!r} is not {example}", ctx, param)
            if name in found:
                raise click.BadParameter(f"{name!r} is given twice", ctx, param)
            found[name] = value
        return found

    return collect


def read_categories(text: str) -> int | str | tuple[str, ...] | None:
    """The number of categories of a hidden node, their names, or "auto"; None if it is none of these."""
    if text == "auto":
        return text
    if text.isdecimal():
        return int(text) if 2 <= int(text) <= 1_000_000 else None
    names = tuple(name.strip() for name in text.split(","))
    return names if len(names) >= 2 and all(names) and len(set(names)) == len(names) else None


def read_bins(text: str) -> int | tuple[float, ...] | None:
    """The number of bins of a column, or their inner edges; None if it is neither."""
    if text.isdecimal():
        return int(text) if int(text) >= 2 else None
    try:
        edges = tuple(map(float, text.split(",")))
    except ValueError:
        return None
    rising = all(-inf < low < high < inf for low, high in pairwise(edges))
    return edges if len(edges) >= 2 and rising else None


# -- verbosity: -q and -v, before a command or after it

VERBOSITY = "softcount.verbosity"
QUIET, USUAL, VERBOSE = -1, 0, 1


def _keep_verbosity(ctx: click.Context, param: click.Parameter, given: bool) -> None:
    wanted = QUIET if param.name == "quiet" else VERBOSE
    if given and ctx.meta.setdefault(VERBOSITY, wanted) != wanted:
        raise click.UsageError("-q and -v cannot both be given")


def verbosity() -> int:
    ctx = click.get_current_context(silent=True)
    return USUAL if ctx is None else int(ctx.meta.get(VERBOSITY, USUAL))


_EAGER: dict[str, Any] = {"expose_value": False, "is_eager": True, "callback": _keep_verbosity}
VERBOSITY_OPTIONS = (
    option("-q,--quiet", "Print errors only, without notes and progress.", **_EAGER),
    option("-v,--verbose", "Also print notes about what is normal, such as missing cells.", **_EAGER),
)
