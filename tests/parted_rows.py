"""A table in parts, for engines that read each where it is, and what two fits of it have to agree in."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

PARTS, ROWS = 4, 1_200


def columns(part: int) -> dict[str, Any]:
    """Numbers with holes, levels that come late, counts, and the class."""
    rng = np.random.default_rng(part)
    group = rng.integers(0, 3, ROWS)
    levels = ["red", "blue", "green", "late" if part > 1 else "red"]
    return {
        "x": pa.array(rng.normal(size=ROWS) + 2.0 * group, mask=rng.random(ROWS) < 0.05),
        "y": rng.normal(size=ROWS) - group,
        "colour": [levels[place] for place in (group + rng.integers(0, 2, ROWS)) % 4],
        "visits": rng.poisson(2 + 3 * group),
        "kind": [("a", "b", "c")[place] for place in group],
    }


def differs(one: Any, other: Any) -> float:
    """The largest difference of counts, in proportion to the largest of the column."""
    pairs = [(own.value, other.counts_.arrays[key].value) for key, own in one.counts_.arrays.items()]
    return max(float(np.abs(a - b).max() / np.abs(a).max()) for a, b in pairs)


def same_bits(one: Any, other: Any) -> bool:
    pairs = [(own, other.counts_.arrays[key]) for key, own in one.counts_.arrays.items()]
    return all(np.array_equal(a.hi, b.hi) and np.array_equal(a.lo, b.lo) for a, b in pairs)
