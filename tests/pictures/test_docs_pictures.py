"""The pictures of the guide, the tutorials and the worked examples are those that scripts/docs_pictures.py draws."""

import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = [ROOT / "docs" / name for name in ("guide", "tutorials", "worked")]
pytestmark = pytest.mark.skipif(not FOLDERS[0].exists(), reason="the documentation is not here")


@pytest.fixture(scope="module")
def drawn():
    pytest.importorskip("matplotlib").use("agg")
    sys.path.insert(0, str(ROOT / "scripts"))
    try:
        from docs_pictures import PICTURES
    finally:
        sys.path.pop(0)
    return PICTURES


def test_every_picture_of_these_pages_has_a_function_and_a_file(drawn):
    shown = {
        name
        for folder in FOLDERS
        for page in folder.glob("*.md")
        for name in re.findall(r"\]\(\.\./pictures/(.+?)\.svg\)", page.read_text(encoding="utf-8"))
    }
    assert shown == set(drawn)
    assert all((ROOT / "docs" / "pictures" / f"{name}.svg").exists() for name in shown)


@pytest.mark.parametrize(
    "name",
    [
        "beta", "bandwidths", "kmeans-regions", "tutorial-ellipses", "tutorial-explanation", "simplex", "heights",
        "lower-bound", "kernels", "svr-tube",
    ],
)  # fmt: skip
def test_pictures_are_small_and_whole(drawn, name):
    picture = drawn[name]()
    assert picture.startswith("<svg") and picture.rstrip().endswith("</svg>")
    assert len(picture) < 20_000
