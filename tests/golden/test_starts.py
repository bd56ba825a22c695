"""Optima that others needed hints or hundreds of starts for, found with default settings whatever the seed.

Values are those of mclust 6 and poLCA; where theirs stopped early the optimum is higher, by less than 0.4 nats.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import softcount as sc

SEEDS = (0, 1)
TIED: dict[str, Any] = {"diag": None, "tied_diag": "classes", "spherical": "columns", "tied_spherical": "both"}
OPTIMA = {
    ("iris", "full", 2): -214.354704,
    ("iris", "full", 3): -180.1854771313,
    ("iris", "diag", 3): -306.860,
    ("iris", "tied", 3): -256.3540431257,
    ("iris", "spherical", 3): -384.3140950612,
    ("faithful", "full", 2): -1130.264068,
    ("faithful", "tied", 2): -1140.186760,
    ("faithful", "tied", 3): -1126.316,
    ("faithful", "diag", 2): -1147.806353,
    ("faithful", "tied_spherical", 2): -1709.681820,
    ("galaxies", "diag", 3): -203.1792,
    ("waiting", "tied_diag", 2): -1034.002,
    ("diabetes", "full", 3): -2295.0935,
}


def kinds_of(shape: str, columns: pd.Index) -> dict[Any, Any]:
    if shape in TIED:
        return {column: sc.families.Normal(tied=TIED[shape]) for column in columns}
    return {tuple(columns): sc.families.Multinormal(shape)}


@pytest.fixture(scope="module")
def table(data):
    """A published table by name, its columns as floats."""

    def read(name: str) -> pd.DataFrame:
        if name == "diabetes":
            frame = pd.read_csv(data("r_mclust/diabetes.csv"))[["glucose", "insulin", "sspg"]].astype(float)
            frame.loc[103, "insulin"] = 455.0  # printed as 45 in one edition
            return frame
        if name == "iris":
            return pd.read_csv(data("r_datasets/iris_fisher.csv")).select_dtypes(float)
        if name == "galaxies":
            return pd.read_csv(data("r_datasets/galaxies.csv")) / 1000.0
        frame = pd.read_csv(data("r_datasets/faithful.csv")).astype(float)
        return frame[["waiting"]] if name == "waiting" else frame

    return read


@pytest.mark.parametrize(("name", "shape", "classes"), OPTIMA)
def test_the_best_known_optimum_is_found_from_any_seed(table, name, shape, classes):
    frame = table(name)
    for seed in SEEDS:
        model = sc.Mixture(classes, kinds=kinds_of(shape, frame.columns), estimate="ml", random_state=seed).fit(frame)
        assert model.log_likelihood_ == pytest.approx(OPTIMA[name, shape, classes], abs=1e-3)
        assert model.converged_


@pytest.mark.parametrize("seed", range(2))
def test_the_best_of_five_optima_of_gss82_is_found(data, seed):
    frame = pd.read_csv(data("lca_poLCA/gss82.csv"), dtype=str)
    model = sc.Mixture(3, estimate="ml", random_state=seed).fit(frame)
    assert model.log_likelihood_ == pytest.approx(-2754.5454047898, abs=1e-4)
    reached, starts = model.agreed_
    assert starts == 10
    assert 1 <= reached <= 10


def test_starts_that_meet_a_spike_lose_to_those_that_do_not(table):
    """Single starts with a floor of a millionth of the variance met a spike 89 nats higher in 3 of 30 tries."""
    frame = table("iris")
    block = kinds_of("full", frame.columns)
    for seed in range(2):
        model = sc.Mixture(3, kinds=block, estimate="ml", random_state=seed).fit(frame)
        assert model.log_likelihood_ == pytest.approx(-180.1854771313, abs=1e-6)
        narrowest = min(np.linalg.eigvalsh(cov / np.outer(s, s)).min() for cov, s in _standardised(model, frame))
        assert narrowest > 1e-3


def _standardised(model: sc.Mixture, frame: pd.DataFrame) -> list[tuple[np.ndarray, np.ndarray]]:
    deviations = frame.std().to_numpy()
    return [(cov, deviations) for cov in model.params_[tuple(frame.columns)]["covariance"]]


@pytest.mark.parametrize("seed", range(3))
def test_four_classes_of_gss82_reach_the_best_that_stepmix_finds_and_more(data, seed):
    frame = pd.read_csv(data("lca_poLCA/gss82.csv"), dtype=str)
    found = sc.Mixture(4, kinds="categorical", estimate="ml", random_state=seed).fit(frame)
    assert found.log_likelihood_ > -2746.646
