"""Influence values of small soybean, as AutoClass C 3.3.6 reports them: its own report, in the folder it comes with."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import softcount as sc
from softcount.estimators.result_frames import arrow_of as arrow

FOLDER = "autoclass_c_shipped/soybean"


def attributes(header: str) -> list[tuple[str, int]]:
    """The table's columns in order, each with how many levels it has."""
    lines = re.findall(r'^\d+\s+(?:dummy|discrete)\s+\w+\s+(?:"([^"]+)"|(\w+))(?:\s+range\s+(\d+))?', header, re.M)
    return [(quoted or plain, int(levels or 0)) for quoted, plain, levels in lines]


def modelled(folder: Path) -> dict[str, list[str]]:
    """The 21 columns AutoClass modelled: all with two levels or more, but for the diagnosis."""
    cases = [line.split(",") for line in (folder / "soyc.db2").read_text().split() if re.match(r"\d+,", line)]
    named = enumerate(attributes((folder / "soyc.hd2").read_text()))
    return {name: [case[j] for case in cases] for j, (name, m) in named if m > 1 and name != "diagnosis"}


def summed(report: str) -> dict[str, float]:
    """Its list of influence values, normalised and summed over all classes, in its order."""
    lines = re.findall(r"^   \d{3}  (\S.*?) +(\d\.\d{3})$", report, re.M)
    return {name: float(value) for name, value in lines}


def each(report: str) -> list[list[float]]:
    """The influence values of every class, largest first."""
    classes = report.split("\nCLASS  ")[1:]
    return [[float(x) for x in re.findall(r"^\d\d \d\d D SM +.{20} +(\d+\.\d+) ", part, re.M)] for part in classes]


def divergences(report: str) -> list[float]:
    """How far each class is from the whole table."""
    part = report[report.index("CLASS DIVERGENCES") : report.index("ORDERED LIST")]
    return [float(x) for x in re.findall(r"^ +\d +(\d\.\d\de\+\d\d) +\d+ ", part, re.M)]


@pytest.fixture(scope="module")
def report(data: Callable[[str], Path]) -> str:
    return data(f"{FOLDER}/soyc.influ-o-text-1").read_text()


@pytest.fixture(scope="module")
def mixture(data: Callable[[str], Path]) -> sc.Mixture:
    table = modelled(data(f"{FOLDER}/soyc.db2").parent)
    assert len(table) == 21
    return sc.Mixture(4, kinds="categorical", random_state=0).fit(table)


def test_the_order_is_autoclasss_and_every_value_agrees_to_its_last_digit(mixture, report):
    frame = arrow(mixture.summary("column")).to_pydict()
    right = summed(report)
    assert len(right) == 21
    for name, value in zip(frame["column"], frame["relative"], strict=True):
        assert value == pytest.approx(right[name], abs=0.00051), name
    assert frame["column"][:9] == list(right)[:9]
    assert list(mixture.influence_) == frame["column"]


def test_every_class_has_autoclasss_values(mixture, report):
    frame = arrow(mixture.summary("class and column")).to_pydict()
    pairs = list(zip(frame["class"], frame["influence"], strict=True))
    mine = sorted(sorted((value for name, value in pairs if name == g), reverse=True) for g in range(4))
    for one, other in zip(mine, sorted(each(report)), strict=True):
        np.testing.assert_allclose(one, other, atol=0.00051)
    assert max(frame["influence"]) == pytest.approx(1.277, abs=0.0005)  # its "max global influence value"


def test_the_classes_are_as_far_from_the_whole_table_as_autoclass_says(mixture, report):
    frame = arrow(mixture.summary(parameters=True)).to_pydict()
    np.testing.assert_allclose(sorted(frame["departure"]), sorted(divergences(report)), rtol=0.005)
    np.testing.assert_allclose(frame["share"], [17.25 / 48, *[10.25 / 48] * 3], rtol=1e-4)


def test_the_rows_of_the_classes_are_those_of_the_four_diseases(mixture):
    np.testing.assert_allclose(arrow(mixture.summary()).to_pydict()["rows"], [17, 10, 10, 10], rtol=1e-4)
