"""Questions that every row answers by itself, which rows of an engine are asked where they are; and the others."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

from softcount.sources.frames import engine_holding, refuse_elsewhere

Method = TypeVar("Method", bound=Callable[..., Any])


def row_by_row(method: Method) -> Method:
    """A method of a model and rows whose answer for a row depends on no other row.

    Of a frame of Dask's or Spark's the answer is one of theirs, computed when it is asked for, where the rows are.
    """

    @wraps(method)
    def asked(self: Any, X: Any, *how: Any, **named: Any) -> Any:
        engine = engine_holding(X)
        if engine is None:
            return method(self, X, *how, **named)
        from softcount.estimators.engine_answers import Question

        asking = Question.of(self, method.__name__, how, named)
        if engine == "Spark":
            from softcount.estimators.spark_answers import spark_answer

            return spark_answer(asking, X)
        from softcount.estimators.dask_answers import dask_answer

        return dask_answer(asking, X)

    asked.row_by_row = True  # type: ignore[attr-defined]
    return cast(Method, asked)


def needs_all_rows(method: Method) -> Method:
    """A method whose answer is of all rows together: those in the frame of an engine are to be brought first."""

    @wraps(method)
    def asked(self: Any, X: Any, *how: Any, **named: Any) -> Any:
        refuse_elsewhere(X)
        return method(self, X, *how, **named)

    return cast(Method, asked)
