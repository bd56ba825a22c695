"""Cutting a numeric column where its classes change, as Fayyad and Irani do: data preparation for the golden tests."""

from __future__ import annotations

import numpy as np


def cut_points(values: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Sorted cuts of a column with two classes (0 and 1), each worth its description length."""
    order = np.argsort(values, kind="stable")
    values, ones = values[order], np.concatenate([[0], np.cumsum(labels[order])])
    cuts: list[float] = []
    open_ranges = [(0, len(values))]
    while open_ranges:
        low, high = open_ranges.pop()
        at = _best_cut(values, ones, low, high)
        if at is not None:
            cuts.append((values[at - 1] + values[at]) / 2)
            open_ranges += [(low, at), (at, high)]
    return np.sort(cuts)


def _best_cut(values: np.ndarray, ones: np.ndarray, low: int, high: int) -> int | None:
    """Where to cut rows low..high, or None if no cut pays for itself."""
    n = high - low
    between = low + 1 + np.flatnonzero(values[low + 1 : high] != values[low : high - 1])
    if not len(between):
        return None
    left, right = ones[between] - ones[low], ones[high] - ones[between]
    before, after = between - low, high - between
    mixed = (before * _bits(left, before) + after * _bits(right, after)) / n
    best = int(mixed.argmin())
    whole = ones[high] - ones[low]
    parts = [(whole, n), (left[best], before[best]), (right[best], after[best])]
    classes = [1 + int(0 < some < rows) for some, rows in parts]
    weighed = [k * float(_bits(some, rows)) for k, (some, rows) in zip(classes, parts, strict=True)]
    price = np.log2(n - 1) + np.log2(3.0 ** classes[0] - 2) - (weighed[0] - weighed[1] - weighed[2])
    return int(between[best]) if _bits(whole, n) - mixed[best] > price / n else None


def _bits(some: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Entropy of a share, in bits."""
    share = np.asarray(some) / rows
    inside = np.clip(share, 1e-300, 1.0), np.clip(1.0 - share, 1e-300, 1.0)
    return -(share * np.log2(inside[0]) + (1.0 - share) * np.log2(inside[1]))
