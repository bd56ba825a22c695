"""Networks in BIF files, plain or gzipped."""

from __future__ import annotations

import gzip
import os

from softcount.errors import DataError
from softcount.files.atomic import atomic_writer
from softcount.files.bif import bif_text, read_bif
from softcount.networks.network import Network
from softcount.sources.bytestream import TextFile, as_utf8, is_passing, spooled

LONGEST_NETWORK = 256 << 20
"""Bytes of a network's text, unpacked; the largest published one has six million."""


def read_network(source: str | os.PathLike[str]) -> Network:
    """The network in a file, or in a text that is given itself.

    >>> read_network("variable c { type discrete [2] {h, t}; } probability (c) { table .5 .5; }").sizes
    (2,)
    """
    if isinstance(source, str) and "{" in source and ("\n" in source or not os.path.exists(source)):
        return read_bif(source)
    path = os.fsdecode(source)
    text = as_utf8(_bytes_of(path))[0].decode()
    if text.lstrip("\ufeff \t\r\n").startswith("<"):
        raise DataError(f"{path} is XML, and XMLBIF networks are not read. Save the network as BIF, in a .bif file.")
    return read_bif(text, path)


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
    """Write a BIF file, gzipped if its name ends in .gz."""
    name = os.fsdecode(path)
    plain = name.removesuffix(".gz")
    if not plain.lower().endswith(".bif"):
        raise DataError(
            f"networks are written as BIF, and {name!r} is no name of a BIF file. End it in .bif or .bif.gz."
        )
    data = bif_text(network).encode()
    with atomic_writer(path, "wb") as out:
        out.write(data if plain == name else gzip.compress(data, mtime=0))
