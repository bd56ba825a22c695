"""Averaged stars and correlated blocks in a graph: products of matrices, where a node for every pair took minutes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from softcount.export.block_formulas import HALF_LOG_2PI, BlockDensity, student_tops
from softcount.export.formulas import Formula, LevelCode, Whole, formula, log1p
from softcount.export.onnx_formulas import OnnxGraph
from softcount.export.star_formulas import StarsMean
from softcount.families.setting import CLAMPED, IMPOSSIBLE

LONG = np.int64


def written_whole(graph: OnnxGraph, of: Whole) -> str:
    """The tensor of a formula over all columns."""
    if isinstance(of, StarsMean):
        return _stars(graph, of) if of.codes else graph.written(of.out)
    return _block(graph, of) if isinstance(of, BlockDensity) else graph.written(of.out)


def _given(graph: OnnxGraph, name: str) -> Formula:
    """A tensor as a formula, to be part of larger ones."""
    found = Formula()
    graph.kept.append(found)
    graph.made[id(found)] = name
    return found


# -- averaged stars


def _stars(graph: OnnxGraph, of: StarsMean) -> str:
    """Cells as ones among zeros, times the table of every class: the sums of all stars, those of the parents kept."""
    stars, node, known = of.stars, graph.node, graph.known
    places = node("Concat", *(_place(graph, of, parent) for parent in range(len(of.codes))), axis=1)
    ones = node("Cast", node("GreaterOrEqual", places, known([[0]], LONG)), to=11)
    shape = node("Concat", node("Shape", places, end=1), known([stars.terms.width], LONG), axis=0)
    zeros = node("Expand", known([[0.0]]), shape)
    cells = node("Unsqueeze", node("ScatterElements", zeros, places, ones, axis=1), known([0], LONG))
    sums = node("MatMul", cells, known(np.maximum(stars.given, CLAMPED)))
    sums = node("Add", sums, known(_alone(of)))
    every = node("Shape", node("ReduceMax", sums, axes=[2], keepdims=1))
    wide = node("Mul", every, known([1, 1, len(of.codes)], LONG))
    found = node("GatherElements", sums, node("Expand", node("Unsqueeze", places, known([0], LONG)), wide), axis=2)
    return _mean(graph, of, found)


def _place(graph: OnnxGraph, of: StarsMean, parent: int) -> str:
    """Which cell of all columns a parent's is; the first where nothing is known."""
    code, node, known = of.codes[parent], graph.node, graph.known
    ends = [*of.stars.terms.offsets.tolist(), of.stars.terms.width]
    own, first, size = graph.code(code), ends[parent], ends[parent + 1] - ends[parent]
    there = node("Greater", own, known([[0]], LONG))
    if isinstance(code, LevelCode):
        there = node("And", there, node("Less", own, known([[size + 1]], LONG)))
    return node("Where", there, node("Add", own, known([[first - 1]], LONG)), known([[0]], LONG))


def _alone(of: StarsMean) -> np.ndarray:
    """(classes x 1 x cells) what the class and the parent say; nothing is possible without a parent."""
    table: np.ndarray = np.maximum(of.stars.shares[:, None] + of.stars.alone, CLAMPED)
    table[:, 0] = CLAMPED
    return table[:, None]


def _mean(graph: OnnxGraph, of: StarsMean, stars: str) -> str:
    """The logarithm of the mean of (classes x rows x stars) over those that are possible."""
    node, known = graph.node, graph.known
    last = known([2], LONG)
    top = node("ReduceMax", stars, axes=[2], keepdims=1)
    whole = node("Log", node("ReduceSum", node("Exp", node("Sub", stars, top)), last, keepdims=0))
    possible = node("GreaterOrEqual", stars, known([[[IMPOSSIBLE]]]))
    count = node("ReduceSum", node("Cast", possible, to=11), last, keepdims=0)
    shared = node("Log", node("Max", count, known([[1.0]])))
    mean = node("Sub", node("Add", node("Squeeze", top, last), whole), shared)
    mean, count = (node("Transpose", each, perm=[1, 0]) for each in (mean, count))
    none = node("Equal", count, known([[0.0]]))
    return node("Where", none, graph.written(formula(of.stars.shares)), mean)


# -- correlated blocks


def _block(graph: OnnxGraph, of: BlockDensity) -> str:
    """Whole rows by one product for each group; rows with holes one by one, what is missing being eliminated."""
    form, node, known = of.form, graph.node, graph.known
    unit = np.sqrt(np.diagonal(form["covariance"], axis1=1, axis2=2))
    scaled = form["covariance"] / (unit[:, :, None] * unit[:, None, :])
    holes = node("IsNaN", node("Concat", *(graph.cell(key) for key in of.keys), axis=1))
    values = node("Concat", *(graph.written(value) for value in of.values), axis=1)
    values = node("Where", holes, known([[0.0]]), values)
    offs = node("Sub", node("Unsqueeze", values, known([0], LONG)), known(form["mean"][:, None]))
    there = node("Cast", node("Not", holes), to=11)
    offs = node("Mul", node("Div", offs, known(unit[:, None])), node("Unsqueeze", there, known([0], LONG)))
    root = np.linalg.cholesky(scaled)
    turn = np.linalg.solve(root, np.broadcast_to(np.eye(len(of.keys)), root.shape))
    lines = node("MatMul", offs, known(turn.transpose(0, 2, 1)))
    squares = node("ReduceSum", node("Mul", lines, lines), known([2], LONG), keepdims=0)
    distance = node("Transpose", squares, perm=[1, 0])
    log_root = np.log(np.diagonal(root, axis1=1, axis2=2)).sum(axis=1)
    roots = node("Add", known(log_root[None]), node("Mul", distance, known([[0.0]])))
    distance, roots = _with_holes(graph, (distance, roots), (holes, offs), scaled)
    count = node("ReduceSum", there, known([1], LONG), keepdims=1)
    units = node("MatMul", there, known(np.log(unit).T))
    found = _density(graph, of, distance, count)
    return node("Sub", node("Sub", found, roots), units)


def _density(graph: OnnxGraph, of: BlockDensity, distance: str, count: str) -> str:
    """The density of so many numbers at a squared distance, where the covariance has determinant one."""
    node, known = graph.node, graph.known
    if "freedom" not in of.form:
        return node("Sub", node("Mul", count, known([[-HALF_LOG_2PI]])), node("Mul", distance, known([[0.5]])))
    freedom, stretch, tops = student_tops(of.form, len(of.keys))
    top = node("Gather", known(tops), graph.flat(node("Cast", count, to=7)), axis=0)
    bent = graph.written(log1p(_given(graph, node("Div", distance, known((freedom * stretch)[None])))))
    power = node("Mul", node("Add", count, known(freedom[None])), known([[0.5]]))
    return node("Sub", top, node("Mul", bent, power))


def _with_holes(graph: OnnxGraph, whole: tuple[str, str], row: tuple[str, str], scaled: np.ndarray) -> tuple[str, str]:
    """Distances and halves of log-determinants with those of rows that have holes put in their places."""
    node, known = graph.node, graph.known
    # One more row of nothing, as there must be one with holes.
    size = scaled.shape[1]
    holes = node("Concat", row[0], known(np.ones((1, size), bool), bool), axis=0)
    offs = node("Concat", row[1], known(np.zeros((len(scaled), 1, size))), axis=1)
    some = node("ReduceMax", node("Cast", holes, to=7), axes=[1], keepdims=0)
    rows = node("Transpose", node("NonZero", some), perm=[1, 0])  # (rows with holes x 1)
    flat = graph.flat(rows)
    each = node("Transpose", offs, perm=[1, 0, 2])
    gone, apart = node("Gather", holes, flat, axis=0), node("Gather", each, flat, axis=0)
    body = _row_body(graph, scaled)
    found = [graph.name(), graph.name()]
    graph.nodes.append(graph.onnx.helper.make_node("Scan", [gone, apart], found, body=body, num_scan_inputs=2))
    both = []
    for all_, own in zip(whole, found, strict=True):
        longer = node("Concat", all_, known(np.zeros((1, len(scaled)))), axis=0)
        put = node("ScatterND", longer, rows, own)
        both.append(node("Slice", put, known([0], LONG), known([-1], LONG), known([0], LONG)))
    return both[0], both[1]


def _row_body(graph: OnnxGraph, scaled: np.ndarray) -> Any:
    """Of one row: missing numbers have the variance one and depend on no other; column after column is eliminated."""
    groups, size = scaled.shape[:2]
    onnx, eye = graph.onnx, np.eye(size)[None]
    hole, off = graph.name(), graph.name()

    def steps() -> list[str]:
        node, known = graph.node, graph.known
        pair = node("Or", node("Unsqueeze", hole, known([0], LONG)), node("Unsqueeze", hole, known([1], LONG)))
        matrix = node("Where", pair, known(eye), known(scaled))
        column = node("Unsqueeze", off, known([2], LONG))
        zero = known(np.zeros(groups))
        found = [graph.name() for _ in range(4)]
        body = _column_body(graph, groups, size)
        start = [known(size, LONG), "", matrix, column, zero, zero]
        graph.nodes.append(onnx.helper.make_node("Loop", start, found, body=body))
        return found[2:]

    kind = onnx.TensorProto
    given = [(hole, kind.BOOL, [size]), (off, kind.DOUBLE, [groups, size])]
    return _inside(graph, given, steps, [(kind.DOUBLE, [groups]), (kind.DOUBLE, [groups])])


def _column_body(graph: OnnxGraph, groups: int, size: int) -> Any:
    """One column less: the covariance and offsets of the others given it, what it adds to distance and determinant."""
    kind = graph.onnx.TensorProto
    place, going, matrix, column, distance, roots = (graph.name() for _ in range(6))

    def steps() -> list[str]:
        node, known = graph.node, graph.known
        at = node("Unsqueeze", place, known([0], LONG))
        own = node("Gather", matrix, at, axis=2)
        pivot, off = node("Gather", own, at, axis=1), node("Gather", column, at, axis=1)
        share = node("Div", own, pivot)
        rest = node("Sub", matrix, node("Mul", share, node("Gather", matrix, at, axis=1)))
        # The eliminated column is never a pivot again: what is left of it does not matter.
        others = node("Sub", column, node("Mul", share, off))
        both = known([1, 2], LONG)
        square = node("Squeeze", node("Div", node("Mul", off, off), pivot), both)
        root = node("Mul", node("Squeeze", node("Log", pivot), both), known([0.5]))
        go_on = node("Identity", going)
        return [go_on, rest, others, node("Add", distance, square), node("Add", roots, root)]

    shapes = [(matrix, [groups, size, size]), (column, [groups, size, 1]), (distance, [groups]), (roots, [groups])]
    given = [(place, kind.INT64, []), (going, kind.BOOL, []), *((name, kind.DOUBLE, shape) for name, shape in shapes)]
    return _inside(graph, given, steps, [(kind.BOOL, []), *((kind.DOUBLE, shape) for _, shape in shapes)])


def _inside(graph: OnnxGraph, given: list[Any], steps: Callable[[], list[str]], made: list[Any]) -> Any:
    """A graph within the graph, of the nodes that these steps add."""
    helper, outer = graph.onnx.helper, graph.nodes
    graph.nodes = []
    names = steps()
    inner, graph.nodes = graph.nodes, outer
    ins = [helper.make_tensor_value_info(*each) for each in given]
    outs = [helper.make_tensor_value_info(name, *each) for name, each in zip(names, made, strict=True)]
    return helper.make_graph(inner, graph.name(), ins, outs)
