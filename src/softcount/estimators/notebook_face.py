"""How a fitted model shows itself: one line in a console, a small box in a notebook.

A model that is not fitted is shown as scikit-learn shows it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from softcount.estimators.result_frames import arrow_of
from softcount.fitted.fitted import Fitted
from softcount.pictures.inline_html import boxed, said_lines, share_bars, small_table
from softcount.pictures.text import printable

FEW = 4
"""Names in a line."""
MOST_COLUMNS = 7
"""Columns of a table."""


class NotebookFace:
    """Before scikit-learn's base: what a fitted model says of itself comes after how it was made."""

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        """How it was made, as scikit-learn has it, and behind that, once fitted, what it was fitted to."""
        _keep_lines_short()
        made = BaseEstimator.__repr__(self, N_CHAR_MAX)
        said = self._told()
        return made if said is None else f"{made}  # {said}"

    def _told(self) -> str | None:
        """What a fitted model is of, in a line; None where it is not fitted."""
        fitted = getattr(self, "fitted_", None)
        return None if fitted is None else model_line(fitted)

    def _html_parts(self) -> list[str]:
        """What a notebook shows below that line."""
        fitted: Any = self.fitted_  # type: ignore[attr-defined]
        parts = [share_bars(_class_bars(fitted)), share_bars(_column_bars(fitted))] if is_star(fitted) else []
        selection = arrow_of(getattr(self, "selection_", None))
        if selection is not None and selection.num_rows > 1:
            parts.append(arrow_html(selection))
        return [*parts, said_lines(fitted.notes)]

    def _html_repr(self) -> str:
        """What scikit-learn's `_repr_html_` shows: at most 15 KB, styles inline, no script."""
        said = self._told()
        if said is None:
            from sklearn.utils import estimator_html_repr

            return str(estimator_html_repr(self))
        return boxed(type(self).__name__, said, self._html_parts())


def _keep_lines_short() -> None:
    """Scikit-learn breaks the lines of those whose `__repr__` it knows."""
    from sklearn.utils._pprint import _EstimatorPrettyPrinter as Printer

    Printer._dispatch.setdefault(NotebookFace.__repr__, Printer._pprint_estimator)


def is_star(fitted: Any) -> bool:
    """Whether a model has classes that its columns depend on."""
    return isinstance(fitted, Fitted)


def model_line(fitted: Any) -> str:
    """What a model was learned from and what it tells, in a line."""
    if not is_star(fitted):
        edges = sum(map(len, fitted.net.graph.parents))
        return f"{len(fitted.net.graph.names):,} nodes, {edges:,} edges, {fitted.counts.rows:,.0f} rows"
    columns = sum(len(leaf.columns) or 1 for leaf in fitted.model.leaves)
    names = ", ".join(printable(name)[:30] for name in fitted.names[:FEW])
    more = ", ..." if fitted.n_groups > FEW else ""
    target = "" if fitted.target is None else f"{printable(fitted.target)[:40]}: "
    return f"{target}{fitted.n_groups:,} classes ({names}{more}) from {columns:,} columns, {fitted.n_rows:,.0f} rows"


def _class_bars(fitted: Fitted) -> list[tuple[object, float, str]]:
    order = np.argsort(-fitted.shares, kind="stable")
    return [(fitted.names[k], float(fitted.shares[k]), f"{100 * fitted.shares[k]:.1f} %") for k in order]


def _column_bars(fitted: Fitted) -> list[tuple[object, float, str]]:
    """Columns by how far the classes depart from the whole table in them."""
    from softcount.fitted.answers import labels_in

    names, found = labels_in(fitted), fitted.influence()
    top = max((far for _, far in found), default=0.0) or 1.0
    return [(names[key], far / top, f"influence {far:.3g}") for key, far in found]


def arrow_html(table: Any) -> str:
    """An Arrow table as a small one of text."""
    columns = [name for name in table.column_names if table[name].null_count < table.num_rows][:MOST_COLUMNS]
    rows = [[_cell(row[name]) for name in columns] for row in table.select(columns).to_pylist()]
    return small_table(columns, rows)


def _cell(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
