"""The pictures of the user guide are those that scripts/docs_pictures.py draws."""

import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
GUIDE = ROOT / "docs" / "guide"
pytestmark = pytest.mark.skipif(not GUIDE.exists(), reason="the documentation is not here")


@pytest.fixture(scope="module")
def drawn():
    pytest.importorskip("matplotlib").use("agg")
    sys.path.insert(0, str(ROOT / "scripts"))
    try:
        from docs_pictures import PICTURES
    finally:
        sys.path.pop(0)
    return PICTURES


def test_every_picture_of_the_guide_has_a_function_and_a_file(drawn):
    shown = {
        name
        for page in GUIDE.glob("*.md")
        for name in re.findall(r"\]\(\.\./pictures/(.+?)\.svg\)", page.read_text(encoding="utf-8"))
    }
    assert shown == set(drawn)
    assert all((ROOT / "docs" / "pictures" / f"{name}.svg").exists() for name in shown)


@pytest.mark.parametrize("name", ["beta", "bandwidths", "kmeans-regions"])
def test_pictures_are_small_and_whole(drawn, name):
    picture = drawn[name]()
    assert picture.startswith("<svg") and picture.rstrip().endswith("</svg>")
    assert len(picture) < 20_000
