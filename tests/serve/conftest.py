"""Every kind of model that is served, saved once, and an application that has them all."""

import pytest

from served_rows import app_of, saved_models


@pytest.fixture(scope="session")
def paths(tmp_path_factory):
    return saved_models(tmp_path_factory.mktemp("models"))


@pytest.fixture(scope="session")
def app(paths):
    return app_of(paths.values())
