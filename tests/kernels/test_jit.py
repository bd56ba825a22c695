"""That loops are being compiled is said once, and of our own only."""

from __future__ import annotations

from typing import Any

import pytest
from numba import njit
from numba.core import event

from softcount.kernels import jit


def test_loops_of_others_are_not_spoken_of(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jit.CompilingNotice, "said", False)
    with event.install_recorder("numba:compile") as recorded:
        assert njit(lambda x: x + 1)(1) == 2
    assert len(recorded.buffer) > 0 and not caplog.records


def test_compiling_an_own_loop_is_said_once(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jit.CompilingNotice, "said", False)

    def plain(x: Any) -> Any:
        return x + 1

    plain.__module__ = "softcount.kernels.made_up"
    kernel = njit(plain)
    assert kernel(1) == 2 and kernel(1.0) == 2.0
    assert [record.name for record in caplog.records] == ["softcount"] and "once" in caplog.text
