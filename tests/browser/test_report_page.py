"""Reports in a real browser: nothing asked of any other place, nothing failing, readable by all, without scripts."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import softcount as sc
from html_checks import HOSTILE
from softcount.demo import table_path

BIKES = str(table_path())


def _blobs() -> np.ndarray:
    rng = np.random.default_rng(0)
    return np.concatenate([rng.normal(0, 1, (60, 2)), rng.normal(5, 1, (60, 2))])


def _hostile() -> str:
    rng = np.random.default_rng(0)
    table: dict[str, Any] = {name: rng.choice(HOSTILE[20:24], 80).tolist() for name in HOSTILE[:8]}
    table |= {name: rng.normal(size=80).tolist() for name in HOSTILE[8:12]}
    labels = rng.choice(HOSTILE[30:33], 80).tolist()
    return str(sc.NaiveBayes().fit(table, labels).report(table, labels).html)


REPORTS: dict[str, Callable[[], str]] = {
    "naive Bayes": lambda: sc.NaiveBayes().fit(BIKES, "type").report(BIKES).html,
    "mixture": lambda: sc.Mixture(3, kinds={"type": "ignore"}, n_init=2, random_state=0).fit(BIKES).report(BIKES).html,
    "Gaussian mixture": lambda: sc.GaussianMixture(2, n_init=2, random_state=0).fit(_blobs()).report(_blobs()).html,
    "k-means": lambda: sc.KMeans(2, n_init=2, random_state=0).fit(_blobs()).report(_blobs()).html,
    "text": lambda: sc.NaiveBayes(kinds="text").fit(["win a prize", "see you"] * 9, ["spam", "ham"] * 9)
    .report(["win a prize", "see you"] * 9, ["spam", "ham"] * 9).html,
    "network": lambda: sc.BayesNet([("a", "b")]).fit({"a": ["x", "y"] * 9, "b": ["u", "v", "u"] * 6}).report().html,
    "chain": lambda: sc.MarkovChain().fit(["abab", "baab"]).report().html,
    "hostile": _hostile,
}  # fmt: skip


@cache
def report(name: str) -> str:
    return REPORTS[name]()


@pytest.mark.parametrize("name", list(REPORTS))
def test_a_report_opens_without_scripts_light_and_dark(opened: Any, name: str) -> None:
    page = opened(report(name), java_script_enabled=False).page
    for width, scheme in ((1280, "light"), (390, "dark")):
        page.set_viewport_size({"width": width, "height": 900})
        page.emulate_media(color_scheme=scheme)
        assert page.locator("h1").count() == 1
        assert page.locator("svg").first.is_visible()
        wide = page.locator("main").bounding_box()["width"]
        assert wide <= width


@pytest.mark.parametrize("name", list(REPORTS))
def test_nothing_sticks_out_and_numbers_open_by_keyboard(opened: Any, name: str) -> None:
    found = opened(report(name), viewport={"width": 390, "height": 900})
    assert found.run("document.documentElement.scrollWidth") <= 390
    page = found.page
    page.locator("summary").first.focus()
    page.keyboard.press("Enter")
    assert page.locator("details[open] table").first.is_visible()


@pytest.mark.parametrize("name", ["naive Bayes", "mixture", "network", "hostile", "k-means", "chain", "text"])
def test_a_report_has_no_serious_fault_for_readers_of_any_kind(opened: Any, axe: str, name: str) -> None:
    page = opened(report(name))
    assert page.grave_faults(axe) == []
    page.page.emulate_media(color_scheme="dark")  # which changes colours alone
    assert page.grave_faults(axe, ["color-contrast"]) == []


def test_a_report_prints(opened: Any, tmp_path: Path) -> None:
    page = opened(report("naive Bayes")).page
    page.emulate_media(media="print")
    assert len(page.pdf(path=str(tmp_path / "report.pdf"))) > 10_000
