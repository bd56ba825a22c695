"""Remedies in error messages: a parameter in Python, an option on the command line.

Errors are raised far below either interface, so each asks this module for the wording of its remedy. The command line
declares itself once; otherwise the wording is for Python.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from shlex import quote

_listening = ["python"]


@contextmanager
def in_shell() -> Iterator[None]:
    """While a command runs, remedies are options of the command line, in every thread."""
    _listening.append("shell")
    try:
        yield
    finally:
        _listening.pop()


def either(python: str, shell: str) -> str:
    """A remedy in the words of the current interface.

    >>> either("header=False", "--no-header")
    'header=False'
    >>> with in_shell():
    ...     either("header=False", "--no-header")
    '--no-header'
    """
    return shell if _listening[-1] == "shell" else python


def setting(name: str, value: str | int) -> str:
    """A parameter that has the same name on both interfaces.

    >>> setting("prior", "auto")
    "prior='auto'"
    >>> with in_shell():
    ...     setting("drop_top", 3)
    '--drop-top 3'
    """
    return either(f"{name}={value!r}", f"--{name.replace('_', '-')} {quote(str(value))}")


def estimate_mean() -> str:
    """The estimate under which no row is impossible."""
    return setting("estimate", "mean")


def header(named: bool) -> str:
    """How to say that the first line of a file names its columns, or that it is data."""
    return either(f"header={named}", "--header" if named else "--no-header")


def names() -> str:
    """How to name the columns of a file."""
    return either("names=['a', 'b', 'c']", "--names a,b,c")


def of_column(name: str, key: object, value: str | int) -> str:
    """How to give a setting of one column.

    >>> of_column("cut", "age", 5)
    "cut={'age': 5}"
    """
    return either(f"{name}={{{key!r}: {value!r}}}", f"--{name} {quote(f'{key}={value}')}")


def kind(key: object, *kinds: str) -> str:
    """How to declare a column, as one kind or another.

    >>> kind("b", "real", "ignore"), kind(3, "normal")
    ("kinds={'b': 'real'} or kinds={'b': 'ignore'}", "kinds={3: 'normal'}")
    >>> with in_shell():
    ...     kind("body mass", "ignore")
    "--kind 'body mass=ignore'"
    """
    return " or ".join(of_column(either("kinds", "kind"), key, word) for word in kinds)


def missing(*words: str) -> str:
    """How to declare words for missing values.

    >>> missing("n.b.", "-1")
    "missing=['n.b.', '-1']"
    >>> with in_shell():
    ...     missing("n.b.", "not known")
    "--missing n.b. --missing 'not known'"
    """
    return either(f"missing={list(words)!r}", " ".join(f"--missing {quote(word)}" for word in words))
