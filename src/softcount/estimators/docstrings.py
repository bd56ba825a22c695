"""The docstring of an estimator's class: its text, with Parameters and Attributes from their declarations.

An attribute whose name ends in "_" is declared once, in the class that has it: as a property, by `inputs.attribute`, or
as `name_: Annotated[type, "Meaning."]` if a method sets it. Classes that inherit it document it too.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from inspect import cleandoc
from textwrap import indent
from typing import Any

from softcount.estimators.parameters import Parameter

HEADER = re.compile(r"^\w[\w ]*\n-{3,}$", re.MULTILINE)
"""Title of a section, underlined."""
DOCUMENTED = [
    (r"\bSequence\b", "list"), (r"\bKey\b|\bobject\b", "str"), (r"\bAny\b", "object"), (r"\bFrame\b", "DataFrame"),
    (r"\bnp\.", ""), (r" \| ", " or "), (r"\b(dict|Mapping)\[.*\]", "dict"), (r"\btuple\[(\w+), .*\]", r"tuple of \1"),
    (r"\blist\[tuple.*\]", "list of tuple"), (r"\blist\[(\w+)\]", r"list of \1"),
]  # fmt: skip
"""How types of annotations are written in the documentation."""
WIDTH = 116


def document(cls: type, declared: Mapping[str, Parameter], defaults: Mapping[str, Any]) -> str:
    """The docstring of a class in the form of numpydoc: its own, with Parameters and Attributes after its summary."""
    text = cleandoc(cls.__doc__ or "")
    first = HEADER.search(text)
    start = len(text) if first is None else first.start()
    parameters = (
        (name, f"{declared[name].documented_type}, default={default!r}", declared[name].meaning)
        for name, default in defaults.items()
    )
    parts = [text[:start].strip(), *sections("Parameters", parameters), *sections("Attributes", attributes_of(cls))]
    return indent("\n\n".join([*parts, text[start:].rstrip()]), "    ").strip() + "\n    "


def sections(title: str, entries: Iterable[tuple[str, str, str]]) -> Iterator[str]:
    """The section with these entries, each a name, a type and a meaning; nothing if there are none."""
    shown = [f"{name} : {kind}\n{wrap(meaning)}" for name, kind, meaning in entries]
    if shown:
        yield "\n".join([title, "-" * len(title), *shown])


@cache
def wrap(text: str) -> str:
    """A text in indented lines. `textwrap` took 5 ms per class at every start."""
    lines = [""]
    for word in text.split():
        if len(lines[-1]) + len(word) >= WIDTH:
            lines.append("")
        lines[-1] += f" {word}" if lines[-1] else f"    {word}"
    return "\n".join(lines)


def attributes_of(cls: type) -> Iterator[tuple[str, str, str]]:
    """Name, type and meaning of every attribute that a fit sets; those of a class follow those of its bases."""
    found = {}
    for base in reversed(cls.__mro__):
        types = vars(base).get("__annotations__", {})
        for name in [*types, *vars(base)]:
            own = vars(base).get(name)
            if not name.endswith("_") or name.startswith("_"):
                continue
            if own is None:
                kind, meaning = annotated(types[name])
            else:
                made = getattr(own, "fget", None) or getattr(own, "func", None)
                kind = types.get(name) or getattr(made, "__annotations__", {}).get("return", "Any")
                meaning = " ".join((own.__doc__ or "").partition("\n\n")[0].split())
            if meaning:
                found[name] = (name, documented_type(kind), meaning)
    yield from found.values()


@cache
def annotated(annotation: str) -> tuple[str, str]:
    """The type and the meaning that an annotation as text holds: `Annotated[int, "Meaning."]`.

    >>> annotated('Annotated[int, "Number of " "columns."]')
    ('int', 'Number of columns.')
    """
    made = ast.parse(annotation, mode="eval").body
    if isinstance(made, ast.Subscript) and ast.unparse(made.value) == "Annotated" and isinstance(made.slice, ast.Tuple):
        kind, meaning = made.slice.elts
        return ast.unparse(kind), str(ast.literal_eval(meaning))
    return annotation, ""


@cache
def documented_type(annotation: str) -> str:
    """A type as the documentation writes it.

    >>> documented_type("list[str] | None"), documented_type("dict[Key, np.ndarray]"), documented_type("np.ndarray")
    ('list of str or None', 'dict', 'ndarray')
    """
    for pattern, written in DOCUMENTED:
        annotation = re.sub(pattern, written, annotation)
    return annotation
