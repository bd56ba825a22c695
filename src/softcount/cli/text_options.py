"""The options of `fit` for columns of text, under a heading of their own in its help."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from softcount.errors import DataError

Command = TypeVar("Command", bound=Callable[..., Any])

HEADING = "Text columns"
ENGLISH = "english"

SETTINGS = {
    "text": "model",
    "min_count": "min_count",
    "min_df": "min_df",
    "max_df": "max_df",
    "drop_top": "drop_top",
    "stop_words": "stop_words",
    "ngrams": "ngrams",
}
"""Each option and the setting of the family `Text` it is."""


class TextOption(click.Option):
    """An option that is listed under the heading for text."""


class TextCommand(click.Command):
    """A command whose options for text stand apart in its help."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        plain: list[tuple[str, str]] = []
        apart: list[tuple[str, str]] = []
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx) if isinstance(param, click.Option) else None
            if record is not None:
                (apart if isinstance(param, TextOption) else plain).append(record)
        for heading, records in (("Options", plain), (HEADING, apart)):
            with formatter.section(heading):
                formatter.write_dl(records)


class Ngrams(click.ParamType):
    """The shortest and longest run of words that counts as one: "1-2", or "2" for pairs alone."""

    name = "N-M"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, int]:
        from softcount.text.reading import LONGEST_RUN

        if isinstance(value, tuple):
            return value
        low, dash, high = str(value).partition("-")
        try:
            found = int(low), int(high if dash else low)
        except ValueError:
            found = 0, 0
        if not 1 <= found[0] <= found[1] <= LONGEST_RUN:
            most = f"of at most {LONGEST_RUN:,} words"
            self.fail(f"{value!r} is not a shortest and a longest run {most}, such as 1-2", param, ctx)
        return found


class Documents(click.ParamType):
    """A number of documents (3) or a share of them (0.5)."""

    name = "N|SHARE"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int | float:
        if not isinstance(value, str):
            return value  # type: ignore[no-any-return]
        try:
            found: int | float = int(value) if value.isdecimal() else float(value)
        except ValueError:
            found = -1
        if found < 0 or (isinstance(found, float) and not found <= 1):
            self.fail(f"{value!r} is neither a number of documents (3) nor a share of them (0.5)", param, ctx)
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
    ("--min-df", Documents(), "N|SHARE", "Keep words that are in at least so many documents (3), or a share (0.01)."),
    ("--max-df", Documents(), "N|SHARE", "Keep words that are in at most so many documents, or a share (0.5)."),
    ("--drop-top", click.IntRange(0), "N", "Leave out the N most frequent words.  [default: 0]"),
    ("--stop-words", str, "english|FILE", "Leave out the words of a list: the built-in one, or those in a file."),
    ("--ngrams", Ngrams(), "N-M", "Count runs of N to M words, such as 1-2.  [default: 1-1]"),
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
    from softcount.table.bytestream import TextFile, as_utf8

    try:
        raw = b"".join(TextFile(said).blocks())
    except DataError as error:
        raise DataError(f"--stop-words: {error}\n  Name a file of words, or use the built-in list: english") from None
    words = () if b"\0" in raw else tuple(sorted(set(as_utf8(raw)[0].decode().lower().split())))
    if not words:
        raise DataError(f"{said} holds no stop words. Write one word per line, or use the built-in list: english")
    return words
