"""Arrow's own functions on columns, by what they are called in Arrow.

`pyarrow.compute` writes a Python function with its documentation for each of three hundred as it is imported, which
takes 30 ms of a small fit from the shell. All of them make the one call that is made here.
"""

from __future__ import annotations

from typing import Any


def call(name: str, *columns: Any, options: Any = None) -> Any:
    """What a function of Arrow makes of columns.

    >>> import pyarrow as pa
    >>> call("binary_length", pa.array(["one", "three"])).to_pylist()
    [3, 5]
    """
    from pyarrow._compute import call_function

    return call_function(name, list(columns), options)


def matches(column: Any, pattern: str) -> Any:
    """Which cells of text hold what a regular expression describes; null where a cell is."""
    from pyarrow._compute import MatchSubstringOptions

    return call("match_substring_regex", column, options=MatchSubstringOptions(pattern))


def as_type(column: Any, kind: Any) -> Any:
    """The cells as another type; an error where one has no such value."""
    from pyarrow._compute import CastOptions

    return call("cast", column, options=CastOptions.safe(kind))


def with_levels(column: Any) -> Any:
    """The column as places in a list of its different values."""
    from pyarrow._compute import DictionaryEncodeOptions

    return call("dictionary_encode", column, options=DictionaryEncodeOptions())


def are_all(truths: Any) -> bool:
    """Whether every known truth is true; of none it is false."""
    from pyarrow._compute import ScalarAggregateOptions

    return bool(call("all", truths, options=ScalarAggregateOptions(min_count=1)).as_py())
