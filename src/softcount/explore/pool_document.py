"""What tells a classifier's classes beside naive Bayes, for a page: its members, each by the numbers it adds up."""

from __future__ import annotations

from typing import Any

import numpy as np

from softcount.classify.encode import CutColumns, NumberScale, column_keys, measured_count, number_count
from softcount.classify.features import Terms
from softcount.classify.members import Additive, BlockAndTables, Member, ShrunkBlock, StarsOfCuts, StarTables, WordLines
from softcount.explore.packed_arrays import packed
from softcount.fitted.answers import labels_in
from softcount.fitted.fitted import Fitted

Document = dict[str, Any]
LARGEST = 1_500_000
"""Bytes that a pool may take in a page; stars of many cells take more."""


def pool_document(model: Fitted) -> Document | None:
    """The members with their weights, and how the columns they read are numbered; None where they take too much."""
    assert model.pool is not None
    names, keys = labels_in(model), column_keys(model.schema)
    if _size(model.pool.members) > LARGEST or any(isinstance(member, WordLines) for member in model.pool.members):
        return None
    return {
        "columns": [names[key] for key in keys],
        "levels": [[str(level) for level in model.schema[key].levels] for key in keys],
        "measured": measured_count(model.schema),
        "numbers": number_count(model.schema),
        "weights": packed(model.pool.weights),
        "bias": packed(model.pool.bias),
        "members": [_member(member) for member in model.pool.members],
        "sparse": None if model.pool.sparse is None else _member(model.pool.sparse.member),
        "presence": [] if model.pool.sparse is None else model.pool.sparse.presence.tolist(),
    }


def _size(members: tuple[Member, ...]) -> float:
    """About how many bytes the packed numbers take: four each and a third more for being text."""
    return sum(member.stars.given.size for member in members if isinstance(member, StarsOfCuts)) * 16 / 3


def _member(member: Member) -> Document:
    if isinstance(member, Additive):
        lines = len(member.coefficients) - 1 - member.terms.width
        tables = {"terms": _terms(member.terms), "coefficients": packed(member.coefficients), "lines": lines}
        return {"kind": "additive", **tables, "cuts": _cuts(member.cuts), "scale": _scale(member.scale)}
    if isinstance(member, BlockAndTables):
        block = member.block
        spread = block.covariances if isinstance(block, ShrunkBlock) else block.variances
        normals = {"means": packed(block.means), "spread": packed(spread), "scale": _scale(block.scale)}
        tables = {"terms": _terms(member.terms), "tables": packed(member.tables), "shares": packed(member.shares)}
        columns = {"columns": member.columns.tolist(), "joined": isinstance(block, ShrunkBlock)}
        return {"kind": "block", "cuts": _cuts(member.cuts), **normals, **tables, **columns}
    assert isinstance(member, StarsOfCuts)
    return {"kind": "stars", "cuts": _cuts(member.cuts), **_stars(member.stars)}


def _stars(stars: StarTables) -> Document:
    found = {name: packed(getattr(stars, name), narrow=name == "given") for name in ("shares", "alone", "given")}
    return {"terms": _terms(stars.terms), **found}


def _cuts(cuts: CutColumns) -> Document:
    return {"edges": [edges.tolist() for edges in cuts.edges]}


def _terms(terms: Terms) -> Document:
    return {"columns": [list(term) for term in terms.columns], "sizes": list(terms.sizes), "width": terms.width}


def _scale(scale: NumberScale) -> Document:
    return {name: np.asarray(getattr(scale, name)).tolist() for name in ("floor", "middle", "spread")}
