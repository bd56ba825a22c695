"""Model files of many columns: as many entries as for few, and work in proportion."""

from __future__ import annotations

import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import softcount as sc
from softcount.cli import main
from softcount.cli.models import open_model
from softcount.errors import DataWarning
from softcount.files import archive, read, write
from softcount.fit import classes
from softcount.report.class_pictures import GivenRows
from softcount.report.classes import model_page, model_record
from softcount.table import schema

WIDTHS = (60, 240)


def frame(width: int) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    levels = np.array(["red", "green", "blue"])
    columns = {f"c{j}": rng.normal(size=30) if j % 2 else levels[rng.integers(0, 3, 30)] for j in range(width)}
    return pd.DataFrame(columns)


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> dict[int, tuple[Any, Path]]:
    """Models of few columns and of four times as many, and their files."""
    folder = tmp_path_factory.mktemp("wide")
    found = {}
    for width in WIDTHS:
        model = sc.NaiveBayes().fit(frame(width), [0, 1, 1] * 10)
        model.save(folder / f"{width}.sc")
        found[width] = model, folder / f"{width}.sc"
    return found


def calls(work: Callable[[], object]) -> int:
    """How many functions were called and left."""
    number = 0

    def look(*event: Any) -> None:
        nonlocal number
        number += 1

    sys.setprofile(look)
    try:
        work()
    finally:
        sys.setprofile(None)
    return number


def test_many_columns_are_in_as_few_entries_as_few(saved):
    few, many = (zipfile.ZipFile(path).namelist() for _, path in saved.values())
    assert len(few) == len(many) < 40


def test_a_model_of_many_columns_comes_back(saved):
    model, path = saved[WIDTHS[1]]
    rows = frame(WIDTHS[1])
    np.testing.assert_array_equal(sc.load(path).predict_proba(rows), model.predict_proba(rows))


def sorted_rows(model: Any, rows: pd.DataFrame) -> GivenRows:
    from softcount.fitted.classes import sort_rows
    from softcount.run.local import Threads

    with Threads(1) as threads:
        return GivenRows("rows", sort_rows(model.fitted_, model.fitted_.table(rows), threads))


WORK: dict[str, Callable[[Any, Path, pd.DataFrame], object]] = {
    "load": lambda model, path, rows: sc.load(path),
    "save": lambda model, path, rows: model.save(path),
    "load for a command": lambda model, path, rows: open_model(str(path)),
    "a page": lambda model, path, rows: model_page(model.fitted_),
    "a page as data": lambda model, path, rows: model_record(model.fitted_),
    "a page of rows": lambda model, path, rows: model_page(model.fitted_, sorted_rows(model, rows)),
    "influence": lambda model, path, rows: model.summary("class and column"),
    "explain": lambda model, path, rows: model.explain(rows),
}


@pytest.mark.parametrize("name", WORK)
def test_four_times_the_columns_are_four_times_the_work(saved, name):
    few, many = (calls(lambda: WORK[name](*saved[width], frame(width))) for width in WIDTHS)  # noqa: B023
    assert many < 5 * few


def test_a_document_is_as_long_as_it_must_be(tmp_path):
    """Many columns of many levels are more than any fixed length of the document."""
    document = {"levels": ["x" * 70_000_000]}
    write(tmp_path / "m.sc", document, {})
    assert read(tmp_path / "m.sc")[0] == document


def texts(width: int) -> pd.DataFrame:
    """Columns of text, each with another number of words."""
    return pd.DataFrame(
        {f"t{j}": [" ".join(f"w{j}_{i}" for i in range(r % 5 + j + 2)) for r in range(30)] for j in range(width)}
    )


def test_as_many_columns_of_text_as_a_file_has_room_for_take_no_more(tmp_path):
    entries = []
    for width in (2, 4):
        found = sc.NaiveBayes(dict.fromkeys(texts(width), "text")).fit(texts(width), [0, 1, 1] * 10)
        found.save(tmp_path / "m.sc")
        entries.append(len(zipfile.ZipFile(tmp_path / "m.sc").namelist()))
    each = (entries[1] - entries[0]) / 2
    assert entries[0] + each * schema.MOST_TEXTS <= archive._MOST_ARRAYS


def test_more_text_than_a_file_holds_is_said_before_the_fit(tmp_path, monkeypatch):
    monkeypatch.setattr(schema, "MOST_TEXTS", 1)
    kinds = dict.fromkeys(texts(2), "text")
    with pytest.warns(DataWarning, match="this model cannot be saved: 2 columns are text, and a model file has room"):
        sc.NaiveBayes(kinds).fit(texts(2), [0, 1, 1] * 10)
    texts(2).assign(y=["a", "b", "b"] * 10).to_csv(tmp_path / "t.csv", index=False)
    monkeypatch.setattr(classes.ClassRequest, "learn", None)
    words = [f"--kind={name}=text" for name in kinds]
    result = CliRunner().invoke(main, ["fit", str(tmp_path / "t.csv"), "--target", "y", *words])
    assert result.exit_code == 3 and "t.csv: 2 columns are text" in result.stderr
