"""Columns derived from others, such as totals and ratios: conditions on them, answers and imputed values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from msgspec.structs import replace

from softcount.errors import DataError
from softcount.fitted.answers import LineAnswer, fill_as_written
from softcount.fitted.conditions import Levels, any_of, condition_of, impossible, is_number
from softcount.sources import wording
from softcount.table import Chunk, Table, open_table
from softcount.table.cell_forms import is_plain, restore_cells
from softcount.table.schema import Derived, Field, Key, Kind, Schema

# Columns that the model leaves out because another column determines them; answers use that lead column.

Fills = dict[Key, tuple[np.ndarray, np.ndarray]]


def find_derived_fields(schema: Schema) -> list[tuple[Field, Derived]]:
    """Return the derived columns and their rules, each after its lead column."""
    left = {spec.key: (spec, spec.derived) for spec in schema.fields if spec.derived is not None and not spec.used}
    found: list[tuple[Field, Derived]] = []
    while left:
        ready = [(spec, rule) for spec, rule in left.values() if rule.lead not in left]
        if not ready:
            return found  # a cycle, possible only in a modified file
        found += ready
        left = {key: pair for key, pair in left.items() if pair not in ready}
    return found


def values_from(schema: Schema, spec: Field, rule: Derived, lead: Any, rows: int) -> Any:
    """Compute a derived column from the values `lead` of its lead column; None if a value is not known."""
    if rule.lead is None:
        return np.full(rows, float(rule.constant)) if _is_moment(spec) else [rule.constant] * rows  # type: ignore[arg-type]
    if spec.kind.numeric:
        numbers = np.array([np.nan if x is None else x for x in lead], dtype=np.float64)
        form = schema[rule.lead].written
        rounded = restore_cells(form, numbers) if is_plain(form) and np.isfinite(numbers).all() else numbers
        return rule.intercept + rule.slope * np.asarray(rounded, dtype=np.float64)
    known = dict(rule.levels)
    return [known.get(level) for level in (lead.tolist() if isinstance(lead, np.ndarray) else lead)]


def _is_moment(spec: Field) -> bool:
    """Return whether the column's constant is a number whose cells are written in a form such as a date."""
    return not is_plain(spec.written) and is_number(spec.derived.constant)  # type: ignore[union-attr]


def add_derived(schema: Schema, columns: Mapping[Key, Any], rows: int) -> dict[Key, Any]:
    """Add the derived columns to columns of new rows."""
    found = dict(columns)
    for spec, rule in find_derived_fields(schema):
        if rule.lead is None or rule.lead in found:
            found[spec.key] = values_from(schema, spec, rule, found.get(rule.lead), rows)
    return found


def derived_levels(spec: Field) -> list[Any]:
    """Return the categories of a derived column, or the only value of a constant."""
    assert spec.derived is not None
    if spec.derived.lead is None:
        return [spec.derived.constant]
    return list(dict.fromkeys(own for _, own in spec.derived.levels))


# -- given values of derived columns


def move_to_leads(schema: Schema, given: Mapping[Key, Any]) -> dict[Key, Any]:
    """Turn conditions on derived columns into conditions on their lead columns."""
    found = dict(given)
    for spec, rule in reversed(find_derived_fields(schema)):
        if spec.key not in found:
            continue
        value = found.pop(spec.key)
        if rule.lead in found:
            raise DataError(f"{spec.key!r} follows from {rule.lead!r}, and both are given. Give one of them.")
        if spec.kind.numeric and rule.lead is not None:

            def lead_of(own: Any, spec: Field = spec, rule: Derived = rule) -> float:
                return (_number(spec, own) - rule.intercept) / rule.slope

            condition = condition_of(value)
            found[rule.lead] = lead_of(value) if condition is None else condition.map(lead_of, rule.slope < 0)
            continue
        levels, condition = Levels(wording.column(spec.key), derived_levels(spec)), condition_of(value) or any_of(value)
        fits = zip(levels.levels, condition.allows(levels), strict=True)
        allowed = [level for level, is_allowed in fits if is_allowed]
        if rule.lead is None:
            if not allowed:
                raise impossible()
            continue
        leads = [lead for lead, own in rule.levels if own in allowed]
        found[rule.lead] = leads[0] if len(leads) == 1 else any_of(*leads)
    return found


def _number(spec: Field, value: Any) -> float:
    if is_number(value):
        return float(value)
    form = spec.written
    found = float("nan") if form is None else float(form.read([str(value)])[0][0])
    if found != found:
        raise DataError(f"{wording.column(spec.key)} holds numbers, and {wording.cell(value)} is not a number.")
    return found


# -- answers for derived columns


def answer_derived(schema: Schema, spec: Field, ask: Callable[[Key], Any], given: Mapping[Key, Any]) -> Any:
    """Answer for a derived column, from the answer for its lead column or from the lead column's given value."""
    rule = spec.derived
    assert rule is not None
    if rule.lead is None:
        return {rule.constant: 1.0}
    value = given.get(rule.lead)
    if value is not None and condition_of(value) is None:
        if spec.kind.numeric:
            return LineAnswer(_number(schema[rule.lead], value), rule.slope, rule.intercept, spec.written)
        shares = {lead: float(str(lead) == str(value)) for lead, _ in rule.levels}
    elif value is not None:
        raise DataError(f"{spec.key!r} follows from {rule.lead!r}, of which only a range is given. Give a value.")
    else:
        lead = ask(rule.lead)
        if spec.kind.numeric:
            return LineAnswer(lead, rule.slope, rule.intercept, spec.written)
        shares = lead
    found = dict.fromkeys(derived_levels(spec), 0.0)
    known = {str(lead): own for lead, own in rule.levels}
    for level, share in shares.items():
        if str(level) in known:
            found[known[str(level)]] += share
    return found


# -- missing values


def join_fills(
    schema: Schema,
    table: Table,
    fills: Mapping[Key, Sequence[tuple[np.ndarray, np.ndarray]]],
    shares: Mapping[Key, Mapping[int, np.ndarray]],
) -> Fills:
    """Join the imputed values of all chunks, add those of derived columns, and write all like the cells of the column.

    Of a lead column and a column derived from it, either is computed from the other. `shares` holds the category
    probabilities of lead columns in rows that miss them.
    """
    found: dict[Key, dict[int, Any]] = {}
    for key, parts in fills.items():
        rows, values = (np.concatenate(side).tolist() for side in zip(*parts, strict=True))
        found[key] = dict(zip(rows, values, strict=True))
    here = [(spec, rule) for spec, rule in find_derived_fields(schema) if spec.key in table.located]
    if here:
        read = _readable(schema, here)
        for task in open_table(table, schema=read, missing=schema.missing).tasks():
            chunk = task()
            _fill_chunk(
                schema, here, {spec.key: _cells(read, chunk, spec.key) for spec in read.used}, found, shares, chunk
            )
    filled: Fills = {}
    for key, own in found.items():
        if own:
            rows, spec = np.array(sorted(own), dtype=np.int64), schema[key]
            number = spec.kind.numeric or (spec.derived is not None and _is_moment(spec))
            values = np.array([own[row] for row in rows.tolist()], dtype=np.float64 if number else object)
            filled[key] = rows, fill_as_written(schema, key, values)
    return filled


def _readable(schema: Schema, here: Sequence[tuple[Field, Derived]]) -> Schema:
    """Return a schema that reads only derived columns and their lead columns."""
    keys = {spec.key for spec, _ in here}
    wanted = keys | {rule.lead for _, rule in here}
    fields = []
    for spec in schema.fields:
        if spec.key in keys and not spec.kind.numeric:
            levels = tuple(derived_levels(spec))
            spec = replace(spec, kind=Kind.CATEGORICAL, levels=levels, wide=False)
        fields.append(replace(spec, used=spec.key in wanted))
    return Schema(tuple(fields), schema.missing, schema.form)


def _cells(schema: Schema, chunk: Chunk, key: Key) -> list[Any]:
    """Return the values of a column, None if missing; an unseen category counts as present."""
    values = chunk.column(schema.places[key])
    if schema.places[key].store == "reals":
        return [None if x != x else x for x in values.tolist()]
    levels = [None, *schema[key].levels]
    return [levels[code] if code < len(levels) else UNSEEN for code in values.tolist()]


UNSEEN = object()


def _fill_chunk(
    schema: Schema,
    here: Sequence[tuple[Field, Derived]],
    cells: Mapping[Key, list[Any]],
    found: dict[Key, dict[int, Any]],
    shares: Mapping[Key, Mapping[int, np.ndarray]],
    chunk: Chunk,
) -> None:
    """Compute missing cells of lead columns from the derived ones, then missing cells of the derived ones."""

    def put(key: Key, rows: Sequence[int], values: Iterable[Any]) -> None:
        for row, value in zip(rows, values, strict=True):
            if value is not None and value == value:
                cells[key][row] = value
                found.setdefault(key, {})[chunk.start + row] = value

    for spec, rule in reversed(here):
        if rule.lead is not None:
            pairs = enumerate(zip(cells[spec.key], cells[rule.lead], strict=True))
            rows = [row for row, (own, lead) in pairs if lead is None and own is not None and own is not UNSEEN]
            known = shares.get(rule.lead, {})
            put(rule.lead, rows, [
                _lead_value(schema, spec, rule, cells[spec.key][row], known.get(chunk.start + row)) for row in rows
            ])  # fmt: skip
    for spec, rule in here:
        rows, lead = [row for row, cell in enumerate(cells[spec.key]) if cell is None], None
        if rule.lead is not None:
            imputed, seen = found.get(rule.lead, {}), cells[rule.lead]
            lead = [imputed.get(chunk.start + row) if seen[row] is None else seen[row] for row in rows]
        put(spec.key, rows, values_from(schema, spec, rule, lead, len(rows)))


def _lead_value(schema: Schema, spec: Field, rule: Derived, own: Any, shares: np.ndarray | None) -> Any:
    """Return the lead column's value for a value of the derived column; of several, the most probable by `shares`."""
    if spec.kind.numeric:
        return (own - rule.intercept) / rule.slope
    leads = [lead for lead, mine in rule.levels if mine == own]
    if len(leads) < 2:
        return leads[0] if leads else None
    levels = list(schema[rule.lead].levels)
    return None if shares is None else max(leads, key=lambda lead: shares[levels.index(lead)])
