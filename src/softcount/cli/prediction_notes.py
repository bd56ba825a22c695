"""What prediction met in a table that its owner wants to know, said on standard error."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from softcount.cli.streams import say
from softcount.report.json_page import key_text
from softcount.report.plain_text import counted, listed

if TYPE_CHECKING:
    from softcount.fitted.fitted_model import Fitted
    from softcount.table import Key, Table


def say_what_was_met(fitted: Fitted, table: Table, cells: bool = True) -> None:
    """Columns that are not there or not known and, where `cells`, cells missing and levels never seen: a note each."""
    for note in notes_on(fitted, table, cells):
        say(f"note: {note}")


def notes_on(fitted: Fitted, table: Table, cells: bool = True) -> list[str]:
    given: list[Key] = list(table.source.keys)
    if all(isinstance(spec.key, int) for spec in fitted.schema.fields):
        given = list(range(len(given)))  # a model of columns without names takes any table by place
    absent = [spec.key for spec in fitted.schema.used if given and spec.key not in given]
    extra = [key for key in given if key not in table.keys and key != fitted.target and key not in table.source.aside]
    notes = notes_of(table)
    if absent:
        notes.append(f"not in the table, so no evidence: {_names(absent)}")
    if extra:
        notes.append(f"not in the model, so not used: {_names(extra)}")
    if cells:
        notes += _cells(table.missing, absent, "missing cell", "taken as no evidence")
        text = {spec.key for spec in table.schema.stored("bags")}
        levels = {key: count for key, count in table.unseen.items() if key not in text}
        texts = {key: count for key, count in table.unseen.items() if key in text}
        notes += _cells(levels, absent, "cell", "with levels the model has never seen")
        notes += _cells(texts, absent, "document", "without a word that the model knows")
    return notes


def notes_of(table: Table) -> list[str]:
    """What documents have to say of themselves: what was left out, and what was not UTF-8."""
    return [] if table.source.text_file else list(table.source.notes)


def _cells(counts: Mapping[Key, int], absent: Iterable[Key], noun: str, fate: str) -> list[str]:
    found = {key: count for key, count in counts.items() if count and key not in set(absent)}
    if not found:
        return []
    where = listed([f"{key_text(key)} ({count:,})" for key, count in found.items()])
    return [f"{counted(sum(found.values()), noun)} {fate}: {where}"]


def _names(keys: Iterable[Key]) -> str:
    return listed([key_text(key) for key in keys])
