"""Inverses of triangular matrices, held to LAPACK's of any matrix."""

from __future__ import annotations

import numpy as np
import pytest

from softcount.core.special import inverse_of_lower


@pytest.mark.parametrize("d", [1, 2, 8, 9, 17, 30, 61])
def test_an_inverse_undoes_its_factor_and_is_lower_itself(d: int) -> None:
    rng = np.random.default_rng(d)
    factors = np.tril(rng.normal(size=(2, 3, d, d)), -1) / np.sqrt(d) + np.eye(d) * rng.uniform(0.5, 2.0, (2, 3, 1, d))
    found = inverse_of_lower(factors)
    np.testing.assert_allclose(found, np.linalg.inv(factors), rtol=0.0, atol=1e-11 * np.abs(found).max())
    assert not np.triu(found, 1).any()
