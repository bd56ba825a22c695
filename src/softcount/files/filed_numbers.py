"""Arrays of a model file that must be finite numbers of a shape."""

from __future__ import annotations

import numpy as np

from softcount.errors import ModelFileError
from softcount.files.archive import Arrays


def finite_array(arrays: Arrays, name: str, shape: tuple[int, ...] | None = None) -> np.ndarray:
    """An array of a file, if it is there, holds finite numbers, and has this shape where one is said."""
    array = arrays.get(name)
    if array is None or not np.isfinite(array).all() or (shape is not None and array.shape != shape):
        raise ModelFileError(f"its {name} are not finite numbers, one for each place.")
    return array
