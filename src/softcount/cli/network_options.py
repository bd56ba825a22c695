"""The options of `fit` that are about networks: under a heading of their own, understood, and checked together."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any

import click
from msgspec import Struct, field

from softcount.cli.options import BDEU, Command, as_number
from softcount.errors import DataError

HEADING = "Networks"
AUTO = "auto"
"""As many levels as there is evidence for."""

SCORES = ("bic", "bdeu")
"""Ways to score a structure."""

WITH_CLASS = ("naive", "tan", "joint")
WORDS = (*WITH_CLASS, "chow-liu", "search")
"""Ways to find a structure; the first ones need the class."""

FILES = (".bif", ".xmlbif", ".bifxml", ".xml")
"""Endings of network files, also with .gz after them; XML is refused by a line that names BIF."""

Edges = tuple[tuple[str, str], ...]


def is_network_file(name: str) -> bool:
    """Whether a name is that of a network file.

    >>> is_network_file("nets/alarm.BIF.gz"), is_network_file("alarm.sc"), is_network_file("a>b.bif")
    (True, False, False)
    """
    return name.lower().removesuffix(".gz").endswith(FILES) and ">" not in name


class NetRequest(Struct, frozen=True):
    """What was asked of a network; `said` is a word, the name of a file, or edges."""

    said: str
    hidden: Mapping[Any, Any] = field(default_factory=dict)
    cut: Mapping[Any, Any] = field(default_factory=dict)
    required: Edges = ()
    forbidden: Edges = ()
    max_parents: int | None = None
    criterion: str = "bic"


class NetworkOption(click.Option):
    """An option that is listed under the heading for networks."""


def hidden_nodes(ctx: click.Context, param: click.Parameter, texts: tuple[str, ...]) -> dict[str, Any]:
    """Node -> its number of levels, or their names, or "auto"."""
    return _by_name(ctx, param, texts, "Bag=2, Bag=auto or Bag=one,two", _levels)


def cut_columns(ctx: click.Context, param: click.Parameter, texts: tuple[str, ...]) -> dict[str, Any]:
    """Column -> its number of intervals, or where it is cut."""
    return _by_name(ctx, param, texts, "age=5 or age=18,65", _cuts)


def edge_list(ctx: click.Context, param: click.Parameter, texts: tuple[str, ...]) -> Edges:
    """Edges that must be, or must not."""
    found: list[tuple[str, str]] = []
    for part in ",".join(texts).split(",") if texts else ():
        edge = tuple(name.strip() for name in part.replace("->", ">").split(">"))
        if len(edge) != 2 or not all(edge) or edge[0] == edge[1]:
            raise click.BadParameter(f"{part.strip()!r} is not an edge, such as A>B", ctx, param)
        found.append((edge[0], edge[1]))
    return tuple(dict.fromkeys(found))


def _by_name(
    ctx: click.Context, param: click.Parameter, texts: tuple[str, ...], such: str, read: Callable[[str], Any]
) -> dict[str, Any]:
    """What is said of each name; a name may itself hold "=", so the last one divides."""
    found: dict[str, Any] = {}
    for text in texts:
        name, _, said = text.rpartition("=")
        value = read(said) if name else None
        if value is None:
            raise click.BadParameter(f"{text!r} is not {such}", ctx, param)
        if name in found:
            raise click.BadParameter(f"{name!r} is given twice", ctx, param)
        found[name] = value
    return found


def _levels(said: str) -> int | str | tuple[str, ...] | None:
    if said == AUTO:
        return AUTO
    if said.isdecimal():
        return int(said) if 2 <= int(said) <= 1_000_000 else None
    names = tuple(name.strip() for name in said.split(","))
    return names if len(names) >= 2 and all(names) and len(set(names)) == len(names) else None


def _cuts(said: str) -> int | tuple[float, ...] | None:
    if said.isdecimal():
        return int(said) if int(said) >= 2 else None
    parts = said.split(",")
    if len(parts) < 2 or any(as_number(_is_float, part) < 0 for part in parts):
        return None
    edges = tuple(map(float, parts))
    return edges if all(low < high for low, high in pairwise(edges)) else None


def _is_float(text: str) -> float:
    """0 for a number, which must be finite."""
    return 0.0 if abs(float(text)) < float("inf") else -1.0


OPTIONS: list[dict[str, Any]] = [
    {
        "param_decls": ["--net"],
        "metavar": "EDGES|FILE|WORD",
        "help": "Learn a Bayesian network: edges (A>B, A>C), a network file to take them from (.bif), or how to "
        "find them: naive, tan, joint (with --target), chow-liu, search.",
    },
    {
        "param_decls": ["--hidden"],
        "multiple": True,
        "metavar": "NODE=N",
        "callback": hidden_nodes,
        "help": "A node of the network that no column shows, and how many levels it has (or which: Bag=one,two; or "
        "auto, as many as there is evidence for). May be repeated.",
    },
    {
        "param_decls": ["--cut"],
        "multiple": True,
        "metavar": "COL=N",
        "callback": cut_columns,
        "help": "Cut a column of numbers into N levels of about equal count (or where: age=18,65). May be repeated.",
    },
    {
        "param_decls": ["--required"],
        "multiple": True,
        "metavar": "A>B",
        "callback": edge_list,
        "help": "An edge that --net search keeps. May be repeated.",
    },
    {
        "param_decls": ["--forbidden"],
        "multiple": True,
        "metavar": "A>B",
        "callback": edge_list,
        "help": "An edge that --net search leaves out. May be repeated.",
    },
    {
        "param_decls": ["--max-parents"],
        "type": click.IntRange(0),
        "metavar": "K",
        "help": "The most parents that --net search gives a node.",
    },
]


def network_options(command: Command) -> Command:
    """What can be said of a network."""
    for option in reversed(OPTIONS):
        names = option["param_decls"]
        rest = {name: value for name, value in option.items() if name != "param_decls"}
        command = click.option(*names, cls=NetworkOption, **rest)(command)
    return command


# -- what goes together

OF_NETWORKS = ("hidden", "cut", "required", "forbidden", "max_parents")
OF_SEARCH = ("required", "forbidden", "max_parents", "criterion")


def check_without_network(asked: Mapping[str, Any]) -> None:
    """Refuse what is about networks where none is asked for."""
    _refuse(asked, OF_NETWORKS, "needs --net")
    if asked["criterion"] == "bdeu":
        raise click.UsageError("--criterion bdeu is for --net search; a number of classes is chosen by the others")
    if str(asked["prior"]).startswith(BDEU):
        raise click.UsageError("--prior bdeu is for networks: --net")


OF_NAIVE_BAYES = ("calibrate", "unlabelled_weight", "expert", "model")


def check_with_network(asked: Mapping[str, Any], texts: Mapping[str, Any]) -> None:
    """Refuse what contradicts --net."""
    said, target = asked["net"].strip(), asked["target"]
    _refuse(asked, ("classes", "checkpoint"), "is for looking for classes; it cannot be given with --net")
    _refuse(asked, OF_NAIVE_BAYES, "is for naive Bayes; it cannot be given with --net")
    if texts:
        raise click.UsageError("a network has no columns of text, so options for them cannot be given with --net")
    if target is None:
        _refuse(asked, ("holdout", "folds"), "needs --target")
        if said in WITH_CLASS:
            raise click.UsageError(f"--net {said} needs the class: --target COL")
    if said != "search":
        _refuse(asked, OF_SEARCH, "needs --net search")
    elif asked["criterion"] not in (None, *SCORES):
        raise click.UsageError(f"--criterion {asked['criterion']} chooses a number of classes; --net search: bic, bdeu")
    both = [f"{a}>{b}" for a, b in asked["required"] if (a, b) in asked["forbidden"]]
    if both:
        raise click.UsageError(f"{both[0]} is both --required and --forbidden")
    if said in WORDS and asked["hidden"]:
        raise click.UsageError('--hidden needs edges, such as --net "Bag>Flavor, Bag>Wrapper": none are found for it')
    if not asked["hidden"]:
        _refuse(asked, ("starts",), "with --net needs --hidden: only hidden nodes have something to look for")


def _refuse(asked: Mapping[str, Any], names: tuple[str, ...], why: str) -> None:
    for name in names:
        if asked[name] not in (None, (), {}):
            raise click.UsageError(f"--{name.replace('_', '-')} {why}")


def take_request(asked: dict[str, Any]) -> NetRequest | None:
    """What was asked of a network, taken out of `asked`; None without --net."""
    said = asked.pop("net")
    found = {name: asked.pop(name) for name in OF_NETWORKS}
    if said is None:
        return None
    criterion = asked.pop("criterion") or SCORES[0]
    request = NetRequest(said.strip(), criterion=criterion, **found)
    _check_edges(request)
    return request


def _check_edges(request: NetRequest) -> None:
    """Refuse edges in a circle, and a text that is neither a word nor a file nor edges, before data is read."""
    from softcount.fit.network_structure import graph_of_text
    from softcount.networks.network import Graph

    option = "--required"
    try:
        Graph.of(request.required)
        option = "--net"
        if request.said not in WORDS and not is_network_file(request.said):
            graph_of_text(request.said)
    except DataError as error:
        raise click.UsageError(f"{option}: {error}") from None
