"""How models that are of no table of classes show themselves: clusters, sequences, densities."""

from __future__ import annotations

from typing import Any

import numpy as np

from softcount.errors import DataError
from softcount.estimators.notebook_face import FEW, MOST_COLUMNS, NotebookFace
from softcount.pictures.inline_html import said_lines, share_bars, small_table, upright_bars
from softcount.pictures.text import printable

BARS = 32
"""Bars of a density."""


def _first_few(names: Any) -> str:
    return ", ".join(printable(name)[:30] for name in names[:FEW]) + (", ..." if len(names) > FEW else "")


def _figures(line: np.ndarray) -> list[str]:
    return [f"{x:.4g}" for x in line.tolist()]


def _lines(names: Any, table: np.ndarray) -> list[list[Any]]:
    return [[name, *_figures(line[:MOST_COLUMNS])] for name, line in zip(names, table, strict=True)]


def _shares(shares: dict[Any, float]) -> str:
    ranked = sorted(shares.items(), key=lambda pair: -pair[1])
    return share_bars([(name, share, f"{100 * share:.1f} %") for name, share in ranked])


class ClusterFace(NotebookFace):
    """Clusters by how large they are, and their centres."""

    def _told(self) -> str | None:
        found: Any = getattr(self, "found_", None)
        if found is None:
            return None
        groups, columns = found.centres.shape
        rows = "" if found.sizes is None else f", {found.sizes.sum():,.0f} rows"
        return f"{groups:,} clusters from {columns:,} columns{rows}, cost {found.inertia:.6g}"

    def _html_parts(self) -> list[str]:
        found: Any = self.found_  # type: ignore[attr-defined]
        names = list(getattr(self, "feature_names_in_", range(found.centres.shape[1])))[:MOST_COLUMNS]
        lines = _lines(range(len(found.centres)), found.centres)
        sizes = {} if found.sizes is None else dict(enumerate((found.sizes / found.sizes.sum()).tolist()))
        return [_shares(sizes), small_table(["centre", *names], lines), said_lines(found.notes)]


class ChainFace(NotebookFace):
    """Symbols by how often they came, and what comes after each."""

    def _told(self) -> str | None:
        counts: Any = getattr(self, "counts_", None)
        if counts is None:
            return None
        symbols = self.symbols_  # type: ignore[attr-defined]
        steps = f"{counts.steps:,.0f} steps"
        return f"{len(symbols):,} symbols ({_first_few(symbols)}), order {counts.order}, {steps}"

    def _html_parts(self) -> list[str]:
        chain: Any = self
        parts = [_shares(chain.shares_)]
        if chain.predictions_.order == 1:
            names = chain.next_symbols_[:MOST_COLUMNS]
            lines = zip(chain.contexts_, chain.transitions_, strict=True)
            parts.append(
                small_table(["after", *names], [[name, *_figures(line[:MOST_COLUMNS])] for name, line in lines])
            )
        return [*parts, said_lines(chain.notes_)]


class StateFace(NotebookFace):
    """Hidden states by their share of the long run, and what follows each."""

    def _told(self) -> str | None:
        fitted: Any = getattr(self, "fitted_", None)
        if fitted is None:
            return None
        columns, steps = sum(len(leaf.columns) for leaf in fitted.chain.leaves), f"{fitted.counts.rows:,.0f} steps"
        return f"{fitted.n_states:,} states ({_first_few(fitted.names)}) from {columns:,} columns, {steps}"

    def _html_parts(self) -> list[str]:
        fitted: Any = self.fitted_  # type: ignore[attr-defined]
        long_run = dict(zip(fitted.names, fitted.stationary.tolist(), strict=True))
        after = small_table(["after", *fitted.names[:MOST_COLUMNS]], _lines(fitted.names, fitted.transitions))
        return [_shares(long_run), after, said_lines(fitted.notes)]


class BinFace(NotebookFace):
    """A histogram as it is."""

    def _told(self) -> str | None:
        edges: Any = getattr(self, "edges_", None)
        if edges is None:
            return None
        rows = float(self.counts_.sum())  # type: ignore[attr-defined]
        return f"{len(edges) - 1:,} bins from {edges[0]:.6g} to {edges[-1]:.6g}, {rows:,.0f} rows"

    def _html_parts(self) -> list[str]:
        return [_drawn(self)]


class KernelFace(NotebookFace):
    """A density of one column drawn as bars; of several, their bandwidths."""

    def _told(self) -> str | None:
        rows: Any = getattr(self, "rows_", None)
        if rows is None:
            return None
        wide = self._widths()
        said = f"bandwidth {wide[0]:.6g}" if len(wide) == 1 else f"{rows.cells.shape[1]:,} columns"
        return f"{said}, {rows.filled.sum():,.0f} rows"

    def _widths(self) -> np.ndarray:
        """The bandwidths; none where rows that were taken do not tell them yet."""
        try:
            return np.atleast_1d(self.bandwidth_)  # type: ignore[attr-defined]
        except DataError:
            return np.zeros(0)

    def _html_parts(self) -> list[str]:
        wide = self._widths()
        if len(wide) == 1:
            return [_drawn(self)]
        names = list(getattr(self, "feature_names_in_", range(len(wide))))[: len(wide)]
        return [small_table(["column", "bandwidth"], [[name, f"{x:.6g}"] for name, x in zip(names, wide, strict=True)])]


def _drawn(density: Any) -> str:
    """The density from its 0.5 % to its 99.5 % quantile."""
    low, high = (float(x) for x in density.quantile([0.005, 0.995]))
    if not high > low:
        return ""
    shares = np.diff(density.cdf(np.linspace(low, high, BARS + 1)))
    return upright_bars(shares.tolist(), f"{low:.4g}", f"{high:.4g}")
