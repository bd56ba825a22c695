"""Columns that lie on a grid, such as pixels and voxels: maps of class means and of local accuracy."""

from __future__ import annotations

import struct
import zlib
from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from functools import partial, reduce
from html import escape
from math import ceil, sqrt
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import Struct

from softcount.core.lazy import sparse
from softcount.errors import DataError
from softcount.estimators import inputs
from softcount.estimators.column_choice import open_labelled
from softcount.estimators.naive_bayes import NaiveBayes
from softcount.estimators.parameters import check_whole
from softcount.evaluate.folds import FoldModels, fold_models
from softcount.evaluate.ranking import FOLDS
from softcount.files import atomic_writer
from softcount.learn.known_classes import on_task
from softcount.learn.record import Plan, retry_wider
from softcount.pictures.text import format_number, printable, shorten
from softcount.run.local import Runner, Threads, total
from softcount.table import Chunk, Table
from softcount.table.chunk import Split

__all__ = ["class_maps", "neighbourhood_accuracy", "rank_accuracy", "save_maps"]

CELLS_AT_ONCE = 16_000_000
"""Places times rows times classes that are summed in one product."""


def class_maps(X: Any, y: Any, shape: Sequence[int], contrast: bool = False) -> dict[Any, np.ndarray]:
    """Compute the mean of every column in every class, as arrays of the grid's shape.

    Parameters
    ----------
    X : array-like of shape (n_rows, n_columns)
        Numbers; a column for every place of the grid. Missing cells are left out of the means.
    y : array-like of shape (n_rows,)
        Labels; rows without one are left out.
    shape : sequence of int
        Sizes of the grid, such as (8, 8).
    contrast : bool, default=False
        Subtract the mean over all classes.

    Returns
    -------
    dict
        A map for each class, NaN at places where the class has no value.

    See Also
    --------
    save_maps : Writes maps as a picture.
    neighbourhood_accuracy : A map of local accuracy.

    Examples
    --------
    >>> maps = class_maps([[0.0, 2.0], [4.0, 2.0]], ["a", "b"], (1, 2), contrast=True)
    >>> maps["a"].tolist(), maps["b"].tolist()
    ([[-2.0, 0.0]], [[2.0, 0.0]])
    """
    try:
        rows = np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=float)
    except (TypeError, ValueError):
        raise DataError("a map of means needs numeric columns.") from None
    if rows.ndim != 2:
        raise DataError(f"a map takes rows of columns, not an array of {rows.ndim} dimensions. Flatten every picture.")
    shape = _check_shape(shape, rows.shape[1])
    classes, codes = inputs.code_classes(y, rows)
    if not len(classes):
        raise DataError("every label is unknown, so there is no class to draw a map of.")
    middle = _compute_mean(rows[codes >= 0])
    means = {name: _compute_mean(rows[codes == place] - middle) for place, name in enumerate(classes.tolist())}
    return {name: (mean if contrast else mean + middle).reshape(shape) for name, mean in means.items()}


def _compute_mean(rows: np.ndarray) -> np.ndarray:
    there = ~np.isnan(rows)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.where(there, rows, 0.0).sum(axis=0) / there.sum(axis=0))


def _check_shape(shape: Any, columns: int) -> tuple[int, ...]:
    try:
        sizes = tuple(int(size) for size in shape)
    except (TypeError, ValueError):
        raise DataError(f"shape is the sizes of the grid, such as (8, 8), not {shape!r}.") from None
    if not sizes or min(sizes) < 1 or sizes != tuple(shape):
        raise DataError(f"shape is whole numbers of at least 1, such as (8, 8), not {shape!r}.")
    if int(np.prod(sizes)) != columns:
        grid = " x ".join(map(str, sizes))
        raise DataError(f"a grid of {grid} has {int(np.prod(sizes)):,} places, but there are {columns:,} columns.")
    return sizes


def rank_accuracy(y: Any, proba: Any, classes: Any = None) -> float:
    """Compute the mean rank of the true class by its probability: 1 if always first, 0 if always last, 1/2 by chance.

    Parameters
    ----------
    y : array-like of shape (n_rows,)
        True labels; rows without one are left out.
    proba : array-like of shape (n_rows, n_classes)
        Probabilities; ties count half.
    classes : array-like of shape (n_classes,), default=None
        Names of the columns of `proba` (a model's `classes_`). By default, the sorted labels.

    Returns
    -------
    float
        Mean over the rows of the share of other classes with a lower probability.

    See Also
    --------
    neighbourhood_accuracy : Accuracy around every place of a grid.

    References
    ----------
    .. [1] T. M. Mitchell et al. (2004). "Learning to decode cognitive states from brain images". Machine Learning 57,
       145-175.

    Examples
    --------
    >>> rank_accuracy(["a", "c"], [[0.5, 0.3, 0.2], [0.5, 0.3, 0.2]], ["a", "b", "c"])
    0.5
    """
    proba = np.asarray(proba, dtype=float)
    found, codes = inputs.code_classes(y, proba)
    names = found.tolist() if classes is None else np.asarray(classes).tolist()
    if proba.ndim != 2 or proba.shape[1] != len(names) or len(names) < 2:
        raise DataError(
            f"proba has the shape {proba.shape}, and there are {len(names)} classes: it takes a column for each of two "
            "classes or more. Name them: classes=model.classes_."
        )
    if np.isnan(proba).any():
        raise DataError(f"proba: row {int(np.argmax(np.isnan(proba).any(axis=1))) + 1} holds NaN.")
    for name in found.tolist():
        if name not in names:
            raise DataError(f"class {name!r} is not one of {', '.join(map(repr, names[:8]))}.")
    kept = np.flatnonzero(codes >= 0)
    place = np.array([names.index(name) for name in found.tolist()])[codes[kept]]
    own = proba[kept, place][:, None]
    below = (proba[kept] < own).sum(axis=1) + 0.5 * ((proba[kept] == own).sum(axis=1) - 1)
    return float(below.mean() / (len(names) - 1))


class NeighbourhoodMap(Struct, frozen=True, eq=False):
    """Accuracy around every place of a grid, and that of always predicting the most frequent class (`chance`)."""

    accuracy: np.ndarray
    chance: float
    rows: int

    @property
    def standard_error(self) -> float:
        """Standard error of a single accuracy at chance level."""
        return float(np.sqrt(self.chance * (1.0 - self.chance) / self.rows))

    @property
    def best(self) -> tuple[int, ...]:
        return tuple(int(at) for at in np.unravel_index(int(np.argmax(self.accuracy)), self.accuracy.shape))


def neighbourhood_accuracy(
    X: Any, y: Any, shape: Sequence[int], radius: int = 1, model: Any = None, folds: int = FOLDS
) -> NeighbourhoodMap:  # fmt: skip
    """Compute the cross-validated accuracy of naive Bayes on the columns near every place of a grid.

    It is the searchlight of neuroimaging. Every column is counted and scored once: a thousand neighbourhoods cost
    little more than one.

    Parameters
    ----------
    X : array-like, table or file of n_rows rows
        A column for every place of the grid, as `NaiveBayes.fit` takes it.
    y : array-like of shape (n_rows,) or str
        Labels, or the name of their column.
    shape : sequence of int
        Sizes of the grid, such as (20, 20, 20).
    radius : int, default=1
        Steps along every axis within which a column is near: 1 is a square of 9, in a volume a cube of 27.
    model : NaiveBayes, default=None
        The classifier, with its parameters. None is `NaiveBayes()`.
    folds : int, default=5
        Number of folds.

    Returns
    -------
    NeighbourhoodMap
        `accuracy`, an array of the grid's shape; `chance`, the accuracy of the most frequent class; the
        `standard_error` of an accuracy at that level; and the place of the `best`.

    See Also
    --------
    class_maps : Maps of class means.
    save_maps : Writes maps as a picture.

    References
    ----------
    .. [1] N. Kriegeskorte, R. Goebel and P. Bandettini (2006). "Information-based functional brain mapping". PNAS 103
       (10), 3863-3868.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat([0, 1], 50)
    >>> X = rng.normal(size=(100, 5))
    >>> X[:, 4] += 5 * y  # the class shows at the last place
    >>> neighbourhood_accuracy(X, y, (5,)).accuracy.round(1)
    array([0.5, 0.5, 0.5, 1. , 1. ])
    """
    check_whole("radius", radius, 0)
    check_whole("folds", folds, 2)
    model = NaiveBayes() if model is None else model
    table, plan, classes = open_labelled(model, X, y)
    shape = _check_shape(shape, len(table.schema.fields))
    near, split = find_neighbours(shape, radius), Split(folds, 0)
    with Threads(model.n_jobs) as threads:
        found = retry_wider(table, lambda t: _count_correct(t, plan, threads, split, near, classes), threads)
    rows = float(found[-1].sum())
    return NeighbourhoodMap(found[:-1, 0].reshape(shape) / rows, float(found[-1].max() / rows), round(rows))


def find_neighbours(shape: Sequence[int], radius: int = 1) -> Any:
    """(places x places) which places of a grid are at most `radius` steps apart along every axis.

    >>> find_neighbours((2, 3)).toarray().astype(int)[0].tolist()
    [1, 1, 0, 1, 1, 0]
    """
    near = [np.abs(np.subtract.outer(np.arange(size), np.arange(size))) <= radius for size in shape]
    return reduce(partial(sparse.kron, format="csr"), [sparse.csr_matrix(part.astype(float)) for part in near])


def _count_correct(
    table: Table, plan: Plan, runner: Runner, split: Split, near: Any, classes: Sequence[Any] | None
) -> np.ndarray:
    """(places + 1 x classes): in the first column the weight of correct rows; in the last row that of each class."""
    models = fold_models(table, plan, runner, split, classes)
    if models is None:
        raise DataError(f"too few rows have a label for {split.folds} folds.")
    places = {spec.key: place for place, spec in enumerate(table.schema.fields)}
    blocks = [leaf.key for leaf in models.model.leaves if len(leaf.columns) != 1]
    if blocks:
        raise DataError(f"a grid has one column in every place, and {blocks[0]!r} is a block of them.")
    used = near[:, [places[leaf.key] for leaf in models.model.leaves]]
    return np.asarray(total(runner, partial(on_task, partial(_count_chunk, models, used)), table.tasks()))


def _count_chunk(models: FoldModels, near: Any, chunk: Chunk) -> np.ndarray:
    sums = np.zeros((near.shape[0] + 1, groups := models.model.groups))
    at_once = max(1, CELLS_AT_ONCE // max(1, near.shape[0] * groups))
    for held in models.answers(chunk):
        columns, shares = np.stack(list(held.by_column().values())), held.log_shares
        for start in range(0, len(held.rows), at_once):
            rows = slice(start, start + at_once)
            scores = near @ columns[:, rows].reshape(len(columns), -1)
            joint = scores.reshape(near.shape[0], -1, groups) + shares[rows]
            sums[:-1, 0] += (joint.argmax(axis=2) == held.labels[rows]) @ held.weights[rows]
        sums[-1] += np.bincount(held.labels, held.weights, minlength=groups)
    return sums


# -- maps as pictures: PNG, and SVG that holds it, without an imaging library

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
    class_maps : Maps of class means.
    neighbourhood_accuracy : A map of local accuracy.

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
    scale = MapScale.of(flat.values(), centre)
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
    def of(cls, maps: Iterable[np.ndarray], centre: float | None) -> MapScale:
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
        table, span = BOTH_WAYS if self.both_ways else RISING, self.high - self.low
        there = np.isfinite(values)
        at = np.full(values.shape, 0.5 if self.both_ways else 0.0)
        if span > 0:
            at[there] = (values[there] - self.low) / span
        stops = np.linspace(0.0, 1.0, len(table))
        found = np.stack([np.interp(at, stops, channel) for channel in table.T], axis=-1)
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
