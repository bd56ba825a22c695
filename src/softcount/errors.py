"""Exceptions and warnings. Every message says what is wrong, where, what would be right, and what to do next."""

from __future__ import annotations

import errno
import os
import sys
import warnings
from importlib import import_module
from itertools import count
from typing import Any

__all__ = ["DataError", "DataWarning", "ModelFileError", "ParameterError", "ResourceError", "SoftcountError"]

HERE = os.path.dirname(__file__) + os.sep
"""The folder of this library: a warning points at the code that called it."""


class SoftcountError(Exception):
    """The base class of all errors that this library raises on purpose.

    See Also
    --------
    DataError : Data or a request that cannot be used.
    ModelFileError : A model file that cannot be read.
    """


class DataError(SoftcountError, ValueError):
    """A table, label, weight or request that cannot be used as it is.

    The message names the column and the row, what would be right, and what to do next. It is a ValueError too.

    See Also
    --------
    DataWarning : A remark that does not stop the computation.

    Examples
    --------
    >>> import softcount as sc
    >>> sc.KMeans(n_clusters=0).fit([[1.0], [2.0]])
    Traceback (most recent call last):
    softcount.errors.DataError: n_clusters must be a whole number of at least 1, not 0.
    """


class ParameterError(DataError, TypeError):
    """A parameter that an estimator does not have.

    See Also
    --------
    DataError : The base class; this one is a `TypeError` as well.
    """


class ModelFileError(SoftcountError):
    """A model file that cannot be read, or whose contents are inconsistent.

    See Also
    --------
    softcount.load : Reads a model file.
    """


class ResourceError(SoftcountError, MemoryError):
    """A model that would need too much memory; raised before the memory is allocated.

    It is a MemoryError too. The message says what to reduce.

    See Also
    --------
    DataError : Data or a request that cannot be used.
    """


class DataWarning(UserWarning):
    """A remark about the data that does not stop the computation, such as unseen categories.

    See Also
    --------
    DataError : Stops the computation.

    Examples
    --------
    Turn such remarks into errors:

    >>> import warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", DataWarning)
    """


def warn(message: str, category: type[Warning] = DataWarning) -> None:
    """Issue a warning that points at the line which called this library."""
    warnings.warn(message, category, stacklevel=_first_outside())


def _first_outside() -> int:
    """Stack level of the first frame outside this library; 2 in a thread of this library, which has none."""
    for depth in count(2):
        try:
            file = sys._getframe(depth).f_code.co_filename
        except ValueError:
            break
        if not file.startswith(HERE):
            return depth
    return 2


def import_extra(module: str, problem: str, error: type[SoftcountError] = DataError) -> Any:
    """Import a module that Softcount does not require, or raise an error that says what to install."""
    try:
        return import_module(module)
    except ImportError:
        raise error(problem) from None


NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.ENOMEM, errno.EMFILE, errno.ENFILE}
"""Numbers of system errors that mean a shortage."""


def is_shortage(error: BaseException | None) -> bool:
    """Whether memory, disk space or file descriptors have run out."""
    if isinstance(error, OSError):  # errors of Arrow may lack the number
        return error.errno in NO_ROOM or (error.errno is None and "Cannot allocate memory" in str(error))
    return isinstance(error, MemoryError)
