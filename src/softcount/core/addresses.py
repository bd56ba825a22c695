"""Addresses of databases, and how they are shown without their passwords."""

from __future__ import annotations

import re

POSTGRES = ("postgresql://", "postgres://")
_USER = re.compile(r"(postgres(?:ql)?://[^\s:/@?'\"]*):[^\s?'\"]*@")
_PARAMETER = re.compile(r"(\bpass(?:word|file)?|sslpassword)(\s*=\s*)('(?:[^'\\]|\\.)*'|[^&\s'\"]*)", re.IGNORECASE)
SECRET = "***"
LEAST = 2
"""Letters of a part of a password from which on it is looked for in what others say."""


class Address(str):
    """An address as it may be shown, without its password; `whole` is what one connects to."""

    __slots__ = ("whole",)
    whole: str

    def __new__(cls, whole: str) -> Address:
        found = super().__new__(cls, without_password(whole))
        found.whole = whole
        return found


def address_of(text: str) -> str:
    """The text itself, or, where it is the address of a database, one that can be shown."""
    return Address(text) if text.startswith(POSTGRES) and not isinstance(text, Address) else text


def without_password(text: str) -> str:
    """Any text, without the passwords of addresses in it; three stars for those that are named.

    >>> without_password("cannot reach postgresql://ann:s3cret@host/shop?sslpassword=no")
    'cannot reach postgresql://ann@host/shop?sslpassword=***'
    >>> without_password("host=db password='a b' user=ann")
    'host=db password=*** user=ann'
    """
    return _PARAMETER.sub(rf"\1\2{SECRET}", _USER.sub(r"\1@", text))


def discreet(said: str, address: str) -> str:
    """What a driver says, without the password of an address and without parts of it, as it may have cut it up."""
    from urllib.parse import unquote

    for secret in secrets_in(address):
        parts = {secret, unquote(secret), *re.split(r"[^\w]+", secret), *re.split(r"[^\w]+", unquote(secret))}
        for part in sorted(parts, key=len, reverse=True):
            if len(part) >= LEAST:
                said = said.replace(part, SECRET)
    return without_password(said)


def secrets_in(address: str) -> list[str]:
    """The passwords that an address holds."""
    users = [found.group(0)[len(found.group(1)) + 1 : -1] for found in _USER.finditer(address)]
    named = [found.group(3).strip("'") for found in _PARAMETER.finditer(address)]
    return [secret for secret in (*users, *named) if secret]
