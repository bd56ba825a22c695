"""Typed versions of Numba's decorators, which make every kernel and its results untyped."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import wraps
from types import FunctionType
from typing import Any, TypeVar, cast

from numba import extending, njit, types
from numba.core import event

Kernel = TypeVar("Kernel", bound=Callable[..., Any])


class CompilingNotice(event.Listener):  # type: ignore[misc]  # Numba has no types
    """Says once a process that a kernel is being compiled: on a new machine the first large fit takes longer."""

    said = False

    def on_start(self, event: Any) -> None:
        """A kernel that is not cached on disk is about to be compiled."""
        ours = event.data["dispatcher"].py_func.__module__.startswith("softcount.")
        if ours and not CompilingNotice.said:
            CompilingNotice.said = True
            logging.getLogger("softcount").warning(
                "softcount compiles its loops for this machine, once; they are kept for the next time."
            )

    def on_end(self, event: Any) -> None:
        """Required by Numba."""


event.register("numba:compile", CompilingNotice())


def jit(**options: Any) -> Callable[[Kernel], Kernel]:
    """A decorator that compiles a kernel, which lets other threads run and is kept on disk."""
    return cast(Callable[[Kernel], Kernel], njit(nogil=True, cache=True, **options))


def instruction(kinds: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator: a kernel instruction from a function that takes LLVM's builder and values.

    `kinds` are its Numba types, or a function from the types of the arguments to them. Arrays have `data` and `shape`,
    tuples are lists; None is no result.
    """

    def instructed(emit: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(emit)
        def define(typing: Any, *called: Any) -> Any:
            def call(context: Any, builder: Any, signature: Any, values: Any) -> Any:
                opened = (_open(context, builder, *pair) for pair in zip(signature.args, values, strict=True))
                found = emit(builder, *opened)
                return context.get_dummy_value() if found is None else found

            return kinds(*called) if isinstance(kinds, FunctionType) else kinds, call

        return cast(Callable[..., Any], extending.intrinsic(define))

    return instructed


def _open(context: Any, builder: Any, kind: Any, value: Any) -> Any:
    if isinstance(kind, types.Array):
        return context.make_array(kind)(context, builder, value)
    if isinstance(kind, types.BaseTuple):
        return [_open(context, builder, each, builder.extract_value(value, at)) for at, each in enumerate(kind)]
    return value


def overload(plain: Callable[..., Any]) -> Callable[[Kernel], Kernel]:
    """A decorator for the implementation of a plain function inside kernels, chosen by the types of the arguments."""
    return cast(Callable[[Kernel], Kernel], extending.overload(plain, strict=False))


def register_jitable(plain: Kernel) -> Kernel:
    """A function that kernels may call, compiled into each of them."""
    return cast(Kernel, extending.register_jitable(plain))
