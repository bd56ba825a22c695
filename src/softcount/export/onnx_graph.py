"""A model as an ONNX graph."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from functools import partial, reduce
from typing import Any

import numpy as np
from msgspec.structs import replace

import softcount
from softcount.classify.members import AodeMean
from softcount.core import formulas as fm
from softcount.errors import DataError, import_extra
from softcount.export.scoring_plan import (
    DrawnRows,
    ExportCheck,
    Exported,
    InputColumn,
    ScoringPlan,
    compare,
    spell_level,
    type_names,
)
from softcount.export.sql_formulas import refuse_words
from softcount.families.setting import IMPOSSIBLE
from softcount.fitted.calibration import Curve
from softcount.sources.frames import number_words
from softcount.table.schema import Key, Kind, apart

LONG = np.int64
OPERATIONS = {
    "add": "Add", "subtract": "Sub", "multiply": "Mul", "divide": "Div", "log": "Log", "exp": "Exp", "largest": "Max",
}  # fmt: skip


def onnx_module() -> Any:
    return import_extra(
        "onnx", 'ONNX export needs onnx, which is not installed. Install it: pip install "softcount[onnx]"'
    )


class OnnxGraph:
    """Collects nodes and constants; equal formulas are computed once. `taken` are names of columns and outputs."""

    def __init__(self, columns: Sequence[InputColumn], taken: Collection[str]) -> None:
        self.onnx = onnx_module()
        self.columns = {column.key: column for column in columns}
        self.taken = set(taken)
        self.nodes: list[Any] = []
        self.numbers: list[Any] = []
        self.made: dict[Any, str] = {}
        self.kept: list[Any] = []

    def name(self) -> str:
        found = f"softcount_{len(self.taken)}"
        while found in self.taken:
            found += "_"
        self.taken.add(found)
        return found

    def node(self, operation: str, *inputs: str, **settings: Any) -> str:
        found = self.name()
        self.nodes.append(self.onnx.helper.make_node(operation, list(inputs), [found], **settings))
        return found

    def known(self, values: Any, kind: Any = np.float64) -> str:
        array = np.asarray(values, dtype=kind)
        content = array.tobytes() if array.dtype != object else tuple(array.ravel())
        key = ("known", array.shape, array.dtype.str, content)
        if key not in self.made:
            self.made[key] = self.name()
            self.numbers.append(self.onnx.numpy_helper.from_array(array, self.made[key]))
        return self.made[key]

    # -- cells

    def cell(self, key: Key) -> str:
        """Return a column's numbers, NaN if they are missing or out of range."""
        if ("cell", key) in self.made:
            return self.made["cell", key]
        column, nothing, zero = self.columns[key], self.known([[np.nan]]), self.known([[0.0]])
        if column.reading is not None:
            raise refuse_words(key, "a graph")
        if column.valued:
            levels = [float(level) for level in column.levels or ()]  # type: ignore[arg-type]
            values = self.known([[np.nan], *([level] for level in levels), [np.nan]])
            found = self.node("Gather", values, self.flat(self.level(key)), axis=0)
        else:
            found = column.name
            for mark in number_words(column.missing):
                found = self.node("Where", self.node("Equal", found, self.known([[mark]])), nothing, found)
            if column.kind is Kind.POSITIVE:
                found = self.node("Where", self.node("Greater", found, zero), found, nothing)
            if column.kind in (Kind.COUNT, Kind.AMOUNT):
                found = self.node("Where", self.node("Less", found, zero), nothing, found)
            if column.kind is Kind.COUNT:
                found = self.node("Where", self.node("Equal", found, self.node("Floor", found)), found, nothing)
        self.made["cell", key] = found
        return found

    def level(self, key: Key) -> str:
        """Return a column's codes of levels, 0 if missing."""
        if ("level", key) not in self.made:
            column = self.columns[key]
            places = dict.fromkeys(column.missing, 0) | dict(column.spellings())
            settings = {"keys_strings": list(places), "values_int64s": list(places.values())}
            beyond = len(column.levels or ()) + 1
            self.made["level", key] = self.node(
                "LabelEncoder", column.name, domain="ai.onnx.ml", default_int64=beyond, **settings
            )
        return self.made["level", key]

    def flat(self, of: str) -> str:
        return self.node("Reshape", of, self.known([-1], LONG))

    # -- formulas

    def write(self, of: fm.Formula) -> str:
        if id(of) not in self.made:
            self.kept.append(of)  # so that no other formula gets its number
            self.made[id(of)] = self._write(of)
        return self.made[id(of)]

    def _write(self, of: fm.Formula) -> str:
        if isinstance(of, fm.GroupNumbers):
            return self.known(of.values[None])
        if isinstance(of, fm.Cell):
            return self.cell(of.key)
        if isinstance(of, fm.Once):
            return self.write(of.of)
        if isinstance(of, AodeMean) and of.codes:
            return _aode_mean(self, of)
        if isinstance(of, fm.BlockDensity):
            return _block(self, of)
        if isinstance(of, fm.Whole):
            return self.write(of.out)
        if isinstance(of, fm.LookUp):
            return self.node("Gather", self.known(of.table), self.flat(self.code(of.code)), axis=0)
        if isinstance(of, fm.Choose):
            both = reduce(partial(self.node, "And"), map(self._test, of.tests))
            return self.node("Where", both, self.write(of.then), self.write(of.otherwise))
        assert isinstance(of, fm.Apply)
        return self.node(OPERATIONS[of.operation], *(self.write(part) for part in of.parts))

    def _test(self, test: fm.Test) -> str:
        if isinstance(test, fm.Missing):
            missing = self.node("IsNaN", self.cell(test.key))
            return missing if test.wanted else self.node("Not", missing)
        assert isinstance(test, fm.Compare)
        return self.node("Less" if test.sign == "<" else "Equal", self.write(test.left), self.write(test.right))

    def code(self, code: fm.Code) -> str:
        """Return a code as whole numbers, rows by one."""
        if isinstance(code, fm.LevelCode):
            return self.level(code.key)
        if isinstance(code, fm.WordsCode):
            raise refuse_words(code.key, "a graph")
        key = ("code", fm.code_key(code))
        if key in self.made:
            return self.made[key]
        if isinstance(code, fm.IntervalCode):
            cell = self.cell(code.key)
            place = self.node("Add", self.places(cell, code.edges), self.known([[1]], LONG))
            whole = self.node("Where", self.node("IsNaN", cell), self.known([[0]], LONG), place)
        else:
            assert isinstance(code, fm.CombinedCode)
            whole = ""
            for part, size in zip(code.codes, code.sizes, strict=True):
                own, room = self.code(part), self.known([[size]], LONG)
                own = self.node("Where", self.node("Less", own, room), own, self.known([[0]], LONG))
                whole = self.node("Add", self.node("Mul", whole, room), own) if whole else own
        self.made[key] = whole
        return whole

    def places(self, of: str, edges: np.ndarray) -> str:
        """Return for each number how many edges it is not below."""
        if not len(edges):
            zero = self.node("Mul", of, self.known([[0.0]]))
            return self.node("Cast", self.node("Where", self.node("IsNaN", zero), self.known([[0.0]]), zero), to=7)
        reached = self.node("GreaterOrEqual", of, self.known(np.asarray(edges)[None]))
        return self.node("ReduceSum", self.node("Cast", reached, to=7), self.known([1], LONG), keepdims=1)


# -- AODE and blocks as products of matrices: a node for every pair of columns took minutes


def _aode_mean(graph: OnnxGraph, of: AodeMean) -> str:
    """Multiply one-hot cells by the table of every class: the sums for all parents, of which the known are kept."""
    node, known = graph.node, graph.known
    ends = [*of.terms.offsets.tolist(), of.terms.width]
    each = []
    for parent, code in enumerate(of.codes):  # the place of its cell among those of all columns; 0 if it is unknown
        own, first, size = graph.code(code), ends[parent], ends[parent + 1] - ends[parent]
        there = node("Greater", own, known([[0]], LONG))
        if isinstance(code, fm.LevelCode):
            there = node("And", there, node("Less", own, known([[size + 1]], LONG)))
        each.append(node("Where", there, node("Add", own, known([[first - 1]], LONG)), known([[0]], LONG)))
    places = node("Concat", *each, axis=1)
    ones = node("Cast", node("GreaterOrEqual", places, known([[0]], LONG)), to=11)
    shape = node("Concat", node("Shape", places, end=1), known([of.terms.width], LONG), axis=0)
    zeros = node("Expand", known([[0.0]]), shape)
    cells = node("Unsqueeze", node("ScatterElements", zeros, places, ones, axis=1), known([0], LONG))
    sums = node("MatMul", cells, known(fm.clamp(of.given)))
    table = fm.clamp(of.shares[:, None] + of.alone)
    table[:, 0] = fm.CLAMPED
    sums = node("Add", sums, known(table[:, None]))
    every = node("Shape", node("ReduceMax", sums, axes=[2], keepdims=1))
    wide = node("Mul", every, known([1, 1, len(of.codes)], LONG))
    # (classes x rows x parents), of which the mean is over those that are possible.
    found = node("GatherElements", sums, node("Expand", node("Unsqueeze", places, known([0], LONG)), wide), axis=2)
    last = known([2], LONG)
    top = node("ReduceMax", found, axes=[2], keepdims=1)
    whole = node("Log", node("ReduceSum", node("Exp", node("Sub", found, top)), last, keepdims=0))
    possible = node("GreaterOrEqual", found, known([[[IMPOSSIBLE]]]))
    count = node("ReduceSum", node("Cast", possible, to=11), last, keepdims=0)
    shared = node("Log", node("Max", count, known([[1.0]])))
    mean = node("Sub", node("Add", node("Squeeze", top, last), whole), shared)
    mean, count = (node("Transpose", each, perm=[1, 0]) for each in (mean, count))
    none = node("Equal", count, known([[0.0]]))
    return node("Where", none, graph.write(fm.formula(of.shares)), mean)


def _block(graph: OnnxGraph, of: fm.BlockDensity) -> str:
    """Score complete rows by one product for each group, rows with missing cells one by one, by elimination."""
    form, node, known = of.form, graph.node, graph.known
    unit = np.sqrt(np.diagonal(form["covariance"], axis1=1, axis2=2))
    scaled = form["covariance"] / (unit[:, :, None] * unit[:, None, :])
    holes = node("IsNaN", node("Concat", *(graph.cell(key) for key in of.keys), axis=1))
    values = node("Concat", *(graph.write(value) for value in of.values), axis=1)
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
    # The density of `count` numbers at a squared distance, for a covariance of determinant one.
    if "freedom" in form:
        freedom, stretch, tops = fm.student_tops(form, len(of.keys))
        top = node("Gather", known(tops), graph.flat(node("Cast", count, to=7)), axis=0)
        ratio = fm.Formula()
        graph.kept.append(ratio)
        graph.made[id(ratio)] = node("Div", distance, known((freedom * stretch)[None]))
        bent = graph.write(fm.log1p(ratio))
        power = node("Mul", node("Add", count, known(freedom[None])), known([[0.5]]))
        found = node("Sub", top, node("Mul", bent, power))
    else:
        found = node("Sub", node("Mul", count, known([[-fm.HALF_LOG_2PI]])), node("Mul", distance, known([[0.5]])))
    return node("Sub", node("Sub", found, roots), units)


def _with_holes(graph: OnnxGraph, whole: tuple[str, str], row: tuple[str, str], scaled: np.ndarray) -> tuple[str, str]:
    """Replace the distances and half log-determinants of rows with missing cells."""
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
    body = _eliminate_one_row(graph, scaled)
    found = [graph.name(), graph.name()]
    graph.nodes.append(graph.onnx.helper.make_node("Scan", [gone, apart], found, body=body, num_scan_inputs=2))
    both = []
    for all_, own in zip(whole, found, strict=True):
        longer = node("Concat", all_, known(np.zeros((1, len(scaled)))), axis=0)
        put = node("ScatterND", longer, rows, own)
        both.append(node("Slice", put, known([0], LONG), known([-1], LONG), known([0], LONG)))
    return both[0], both[1]


def _eliminate_one_row(graph: OnnxGraph, scaled: np.ndarray) -> Any:
    """Return a subgraph for one row: missing numbers have variance one and depend on no other."""
    helper, kind, node, known = graph.onnx.helper, graph.onnx.TensorProto, graph.node, graph.known
    groups, size = scaled.shape[:2]
    hole, off = graph.name(), graph.name()
    outer, graph.nodes = graph.nodes, []
    pair = node("Or", node("Unsqueeze", hole, known([0], LONG)), node("Unsqueeze", hole, known([1], LONG)))
    matrix = node("Where", pair, known(np.eye(size)[None]), known(scaled))
    column, both = node("Unsqueeze", off, known([2], LONG)), known([1, 2], LONG)
    distance = roots = known(np.zeros(groups))
    for place in range(size):  # covariance and offsets of the others given this column, its distance and determinant
        at = known([place], LONG)
        own = node("Gather", matrix, at, axis=2)
        pivot, mine = node("Gather", own, at, axis=1), node("Gather", column, at, axis=1)
        share = node("Div", own, pivot)
        matrix = node("Sub", matrix, node("Mul", share, node("Gather", matrix, at, axis=1)))
        # The eliminated column is never a pivot again: what is left of it does not matter.
        column = node("Sub", column, node("Mul", share, mine))
        square = node("Squeeze", node("Div", node("Mul", mine, mine), pivot), both)
        distance = node("Add", distance, square)
        roots = node("Add", roots, node("Mul", node("Squeeze", node("Log", pivot), both), known([0.5])))
    inner, graph.nodes = graph.nodes, outer
    given = [(hole, kind.BOOL, [size]), (off, kind.DOUBLE, [groups, size])]
    ins = [helper.make_tensor_value_info(*each) for each in given]
    outs = [helper.make_tensor_value_info(name, kind.DOUBLE, [groups]) for name in (distance, roots)]
    return helper.make_graph(inner, graph.name(), ins, outs)


# -- the model: one tensor for every column in, the predicted class and probabilities out

OPSETS = {"": 17, "ai.onnx.ml": 3}
IR_VERSION = 9
PREDICTED, PROBABILITIES = "predicted", "probabilities"


def as_onnx(model: Exported) -> tuple[Any, ExportCheck]:
    """Return the graph of a model, whose inputs are (rows x 1) doubles (NaN if missing) and texts, and its check."""
    onnx, plan = onnx_module(), model._export_plan()
    names = [column.name for column in plan.columns]
    if len(set(names)) < len(names) or not names:
        raise DataError("an ONNX graph has a tensor for every column, but the columns of this model have no names.")
    outputs = [apart(name, names) for name in (PREDICTED, PROBABILITIES)]
    graph = OnnxGraph(plan.columns, {*names, *outputs})
    predicted, proba = _finish(graph, plan)
    graph.nodes.append(onnx.helper.make_node("Identity", [predicted], outputs[:1]))
    kinds, values, _ = _labels(plan)
    given = []
    for column in plan.columns:
        kind, expected = onnx.TensorProto.DOUBLE, f"{column.expected}, NaN where missing"
        if column.levels is not None:
            kind, expected = onnx.TensorProto.STRING, 'text, "" where missing'
        given.append(onnx.helper.make_tensor_value_info(column.name, kind, ["rows", 1], doc_string=expected))
    found = [onnx.helper.make_tensor_value_info(outputs[0], kinds, ["rows"])]
    if proba is not None:
        graph.nodes.append(onnx.helper.make_node("Identity", [proba], outputs[1:]))
        double = onnx.TensorProto.DOUBLE
        found.append(onnx.helper.make_tensor_value_info(outputs[1], double, ["rows", len(values)]))
    made = onnx.helper.make_graph(graph.nodes, "softcount", given, found, graph.numbers)
    opsets = [onnx.helper.make_opsetid(domain, version) for domain, version in OPSETS.items()]
    whole = onnx.helper.make_model(made, opset_imports=opsets, producer_name="softcount", ir_version=IR_VERSION)
    whole.producer_version = softcount.__version__
    onnx.helper.set_model_props(whole, {"classes": json.dumps(values)})
    onnx.checker.check_model(whole)
    return whole, check_graph(plan, model._export_rows(), whole)


def _labels(plan: ScoringPlan) -> tuple[int, list[Any], Any]:
    """Return the type of the classes in a graph, the classes, and the classes with a value for "none" at the end."""
    onnx, named = onnx_module(), type_names(plan.names)
    kind, values = named["type"], named["values"]
    if kind is str:
        return onnx.TensorProto.STRING, values, np.array([*values, ""], dtype=object)
    if kind is float:
        return onnx.TensorProto.DOUBLE, values, np.array([*values, np.nan], dtype=np.float64)
    numbers = [int(value) for value in values]
    none = min(numbers) - 1 if -1 in numbers else -1
    return onnx.TensorProto.INT64, numbers, np.array([*numbers, none], dtype=np.int64)


def _finish(graph: OnnxGraph, plan: ScoringPlan) -> tuple[str, str | None]:
    joint = graph.write(fm.total(plan.terms))
    top = graph.node("ReduceMax", joint, axes=[1], keepdims=1)
    impossible = graph.node("Less", top, graph.known([[IMPOSSIBLE]]))
    impossible = graph.node("Or", impossible, graph.node("IsNaN", top))
    if plan.finish == "highest":
        return _predict(graph, plan, joint, impossible), None
    curves = plan.calibration.curves if plan.calibration else ()
    if curves:
        if len(curves) == 1:
            second = _curve(graph, _odds(graph, joint, 1, [0]), curves[0])
            shares = graph.node("Concat", graph.node("Sub", graph.known([[1.0]]), second), second, axis=1)
        else:
            places = range(len(curves))
            odds = [_odds(graph, joint, place, [other for other in places if other != place]) for place in places]
            shares = graph.node("Concat", *(_curve(graph, *pair) for pair in zip(odds, curves, strict=True)), axis=1)
    else:
        off = graph.node("Sub", joint, top)
        if plan.calibration:
            off = graph.node("Div", off, graph.known([[plan.calibration.temperature]]))
        shares = graph.node("Exp", off)
    whole = graph.node("ReduceSum", shares, graph.known([1], LONG), keepdims=1)
    proba = graph.node("Div", shares, whole)
    proba = graph.node("Where", impossible, graph.known([[np.nan]]), proba)
    return _predict(graph, plan, shares, impossible), proba


def _predict(graph: OnnxGraph, plan: ScoringPlan, scores: str, impossible: str) -> str:
    labels = _labels(plan)[2]
    place = graph.node("ArgMax", scores, axis=1, keepdims=0)
    none, known = graph.known([len(labels) - 1], LONG), graph.known(labels, labels.dtype)
    return graph.node("Gather", known, graph.node("Where", graph.flat(impossible), none, place), axis=0)


def _odds(graph: OnnxGraph, joint: str, own: int, others: list[int]) -> str:
    rest = graph.node("Gather", joint, graph.known(others, LONG), axis=1)
    if len(others) > 1:
        top = graph.node("ReduceMax", rest, axes=[1], keepdims=1)
        parts = graph.node("Exp", graph.node("Sub", rest, top))
        whole = graph.node("ReduceSum", parts, graph.known([1], LONG), keepdims=1)
        rest = graph.node("Add", top, graph.node("Log", whole))
    return graph.node("Sub", graph.node("Gather", joint, graph.known([own], LONG), axis=1), rest)


def _curve(graph: OnnxGraph, odds: str, curve: Curve) -> str:
    points, shares = curve.odds, curve.share
    wide = np.diff(points)
    slopes = np.where(wide > 0, np.diff(shares) / np.where(wide > 0, wide, 1.0), 0.0)
    tables = np.column_stack([[points[0], *points], [shares[0], *shares], [0.0, *slopes, 0.0]])
    row = graph.node("Gather", graph.known(tables), graph.flat(graph.places(odds, points)), axis=0)
    start, share, slope = (graph.node("Gather", row, graph.known([j], LONG), axis=1) for j in range(3))
    # Where the slope is nothing its product is too, however far out the odds are.
    off = graph.node("Where", graph.node("Equal", slope, graph.known([[0.0]])), slope, graph.node("Sub", odds, start))
    return graph.node("Add", graph.node("Mul", slope, off), share)


def check_graph(plan: ScoringPlan, rows: DrawnRows, graph: Any) -> ExportCheck:
    """Run a graph in onnxruntime on rows drawn from the model."""
    problem = 'graphs are checked by onnxruntime, which is not installed. Install it: pip install "softcount[onnx]"'
    onnxruntime = import_extra("onnxruntime", problem)
    settings = onnxruntime.SessionOptions()
    settings.log_severity_level = 3
    settings.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(graph.SerializeToString(), settings, providers=["CPUExecutionProvider"])
    fed = {column.name: feed_column(column, rows.cells[column.key]) for column in plan.columns}
    predicted, *proba = session.run(None, fed)
    places = {value: place for place, value in enumerate(_labels(plan)[1])}
    found = np.array([places.get(value.item() if isinstance(value, np.generic) else value, -1) for value in predicted])
    check = compare(plan, rows, "onnxruntime", found, proba[0] if proba else None)
    formed = [column for column in plan.columns if column.form is not None]
    return replace(check, notes=tuple(f"column {column.key!r} goes in as {column.expected}" for column in formed))


def feed_column(column: InputColumn, cells: Sequence[Any]) -> np.ndarray:
    if column.levels is None:
        numbers = [np.nan if number is None else number for number in column.numbers(cells)]
        return np.array(numbers, dtype=np.float64)[:, None]
    return np.array([["" if cell is None else spell_level(cell)[0]] for cell in cells], dtype=object)
