"""What is given of columns or nodes on the command line: values, ranges, sets, anything but some."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import isfinite
from typing import TYPE_CHECKING, Any

import click
from msgspec import Struct, field

from softcount.cli.named_columns import class_value, model_keys, node_keys, suggestion
from softcount.errors import DataError

if TYPE_CHECKING:
    from softcount.fitted.fitted import Fitted
    from softcount.fitted.network import FittedNet
    from softcount.table import Key
    from softcount.table.cell_forms import CellForm

SIGNS = ("!=", ">=", "<=", "=", ">", "<")
RANGE, OR, WEIGHT = "..", "|", ":"
FORMS = "sex=Female, age=20..30, 'age>=20', 'town=small|middle' or 'sex!=Female', in quotes"


def given_columns(fitted: Fitted, texts: Iterable[str]) -> dict[Key, Any]:
    """Column -> what is known of it, for each text such as COL=VALUE; levels as the model holds them."""
    keys = model_keys(fitted)
    found = split_given(texts, keys)
    return {keys[name]: _column_value(fitted, keys[name], sign, text) for name, sign, text in found}


def given_nodes(fitted: FittedNet, texts: Iterable[str]) -> dict[Key, Any]:
    """Node -> the same, or level to likelihood, for each text such as NODE=VALUE."""
    keys = node_keys(fitted)
    found = split_given(texts, keys, "network", "node")
    return {keys[name]: _node(fitted, keys[name]).value(sign, text) for name, sign, text in found}


def split_given(
    texts: Iterable[str], keys: Mapping[str, Key], model: str = "model", column: str = "column"
) -> list[tuple[str, str, str]]:
    """Name, sign and value of each; names and values may hold signs too, so the longest name that is known wins."""
    found: dict[str, tuple[str, str]] = {}
    for text in texts:
        places = [(place, sign) for place in range(1, len(text)) if (sign := _sign_at(text, place))]
        if not places:
            raise click.UsageError(f"--given {text!r} is not COL=VALUE, such as {FORMS}")
        known = [(place, sign) for place, sign in places if text[:place] in keys]
        place, sign = known[-1] if known else places[0]
        name = text[:place]
        if not known:
            raise DataError(f"--given: the {model} has no {column} {name!r}.\n  {suggestion(name, keys)}")
        if name in found:
            raise click.UsageError(f"--given {name!r} is given twice")
        found[name] = sign, text[place + len(sign) :]
    return [(name, *said) for name, said in found.items()]


def _sign_at(text: str, place: int) -> str | None:
    return next((sign for sign in SIGNS if text.startswith(sign, place)), None)


class AskedColumn(Struct, frozen=True):
    """A column or node, what it may hold, and how it is called in a message."""

    name: str
    levels: Mapping[str, Any] = field(default_factory=dict)
    numbers: bool = False
    weighed: bool = False
    """Whether levels may be given with how likely they make what was seen, as those of networks."""
    open: bool = False
    """Whether a level that it never held may be given."""
    written: CellForm | None = None
    """How its cells are written, where they are numbers."""

    def value(self, sign: str, text: str) -> Any:
        """What a sign and what stands behind it say of the column."""
        from softcount.fitted.conditions import above, below, between, not_

        if sign == "=":
            return self._said(text)
        if sign == "!=":
            return not_(self._said(text, known=True))
        end = self._number(text)
        if end is None:
            raise DataError(f"--given: {self.name} is compared by {sign}, and {text!r} is not a number.")
        ways = {">": above(end), "<": below(end), ">=": between(low=end), "<=": between(high=end)}
        return ways[sign]

    def _said(self, text: str, known: bool = False) -> Any:
        from softcount.fitted.conditions import any_of

        parts = text.split(OR)
        if text in self.levels:
            return self.levels[text]
        weighed = self._weighed(parts) if self.weighed else None
        if weighed is not None:
            return weighed
        if len(parts) > 1:
            return any_of(*(self._one(part, known=True) for part in parts))
        return self._one(text, known)

    def _one(self, text: str, known: bool) -> Any:
        """A level, a number, or a range of numbers; of levels that are not, only those that may be `known` or not."""
        if text in self.levels:
            return self.levels[text]
        ends = self._range(text)
        if ends is not None:
            return ends
        number = self._number(text) if self.numbers else None
        if number is not None:
            return number
        if self.numbers and not self.levels:
            raise DataError(f"--given: {self.name} holds numbers, and {text!r} is neither one nor a range (20..30).")
        if self.open and not known:
            return text
        raise DataError(f"--given: {self.name} has no level {text!r}.\n  {suggestion(text, self.levels)}")

    def _range(self, text: str) -> Any:
        """A range of numbers, either end of which may be left out."""
        from softcount.fitted.conditions import between

        low, sign, high = text.partition(RANGE)
        ends = [self._number(end) if end else None for end in (low, high)]
        spelt = all(end is not None or not part for end, part in zip(ends, (low, high), strict=True))
        if not sign or not spelt or ends == [None, None] or not (self.numbers or self._numbered):
            return None
        return between(*ends)

    @property
    def _numbered(self) -> bool:
        """Whether its levels are numbers."""
        values = self.levels.values()
        return all(isinstance(level, (int, float)) and not isinstance(level, bool) for level in values)

    def _weighed(self, parts: list[str]) -> dict[Any, float] | None:
        """How likely levels make what was seen, where each is written level:number."""
        pairs = [part.rpartition(WEIGHT) for part in parts]
        weights = [_plain_number(weight) for _, _, weight in pairs]
        if not self.levels or any(weight is None for weight in weights) or not all(level for level, _, _ in pairs):
            return None
        levels = [self._one(level, known=True) for level, _, _ in pairs]
        return {level: float(weight or 0.0) for level, weight in zip(levels, weights, strict=True)}

    def _number(self, text: str) -> Any:
        """The number that a text is, as the cells of the column are written; None where it is none."""
        from softcount.table.cell_forms import as_cell, number_in

        value = number_in(self.written, text)
        if not isfinite(value):
            return None
        return value if self.weighed else as_cell(self.written, value)


def _plain_number(text: str) -> float | None:
    from softcount.table.cell_forms import number_in

    value = number_in(None, text)
    return value if isfinite(value) else None


def _column_value(fitted: Fitted, key: Key, sign: str, text: str) -> Any:
    name = f"column {str(key)!r}"
    if key == fitted.target and fitted.classes is not None:
        if sign == "=" and OR not in text and RANGE not in text:
            return class_value(fitted, text, "--given")
        return AskedColumn(name, {str(level): level for level in fitted.names}).value(sign, text)
    spec = fitted.schema[key]
    if spec.kind == "text":  # its levels are words, the value is a document
        if sign != "=":
            raise DataError(f"--given: {name} is text, of which a document can be given, and nothing else.")
        return text
    if spec.kind.numeric:
        return AskedColumn(name, numbers=True, written=spec.written).value(sign, text)
    if spec.derived is not None and not spec.used:
        from softcount.fitted.derived_columns import own_levels

        return AskedColumn(name, {str(level): level for level in own_levels(spec)}).value(sign, text)
    # A level the model has not seen goes on as text: the prior has mass in reserve for it.
    return AskedColumn(name, {str(level): level for level in spec.levels}, open=True).value(sign, text)


def _node(fitted: FittedNet, key: Key) -> AskedColumn:
    levels = {str(level): level for level in fitted.levels.get(key, ())}
    spec = fitted.schema.by_key.get(key)
    numbers, written = key in fitted.net.cuts or not levels, None if spec is None else spec.written
    return AskedColumn(f"node {str(key)!r}", levels, numbers, weighed=True, written=written)
