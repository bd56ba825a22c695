"""What can go wrong, as a small hierarchy.

Every message says what, where (column, row), what would be right, and what to do next.
"""


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
