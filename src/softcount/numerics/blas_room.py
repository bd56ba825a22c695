"""Room for matrix products where memory is limited: their library ends the process where it finds none."""

from __future__ import annotations

from contextlib import suppress

ROOM = 64 << 20
"""Bytes that must be free: the library takes about half of them for good, with its first product of some size."""
SOME = 200
"""Rows and columns of a product for which it takes them."""


def reserve_room() -> None:
    """Let the library of matrix products take its room while there is some; a `MemoryError` where there is not.

    Only where the process may not have as much memory as it likes: elsewhere it would be a waste of a millisecond.
    """
    if not _is_limited():
        return
    import numpy as np

    np.empty(ROOM, dtype=np.uint8)
    square = np.ones((SOME, SOME))
    square @ square


def _is_limited() -> bool:
    with suppress(ImportError, OSError, ValueError, AttributeError):
        import resource

        return resource.getrlimit(resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY
    return False
