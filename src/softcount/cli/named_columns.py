"""Columns beside those of a model: named on the command line, or met in a table, which its owner wants to know."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from softcount.cli.loudness import LOUD, loudness
from softcount.cli.outputs import inform, say_note
from softcount.errors import DataError
from softcount.report.page import key_text
from softcount.report.plain_text import counted, listed

if TYPE_CHECKING:
    from softcount.fitted.fitted import Fitted
    from softcount.fitted.network import FittedNet
    from softcount.learn.record import Learned
    from softcount.table import Key, Table


def column_key(fitted: Fitted, name: str, option: str) -> Key:
    """The model's column of that name; a table without names has numbers."""
    keys = model_keys(fitted)
    if name in keys:
        return keys[name]
    raise DataError(f"{option}: the model has no column {name!r}.\n  {suggestion(name, keys)}")


def refuse_text(fitted: Fitted, key: Key, model: str) -> None:
    """Raise where a column is text, whose distribution nobody could read."""
    if key != fitted.target and fitted.schema[key].kind == "text":
        raise DataError(
            f"--of: column {str(key)!r} is text, and has too many documents to give each a probability.\n"
            f"  Draw some: softcount sample {model}     or see the words of each class: softcount show {model}"
        )


def model_keys(fitted: Fitted) -> dict[str, Key]:
    """The columns one can ask about, by the text that names them."""
    from softcount.fitted.derived_columns import derived_fields
    from softcount.table.schema import labels

    single = [part for key in fitted.params for part in (key if isinstance(key, tuple) else (key,))]
    single += [spec.key for spec in derived_fields(fitted.schema)]
    return {name: key for key, name in labels([*single, *([] if fitted.target is None else [fitted.target])]).items()}


def suggestion(name: str, known: Iterable[str]) -> str:
    """What the person may have meant.

    >>> suggestion("incom", ["age", "income"])
    "Did you mean 'income'?"
    """
    names = list(known)
    near = get_close_matches(name, names, n=1)
    return f"Did you mean {near[0]!r}?" if near else f"It has {listed(names, most=20)}."


def node_keys(fitted: FittedNet) -> dict[str, Key]:
    """The nodes of a network by the text that names them."""
    from softcount.table.schema import labels

    return {name: key for key, name in labels(fitted.net.graph.names).items()}


def node_key(fitted: FittedNet, name: str, option: str) -> Key:
    """The node of that name."""
    keys = node_keys(fitted)
    if name in keys:
        return keys[name]
    raise DataError(f"{option}: the network has no node {name!r}.\n  {suggestion(name, keys)}")


def class_value(fitted: Fitted, text: str, option: str) -> Any:
    """The class of that name; a mixture's classes are numbers."""
    classes = fitted.classes if fitted.classes is not None else list(range(fitted.n_groups))
    for value in classes:
        if str(value) == text:
            return value
    names = [str(value) for value in classes]
    raise DataError(f"{option}: the model has no class {text!r}.\n  {suggestion(text, names)}")


def say_prediction_notes(fitted: Learned, table: Table, cells: bool = True) -> None:
    """Columns that are not there or not known and, where `cells`, cells missing and levels never seen: a note each."""
    for note in prediction_notes(fitted, table, cells):
        say_note(note)


def prediction_notes(fitted: Learned, table: Table, cells: bool = True) -> list[str]:
    """The same as a list."""
    given: list[Key] = list(table.source.keys)
    if all(isinstance(spec.key, int) for spec in fitted.schema.fields):
        given = list(range(len(given)))  # a model of columns without names takes any table by place
    there, known = set(given), {*table.keys, fitted.target, *table.source.aside}
    absent = [spec.key for spec in fitted.schema.used if given and spec.key not in there]
    extra = [key for key in given if key not in known]
    notes = document_notes(table)
    if absent:
        notes.append(f"not in the table, so no evidence: {_names(absent)}")
    if extra:
        notes.append(f"not in the model, so not used: {_names(extra)}")
    if cells:
        if loudness() == LOUD:  # missing cells are normal
            notes += _cells(table.missing, absent, "missing cell", "taken as no evidence")
        notes += [table.outside_note] if table.outside else []
        text = {spec.key for spec in table.schema.stored("bags")}
        levels = {key: count for key, count in table.unseen.items() if key not in text}
        texts = {key: count for key, count in table.unseen.items() if key in text}
        notes += _cells(levels, absent, "cell", "with levels the model has never seen")
        notes += _cells(texts, absent, "document", "without a word that the model knows")
    return notes


def document_notes(table: Table) -> list[str]:
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


def say_answering_model(fitted: Fitted | FittedNet, columns: Iterable[Key] | None = None) -> None:
    """Name the model that answers about columns, and warn if it takes dependent ones as independent."""
    from softcount.fitted.answers import answering_model, dependence_warning

    inform(f"answered by: {answering_model(fitted)}")
    said = dependence_warning(fitted, columns)
    if said is not None:
        say_note(said)
