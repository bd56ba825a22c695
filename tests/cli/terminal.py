"""A page as a terminal would show it."""

from __future__ import annotations

import io

import pytest

from softcount.report.page import Page, show_page


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def on_a_terminal(page: Page, monkeypatch: pytest.MonkeyPatch, columns: int = 80) -> str:
    """What is written to a terminal of so many columns, colours and all."""
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", str(columns))
    stream = Terminal()
    show_page(page, stream)
    return stream.getvalue()
