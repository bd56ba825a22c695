"""Formulas as nodes of an ONNX graph: every one a tensor of rows by groups, in doubles."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np

from softcount.errors import DataError
from softcount.export.formulas import (
    Apply,
    Cell,
    Choose,
    Code,
    CombinedCode,
    Compare,
    Formula,
    GroupNumbers,
    IntervalCode,
    LevelCode,
    LookUp,
    Missing,
    Once,
    Test,
    Whole,
    WordsCode,
    code_key,
)  # fmt: skip
from softcount.export.scoring_plan import InputColumn
from softcount.export.sql_words import refuse_words
from softcount.sources.arrow_columns import number_words
from softcount.table.schema import Key, Kind

OPERATIONS = {
    "add": "Add", "subtract": "Sub", "multiply": "Mul", "divide": "Div", "log": "Log", "exp": "Exp", "largest": "Max",
}  # fmt: skip
WriteWhole = Callable[["OnnxGraph", Whole], str]
"""How a formula over all columns at once becomes a tensor."""


def onnx_module() -> Any:
    """The module, or what to install."""
    try:
        import onnx
    except ImportError:
        raise DataError('graphs take onnx, which is not installed. Install it: pip install "softcount[onnx]"') from None
    return onnx


class OnnxGraph:
    """Collects nodes and numbers; the same formula is computed once. No name of ours is one of the columns'."""

    def __init__(self, columns: Sequence[InputColumn], taken: Collection[str], whole: WriteWhole) -> None:
        self.onnx = onnx_module()
        self.whole = whole
        self.columns = {column.key: column for column in columns}
        self.taken = set(taken)
        self.nodes: list[Any] = []
        self.numbers: list[Any] = []
        self.made: dict[Any, str] = {}
        self.kept: list[Any] = []

    def name(self) -> str:
        """A name that nothing has yet."""
        found = f"softcount_{len(self.taken)}"
        while found in self.taken:
            found += "_"
        self.taken.add(found)
        return found

    def node(self, operation: str, *inputs: str, **settings: Any) -> str:
        """The output of one more node."""
        found = self.name()
        self.nodes.append(self.onnx.helper.make_node(operation, list(inputs), [found], **settings))
        return found

    def known(self, values: Any, kind: Any = np.float64) -> str:
        """A tensor of numbers or texts."""
        array = np.asarray(values, dtype=kind)
        key = (
            "known",
            array.shape,
            array.dtype.str,
            array.tobytes() if array.dtype != object else tuple(array.ravel()),
        )
        if key not in self.made:
            self.made[key] = self.name()
            self.numbers.append(self.onnx.numpy_helper.from_array(array, self.made[key]))
        return self.made[key]

    # -- cells

    def cell(self, key: Key) -> str:
        """A column's numbers, NaN where they are missing or outside of what it may hold."""
        if ("cell", key) not in self.made:
            self.made["cell", key] = self._cell(self.columns[key])
        return self.made["cell", key]

    def _cell(self, column: InputColumn) -> str:
        if column.valued:
            levels = [float(level) for level in column.levels or ()]  # type: ignore[arg-type]
            values = self.known([[np.nan], *([level] for level in levels), [np.nan]])
            return self.node("Gather", values, self.flat(self.level(column.key)), axis=0)
        found, nothing, zero = column.name, self.known([[np.nan]]), self.known([[0.0]])
        for mark in number_words(column.missing):
            found = self.node("Where", self.node("Equal", found, self.known([[mark]])), nothing, found)
        if column.kind is Kind.POSITIVE:
            return self.node("Where", self.node("Greater", found, zero), found, nothing)
        if column.kind in (Kind.COUNT, Kind.AMOUNT):
            found = self.node("Where", self.node("Less", found, zero), nothing, found)
        if column.kind is Kind.COUNT:
            found = self.node("Where", self.node("Equal", found, self.node("Floor", found)), found, nothing)
        return found

    def level(self, key: Key) -> str:
        """A column's codes of levels, 0 where missing."""
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
        """A column as a line."""
        return self.node("Reshape", of, self.known([-1], np.int64))

    # -- formulas

    def written(self, of: Formula) -> str:
        """A formula's tensor."""
        if id(of) not in self.made:
            self.kept.append(of)  # so that no other formula gets its number
            self.made[id(of)] = self._written(of)
        return self.made[id(of)]

    def _written(self, of: Formula) -> str:
        if isinstance(of, GroupNumbers):
            return self.known(of.values[None])
        if isinstance(of, Cell):
            return self.cell(of.key)
        if isinstance(of, Once):
            return self.written(of.of)
        if isinstance(of, Whole):
            return self.whole(self, of)
        if isinstance(of, LookUp):
            return self.node("Gather", self.known(of.table), self.flat(self.code(of.code)), axis=0)
        if isinstance(of, Choose):
            tests = [self._test(test) for test in of.tests]
            both = tests[0]
            for test in tests[1:]:
                both = self.node("And", both, test)
            return self.node("Where", both, self.written(of.then), self.written(of.otherwise))
        assert isinstance(of, Apply)
        return self.node(OPERATIONS[of.operation], *(self.written(part) for part in of.parts))

    def _test(self, test: Test) -> str:
        if isinstance(test, Missing):
            missing = self.node("IsNaN", self.cell(test.key))
            return missing if test.wanted else self.node("Not", missing)
        assert isinstance(test, Compare)
        return self.node("Less" if test.sign == "<" else "Equal", self.written(test.left), self.written(test.right))

    def code(self, code: Code) -> str:
        """A code's tensor of whole numbers, rows by one."""
        key = ("code", code_key(code))
        if key not in self.made:
            self.made[key] = self._code(code)
        return self.made[key]

    def _code(self, code: Code) -> str:
        if isinstance(code, LevelCode):
            return self.level(code.key)
        if isinstance(code, IntervalCode):
            cell = self.cell(code.key)
            place = self.node("Add", self.places(cell, code.edges), self.known([[1]], np.int64))
            return self.node("Where", self.node("IsNaN", cell), self.known([[0]], np.int64), place)
        if isinstance(code, WordsCode):
            raise refuse_words(code.key, "a graph")
        assert isinstance(code, CombinedCode)
        whole = ""
        for part, size in zip(code.codes, code.sizes, strict=True):
            own, room = self.code(part), self.known([[size]], np.int64)
            own = self.node("Where", self.node("Less", own, room), own, self.known([[0]], np.int64))
            whole = self.node("Add", self.node("Mul", whole, room), own) if whole else own
        return whole

    def places(self, of: str, edges: np.ndarray) -> str:
        """How many edges numbers are not below."""
        if not len(edges):
            zero = self.node("Mul", of, self.known([[0.0]]))
            return self.node("Cast", self.node("Where", self.node("IsNaN", zero), self.known([[0.0]]), zero), to=7)
        reached = self.node("GreaterOrEqual", of, self.known(np.asarray(edges)[None]))
        return self.node("ReduceSum", self.node("Cast", reached, to=7), self.known([1], np.int64), keepdims=1)
