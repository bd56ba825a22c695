"""Maps of a grid as pictures: PNG and SVG without an imaging library."""

from __future__ import annotations

import struct
import zlib
from base64 import b64encode
from collections.abc import Mapping
from html import escape
from math import ceil, sqrt
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import Struct

from softcount.errors import DataError
from softcount.files import atomic_writer
from softcount.pictures.text import format_number, printable, shorten

SIZE = 128
"""Pixels of the longer side of a map, about: every place is a whole number of them."""
GAP, LINE, SMALL = 12, 18, 12
"""Between maps, for a line of text, and its letters."""
NOTHING = (225, 225, 225)
"""The colour of a place without a value."""
RISING = np.array([[250, 250, 246], [247, 205, 130], [222, 119, 76], [139, 44, 82], [38, 16, 58]], dtype=float)
BOTH_WAYS = np.array([[26, 76, 140], [128, 172, 214], [250, 250, 250], [228, 142, 118], [150, 28, 42]], dtype=float)
"""Colours from low to high, and from below a centre to above it; distinguishable in grey as well."""


def save_maps(maps: Any, path: Any, centre: float | None = None, title: str = "") -> None:
    """Write one map or a dict of them as a picture: SVG with names and a scale, or PNG with the maps alone.

    Volumes are shown slice by slice along their first axis. All maps share one scale. Places without a value are grey.

    Parameters
    ----------
    maps : array of 1 to 3 dimensions, or dict of arrays
        The maps, by name.
    path : str or path
        File to write, ending in `.svg` or `.png`.
    centre : float, default=None
        Value from which colours run both ways. None is 0 if values lie on both sides of it.
    title : str, default=''
        Title above the maps of an SVG.

    See Also
    --------
    softcount.images.class_maps : Maps of class means.
    softcount.images.neighbourhood_accuracy : A map of local accuracy.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_maps({"mean": np.eye(3)}, f"{folder}/mean.svg")
    """
    path = Path(path)
    writers = {".svg": _svg, ".png": _png_picture}
    if path.suffix.lower() not in writers:
        raise DataError(f"{path.name}: a picture ends in .svg or .png.")
    named = dict(maps) if isinstance(maps, Mapping) else {"": maps}
    if not named:
        raise DataError("there is no map to draw.")
    flat = {name: _flatten(name, values) for name, values in named.items()}
    scale = MapScale.of(list(flat.values()), centre)
    drawn = {}
    for name, values in flat.items():
        each = max(1, SIZE // min(values.shape), round(SIZE / max(values.shape)))
        each = min(each, max(1, 4096 // max(values.shape)))
        drawn[name] = scale.colours(values).repeat(each, axis=0).repeat(each, axis=1)
    content = writers[path.suffix.lower()](drawn, scale, title)
    with atomic_writer(path, "wb") as sink:
        sink.write(content)


def _flatten(name: Any, values: Any) -> np.ndarray:
    """Flatten a map to two axes: a line of cells, a picture, or the slices of a volume with gaps between them."""
    try:
        array = np.asarray(values, dtype=float)
    except (TypeError, ValueError):
        raise DataError(f"map {name!r} does not hold numbers.") from None
    if not 1 <= array.ndim <= 3 or array.size == 0:
        raise DataError(f"map {name!r} has the shape {array.shape}. Lines, pictures and volumes can be drawn.")
    if np.isinf(array).any():
        raise DataError(f"map {name!r} holds infinity.")
    if array.ndim < 3:
        return array.reshape(-1, array.shape[-1])
    deep, high, wide = array.shape
    across = ceil(sqrt(2 * deep))  # about twice as many slices side by side as below each other
    out = np.full((ceil(deep / across) * (high + 1) - 1, across * (wide + 1) - 1), np.inf)  # infinite: stays white
    for k in range(deep):
        y, x = k // across * (high + 1), k % across * (wide + 1)
        out[y : y + high, x : x + wide] = array[k]
    return out


class MapScale(Struct, frozen=True):
    """Colours of values: from the lowest to the highest, or both ways from a centre."""

    low: float
    high: float
    both_ways: bool

    @classmethod
    def of(cls, maps: list[np.ndarray], centre: float | None) -> MapScale:
        values = np.concatenate([part[np.isfinite(part)] for part in maps])
        if not len(values):
            raise DataError("no place of any map has a value.")
        low, high = float(values.min()), float(values.max())
        if centre is None and low < 0 < high:
            centre = 0.0
        if centre is None:
            return cls(low, high, both_ways=False)
        far = max(high - centre, centre - low)
        return cls(centre - far, centre + far, both_ways=True)

    def colours(self, values: np.ndarray) -> np.ndarray:
        """(... x 3) bytes."""
        table = BOTH_WAYS if self.both_ways else RISING
        span = self.high - self.low
        middle = 0.5 if self.both_ways else 0.0
        with np.errstate(invalid="ignore"):
            at = (values - self.low) / span if span > 0 else np.where(np.isfinite(values), middle, values)
        stops = np.linspace(0.0, 1.0, len(table))
        safe = np.where(np.isfinite(at), at, 0.0)
        found = np.stack([np.interp(safe, stops, channel) for channel in table.T], axis=-1)
        found[np.isnan(values)] = NOTHING
        found[np.isinf(values)] = 255
        return found.round().astype(np.uint8)


def png(pixels: np.ndarray) -> bytes:
    """Write (rows x columns x 3) bytes as a PNG file: a header, one compressed block of unfiltered lines, an end."""
    high, wide, _ = pixels.shape
    lines = np.concatenate([np.zeros((high, 1), dtype=np.uint8), pixels.reshape(high, -1)], axis=1)
    header = struct.pack(">IIBBBBB", wide, high, 8, 2, 0, 0, 0)
    found = b"\x89PNG\r\n\x1a\n"
    for kind, content in ((b"IHDR", header), (b"IDAT", zlib.compress(lines.tobytes(), 9)), (b"IEND", b"")):
        found += struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
    return found


def _arrange(drawn: Mapping[Any, np.ndarray], above: int) -> tuple[list[tuple[int, int]], tuple[int, int]]:
    """Place maps in lines of a readable width; return places and the whole size. `above` is room over each."""
    widest = max(5 * (SIZE + GAP), *(part.shape[1] for part in drawn.values()))
    places, x, y, line, whole = [], GAP, GAP, 0, 0
    for high, wide, _ in (part.shape for part in drawn.values()):
        if x > GAP and x + wide > widest + GAP:
            x, y, line = GAP, y + line + GAP, 0
        places.append((x, y + above))
        x, line = x + wide + GAP, max(line, high + above)
        whole = max(whole, x)
    return places, (whole, y + line + GAP)


def _png_picture(drawn: Mapping[Any, np.ndarray], scale: MapScale, title: str) -> bytes:
    places, (wide, high) = _arrange(drawn, 0)
    canvas = np.full((high, wide, 3), 255, dtype=np.uint8)
    for part, (x, y) in zip(drawn.values(), places, strict=True):
        canvas[y : y + part.shape[0], x : x + part.shape[1]] = part
    return png(canvas)


def _svg(drawn: Mapping[Any, np.ndarray], scale: MapScale, title: str) -> bytes:
    places, (wide, high) = _arrange(drawn, LINE)
    top = LINE + GAP if title else 0
    wide = max(wide, 2 * SIZE + 2 * GAP)
    parts = [_text(GAP, top, title, SMALL + 2)] if title else []
    for (name, part), (x, y) in zip(drawn.items(), places, strict=True):
        parts += [_text(x, top + y - 5, str(name), SMALL), _image(x, top + y, part)]
    bar = scale.colours(np.linspace(scale.low, scale.high, SIZE)[None].repeat(SMALL, axis=0))
    foot = top + high + SMALL
    parts += [_image(GAP, foot, bar), _text(GAP, foot + 2 * SMALL + 2, format_number(scale.low), SMALL)]
    parts += [_text(GAP + SIZE, foot + 2 * SMALL + 2, format_number(scale.high), SMALL, "end")]
    whole = foot + 3 * SMALL + GAP
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{wide}" height="{whole}" viewBox="0 0 {wide} {whole}" '
    head += f'font-family="sans-serif" role="img"><rect width="{wide}" height="{whole}" fill="white"/>'
    return "\n".join([head, *parts, "</svg>\n"]).encode()


def _text(x: int, y: int, text: str, size: int, anchor: str = "start") -> str:
    shown = escape(shorten(printable(text), 40))
    return f'<text x="{x}" y="{y}" font-size="{size}" text-anchor="{anchor}">{shown}</text>'


def _image(x: int, y: int, pixels: np.ndarray) -> str:
    data = b64encode(png(pixels)).decode()
    size = f'width="{pixels.shape[1]}" height="{pixels.shape[0]}"'
    return f'<image x="{x}" y="{y}" {size} href="data:image/png;base64,{data}"/>'
