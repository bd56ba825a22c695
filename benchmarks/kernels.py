"""Each compiled kernel on one and on two threads, beside a plain read of the same memory and, for scores, a bare GEMM.

Run with `python -m benchmarks kernels`. Times are the best of several over chunks of 32,768 rows (8,192 for the
latent class iteration, tiles of 4,096 rows inside predictions), one chunk to a thread at a time.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.timing import Span
from softcount.kernels import fused

CHUNK = 32_768
TILE = 4_096
Work = Callable[[int, int], object]


@dataclass(frozen=True, slots=True)
class Job:
    """Something to do with rows `start` to `stop`."""

    name: str
    rows: int
    work: Work
    chunk: int = CHUNK


def once(job: Job, pool: ThreadPoolExecutor | None) -> float:
    """Seconds for all rows, in this thread or in the pool's."""
    spans = [(start, min(start + job.chunk, job.rows)) for start in range(0, job.rows, job.chunk)]
    begun = time.perf_counter()
    for _ in map(lambda s: job.work(*s), spans) if pool is None else pool.map(lambda s: job.work(*s), spans):
        pass
    return time.perf_counter() - begun


def report(job: Job, pool: ThreadPoolExecutor, rounds: int) -> Span:
    once(job, None)
    best = {threads: min(once(job, how) for _ in range(rounds)) for threads, how in ((1, None), (2, pool))}
    return Span(job.name, job.rows, best)


def read(array: np.ndarray) -> Work:
    """The least that touching the memory costs: a bitwise sum that no rounding slows down."""
    words = array.view(np.uint64) if array.itemsize == 8 else array
    return lambda start, stop: np.bitwise_or.reduce(words[start:stop], axis=None)


def real_jobs(rng: np.random.Generator) -> Iterator[Job]:
    rows, columns, groups = 1_000_000, 50, 10
    reals, labels = rng.normal(size=(rows, columns)), rng.integers(0, groups, rows).astype(np.int32)
    centres, anchors, scales = rng.normal(size=(groups, columns)), np.zeros(columns), np.ones(columns)
    weights, shares = np.ones(rows), rng.dirichlet(np.ones(groups), rows)
    out = np.zeros((rows, groups))
    inverse, constants = np.ones_like(centres), np.zeros_like(centres)
    size = "1,000,000 x 50, 10 groups"
    yield Job(f"read {size}", rows, read(reals))

    def labelled(table: np.ndarray, heavy: np.ndarray | None) -> Work:
        return lambda i, j: fused.count_reals_labelled(
            table[i:j], labels[i:j], None if heavy is None else heavy[i:j], centres, anchors, scales
        )

    def score(table: np.ndarray) -> Work:
        return lambda i, j: fused.score_reals(table[i:j], centres, inverse, constants, out[i:j])

    def predict(i: int, j: int) -> None:
        for start in range(i, j, TILE):
            stop = min(start + TILE, j)
            joint = out[start:stop]
            joint[:] = 0.0
            fused.score_reals(reals[start:stop], centres, inverse, constants, joint)
            fused.normalise(joint)

    yield Job("count_reals_labelled", rows, labelled(reals, None))
    yield Job("count_reals_labelled, weighted", rows, labelled(reals, weights))
    yield Job("count_reals_soft", rows, lambda i, j: fused.count_reals_soft(
        reals[i:j], shares[i:j], centres, anchors, scales))  # fmt: skip
    yield Job("bare GEMM of the same shape", rows, lambda i, j: np.dot(reals[i:j], centres.T))
    yield Job("score_reals", rows, score(reals))
    yield Job("normalise", rows, lambda i, j: fused.normalise(out[i:j]))
    yield Job("score_reals + normalise (predict_proba)", rows, predict)
    flat = np.asfortranarray(reals)
    yield Job("count_reals_labelled, F order", rows, labelled(flat, None))
    yield Job("score_reals, F order", rows, score(flat))
    reals[rng.random(reals.shape) < 0.1] = np.nan
    yield Job("count_reals_labelled, 10 % missing", rows, labelled(reals, None))
    yield Job("score_reals, 10 % missing", rows, score(reals))


def code_jobs(rng: np.random.Generator) -> Iterator[Job]:
    rows, columns, room, groups = 500_000, 20, 10, 5
    codes, labels = rng.integers(1, 9, (rows, columns)).astype(np.uint8), rng.integers(0, groups, rows).astype(np.int32)
    offsets, cells = np.arange(columns) * room, columns * room
    table, out, weights = rng.normal(size=(cells, groups)), np.zeros((rows, groups)), np.ones(rows)

    def predict(i: int, j: int) -> None:
        for start in range(i, j, TILE):
            stop = min(start + TILE, j)
            joint = out[start:stop]
            joint[:] = 0.0
            fused.score_codes(codes[start:stop], offsets, table, joint)
            fused.normalise(joint)

    yield Job("read 500,000 x 20 codes, 8 levels, 5 groups", rows, read(codes))
    yield Job("count_codes_labelled", rows, lambda i, j: fused.count_codes_labelled(
        codes[i:j], offsets, labels[i:j], None, cells, groups))  # fmt: skip
    yield Job("count_codes_labelled, weighted", rows, lambda i, j: fused.count_codes_labelled(
        codes[i:j], offsets, labels[i:j], weights[i:j], cells, groups))  # fmt: skip
    yield Job("score_codes", rows, lambda i, j: fused.score_codes(codes[i:j], offsets, table, out[i:j]))
    yield Job("score_codes + normalise (predict_proba)", rows, predict)


def class_jobs(rng: np.random.Generator) -> Iterator[Job]:
    rows, columns, room, groups, chunk = 50_000, 20, 6, 6, 8_192
    codes = rng.integers(1, 5, (rows, columns)).astype(np.uint8)
    offsets, cells = np.arange(columns) * room, columns * room
    table, shares = np.log(rng.dirichlet(np.ones(groups), cells)), rng.dirichlet(np.ones(groups), rows)
    out = np.zeros((rows, groups))

    def iteration(i: int, j: int) -> np.ndarray:
        joint = np.zeros((j - i, groups))
        fused.score_codes(codes[i:j], offsets, table, joint)
        fused.normalise(joint)
        return fused.count_codes_soft(codes[i:j], offsets, joint, cells)

    yield Job("read 50,000 x 20 codes, 4 levels, 6 groups", rows, read(codes), chunk)
    yield Job("score_codes", rows, lambda i, j: fused.score_codes(codes[i:j], offsets, table, out[i:j]), chunk)
    yield Job("normalise", rows, lambda i, j: fused.normalise(out[i:j]), chunk)
    yield Job("count_codes_soft", rows, lambda i, j: fused.count_codes_soft(
        codes[i:j], offsets, shares[i:j], cells), chunk)  # fmt: skip
    yield Job("all three (a latent class iteration)", rows, iteration, chunk)
    codes[rng.random(codes.shape) < 0.1] = 0
    yield Job("the same, 10 % missing", rows, iteration, chunk)


def run(rounds: int) -> Iterator[Span]:
    rng = np.random.default_rng(0)
    with threadpool_limits(1), ThreadPoolExecutor(2) as pool:
        for jobs in (real_jobs, code_jobs, class_jobs):
            for job in jobs(rng):
                yield report(job, pool, 2 * rounds)
