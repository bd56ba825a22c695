"""Numbers that follow each other turned into ones that look drawn."""

from __future__ import annotations

import numpy as np

STEPS = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB))


def mixed(numbers: np.ndarray) -> np.ndarray:
    """Numbers of 64 bits, each turned into another that has nothing in common with it: the finaliser of SplitMix64.

    No two numbers are turned into the same one.

    >>> mixed(np.array([1, 2], dtype=np.uint64)).tolist()
    [6238072747940578789, 15839785061582574730]
    """
    with np.errstate(over="ignore"):
        for shift, factor in STEPS:
            numbers = (numbers ^ (numbers >> np.uint64(shift))) * np.uint64(factor)
    return np.asarray(numbers ^ (numbers >> np.uint64(31)))
