"""Wording of error messages: remedies for the interface in use, and database addresses without their passwords.

Errors are raised far below both interfaces. This module tells them whether the remedy is a parameter in Python or an
option on the command line. The command line declares itself once; otherwise the wording is for Python.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from shlex import quote

_listening = ["python"]


@contextmanager
def in_shell() -> Iterator[None]:
    """Word remedies as command-line options while the context is active, in every thread."""
    _listening.append("shell")
    try:
        yield
    finally:
        _listening.pop()


def either(python: str, shell: str) -> str:
    """Return the remedy for the current interface.

    >>> either("header=False", "--no-header")
    'header=False'
    >>> with in_shell():
    ...     either("header=False", "--no-header")
    '--no-header'
    """
    return shell if _listening[-1] == "shell" else python


def setting(name: str, value: str | int) -> str:
    """Word a parameter that has the same name on both interfaces.

    >>> setting("prior", "auto")
    "prior='auto'"
    >>> with in_shell():
    ...     setting("drop_top", 3)
    '--drop-top 3'
    """
    return either(f"{name}={value!r}", f"--{name.replace('_', '-')} {quote(str(value))}")


def estimate_mean() -> str:
    """Word the `estimate` under which no row is impossible."""
    return setting("estimate", "mean")


def header(named: bool) -> str:
    """Word the option that makes the first line of a file column names (`named`), or data."""
    return either(f"header={named}", "--header" if named else "--no-header")


def similar(name: object, known: Iterable[object], otherwise: str = "", any_case: bool = False) -> str:
    """Word a known name that is similar to a wrong one, or what to say `otherwise`.

    >>> similar("incom", ["age", "income"])
    "Did you mean 'income'?"
    >>> similar(" INCOM ", ["age", "Income"], any_case=True)
    "Did you mean 'Income'?"
    """
    if not any_case:
        near = get_close_matches(str(name), list(map(str, known)), n=1)
        return f"Did you mean {near[0]!r}?" if near else otherwise
    folded = {str(one).casefold(): one for one in known}
    near = get_close_matches(str(name).strip().casefold(), list(folded), n=1)
    return f"Did you mean {folded[near[0]]!r}?" if near else otherwise


def names() -> str:
    """Word the option that names the columns of a file."""
    return either("names=['a', 'b', 'c']", "--names a,b,c")


def of_column(name: str, key: object, value: str | int) -> str:
    """Word the setting of one column.

    >>> of_column("cut", "age", 5)
    "cut={'age': 5}"
    """
    return either(f"{name}={{{key!r}: {value!r}}}", f"--{name} {quote(f'{key}={value}')}")


def kind(key: object, *kinds: str) -> str:
    """Word the declaration of a column as one of these kinds.

    >>> kind("b", "real", "ignore"), kind(3, "normal")
    ("kinds={'b': 'real'} or kinds={'b': 'ignore'}", "kinds={3: 'normal'}")
    >>> with in_shell():
    ...     kind("body mass", "ignore")
    "--kind 'body mass=ignore'"
    """
    return " or ".join(of_column(either("kinds", "kind"), key, word) for word in kinds)


def missing(*words: str) -> str:
    """Word the declaration of words for missing values.

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
"""Parts of a password shorter than this are not removed from messages of a driver."""


class Address(str):
    """The address of a database without its password. `whole` is the address to connect to."""

    __slots__ = ("whole",)
    whole: str

    def __new__(cls, whole: str) -> Address:
        found = super().__new__(cls, without_password(whole))
        found.whole = whole
        return found


def address_of(text: str) -> str:
    """Return the text, as an `Address` if it is the address of a database."""
    return Address(text) if text.startswith(POSTGRES) and not isinstance(text, Address) else text


def without_password(text: str) -> str:
    """Remove the passwords of addresses from a text. Passwords given as parameters become three stars.

    >>> without_password("cannot reach postgresql://ann:s3cret@host/shop?sslpassword=no")
    'cannot reach postgresql://ann@host/shop?sslpassword=***'
    >>> without_password("host=db password='a b' user=ann")
    'host=db password=*** user=ann'
    """
    return _PARAMETER.sub(rf"\1\2{SECRET}", _USER.sub(r"\1@", text))


def discreet(said: str, address: str) -> str:
    """Remove the password of an address, and parts of it, from the message of a driver."""
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
