"""Rows as learning asks for them: something done with every part of a table, added up in the order of the parts.

What is done is a step: the name of a function of this package and what that is told beforehand. So it can be done where
the rows are, in another thread, process or machine, and nothing but small results comes back.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from importlib import import_module
from operator import add
from typing import Any

from softcount.records import dataclass


@dataclass(frozen=True, slots=True)
class Step:
    """Something to be done with every part: `name` is "module:function", which is called once a pass with `state`.

    What that gives is called with each part. Without `threads` it holds the interpreter, so that two threads would wait
    for each other.

    >>> Step("functools:partial", len).begin()("abc")
    3
    """

    name: str
    state: Any = None
    threads: bool = True

    def begin(self) -> Callable[[Any], Any]:
        """What is done with a part."""
        module, _, function = self.name.partition(":")
        begun: Callable[[Any], Any] = getattr(import_module(module), function)(self.state)
        return begun


class Rows(ABC):
    """The rows of a table in parts, wherever they are."""

    @abstractmethod
    def each(self, step: Step) -> Iterator[Any]:
        """What a step gives for every part, in their order: small results."""

    def total(self, step: Step) -> Any:
        """The sum of what a step gives, in the order of the parts."""
        return reduce(add, self.each(step))

    @abstractmethod
    def made(self, step: Step) -> Rows:
        """The same rows, each part as a step makes it, once."""

    @abstractmethod
    def arranged(self, step: Step) -> Rows:
        """The same rows in other parts: the step makes an iterable of parts from neighbouring ones, once."""

    @property
    @abstractmethod
    def n_rows(self) -> int:
        """How many rows there are."""

    @property
    @abstractmethod
    def here(self) -> Sequence[Any]:
        """The parts themselves, for what cannot do without; an error where they are on other machines."""

    @abstractmethod
    def close(self) -> None:
        """Give back what the rows take up."""
