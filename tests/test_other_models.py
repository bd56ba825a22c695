"""Models that the library does not have, a screen each, behind the same interface: climbed, searched, saved, loaded.

A network of two discrete columns with holes in both, and a chain of two hidden states that show symbols.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise, product
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from scipy.special import logsumexp

from softcount.core.counts import Counts, Twofold
from softcount.families import Categorical, Setting
from softcount.files.archive import read
from softcount.files.model_file import load_model, save_model
from softcount.learn.em import Stop, run_em
from softcount.learn.record import Learned
from softcount.learn.search import Search
from softcount.learn.settings import Plan
from softcount.models.base import MODELS, Model, Problem, register_model
from softcount.models.nodes import Imagined, Node, Nodes, Params
from softcount.run.local import Threads
from softcount.table import Chunk, open_table
from softcount.table.schema import Schema


def node(key: str, levels: tuple[Any, ...], groups: int, columns: tuple[str, ...] = ()) -> Node:
    return Node(key, columns, Categorical(), Setting((key,), groups, levels))


@dataclass(frozen=True)
class Part:
    """Codes of some rows, 0 where missing, and where a sequence begins."""

    codes: np.ndarray
    start: int
    begins: tuple[int, ...] = (0,)

    @property
    def n_rows(self) -> int:
        return len(self.codes)


@register_model
@dataclass(frozen=True, eq=False)
class Pair(Model):
    """A network of two columns, the second hanging on the first; either cell of a row may be missing."""

    schema: Schema
    nodes: Nodes

    name: ClassVar[str] = "test-pair"

    @classmethod
    def of(cls, schema: Schema) -> Pair:
        first, second = schema.used
        one = node(str(first.key), tuple(first.levels), 1, (str(first.key),))
        two = node(str(second.key), tuple(second.levels), len(first.levels), (str(second.key),))
        return cls(schema, Nodes((one, two)))

    def prepare(self, chunk: Chunk, base: bool = True) -> Part:
        return Part(chunk.codes, chunk.start)

    def compile(self, params: Params) -> np.ndarray:
        first, second = (params[key]["probability"] for key in self.nodes.places)
        with np.errstate(divide="ignore"):
            return np.log(first[0])[:, None] + np.log(second)

    def expect(self, compiled: np.ndarray, ready: Part, assign: Any = None) -> Counts:
        known = [
            (ready.codes[:, j, None] == 0) | (ready.codes[:, j, None] == np.arange(1, size + 1))
            for j, size in enumerate(compiled.shape)
        ]
        joint = np.where(known[0][:, :, None] & known[1][:, None, :], compiled, -np.inf)
        likelihood = logsumexp(joint, axis=(1, 2))
        said = (ready.codes > 0).any(axis=1)  # a row that says nothing counts for nothing
        cells = np.exp(joint - likelihood[:, None, None])[said].sum(axis=0)
        one, two = (bundle.name for bundle in self.nodes.bundles)
        arrays = {one: Twofold.of(cells.sum(axis=1)[None, None]), two: Twofold.of(cells[:, None])}
        return Counts(arrays, float(said.sum()), float(likelihood[said].sum()))

    @classmethod
    def from_filed(cls, filed: Any, schema: Schema, nodes: tuple[Node, ...]) -> Pair:
        return cls(schema, Nodes(nodes))


@register_model
@dataclass(frozen=True, eq=False)
class Chain(Model):
    """Two hidden states, each with its own successor and its own symbols; a missing symbol says nothing."""

    schema: Schema
    nodes: Nodes

    name: ClassVar[str] = "test-chain"

    @classmethod
    def of(cls, schema: Schema) -> Chain:
        (spec,) = schema.used
        symbols = node(str(spec.key), tuple(spec.levels), 2, (str(spec.key),))
        return cls(schema, Nodes((node("(first)", (0, 1), 1), node("(next)", (0, 1), 2), symbols)))

    def prepare(self, chunk: Chunk, base: bool = True) -> Part:
        begins = (0,) if chunk.borders is None else tuple(chunk.borders.tolist())
        return Part(chunk.codes[:, 0], chunk.start, begins)

    def compile(self, params: Params) -> list[np.ndarray]:
        first, following, symbols = (params[key]["probability"] for key in self.nodes.places)
        return [first[0], following, np.column_stack([np.ones(2), symbols])]

    def expect(self, compiled: list[np.ndarray], ready: Part, assign: Any = None) -> Counts:
        first, following, symbols = compiled
        totals, height = [np.zeros_like(part) for part in compiled], 0.0
        for begin, end in pairwise([*ready.begins, ready.n_rows]):
            shown = symbols[:, ready.codes[begin:end]].T
            forward, scale = np.zeros_like(shown), np.zeros(len(shown))
            for t, here in enumerate(shown):
                forward[t] = (forward[t - 1] @ following if t else first) * here
                scale[t] = forward[t].sum()
                forward[t] /= scale[t]
            later = np.ones(2)
            for t in range(len(shown) - 1, -1, -1):
                members = forward[t] * later
                totals[2][:, ready.codes[begin + t]] += members
                if t:
                    weighed = shown[t] * later / scale[t]
                    totals[1] += forward[t - 1][:, None] * following * weighed
                    later = following @ weighed
                else:
                    totals[0] += members
            height += float(np.log(scale).sum())
        names = [bundle.name for bundle in self.nodes.bundles]
        arrays = zip(names, (totals[0][None, None], totals[1][:, None], totals[2][:, None, 1:]), strict=True)
        return Counts({name: Twofold.of(array) for name, array in arrays}, float(ready.n_rows), height)

    @classmethod
    def from_filed(cls, filed: Any, schema: Schema, nodes: tuple[Node, ...]) -> Chain:
        return cls(schema, Nodes(nodes))


# -- tables


def pairs(rows: int = 400) -> dict[str, list[Any]]:
    """Weather and whether one walks, a third of the cells missing."""
    rng = np.random.default_rng(3)
    sky = rng.choice(["fog", "rain", "sun"], rows, p=[0.2, 0.3, 0.5])
    walks = np.where(rng.random(rows) < np.where(sky == "sun", 0.8, 0.3), "yes", "no")
    hidden = rng.random((2, rows)) < 0.33
    return {
        name: [None if gone else str(cell) for cell, gone in zip(cells, hide, strict=True)]
        for name, cells, hide in zip(("sky", "walks"), (sky, walks), hidden, strict=True)
    }


def symbols(rows: int = 300) -> dict[str, list[Any]]:
    rng = np.random.default_rng(5)
    state, shown = 0, []
    for _ in range(rows):
        state = state if rng.random() < 0.9 else 1 - state
        shown.append(
            None
            if rng.random() < 0.1
            else str(rng.choice(["a", "b", "c"], p=[[0.7, 0.2, 0.1], [0.1, 0.3, 0.6]][state]))
        )
    return {"shown": shown}


KINDS = {"pair": (Pair, pairs), "chain": (Chain, symbols)}
every_kind = pytest.mark.parametrize("kind", KINDS)


def problem_of(kind: str, how: Any = "mean") -> Problem:
    """The model of its table, with one imagined row for every group of every node."""
    made, rows = KINDS[kind]
    table = open_table(rows(), kinds="categorical")
    chunks = [task() for task in table.tasks()]
    settled = table.settle()
    model: Model = made.of(settled.schema)
    parts = [model.prepare(settled.recoded(chunk)) for chunk in chunks]
    hypers = {x.key: {"alpha": np.full(len(x.setting.levels), 1.0 / len(x.setting.levels))} for x in model.nodes}
    return Problem(model, Imagined(hypers, how), parts, Threads(1))


def start(problem: Problem, seed: int) -> Params:
    rng = np.random.default_rng(seed)
    sizes = {x.key: (x.setting.groups, len(x.setting.levels)) for x in problem.nodes}
    drawn = {
        key: {"probability": rng.dirichlet(np.ones(levels), groups), "unseen": np.zeros(groups)}
        for key, (groups, levels) in sizes.items()
    }
    return problem.nodes.params(drawn)


def starts(problem: Problem, count: int) -> Iterator[list[Any]]:
    for seed in range(count):
        yield [lambda seed=seed: start(problem, seed)]  # type: ignore[misc]


# -- what they must show


def test_the_network_says_what_every_way_to_fill_its_holes_says() -> None:
    problem = problem_of("pair")
    params = start(problem, 0)
    table = problem.model.compile(params)
    for part in problem.rows:
        right = 0.0
        for first, second in part.codes.tolist():
            if first or second:
                ways = product([first] if first else (1, 2, 3), [second] if second else (1, 2))
                right += np.log(sum(np.exp(table[a - 1, b - 1]) for a, b in ways))
        assert problem.model.expect(table, part).log_likelihood == pytest.approx(right, rel=1e-12)


def test_the_chain_says_what_every_path_of_states_says() -> None:
    problem = problem_of("chain")
    first, following, shown = compiled = problem.model.compile(start(problem, 1))
    codes = np.array([1, 3, 0, 2, 2, 1, 1])
    paths = [
        first[path[0]] * np.prod([following[a, b] for a, b in pairwise(path)]) * np.prod(shown[list(path), codes])
        for path in product((0, 1), repeat=len(codes))
    ]
    counts = problem.model.expect(compiled, Part(codes, 0))
    assert counts.log_likelihood == pytest.approx(np.log(sum(paths)), rel=1e-12)
    assert counts["(next)"].sum() == pytest.approx(len(codes) - 1) and counts["(first)"].sum() == pytest.approx(1)
    cut = problem.model.expect(compiled, Part(codes, 0, (0, 3)))
    assert cut["(next)"].sum() == pytest.approx(len(codes) - 2) and cut["(first)"].sum() == pytest.approx(2)


@every_kind
@pytest.mark.parametrize("how", ["ml", "mean"])
def test_leaps_come_to_the_same_top_in_fewer_maps_and_never_fall(kind: str, how: str) -> None:
    problem = problem_of(kind, how)
    plain, leaping = (run_em(problem, start(problem, 2), Stop(3000, 1e-12, accelerate=leap)) for leap in (False, True))
    assert plain.converged and leaping.converged and leaping.fell == 0
    assert (np.diff(leaping.trace) >= -1e-12 * abs(leaping.trace[-1])).all()
    assert leaping.trace[-1] == pytest.approx(plain.trace[-1], rel=1e-10)
    assert leaping.n_iter < plain.n_iter or plain.n_iter < 12
    assert problem.bound(leaping.counts, problem.estimate(leaping.counts)) == pytest.approx(
        problem.bound(leaping.counts, leaping.params), abs=1e-6
    )


@every_kind
def test_several_starts_are_searched_and_agree(kind: str) -> None:
    problem = problem_of(kind)
    found = Search(problem, problem, Plan(stop=Stop(2000, 1e-10, accelerate=True))).best_of(list(starts(problem, 5)))
    alone = [run_em(problem, start(problem, seed), Stop(2000, 1e-10, accelerate=True)) for seed in range(5)]
    assert found.tried == 5 and found.best.converged
    assert found.best.objective >= max(one.objective for one in alone) - 1e-6
    assert found.agreed == sum(one.objective >= found.best.objective - 1e-3 for one in alone)


@every_kind
def test_they_are_saved_and_loaded(kind: str, tmp_path: Path) -> None:
    problem = problem_of(kind)
    end = run_em(problem, start(problem, 2), Stop(500, 1e-10, accelerate=True))
    counts = problem.nodes.unstacked(end.counts)
    learned: Any = Learned(problem.model, end.params, counts, problem.imagined, trace=end.trace)  # type: ignore[arg-type]
    save_model(learned, tmp_path / "other.sc")
    back, _ = load_model(tmp_path / "other.sc", *read(tmp_path / "other.sc"))
    assert type(back.model) is type(problem.model) and back.trace == end.trace
    for key in problem.nodes.places:
        assert np.array_equal(back.estimates[key]["probability"], end.params[key]["probability"])
        assert np.array_equal(back.counts[key], counts[key])
    again = Problem(back.model, back.imagined, problem.ready)
    assert again.expected(back.estimates).log_likelihood == end.counts.log_likelihood


def test_they_are_known_by_name() -> None:
    assert {"star", Pair.name, Chain.name} <= set(MODELS)
