"""Questions to a model: distributions of columns given others, new rows, new sequences."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import isfinite
from typing import TYPE_CHECKING, Any

import click
import numpy as np
import pyarrow as pa
from msgspec import Struct, field
from msgspec.structs import replace

from softcount.cli.models import (
    class_value,
    column_key,
    is_hidden,
    load_any,
    model_keys,
    node_key,
    node_keys,
    refuse_text,
    say_answering_model,
    sequence_model,
)
from softcount.cli.options import suggestion
from softcount.cli.outputs import put_answer
from softcount.errors import DataError
from softcount.fitted.answers import answering_model, query, sampled
from softcount.fitted.conditions import above, any_of, below, between, not_, written_given
from softcount.fitted.derived_columns import own_levels
from softcount.fitted.fitted import Fitted
from softcount.networks.elimination import cells_within
from softcount.report.answers import likeliest_page, likeliest_record, make_array, query_page, query_record
from softcount.table import Key
from softcount.table.cell_forms import CellForm, fixed_decimals, parse_cell, write_cell
from softcount.table.cell_values import format_cells
from softcount.table.schema import Schema, labels

if TYPE_CHECKING:
    from softcount.fitted.network import FittedNet


def ask_model(fitted: Fitted, model: str, of: str | None, given: tuple[str, ...], json_wanted: bool) -> None:
    """What naive Bayes or a mixture says of one column, or of all that are not given."""
    key, known = None if of is None else column_key(fitted, of, "--of"), given_columns(fitted, given)
    if key is not None:
        refuse_text(fitted, key, model)
    put_query(fitted, key, known, query(fitted, key, known), json_wanted)


def put_query(fitted: Fitted | FittedNet, of: Key | None, known: dict[Key, Any], answer: Any, as_json: bool) -> None:
    """The answer of one column, or without `of` of every column, and the model that answers."""
    model = answering_model(fitted)
    put_answer(lambda: query_record(of, known, answer, model), lambda: query_page(of, known, answer), as_json)
    say_answering_model(fitted, None if of is None else [of, *known])


def with_memory(fitted: FittedNet, memory: str | None) -> FittedNet:
    """The network, allowed so much memory for an exact answer."""
    try:
        return replace(fitted, room=cells_within(memory))
    except DataError as error:
        raise click.UsageError(f"--{error}") from None


def as_written(fitted: FittedNet, known: dict[Key, Any]) -> dict[Key, Any]:
    """What is given of a network with numbers as the cells of their columns are written."""
    return written_given(known, {key: spec.written for key, spec in fitted.schema.by_key.items()})


def tell_likeliest(fitted: FittedNet, given: tuple[str, ...], json_wanted: bool) -> None:
    """The likeliest levels of all nodes together."""
    known = given_nodes(fitted, given)
    found, known = fitted.most_probable(known), as_written(fitted, known)
    put_answer(lambda: likeliest_record(known, found), lambda: likeliest_page(known, found), json_wanted)


def ask_network(
    fitted: FittedNet, of: tuple[str, ...], given: tuple[str, ...], samples: int | None, json_wanted: bool
) -> None:
    """What a network says of one node, of several together, or of every node."""
    from softcount.fitted.network_rows import sampled_query

    keys = [node_key(fitted, name, "--of") for name in dict.fromkeys(of)]
    known = given_nodes(fitted, given)
    numbers = [key for key in keys if fitted.is_number(key)]
    if numbers and len(keys) > 1:
        raise DataError(f"--of: node {str(numbers[0])!r} holds numbers, which have no joint table. Ask for it alone.")
    asked: Any = keys if len(keys) > 1 else keys[0] if keys else None
    answer = fitted.query(asked, known) if samples is None else sampled_query(fitted, asked, known, samples)
    known = as_written(fitted, known)
    if len(keys) < 2:
        put_query(fitted, asked, known, answer, json_wanted)
        return
    put_answer(lambda: query_record(asked, known, answer), lambda: query_page(asked, known, answer), json_wanted)


def draw_rows(
    model: str, n: int, length: int | None, given: tuple[str, ...], seed: int, spelt: bool
) -> tuple[pa.Table, Any]:
    """New rows, numbers written as in the table if `spelt`, and the model; None for one of sequences."""
    states = sequence_model(model)
    if states is not None:
        if given:
            raise DataError(f"{model}: a model of sequences, which takes no --given.")
        return draw_steps(states, n, length, seed), None
    if length is not None:
        raise DataError(f"{model}: no model of sequences. Leave out --length.")
    fitted, rng = load_any(model), np.random.default_rng(seed)
    if isinstance(fitted, Fitted):
        rows = sampled(fitted, n, given_columns(fitted, given), rng)
    else:
        drawn = fitted.drawn(n, given_nodes(fitted, given), rng)
        rows = {name: drawn[key] for key, name in labels(drawn).items()}
    if spelt:
        rows = {name: _as_spelt(fitted.schema, name, cells) for name, cells in rows.items()}
    return pa.table({name: make_array(cells) for name, cells in rows.items()}), fitted


def _as_spelt(schema: Schema, name: str, cells: Any) -> Any:
    """Numbers as text with the decimals that every cell of their column has; others as they are."""
    spec = schema.by_key.get(name)
    decimals = 0 if spec is None else fixed_decimals(spec.written)
    return format_cells(cells, decimals) if decimals else cells


def draw_steps(model: Any, n: int, length: int | None, seed: int) -> pa.Table:
    """New sequences, a row for each step; of a chain, one that goes on for n steps, or n that end."""
    if is_hidden(model):
        found: pa.Table = model.sample(n, 100 if length is None else length, random_state=seed)
        return found
    if length is not None:
        raise DataError("--length is for models with hidden states: -n is how many steps a chain goes on for.")
    drawn = model.sample(max(n, 1), random_state=seed)
    each = drawn if model.ends else [drawn]
    numbers = [number for number, steps in enumerate(each, start=1) for _ in steps]
    steps = [step for steps in each for step in range(1, len(steps) + 1)]
    return pa.table({"sequence": numbers, "step": steps, "symbol": make_array([x for own in each for x in own])})


def generate(chain: Any, n: int, start: str | None, seed: int) -> str:
    """New sequences as text, one on a line: characters close together, other symbols with blanks between them."""
    close = all(isinstance(symbol, str) and len(symbol) == 1 for symbol in chain.symbols_)
    begin: Any = None if start is None else list(start) if close else start.split()
    if begin is not None and not close:
        spelt = {str(symbol): symbol for symbol in chain.symbols_}
        begin = [spelt.get(step, step) for step in begin]
    drawn = chain.sample(n, start=begin, random_state=seed)
    lines = drawn if chain.ends else [drawn]
    return "".join(("" if close else " ").join(map(str, line)) + "\n" for line in lines)


# -- what is given


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
        places = [
            (place, sign)
            for place in range(1, len(text))
            if (sign := next((sign for sign in SIGNS if text.startswith(sign, place)), None))
        ]
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
        value = parse_cell(self.written, text)
        if not isfinite(value):
            return None
        return value if self.weighed else write_cell(self.written, value)


def _plain_number(text: str) -> float | None:
    value = parse_cell(None, text)
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
        return AskedColumn(name, {str(level): level for level in own_levels(spec)}).value(sign, text)
    # A level the model has not seen goes on as text: the prior has mass in reserve for it.
    return AskedColumn(name, {str(level): level for level in spec.levels}, open=True).value(sign, text)


def _node(fitted: FittedNet, key: Key) -> AskedColumn:
    levels = {str(level): level for level in fitted.levels.get(key, ())}
    spec = fitted.schema.by_key.get(key)
    numbers, written = key in fitted.net.cuts or not levels, None if spec is None else spec.written
    return AskedColumn(f"node {str(key)!r}", levels, numbers, weighed=True, written=written)
