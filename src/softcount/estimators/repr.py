"""What an estimator shows of itself: a line in a console and a small box in a notebook.

An estimator that is not fitted is shown as scikit-learn shows it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from softcount.core.lazy import LazyModule
from softcount.errors import DataError
from softcount.estimators.result_frames import arrow_of
from softcount.fitted.answers import labels_in
from softcount.fitted.fitted import Fitted
from softcount.fitted.joint import FittedJoint
from softcount.fitted.network import FittedNet
from softcount.fitted.states import FittedStates
from softcount.pictures.inline_html import boxed as boxed
from softcount.pictures.inline_html import note_lines, picture, share_bars, small_table, upright_bars
from softcount.pictures.text import format_count, format_loss, format_share, printable

graphs: Any = LazyModule("softcount.report.graph")

NAMES_IN_LINE = 4
COLUMNS_IN_TABLE = 7
NODES_IN_PICTURE = 20
BARS_OF_DENSITY = 32


def describe(estimator: Any) -> Iterator[str] | None:
    """A line on a fitted estimator, then what a notebook shows below it, as HTML; None if it is not fitted."""
    return next((yield_parts(estimator) for name, yield_parts in DESCRIPTIONS.items() if name in vars(estimator)), None)


def _describe_model(estimator: Any) -> Iterator[str]:
    yield from DESCRIPTIONS_OF_MODELS[type(estimator.fitted_)](estimator, estimator.fitted_)
    yield note_lines(estimator.fitted_.notes)


def _describe_states(estimator: Any, fitted: FittedStates) -> Iterator[str]:
    columns = sum(len(leaf.columns) for leaf in fitted.chain.leaves)
    yield (
        f"{fitted.n_states:,} states ({_first_names(fitted.names)}) from {format_count(columns, 'column')}, "
        f"{fitted.counts.rows:,.0f} steps"
    )
    yield _share_bars(dict(zip(fitted.names, fitted.stationary.tolist(), strict=True)))
    yield _number_table("after", fitted.names, fitted.names, fitted.transitions)


def _describe_classes(estimator: Any, fitted: Fitted) -> Iterator[str]:
    columns = sum(len(leaf.columns) or 1 for leaf in fitted.model.leaves)
    target = "" if fitted.target is None else f"{printable(fitted.target)[:40]}: "
    yield (
        f"{target}{fitted.n_groups:,} classes ({_first_names(fitted.names)}) from "
        f"{format_count(columns, 'column')}, {fitted.n_rows:,.0f} rows"
    )
    tried = fitted.record.evaluation
    if tried is not None:
        loss = f"log-loss {format_loss(tried.log_loss)} (baseline {format_loss(tried.baseline_log_loss)})"
        right = f"accuracy {format_share(tried.accuracy)} (baseline {format_share(tried.baseline_accuracy)})"
        yield note_lines([f"{right}, {loss}, {tried.how}"])
    yield _share_bars(dict(zip(fitted.names, fitted.shares.tolist(), strict=True)))
    names, influence = labels_in(fitted), fitted.influence()
    top = max((far for _, far in influence), default=0.0) or 1.0
    yield share_bars([(names[key], far / top, f"influence {far:.3g}") for key, far in influence])
    selection = arrow_of(getattr(estimator, "selection_", None))
    if selection is not None and selection.num_rows > 1:
        shown = [name for name in selection.column_names if selection[name].null_count < selection.num_rows]
        shown = shown[:COLUMNS_IN_TABLE]
        rows = selection.select(shown).to_pylist()
        yield small_table(shown, [[f"{x:.4g}" if isinstance(x, float) else x for x in row.values()] for row in rows])


def _describe_network(estimator: Any, fitted: FittedNet) -> Iterator[str]:
    graph = fitted.net.graph
    yield f"{len(graph.names):,} nodes, {len(graph.edges):,} edges, {fitted.counts.rows:,.0f} rows"
    if len(graph.names) <= NODES_IN_PICTURE:
        hidden = {fitted.net.with_levels[place].key for place in fitted.net.hidden}
        yield picture(graphs.NetworkPicture.of(graph, hidden).draw())


def _describe_joint(estimator: Any, fitted: FittedJoint) -> Iterator[str]:
    columns = len(fitted.trees.coding.columns)
    yield (
        f"{fitted.answering_model} over {format_count(columns, 'column')}, {fitted.counts.rows:,.0f} rows, "
        f"{fitted.trees.held_out:.4g} nats per held-out row"
    )


DESCRIPTIONS_OF_MODELS: dict[type, Callable[[Any, Any], Iterator[str]]] = {
    Fitted: _describe_classes, FittedNet: _describe_network, FittedStates: _describe_states,
    FittedJoint: _describe_joint,
}  # fmt: skip
"""How an estimator is described, by the class of its fitted model."""


def _describe_centres(estimator: Any) -> Iterator[str]:
    found = estimator.found_
    groups, columns = found.centres.shape
    rows = found.sizes.sum()
    yield f"{groups:,} clusters from {format_count(columns, 'column')}, {rows:,.0f} rows, cost {found.inertia:.6g}"
    yield _share_bars(dict(enumerate((found.sizes / rows).tolist())))
    names = getattr(estimator, "feature_names_in_", range(columns))
    yield _number_table("centre", names, range(groups), found.centres)
    yield note_lines(found.notes)


def _describe_chain(estimator: Any) -> Iterator[str]:
    symbols, counts = estimator.symbols_, estimator.counts_
    yield f"{len(symbols):,} symbols ({_first_names(symbols)}), order {counts.order}, {counts.steps:,.0f} steps"
    yield _share_bars(estimator.shares_)
    if estimator.predictions_.order == 1:
        yield _number_table("after", estimator.next_symbols_, estimator.contexts_, estimator.transitions_)
    yield note_lines(estimator.notes_)


def _describe_histogram(estimator: Any) -> Iterator[str]:
    edges, rows = estimator.edges_, float(estimator.counts_.sum())
    yield f"{len(edges) - 1:,} bins from {edges[0]:.6g} to {edges[-1]:.6g}, {rows:,.0f} rows"
    yield _density_bars(estimator)


def _describe_kernel_density(estimator: Any) -> Iterator[str]:
    columns, rows = estimator.n_features_in_, f"{estimator.rows_.total:,.0f} rows"
    try:
        widths = np.atleast_1d(estimator.bandwidth_)
    except DataError:  # after partial_fit there may be too few rows to choose one
        yield f"{columns:,} columns, {rows}"
        return
    yield f"bandwidth {widths[0]:.6g}, {rows}" if columns == 1 else f"{columns:,} columns, {rows}"
    if columns == 1:
        yield _density_bars(estimator)
    else:
        names = getattr(estimator, "feature_names_in_", range(columns))
        yield small_table(["column", "bandwidth"], [[name, f"{x:.6g}"] for name, x in zip(names, widths, strict=True)])


DESCRIPTIONS: dict[str, Callable[[Any], Iterator[str]]] = {
    "fitted_": _describe_model, "found_": _describe_centres, "rows_": _describe_kernel_density,
    "edges_": _describe_histogram, "counts_": _describe_chain,
}  # fmt: skip
"""How an estimator is described, by the attribute that its fit sets."""


def _first_names(names: Any) -> str:
    return ", ".join(printable(name)[:30] for name in names[:NAMES_IN_LINE]) + (
        ", ..." if len(names) > NAMES_IN_LINE else ""
    )


def _share_bars(shares: Mapping[Any, float]) -> str:
    ranked = sorted(shares.items(), key=lambda pair: -pair[1])
    return share_bars([(name, share, f"{100 * share:.1f} %") for name, share in ranked])


def _number_table(corner: str, across: Any, down: Any, table: np.ndarray) -> str:
    rows = [
        [name, *(f"{x:.4g}" for x in line[:COLUMNS_IN_TABLE].tolist())] for name, line in zip(down, table, strict=True)
    ]
    return small_table([corner, *list(across)[:COLUMNS_IN_TABLE]], rows)


def _density_bars(density: Any) -> str:
    """The density from its 0.5 % to its 99.5 % quantile."""
    low, high = (float(x) for x in density.quantile([0.005, 0.995]))
    if not high > low:
        return ""
    shares = np.diff(density.cdf(np.linspace(low, high, BARS_OF_DENSITY + 1)))
    return upright_bars(shares.tolist(), f"{low:.4g}", f"{high:.4g}")
