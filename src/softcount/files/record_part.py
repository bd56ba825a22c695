"""What is kept of a fit, in a model file: how it did on unseen rows, what its table looked like, where it came from.

Files of earlier versions have none of it. Nothing here changes what a model says, but a report would show it: what
makes no sense is refused like everything else.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from typing import Any

from msgspec.structs import asdict

from softcount.errors import ModelFileError
from softcount.evaluate.ranking import Evaluation, LiftLine
from softcount.families.base import whole
from softcount.files.archive import Document
from softcount.files.fit_history import bin_from
from softcount.files.json_document import plain
from softcount.learn.record import FitRecord, Provenance
from softcount.table.column_summary import ColumnSummary, TableSummary
from softcount.table.schema import Field, Schema

MOST_CONFUSED = 200
"""Classes up to which the table of who was taken for whom is kept."""
FIGURES = (
    "accuracy", "log_loss", "baseline_accuracy", "baseline_log_loss", "balanced_accuracy",
    "baseline_balanced_accuracy", "brier", "baseline_brier", "auc",
)  # fmt: skip
MOST = 2**53
"""Rows there can be: what a double counts one by one."""
HUGE = 1.7976931348623157e308


# -- record -> document


def record_document(record: FitRecord | None) -> Document:
    """The record as JSON, under its name; nothing where there is none."""
    if record is None:
        return {}
    tried, table, origin = record.evaluation, record.table, record.provenance
    return {
        "record": {
            "evaluation": None if tried is None else _evaluation(tried),
            "table": None if table is None else _table(table),
            "provenance": None if origin is None else asdict(origin),
            "criterion": record.criterion,
            "starts": [list(trace) for trace in record.starts],
            **({"gains": list(record.gains)} if record.gains else {}),
        }
    }


def _evaluation(found: Evaluation) -> Document:
    few = len(found.confusion) <= MOST_CONFUSED
    return {
        "how": found.how,
        "rows": int(found.n_rows),
        **{name: _figure(getattr(found, name)) for name in FIGURES},
        "folds": [[_figure(x["accuracy"]), _figure(x["log_loss"]), int(x["rows"])] for x in found.folds],
        "confusion": [list(line) for line in found.confusion] if few else [],
        "confusions": [[list(line) for line in fold] for fold in found.confusions],
        "reliability": [asdict(part) for part in found.reliability],
        "lift": [[[x.rows, x.of_class] for x in lines] for lines in found.lift],
    }


def _figure(value: float) -> float | None:
    return float(value) if isfinite(value) else None


def _table(found: TableSummary) -> Document:
    columns = [{**asdict(x), "key": plain(x.key)} for x in found.columns]
    return {**asdict(found), "columns": columns}


# -- document -> record


def record_from(document: Document, schema: Schema, classes: int | None) -> FitRecord | None:
    """The record back, if it makes sense for such a schema and so many known classes, None where there are none."""
    value = document.get("record")
    if value is None:
        return None
    try:
        tried, table, origin = value["evaluation"], value["table"], value["provenance"]
        if tried is not None and classes is None:
            raise ValueError("a model without known classes was tried on some")
        return FitRecord(
            None if tried is None else _read_evaluation(tried, classes or 0),
            None if table is None else _read_table(table, schema),
            None if origin is None else _read_provenance(origin),
            None if value["criterion"] is None else _text(value["criterion"]),
            tuple(tuple(_number(x, -HUGE, HUGE) for x in trace) for trace in value.get("starts", [])),
            tuple(_number(gain) for gain in value.get("gains", [])),
        )
    except (ModelFileError, KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise ModelFileError(f"the record of its fit makes no sense ({error}).") from None


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r:.40} is no text")
    return value


def _number(value: Any, low: float = 0.0, high: float = MOST) -> float:
    if type(value) not in (int, float) or not low <= value <= high:
        raise ValueError(f"{value!r:.40} is not between {low:g} and {high:g}")
    return float(value)


def _count(value: Any, most: int = MOST) -> int:
    return whole(value, 0, most, "rows")


def _read_provenance(value: Document) -> Provenance:
    if set(value) != set(Provenance.__struct_fields__):
        raise ValueError("its origin lacks a part")
    sha = value["sha256"]
    if sha is not None and (len(_text(sha)) != 64 or set(sha) - set("0123456789abcdef")):
        raise ValueError("the sum of its data is none")
    if type(value["seed"]) is not int:
        raise TypeError("its seed is no number")
    return Provenance(_text(value["version"]), _text(value["command"]), value["seed"], _text(value["data"]), sha)


def _read_evaluation(value: Document, groups: int) -> Evaluation:
    rows = _count(value["rows"])
    shares = ("accuracy", "baseline_accuracy", "balanced_accuracy", "baseline_balanced_accuracy", "auc")
    figures = {
        name: float("nan") if value[name] is None else _number(value[name], 0.0, 1.0 if name in shares else MOST)
        for name in FIGURES
    }
    folds = [
        {"accuracy": _number(a, 0.0, 1.0), "log_loss": _number(b), "rows": _count(n)} for a, b, n in value["folds"]
    ]
    return Evaluation(
        how=_text(value["how"]),
        n_rows=rows,
        folds=folds,
        confusion=_square(value["confusion"], groups) if value["confusion"] else (),
        confusions=tuple(_square(fold, groups) for fold in value["confusions"]),
        reliability=tuple(bin_from(part) for part in value["reliability"]),
        lift=_read_lift(value["lift"], groups),
        **figures,
    )


def _square(value: Any, groups: int) -> tuple[tuple[float, ...], ...]:
    if len(value) != groups or any(len(line) != groups for line in value):
        raise ValueError("its table of confusion has another number of classes")
    return tuple(tuple(_number(x) for x in line) for line in value)


def _read_lift(value: Any, groups: int) -> tuple[tuple[LiftLine, ...], ...]:
    """Lift from the rows of each part and those of the class; the rest follows from them."""
    if len(value) not in (0, groups):
        raise ValueError("its lift is of another number of classes")
    return tuple(tuple(_lift_lines([(_number(n), _number(k)) for n, k in lines])) for lines in value)


def _lift_lines(parts: Sequence[tuple[float, float]]) -> list[LiftLine]:
    rows, own = sum(n for n, _ in parts), sum(k for _, k in parts)
    if parts and not (own > 0 and all(n > 0 and k <= n * (1 + 1e-9) for n, k in parts)):
        raise ValueError("its lift holds more rows of a class than there are")
    found, before, hits = [], 0.0, 0.0
    for place, (n, k) in enumerate(parts, 1):
        before, hits, rate = before + n, hits + k, own / rows
        found.append(LiftLine(place, n, k, k / n, k / n / rate, hits / own, hits / before / rate))
    return found


def _read_table(value: Document, schema: Schema) -> TableSummary:
    rows, used = _count(value["rows"]), schema.used
    if len(value["columns"]) != len(used):
        raise ValueError("it summarises other columns than the schema has")
    columns = tuple(_read_column(x, spec, rows) for x, spec in zip(value["columns"], used, strict=True))
    last = len(used) - 1
    together = tuple((_count(a, last), _count(b, last), _count(n, rows)) for a, b, n in value["together"])
    copies = None if value["copies"] is None else _count(value["copies"], rows)
    return TableSummary(rows, columns, together, copies, _count(value["unlabelled"], rows))


def _read_column(x: Document, spec: Field, rows: int) -> ColumnSummary:
    if x["key"] != plain(spec.key):
        raise ValueError(f"it summarises {x['key']!r:.40}, not {spec.key!r:.40}")
    there, missing, unseen = (_count(x[name], rows) for name in ("there", "missing", "unseen"))
    if there + missing + unseen != rows:
        raise ValueError(f"the cells of {spec.key!r:.40} are not as many as the rows")
    quantiles, edges = (
        tuple(_number(q, -float("inf"), float("inf")) for q in x[name]) for name in ("quantiles", "edges")
    )
    if any(not isfinite(q) for q in (*quantiles, *edges)) or list(quantiles) != sorted(quantiles):
        raise ValueError(f"the quantiles of {spec.key!r:.40} are out of order")
    bins = tuple(_count(n, rows) for n in x["in_bins"])
    if list(edges) != sorted(set(edges)) or (bins and len(bins) != len(edges) + 1) or sum(bins) > rows:
        raise ValueError(f"the bins of {spec.key!r:.40} are out of order")
    levels = tuple((_count(at, max(len(spec.levels) - 1, 0)), _count(n, rows)) for at, n in x["levels"])
    if (
        len({at for at, _ in levels}) != len(levels)
        or sum(n for _, n in levels) > there
        or (levels and not spec.levels)
    ):
        raise ValueError(f"the levels of {spec.key!r:.40} hold other rows than there are")
    return ColumnSummary(spec.key, there, missing, unseen, quantiles, edges, bins, levels)
