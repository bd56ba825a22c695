"""What can go wrong, as a small hierarchy.

Every message says what, where (column, row), what would be right, and what to do next.
"""

from __future__ import annotations

import errno
import os
import sys
import warnings
from itertools import count

HERE = os.path.dirname(__file__) + os.sep
"""Where the files of this library are: nobody is helped by a warning that points there."""


class SoftcountError(Exception):
    """The parent of every error raised on purpose."""


class DataError(SoftcountError, ValueError):
    """A table, label, weight or request that cannot be used as it is."""


class ModelFileError(SoftcountError):
    """A model file that cannot be read, or does not make sense."""


class ResourceError(SoftcountError, MemoryError):
    """A model that would need more memory than is reasonable, found before it was asked for."""


class DataWarning(UserWarning):
    """Something in the table that changes no result but that its owner wants to know."""


def warn(message: str, category: type[Warning] = DataWarning) -> None:
    """A warning that points at the line which called this library."""
    warnings.warn(message, category, stacklevel=_first_outside())


def _first_outside() -> int:
    """How many frames above `warn`, itself counted, is the first that is not ours; in a thread of ours none is."""
    for depth in count(2):
        try:
            file = sys._getframe(depth).f_code.co_filename
        except ValueError:
            break
        if not file.startswith(HERE):
            return depth
    return 2


NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.ENOMEM, errno.EMFILE, errno.ENFILE}
"""Errors of the system that say something has run out."""


def is_shortage(error: BaseException | None) -> bool:
    """Whether memory, disk or descriptors have run out: nothing is wrong with the data."""
    if isinstance(error, OSError):  # Arrow says what ran out, but not always by its number
        return error.errno in NO_ROOM or (error.errno is None and "Cannot allocate memory" in str(error))
    return isinstance(error, MemoryError)
