"""Lines of a text table that are no rows left out, and blanks between cells made tabs, block by block."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

_quoted = re.compile(rb'"(?:[^"]|"")*"(?=\s|$)|\S+')


def without_first_lines(blocks: Iterable[bytes], count: int) -> Iterator[bytes]:
    r"""The same without the first lines, however they end.

    >>> b"".join(without_first_lines([b"title\r", b"\n\na,b\n", b"1,2\n"], 2))
    b'a,b\n1,2\n'
    """
    lines = _split_lines(blocks) if count else ()
    for _, _line in zip(range(count), lines, strict=False):
        pass
    return iter(lines if count else blocks)


def without_comments(blocks: Iterable[bytes], comment: bytes) -> Iterator[bytes]:
    r"""The same without the lines that begin with a comment's sign, blanks before it or not.

    >>> b"".join(without_comments([b"# by hand\na,b\n #", b" 1\n1,2\n"], b"#"))
    b'a,b\n1,2\n'
    """
    if not comment:
        return iter(blocks)
    return _mapped(blocks, lambda line: b"" if line.lstrip().startswith(comment) else line)


def with_single_tabs(blocks: Iterable[bytes]) -> Iterator[bytes]:
    r"""The same with a tab between cells in place of blanks and tabs, which stay inside quotes only.

    >>> b"".join(with_single_tabs([b'  x  y\n1 "a b"\n']))
    b'x\ty\n1\t"a b"\n'
    """
    return _mapped(blocks, lambda line: b"\t".join(_cells(line)) + b"\n")


def _cells(line: bytes) -> list[bytes]:
    return _quoted.findall(line) if b'"' in line else line.split()


def _mapped(blocks: Iterable[bytes], change: Callable[[bytes], bytes]) -> Iterator[bytes]:
    for lines in _line_blocks(blocks):
        yield b"".join(map(change, lines))


def _split_lines(blocks: Iterable[bytes]) -> Iterator[bytes]:
    for lines in _line_blocks(blocks):
        yield from lines


def _line_blocks(blocks: Iterable[bytes]) -> Iterator[list[bytes]]:
    """The whole lines of each block, with what ended them; a line that goes on waits for its end."""
    tail = b""
    for block in blocks:
        data = tail + block
        cut = max(data.rfind(b"\n"), data.rfind(b"\r", 0, -1)) + 1  # after a last return a newline may follow
        tail = data[cut:]
        if cut:
            yield data[:cut].splitlines(keepends=True)
    if tail:
        yield tail.splitlines(keepends=True)
