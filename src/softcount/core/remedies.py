"""Wording of messages: remedies for the interface in use, and addresses of databases without their passwords.

Errors are raised far below either interface, so each asks this module whether its remedy is a parameter in Python or an
option on the command line. The command line declares itself once; otherwise the wording is for Python.
"""

from __future__ import annotations

import re
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


# -- addresses of databases

POSTGRES = ("postgresql://", "postgres://")
_USER = re.compile(r"(postgres(?:ql)?://[^\s:/@?'\"]*):[^\s?'\"]*@")
_PARAMETER = re.compile(r"(\bpass(?:word|file)?|sslpassword)(\s*=\s*)('(?:[^'\\]|\\.)*'|[^&\s'\"]*)", re.IGNORECASE)
SECRET = "***"
SHORTEST_PART = 2
"""Parts of a password with fewer letters are not removed from messages of a driver."""


class Address(str):
    """The address of a database without its password; `whole` is the address to connect to."""

    __slots__ = ("whole",)
    whole: str

    def __new__(cls, whole: str) -> Address:
        found = super().__new__(cls, without_password(whole))
        found.whole = whole
        return found


def address_of(text: str) -> str:
    """The text; if it is the address of a database, as an `Address`."""
    return Address(text) if text.startswith(POSTGRES) and not isinstance(text, Address) else text


def without_password(text: str) -> str:
    """The text without the passwords of addresses in it; named passwords become three stars.

    >>> without_password("cannot reach postgresql://ann:s3cret@host/shop?sslpassword=no")
    'cannot reach postgresql://ann@host/shop?sslpassword=***'
    >>> without_password("host=db password='a b' user=ann")
    'host=db password=*** user=ann'
    """
    return _PARAMETER.sub(rf"\1\2{SECRET}", _USER.sub(r"\1@", text))


def discreet(said: str, address: str) -> str:
    """The message of a driver without the password of an address, and without parts of it."""
    from urllib.parse import unquote  # 5 ms, for errors of databases only

    for secret in secrets_in(address):
        parts = {secret, unquote(secret), *re.split(r"[^\w]+", secret), *re.split(r"[^\w]+", unquote(secret))}
        for part in sorted(parts, key=len, reverse=True):
            if len(part) >= SHORTEST_PART:
                said = said.replace(part, SECRET)
    return without_password(said)


def secrets_in(address: str) -> list[str]:
    users = [found.group(0)[len(found.group(1)) + 1 : -1] for found in _USER.finditer(address)]
    named = [found.group(3).strip("'") for found in _PARAMETER.finditer(address)]
    return [secret for secret in (*users, *named) if secret]
