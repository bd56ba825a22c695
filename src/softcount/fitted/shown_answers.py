"""How what is known of a number shows itself: its middle and spread in a line, and in a notebook its shape."""

from __future__ import annotations

from typing import Any

import numpy as np

from softcount.pictures.inline_html import boxed, small_table, upright_bars


def answer_line(answer: Any) -> str:
    """Mean, deviation and quantiles in a line."""
    figures = ", ".join(f"{name} {value:.4g}" for name, value in _figures(answer))
    return f"<{type(answer).__name__}: {figures}>"


def _figures(answer: Any) -> list[tuple[str, float]]:
    found = [("mean", answer.mean), ("deviation", answer.variance**0.5)]
    return found + [(f"{100 * share:g} % below", answer.quantile(share)) for share in (0.05, 0.5, 0.95)]


def answer_html(answer: Any) -> str:
    """The same as a small table under the distribution drawn as bars."""
    figures = _figures(answer)
    table = small_table([name for name, _ in figures], [[f"{value:.5g}" for _, value in figures]])
    low, high = answer.quantile(0.005), answer.quantile(0.995)
    if not high > low:
        return boxed("Answer", "a number", [table])
    shares = np.diff([answer.cdf(float(edge)) for edge in np.linspace(low, high, 33)])
    return boxed("Answer", "a number", [upright_bars(shares.tolist(), f"{low:.4g}", f"{high:.4g}"), table])
