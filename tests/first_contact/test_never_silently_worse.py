"""Naive Bayes and the classifier answer on every fold, and where they are worse than guessing they say so first."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from sklearn.datasets import load_breast_cancer, load_iris, load_wine

import softcount as sc
from softcount.cli import main
from softcount.demo import table_path

DATA = Path(os.environ.get("SOFTCOUNT_DATA", "../shared/data"))
FOLDS = 3
WORSE = "worse than guessing"


def bundled(load: Callable[..., pd.DataFrame], rows: int) -> pd.DataFrame:
    return load(as_frame=True).frame.rename(columns={"target": "which"}).sample(rows, random_state=0)


def noise() -> pd.DataFrame:
    """Columns that have nothing to do with the class, and repeat each other."""
    rng = np.random.default_rng(0)
    found = pd.DataFrame({"which": rng.choice(list("ab"), 90), "x": rng.normal(size=90)})
    return found.assign(**{f"copy{k}": found["x"] + 0.01 * rng.normal(size=90) for k in range(12)})


def odd() -> pd.DataFrame:
    """Mostly zeros, holes, a level for each row or two, classes of one row, a constant."""
    rng = np.random.default_rng(1)
    kinds = np.where(rng.random(80) < 0.5, "often", "seldom")
    kinds[:2] = "once", "twice"
    amount = np.where(rng.random(80) < 0.8, 0.0, rng.lognormal(5, 2, 80))
    name = [f"n{k // 2}" for k in range(80)]
    return pd.DataFrame({"which": kinds, "amount": amount, "name": name, "same": 1, "hole": [None, 1.5] * 40})


TABLES: dict[str, Callable[[], pd.DataFrame]] = {
    "iris": lambda: bundled(load_iris, 150),
    "wine": lambda: bundled(load_wine, 178),
    "breast cancer": lambda: bundled(load_breast_cancer, 150),
    "bicycles": lambda: pd.read_csv(table_path()).rename(columns={"type": "which"}).head(150),
    "noise that repeats itself": noise,
    "odd columns": odd,
}
SHARED = {
    "titanic/titanic_seaborn.csv": ({}, "survived"),
    "r_datasets/Pima.tr2_missing.csv": ({}, "type"),
    "uci_heart/processed.cleveland.data": ({"header": None, "na_values": "?"}, 13),
    "uci_credit_approval/crx.data": ({"header": None, "na_values": "?"}, 15),
    "uci_promoters/promoters.data": ({"header": None}, 0),
    "uci_vote/house-votes-84.data": ({"header": None, "na_values": "?"}, 0),
}


def shared(name: str) -> pd.DataFrame:
    how, target = SHARED[name]
    if not (DATA / name).exists():
        pytest.skip(f"{name} is not there (SOFTCOUNT_DATA)")
    return pd.read_csv(DATA / name, **how).rename(columns={target: "which"}).rename(columns=str)


def table(name: str) -> pd.DataFrame:
    return TABLES[name]() if name in TABLES else shared(name)


@pytest.mark.filterwarnings("ignore::softcount.errors.DataWarning")
@pytest.mark.parametrize("name", [*TABLES, *SHARED])
def test_every_fold_is_answered(name: str) -> None:
    rows = table(name).reset_index(drop=True)
    for fold in range(FOLDS):
        held = np.arange(len(rows)) % FOLDS == fold
        for model in (sc.NaiveBayes(), sc.Classifier(budget=0.0)):
            model.fit(rows[~held].drop(columns="which"), rows["which"][~held])
            told = model.predict_proba(rows[held].drop(columns="which"))
            assert np.isfinite(told).all() and np.allclose(told.sum(axis=1), 1.0)


def fitted_page(rows: pd.DataFrame, model: str, folder: Path) -> str:
    rows.to_csv(folder / "t.csv", index=False)
    words = ["fit", str(folder / "t.csv"), "--target", "which", "--model", model, "-o", str(folder / "m.sc")]
    return CliRunner().invoke(main, words).stdout


@pytest.mark.parametrize("model", ["naive-bayes", "auto"])
@pytest.mark.parametrize("name", TABLES)
def test_what_is_worse_than_guessing_says_so_first(name: str, model: str, tmp_path: Path) -> None:
    page = fitted_page(table(name), model, tmp_path)
    figures = (next(line for line in page.splitlines() if who in line) for who in ("this model", "baseline"))
    ours, guessing = (float(re.sub(r" ± .*", "", line).split()[-1].replace(",", "")) for line in figures)
    assert (WORSE in page) == (ours > guessing)
    assert WORSE not in page or page.index(WORSE) < page.index("accuracy")


def test_repeated_noise_is_worse_than_guessing_and_says_so(tmp_path: Path) -> None:
    assert WORSE in fitted_page(noise(), "naive-bayes", tmp_path)
