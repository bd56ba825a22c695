"""A network's nodes and edges, causes above effects."""

from __future__ import annotations

from typing import Any, Self

from softcount.networks.network import Graph
from softcount.plot.display import FOR, Display, plain
from softcount.report.graph_layout import GraphLayout, layered

WIDE = 1.0
BETWEEN = 0.4


class NetworkDisplay(Display):
    """Nodes in layers, every edge pointing down.

    `table` has `parent` and `child`.
    """

    def __init__(self, table: Any, nodes: list[Any], layout: GraphLayout) -> None:
        super().__init__(table)
        self.nodes = nodes
        self.layout = layout

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any = None, *, ax: Any = None) -> Self:
        """A fitted `BayesNet`; X is not needed."""
        import pyarrow as pa

        nodes, edges = [str(node) for node in estimator.nodes], estimator.edges_
        layout = layered(Graph.of([(str(a), str(b)) for a, b in edges], nodes), [WIDE] * len(nodes), BETWEEN)
        table = pa.table({"parent": [str(a) for a, _ in edges], "child": [str(b) for _, b in edges]})
        return cls(table, nodes, layout).plot(ax)

    def _draw(self, ax: Any) -> None:
        places = list(zip(self.layout.x, (-layer for layer in self.layout.layer), strict=True))
        for route in self.layout.routes:
            *way, last = [places[route.parent], *((x, -layer) for x, layer in route.bends), places[route.child]]
            ax.plot(*zip(*way, last, strict=True), color="grey", linewidth=1, zorder=1)
            arrow = {"arrowstyle": "-|>", "color": "grey", "shrinkB": 12}
            ax.annotate("", last, way[-1], arrowprops=arrow)
        box = {"boxstyle": "round", "facecolor": "white", "edgecolor": FOR}
        for name, (x, y) in zip(self.nodes, places, strict=True):
            ax.text(x, y, plain(name), ha="center", va="center", bbox=box, zorder=2)
        ax.margins(0.15)
        ax.set_axis_off()
