"""Networks in files: BIF or XMLBIF, plain or gzipped, told apart by what they hold."""

from __future__ import annotations

import gzip
import os

from softcount.errors import DataError
from softcount.files.atomic import atomic_writer
from softcount.files.bif import bif_text, read_bif
from softcount.files.xmlbif import read_xmlbif, xmlbif_text
from softcount.networks.network import Network
from softcount.sources.bytestream import TextFile, as_utf8, is_passing, spooled

LONGEST_NETWORK = 256 << 20
"""Bytes of a network's text, unpacked; the largest published one has six million."""

_WRITERS = {".bif": bif_text, ".xmlbif": xmlbif_text, ".bifxml": xmlbif_text, ".xml": xmlbif_text}


def read_network(source: str | os.PathLike[str]) -> Network:
    """The network in a file, or in a text that is given itself.

    >>> read_network("variable c { type discrete [2] {h, t}; } probability (c) { table .5 .5; }").sizes
    (2,)
    """
    if isinstance(source, str) and _is_text(source):
        text = source.removeprefix("\ufeff")
        return read_xmlbif(text.lstrip()) if _is_xml(text) else read_bif(text)
    path = os.fsdecode(source)
    held = _bytes_of(path)
    if _is_xml(held):
        return read_xmlbif(held.lstrip(), path)
    return read_bif(as_utf8(held)[0].decode(), path)


def _is_text(source: str) -> bool:
    """A network's text has a brace or begins with a bracket; a path that looks so must be there."""
    looks = "{" in source or _is_xml(source)
    return looks and ("\n" in source or not os.path.exists(source))


def _is_xml(document: str | bytes) -> bool:
    start = document if isinstance(document, str) else document[:1000].decode("latin-1")
    return start[:1000].lstrip("\ufeff \t\r\n").startswith("<")


def _bytes_of(path: str) -> bytes:
    if is_passing(path):
        copy = spooled(path)
        try:
            return _unpacked(TextFile(copy.path, path))
        finally:
            copy.remove()
    return _unpacked(TextFile(path))


def _unpacked(file: TextFile) -> bytes:
    held = bytearray()
    for block in file.blocks():
        held += block
        if len(held) > LONGEST_NETWORK:
            raise DataError(f"{file.name} is longer than {LONGEST_NETWORK >> 20} MB, which no network may be.")
    return bytes(held)


def write_network(network: Network, path: str | os.PathLike[str]) -> None:
    """A file of the network, in the format that its name ends in: .bif or .xmlbif, .xml; gzipped with .gz after it."""
    name = os.fsdecode(path)
    plain = name.removesuffix(".gz")
    ending = os.path.splitext(plain)[1].lower()
    if ending not in _WRITERS:
        raise DataError(
            f"cannot tell the format from {name!r}. End it in {', '.join(_WRITERS)}, or one with .gz after."
        )
    data = _WRITERS[ending](network).encode()
    with atomic_writer(path, "wb") as out:
        out.write(data if plain == name else gzip.compress(data, mtime=0))
