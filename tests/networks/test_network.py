"""A network of discrete nodes: checked when it is made, asked for probabilities, drawn from."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from softcount.errors import DataError
from softcount.networks.network import Graph, Network

WET = Graph.of([("Rain", "Wet"), ("Sprinkler", "Wet")], ["Rain", "Sprinkler", "Wet"])
LEVELS = [("no", "yes"), ("off", "on", "broken"), ("dry", "wet")]


def tables() -> list[Any]:
    wet = np.full((2, 3, 2), 0.5)
    return [[0.8, 0.2], [0.5, 0.25, 0.25], wet]


def refusal(levels: Any, tables: Any, graph: Graph = WET) -> str:
    with pytest.raises(DataError) as caught:
        Network(graph, levels, tables)
    return str(caught.value)


def test_sizes_and_free_parameters() -> None:
    network = Network(WET, LEVELS, tables())
    assert network.sizes == (2, 3, 2)
    assert network.n_parameters == 1 + 2 + 6


def test_sums_off_by_rounding_are_mended_and_others_keep_their_bits() -> None:
    given = [[0.8, 0.2], [0.3333335, 0.3333335, 0.3333335], np.full((2, 3, 2), 0.5)]
    network = Network(WET, LEVELS, given)
    assert network.tables[0].tolist() == [0.8, 0.2]
    assert network.tables[1].sum() == 1.0
    again = Network(WET, network.levels, network.tables)
    assert all(map(np.array_equal, network.tables, again.tables))


def test_tables_are_copies_that_nobody_changes() -> None:
    given = tables()
    network = Network(WET, LEVELS, given)
    given[2][0, 0] = 7
    assert network.tables[2].max() == 0.5
    with pytest.raises(ValueError, match="read-only"):
        network.tables[2][0, 0, 0] = 1


def test_a_bad_sum_is_named_with_its_configuration() -> None:
    bad = tables()
    bad[2][1, 2] = [0.5, 0.4]
    said = refusal(LEVELS, bad)
    assert said == "the table of node 'Wet' where Rain = 'yes', Sprinkler = 'broken' sums to 0.9 instead of 1."
    assert refusal(LEVELS, [[0.5, 0.4], *tables()[1:]]) == "the table of node 'Rain' sums to 0.9 instead of 1."
    assert refusal(LEVELS, [[0.5, 0.499998], *tables()[1:]])


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, -0.1, -1e-9, 1.5])
def test_what_is_no_probability_is_refused(value: float) -> None:
    said = refusal(LEVELS, [[1 - value, value], *tables()[1:]])
    assert "'Rain'" in said
    assert "not a probability" in said


def test_shapes_levels_and_lengths_that_do_not_fit_are_refused() -> None:
    sound = tables()
    assert "(3, 2, 2)" in refusal(LEVELS, [*sound[:2], np.full((3, 2, 2), 0.5)])
    assert "for 2" in refusal(LEVELS, sound[:2])
    assert "for 2" in refusal(LEVELS[:2], sound)
    assert "not an array of numbers" in refusal(LEVELS, [["a", "b"], *sound[1:]])
    assert "not an array of numbers" in refusal(LEVELS, [[[1], [1, 2]], *sound[1:]])
    assert "same name" in refusal([("no", "no"), *LEVELS[1:]], sound)
    assert "at least one" in refusal([(), *LEVELS[1:]], sound)
    assert "list of texts" in refusal([(0, 1), *LEVELS[1:]], sound)
    assert "list of texts" in refusal(["no", *LEVELS[1:]], sound)


def test_a_node_with_more_parents_than_an_array_has_axes_is_refused() -> None:
    graph = Graph.of([(place, "child") for place in range(64)])
    assert "64 parents" in refusal([["x"]] * 65, [[1.0]] * 65, graph)


def test_names_that_are_the_same_as_text_cannot_be_written() -> None:
    network = Network(Graph.of([], [1, "1"]), [["a"], ["a"]], [[1.0], [1.0]])
    with pytest.raises(DataError, match="same as text"):
        network.text_names()
