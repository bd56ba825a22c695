"""The weights of columns in a model file, and back, trusting nothing that is read."""

from __future__ import annotations

import numpy as np

from softcount.errors import ModelFileError
from softcount.files.archive import Arrays, Document
from softcount.files.filed_numbers import finite_array
from softcount.fitted.fitted import ColumnWeights


def weights_document(found: ColumnWeights, arrays: Arrays) -> Document:
    """The weights as JSON; what is large goes to `arrays`."""
    arrays["column_weights"], arrays["class_bias"] = found.weights, found.bias
    return {"column_weights": {"penalty": float(found.penalty)}}


def weights_from(document: Document, arrays: Arrays, leaves: int, groups: int) -> ColumnWeights | None:
    """The weights of a file, if they are those of its columns; None where it has none."""
    about = document.get("column_weights")
    if about is None:
        return None
    weights, bias = finite_array(arrays, "column_weights", (leaves,)), finite_array(arrays, "class_bias", (groups,))
    if (weights < 0).any() or not np.isfinite(about["penalty"]):
        raise ModelFileError("the weights of its columns make no sense.")
    return ColumnWeights(weights, bias, float(about["penalty"]))
