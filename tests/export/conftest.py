"""A server of Postgres that the tests of databases share: starting one takes longer than most of them."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from shutil import rmtree
from tempfile import mkdtemp
from typing import Any

import pytest


@pytest.fixture(scope="session")
def postgres() -> Iterator[Any]:
    """A connection; what a test makes there is rolled back."""
    import pgserver
    import psycopg

    folder = mkdtemp()
    os.chmod(folder, 0o755)  # as root the server runs under another name
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            server = pgserver.get_server(folder)
    except Exception as error:
        pytest.skip(f"no Postgres server can be started here: {error}")
    with psycopg.connect(server.get_uri()) as base:
        yield base
    server.cleanup()
    rmtree(folder, ignore_errors=True)
