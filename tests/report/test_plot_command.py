"""One picture of a model by itself: the report's own, as SVG or as PNG."""

from __future__ import annotations

import re
import struct
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from softcount.cli import main
from softcount.demo import table_path


def run(*words: object, code: int = 0) -> Result:
    done = CliRunner().invoke(main, [str(word) for word in words])
    assert done.exit_code == code, done.output
    return done


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    saved = tmp_path_factory.mktemp("plot") / "bikes.sc"
    run("fit", table_path(), "--target", "type", "-o", saved, "--model", "naive-bayes")
    return saved


@pytest.mark.parametrize("what", ["nomogram", "confusion", "reliability", "lift", "influence", "regions", "missing"])
def test_a_picture_is_a_file_of_its_own(model: Path, tmp_path: Path, what: str) -> None:
    run("plot", model, "--what", what, "-o", tmp_path / "x.svg")
    root = ET.parse(tmp_path / "x.svg").getroot()
    assert root.tag.endswith("svg") and len(list(root)) > 5
    assert "var(--ink)" in (tmp_path / "x.svg").read_text()


def test_the_graph_of_a_network_is_a_picture(tmp_path: Path) -> None:
    run("fit", table_path(), "--net", "type>brakes, type>gears", "-o", tmp_path / "net.sc")
    run("plot", tmp_path / "net.sc", "network", "-o", tmp_path / "x.svg")
    assert {"type", "brakes", "gears"} <= set(re.findall(r">(\w+)</text>", (tmp_path / "x.svg").read_text()))


def test_a_density_is_of_the_column_asked_for_and_png_has_its_size(model: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    run("plot", model, "--what", "density", "--column", "price", "-o", tmp_path / "x.svg")
    run("plot", model, "--what", "density", "--column", "price", "-o", tmp_path / "x.png")
    width = float(ET.parse(tmp_path / "x.svg").getroot().attrib["width"])
    content = (tmp_path / "x.png").read_bytes()
    assert content.startswith(b"\x89PNG")
    assert abs(struct.unpack(">I", content[16:20])[0] - 2 * width) <= 2


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--what", "pie", "-o", "x.svg"], 2, "choose density, confusion"),
        (["--what", "nomogram", "-o", "x.gif"], 2, ".svg or .png"),
        (["--what", "density", "-o", "x.svg"], 2, "go together"),
        (["--what", "drift", "-o", "x.svg"], 3, "With DATA there are more"),
        (["--what", "network", "-o", "x.svg"], 3, "It has: confusion"),
        (["--what", "density", "--column", "no", "-o", "x.svg"], 3, "no picture of column 'no'"),
    ],
)
def test_what_cannot_be_drawn_is_one_clear_line(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], code: int, said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    assert said in run("plot", model, *words, code=code).output
    assert not list(tmp_path.iterdir())
