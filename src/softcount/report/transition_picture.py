"""What follows what, as DOT and as SVG; and the states of a sequence under what it shows. Names come from data."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import cos, hypot, pi, sin

import numpy as np

from softcount.pictures.drawing import markup, svg_file
from softcount.pictures.tones import class_tone
from softcount.report.graph_drawing import clipped
from softcount.report.plain_text import printable

LEAST = 0.01
"""Probabilities below this are not drawn."""
ROUND, RING = 26.0, 62.0
PLOT, STRIP, GAP, WIDE, LEFT = 90.0, 14.0, 26.0, 900.0, 60.0


def transition_dot(names: Sequence[object], table: np.ndarray) -> str:
    r"""Transitions in the language of Graphviz, as thick as they are likely.

    >>> print(transition_dot(["a", 'b"'], np.array([[0.75, 0.25], [0.0, 1.0]])), end="")
    digraph {
      n0 [label="a"];
      n1 [label="b\""];
      n0 -> n0 [label="0.75", penwidth=3.25];
      n0 -> n1 [label="0.25", penwidth=1.25];
      n1 -> n1 [label="1", penwidth=4.25];
    }
    """
    lines = ["digraph {"]
    for place, name in enumerate(names):
        label = printable(name).replace("\\", "\\\\").replace('"', '\\"')
        lines.append(f'  n{place} [label="{label}"];')
    for i, j in np.argwhere(table >= LEAST).tolist():
        lines.append(f'  n{i} -> n{j} [label="{table[i, j]:.2g}", penwidth={0.25 + 4 * table[i, j]:.3g}];')
    return "\n".join([*lines, "}", ""])


def transition_svg(names: Sequence[object], table: np.ndarray) -> str:
    """Transitions as an SVG picture: states around a circle, arrows as thick as they are likely."""
    count = len(names)
    radius = max(70.0, 1.6 * ROUND * count / pi * 1.2) if count > 1 else 0.0
    middle = radius + ROUND + RING + 10
    at = [(middle + radius * sin(2 * pi * k / count), middle - radius * cos(2 * pi * k / count)) for k in range(count)]
    size = 2 * middle
    parts = [
        '<defs><marker id="step-head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="9" markerHeight="9" '
        'markerUnits="userSpaceOnUse" orient="auto"><path class="f-ink" d="M0,0.5 L8,4 L0,7.5 Z"/></marker></defs>',
    ]
    for i, j in np.argwhere(table >= LEAST).tolist():
        parts += _arrow(at[i], at[j], (middle, middle), float(table[i, j]))
    for (x, y), name in zip(at, names, strict=True):
        shown = printable(name)
        parts += [
            f"<g><title>{markup(shown)}</title>",
            f'<circle class="f-soft" cx="{x:.1f}" cy="{y:.1f}" r="{ROUND:.0f}"/>',
            f'<circle class="s-ink" cx="{x:.1f}" cy="{y:.1f}" r="{ROUND:.0f}"/>',
            f'<text class="t-mid" x="{x:.1f}" y="{y + 4.5:.1f}">{markup(clipped(shown, 7))}</text></g>',
        ]
    return svg_file((size, size), f"transitions of {count} states", "\n".join(parts))


def _arrow(one: tuple[float, float], other: tuple[float, float], middle: tuple[float, float], p: float) -> list[str]:
    """A bent arrow with its probability beside it; back to the same state, a loop away from the middle."""
    width, (x, y) = 0.5 + 3.5 * p, one
    if one == other:
        away = hypot(x - middle[0], y - middle[1]) or 1.0
        dx, dy = (x - middle[0]) / away, (y - middle[1]) / away if away > 1.0 else -1.0
        tip, side = ROUND + RING * 0.75, 0.6 * ROUND
        a, b = (x + ROUND * (dx * 0.8 - dy * 0.6), y + ROUND * (dy * 0.8 + dx * 0.6)), (
            x + ROUND * (dx * 0.8 + dy * 0.6), y + ROUND * (dy * 0.8 - dx * 0.6)
        )  # fmt: skip
        c, d = (x + tip * dx - side * dy * 2, y + tip * dy + side * dx * 2), (
            x + tip * dx + side * dy * 2, y + tip * dy - side * dx * 2
        )  # fmt: skip
        path = f"M{a[0]:.1f},{a[1]:.1f} C{c[0]:.1f},{c[1]:.1f} {d[0]:.1f},{d[1]:.1f} {b[0]:.1f},{b[1]:.1f}"
        told = x + (tip + 2) * dx, y + (tip + 2) * dy + 4
    else:
        dx, dy = other[0] - x, other[1] - y
        far = hypot(dx, dy)
        dx, dy = dx / far, dy / far
        bend = (x + other[0]) / 2 - 0.18 * far * dy, (y + other[1]) / 2 + 0.18 * far * dx
        start = x + ROUND * (dx - 0.35 * dy), y + ROUND * (dy + 0.35 * dx)
        end = other[0] - (ROUND + 1) * (dx + 0.35 * dy), other[1] - (ROUND + 1) * (dy - 0.35 * dx)
        path = f"M{start[0]:.1f},{start[1]:.1f} Q{bend[0]:.1f},{bend[1]:.1f} {end[0]:.1f},{end[1]:.1f}"
        told = (start[0] + 2 * bend[0] + end[0]) / 4 - 7 * dy, (start[1] + 2 * bend[1] + end[1]) / 4 + 7 * dx + 4
    return [
        f'<path class="s-ink" d="{path}" stroke-width="{width:.2f}" marker-end="url(#step-head)"/>',
        f'<text class="t-small t-mid t-halo" x="{told[0]:.1f}" y="{told[1]:.1f}">{p:.2g}</text>',
    ]


# -- the states of sequences


def decoded_svg(
    titles: Sequence[object], paths: Sequence[np.ndarray], values: Sequence[np.ndarray | None], names: Sequence[object]
) -> str:
    """A number of each sequence as a line, and below it the state of every step as a strip of colour.

    `paths` are the numbers of states, `values` the number to draw (NaN where missing) or None for none.
    """
    heights = [GAP + STRIP + (0.0 if own is None else PLOT) for own in values]
    height = sum(heights) + 34 + 18 * ((len(names) + 5) // 6)
    parts: list[str] = []
    top = 8.0
    for title, path, own, tall in zip(titles, paths, values, heights, strict=True):
        parts.append(f'<text x="{LEFT:.0f}" y="{top + 12:.1f}">{markup(clipped(printable(title), 60))}</text>')
        if own is not None:
            parts.append(_line_of(own, top + 18))
        parts += _strip(path, top + tall - STRIP - 4)
        top += tall
    for place, name in enumerate(names):
        x, y = LEFT + 130 * (place % 6), top + 18 + 18 * (place // 6)
        parts.append(f'<rect class="f-{class_tone(place)}" x="{x:.0f}" y="{y - 10:.0f}" width="12" height="12"/>')
        parts.append(f'<text x="{x + 18:.0f}" y="{y:.0f}">{markup(clipped(printable(name), 14))}</text>')
    return svg_file((WIDE, height), f"states of {len(paths)} sequences", "\n".join(parts))


def _line_of(values: np.ndarray, top: float) -> str:
    low, high = (np.nanmin(values), np.nanmax(values)) if np.isfinite(values).any() else (0.0, 1.0)
    spread = float(high - low) or 1.0
    x = LEFT + (WIDE - LEFT - 10) * (np.arange(len(values)) + 0.5) / len(values)
    y = top + (PLOT - 14) * (1 - (values - low) / spread)
    runs = np.split(np.arange(len(values)), np.flatnonzero(np.diff(np.isfinite(values).astype(int))) + 1)
    paths = [" ".join(f"{x[t]:.1f},{y[t]:.1f}" for t in run) for run in runs if np.isfinite(values[run[0]])]
    return "\n".join(f'<polyline points="{path}" class="s-ink" stroke-width="1.2"/>' for path in paths)


def _strip(path: np.ndarray, top: float) -> list[str]:
    """A box for every stay in a state."""
    cuts = [0, *(np.flatnonzero(np.diff(path)) + 1).tolist(), len(path)]
    step = (WIDE - LEFT - 10) / len(path)
    return [
        f'<rect class="f-{class_tone(int(path[a]))}" x="{LEFT + a * step:.2f}" y="{top:.1f}" '
        f'width="{(b - a) * step:.2f}" height="{STRIP:.0f}"/>'
        for a, b in pairwise(cuts)
    ]
