"""Naive Bayes of the rows of a query: counted inside the database where it can be, read out where not."""

from __future__ import annotations

import os
from contextlib import closing
from dataclasses import replace
from typing import Any

import softcount
from softcount.errors import DataError

FIRST_ROWS = 5_000
"""Rows that are read out to see what the columns are."""
ROUNDS = 4
"""How often columns may turn out to be something else than they seemed."""


def fitted_in_database(estimator: Any, query: str, connection: Any, target: str) -> Any:
    """The estimator, fitted; its notes say whether the database counted, and if not, why not."""
    from softcount.export.database_counts import ReadOut
    from softcount.sources.queries import connected, refused_query

    if isinstance(connection, str | os.PathLike):
        with closing(connected(os.fspath(connection))) as own:
            return fitted_in_database(estimator, query, own, target)
    try:
        return _counted(estimator, query, connection, target)
    except ReadOut as reason:
        estimator.fit(softcount.read_sql(query, connection), target)
        said = f"rows were read out of the database: {reason}."
    except Exception as error:
        raise refused_query(error) from None
    estimator.fitted_ = replace(estimator.fitted_, notes=[said, *estimator.fitted_.notes])
    return estimator


def _counted(estimator: Any, query: str, connection: Any, target: str) -> Any:
    from softcount.export import database_counts as inside
    from softcount.learn.recounted import recounted

    dialect = inside.dialect_of(connection)
    for name in ("calibration", "dependence", "weights"):
        if getattr(estimator, name) is not None:
            raise inside.ReadOut(f"{name} takes the rows themselves")
    base = inside.Database(connection, dialect, query)
    sample = base.first(FIRST_ROWS)
    if target not in sample.column_names:
        raise DataError(f"target names column {target!r}, which the query does not give.")
    model, classes = _whole_schema(estimator, base, sample, target)
    counts, missing = inside.database_counts(base, model.fitted_, target, classes)
    fitted = recounted(model.fitted_, counts, missing, estimator._class_plan(target))
    said = f"{counts.rows:,.0f} rows were counted inside {inside.TITLES[dialect]}."
    for name in ("n_features_in_", "feature_names_in_", "_library"):
        if hasattr(model, name):
            setattr(estimator, name, getattr(model, name))
    estimator._rows = None
    estimator._keep(replace(fitted, notes=[said, *fitted.notes]))
    return estimator


def _whole_schema(estimator: Any, base: Any, sample: Any, target: str) -> tuple[Any, Any]:
    """A model of the first rows, and of one more row for every class and level that they lack.

    What such rows add to its counts does not matter: all counts are those of the database.
    """
    import pyarrow as pa

    from softcount.export import database_counts as inside

    rows = sample
    known: dict[str, Any] = {}
    for _ in range(ROUNDS):
        model = type(estimator)(**estimator.get_params(deep=False)).fit(rows, target)
        inside.countable(model.fitted_)
        missing = [str(word).strip() for word in model.fitted_.schema.missing]
        classes = known.setdefault(target, inside.class_rows(base, target, missing))
        more = [{target: name} for name in set(classes.names) - set(rows[target].to_pylist())]
        for key in _told_by_levels(model.fitted_, sample.column_names, target):
            if key not in known:
                known[key] = list(dict.fromkeys(value for _, value, _ in inside.level_rows(base, target, key)))
            there = set(rows[key].to_pylist())
            more += [{key: value, target: classes.names[0]} for value in known[key] if value not in there]
        if not more:
            return model, classes
        rows = pa.concat_tables([rows, pa.Table.from_pylist(more, schema=rows.schema)])
    raise inside.ReadOut("columns turn out to be something else again and again")


def _told_by_levels(fitted: Any, columns: list[str], target: str) -> list[str]:
    """Columns of levels, and those that seemed to have one value and may have more."""
    fields = fitted.schema.by_key
    return [
        key
        for key in columns
        if key != target and (fields[key].kind.coded if fields[key].used else fields[key].kind.value == "constant")
    ]
