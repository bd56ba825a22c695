"""Options that several commands share, and how their text is understood."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., Any])

CRITERIA = ("evidence", "bic", "icl", "cv")
"""Ways to choose the number of classes."""

HOW = ("ml", "map", "mean", "predictive")
"""Ways to turn counts into probabilities."""

METHODS = ("temperature", "isotonic")
"""Ways to calibrate probabilities."""


def data_argument(command: Command) -> Command:
    return click.argument("data", metavar="DATA")(command)


def optional_data_argument(command: Command) -> Command:
    return click.argument("data", metavar="[DATA]", required=False)(command)


def model_argument(command: Command) -> Command:
    return click.argument("model", metavar="MODEL")(command)


def json_option(command: Command) -> Command:
    return click.option("--json", "json_wanted", is_flag=True, help="Answer with one JSON document.")(command)


def output_option(help_text: str) -> Callable[[Command], Command]:
    return click.option("-o", "--output", "output", metavar="FILE", help=help_text)


def seed_option(command: Command) -> Command:
    text = "Seed of every random choice; the same seed gives the same answer."
    return click.option(
        "--seed", type=click.IntRange(0, 2**32 - 1), metavar="N", default=0, show_default=True, help=text
    )(command)


def given_option(command: Command) -> Command:
    text = "A column whose value is known. May be repeated."
    return click.option("--given", "given", multiple=True, metavar="COL=VALUE", help=text)(command)


def reading_options(command: Command) -> Command:
    """How a table is read: kinds, words for missing, and whether the first line names the columns."""
    kind = click.option(
        "--kind",
        "kinds",
        multiple=True,
        metavar="COL=KIND",
        callback=understood_kinds,
        help="Declare a column's kind (categorical, normal, poisson, text, ..., ignore), or a block of columns' "
        "(x,y=multinormal). May be repeated.",
    )
    return kind(cell_options(command))


def cell_options(command: Command) -> Command:
    """How the cells of a file are read, whatever the model."""
    missing = click.option(
        "--missing",
        "missing",
        multiple=True,
        metavar="WORD",
        help="A cell that means missing, instead of the usual (empty, NA, NaN, null, None, ?). May be repeated.",
    )
    header = click.option(
        "--no-header", "no_header", is_flag=True, help="The first line is data; columns are c1, c2, ..."
    )
    return missing(header(command))


def lines_option(command: Command) -> Command:
    return click.option("--lines", "lines", is_flag=True, help="Each line of DATA is a document.")(command)


def document_option(command: Command) -> Command:
    return click.option("--document", "document", is_flag=True, help="The whole of DATA is one document.")(command)


def lines_way(lines: bool) -> Literal["lines"] | None:
    return "lines" if lines else None


def way_of(lines: bool, document: bool) -> Literal["lines", "document"] | None:
    """How DATA is to be read; None where its content decides."""
    if lines and document:
        raise click.UsageError("--lines and --document cannot both be given")
    return "document" if document else lines_way(lines)


def understood_kinds(ctx: click.Context, param: click.Parameter, texts: tuple[str, ...]) -> dict[str, str]:
    """Column -> kind. A column's name may itself hold "=", a kind never does, so the last one divides."""
    kinds: dict[str, str] = {}
    for text in texts:
        column, sign, kind = text.rpartition("=")
        if not sign or not column or not kind:
            raise click.BadParameter(f"{text!r} is not COL=KIND, such as zip=categorical", ctx, param)
        if kinds.setdefault(column, kind) != kind:
            raise click.BadParameter(f"column {column!r} is declared both {kinds[column]} and {kind}", ctx, param)
    return kinds


class Classes(click.ParamType):
    """A number of classes, or "auto"."""

    name = "N|auto"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int | str:
        if value == "auto" or isinstance(value, int):
            return value
        try:
            number = int(value)
        except ValueError:
            number = 0
        if number < 1:
            self.fail(f"{value!r} is neither a number of classes (1, 2, ...) nor auto", param, ctx)
        return number


class PriorWord(click.ParamType):
    """Imagined counts per level: a number, or the name of a way to choose one."""

    name = "A"
    words = ("auto", "flat", "jeffreys", "row")

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float | str:
        if value in self.words or isinstance(value, float):
            return value
        try:
            number = float(value)
        except ValueError:
            number = -1.0
        if not 0 <= number < float("inf"):
            self.fail(f"{value!r} is neither a number from 0 up nor one of {', '.join(self.words)}", param, ctx)
        return number
