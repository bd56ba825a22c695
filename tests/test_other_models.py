"""Models that the library does not have, a screen each: fitted, searched, saved, loaded, explained, shown, exported.

A tree of columns of categories with missing cells, and a chain of two hidden states that emit symbols.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from itertools import pairwise, product
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import pytest
from click.testing import CliRunner
from msgspec import Struct

import softcount as sc
from softcount.cli import main
from softcount.core.counts import ROOT, Counts, Twofold
from softcount.core.formulas import CombinedCode, LevelCode, LookUp, formula
from softcount.core.special import log_of
from softcount.export.scoring_plan import DrawnRows, ScoringPlan, describe_columns
from softcount.export.sql_query import as_sql
from softcount.families import Categorical, Setting
from softcount.families.base import family_title
from softcount.files.model_file import save_model
from softcount.fit import fit
from softcount.fitted.answers import Conditioned
from softcount.fitted.conditions import Levels, any_of, condition_of, not_
from softcount.fitted.explain import Explanation, runner_up
from softcount.fitted.fitted import FITTED, FittedTable, register_fitted
from softcount.learn.em import run_em
from softcount.learn.record import Plan, Stop
from softcount.learn.search import Search
from softcount.models.base import MODELS, Model, Problem, register_model
from softcount.models.nodes import Imagined, Node, Nodes, Params
from softcount.report.report import make_report
from softcount.run.local import Threads
from softcount.table import Chunk, Table, open_table
from softcount.table.schema import Key, Schema


def node(key: str, levels: tuple[Any, ...], groups: int, columns: tuple[str, ...] = ()) -> Node:
    return Node(key, columns, Categorical(), Setting((key,), groups, levels))


class Part(Struct, frozen=True):
    """Codes of some rows, 0 if missing, and where a sequence begins."""

    codes: np.ndarray
    start: int = 0
    begins: tuple[int, ...] = (0,)

    @property
    def n_rows(self) -> int:
        return len(self.codes)


def explanation(scores: Mapping[Key, np.ndarray]) -> Explanation:
    """Explain the most probable group of each row; `scores` are (rows x groups) parts of its log-probability."""
    joint = sum(scores.values())
    rows, chosen = np.arange(len(joint)), joint.argmax(axis=1)
    other = runner_up(joint, chosen)
    return Explanation({key: part[rows, chosen] - part[rows, other] for key, part in scores.items()}, chosen, other)


def drawn_rows(cells: Mapping[Key, list[Any]], scores: np.ndarray) -> DrawnRows:
    proba = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    return DrawnRows(cells, proba, proba.argmax(axis=1))


# -- a tree


class FiledTree(Struct, frozen=True):
    parents: tuple[int, ...]
    groups: Literal[1] = 1


@register_model
class Tree(Model, Struct, frozen=True, eq=False):
    """Columns of categories, each but the first depending on an earlier one; any cell may be missing."""

    schema: Schema
    nodes: Nodes
    parents: tuple[int, ...] = (-1, 0, 1)

    name: ClassVar[str] = "test-tree"
    filed_as: ClassVar[type[Struct]] = FiledTree

    @classmethod
    def of(cls, schema: Schema) -> Tree:
        sizes = [len(spec.levels) for spec in schema.used]
        groups = [1 if parent < 0 else sizes[parent] for parent in (-1, 0, 1)]
        named = [(str(spec.key), tuple(spec.levels)) for spec in schema.used]
        own = [node(key, levels, count, (key,)) for (key, levels), count in zip(named, groups, strict=True)]
        return cls(schema, Nodes(tuple(own)))

    def prepare(self, chunk: Chunk, base: bool = True) -> Part:
        return Part(chunk.codes, chunk.start)

    def compile(self, params: Params) -> list[np.ndarray]:
        return [params[key]["probability"] for key in self.nodes.places]

    def messages(self, tables: list[np.ndarray], codes: np.ndarray) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """Return the probability of each subtree given the category of its first column, and of that one's parent."""
        levels = [1 + np.arange(table.shape[1]) for table in tables]
        below = [(code == 0) | (code == own) for code, own in zip(codes.T[:, :, None], levels, strict=True)]
        sent = [np.zeros(0)] * len(tables)
        for j in reversed(range(len(tables))):
            sent[j] = below[j] @ tables[j].T
            if j:
                below[self.parents[j]] = below[self.parents[j]] * sent[j]
        return below, sent

    def expect(self, compiled: list[np.ndarray], ready: Part, assign: Any = None) -> Counts:
        below, sent = self.messages(compiled, ready.codes)
        members, counts = {-1: np.ones((ready.n_rows, 1))}, []
        for j, (table, parent) in enumerate(zip(compiled, self.parents, strict=True)):
            share = members[parent] / np.where(sent[j] > 0, sent[j], 1.0)
            joint = share[:, :, None] * table * below[j][:, None]
            members[j] = joint.sum(axis=1)
            counts.append(Twofold.of(joint.sum(axis=0)))
        named = dict(zip(self.nodes.places, counts, strict=True))
        return self.nodes.stacked(Counts(named, float(ready.n_rows), float(log_of(sent[0]).sum())))

    def filed(self) -> FiledTree:
        return FiledTree(self.parents)

    @classmethod
    def from_filed(cls, filed: Any, schema: Schema, nodes: tuple[Node, ...]) -> Tree:
        return cls(schema, Nodes(nodes), filed.parents)


class TreeGiven(Conditioned, Struct, frozen=True):
    """A tree given some values: the joint table of its columns, with zeros where it contradicts them."""

    levels: dict[Key, Any]
    known: dict[Key, Any]
    joint: np.ndarray

    @property
    def log_probability(self) -> float:
        return float(np.log(self.joint.sum()))

    @property
    def columns(self) -> list[Key]:
        return [key for key in self.levels if key not in self.known]

    def answer(self, of: Any) -> Any:
        others = tuple(axis for axis, key in enumerate(self.levels) if key != of)
        return dict(zip(self.levels[of], (self.joint.sum(axis=others) / self.joint.sum()).tolist(), strict=True))

    def draw(self, n: int, rng: np.random.Generator) -> dict[str, Any]:
        cells = rng.choice(self.joint.size, n, p=self.joint.ravel() / self.joint.sum())
        codes = zip(self.levels.items(), np.unravel_index(cells, self.joint.shape), strict=True)
        return {str(key): [levels[code] for code in own] for (key, levels), own in codes}


@register_fitted(Tree.name)
class FittedTree(FittedTable, frozen=True, eq=False):
    """A fitted tree; it predicts its first column."""

    def condition(self, given: Any) -> TreeGiven:
        known, tables = self.read_given(given), self.model.compile(self.estimates)
        levels = {own.key: own.setting.levels for own in self.model.nodes}
        ways = [
            (condition_of(known[key]) or any_of(known[key])).allows(Levels(str(key), own)) if key in known
            else np.ones(len(own)) for key, own in levels.items()
        ]  # fmt: skip
        return TreeGiven(levels, known, np.einsum("a,ab,bc,a,b,c->abc", tables[0][0], *tables[1:], *ways))

    @property
    def imputed_columns(self) -> list[Key]:
        return list(self.model.nodes.places)

    def expected_cells(self, table: Table) -> Iterator[tuple[Chunk, Any]]:
        for task in table.tasks():
            yield (chunk := task()), partial(self._expect, chunk)

    def _expect(self, chunk: Chunk, column: Key, rows: np.ndarray) -> tuple[np.ndarray, None]:
        fields = [spec for spec in self.schema.used if spec.key != column]
        shown = [{x.key: x.levels[chunk.codes[row, self.schema.places[x.key].slot] - 1] for x in fields
                  if chunk.codes[row, self.schema.places[x.key].slot]} for row in rows]  # fmt: skip
        answers = [self.query(column, given) for given in shown]
        return np.array([max(own, key=own.__getitem__) for own in answers], dtype=object), None

    @property
    def families(self) -> dict[Key, Any]:
        return {own.key: own.family for own in self.model.nodes}

    def scores(self, codes: np.ndarray) -> dict[Key, np.ndarray]:
        """Return the prior's and each subtree's part of the log-probability of the first column's categories."""
        tables = self.model.compile(self.estimates)
        _, sent = self.model.messages(tables, codes * (np.arange(codes.shape[1]) > 0))
        below = zip(self.model.nodes.places, sent, self.model.parents, strict=True)
        prior = np.broadcast_to(log_of(tables[0]), (len(codes), len(tables[0].T)))
        return {ROOT: prior} | {key: log_of(own) for key, own, parent in below if parent == 0}

    def explain(self, table: Table) -> Explanation:
        return explanation(self.scores(np.concatenate([task().codes for task in table.tasks()])))

    def _export_plan(self) -> ScoringPlan:
        first, *others = self.model.nodes
        sizes = tuple(1 + len(own.setting.levels) for own in others)
        code = CombinedCode(tuple(LevelCode(own.key, len(own.setting.levels)) for own in others), sizes)
        table = sum(self.scores(np.array([(0, *codes) for codes in np.ndindex(*sizes)])).values())
        columns = describe_columns(self, [own.key for own in others])
        return ScoringPlan(tuple(columns), (LookUp(code, table),), first.setting.levels)

    def _export_rows(self) -> DrawnRows:
        ways = {own.key: [None, *own.setting.levels] for own in [*self.model.nodes][1:]}
        cells = dict(zip(ways, map(list, zip(*product(*ways.values()), strict=True)), strict=True))
        return drawn_rows(cells, self._export_plan().terms[0].table)


# -- a chain


@register_model
class Chain(Model, Struct, frozen=True, eq=False):
    """Two hidden states, each with its own successors and its own symbols; a symbol may be missing."""

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

    def passes(self, compiled: list[np.ndarray], ready: Part) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the probability of each state given the steps before, of the symbol, and relatively of those after."""
        first, following, symbols = compiled
        shown, filtered = symbols[:, ready.codes].T, first
        before, after = np.empty_like(shown), np.ones_like(shown)
        for t in range(ready.n_rows):
            before[t] = first if t in ready.begins else filtered @ following
            filtered = before[t] * shown[t] / (before[t] @ shown[t])
        for t in reversed(sorted({*range(ready.n_rows)} - {*ready.begins})):
            after[t - 1] = following @ (shown[t] * after[t] / (before[t] @ shown[t]))
        return before, shown, after

    def expect(self, compiled: list[np.ndarray], ready: Part, assign: Any = None) -> Counts:
        before, shown, after = self.passes(compiled, ready)
        scale = (before * shown).sum(axis=1, keepdims=True)
        inner = np.array(sorted({*range(ready.n_rows)} - {*ready.begins}))
        filtered, ahead = before * shown / scale, shown * after / scale
        emitted = np.zeros(compiled[2].T.shape)
        np.add.at(emitted, ready.codes, filtered * after)
        nexts = compiled[1] * (filtered[inner - 1].T @ ahead[inner])
        totals = ((filtered * after)[list(ready.begins)].sum(axis=0)[None], nexts, emitted[1:].T)
        named = dict(zip(self.nodes.places, map(Twofold.of, totals), strict=True))
        return self.nodes.stacked(Counts(named, float(ready.n_rows), float(np.log(scale).sum())))

    @classmethod
    def from_filed(cls, filed: Any, schema: Schema, nodes: tuple[Node, ...]) -> Chain:
        return cls(schema, Nodes(nodes))


@register_fitted(Chain.name)
class FittedChain(FittedTable, frozen=True, eq=False):
    """A fitted chain. What is exported is the state of a single step, with the long-run shares of the states."""

    @property
    def families(self) -> dict[Key, Any]:
        return {own.key: own.family for own in self.model.nodes}

    def explain(self, table: Table) -> Explanation:
        (chunk,) = (task() for task in table.tasks())
        parts = self.model.passes(self.model.compile(self.estimates), self.model.prepare(chunk))
        names = ("(before)", self.schema.used[0].key, "(after)")
        return explanation(dict(zip(names, map(log_of, parts), strict=True)))

    def _export_plan(self) -> ScoringPlan:
        _, following, symbols = self.model.compile(self.estimates)
        (spec,) = self.schema.used
        emitted = np.vstack([log_of(symbols).T, np.zeros(2)])  # a symbol that was never seen counts as missing
        terms = formula(log_of(np.linalg.matrix_power(following, 1 << 20)[0]))
        found = LookUp(LevelCode(spec.key, len(spec.levels)), emitted)
        return ScoringPlan(tuple(describe_columns(self, [spec.key])), (terms, found), (0, 1))

    def _export_rows(self) -> DrawnRows:
        shares, emitted = self._export_plan().terms
        (spec,) = self.schema.used
        return drawn_rows({spec.key: [None, *spec.levels]}, shares.values + emitted.table[:-1])


# -- tables


def walks(rows: int = 400) -> dict[str, list[Any]]:
    """The weather, whether one walks, and with which shoes, a third of the cells missing."""
    rng = np.random.default_rng(3)
    sky = rng.choice(["fog", "rain", "sun"], rows, p=[0.2, 0.3, 0.5])
    walked = np.where(rng.random(rows) < np.where(sky == "sun", 0.8, 0.3), "yes", "no")
    shoes = np.where(rng.random(rows) < np.where(walked == "yes", 0.7, 0.2), "boots", "slippers")
    hidden = rng.random((3, rows)) < 0.33
    return {
        name: [None if gone else str(cell) for cell, gone in zip(cells, hide, strict=True)]
        for name, cells, hide in zip(("sky", "walked", "shoes"), (sky, walked, shoes), hidden, strict=True)
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


KINDS = {"tree": (Tree, walks), "chain": (Chain, symbols)}
every_kind = pytest.mark.parametrize("kind", KINDS)


def problem_of(kind: str, how: Any = "mean") -> Problem:
    """The model of its table, with one imagined row for every group of every node."""
    return learned_from(open_table(KINDS[kind][1](), kinds="categorical"), kind, how)


def learned_from(table: Table, kind: str, how: Any = "mean") -> Problem:
    chunks = [task() for task in table.tasks()]
    settled = table.settle()
    model: Model = KINDS[kind][0].of(settled.schema)
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


def test_the_tree_has_the_likelihood_of_every_way_to_fill_its_missing_cells() -> None:
    problem = problem_of("tree")
    tables = problem.model.compile(start(problem, 0))
    for part in problem.rows:
        right = 0.0
        for row in part.codes.tolist():
            ways = product(
                *([code - 1] if code else range(table.shape[1]) for code, table in zip(row, tables, strict=True))
            )
            right += np.log(sum(tables[0][0, a] * tables[1][a, b] * tables[2][b, c] for a, b, c in ways))
        assert problem.model.expect(tables, part).log_likelihood == pytest.approx(right, rel=1e-12)


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


class FitByEM(Struct, frozen=True):
    """Learn a model of this file through the front door."""

    kind: str

    def settle(self, table: Table, runner: Threads, evaluated: bool = False) -> tuple[Table, FitByEM]:
        return table, self

    def learn(self, table: Table, runner: Threads) -> Any:
        problem = learned_from(table, self.kind)
        end = run_em(problem, start(problem, 2), Stop(500, 1e-10, accelerate=True))
        counts, answers = problem.nodes.unstacked(end.counts), FITTED[problem.model.name]
        return answers(problem.model, end.params, counts, problem.imagined, trace=end.trace)  # type: ignore[arg-type]

    def complete(self, fitted: Any, table: Table, runner: Threads) -> Any:
        return fitted


@pytest.fixture(scope="module", params=KINDS)
def fitted(request: Any) -> Any:
    table = open_table(KINDS[request.param][1](), kinds="categorical")
    return fit(table, FitByEM(request.param), Threads(1))


def test_they_are_saved_and_loaded(fitted: Any, tmp_path: Path) -> None:
    save_model(fitted, tmp_path / "other.sc")
    back = sc.load(tmp_path / "other.sc")
    assert type(back) is type(fitted) and type(back.model) is type(fitted.model) and back.trace == fitted.trace
    assert back.record.table == fitted.record.table is not None
    for key in fitted.model.nodes.places:
        assert np.array_equal(back.estimates[key]["probability"], fitted.estimates[key]["probability"])
        assert np.array_equal(back.counts[key], fitted.counts[key])
    ready = [fitted.model.prepare(task()) for task in back.table(ROWS[fitted.model.name]).tasks()]
    again, before = (Problem(one.model, one.imagined, ready).expected(one.estimates) for one in (back, fitted))
    assert again.log_likelihood == before.log_likelihood


ROWS: dict[str, dict[str, list[Any]]] = {
    Tree.name: {"sky": [None] * 4, "walked": ["yes", None, "no", None], "shoes": [None, "boots", "boots", None]},
    Chain.name: {"shown": ["a", None, "c", "b"]},
}
"""Rows that are read again and explained."""


def test_what_is_asked_given_some_values_follows_from_one_method() -> None:
    tree = fit(open_table(walks(), kinds="categorical"), FitByEM("tree"), Threads(1))
    tables = tree.model.compile(tree.estimates)
    whole = np.einsum("a,ab,bc->abc", tables[0][0], *tables[1:])
    found = tree.query("walked", {"sky": not_("sun"), "shoes": "boots"})
    right = whole[:2, :, 0].sum(axis=0)
    assert list(found.values()) == pytest.approx(right / right.sum())
    assert tree.query(given={"sky": "fog"}).keys() == {"walked", "shoes"}
    assert tree.log_probability({"sky": not_("sun"), "shoes": "boots"}) == pytest.approx(np.log(right.sum()))
    drawn = tree.sample(2000, {"sky": "rain"}, np.random.default_rng(0))
    assert set(drawn["sky"]) == {"rain"}
    assert np.mean(np.array(drawn["walked"]) == "yes") == pytest.approx(
        tree.query("walked", {"sky": "rain"})["yes"], abs=0.05
    )
    rows, cells = tree.fills(tree.table(ROWS[Tree.name]))["shoes"]
    asked = tree.query("shoes", {"walked": "yes"})
    assert rows.tolist() == [0, 3] and cells[0] == max(asked, key=asked.__getitem__)
    with pytest.raises(sc.DataError, match="both `of` and given"):
        tree.query("sky", {"sky": "fog"})
    with pytest.raises(sc.DataError, match="mapping of columns to values"):
        tree.sample(1, ["fog"], np.random.default_rng(0))


def test_their_explanations_add_up_to_the_log_odds(fitted: Any) -> None:
    found = fitted.explain(fitted.table(ROWS[fitted.model.name]))
    odds = sum(found.parts.values())
    rows, tables = np.arange(len(odds)), fitted.model.compile(fitted.estimates)
    (chunk,) = (task() for task in fitted.table(ROWS[fitted.model.name]).tasks())
    if fitted.model.name == Tree.name:
        whole = np.einsum("a,ab,bc->abc", tables[0][0], *tables[1:])
        shown = [whole[:, slice(None) if b == 0 else [b - 1]][..., slice(None) if c == 0 else [c - 1]]
                 for _, b, c in chunk.codes.tolist()]  # fmt: skip
        joint = np.array([own.sum(axis=(1, 2)) for own in shown])
    else:
        first, following, symbols = tables
        joint = np.zeros((len(odds), 2))
        for path in product((0, 1), repeat=len(odds)):
            steps = np.prod([following[a, b] for a, b in pairwise(path)])
            joint[rows, path] += first[path[0]] * steps * np.prod(symbols[list(path), chunk.codes[:, 0]])
    assert (found.chosen == joint.argmax(axis=1)).all()
    np.testing.assert_allclose(odds, np.log(joint[rows, found.chosen] / joint[rows, found.against]), atol=1e-12)


def test_they_are_shown_and_exported(fitted: Any, tmp_path: Path) -> None:
    save_model(fitted, tmp_path / "other.sc")
    shown = CliRunner().invoke(main, ["show", str(tmp_path / "other.sc")])
    for page in (make_report(fitted).render(".txt"), shown.output):
        assert all(own.key in page and family_title(own.family) in page for own in fitted.model.nodes)
    query, check = as_sql(fitted, "sqlite", "rows", [])
    assert "SELECT" in query and check.difference < 1e-12


def test_they_are_known_by_name() -> None:
    assert {"star", Tree.name, Chain.name} <= set(MODELS) and {"star", Tree.name, Chain.name} <= set(FITTED)
