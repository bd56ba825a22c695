"""What a user can say of a network's edges: pairs, parents by child, text, a file, or a word for how to find them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from softcount.errors import DataError
from softcount.models.declare import Coded, Search, Shape
from softcount.networks.network import Edge, Graph, pair_of
from softcount.table.schema import Key

if TYPE_CHECKING:
    from softcount.networks.scores import Counting

WORDS = ("naive", "tan", "chow-liu", "search", "joint")
ARROW, LONG_ARROW = ">", "->"
SUFFIXES = (".bif", ".xml", ".xmlbif", ".gz")


class SearchSettings(Struct, frozen=True):
    """What a search for edges keeps to: its score, edges that must or must not be, at most so many parents."""

    score: str = "bic"
    required: tuple[Edge, ...] = ()
    forbidden: tuple[Edge, ...] = ()
    max_parents: int | None = None
    sample_size: float = 1.0


class Structure(Struct, frozen=True):
    """A graph; or what makes one of the names of the nodes; or what finds one in the rows."""

    graph: Graph | None = None
    shape: Shape | None = None
    search: Search | None = None


def structure_of(edges: Any, target: Key | None, settings: SearchSettings) -> Structure:
    """What was said of the edges; without a word, a tree: of the columns, or beside the class where there is one."""
    if edges is None:
        edges = "chow-liu" if target is None else "tan"
    if not (isinstance(edges, str) and edges in WORDS):
        return Structure(graph_of(edges))
    if edges in SHAPES:
        _refuse_without_class(edges, target)
        return Structure(shape=partial(SHAPES[edges], target))
    return Structure(search=finder(edges, target, settings))


def _refuse_without_class(word: str, target: Key | None) -> None:
    if target is None:
        raise DataError(f"edges={word!r} needs the class: give y, the labels or the name of their column.")


def graph_of(edges: Any) -> Graph:
    """A graph from pairs (parent, child), from parents by child, from text such as "A>B, B>C", or from a file."""
    if isinstance(edges, Graph):
        return edges
    if isinstance(edges, Mapping):
        return Graph.of(
            [
                (parent, child)
                for child, own in edges.items()
                for parent in ([own] if isinstance(own, str) else list(own))
            ],
            edges,
        )
    if isinstance(edges, Path) or (isinstance(edges, str) and edges.lower().endswith(SUFFIXES)):
        from softcount.files.bif import read_network

        return read_network(edges).graph
    if isinstance(edges, str):
        return graph_of_text(edges)
    if not isinstance(edges, Iterable):
        raise DataError(f"edges are pairs (parent, child), not {edges!r}.")
    return Graph.of(list(edges))


def graph_of_text(text: str) -> Graph:
    """A graph from text: "Bag>Flavor, Bag>Wrapper"; a name alone is a node without edges.

    >>> graph_of_text("Rain>Wet, Sprinkler -> Wet").edges
    [('Rain', 'Wet'), ('Sprinkler', 'Wet')]
    """
    edges, names = _written(text)
    if not edges and len(names) == 1:
        raise DataError(
            f"{text!r} is neither a list of edges (A>B, B>C) nor one of {', '.join(WORDS)}, nor the name of a network "
            "file (.bif)."
        )
    return Graph.of(edges, dict.fromkeys(names))


def pairs_of(edges: Any) -> tuple[Edge, ...]:
    """Pairs (parent, child), as such or as text, that need not be a graph."""
    if isinstance(edges, str):
        return tuple(_written(edges)[0])
    if edges is not None and not isinstance(edges, Iterable):
        raise DataError(f"edges are pairs (parent, child), not {edges!r}.")
    return tuple(pair_of(edge) for edge in edges or ())


def _written(text: str) -> tuple[list[Edge], list[str]]:
    """The edges that a text names, and the names in it."""
    edges: list[Edge] = []
    names: list[str] = []
    for part in text.split(","):
        along = [name.strip() for name in part.replace(LONG_ARROW, ARROW).split(ARROW)]
        if not all(along):
            close = f" Words for finding them are: {', '.join(WORDS)}." if ARROW not in text else ""
            raise DataError(f"edges are written A>B, separated by commas, not {text!r}.{close}")
        names += along
        edges += list(pairwise(along))
    return edges, names


def _star(target: Key, names: Sequence[Key]) -> Graph:
    return Graph.of([(target, name) for name in names if name != target], names)


def _complete(target: Key, names: Sequence[Key]) -> Graph:
    order = [target, *(name for name in names if name != target)]
    return Graph.of([(a, b) for place, b in enumerate(order) for a in order[:place]], order)


SHAPES: dict[str, Callable[[Key, Sequence[Key]], Graph]] = {"naive": _star, "joint": _complete}


def finder(word: str, target: Key | None, settings: SearchSettings) -> Search:
    """What finds a graph in coded rows by the way this word names."""
    if word == "tan":
        _refuse_without_class(word, target)
    return lambda coded: _found(coded, learner(word, coded, target, settings), word == "search")


def learner(word: str, coded: Coded, target: Key | None, settings: SearchSettings) -> Callable[[Counting], Graph]:
    """From counts of nodes by number to a graph of them."""
    from softcount.networks.structure_search import chow_liu, tree_augmented

    if word == "tan":
        return lambda counting: tree_augmented(counting, coded.names.index(target))
    if word == "chow-liu":
        return chow_liu
    return partial(_searched, settings=settings, names=coded.names)


def _found(coded: Coded, learn: Callable[[Counting], Graph], same_rows: bool) -> tuple[Graph, list[str]]:
    """The graph of coded rows; a search by score needs the same rows for every node, so holes are drawn."""
    from softcount.networks.expected_counts import structural_em
    from softcount.networks.scores import CodeCounts

    if not (same_rows and (coded.codes < 0).any()):
        graph, notes = learn(CodeCounts(coded.codes, coded.sizes, coded.weights)), []
    else:
        graph, turns = structural_em(coded.codes, coded.sizes, coded.weights, learn)
        notes = [f"edges were looked for in rows whose holes were drawn from the network so far, {turns} times."]
    return Graph(coded.names, graph.parents), notes


def _searched(counting: Counting, settings: SearchSettings, names: Sequence[Key]) -> Graph:
    from softcount.networks.scores import Bdeu, Bic, EdgeRules
    from softcount.networks.structure_search import search_graph

    for parent, child in settings.required:
        if (parent, child) in settings.forbidden:
            raise DataError(f"the edge from {parent!r} to {child!r} is both required and forbidden.")
        own = sum(other == child for _, other in settings.required)
        if settings.max_parents is not None and own > settings.max_parents:
            raise DataError(f"{child!r} has {own} required parents, but max_parents is {settings.max_parents}.")
    rules = EdgeRules(_pairs(settings.required, names), _pairs(settings.forbidden, names), settings.max_parents)
    score = Bdeu(settings.sample_size) if settings.score == "bdeu" else Bic()
    return search_graph(counting, score, rules).graph


def _pairs(edges: Iterable[Edge], names: Sequence[Key]) -> frozenset[tuple[int, int]]:
    number = {name: place for place, name in enumerate(names)}
    for name in (name for edge in edges for name in edge):
        if name not in number:
            raise DataError(f"the table has no column {name!r}, which an edge is required or forbidden for.")
    return frozenset((number[a], number[b]) for a, b in edges)
