"""Which kernels a table gets, and what they promise each other."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from types import ModuleType

import numpy as np
import pytest

from softcount import kernels
from softcount.kernels import fused, reference

COMBINED = {"expect_squares", "posterior_codes", "posterior_reals"}
"""Two steps in one pass over the rows, which only compiled kernels have."""


@pytest.mark.parametrize("name", [name for name in vars(fused) if not name.startswith("_") and name not in COMBINED])
def test_both_kernels_have_one_signature(name: str) -> None:
    compiled, plain = getattr(fused, name), getattr(reference, name)
    assert inspect.signature(compiled) == inspect.signature(plain)


def test_size_alone_decides() -> None:
    assert kernels.choose(kernels.WORTH_COMPILING - 1) is reference
    assert kernels.choose(kernels.WORTH_COMPILING) is fused


def test_a_small_table_never_imports_numba() -> None:
    script = "import sys; from softcount import kernels; kernels.choose(600); print('numba' in sys.modules)"
    paths = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    answer = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, env=paths)
    assert answer.stdout.strip() == "False"


@pytest.mark.parametrize("kernel", [reference, fused], ids=["reference", "fused"])
def test_a_label_without_a_group_is_refused_by_row(kernel: ModuleType) -> None:
    labels, reals, codes = np.array([0, 2, 1], np.int32), np.zeros((3, 1)), np.zeros((3, 1), np.uint8)
    with pytest.raises(IndexError, match="row 1 is labelled 2, but groups are 0 to 1"):
        kernel.count_reals_labelled(reals, labels, None, np.zeros((2, 1)), np.zeros(1), np.ones(1))
    with pytest.raises(IndexError, match="row 1 is labelled 2"):
        kernel.count_codes_labelled(codes, np.zeros(1, np.int64), labels, None, 1, 2)


def test_two_threads_at_once_give_the_bits_of_one() -> None:
    rng = np.random.default_rng(6)
    reals, labels = rng.normal(size=(4096, 11)), rng.integers(0, 3, 4096).astype(np.int32)
    arguments = (reals, labels, None, np.zeros((3, 11)), np.zeros(11), np.ones(11))
    alone = fused.count_reals_labelled(*arguments)
    with ThreadPoolExecutor(2) as pool:
        answers = list(pool.map(lambda _: fused.count_reals_labelled(*arguments), range(8)))
    assert all(np.array_equal(alone[k], answer[k]) for answer in answers for k in (0, 1))
