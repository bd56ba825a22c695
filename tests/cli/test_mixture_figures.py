"""The figures of a mixture of a given number of classes, when it is fitted and when it is shown."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import softcount as sc
from softcount.cli import main


def test_a_fit_and_its_file_say_log_likelihood_bic_aic_and_entropy(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": np.r_[rng.normal(0, 1, 60), rng.normal(3, 1, 40)], "c": rng.choice(list("ab"), 100)})
    frame.to_csv(tmp_path / "t.csv", index=False)
    model = str(tmp_path / "m.sc")
    page = CliRunner().invoke(main, ["fit", str(tmp_path / "t.csv"), "--classes", "2", "-o", model, "--full"]).stdout
    loaded = sc.load(model)
    total = loaded.score_samples(frame).sum()
    said = json.loads(CliRunner().invoke(main, ["show", model, "--json"]).stdout)["information"]
    assert said["log_likelihood"] == pytest.approx(total)
    assert said["bic"] == pytest.approx(loaded.bic(frame))
    assert said["aic"] == pytest.approx(loaded.aic(frame))
    assert said["icl"] == pytest.approx(loaded.icl(frame))
    assert said["entropy"] == pytest.approx((said["icl"] - said["bic"]) / 2)
    line = f"BIC {said['bic']:,.1f}, AIC {said['aic']:,.1f} (smaller is better); entropy of all memberships"
    assert line in page and line in CliRunner().invoke(main, ["show", model]).stdout


def test_tiny_classes_do_not_rule_the_columns_that_matter_most() -> None:
    rng = np.random.default_rng(1)
    rows = 1_000
    sort = np.r_[np.zeros(2, int), 1 + (np.arange(rows - 2) % 2)]
    frame = pd.DataFrame(
        {"odd": rng.normal(0, 1, rows) + 12 * (sort == 0), "real": rng.normal(0, 1, rows) + 4 * (sort == 1)}
    )
    ranked = sc.NaiveBayes().fit(frame, np.array(["tiny", "one", "two"])[sort]).influence_
    assert next(iter(ranked)) == "real"
