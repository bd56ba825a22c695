"""Ranges of the numbers in records, checked when a record is read from a file."""

from typing import Annotated

from msgspec import Meta, Struct

Share = Annotated[float, Meta(ge=0, le=1 + 1e-9)]
"""A share of something; rounding may leave it just above 1."""
NotNegative = Annotated[float, Meta(ge=0)]
Digits = Annotated[int, Meta(ge=0, le=30)]
"""A number of decimals of a written number."""
Positive = Annotated[float, Meta(gt=0)]
Amount = Annotated[int, Meta(ge=0, le=2**53)]
"""A number of rows or cells: doubles count exactly up to 2**53."""


class Floats(Struct, frozen=True):
    """An annotation of an array of finite float64 numbers in a record, or of a tuple of such arrays.

    An axis is as long as its name says: a size that the reader of the file gives, or the length of what the record has
    at this path. None leaves an axis open.
    """

    axes: tuple[str | None, ...] = (None,)
    least: float | None = None
    positive: bool = False
