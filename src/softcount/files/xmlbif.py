"""XMLBIF 0.3: the same networks as XML, read with nothing fetched and nothing expanded, and written.

In a TABLE the node's own levels (FOR) change fastest, then the last parent (GIVEN). Blanks around a name are layout
unless its element says `xml:space="preserve"`, which is how names that begin or end in a blank are written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import field
from itertools import chain
from typing import NamedTuple
from xml.parsers import expat

import numpy as np

from softcount.errors import DataError
from softcount.files.network_draft import Definition, NetworkDraft, numbers
from softcount.networks.network import Network
from softcount.records import dataclass
from softcount.sources.wording import cell

_TEXTS = frozenset(("NAME", "OUTCOME", "VALUE", "FOR", "GIVEN", "TABLE"))
_BLOCKS = frozenset(("VARIABLE", "DEFINITION", "PROBABILITY"))
_PRESERVE = ' xml:space="preserve"'


class _Text(NamedTuple):
    text: str
    line: int


@dataclass
class _Block:
    """A variable or a definition: its texts by the names of their elements, upper case."""

    tag: str
    line: int
    kind: str
    texts: dict[str, list[_Text]] = field(default_factory=dict)

    def all(self, *tags: str) -> list[str]:
        return [found.text for tag in tags for found in self.texts.get(tag, [])]


def read_xmlbif(document: bytes | str, source: str = "the text") -> Network:
    """The network that an XMLBIF document describes; `source` names it in messages."""
    draft = NetworkDraft(source)
    blocks = _Gatherer(draft).read(document)
    for block in blocks:
        if block.tag == "VARIABLE":
            _declare(draft, block)
    for block in blocks:
        if block.tag != "VARIABLE":
            _define(draft, block)
    return draft.network()


def _declare(draft: NetworkDraft, block: _Block) -> None:
    name = _only(draft, block, "NAME")
    if block.kind.lower() != "nature":
        what = f"node {cell(name)} is of type {cell(block.kind)}; only 'nature' has probabilities."
        raise draft.error(block.line, what)
    draft.declare(name, block.all("OUTCOME", "VALUE"), lambda: block.line)


def _define(draft: NetworkDraft, block: _Block) -> None:
    name, parents = _only(draft, block, "FOR"), block.all("GIVEN")
    shape = draft.shape(name, parents, lambda: block.line)
    text = _only(draft, block, "TABLE")
    line = block.texts["TABLE"][0].line
    try:
        values = numbers(text)
    except ValueError as error:
        raise draft.error(line, f"the table of node {cell(name)} holds {cell(str(error))}, no number.") from None
    if len(values) != shape[0] * shape[1]:
        needed = f"needs {shape[0] * shape[1]:,} probabilities, not {len(values):,}"
        raise draft.error(line, f"the table of node {cell(name)} {needed}.")
    draft.define(name, Definition(tuple(parents), np.array(values).reshape(shape), lambda _: line))


def _only(draft: NetworkDraft, block: _Block, tag: str) -> str:
    found = block.all(tag)
    if len(found) != 1:
        raise draft.error(block.line, f"a {block.tag} has one {tag}, not {len(found)}.")
    return found[0]


class _Gatherer:
    """Blocks of a document as the parser meets them; whatever would make it read or expand anything is refused."""

    def __init__(self, draft: NetworkDraft) -> None:
        self.draft = draft
        self.blocks: list[_Block] = []
        self.open: list[str] = []
        self.pieces: list[str] = []
        self.keep_blanks = False
        self.started = 0
        self.parser = expat.ParserCreate()
        self.parser.buffer_text = True
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._characters
        self.parser.EntityDeclHandler = self._refuse("declares entities, which are not expanded here")
        self.parser.ExternalEntityRefHandler = self._refuse("refers to another document, which is not fetched")
        self.parser.SkippedEntityHandler = self._refuse("refers to an entity that it does not declare")

    def read(self, document: bytes | str) -> list[_Block]:
        try:
            self.parser.Parse(document, True)
        except expat.ExpatError as error:
            what = f"this is no whole XML document: {expat.ErrorString(error.code)}."
            raise self.draft.error(error.lineno, what) from None
        except (LookupError, UnicodeError, ValueError) as error:
            if isinstance(error, DataError):
                raise
            raise self._error(f"the text cannot be decoded: {error}.") from None
        return self.blocks

    def _error(self, what: str) -> DataError:
        return self.draft.error(self.parser.CurrentLineNumber, what)

    def _refuse(self, what: str) -> Callable[..., int]:
        def handler(*_: object) -> int:
            raise self._error(f"the document {what}. Write it out without.")

        return handler

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        tag = tag.upper()
        if not self.open and tag != "BIF":
            raise self._error(f"XMLBIF begins with <BIF>, not with <{tag[:40]}>.")
        if self.open and self.open[-1] in _TEXTS:
            raise self._error(f"{self.open[-1]} holds text, not the element <{tag[:40]}>.")
        self.open.append(tag)
        if tag in _BLOCKS:
            if len(self.open) > 1 and self.open[-2] in _BLOCKS:
                raise self._error(f"one {tag} stands inside a {self.open[-2]}.")
            kind = attributes.get("TYPE", "nature")
            self.blocks.append(_Block(tag, self.parser.CurrentLineNumber, kind))
        self.pieces, self.started = [], self.parser.CurrentLineNumber
        self.keep_blanks = attributes.get("xml:space") == "preserve"

    def _characters(self, text: str) -> None:
        if self.open[-1] in _TEXTS:
            self.pieces.append(text)

    def _end(self, tag: str) -> None:
        tag = self.open.pop()
        if tag in _TEXTS and self.open and self.open[-1] in _BLOCKS:
            text = "".join(self.pieces)
            found = _Text(text if self.keep_blanks else text.strip(), self.started)
            self.blocks[-1].texts.setdefault(tag, []).append(found)


def xmlbif_text(network: Network) -> str:
    """The network as an XMLBIF document, with every digit of its probabilities."""
    return "".join(f"{line}\n" for line in chain(_HEAD, _body(network), ("</NETWORK>", "</BIF>")))


_HEAD = ('<?xml version="1.0" encoding="UTF-8"?>', '<BIF VERSION="0.3">', "<NETWORK>", "<NAME>unknown</NAME>")


def _body(network: Network) -> Iterator[str]:
    names = network.text_names()
    for name, levels in zip(names, network.levels, strict=True):
        yield '<VARIABLE TYPE="nature">'
        yield f"  {_element('NAME', name)}"
        yield from (f"  {_element('OUTCOME', level)}" for level in levels)
        yield "</VARIABLE>"
    for node, parents in enumerate(network.graph.parents):
        yield "<DEFINITION>"
        yield f"  {_element('FOR', names[node])}"
        yield from (f"  {_element('GIVEN', names[parent])}" for parent in parents)
        yield "  <TABLE>"
        for row in network.tables[node].reshape(-1, network.sizes[node]).tolist():
            yield "    " + " ".join(map(repr, row))
        yield "  </TABLE>"
        yield "</DEFINITION>"


def _element(tag: str, text: str) -> str:
    r"""A name in its element.

    >>> print(_element("NAME", "a<b"), _element("NAME", " a\n"))
    <NAME>a&lt;b</NAME> <NAME xml:space="preserve"> a&#10;</NAME>
    """
    kept = _PRESERVE if text != text.strip() else ""
    return f"<{tag}{kept}>{''.join(map(_escaped, text))}</{tag}>"


def _escaped(char: str) -> str:
    if char in "&<>\t\n\r":
        return {"&": "&amp;", "<": "&lt;", ">": "&gt;"}.get(char, f"&#{ord(char)};")
    if char < " " or "\ud800" <= char <= "\udfff" or char in "\ufffe\uffff":
        raise DataError(f"XML has no way to write {char!r}, which is in a name. Write the network as BIF.")
    return char
