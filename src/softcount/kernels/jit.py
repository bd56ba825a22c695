"""Typed versions of Numba's decorators, which would leave every kernel and its results untyped."""

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
    """Logs once per process that kernels are being compiled: the first large fit on a machine takes longer."""

    said = False

    def on_start(self, event: Any) -> None:
        """Called by Numba before it compiles a kernel that is not cached on disk."""
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
    """Return a decorator that compiles a kernel. The kernel releases the GIL and is cached on disk."""
    return cast(Callable[[Kernel], Kernel], njit(nogil=True, cache=True, **options))


def instruction(kinds: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that turns a function of an LLVM builder and LLVM values into a kernel instruction.

    `kinds` is the Numba signature, or a function from the argument types to it. Array arguments have `data` and
    `shape`; tuples become lists. An instruction that returns None has no result.
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
    """Return a decorator for the implementation of `plain` inside kernels, chosen by the argument types."""
    return cast(Callable[[Kernel], Kernel], extending.overload(plain, strict=False))


def register_jitable(plain: Kernel) -> Kernel:
    """Make a function callable from kernels; it is compiled into each of them."""
    return cast(Kernel, extending.register_jitable(plain))


def inlined(plain: Kernel) -> Kernel:
    """Make a short function callable from kernels; LLVM inlines every call, where it might pass registers in memory."""
    return cast(Kernel, extending.register_jitable(forceinline=True)(plain))
