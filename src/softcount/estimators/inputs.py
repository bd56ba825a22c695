"""What users pass as X, y and weights, checked and opened as tables."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from operator import attrgetter
from typing import Any, TypeVar, cast

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike as ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils import _safe_indexing, check_random_state, column_or_1d
from sklearn.utils.validation import check_consistent_length, check_is_fitted, validate_data

from softcount.core.lazy import LazyModule, sparse
from softcount.errors import DataError, warn
from softcount.models.declare import Declared, read_kinds
from softcount.sources import frames
from softcount.table import Table, check_weights, code_labels, open_table, read_labels
from softcount.table.schema import Field, Key, Kind, Schema

Answer = TypeVar("Answer")
Method = TypeVar("Method", bound=Callable[..., Any])
FilePath = str | os.PathLike[str]
RandomState = int | np.random.RandomState | None


engines: Any = LazyModule("softcount.estimators.engines")


def row_by_row(method: Method) -> Method:
    """A method of a model and rows whose answer for a row depends on no other row.

    For a Dask or Spark DataFrame the answer is a lazy one of the same library.
    """

    @wraps(method)
    def call(self: Any, X: Any, *args: Any, **options: Any) -> Any:
        if frames.engine_holding(X) is None:
            return method(self, X, *args, **options)
        return engines.ask_elsewhere(self, method.__name__, X, args, options)

    call.row_by_row = True  # type: ignore[attr-defined]
    return cast(Method, call)


def needs_all_rows(method: Method) -> Method:
    """A method whose answer is of all rows together: those of an engine are to be fetched first."""

    @wraps(method)
    def call(self: Any, X: Any, *args: Any, **options: Any) -> Any:
        frames.refuse_elsewhere(X)
        return method(self, X, *args, **options)

    return cast(Method, call)


def find_library(X: Any) -> str | None:
    """The library of the frame X: "pandas", "polars", "pyarrow", or None for files, arrays and lists."""
    if hasattr(X, "iloc") and hasattr(X, "index"):
        return "pandas"
    module = type(X).__module__.partition(".")[0]
    return module if module in ("polars", "pyarrow") else None


def is_table(X: Any) -> bool:
    """Whether X has named columns of its own: a frame, an Arrow table, a file, or an opened table."""
    named = (str, os.PathLike, Mapping, Table)
    return isinstance(X, named) or frames.is_frame(X) or frames.is_lazy(X)


def attribute(part: str | Callable[[Any], Any], meaning: str, of: str = "_fitted") -> Any:
    """A property that shows a part of the fitted model, or a function of it; `of` names another attribute."""
    if isinstance(part, str):
        return property(attrgetter(f"{of}.{part}"), doc=meaning)
    return property(lambda self: part(getattr(self, of)), doc=meaning)


def path_of(path: Any) -> str | None:
    """The path of a file or folder as text, or None."""
    return None if path is None else os.fsdecode(path)


def make_generator(random_state: Any) -> np.random.Generator:
    """A generator seeded by scikit-learn's `random_state`; a RandomState is advanced, as scikit-learn advances it."""
    return np.random.default_rng(int(check_random_state(random_state).randint(2**31 - 1)))


def refuse_unlike(model: Any, other: Any, kind: type) -> None:
    """Raise an error unless both are fitted models of a kind, to be merged."""
    check_is_fitted(model)
    if not isinstance(other, kind):
        mine, theirs = type(model).__name__, other if isinstance(other, type) else type(other)
        raise DataError(f"merge: a {mine} is merged with another fitted {mine}, not with {theirs.__name__}.")
    check_is_fitted(other)


def check_rows(estimator: BaseEstimator, X: Any, reset: bool) -> Any:
    """X as `open_table` takes it; arrays get scikit-learn's checks of shape and type.

    Documents in a row, one string each, are the one column of a model of text.
    """
    X = frames.collected(X)
    documents = find_documents(estimator, X, reset)
    if documents is not None:
        return documents
    schema = None if reset else _schema(estimator)
    texts = [] if schema is None else schema.texts
    if schema is not None and texts and (sparse.issparse(X) or (isinstance(X, np.ndarray) and X.dtype.kind in "iufbc")):
        alone = len(texts) == len(schema.used)
        remedy = "Give documents: a list of strings." if alone else "Give a table of the columns it was fitted on."
        raise DataError(f"the model reads text in column {texts[0]!r}, but X holds nothing but numbers. {remedy}")
    if is_table(X):
        return X
    return validate_cells(estimator, X, reset=reset, dtype=None, ensure_min_samples=int(reset))


def validate_cells(estimator: BaseEstimator, X: Any, say: Callable[[str], str] = str, **how: Any) -> Any:
    """X after scikit-learn's checks except that for finite numbers; `say` rewrites the message of an error."""
    frames.refuse_elsewhere(X)
    try:
        return validate_data(estimator, X, accept_sparse="csr", ensure_all_finite=False, **how)
    except DataError:
        raise
    except ValueError as error:
        raise DataError(say(str(error))) from None
    except TypeError as error:  # dates, missing values of pandas, and anything else that is not a number
        raise frames.CellTypeError(say(str(error))) from None


def reorder_columns(estimator: Any, X: Any) -> Any:
    """A frame whose columns are those of the fit in another order, reordered; anything else as it came."""
    names = getattr(estimator, "feature_names_in_", None)
    columns = getattr(X, "columns", None)
    if names is None or columns is None or list(columns) == list(names) or sorted(map(str, columns)) != sorted(names):
        return X
    return X[list(names)]


def remember_columns(estimator: Any, table: Table, X: Any) -> None:
    """Keep the library of the frame, the number of columns and, if all are text, their names."""
    estimator._library = find_library(X)
    if not is_table(X):
        return
    estimator.n_features_in_ = len(table.keys)
    if set(map(type, table.keys)) <= {str} and not isinstance(X, DocumentTable):
        estimator.feature_names_in_ = np.array(table.keys, dtype=object)
    elif hasattr(estimator, "feature_names_in_"):
        del estimator.feature_names_in_


def count_rows(X: Any) -> int | None:
    """The number of rows, if that is known without reading."""
    shape = getattr(X, "shape", None)
    if shape is not None:
        return int(shape[0])
    if hasattr(X, "num_rows"):
        return int(X.num_rows)
    if isinstance(X, Mapping) and X:
        first = next(iter(X.values()))
        return len(first) if hasattr(first, "__len__") else None  # refused by its name later
    return getattr(X, "n_rows", None)


def code_labels_among(X: Any, y: Any, names: Sequence[Any], every: bool = False) -> np.ndarray:
    """The index among these classes of each row's label, -1 if it has none; `y` may be a column of X.

    With `every`, a label that is none of the classes raises an error.
    """
    classes, codes = code_classes(take_labels(X, y), X, decimals=True)
    places = {name: place for place, name in enumerate(names)}
    strange = [name for name in np.asarray(classes).tolist() if name not in places]
    if every and strange:
        raise DataError(f"there is no class {strange[0]!r}. The classes are: {', '.join(map(str, names))}.")
    order = np.array([places.get(name, -1) for name in np.asarray(classes).tolist()], dtype=np.int32)
    return np.where(codes >= 0, order[np.maximum(codes, 0)], -1) if len(order) else codes


def code_classes(y: Any, X: Any, decimals: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """Sorted classes and a code per row, after scikit-learn's checks; numbers with decimals only if allowed."""
    rows = count_rows(X)
    if sparse.issparse(y):
        raise DataError("y is sparse; give one label per row.")
    if not any(hasattr(y, name) for name in ("__arrow_c_stream__", "__arrow_c_array__", "__arrow_array__")):
        y = y if isinstance(y, list) else np.asarray(y)
    if np.ndim(y) > 1:
        try:
            y = column_or_1d(np.asarray(y), warn=True)
        except ValueError as error:
            raise DataError(str(error)) from None
    classes, codes = code_labels(y, decimals)
    if rows is not None and len(codes) != rows:
        raise DataError(f"Found input variables with inconsistent numbers of samples: [{rows}, {len(codes)}]")
    return classes, codes


def code_weighted_classes(y: Any, X: Any, weights: np.ndarray | None) -> tuple[list[Any], np.ndarray]:
    """Sorted classes and a code per row; a class that only rows of weight zero have does not exist."""
    if isinstance(y, str):
        raise DataError(f"y={y!r} names a column, but X is a bare array. Give the labels themselves.")
    classes, codes = code_classes(y, X)
    if weights is not None and len(classes):
        seen = np.bincount(codes[codes >= 0], weights[codes >= 0], minlength=len(classes)) > 0
        moved = np.where(seen, np.cumsum(seen) - 1, -1)
        codes = np.where(codes >= 0, moved[np.maximum(codes, 0)], -1).astype(np.int32)
        classes = classes[seen]
    return list(classes), codes


def read_weights(sample_weight: Any, X: Any) -> np.ndarray | None:
    """Check row weights; None if there are none."""
    if sample_weight is None:
        return None
    rows = count_rows(X)
    sample_weight = np.asarray(sample_weight)
    if sample_weight.dtype.kind in "US":
        raise DataError(f"weights must be numbers, one per row, not {sample_weight.ravel()[:1].tolist()}.")
    if np.ndim(sample_weight) == 0:
        sample_weight = np.full(rows or 0, float(sample_weight))
    if np.ndim(sample_weight) != 1:
        raise DataError("Sample weights must be 1D array or scalar")
    return check_weights(sample_weight, rows if rows is not None else len(sample_weight))


def fill_weights(sample_weight: Any, rows: int) -> np.ndarray:
    """Check row weights; 1 for each row if there are none."""
    found = read_weights(sample_weight, np.zeros((rows, 0)))
    return np.ones(rows) if found is None else found


def drop_zero_weights(X: Any, weights: np.ndarray | None, codes: np.ndarray | None) -> tuple[Any, Any, Any]:
    """Drop rows of weight zero: they have no effect, and their categories are not seen."""
    if weights is None or (weights > 0).all():
        return X, weights, codes
    keep = weights > 0
    if hasattr(X, "filter") and hasattr(X, "schema") and hasattr(X, "num_rows"):
        X = X.filter(pa.array(keep))
    elif isinstance(X, DocumentTable):
        # By way of Python: Arrow cannot take from the views that polars keeps text in.
        kept = {key: np.array(column.to_pylist(), dtype=object)[keep] for key, column in X.items()}
        X = DocumentTable({key: pa.array(cells, pa.large_string()) for key, cells in kept.items()})
    elif isinstance(X, Mapping):
        X = {key: np.asarray(values, dtype=object)[keep].tolist() for key, values in X.items()}
    elif not isinstance(X, (str, os.PathLike, Table)):
        X = _safe_indexing(X, np.flatnonzero(keep))
    else:
        return X, weights, codes
    return X, weights[keep], None if codes is None else codes[keep]


def warn_of_unseen(table: Table) -> None:
    """Warn about unseen categories and words, impossible numbers and missing columns, but not about missing cells."""
    parts = [part for part in [describe_unseen(table)] if part]
    parts += [note for note in table.notes if note.startswith("not in the table")]
    if parts:
        warn("; ".join(parts) + ".")


def describe_unseen(table: Table, wordless: bool = True) -> str:
    """Unseen categories, documents without a known word and impossible numbers in the rows, in words."""
    unknown = {key: n for key, n in table.unseen.items() if n}
    texts = {key: n for key, n in unknown.items() if table.schema[key].kind is Kind.TEXT}
    unseen = {key: n for key, n in unknown.items() if key not in texts}

    def where(cells: Mapping[Any, int]) -> str:
        return ", ".join(f"{key!r} ({n:,})" for key, n in list(cells.items())[:5])

    parts = []
    if unseen:
        count = sum(unseen.values())
        cells = "1 cell holds" if count == 1 else f"{count:,} cells hold"
        parts.append(f"{cells} levels never seen in training, in {where(unseen)}")
    if texts and wordless:
        parts.append(f"{sum(texts.values()):,} documents hold no word known from training, in {where(texts)}")
    if table.outside:
        parts.append(table.outside_note)
    return "; ".join(parts)


def warn_of_outside(table: Table) -> None:
    """Warn about impossible numbers, which were ignored."""
    if table.outside:
        warn(f"{table.outside_note}.")


def warn_of_kept(table: Table) -> None:
    """Warn about cells that the model does not know: they are ignored, and not filled."""
    note = describe_unseen(table, wordless=False)
    if note:
        warn(f"{note}; they stay as they are.")


def read_kinds_of(X: Any, target: Key | None = None) -> dict[Any, Any]:
    """The kinds that were declared when a table was opened, except that of the target; none for anything else."""
    if not isinstance(X, Table):
        return {}
    return {spec.key: find_kind(spec) for spec in X.schema.fields if spec.declared and spec.key != target}


def find_kind(spec: Field) -> Any:
    """The kind of a column as `open_table` takes it: "ignore", how its text is read, or its kind."""
    return "ignore" if not spec.used else spec.kind if spec.reading is None else spec.reading


def open_file(X: Any, missing: tuple[str, ...]) -> Any:
    """A file or folder as a table; anything else as it came."""
    return open_table(X, missing=missing) if isinstance(X, (str, os.PathLike)) else X


def find_label_name(y: Any, X: Any, declared: Declared) -> str | None:
    """The name of a Series y; an error if a column of X that is not ignored has it too."""
    name = getattr(y, "name", None)
    if not isinstance(name, str) or not name or not hasattr(y, "dtype"):
        return None
    if name in list_columns(X) and declared.forced.get(name) != "ignore":
        raise DataError(
            f"y is named {name!r}, and so is a column of X: the column would give the class away. Leave it out of X, "
            "or rename y."
        )
    return name


def find_default_target(X: Any) -> Any:
    """The column that holds the classes of a folder of documents; None for anything else."""
    return X.source.default_target if isinstance(X, Table) else None


def list_columns(X: Any) -> list[Any]:
    """The names of a table's columns, if it has names; of a file, from its head."""
    if isinstance(X, (str, os.PathLike)) and os.fspath(X) != "-":
        return open_table(X).keys
    if isinstance(X, Table):
        return X.source.keys
    for name in ("column_names", "columns"):  # an Arrow table's `columns` are the cells
        if hasattr(X, name):
            keys = frames.plain_keys(getattr(X, name))
            return keys if all(isinstance(key, int) for key in keys) else [str(key) for key in keys]
    if isinstance(X, Mapping):
        return frames.plain_keys(X)
    return list(getattr(getattr(X, "schema", None), "names", []))  # a stream of Arrow batches


def check_labels(X: Any, y: Any, classes: np.ndarray) -> Any:
    """The labels to compare with predictions; an error if one is missing, or if they cannot be these classes."""
    y = take_labels(X, y)
    labels = np.asarray(y, dtype=object if isinstance(y, (list, tuple)) else None)
    if labels.ndim == 1 and labels.dtype.kind in "Of":
        missing = [row for row, label in enumerate(labels, start=1) if frames.is_missing(label)]
        if missing:
            count = f"({len(missing):,} are)"
            raise DataError(f"the label of row {missing[0]} is unknown {count}. Score rows whose label is known.")
    refuse_other_labels(y, classes)
    return y


def compute_accuracy(predicted: np.ndarray, y: Any, sample_weight: Any = None) -> float:
    """The share of rows whose class is predicted."""
    check_consistent_length(y, predicted, sample_weight)
    return float(np.average(predicted == np.asarray(y), weights=sample_weight))


def refuse_other_labels(y: Any, classes: np.ndarray) -> None:
    """Raise an error if labels are text and the classes numbers, or the reverse: no prediction could be right."""
    labels = np.asarray(y)

    def kind_of(values: np.ndarray) -> str:
        if values.ndim != 1 or not len(values):
            return ""
        types = set(map(type, values.tolist()))
        return "text" if types == {str} else "numbers" if types <= {int, float} else ""

    ours, theirs = kind_of(classes), kind_of(labels)
    if {ours, theirs} != {"text", "numbers"}:
        return
    remedy = "numbers: [float(label) for label in y]" if ours == "numbers" else "text: [str(label) for label in y]"
    shown, known = labels.tolist()[0], classes.tolist()[0]
    raise DataError(
        f"the labels are {theirs} ({shown!r}) and the model's classes {ours} ({known!r}), so no prediction could be "
        f"right. Give the labels as {remedy}."
    )


def make_class_array(classes: list[Any]) -> np.ndarray:
    """Classes as an array of their own type; mixed types stay objects."""
    return np.array(classes, dtype=None if len(set(map(type, classes))) == 1 else object)


def take_labels(X: Any, y: Any) -> Any:
    """The labels y, or those in the column of X that y names, as Python values."""
    if not isinstance(y, str) or not is_table(X):
        return y
    if isinstance(X, Mapping):
        return X[y]
    if isinstance(X, Table):
        return read_labels(X, y)
    if not hasattr(X, "__getitem__"):
        raise DataError(f"give the labels themselves: column {y!r} cannot be taken from {type(X).__name__}.")
    column = X[y]
    return column.to_pylist() if hasattr(column, "to_pylist") else np.asarray(column)


# -- documents in a row: a list, an array or a series of strings, as the one column of a model of text


class DocumentTable(dict[Key, Any]):
    """A table of one column of Arrow text, made of documents that came in a row."""


def find_documents(estimator: Any, X: Any, reset: bool) -> DocumentTable | None:
    """Documents in a row as a table, for a model that has one column of text; None if X is something else.

    A model without such a column raises an error that says how to have one.
    """
    if isinstance(X, (set, frozenset)):
        raise DataError(
            f"a {type(X).__name__} has no order, so labels and predictions cannot be matched with its rows. Give a "
            f"list."
        )
    rows = isinstance(X, (list, tuple)) and len(X) and isinstance(X[0], (list, tuple, np.ndarray))
    found = None if rows else frames.text_column(X)
    if reset:
        everything = read_kinds(getattr(estimator, "kinds", None)).everything
        wanted = frames.TEXT if everything is not None and everything.facts.words else None
    else:
        wanted = getattr(_schema(estimator), "only_text", None)
    if rows and wanted is not None:
        lengths = {len(row) for row in X if isinstance(row, (list, tuple))}
        if len(lengths) > 1 and all(isinstance(word, str) for word in X[0]):
            raise DataError("documents come as whole strings, not as lists of words. Join them: ' '.join(words).")
    if found is not None:
        if wanted is None:
            raise _unexpected(estimator, len(next(iter(found.values()))), reset)
        return DocumentTable({wanted: next(iter(found.values()))})
    if wanted is None:
        return None
    if isinstance(X, str) and not reset and X != "-" and not os.path.exists(X):
        raise DataError(f"there is no file {X[:60]!r}. A single document is given in a list: [text].")
    if hasattr(X, "__next__") and not frames.is_frame(X):
        raise DataError(f"documents come in a list, an array or a series, not in a {type(X).__name__}. Use list(...).")
    return _read_missing_documents(X, wanted)


def _schema(estimator: Any) -> Schema | None:
    return getattr(getattr(estimator, "fitted_", None), "schema", None)


def _unexpected(estimator: Any, rows: int, reset: bool) -> DataError:
    """The error for documents given to a model that does not read documents."""
    problem = f"Expected 2D array, got 1D array instead: {rows:,} texts in a row."
    if not reset:
        schema = _schema(estimator)
        columns = ", ".join(repr(spec.key) for spec in (schema.used if schema else ())[:5])
        reads = f"It has the columns {columns}." if columns else "It has a block of counts."
        return DataError(f"{problem} The model was not fitted on documents alone. {reads} Give a table of them.")
    if "kinds" in estimator.get_params(deep=False):
        return DataError(
            f'{problem} To learn from documents, give kinds="text". Reshape your data with array.reshape(-1, 1) if '
            "they are one column of categories."
        )
    return DataError(f"{problem} Give rows of numbers; BagOfWords turns documents into some.")


def _read_missing_documents(X: Any, wanted: Key) -> DocumentTable | None:
    """A table if all documents are missing, an error if a cell is not text, and None for other data."""
    flat = isinstance(X, (list, tuple)) or len(getattr(X, "shape", ())) == 1
    if not flat and not (hasattr(X, "to_pylist") and not hasattr(X, "column_names")):
        return None
    texts = False
    for row, cell in enumerate(X.to_pylist() if hasattr(X, "to_pylist") else X, start=1):
        if isinstance(cell, (list, tuple, np.ndarray)):
            return None
        cell = cell.item() if isinstance(cell, np.generic) else cell
        texts |= isinstance(cell, str)
        if not isinstance(cell, str) and not frames.is_missing(cell):
            raise DataError(
                f"document {row} is {cell!r:.40} ({type(cell).__name__}), which is not text. Documents are strings; "
                f"None is a missing document."
            )
    return None if texts else DocumentTable({wanted: pa.nulls(len(X), pa.large_string())})
