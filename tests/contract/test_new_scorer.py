"""A scorer written in a screen is saved, explained, exported and shown without touching another file."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import pytest
from msgspec.structs import replace

import softcount as sc
from softcount.core.formulas import Formula
from softcount.fitted.fitted import Fitted
from softcount.fitted.scorers import Scorer, register_scorer
from softcount.models.star import Ready


@register_scorer
class Shared(Scorer, frozen=True, eq=False, tag="shared"):
    """Every log-density counts by the same share."""

    share: float

    has_density: ClassVar[bool] = False
    title: ClassVar[str] = "Shared naive Bayes"

    def leaf_weights(self, model: Fitted) -> np.ndarray:
        return np.full(len(model.model.leaves), self.share)

    def score(
        self, model: Fitted, ready: Ready, compiled: list[Any], rows: slice, out: np.ndarray | None = None
    ) -> np.ndarray:
        joint, bias = super().score(model, ready, compiled, rows, out), self.bias(model)
        joint[:] = bias + self.share * (joint - bias)
        return joint

    def score_leaves(self, model: Fitted, ready: Ready, compiled: list[Any]) -> dict[Any, np.ndarray]:
        return {key: self.share * part for key, part in super().score_leaves(model, ready, compiled).items()}

    def leaf_terms(self, model: Fitted) -> list[Formula]:
        return [term * self.share for term in super().leaf_terms(model)]


@pytest.fixture(scope="module")
def model() -> Any:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 200)
    rows = {"size": rng.normal(size=200) + y, "colour": np.where(rng.random(200) < 0.3 + 0.4 * y, "red", "blue")}
    model = sc.NaiveBayes().fit(rows, y)
    model.fitted_ = replace(model.fitted_, scorer=Shared(0.5))
    return model


ROWS = {"size": [0.3, None, 2.0, -1.0], "colour": ["red", "blue", None, "red"]}


def test_it_predicts_and_explains(model: Any) -> None:
    proba = model.predict_proba(ROWS)
    odds = np.abs(np.log(proba[:, 1]) - np.log(proba[:, 0]))
    reasons = model.explain(ROWS)
    parts = sum(np.asarray(reasons[name], dtype=float) for name in ("(prior)", "size", "colour"))
    np.testing.assert_allclose(parts, odds, atol=1e-12)


def test_it_is_saved_exported_and_shown(model: Any, tmp_path: Any) -> None:
    model.save(tmp_path / "m.sc")
    again = sc.load(tmp_path / "m.sc")
    assert again.fitted_.scorer.share == 0.5
    np.testing.assert_array_equal(again.predict_proba(ROWS), model.predict_proba(ROWS))
    assert "AS" in model.to_sql()  # checked on rows drawn from the model
    assert "Shared naive Bayes" in model.report().render(".txt")
