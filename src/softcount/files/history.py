"""The history of a fit in a model file: EM runs, numbers of classes tried, calibration, and the record for reports.

Only the calibration changes the model's answers, but reports show the rest, so all of it is checked.
"""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
from msgspec import Meta, Struct
from msgspec.structs import asdict, replace

from softcount.core.ranges import Amount
from softcount.evaluate.ranking import Evaluation
from softcount.files.codec import Document, decode, encode, require
from softcount.files.validate import check_names
from softcount.learn.record import FitRecord, Learned, Trial
from softcount.table.column_summary import ColumnSummary
from softcount.table.schema import Field, Schema

MOST_CONFUSED = 200
"""Maximum number of classes for which the confusion table is kept."""
FIGURES = (
    "accuracy", "baseline_accuracy", "balanced_accuracy", "baseline_balanced_accuracy", "auc",
    "log_loss", "baseline_log_loss", "brier", "baseline_brier",
)  # fmt: skip
SHARES = FIGURES[:5]
LARGEST_LOSS = 2.0**53
RECORD = "the record of its fit"


class FitHistory(Struct, frozen=True):
    """The fields of `Learned` that describe the fit, under the same names."""

    notes: list[str]
    trace: list[float]
    half_steps: bool
    converged: bool
    interrupted: bool
    log_likelihood: float | None
    objective: str
    agreed: tuple[Amount, Amount] | None
    named: list[Any] | None
    selection: Annotated[list[Trial], Meta(min_length=1)] | None
    undecided: float | None


def history_document(model: Learned) -> Document:
    own = {name: getattr(model, name) for name in FitHistory.__struct_fields__}
    found: Document = encode(FitHistory(**own), {}, "history")
    return found


def history_from(document: Any, groups: int) -> Document:
    """Return the history as keyword arguments of `Learned`."""
    infinite = ("trace", "log_likelihood", "bic", "icl", "evidence", "cv")
    found = decode(FitHistory, document, {}, "history", "how it was learned", infinite)
    sound = all(x < np.inf for x in (*found.trace, found.log_likelihood or 0.0))
    require(sound, "how it was learned makes no sense: a step of the trace is no number.")
    if found.named is not None:
        sound = 0 < len(found.named) <= groups
        require(sound, f"the known classes are {found.named!r}, which cannot be {groups} groups.")
        check_names(found.named)
    return asdict(found)


# -- the record for reports


def record_document(record: FitRecord) -> Any:
    tried = record.evaluation
    if tried is not None and len(tried.confusion) > MOST_CONFUSED:
        record = replace(record, evaluation=replace(tried, confusion=()))
    return encode(record, {}, "record")


def record_from(document: Any, schema: Schema, classes: int | None) -> FitRecord:
    """Return the record after checking it against the schema and the number of known classes.

    `classes` is None if no classes are known.
    """
    if document is None:
        return FitRecord()
    _require(isinstance(document, dict) and "evaluation" in document, "it is none")
    tried = document["evaluation"]
    record = decode(FitRecord, document | {"evaluation": None}, {}, "record", RECORD)
    if record.table is not None:
        rows, last = record.table.rows, len(schema.used) - 1
        _require(len(record.table.columns) == last + 1, "it summarises other columns than the schema has")
        for column, spec in zip(record.table.columns, schema.used, strict=True):
            _check_column(column, spec, rows)
        pairs = [max(a, b) <= last and n <= rows for a, b, n in record.table.together]
        _require(all(pairs), "columns that are missing together are not there")
        _require((record.table.copies or 0) <= rows, "there are more copies than rows")
        _require(record.table.unlabelled <= rows, "there are more rows without a class than rows")
    if tried is None:
        return record
    _require(classes is not None, "a model without known classes was tried on some")
    return replace(record, evaluation=_evaluation_from(tried, classes or 0))


def _require(sound: object, wrong: str) -> None:
    require(sound, f"{RECORD} makes no sense: {wrong}.")


def _evaluation_from(document: Any, groups: int) -> Evaluation:
    found = decode(Evaluation, document, {}, "record", RECORD, infinite=FIGURES)
    for name in FIGURES:
        value, most = getattr(found, name), 1.0 if name in SHARES else LARGEST_LOSS
        _require(np.isnan(value) or 0 <= value <= most, f"its {name} is {value:g}")
    for fold in found.folds:
        _require(fold.keys() == {"accuracy", "log_loss", "rows"}, "a fold lacks a figure")
        _require(min(fold.values()) >= 0 and fold["accuracy"] <= 1, "the figures of a fold are none")
    for table in [*found.confusions, *([found.confusion] if found.confusion else [])]:
        sound = len(table) == groups and all(len(line) == groups for line in table)
        _require(sound, "its confusion table has another number of classes")
    _require(len(found.lift) in (0, groups), "its lift is of another number of classes")
    sound = all(line.of_class <= line.rows * (1 + 1e-9) for lines in found.lift for line in lines)
    _require(sound, "its lift holds more rows of a class than there are")
    return found


def _check_column(found: ColumnSummary, spec: Field, rows: int) -> None:
    name = f"{spec.key!r:.40}"
    _require(found.key == spec.key, f"it summarises {found.key!r:.40}, not {name}")
    _require(found.there + found.missing + found.unseen == rows, f"the cells of {name} are not as many as the rows")
    _require(list(found.quantiles) == sorted(found.quantiles), f"the quantiles of {name} are out of order")
    for given, bins in ((found.edges, found.in_bins), (found.bars, found.in_bars)):
        edges = list(given)
        ordered = edges == sorted(set(edges)) and len(bins) in (0, len(edges) + 1)
        _require(ordered and sum(bins) <= rows, f"the bins of {name} are out of order")
    places = [at for at, _ in found.levels]
    known = all(0 <= at < len(spec.levels) for at in places) and len(set(places)) == len(places)
    sound = known and sum(n for _, n in found.levels) <= found.there
    _require(sound, f"the levels of {name} hold other rows than there are")
