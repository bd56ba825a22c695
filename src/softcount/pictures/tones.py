"""Colours by what they are for, on a light page and on a dark one, and the rules of style that name them.

The eight colours of classes are told apart by those who do not see all colours; `plus` and `minus` are blue and
orange, never green and red. Text and its ground are at least 4.5 to 1 in both.
"""

from __future__ import annotations

LIGHT = {
    "paper": "#ffffff", "soft": "#f4f6f8", "line": "#d5dbe1", "muted": "#55616d", "ink": "#1d2731",
    "accent": "#0b5c8f", "plus": "#0072b2", "minus": "#c2521c",
    "c0": "#0072b2", "c1": "#d55e00", "c2": "#009e73", "c3": "#cc79a7", "c4": "#e69f00", "c5": "#56b4e9",
    "c6": "#7f3c8d", "c7": "#444c56",
}  # fmt: skip
DARK = {
    "paper": "#14191f", "soft": "#1d242c", "line": "#3a4552", "muted": "#a7b3bf", "ink": "#e7ebef",
    "accent": "#86c8f2", "plus": "#5ab0e8", "minus": "#f28f5c",
    "c0": "#5ab0e8", "c1": "#f28f5c", "c2": "#35c398", "c3": "#e7a8cd", "c4": "#f2bf45", "c5": "#a5dcfb",
    "c6": "#bf93d1", "c7": "#b9c2cb",
}  # fmt: skip
CLASS_TONES = tuple(f"c{place}" for place in range(8))
FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif'


def class_tone(place: int) -> str:
    """The colour of a class by its place; the ninth is the first again."""
    return CLASS_TONES[place % len(CLASS_TONES)]


def variables(tones: dict[str, str]) -> str:
    """The tones as variables of a style sheet.

    >>> variables({"ink": "#000"})
    '--ink:#000'
    """
    return ";".join(f"--{name}:{colour}" for name, colour in tones.items())


def picture_rules() -> str:
    """What the classes of a picture's shapes mean: `f-` filled, `s-` drawn as a line; of text, its size and place."""
    each = (f".f-{x}{{fill:var(--{x})}}.s-{x}{{stroke:var(--{x});fill:none}}" for x in LIGHT)
    return "".join(each) + TEXTS


TEXTS = (
    ".t-small{font-size:11px}.t-mid{text-anchor:middle}.t-end{text-anchor:end}.t-bold{font-weight:600}"
    ".t-halo{paint-order:stroke;stroke:var(--paper);stroke-width:3px}.dots{stroke-linecap:round}"
)
"""Small letters, ones that end or have their middle at their place, bold ones, ones that stand on a line."""
