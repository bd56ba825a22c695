"""The options that are about sequences: how DATA holds them, and what is looked for in them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from typing import TYPE_CHECKING, Any

import click
from msgspec import Struct

from softcount.cli.options import Command, as_number
from softcount.errors import DataError

if TYPE_CHECKING:
    from softcount.cli.data_input import InputFormat
    from softcount.sequences import Sequences

HEADING = "Sequences"


class SequenceOption(click.Option):
    """An option that is listed under the heading for sequences."""


def state_number(text: str) -> int | str:
    """A number of hidden states, or "auto"."""
    number = as_number(int, text)
    if text != "auto" and number < 1:
        raise click.BadParameter(f"{text!r} is neither a number of states (1, 2, ...) nor auto")
    return text if text == "auto" else int(number)


def context_length(text: str) -> int | str:
    """How many steps a chain looks back: a number, "auto" or "variable"."""
    if text in ("auto", "variable"):
        return text
    number = as_number(int, text)
    if number < 0:
        raise click.BadParameter(f"{text!r} is neither a number of steps (0, 1, ...) nor auto nor variable")
    return int(number)


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

    def read(
        self, data: str, form: InputFormat, weight: str | None = None, column: Any = None, progress: Any = None
    ) -> Sequences:
        """The sequences that DATA holds; of a long table with one column, where that is said."""
        from softcount.sequences import open_sequences

        return open_sequences(
            data, sequence=self.sequence, order=self.order, weight=weight, steps=self.steps,
            columns=[column] if isinstance(column, str) and self.steps is None else None,
            missing=form.words(), form=form.file, progress=progress,
        )  # fmt: skip


READING: list[tuple[str, dict[str, Any]]] = [
    ("--sequence", {"metavar": "COL", "help": "The column that says which sequence a row is a step of."}),
    ("--order", {"metavar": "COL", "help": "The column that says in which order: a number, a date or a time."}),
    (
        "--steps",
        {
            "type": click.Choice(("characters", "words")),
            "help": "DATA is text, each line a sequence of these; with --sequence file, all of it.",
        },
    ),
]
LOOKING: list[tuple[str, dict[str, Any]]] = [
    (
        "--states",
        {
            "type": state_number,
            "metavar": "N|auto",
            "help": "Look for so many hidden states in the sequences; auto: as many as there is evidence for.",
        },
    ),
    (
        "--symbols",
        {
            "metavar": "COL",
            "help": "The column that a chain is of, where there are several beside --sequence, --order.",
        },
    ),
    (
        "--context",
        {
            "type": context_length,
            "metavar": "N|auto|variable",
            "help": "How many steps back what comes next depends on, where no hidden states are looked for.  "
            "[default: 1]",
        },
    ),
    ("--ends", {"is_flag": True, "default": None, "help": "A chain learns how sequences begin and end."}),
]


def sequence_form(command: Callable[..., None]) -> Callable[..., None]:
    """How DATA holds sequences, which the command gets as `layout`, a `SequenceForm`."""

    @wraps(command)
    def with_layout(sequence: str | None, order: str | None, steps: str | None, **asked: Any) -> None:
        command(layout=SequenceForm(sequence, order, steps), **asked)

    found: Callable[..., None] = _with(with_layout, READING)
    return found


def sequence_options(command: Command) -> Command:
    """All that `fit` can be told of sequences."""
    found: Any = sequence_form(_with(command, LOOKING))
    return found  # type: ignore[no-any-return]


def _with(command: Any, wanted: list[tuple[str, dict[str, Any]]]) -> Any:
    for name, rest in reversed(wanted):
        command = click.option(name, cls=SequenceOption, **rest)(command)
    return command


NOT_BESIDE = ("classes", "net", "hidden", "cut", "required", "forbidden", "max_parents", "holdout", "folds")
NOT_BESIDE_EITHER = ("calibrate", "unlabelled_weight", "expert", "model", "spill", "engine")


def is_for_sequences(asked: Mapping[str, Any], layout: SequenceForm) -> bool:
    """Whether anything that was asked is about sequences."""
    return layout.is_asked_for or any(asked[name] is not None for name in ("states", "context", "symbols", "ends"))


def check_with_sequences(asked: Mapping[str, Any], texts: Mapping[str, Any]) -> None:
    """Refuse what contradicts sequences."""
    for name in (*NOT_BESIDE, *NOT_BESIDE_EITHER):
        if asked[name] not in (None, (), {}):
            raise click.UsageError(f"--{name.replace('_', '-')} is for tables; it cannot be given with sequences")
    if texts:
        raise click.UsageError("options for columns of text cannot be given with sequences")
    if asked["states"] is None:
        for name in ("target", "criterion", "starts", "kinds", "checkpoint"):
            if asked[name] not in (None, (), {}):
                raise click.UsageError(f"--{name.rstrip('s')} needs --states where DATA holds sequences")
    elif any(asked[name] is not None for name in ("context", "symbols", "ends")):
        raise click.UsageError("--context, --symbols and --ends are for chains; they cannot be given with --states")
    elif asked["criterion"] not in (None, "evidence", "bic"):
        raise click.UsageError(f"--criterion {asked['criterion']} is for classes; of states: evidence, bic")
