"""Every kernel again, cell by cell in plain loops; the counts of reals in exact fractions."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np


def count_reals(
    reals: np.ndarray, memberships: np.ndarray, anchors: np.ndarray, scales: np.ndarray
) -> list[list[list[Fraction]]]:
    """Exact n, sum d and sum d^2 per group and column, with d = (x - anchor) * scale of the stored doubles."""
    rows, columns = reals.shape
    sums = [[[Fraction(0)] * 3 for _ in range(columns)] for _ in range(memberships.shape[1])]
    for i in range(rows):
        for j in range(columns):
            if math.isnan(reals[i, j]):
                continue
            d = (Fraction(float(reals[i, j])) - Fraction(float(anchors[j]))) * Fraction(float(scales[j]))
            for g in np.flatnonzero(memberships[i]):
                weight = Fraction(float(memberships[i, g]))
                for power in range(3):
                    sums[g][j][power] += weight * d**power
    return sums


def as_memberships(labels: np.ndarray, weights: np.ndarray | None, n_groups: int) -> np.ndarray:
    """One group per row, by its weight."""
    memberships = np.zeros((len(labels), n_groups))
    for i, label in enumerate(labels):
        if label >= 0:
            memberships[i, label] = 1.0 if weights is None else weights[i]
    return memberships


def score_reals(reals: np.ndarray, means: np.ndarray, inverse_sds: np.ndarray, constants: np.ndarray) -> np.ndarray:
    out = np.zeros((len(reals), len(means)))
    for i in range(len(reals)):
        for g in range(len(means)):
            for j in range(reals.shape[1]):
                if not math.isnan(reals[i, j]):
                    z = (float(reals[i, j]) - float(means[g, j])) * float(inverse_sds[g, j])
                    out[i, g] += float(constants[g, j]) - 0.5 * z * z
    return out


def score_codes(codes: np.ndarray, offsets: np.ndarray, table: np.ndarray) -> np.ndarray:
    out = np.zeros((len(codes), table.shape[1]))
    for i in range(len(codes)):
        for j in range(codes.shape[1]):
            for g in range(table.shape[1]):
                out[i, g] += table[offsets[j] + int(codes[i, j]), g]
    return out


def count_codes(codes: np.ndarray, offsets: np.ndarray, memberships: np.ndarray, n_cells: int) -> np.ndarray:
    out = np.zeros((n_cells, memberships.shape[1]))
    for i in range(len(codes)):
        for j in range(codes.shape[1]):
            for g in range(memberships.shape[1]):
                out[offsets[j] + int(codes[i, j]), g] += memberships[i, g]
    return out


def normalise(joint: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Memberships and log evidence, each row's exponentials added exactly."""
    memberships = np.zeros_like(joint)
    evidence = np.full(len(joint), -np.inf)
    for i, row in enumerate(joint):
        peak = max(row)
        if peak == -math.inf:
            continue
        powers = [math.exp(value - peak) for value in row]
        evidence[i] = peak + math.log(math.fsum(powers))
        memberships[i] = [power / math.fsum(powers) for power in powers]
    return memberships, evidence
