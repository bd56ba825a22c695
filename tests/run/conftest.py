"""What the tests of rows elsewhere share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    """Two workers of Dask's that are threads."""
    distributed = pytest.importorskip("distributed")
    how = {"processes": False, "threads_per_worker": 1, "dashboard_address": None}
    with distributed.LocalCluster(n_workers=2, **how) as cluster, distributed.Client(cluster) as found:
        yield found
