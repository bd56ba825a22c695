"""Reading, learning, loading and saving, as the commands want it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from softcount.cli.data_input import InputFormat, may_be_lines, source_like, source_of
from softcount.errors import DataError, ModelFileError
from softcount.run.progress import Tell, keep_quiet

if TYPE_CHECKING:
    import numpy as np

    from softcount.fitted.fitted import Fitted
    from softcount.fitted.network import FittedNet
    from softcount.learn.kmeans.fit import Centres
    from softcount.learn.record import Learned
    from softcount.models.declare import Declared
    from softcount.sources.source import Source
    from softcount.table import Key, Schema, Table

READING = "reading"


# -- reading


def declared(kinds: Mapping[Any, Any]) -> Declared:
    """What --kind asked for. A block's columns are divided by commas; no column at all stands for every other."""
    from softcount.families import FAMILIES
    from softcount.models.declare import read_kinds

    named = {key: kind for key, kind in kinds.items() if key}
    said = read_kinds({FAMILIES[kind].key_in(key) if kind in FAMILIES else key: kind for key, kind in named.items()})
    return replace(said, all_auto=len(named) < len(kinds))


def open_data(data: str, asked: Declared, form: InputFormat, tell: Tell = keep_quiet) -> Table:
    """The table to learn from, its first rows looked at."""
    with may_be_lines(data, form):
        return table_of(source_of(data, form, bytes_read(tell)), asked, form)


def table_of(source: Source, asked: Declared, form: InputFormat, **sides: Any) -> Table:
    """The table of a source, read as it was asked."""
    from softcount.table import open_table

    kinds: Any = asked.forced
    return open_table(source, kinds=kinds, missing=form.words(), **sides)


def open_like(fitted: Learned, data: str, form: InputFormat, tell: Tell = keep_quiet) -> Table:
    """A table to be answered for, read as the model's own was; or documents, where the model reads text."""
    from softcount.table import open_table

    with may_be_lines(data, form) if fitted.schema.texts else nullcontext():
        source = source_like(fitted, data, form, bytes_read(tell))
        return open_table(source, schema=fitted.schema, missing=form.words(fitted.schema.missing))


def bytes_read(tell: Tell) -> Callable[[int, int], None]:
    """What to call as bytes are read."""
    return lambda done, total: tell(READING, done, total)


def read_through(table: Table) -> tuple[Schema, int, dict[Key, int], list[str]]:
    """The schema once every row has been met, the number of rows, the missing cells of each column, and notes."""
    from softcount.run.local import Threads
    from softcount.table import Contradiction

    while True:
        try:
            with Threads() as threads:
                table.gather_words(threads.map)
                rows = sum(threads.map(lambda task: task().n_rows, table.tasks()))
            return table.settle().schema, rows, table.missing, table.notes
        except Contradiction as why:
            table = table.widened(why)


# -- models


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
    from softcount.fitted.fitted import Fitted

    return not isinstance(model, Fitted)


def load_any(path: str) -> Fitted | FittedNet:
    """The model of a file, which must be one of probabilities; a network also from a network file."""
    from softcount.cli.network_options import is_network_file

    return _from_network_file(path) if is_network_file(path) else _from_model_file(path)


def _from_network_file(path: str) -> FittedNet:
    from softcount.estimators.net_files import fitted_from
    from softcount.files.network_file import read_network

    try:
        return fitted_from(read_network(path))
    except DataError as error:
        raise ModelFileError(str(error)) from None


def _from_model_file(path: str) -> Fitted | FittedNet:
    from softcount.files.archive import read
    from softcount.files.centres_part import holds_centres
    from softcount.files.model_file import load_model
    from softcount.files.text_part import refuse_vocabulary
    from softcount.fitted.fitted import Fitted

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
    from softcount.files.centres_part import centres_of

    try:
        centres = centres_of(document, arrays)
        width = centres.centres.shape[1]
        names = document["estimator"]["columns"]["names"] or range(width)
        if len(names) != width:
            raise ModelFileError(f"{width} columns have {len(names)} names.")
    except (ModelFileError, KeyError, TypeError, ValueError) as error:
        return ModelFileError(f"{path}: its centres make no sense ({error}).")
    return KMeansFile(path, centres, [str(name) for name in names])


def save(fitted: Learned, output: str) -> None:
    """Save the model whole or not at all; "-" sends it to standard output."""
    from softcount.files.model_file import save_model

    save_by(lambda path: save_model(fitted, path), output)


def save_by(write: Callable[[Any], None], output: str) -> None:
    """The same of what is written by something that takes a path."""
    if output != "-":
        write(output)
        return
    import tempfile

    from softcount.cli.outputs import put_bytes

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.sc"
        write(path)
        put_bytes(path.read_bytes(), output)
