"""Whether there is enough to read for compiled kernels, which take half a second or more to be there."""

from __future__ import annotations

import sys

WORTH_BYTES = 1_000_000
"""Bytes of text that plain Python reads in 0.15 s."""
WORTH_WORDS = 400_000
"""Different words that plain Python puts in a dictionary in 0.2 s."""
LOADED_BYTES, LOADED_WORDS = 2_000, 500
"""From where the kernels are quicker once they are there. Both ways give the same words: it does not matter which."""


def worth_bytes(size: int) -> bool:
    return size >= (LOADED_BYTES if "softcount.kernels.words_count" in sys.modules else WORTH_BYTES)


def worth_words(number: int) -> bool:
    return number >= (LOADED_WORDS if "softcount.kernels.words_count" in sys.modules else WORTH_WORDS)
