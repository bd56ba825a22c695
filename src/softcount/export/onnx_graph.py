"""A model as an ONNX graph: one tensor for every column in, the predicted class and probabilities out.

Numbers are doubles throughout: in single precision a column around 1e8 was wrong by 0.999 in probability.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

import softcount
from softcount.errors import DataError
from softcount.export.drawn_rows import DrawnRows, ExportCheck, compared
from softcount.export.formulas import total
from softcount.export.onnx_formulas import OnnxGraph, onnx_module
from softcount.export.onnx_wholes import written_whole
from softcount.export.scoring_plan import InputColumn, ScoringPlan, plain_names, spellings
from softcount.families.setting import IMPOSSIBLE
from softcount.fitted.calibration import Curve
from softcount.table.names import apart

OPSETS = {"": 17, "ai.onnx.ml": 3}
IR_VERSION = 9
PREDICTED, PROBABILITIES = "predicted", "probabilities"


def scoring_graph(plan: ScoringPlan) -> Any:
    """The model; in go doubles with NaN for missing, and texts, of as many rows as there are by one."""
    onnx = onnx_module()
    names = [column.name for column in plan.columns]
    if len(set(names)) < len(names) or not names:
        raise DataError("a graph has a tensor for every column, and this model has none of its own names.")
    outputs = [apart(name, names) for name in (PREDICTED, PROBABILITIES)]
    graph = OnnxGraph(plan.columns, {*names, *outputs}, written_whole)
    told, proba = _finished(graph, plan)
    graph.nodes.append(onnx.helper.make_node("Identity", [told], outputs[:1]))
    kinds, values, _ = _labels(plan)
    given = [_value(column) for column in plan.columns]
    found = [onnx.helper.make_tensor_value_info(outputs[0], kinds, ["rows"])]
    if proba is not None:
        graph.nodes.append(onnx.helper.make_node("Identity", [proba], outputs[1:]))
        double = onnx.TensorProto.DOUBLE
        found.append(onnx.helper.make_tensor_value_info(outputs[1], double, ["rows", len(values)]))
    made = onnx.helper.make_graph(graph.nodes, "softcount", given, found, graph.numbers)
    opsets = [onnx.helper.make_opsetid(domain, version) for domain, version in OPSETS.items()]
    model = onnx.helper.make_model(made, opset_imports=opsets, producer_name="softcount", ir_version=IR_VERSION)
    model.producer_version = softcount.__version__
    onnx.helper.set_model_props(model, {"classes": json.dumps(values)})
    onnx.checker.check_model(model)
    return model


def _value(column: InputColumn) -> Any:
    onnx = onnx_module()
    kind, expected = onnx.TensorProto.DOUBLE, f"{column.expected}, NaN where missing"
    if column.levels is not None:
        kind, expected = onnx.TensorProto.STRING, 'text, "" where missing'
    return onnx.helper.make_tensor_value_info(column.name, kind, ["rows", 1], doc_string=expected)


def _labels(plan: ScoringPlan) -> tuple[int, list[Any], Any]:
    """The type of the classes in a graph, the classes, and them with what stands for none."""
    onnx, named = onnx_module(), plain_names(plan.names)
    kind, values = named["type"], named["values"]
    if kind is str:
        return onnx.TensorProto.STRING, values, np.array([*values, ""], dtype=object)
    if kind is float:
        return onnx.TensorProto.DOUBLE, values, np.array([*values, np.nan], dtype=np.float64)
    numbers = [int(value) for value in values]
    return (
        onnx.TensorProto.INT64,
        numbers,
        np.array([*numbers, min(numbers) - 1 if -1 in numbers else -1], dtype=np.int64),
    )


def _finished(graph: OnnxGraph, plan: ScoringPlan) -> tuple[str, str | None]:
    """The predicted class and the probabilities."""
    joint = graph.written(total(plan.terms))
    top = graph.node("ReduceMax", joint, axes=[1], keepdims=1)
    impossible = graph.node("Less", top, graph.known([[IMPOSSIBLE]]))
    impossible = graph.node("Or", impossible, graph.node("IsNaN", top))
    if plan.finish == "highest":
        return _told(graph, plan, joint, impossible), None
    curves = () if plan.calibration is None else plan.calibration.curves
    if curves:
        shares = _curved(graph, joint, curves)
    else:
        off = graph.node("Sub", joint, top)
        if plan.calibration is not None and plan.calibration.temperature is not None:
            off = graph.node("Div", off, graph.known([[plan.calibration.temperature]]))
        shares = graph.node("Exp", off)
    whole = graph.node("ReduceSum", shares, graph.known([1], np.int64), keepdims=1)
    proba = graph.node("Div", shares, whole)
    proba = graph.node("Where", impossible, graph.known([[np.nan]]), proba)
    return _told(graph, plan, shares, impossible), proba


def _told(graph: OnnxGraph, plan: ScoringPlan, scores: str, impossible: str) -> str:
    labels = _labels(plan)[2]
    place = graph.node("ArgMax", scores, axis=1, keepdims=0)
    none = graph.known([len(labels) - 1], np.int64)
    return graph.node(
        "Gather", graph.known(labels, labels.dtype), graph.node("Where", graph.flat(impossible), none, place), axis=0
    )


def _curved(graph: OnnxGraph, joint: str, curves: Sequence[Curve]) -> str:
    """Shares by a curve over the log-odds of each class against the others."""
    if len(curves) == 1:
        second = _curve(graph, _odds(graph, joint, 1, [0]), curves[0])
        return graph.node("Concat", graph.node("Sub", graph.known([[1.0]]), second), second, axis=1)
    places = range(len(curves))
    each = [_odds(graph, joint, place, [other for other in places if other != place]) for place in places]
    return graph.node("Concat", *(_curve(graph, odds, curve) for odds, curve in zip(each, curves, strict=True)), axis=1)


def _odds(graph: OnnxGraph, joint: str, own: int, others: list[int]) -> str:
    rest = graph.node("Gather", joint, graph.known(others, np.int64), axis=1)
    if len(others) > 1:
        top = graph.node("ReduceMax", rest, axes=[1], keepdims=1)
        parts = graph.node("Exp", graph.node("Sub", rest, top))
        whole = graph.node("ReduceSum", parts, graph.known([1], np.int64), keepdims=1)
        rest = graph.node("Add", top, graph.node("Log", whole))
    return graph.node("Sub", graph.node("Gather", joint, graph.known([own], np.int64), axis=1), rest)


def _curve(graph: OnnxGraph, odds: str, curve: Curve) -> str:
    points, shares = curve.odds, curve.share
    wide = np.diff(points)
    slopes = np.where(wide > 0, np.diff(shares) / np.where(wide > 0, wide, 1.0), 0.0)
    tables = np.column_stack([[points[0], *points], [shares[0], *shares], [0.0, *slopes, 0.0]])
    row = graph.node("Gather", graph.known(tables), graph.flat(graph.places(odds, points)), axis=0)
    start, share, slope = (graph.node("Gather", row, graph.known([j], np.int64), axis=1) for j in range(3))
    # Where the slope is nothing its product is too, however far out the odds are.
    off = graph.node("Where", graph.node("Equal", slope, graph.known([[0.0]])), slope, graph.node("Sub", odds, start))
    return graph.node("Add", graph.node("Mul", slope, off), share)


def checked_graph(plan: ScoringPlan, rows: DrawnRows, graph: Any) -> ExportCheck:
    """A graph run by onnxruntime on rows drawn from the model."""
    try:
        import onnxruntime
    except ImportError:
        raise DataError(
            'graphs are checked by onnxruntime, which is not installed. Install it: pip install "softcount[onnx]"'
        ) from None
    settings = onnxruntime.SessionOptions()
    settings.log_severity_level = 3
    settings.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(graph.SerializeToString(), settings, providers=["CPUExecutionProvider"])
    fed = {column.name: fed_column(column, rows.cells[column.key]) for column in plan.columns}
    told, *proba = session.run(None, fed)
    places = {value: place for place, value in enumerate(_labels(plan)[1])}
    found = np.array([places.get(value.item() if isinstance(value, np.generic) else value, -1) for value in told])
    check = compared(plan, rows, "onnxruntime", found, proba[0] if proba else None)
    formed = [column for column in plan.columns if column.form is not None]
    return replace(check, notes=tuple(f"column {column.key!r} goes in as {column.expected}" for column in formed))


def fed_column(column: InputColumn, cells: Sequence[Any]) -> np.ndarray:
    """Cells as a graph takes them."""
    if column.levels is None:
        numbers = [np.nan if number is None else number for number in column.numbers(cells)]
        return np.array(numbers, dtype=np.float64)[:, None]
    return np.array([["" if cell is None else spellings(cell)[0]] for cell in cells], dtype=object)
