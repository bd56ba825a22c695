"""Models in files, the names of what they hold, and notes on tables that are put to them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from softcount.cli.options import LOUD, loudness, suggestion
from softcount.cli.outputs import inform, say_note
from softcount.cli.request import is_network_file
from softcount.errors import DataError, ModelFileError
from softcount.files.archive import read
from softcount.files.centres import centres_of, holds_centres
from softcount.files.model_file import load_model
from softcount.files.text import refuse_vocabulary
from softcount.fitted.answers import answering_model, dependence_warning
from softcount.fitted.derived_columns import derived_fields
from softcount.fitted.fitted import Fitted
from softcount.learn.record import Learned
from softcount.pictures.text import format_count, format_list
from softcount.report.page import key_text
from softcount.table import Key, Table
from softcount.table.schema import labels

if TYPE_CHECKING:
    from softcount.fitted.network import FittedNet
    from softcount.learn.kmeans.fit import Centres


class KMeansFile(ModelFileError):
    """A file of k-means where a model of probabilities is wanted; it holds the centres and their columns' names."""

    def __init__(self, path: str, centres: Centres, names: list[str]) -> None:
        super().__init__(
            f"{path}: k-means has centres and no probabilities, which this command needs.\n"
            f"  Look at them with: softcount show {path}     or use them: softcount.load({path!r}).predict(X)"
        )
        self.centres, self.names = centres, names


def is_network(model: Any) -> bool:
    """Whether a model that was loaded is a network."""
    return not isinstance(model, Fitted)


def load_any(path: str) -> Fitted | FittedNet:
    """The model of a file, which must be one of probabilities; a network also from a network file."""
    return _from_network_file(path) if is_network_file(path) else _from_model_file(path)


def _from_network_file(path: str) -> FittedNet:
    from softcount.estimators.net_files import fitted_from
    from softcount.files.bif import read_network

    try:
        return fitted_from(read_network(path))
    except DataError as error:
        raise ModelFileError(str(error)) from None


def _from_model_file(path: str) -> Fitted | FittedNet:
    document, arrays = read(Path(path))
    if holds_centres(document):
        raise _centres(path, document, arrays)
    if "density" in document:
        raise ModelFileError(
            f"{path}: a density, which commands have nothing to say of.\n"
            f"  Use it in Python: softcount.load({path!r}).score_samples(x)"
        )
    if "average" in document:
        raise ModelFileError(
            f"{path}: an average of models, which commands do not ask yet.\n"
            f"  Use it in Python: softcount.load({path!r}).predict_proba(X)"
        )
    if "chain" in document or document.get("model") == "hidden-chain":
        raise ModelFileError(
            f"{path}: a model of sequences, which this command has nothing to say of.\n"
            f"  Use it in Python: softcount.load({path!r})"
        )
    refuse_vocabulary(path, document)
    found = load_model(path, document, arrays)[0]
    if isinstance(found, Fitted):
        return found
    from softcount.fitted.network import FittedNet  # only who has a network pays for loading it

    return FittedNet.of(found)


def _centres(path: str, document: dict[str, Any], arrays: dict[str, np.ndarray]) -> ModelFileError:
    try:
        centres = centres_of(document, arrays)
        width = centres.centres.shape[1]
        names = document["estimator"]["columns"]["names"] or range(width)
        if len(names) != width:
            raise ModelFileError(f"{width} columns have {len(names)} names.")
    except (ModelFileError, KeyError, TypeError, ValueError) as error:
        return ModelFileError(f"{path}: its centres make no sense ({error}).")
    return KMeansFile(path, centres, [str(name) for name in names])


def sequence_model(path: str) -> Any:
    """The model of sequences that a file holds; None where it holds another one, or is no model file."""
    if is_network_file(path):
        return None
    document, _ = read(Path(path))
    if "chain" not in document and document.get("model") != "hidden-chain":
        return None
    from softcount.estimators.saving import load_estimator

    return load_estimator(path)


def is_hidden(model: Any) -> bool:
    """Whether a model of sequences is one of hidden states."""
    return hasattr(model, "n_states_")


# -- names


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
    single = [part for key in fitted.params for part in (key if isinstance(key, tuple) else (key,))]
    single += [spec.key for spec in derived_fields(fitted.schema)]
    return {name: key for key, name in labels([*single, *([] if fitted.target is None else [fitted.target])]).items()}


def node_keys(fitted: FittedNet) -> dict[str, Key]:
    """The nodes of a network by the text that names them."""
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


# -- notes


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
    notes = [] if table.source.text_file else list(table.source.notes)
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


def _cells(counts: Mapping[Key, int], absent: Iterable[Key], noun: str, fate: str) -> list[str]:
    found = {key: count for key, count in counts.items() if count and key not in set(absent)}
    if not found:
        return []
    where = format_list([f"{key_text(key)} ({count:,})" for key, count in found.items()])
    return [f"{format_count(sum(found.values()), noun)} {fate}: {where}"]


def _names(keys: Iterable[Key]) -> str:
    return format_list([key_text(key) for key in keys])


def say_answering_model(fitted: Fitted | FittedNet, columns: Iterable[Key] | None = None) -> None:
    """Name the model that answers about columns, and warn if it takes dependent ones as independent."""
    inform(f"answered by: {answering_model(fitted)}")
    said = dependence_warning(fitted, columns)
    if said is not None:
        say_note(said)
