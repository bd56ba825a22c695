r"""The words of a BIF file: names plain or in quotes, marks, comments; found in one pass over the text.

A plain name is a run of characters other than blanks, quotes, commas, semicolons, bars and brackets: `yes`, `<5`,
`2.5-5`, `1/2`; in a list an interval such as `(2.5,5]` is a name too. Any other name stands in quotes, where `\"`,
`\\`, `\n`, `\r`, `\t`, `\xHH`, `\uHHHH` and `\UHHHHHHHH` are one character each and every other backslash is itself.
Comments run from `//` to the end of the line and from `/*` to `*/`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from softcount.errors import DataError

KEYWORDS = frozenset(("network", "variable", "probability", "property", "type", "discrete", "table", "default"))

_COMMENT = r"//[^\r\n]*+|/\*(?:[^*]|\*(?!/))*+\*/"
_QUOTED = r'"(?:[^"\\]|\\.)*+"'
_BLANK = re.compile(rf"(?:\s++|{_COMMENT})*+")
_WORD = re.compile(rf'(?P<quoted>{_QUOTED})|(?P<plain>(?:[^\s,;{{}}()|\[\]"/]|/(?![/*]))++)', re.S)
_INTERVAL = re.compile(r'[\[(][^\s,;{}()|\[\]"]++,\s*+[^\s,;{}()|\[\]"]++[\])]')
_PLAIN = re.compile(r'[^;{}()|\[\]"/]*+')
_VALUES = re.compile(rf'(?:[^;{{}}()"/]++|{_COMMENT})*+', re.S)
_PROPERTY = re.compile(rf'(?:[^;{{}}"/]++|{_QUOTED}|{_COMMENT}|/(?![/*]))*+', re.S)
_BLOCK = re.compile(rf'(?:[^{{}}"/]++|{_QUOTED}|{_COMMENT}|/(?![/*]))*+', re.S)
_ESCAPE = re.compile(r'\\(["\\nrt]|x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8})')
_SHORT = {"n": "\n", "r": "\r", "t": "\t"}


class Word(NamedTuple):
    """A name, and whether it stood in quotes."""

    text: str
    quoted: bool


Groups = list[list[Word]]
"""Words between commas or bars."""


class BifWords:
    """A place in the text that moves on as words are taken."""

    def __init__(self, text: str, source: str) -> None:
        self.text = text
        self.source = source
        self.at = 0

    def line(self, at: int) -> int:
        return 1 + max(self.text.count("\n", 0, at), self.text.count("\r", 0, at))

    def error(self, what: str, at: int | None = None) -> DataError:
        return DataError(f"{self.source}, line {self.line(self.at if at is None else at)}: {what}")

    def peek(self) -> str:
        """The next character that is neither blank nor comment; nothing at the end of the text."""
        self.at = _end(_BLANK, self.text, self.at)
        if self.text.startswith("/*", self.at):
            raise self.error("a comment begins with /* and never ends.")
        return self.text[self.at : self.at + 1]

    def take(self, mark: str) -> bool:
        """Whether the mark comes next; if so, it is passed."""
        found = self.peek() == mark
        self.at += found
        return found

    def expect(self, mark: str, where: str) -> None:
        if not self.take(mark):
            raise self.error(f"{mark!r} is missing {where}; {self.found()} stands there.")

    def found(self) -> str:
        """What comes next, for a message."""
        if not self.peek():
            return "the end of the file"
        match = _WORD.match(self.text, self.at)
        shown = match[0] if match else self.text[self.at]
        return repr(shown[:40])

    def word(self) -> Word | None:
        """The next name, if it is one."""
        if self.peek() == '"':
            return self._quoted()
        match = _WORD.match(self.text, self.at)
        if not match:
            return None
        self.at = match.end()
        return Word(match[0], False)

    def _quoted(self) -> Word:
        match = _WORD.match(self.text, self.at)
        if not match:
            raise self.error("a quote is opened and never closed.")
        self.at = match.end()
        return Word(_ESCAPE.sub(_character, match[0][1:-1]), True)

    def _interval(self) -> Word | None:
        match = _INTERVAL.match(self.text, self.at)
        if not match:
            return None
        self.at = match.end()
        return Word(match[0], True)

    def groups(self, closing: str, where: str) -> Groups:
        """Words up to a closing mark, cut into groups at commas and bars."""
        end = _end(_PLAIN, self.text, self.at)
        if self.text.startswith(closing, end):  # most lists are plain: cut without looking at every word
            parts = self.text[self.at : end].split(",")
            self.at = end + 1
            return [[Word(word, False) for word in part.split()] for part in parts if not part.isspace() and part]
        found: Groups = [[]]
        while not self.take(closing):
            if self.peek() in (",", "|"):
                self.at += 1
                found.append([])
            elif word := self.word() or self._interval():
                found[-1].append(word)
            else:
                raise self.error(f"{closing!r} is missing {where}; {self.found()} stands there.")
        return [group for group in found if group]

    def values(self) -> str:
        """What stands before the next semicolon or bracket, without comments; the semicolon is passed."""
        start = self.at
        self.at = _end(_VALUES, self.text, start)
        found = self.text[start : self.at]
        if not self.take(";") and self.peek() not in ("(", "}", ""):
            raise self.error(f"numbers and then ';' are expected, not {self.found()}.")
        return re.sub(_COMMENT, " ", found) if "/" in found else found

    def pass_property(self) -> None:
        """Skip to the end of a property, which may say anything."""
        self.at = _end(_PROPERTY, self.text, self.at)
        if not self.take(";") and self.peek() != "}":
            raise self.error(f"a property must end in ';'; {self.found()} stands there.")

    def pass_block(self, began: int) -> None:
        """Skip a block in braces, and the blocks inside it; `began` is where its heading is."""
        self.expect("{", "at the beginning of a block")
        depth = 1
        while depth:
            self.at = _end(_BLOCK, self.text, self.at)
            mark = self.peek()
            if mark not in ("{", "}"):
                raise self.error(f"the block of line {self.line(began)} is not closed: {self.found()} stands there.")
            depth += 1 if mark == "{" else -1
            self.at += 1


def _end(pattern: re.Pattern[str], text: str, at: int) -> int:
    match = pattern.match(text, at)
    return match.end() if match else at


def _character(match: re.Match[str]) -> str:
    escape = match[1]
    if len(escape) == 1:
        return _SHORT.get(escape, escape)
    number = int(escape[1:], 16)
    return chr(number) if number <= 0x10FFFF else match[0]


def names_of(groups: Groups, fits: Callable[[list[str]], bool]) -> list[str]:
    """The names that are meant: with blanks inside where commas divide them, and otherwise word by word.

    >>> names_of([[Word("Asia", False), Word("Minor", False)], [Word("Crete", False)]], lambda names: len(names) == 2)
    ['Asia Minor', 'Crete']
    """
    words = [word.text for group in groups for word in group]
    if all(len(group) == 1 or not any(word.quoted for word in group) for group in groups):
        joined = [" ".join(word.text for word in group) for group in groups]
        return joined if fits(joined) else words
    return words


def spelled(name: str) -> str:
    r"""The name as a BIF file has it: plain where it can be, otherwise in quotes.

    >>> print(spelled("<5"), spelled("table"), spelled("a b"), spelled('5"'), spelled("a\nb"))
    <5 "table" "a b" "5\"" "a\nb"
    """
    match = _WORD.fullmatch(name)
    if match and match["plain"] and name.isprintable() and name not in KEYWORDS:
        return name
    return '"' + "".join(map(_spelled_character, name)) + '"'


def _spelled_character(char: str) -> str:
    if char in '"\\':
        return "\\" + char
    if char.isprintable():
        return char
    return char.encode("unicode_escape", "surrogatepass").decode("ascii")
