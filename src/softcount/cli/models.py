"""Models in files, the names in them, and notes about tables that are put to them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from softcount.cli.options import VERBOSE, find_name, verbosity
from softcount.cli.outputs import print_info, print_note
from softcount.core.lazy import lazy_function
from softcount.errors import DataError, ModelFileError
from softcount.files.archive import read
from softcount.files.model_file import load_model
from softcount.files.other_models import decode_centres, refuse_vocabulary
from softcount.fitted.derived_columns import find_derived_fields
from softcount.fitted.fitted import Fitted, FittedTable
from softcount.learn.record import Learned
from softcount.pictures.text import format_count, format_list
from softcount.report.page import key_text
from softcount.table import Key, Table
from softcount.table.schema import labels

if TYPE_CHECKING:
    from softcount.fitted.network import FittedNet
    from softcount.learn.k_means import Centres

load_estimator = lazy_function("softcount.estimators.saving", "load_estimator")
network_from_file = lazy_function("softcount.fitted.network", "as_fitted")
read_network = lazy_function("softcount.files.bif", "read_network")

NETWORK_FILES = (".bif", ".xmlbif", ".bifxml", ".xml")
"""Endings of network files, also with .gz after them; XML is refused by an error that names BIF."""
NO_COMMAND = {
    "density": ("a density, which the command line cannot read", ".score_samples(x)"),
    "average": ("an average of models, which the command line cannot read", ".predict_proba(X)"),
    "chain": ("a model of sequences, which this command does not read", ""),
}
"""Models that commands refuse, by their entry in the file, and how to use them in Python."""


class KMeansModel(Struct, frozen=True):
    """The centres of a k-means model, and the names of their columns."""

    centres: Centres
    names: list[str]


def is_network_file(name: str) -> bool:
    """Whether a name is that of a network file.

    >>> is_network_file("nets/alarm.BIF.gz"), is_network_file("alarm.sc"), is_network_file("a>b.bif")
    (True, False, False)
    """
    return name.lower().removesuffix(".gz").endswith(NETWORK_FILES) and ">" not in name


def open_model(path: str, sequences: bool = False, centres: bool = False) -> Any:
    """The model of a file: `Fitted` or `FittedNet`.

    A command that takes `sequences` may also get a `MarkovChain` or a `HiddenMarkov`, one that takes `centres` a
    `KMeansModel`; other models are refused.
    """
    if is_network_file(path):
        try:
            return network_from_file(read_network(path))
        except DataError as error:
            raise ModelFileError(str(error)) from None
    document, arrays = read(Path(path))
    if "centres" in document:
        found = _read_centres(path, document, arrays)
        if centres:
            return found
        raise ModelFileError(
            f"{path}: k-means has centres and no probabilities, which this command needs.\n"
            f"  Look at them with: softcount show {path}     or use them: softcount.load({path!r}).predict(X)"
        )
    entry = "chain" if document.get("model") == "hidden-chain" else next((x for x in NO_COMMAND if x in document), None)
    if entry == "chain" and sequences:
        return load_estimator(path)
    if entry is not None:
        what, use = NO_COMMAND[entry]
        raise ModelFileError(f"{path}: {what}.\n  Use it in Python: softcount.load({path!r}){use}")
    refuse_vocabulary(path, document)
    return load_model(path, document, arrays)


def _read_centres(path: str, document: dict[str, Any], arrays: Mapping[str, Any]) -> KMeansModel:
    """The centres in a file, without the estimator: scikit-learn takes half a second to load."""
    try:
        centres = decode_centres(document, dict(arrays))
        width = centres.centres.shape[1]
        names = document["estimator"]["columns"]["names"] or range(width)
        if len(names) != width:
            raise ModelFileError(f"{width} columns have {len(names)} names.")
    except (ModelFileError, KeyError, TypeError, ValueError) as error:
        raise ModelFileError(f"{path}: its centres make no sense ({error}).") from None
    return KMeansModel(centres, [str(name) for name in names])


def is_network(model: Any) -> bool:
    return hasattr(model, "net")


def is_joint(model: Any) -> bool:
    return hasattr(model, "trees")


def refuse_joint(path: str, model: Any, command: str) -> None:
    """Raise an error for a joint model, which a command has no answer for."""
    if is_joint(model):
        raise DataError(
            f"{path}: a joint model, which {command} does not take.\n"
            f"  Use: softcount query, sample, impute, predict --of COLUMN, or show with DATA for anomalies"
        )


def is_of_sequences(model: Any) -> bool:
    """Whether a model is a Markov chain or a hidden Markov model, the only estimators that `open_model` returns."""
    return hasattr(model, "get_params")


def is_hidden(model: Any) -> bool:
    return hasattr(model, "n_states_")


# -- names


def column_keys(fitted: Fitted) -> dict[str, Key]:
    """The columns that can be queried, by name; a table without names has numbers."""
    if is_joint(fitted):
        return {name: key for key, name in labels(spec.key for spec in fitted.schema.fields).items()}
    single = [part for key in fitted.params for part in (key if isinstance(key, tuple) else (key,))]
    single += [spec.key for spec, _ in find_derived_fields(fitted.schema)]
    return {name: key for key, name in labels([*single, *([] if fitted.target is None else [fitted.target])]).items()}


def node_keys(fitted: FittedNet) -> dict[str, Key]:
    return {name: key for key, name in labels(fitted.net.graph.names).items()}


def find_node(fitted: FittedNet, name: str | None, verb: str) -> Key:
    """The node of the option --of, by default the class of the network."""
    if name is None:
        if fitted.target is None:
            raise DataError(f"the network was learned without a class. Say which node to {verb}: --of NODE")
        return fitted.target
    found: Key = find_name(node_keys(fitted), name, "--of", "the network has no node")
    return found


def class_value(fitted: Fitted, text: str, option: str) -> Any:
    """The class of that name; the classes of a mixture are numbers."""
    classes = fitted.classes if fitted.classes is not None else list(range(fitted.n_groups))
    return find_name({str(value): value for value in classes}, text, option, "the model has no class")


# -- notes


def print_prediction_notes(fitted: Learned, table: Table, cells: bool = True) -> None:
    """Print notes on missing and unknown columns and, with `cells`, on missing cells and unseen categories."""
    given: list[Key] = list(table.source.keys)
    if all(isinstance(spec.key, int) for spec in fitted.schema.fields):
        given = list(range(len(given)))  # a model of columns without names takes any table by place
    known = {*table.keys, fitted.target, *table.source.aside}
    absent = [spec.key for spec in fitted.schema.used if given and spec.key not in set(given)]
    extra = [key for key in given if key not in known]
    notes = [] if table.source.text_file else list(table.source.notes)
    if absent:
        notes.append(f"not in the table, treated as missing: {format_list([key_text(key) for key in absent])}")
    if extra:
        notes.append(f"not in the model, ignored: {format_list([key_text(key) for key in extra])}")
    if cells:
        if verbosity() == VERBOSE:  # missing cells are normal
            notes += _cell_note(table.missing, absent, "missing cell", "treated as unknown")
        notes += [table.outside_note] if table.outside else []
        text = {spec.key for spec in table.schema.stored("bags")}
        unseen = {key: count for key, count in table.unseen.items() if key not in text}
        wordless = {key: count for key, count in table.unseen.items() if key in text}
        notes += _cell_note(unseen, absent, "cell", "with categories that are not in the model")
        notes += _cell_note(wordless, absent, "document", "without a word that the model knows")
    for note in notes:
        print_note(note)


def _cell_note(counts: Mapping[Key, int], absent: Iterable[Key], noun: str, fate: str) -> list[str]:
    found = {key: count for key, count in counts.items() if count and key not in set(absent)}
    if not found:
        return []
    where = format_list([f"{key_text(key)} ({count:,})" for key, count in found.items()])
    return [f"{format_count(sum(found.values()), noun)} {fate}: {where}"]


def print_answering_model(fitted: FittedTable, columns: Iterable[Key] | None = None) -> None:
    """Name the model that answers about columns, and warn if it assumes that dependent ones are independent."""
    print_info(f"answered by: {fitted.answering_model}")
    warning = fitted.dependence_warning(columns)
    if warning is not None:
        print_note(warning)
