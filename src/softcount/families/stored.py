"""What a model file keeps of the columns of a node, and the checks of what it says about them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import prod
from typing import Any, cast

import numpy as np

from softcount.errors import ModelFileError
from softcount.families.base import Family
from softcount.families.binned import find_interval_fault
from softcount.families.categorical import find_group_fault
from softcount.families.joint import Joint
from softcount.families.markov import Markov, is_complete
from softcount.families.setting import Hyper, Setting
from softcount.families.text import Bags
from softcount.table.schema import Field, Key, Kind
from softcount.text import Words


def stored_levels(family: Family, setting: Setting) -> Any:
    """Return the categories, or the number of features of other columns; None for words, which have arrays."""
    if family.facts.words:
        return None
    return tuple(setting.levels) if family.facts.kind.coded else len(setting.levels)


def read_levels(family: Family, levels: Any, specs: Sequence[Field], widest: int) -> dict[str, Any]:
    """Return the categories from a file, and other arguments of `Setting`; no table is wider than `widest`."""
    if family.facts.words:
        return {"levels": _read_words(cast("Bags", family), levels, specs)}
    if family.facts.counts_points:
        if len(specs) != 1 or specs[0].points is None:
            raise ModelFileError(f"a {family.name} column is counted at points, and the file has none.")
        return {"levels": specs[0].points.values, "step": specs[0].points.step}
    if family.facts.kind.coded:
        if family.facts.block:
            _check_combinations(cast("Joint", family), levels, specs)
        return {"levels": tuple(levels)}
    if not specs and (type(levels) is not int or not 0 <= levels <= widest):
        raise ModelFileError(f"width is {levels!r}, which is not a whole number between 0 and {widest}.")
    return {"levels": tuple(spec.key for spec in specs) or tuple(range(levels))}


def _read_words(family: Bags, levels: Any, specs: Sequence[Field]) -> Words:
    if levels is not None or len(specs) != 1 or not isinstance(specs[0].levels, Words):
        raise ModelFileError(
            f"{[spec.key for spec in specs]!r} is {family.name}, but no one column of {family.nouns[0]}."
        )
    if isinstance(family, Markov) and not is_complete(specs[0].levels, family.order):
        raise ModelFileError(f"column {specs[0].key!r} does not have every transition between its steps.")
    return specs[0].levels


def _check_combinations(family: Joint, levels: Any, specs: Sequence[Field]) -> None:
    sizes = tuple(len(spec.levels) for spec in specs)
    every = tuple(product(*(spec.levels for spec in specs))) if prod(sizes) == len(levels) else ()
    if tuple(levels) != every or family.shape != sizes:
        raise ModelFileError(f"the levels of {family.name} are not those of its columns {[x.key for x in specs]}.")


def find_prior_fault(hyper: Hyper) -> str | None:
    """Return a description of what is wrong with prior parameters from a file, or None."""
    if not all(np.isfinite(value).all() for value in hyper.values()):
        return "its prior counts are not finite"
    if not (hyper.get("alpha", np.zeros(1)) >= 0).all():
        return "its prior counts are below zero"
    wrong = find_group_fault(hyper["group"]) if "group" in hyper else None
    wrong = wrong or (_find_cell_fault(hyper) if "edges" in hyper else None)
    return wrong or (_find_cut_fault(hyper) if "interval" in hyper else None)


def _find_cell_fault(hyper: Hyper) -> str | None:
    edges, place = hyper["edges"], hyper["place"]
    cells = max(len(edges) - 1, 1)
    if edges.ndim != 1 or not (np.diff(edges) > 0).all() or not 0 < hyper["beyond"] < 1:
        return "its cells do not lie in order"
    if place.ndim != 1 or not (np.diff(place) >= 0).all() or not ((place >= 0) & (place < cells)).all():
        return "its points lie in no cell"
    return None if hyper["alpha"].shape == (len(edges) - 1,) else "its prior rows are of other cells"


def _find_cut_fault(hyper: Hyper) -> str | None:
    """Return what is wrong with cells that are grouped into intervals."""
    interval, each, within = hyper["interval"], hyper["each"], hyper["within"]
    if wrong := find_interval_fault(hyper):
        return wrong
    if not within.shape == interval.shape == hyper["alpha"].shape or not (within > 0).all():
        return "its numbers lie nowhere within its intervals"
    right = each.shape == (int(interval.max(initial=-1)) + 1,) and (each >= 0).all()
    return None if right else "its prior rows are of other intervals"


def check_columns(family: Family, key: Key, columns: tuple[Key, ...], alone: bool) -> None:
    """Raise an error if the columns do not match the key; `alone` means that nothing else is modelled."""
    if not columns and alone and family.facts.takes_bag:  # a sparse table has no named columns
        return
    if not columns or key != (columns if family.facts.block else columns[0]):
        raise ModelFileError(f"{key!r} is {family.name} of the columns {list(columns)!r}.")


def count_units(family: Family, columns: tuple[Key, ...]) -> int:
    """Return the number of anchors and scales of a node with these columns."""
    return 1 if family.facts.kind.coded else (len(columns) or 1) + len(family.facts.number_parents)


def can_model(family: Family, kind: Kind) -> bool:
    """Return whether the family can model a column of this kind."""
    if family.facts.words:
        return kind is Kind.TEXT
    return kind.coded if family.facts.kind.coded else kind.numeric
