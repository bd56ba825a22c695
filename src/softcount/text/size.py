"""Whether there is enough to read for compiled kernels, which take a second or so to be imported."""

from __future__ import annotations

import sys

WORTH_BYTES = 200_000
"""Bytes of text that plain Python reads in 30 ms."""
WORTH_WORDS = 100_000
"""Different words that plain Python looks up in 50 ms."""
LOADED_BYTES, LOADED_WORDS = 2_000, 500
"""From where the kernels are quicker once they are there. Both ways give the same words: it does not matter which."""


def worth_bytes(size: int) -> bool:
    return size >= (LOADED_BYTES if "softcount.kernels.words_count" in sys.modules else WORTH_BYTES)


def worth_words(number: int) -> bool:
    return number >= (LOADED_WORDS if "softcount.kernels.words_count" in sys.modules else WORTH_WORDS)
