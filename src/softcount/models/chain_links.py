"""Which hidden state may come first, which may follow which, and which show the same."""

from __future__ import annotations

from softcount.families import Categorical, Setting
from softcount.models.nodes import Node
from softcount.records import dataclass
from softcount.table.schema import Key

FIRST: Key = ("(first state)", 0)
"""The key of the first states. No block of columns is called so: those of a table are all names or all places."""


def after(state: int) -> Key:
    """The key of what follows a state."""
    return ("(after state)", state)


@dataclass(frozen=True, slots=True)
class Links:
    """Which states may come first, which may follow each, and which share what they show: equal numbers do."""

    firsts: tuple[int, ...]
    nexts: tuple[tuple[int, ...], ...]
    shown: tuple[int, ...]

    @classmethod
    def free(cls, states: int) -> Links:
        """Every state may be first and follow any, and each shows something of its own."""
        every = tuple(range(states))
        return cls(every, (every,) * states, every)

    @property
    def states(self) -> int:
        return len(self.nexts)

    @property
    def emissions(self) -> int:
        """How many different things are shown."""
        return max(self.shown) + 1

    @property
    def is_free(self) -> bool:
        """Whether states are told apart by nothing but their parameters."""
        return self == Links.free(self.states)

    def in_line(self) -> list[int] | None:
        """The states in an order that no step goes back in; None where there is none."""
        left, order = set(range(self.states)), list[int]()
        while left:
            ahead = {j for i in left for j in self.nexts[i] if j != i}
            free = sorted(left - ahead)
            if not free:
                return None
            order += free
            left -= set(free)
        return order if self.states > 1 and not self.is_free else None

    def nodes(self) -> tuple[Node, ...]:
        """A categorical node for the first state, and one for what follows each: what cannot follow is no level."""
        said = [(FIRST, self.firsts), *((after(i), levels) for i, levels in enumerate(self.nexts))]
        return tuple(Node(key, (), Categorical(), Setting((key,), 1, levels)) for key, levels in said)
