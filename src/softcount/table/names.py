"""Names of columns are data: what answers call them, and names of our own that none of them bears."""

from __future__ import annotations

from collections.abc import Container, Iterable

from softcount.table.schema import Key


def label(key: Key) -> str:
    """A column's or block's name as text."""
    return ", ".join(map(str, key)) if isinstance(key, tuple) else str(key)


def apart(name: str, theirs: Container[object]) -> str:
    """A name of ours, in one more pair of parentheses as long as it is one of theirs.

    >>> apart("(prior)", ["age"]), apart("(prior)", ["age", "(prior)"])
    ('(prior)', '((prior))')
    """
    while name in theirs:
        name = f"({name})"
    return name


def labels(keys: Iterable[Key]) -> dict[Key, str]:
    """Every key's name as text, no two alike: columns that have names keep them, blocks and numbers stand back.

    >>> labels(["a", "b", "a, b", ("a", "b")])
    {'a': 'a', 'b': 'b', 'a, b': 'a, b', ('a', 'b'): '(a, b)'}
    """
    keys = list(dict.fromkeys(keys))
    found: dict[Key, str] = {key: key for key in keys if isinstance(key, str)}
    taken = set(found.values())
    for key in keys:
        if key not in found:
            found[key] = apart(label(key), taken)
            taken.add(found[key])
    return {key: found[key] for key in keys}
