"""Progress bars: every phase has a name, and none outlives its end."""

from __future__ import annotations

import re

import pytest

from cli.terminal import Terminal
from softcount.run.progress import announce, progress_on, report_starts


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    return Terminal()


def last_frame(terminal: Terminal) -> str:
    """The lines that the bars showed last before they were removed."""
    text = re.sub(r"\x1b\[[0-9;?]*[mlh]", "", terminal.getvalue())
    frames = [frame for frame in re.split(r"\x1b\[[0-9]*[A-K]|\r", text) if frame.strip()]
    return frames[-1]


def test_a_phase_replaces_the_one_before(terminal: Terminal) -> None:
    with progress_on(terminal) as tell:
        tell("reading", 10, 10)
        announce("cross-validating", 1, 4, "AODE")
    shown = last_frame(terminal)
    assert "cross-validating AODE" in shown and "25%" in shown
    assert "reading" not in shown


def test_a_search_claims_no_share_of_its_work(terminal: Terminal) -> None:
    with progress_on(terminal) as tell:
        report_starts(tell)(3, 4, 1, -10.0)
    shown = last_frame(terminal)
    assert "3 of 4, iteration 1" in shown and "%" not in shown


def test_without_a_bar_a_phase_is_not_reported() -> None:
    announce("cross-validating", 1, 4)
