"""The weights of a logistic regression in a model file, and back, trusting nothing that is read."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from softcount.errors import ModelFileError
from softcount.families.base import number, whole
from softcount.files.archive import Arrays, Document
from softcount.files.filed_numbers import finite_array
from softcount.fitted.fitted import LinearWeights
from softcount.models.nodes import Node

MOST_STEPS = 10**9


def linear_document(found: LinearWeights, leaves: Sequence[Node], arrays: Arrays) -> Document:
    """The weights as JSON; what is large goes to `arrays`."""
    arrays["linear/bias"] = found.bias
    for place, leaf in enumerate(leaves):
        arrays[f"linear/{place}"] = np.ascontiguousarray(found.weights[leaf.key])
    return {"linear": {"penalty": float(found.penalty), "n_iter": int(found.n_iter)}}


def linear_from(document: Document, arrays: Arrays, leaves: Sequence[Node], groups: int) -> LinearWeights | None:
    """The weights of a file, if they are those of its columns; None where it has none."""
    about = document.get("linear")
    if about is None:
        return None
    weights = {
        leaf.key: finite_array(arrays, f"linear/{place}", (groups, leaf.family.width(leaf.setting)))
        for place, leaf in enumerate(leaves)
    }
    penalty, steps = number(about["penalty"], "the penalty"), whole(about["n_iter"], 0, MOST_STEPS, "iterations")
    if not 0 < penalty < np.inf:
        raise ModelFileError(f"the penalty of its logistic regression is {penalty}, and must be above 0.")
    return LinearWeights(weights, finite_array(arrays, "linear/bias", (groups,)), penalty, steps)
