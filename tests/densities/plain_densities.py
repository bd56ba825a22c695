"""Kernel densities as plain loops, one kernel at a time: what the fast ones are held to."""

from __future__ import annotations

import math

import numpy as np


def plain_density(values, weights, queries, kernel, h):
    total = math.fsum(weights)
    found = []
    for query in queries:
        parts = [w * float(kernel.pdf(np.float64((query - x) / h))) for x, w in zip(values, weights, strict=True)]
        found.append(math.fsum(parts) / (total * h))
    return np.array(found)


def plain_cdf(values, weights, queries, kernel, h):
    total = math.fsum(weights)
    found = []
    for query in queries:
        parts = [w * float(kernel.cdf(np.float64((query - x) / h))) for x, w in zip(values, weights, strict=True)]
        found.append(math.fsum(parts) / total)
    return np.array(found)


def plain_log_gaussian(values, weights, queries, h):
    """The logarithm by the largest term, so that nothing is too small."""
    found = []
    for query in queries:
        parts = [math.log(w) - 0.5 * ((query - x) / h) ** 2 for x, w in zip(values, weights, strict=True)]
        top = max(parts)
        found.append(top + math.log(math.fsum(math.exp(part - top) for part in parts)))
    return np.array(found) - math.log(math.fsum(weights) * h * math.sqrt(2 * math.pi))


def plain_leave_one_out(values, h):
    """Each row under the others, by two loops."""
    total = 0.0
    for i, x in enumerate(values):
        parts = [-0.5 * ((x - y) / h) ** 2 for j, y in enumerate(values) if j != i]
        top = max(parts)
        total += top + math.log(math.fsum(math.exp(part - top) for part in parts))
    return total - len(values) * math.log((len(values) - 1) * h * math.sqrt(2 * math.pi))
