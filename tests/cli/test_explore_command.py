"""softcount explore: the file it writes, and what it says where it cannot."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from pathlib import Path
from urllib.request import urlopen

import numpy as np
import pytest
from click.testing import CliRunner, Result

import softcount as sc
from explored_models import MODELS
from softcount.cli import main


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("explore")
    explored = MODELS["mixture"]()
    explored.model.save(path / "m.sc")
    explored.rows.to_csv(path / "rows.csv", index=False)
    return path


def run(*words: object, code: int = 0) -> Result:
    result = CliRunner().invoke(main, ["explore", *map(str, words)])
    assert result.exit_code == code, (result.output, result.exception)
    return result


def held(path: Path) -> dict[str, object]:
    """What a page holds."""
    found = re.search(r'<script type="application/json" id="model">(.*?)</script>', path.read_text())
    assert found is not None
    return json.loads(found[1])


def test_the_page_is_written_beside_the_model_unless_said_otherwise(folder: Path) -> None:
    result = run(folder / "m.sc")
    assert "Open it in a browser" in result.stderr
    assert (folder / "m.html").read_text().startswith("<!doctype html>")
    run(folder / "m.sc", "-o", folder / "other.html")
    assert (folder / "other.html").read_text() == (folder / "m.html").read_text()
    assert held(folder / "m.html")["rows"] is None


def test_rows_of_data_go_in_and_no_more_than_200(folder: Path) -> None:
    run(folder / "m.sc", folder / "rows.csv", "-o", folder / "with.html")
    rows = held(folder / "with.html")["rows"]
    assert rows["names"] == ["height", "visits", "colour", "size"]
    first = MODELS["mixture"]().rows.iloc[0]
    assert rows["cells"][0] == [pytest.approx(first["height"]), first["visits"], first["colour"], first["size"]]
    (folder / "many.csv").write_text("height\n" + "1.5\n" * 300)
    run(folder / "m.sc", folder / "many.csv", "-o", folder / "many.html")
    assert len(held(folder / "many.html")["rows"]["cells"]) == 200


def test_a_network_file_is_a_model_too(tmp_path: Path) -> None:
    net = sc.BayesNet(edges=[("a", "b")]).fit({"a": ["x", "y", "x", "y"], "b": ["u", "v", "u", "u"]})
    net.save(tmp_path / "net.sc")
    run(tmp_path / "net.sc")
    assert held(tmp_path / "net.html")["model"]["kind"] == "network"


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("m.sc", "-o", "nowhere/x.html"), 3, "nowhere"),
        (("m.sc", "rows.csv", "-o", "rows.csv"), 2, "also an input"),
        (("m.sc", "-o", "m.sc"), 2, "also an input"),
        (("absent.sc",), 4, "absent.sc"),
        (("rows.csv",), 4, "rows.csv"),
        (("m.sc", "none.csv"), 3, "none.csv"),
        (("m.sc", "strange.csv"), 3, "column"),
        (("m.sc", "empty.csv"), 3, "no rows"),
        (("m.sc", "--serve", "-o", "x.html"), 2, "leave out -o"),
    ],
)
def test_what_cannot_be_done_is_said(
    folder: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], code: int, said: str
) -> None:
    monkeypatch.chdir(folder)
    (folder / "strange.csv").write_text("p,q\n1,2\n")
    (folder / "empty.csv").write_text("height,visits,colour,size\n")
    result = run(*words, code=code)
    assert said in result.stderr
    assert "Traceback" not in result.stderr


def test_k_means_and_chains_have_pages_and_directions_say_why_not(tmp_path: Path) -> None:
    numbers = np.array([[0.0, 1.0], [1.0, 1.0], [9.0, 2.0], [10.0, 2.0]])
    sc.KMeans(2, random_state=0).fit(numbers).save(tmp_path / "k.sc")
    sc.MarkovChain().fit(["abab", "ba"]).save(tmp_path / "c.sc")
    sc.SphericalKMeans(2, random_state=0).fit(numbers).save(tmp_path / "s.sc")
    for name in ("k", "c"):
        run(tmp_path / f"{name}.sc")
        assert held(tmp_path / f"{name}.html")["elsewhere"] is False
    assert "directions" in run(tmp_path / "s.sc", code=3).output
    (tmp_path / "x.csv").write_text("a\n1\n")
    assert "Leave" in run(tmp_path / "c.sc", tmp_path / "x.csv", code=3).output


def test_a_dense_network_has_no_page_and_says_what_to_ask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    MODELS["network"]().model.save(tmp_path / "n.sc")
    monkeypatch.setattr("softcount.explore.network.ROOM", 10)
    for how in ([], ["--serve"]):
        said = run(tmp_path / "n.sc", *how, code=5).output
        assert "a browser can go through 10" in said and "softcount query" in said and "--memory" not in said


def test_a_page_too_large_names_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("softcount.explore.page.LARGEST", 10_000)
    with pytest.raises(sc.DataError, match="--serve"):
        _ = MODELS["mixture"]().model.explore().html


def test_the_server_runs_until_it_is_interrupted(folder: Path) -> None:
    # Where tests run in the background of a shell, interrupts are ignored, and children inherit that.
    running = subprocess.Popen(
        [sys.executable, "-m", "softcount.cli", "explore", str(folder / "m.sc"), "--serve"],
        stderr=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    assert running.stderr is not None
    try:
        address = re.search(r"http://\S+", running.stderr.readline().decode())
        assert address is not None
        with urlopen(address[0], timeout=10) as answer:
            assert answer.read().startswith(b"<!doctype html>")
        running.send_signal(signal.SIGINT)
        assert running.wait(timeout=20) == 0
    finally:
        running.kill()
        running.wait()
        running.stderr.close()
