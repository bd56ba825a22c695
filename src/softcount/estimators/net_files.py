"""Networks that were read from a file, as fitted models."""

from __future__ import annotations

import numpy as np

from softcount.core.counts import Counts
from softcount.core.twofold import Twofold
from softcount.families import Categorical, Setting
from softcount.fitted.network import FittedNet
from softcount.models.network import Net
from softcount.models.nodes import Imagined, Node
from softcount.models.stacks import Kernels
from softcount.networks.network import Network
from softcount.table.schema import NARROW_LEVELS, Field, Kind, Schema

READ = "read from a network file"


def fitted_from(network: Network) -> FittedNet:
    """A network as if it had been fitted; its tables are prior counts of one row in every configuration."""
    fields, nodes = [], []
    for name, levels in zip(network.graph.names, network.levels, strict=True):
        wide = len(levels) > NARROW_LEVELS
        fields.append(Field(name, Kind.CATEGORICAL, READ, tuple(levels), wide=wide, declared=True))
        nodes.append(Node(name, (name,), Categorical(), Setting((name,), levels=tuple(levels))))
    net = Net(Schema(tuple(fields)), network.graph, tuple(nodes), Kernels(0))
    tables = {
        node.key: np.asarray(table).reshape(-1, len(levels))
        for node, table, levels in zip(nodes, network.tables, network.levels, strict=True)
    }
    own = {key: {"probability": table, "unseen": np.zeros(len(table))} for key, table in tables.items()}
    return FittedNet(
        model=net,  # type: ignore[arg-type]  # of no one class
        estimates=net.nodes.params(own),
        counts=Counts({key: Twofold.of(np.zeros_like(table)) for key, table in tables.items()}),
        imagined=Imagined({key: {"alpha": table} for key, table in tables.items()}, "mean"),
        notes=[f"{READ}: its tables are prior counts of one row in every configuration."],
        log_likelihood=0.0,
    )
