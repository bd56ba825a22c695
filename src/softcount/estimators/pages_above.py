"""Pages of a model, which are made in layers above this one: they are found by name when they are asked for."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def explored(fitted: Any, **how: Any) -> Any:
    """The page to play with a fitted model."""
    return import_module("softcount.explore").explored(fitted, **how)


def explored_centres(model: Any, rows: Any = None, **how: Any) -> Any:
    """The page of k-means, as the classes that it is the hard end of."""
    from softcount.fitted.compare import NOTE, centre_classes

    classes = centre_classes(model.found_, centre_keys(model))
    return explored(classes, rows=None if rows is None else classes.table(rows), note=NOTE, **how)


def centre_keys(model: Any) -> list[Any]:
    """The columns of k-means: names, or places where they have none."""
    names = getattr(model, "feature_names_in_", None)
    return list(range(model.n_features_in_)) if names is None else [str(name) for name in names]


def reported(fitted: Any, rows: Any = None, redact: bool = False) -> Any:
    """The report of a fitted model."""
    return import_module("softcount.report.written_report").reported(fitted, rows, redact)


class Reporting:
    """An estimator whose pages take nothing but itself."""

    def explore(self) -> Any:
        """A page on which any step of a sequence answers to any others: `model.explore().save("explore.html")`."""
        return explored(self)

    def report(self, redact: bool = False) -> Any:
        """A page on the model with pictures: `model.report().save("report.html")`; also .json and .txt."""
        return reported(self, None, redact)


def summarised(fitted: Any, table: Any) -> tuple[Any, str]:
    """The summary of a table beside a network, and what it is called."""
    from softcount.table.column_summary import summarise

    before = None if fitted.record is None else fitted.record.table
    return summarise(table.chunks(), fitted.schema, before), "the table given"


def given_rows(*what: Any) -> Any:
    """What a table shows beside the model that it is read for."""
    return import_module("softcount.report.written_report").given_rows(*what)
