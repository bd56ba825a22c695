"""softcount query, sample and generate: distributions, new rows and new sequences under conditions."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from math import isfinite
from typing import TYPE_CHECKING, Any

import click
import numpy as np
import pyarrow as pa
from msgspec import Struct, field
from msgspec.structs import replace

from softcount.cli import models
from softcount.cli.options import Request, find_name, suggestion
from softcount.cli.outputs import check_output, write_answer, write_bytes, write_rows, writes_csv
from softcount.cli.read import arrow_of
from softcount.core.lazy import lazy_function
from softcount.errors import DataError
from softcount.fitted.conditions import above, any_of, below, between, not_, write_given
from softcount.fitted.derived_columns import derived_levels
from softcount.fitted.fitted import Fitted, FittedTable
from softcount.networks.elimination import cells_within
from softcount.report.answers import likeliest_page, likeliest_record, make_array, query_page, query_record
from softcount.table import Key
from softcount.table.cell_forms import CellForm, fixed_decimals, parse_cell, write_cell
from softcount.table.cell_values import format_cells

if TYPE_CHECKING:
    from softcount.fitted.network import FittedNet

sampled_query = lazy_function("softcount.fitted.network_answers", "sampled_query")


def query(request: Request) -> None:
    of = request.of
    if of and request.likeliest:
        raise click.UsageError("--likeliest is about all nodes together: leave out --of")
    if request.samples is not None and not of:
        raise click.UsageError("--samples needs --of")
    fitted = models.open_model(request.model)
    if models.is_network(fitted):
        query_network(fitted, request)
        return
    for option in ("likeliest", "samples", "memory"):
        if getattr(request, option):
            raise click.UsageError(f"--{option} is for networks, and {request.model} is not one")
    if len(of) > 1:
        raise click.UsageError("several --of are for networks; query this model for one column at a time, or for all")
    key = find_name(models.column_keys(fitted), of[0], "--of") if of else None
    known = read_given(fitted, request.given)
    if key is not None and key != fitted.target and fitted.schema[key].kind == "text":
        raise DataError(
            f"--of: column {str(key)!r} is text, and has too many documents to give each a probability.\n"
            f"  Draw some: softcount sample {request.model}     or see the words of each class: softcount show "
            f"{request.model}"
        )
    write_query(fitted, key, known, fitted.query(key, known), request.json)


def query_network(fitted: FittedNet, request: Request) -> None:
    """Print the distribution of one node, of several together, or of every node; or the most probable categories."""
    try:
        fitted = replace(fitted, room=cells_within(request.memory))
    except DataError as error:
        raise click.UsageError(f"--{error}") from None
    keys = [models.find_node(fitted, name, "query") for name in dict.fromkeys(request.of)]
    known = read_given(fitted, request.given)
    written = write_given(known, {key: spec.written for key, spec in fitted.schema.by_key.items()})
    if request.likeliest:
        write_answer(request.json, likeliest_record, likeliest_page, written, fitted.condition(known).most_probable())
        return
    numbers = [key for key in keys if fitted.is_number(key)]
    if numbers and len(keys) > 1:
        raise DataError(f"--of: node {str(numbers[0])!r} is numeric, so it has no joint table. Query it alone.")
    of: Any = keys if len(keys) > 1 else keys[0] if keys else None
    answer = fitted.query(of, known) if request.samples is None else sampled_query(fitted, of, known, request.samples)
    if len(keys) < 2:
        write_query(fitted, of, written, answer, request.json)
    else:
        write_answer(request.json, query_record, query_page, of, written, answer)


def write_query(fitted: FittedTable, of: Key | None, known: dict[Key, Any], answer: Any, as_data: bool) -> None:
    """Print the answer for one column, or without `of` for every column, and the model that answers."""
    model = fitted.answering_model
    write_answer(as_data, lambda: query_record(of, known, answer, model), lambda: query_page(of, known, answer))
    models.print_answering_model(fitted, None if of is None else [of, *known])


def sample(request: Request) -> None:
    check_output(request.output, request.model)
    model = models.open_model(request.model, sequences=True)
    if models.is_of_sequences(model):
        if request.given:
            raise DataError(f"{request.model}: a model of sequences, which takes no --given.")
        write_rows(draw_steps(model, request), request)
        return
    if request.length is not None:
        raise DataError(f"{request.model}: not a model of sequences. Leave out --length.")
    rng = np.random.default_rng(request.seed)
    rows = model.sample(request.n, read_given(model, request.given), rng)
    if writes_csv(request):
        for name, cells in rows.items():  # numbers with the decimals that every cell of their column has
            spec = model.schema.by_key.get(name)
            decimals = 0 if spec is None else fixed_decimals(spec.written)
            rows[name] = format_cells(cells, decimals) if decimals else cells
    write_rows(pa.table({name: make_array(cells) for name, cells in rows.items()}), request)
    models.print_answering_model(model)


def draw_steps(model: Any, request: Request) -> pa.Table:
    """New sequences with a row for each step; of a chain one of n steps, or n that end."""
    if models.is_hidden(model):
        return arrow_of(model.sample(request.n, request.length or 100, random_state=request.seed))
    if request.length is not None:
        raise DataError("--length is for models with hidden states: for a chain, -n is the number of steps.")
    each = draw_sequences(model, max(request.n, 1), request.seed)
    numbers = [number for number, steps in enumerate(each, start=1) for _ in steps]
    steps = [step for steps in each for step in range(1, len(steps) + 1)]
    return pa.table({"sequence": numbers, "step": steps, "symbol": make_array([x for own in each for x in own])})


def draw_sequences(chain: Any, n: int, seed: int, start: Any = None) -> list[Any]:
    """One sequence of n steps or, if ends are states, n sequences."""
    if chain.ends:
        return list(chain.sample(n, start=start, random_state=seed))
    return list(chain.sample(1, n, start, random_state=seed))


def generate(request: Request) -> None:
    check_output(request.output, request.model)
    chain = models.open_model(request.model, sequences=True, centres=True)
    if not models.is_of_sequences(chain) or models.is_hidden(chain):
        raise DataError(
            f"{request.model}: not a Markov chain, which this command needs. New rows: softcount sample {request.model}"
        )
    characters = all(isinstance(symbol, str) and len(symbol) == 1 for symbol in chain.symbols_)
    start: Any = request.start
    if start is not None:
        symbols = {str(symbol): symbol for symbol in chain.symbols_}
        start = list(start) if characters else [symbols.get(step, step) for step in start.split()]
    lines = draw_sequences(chain, request.n, request.seed, start)
    text = "".join(("" if characters else " ").join(map(str, line)) + "\n" for line in lines)
    write_bytes(text.encode(), request.output)


# -- conditions

SIGN = re.compile(r"(?=(!=|>=|<=|=|>|<))")
"""A sign of comparison; the = of >= is one too, as names may end in >."""
RANGE, OR, WEIGHT = "..", "|", ":"
FORMS = "sex=Female, age=20..30, 'age>=20', 'town=small|middle' or 'sex!=Female', in quotes"


def read_given(fitted: Any, texts: Iterable[str]) -> dict[Key, Any]:
    """Conditions by column or node, from texts such as COL=VALUE; categories as the model holds them."""
    if not models.is_network(fitted):
        keys = models.column_keys(fitted)
        return {keys[x]: _read_value(fitted, keys[x], sign, text) for x, sign, text in split_given(texts, keys)}
    keys, found = models.node_keys(fitted), {}
    for name, sign, text in split_given(texts, keys, "the network has no node"):
        levels = {str(level): level for level in fitted.levels.get(keys[name], ())}
        spec = fitted.schema.by_key.get(keys[name])
        numbers, written = keys[name] in fitted.net.cuts or not levels, None if spec is None else spec.written
        node = ConditionReader(f"node {name!r}", levels, numbers, weighed=True, written=written)
        found[keys[name]] = node.value(sign, text)
    return found


def split_given(
    texts: Iterable[str], keys: Mapping[str, Key], there_is_no: str = "the model has no column"
) -> list[tuple[str, str, str]]:
    """Name, sign and value of each text. Names and values may contain signs, so the longest known name wins."""
    found: dict[str, tuple[str, str]] = {}
    for text in texts:
        places = [(found.start(), found[1]) for found in SIGN.finditer(text, 1)]
        if not places:
            raise click.UsageError(f"--given {text!r} is not COL=VALUE, such as {FORMS}")
        known = [(place, sign) for place, sign in places if text[:place] in keys]
        place, sign = known[-1] if known else places[0]
        name = text[:place]
        find_name(keys, name, "--given", there_is_no)
        if name in found:
            raise click.UsageError(f"--given {name!r} is given twice")
        found[name] = sign, text[place + len(sign) :]
    return [(name, *rest) for name, rest in found.items()]


class ConditionReader(Struct, frozen=True):
    """A column or node whose conditions are read, under the name that messages use."""

    name: str
    levels: Mapping[str, Any] = field(default_factory=dict)
    numbers: bool = False
    weighed: bool = False
    """Whether categories may be given with likelihoods, as for networks."""
    open: bool = False
    """Whether an unseen category may be given."""
    written: CellForm | None = None
    """The notation of numbers in its cells."""

    def value(self, sign: str, text: str) -> Any:
        if sign == "=":
            return self._any(text)
        if sign == "!=":
            return not_(self._any(text, known=True))
        end = self._number(text)
        if end is None:
            raise DataError(f"--given: {self.name} is compared by {sign}, and {text!r} is not a number.")
        ways = {">": above(end), "<": below(end), ">=": between(low=end), "<=": between(high=end)}
        return ways[sign]

    def _any(self, text: str, known: bool = False) -> Any:
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
        """A category, a number, or a range of numbers; with `known`, unseen categories are refused."""
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
        raise DataError(f"--given: {self.name} has no category {text!r}.\n  {suggestion(text, self.levels)}")

    def _range(self, text: str) -> Any:
        """A range of numbers, either end of which may be left out; None if the text is not one."""
        low, sign, high = text.partition(RANGE)
        ends = [self._number(end) if end else None for end in (low, high)]
        spelt = all(end is not None or not part for end, part in zip(ends, (low, high), strict=True))
        levels = self.levels.values()  # numbers, perhaps
        numeric = all(isinstance(level, (int, float)) and not isinstance(level, bool) for level in levels)
        if not sign or not spelt or ends == [None, None] or not (self.numbers or numeric):
            return None
        return between(*ends)

    def _weighed(self, parts: list[str]) -> dict[Any, float] | None:
        """Likelihoods by category, if each part is written category:number."""
        pairs = [part.rpartition(WEIGHT) for part in parts]
        weights = [parse_cell(None, weight) for _, _, weight in pairs]
        if not self.levels or not all(map(isfinite, weights)) or not all(level for level, _, _ in pairs):
            return None
        levels = [self._one(level, known=True) for level, _, _ in pairs]
        return dict(zip(levels, weights, strict=True))

    def _number(self, text: str) -> Any:
        """The number of a text in the notation of the column; None if it is not a number."""
        value = parse_cell(self.written, text)
        if not isfinite(value):
            return None
        return value if self.weighed else write_cell(self.written, value)


def _read_value(fitted: Fitted, key: Key, sign: str, text: str) -> Any:
    name = f"column {str(key)!r}"
    if key == fitted.target and fitted.classes is not None:
        if sign == "=" and OR not in text and RANGE not in text:
            return models.class_value(fitted, text, "--given")
        return ConditionReader(name, {str(level): level for level in fitted.names}).value(sign, text)
    spec = fitted.schema[key]
    if spec.kind == "text":  # its categories are words, the value is a document
        if sign != "=":
            raise DataError(f"--given: {name} is text: the given value must be one document.")
        return text
    if spec.kind.numeric:
        return ConditionReader(name, numbers=True, written=spec.written).value(sign, text)
    if spec.derived is not None and not spec.used:
        return ConditionReader(name, {str(level): level for level in derived_levels(spec)}).value(sign, text)
    # An unseen category is passed on as text: the prior has mass for it.
    return ConditionReader(name, {str(level): level for level in spec.levels}, open=True).value(sign, text)
