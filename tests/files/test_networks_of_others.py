"""Networks of the repositories load, and other programs and we read each other's files."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from networks.drawn_networks import drawn_tables, plain_network, same
from softcount.files.bif import bif_text, read_bif, read_network, write_network
from softcount.networks.network import Network

SIZES = {
    "alarm": (37, 46, 509),
    "asia": (8, 8, 18),
    "cancer": (5, 4, 10),
    "child": (20, 25, 230),
    "earthquake": (5, 4, 10),
    "hailfinder": (56, 66, 2656),
    "insurance": (27, 52, 1008),
    "sachs": (11, 17, 178),
    "survey": (6, 6, 21),
}
"""Nodes, arcs and free parameters."""


# Real files


@pytest.mark.parametrize("name", SIZES)
def test_the_networks_of_the_repository_have_their_sizes_and_come_back(
    data: Callable[[str], Path], tmp_path: Path, name: str
) -> None:
    network = read_network(data(f"bif/{name}.bif.gz"))
    assert (len(network.sizes), len(network.graph.edges), network.n_parameters) == SIZES[name]
    for ending in ("bif", "bif.gz"):
        write_network(network, tmp_path / f"copy.{ending}")
        assert same(read_network(tmp_path / f"copy.{ending}"), network)


def test_numbers_are_those_of_the_file(data: Callable[[str], Path]) -> None:
    asia = read_network(data("bif/asia.bif.gz"))
    either, dysp = asia.graph.place("either"), asia.graph.place("dysp")
    assert asia.levels[either] == ("yes", "no")
    assert [asia.graph.names[parent] for parent in asia.graph.parents[dysp]] == ["bronc", "either"]
    assert asia.tables[dysp].tolist() == [[[0.9, 0.1], [0.8, 0.2]], [[0.7, 0.3], [0.1, 0.9]]]
    child = read_network(data("bif/child.bif.gz"))
    assert any("<5" in levels for levels in child.levels)


@pytest.mark.parametrize(
    ("name", "sizes"),
    [
        ("andes", (223, 338, 1157)),
        ("hepar2", (70, 123, 1453)),
        ("link", (724, 1125, 14211)),
        ("munin1", (186, 273, 15622)),
        ("pathfinder", (109, 195, 72079)),
        ("pigs", (441, 592, 5618)),
        ("water", (32, 66, 10083)),
        ("win95pts", (76, 112, 574)),
    ],
)
def test_larger_networks_that_pgmpy_carries_load(name: str, sizes: tuple[int, int, int]) -> None:
    pgmpy = pytest.importorskip("pgmpy")
    path = Path(pgmpy.__file__).parent / "utils" / "example_models" / f"{name}.bif.gz"
    if not path.exists():
        pytest.skip(f"this pgmpy comes without {path.name}")
    network = read_network(path)
    assert (len(network.sizes), len(network.graph.edges), network.n_parameters) == sizes
    assert same(read_bif(bif_text(network)), network)


# Other programs


def with_two_levels_or_more(network: Network, rng: np.random.Generator) -> Network:
    sizes = [max(size, 2) for size in network.sizes]
    levels = [[f"v{level}" for level in range(size)] for size in sizes]
    return Network(network.graph, levels, drawn_tables(rng, network.graph, sizes))


def by_name(network: Network, node: int, order: list[str]) -> np.ndarray:
    """A node's table with its axes in another order of names."""
    family = [network.graph.names[place] for place in network.graph.families[node]]
    return network.tables[node].transpose([family.index(name) for name in order])


def pgmpy_table(model: Any, network: Network, name: str) -> np.ndarray:
    """What pgmpy holds for a node, its axes and levels in our order."""
    found = model.get_cpds(name)
    family = [network.graph.names[place] for place in network.graph.families[network.graph.place(name)]]
    table = found.values.transpose([found.variables.index(each) for each in family])
    for axis, each in enumerate(family):
        states = found.state_names[each]
        table = table.take([states.index(level) for level in network.levels[network.graph.place(each)]], axis=axis)
    return table


@pytest.mark.parametrize("name", ["asia", "child", "sachs"])
def test_pgmpy_reads_the_same_numbers_in_real_files(data: Callable[[str], Path], name: str) -> None:
    from pgmpy.readwrite import BIFReader

    path = data(f"bif/{name}.bif.gz")
    network = read_network(path)
    model = BIFReader(string=gzip.decompress(path.read_bytes()).decode()).get_model()
    for node, table in zip(network.graph.names, network.tables, strict=True):
        theirs = pgmpy_table(model, network, node)
        assert np.allclose(table, theirs / theirs.sum(axis=-1, keepdims=True), rtol=1e-14, atol=0)


def test_pgmpy_reads_what_we_write_and_we_read_what_it_writes(tmp_path: Path) -> None:
    from pgmpy.readwrite import BIFReader, BIFWriter

    for seed in range(3):
        network = plain_network(seed)
        path, back = str(tmp_path / "ours.bif"), str(tmp_path / "back.bif")
        write_network(network, path)
        model = BIFReader(path).get_model()
        for name, table in zip(network.graph.names, network.tables, strict=True):
            assert np.array_equal(pgmpy_table(model, network, name), table)
        BIFWriter(model).write(back)
        again = read_network(back)
        for name, table in zip(again.graph.names, again.tables, strict=True):
            assert np.allclose(table, pgmpy_table(model, again, str(name)), rtol=0, atol=1e-15)


def test_pyagrum_reads_what_we_write_and_we_read_what_it_writes(tmp_path: Path) -> None:
    import pyagrum as gum

    rng = np.random.default_rng(8)
    for seed in range(3):
        network = with_two_levels_or_more(plain_network(seed), rng)
        path = str(tmp_path / "ours.bif")
        write_network(network, path)
        theirs = gum.loadBN(path)
        gum.saveBN(theirs, str(tmp_path / "back.bif"))
        again = read_network(tmp_path / "back.bif")
        for node, name in enumerate(network.graph.names):
            found = theirs.cpt(name)
            order = list(reversed(found.names))
            assert list(theirs.variable(name).labels()) == list(network.levels[node])
            assert np.allclose(found.toarray(), by_name(network, node, order), rtol=0, atol=1e-7)
            place = again.graph.place(name)
            order = [again.graph.names[axis] for axis in again.graph.families[place]]
            assert again.levels[place] == network.levels[node]
            assert np.allclose(again.tables[place], by_name(network, node, order), rtol=0, atol=1e-7)
