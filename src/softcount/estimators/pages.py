"""The pages of an estimator: its report and its explorer. Both packages are loaded when a page is asked for."""

from __future__ import annotations

from typing import Any


def explore_model(model: Any, **options: Any) -> Any:
    """Make the interactive explorer of a fitted model."""
    from softcount.explore import make_explorer

    return make_explorer(model, **options)


def explore_centres(estimator: Any, rows: Any = None) -> Any:
    """Make the explorer of k-means, as the mixture whose hard limit it is."""
    from softcount.fitted.compare import NOTE, centre_classes

    names = getattr(estimator, "feature_names_in_", None)
    keys = list(range(estimator.n_features_in_)) if names is None else [str(name) for name in names]
    classes = centre_classes(estimator.found_, keys)
    return explore_model(classes, rows=None if rows is None else classes.table(rows), note=NOTE)


def report_model(model: Any, rows: Any = None, redact: bool = False) -> Any:
    """Report on a fitted model."""
    from softcount.report.report import make_report

    return make_report(model, rows, redact)


def report_rows(fitted: Any, table: Any, threads: Any, name: str, labels: Any, redact: bool) -> Any:
    """Report on a fitted model of classes and a table."""
    from softcount.report.report import find_rows

    return report_model(fitted, find_rows(fitted, table, threads, name, labels), redact)


def report_network(fitted: Any, table: Any, redact: bool) -> Any:
    """Report on a network, and on a table if one is given."""
    from softcount.table.column_summary import summarise

    if table is None:
        return report_model(fitted, None, redact)
    before = None if fitted.record is None else fitted.record.table
    return report_model(fitted, (summarise(table.chunks(), fitted.schema, before), "the table given"), redact)


class SequencePages:
    """The pages of a model of sequences, which take no rows."""

    def explore(self) -> Any:
        """A page on which any step of a sequence answers to any others: `model.explore().save("explore.html")`."""
        return explore_model(self)

    def report(self, redact: bool = False) -> Any:
        """A page on the model with pictures: `model.report().save("report.html")`; also .json and .txt."""
        return report_model(self, None, redact)
