"""Averaged stars in a model file: the counts that they follow from, and back, trusting nothing."""

from __future__ import annotations

from typing import Any

import numpy as np

from softcount.classify.aode import MOST_BYTES, StarCounts, StarLayout, StarSetting, bytes_of, whole
from softcount.classify.encode import measured_count
from softcount.classify.features import PairCounts, Terms
from softcount.errors import ModelFileError
from softcount.files.archive import Arrays, Document
from softcount.files.filed_numbers import finite_array
from softcount.table.schema import Schema

SENSELESS = "the counts of its stars make no sense."


def stars_document(stars: StarCounts, arrays: Arrays) -> Document:
    """Counts of stars as JSON; what is large goes to `arrays`."""
    arrays["stars/pairs"], arrays["stars/single"] = stars.pairs.counts, stars.single
    arrays["stars/sizes"], arrays["stars/edges"] = stars.sizes, np.concatenate([np.zeros(0), *stars.cuts.edges])
    return {
        "cuts": [len(edges) for edges in stars.cuts.edges],
        "columns": [column for (column,) in stars.pairs.terms.columns],
        "concentration": float(stars.setting.concentration),
        "informed": stars.setting.informed,
    }


def stars_from(document: Document, arrays: Arrays, schema: Schema, classes: int) -> StarCounts:
    """The counts of a file, if they are of these columns and classes."""
    layout = StarLayout.of(schema, range(classes))
    edges = _edges(document["cuts"], finite_array(arrays, "stars/edges"), measured_count(schema))
    cuts = layout.cuts(dict(zip(layout.keys, edges, strict=False)))
    columns, informed, concentration = document["columns"], document["informed"], document["concentration"]
    known = isinstance(columns, list) and all(type(x) is int and 0 <= x < len(cuts.sizes) for x in columns)
    if not known or sorted(set(columns)) != columns or type(informed) is not bool:
        raise ModelFileError(SENSELESS)
    if not isinstance(concentration, float) or not 0 < concentration < np.inf:
        raise ModelFileError(SENSELESS)
    terms = Terms(tuple((column,) for column in columns), cuts.sizes)
    if terms.columns and bytes_of(terms.width, classes) > MOST_BYTES:
        raise ModelFileError("the counts of its stars take more room than they may.")
    pairs = _counts(arrays, "stars/pairs", (classes, terms.width, terms.width))
    if not np.array_equal(pairs, pairs.transpose(0, 2, 1)):
        raise ModelFileError(SENSELESS)
    single = _counts(arrays, "stars/single", (whole(cuts.sizes).width, classes))
    sizes = _counts(arrays, "stars/sizes", (classes,))
    return StarCounts(cuts, PairCounts(terms, pairs), single, sizes, StarSetting(concentration, informed))


def _edges(lengths: Any, edges: np.ndarray, measured: int) -> list[np.ndarray]:
    whole_numbers = isinstance(lengths, list) and all(type(length) is int and length >= 0 for length in lengths)
    if not whole_numbers or len(lengths) < measured or sum(lengths) != len(edges):
        raise ModelFileError("its cuts are not those of its columns.")
    parts = np.split(edges, np.cumsum(lengths)[:-1]) if lengths else []
    if any((np.diff(part) <= 0).any() for part in parts):
        raise ModelFileError("its cuts are out of order.")
    return parts[:measured]


def _counts(arrays: Arrays, name: str, shape: tuple[int, ...]) -> np.ndarray:
    found = finite_array(arrays, name, shape)
    if found.min(initial=0.0) < 0:
        raise ModelFileError(SENSELESS)
    return found
