"""Models asked about frames of Dask's: the same answers as of pandas, as frames of Dask's, computed when wanted."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import pytest

import softcount as sc
from softcount.errors import DataError, DataWarning

dask = pytest.importorskip("dask")
frames = pytest.importorskip("dask.dataframe")
ROWS = 240
BORDERS = [0, 1, 90, 90, ROWS]
"""Where partitions begin and end: one of a single row, one that is empty."""


@cache
def learned() -> pd.DataFrame:
    """Numbers with holes, levels, counts, money and dates that are text, all-missing and extra columns."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=ROWS)
    rows = pd.DataFrame(
        {
            "x": x * 1e3 + 1e5,
            "y": np.where(np.arange(ROWS) % 7 == 0, np.nan, rng.normal(size=ROWS)),
            "visits": rng.poisson(3, ROWS),
            "steps": pd.array(np.where(np.arange(ROWS) % 9 == 0, None, rng.poisson(40, ROWS)), dtype="Int64"),
            "colour": rng.choice(["red", "green", "blue", None], ROWS),
            "price": [f"${cell:,.2f}" for cell in rng.gamma(2, 900, ROWS)],
            "when": pd.date_range("2020-01-01", periods=ROWS).strftime("%d.%m.%Y"),
            "kind": np.where(x + rng.normal(size=ROWS) > 0, "a", "b"),
        },
        index=pd.Index(np.arange(ROWS) * 2 + 5, name="customer"),
    )
    rows["steps"] = rows["steps"].where(rows["steps"] != 40, 40)
    return rows


@cache
def asked_about() -> pd.DataFrame:
    """Other rows: levels never met, a first partition of one row, a partition that lacks a whole column's cells."""
    rows = learned().sample(frac=1, random_state=1).set_axis(learned().index)
    rows.loc[rows.index[::11], "colour"] = "violet"
    rows.loc[rows.index[90:], "price"] = None
    rows.loc[rows.index[:1], ["x", "when"]] = None
    rows["beside"] = "kept"
    return rows


def parted(rows: Any) -> Any:
    """The rows as a frame, or a series, of Dask's."""
    parts = list(pairwise(BORDERS))
    return frames.from_map(lambda part: rows.iloc[part[0] : part[1]], parts, meta=rows.iloc[:0])


NUMBERS = ["x", "visits"]
MODELS: dict[str, Callable[[pd.DataFrame], Any]] = {
    "NaiveBayes": lambda rows: sc.NaiveBayes(missing=["-"]).fit(rows, "kind"),
    "block": lambda rows: sc.NaiveBayes(kinds={("x", "y"): "multinormal"}).fit(rows, "kind"),
    "Classifier": lambda rows: sc.Classifier().fit(rows, "kind"),
    "AODE": lambda rows: sc.AODE().fit(rows, "kind"),
    "Mixture": lambda rows: sc.Mixture(2, n_init=1, random_state=0).fit(rows.drop(columns="kind")),
    "GaussianMixture": lambda rows: sc.GaussianMixture(2, n_init=1, random_state=0).fit(rows[NUMBERS]),
    "JointModel": lambda rows: sc.JointModel(2, random_state=0).fit(rows.drop(columns="kind")),
    "BayesNet": lambda rows: sc.BayesNet.tan(rows, "kind"),
    "ModelAverage": lambda rows: sc.average(
        [made("NaiveBayes"), sc.NaiveBayes(prior=9).fit(rows, "kind")], by="bic", X=rows, y="kind"
    ),
    "KMeans": lambda rows: sc.KMeans(3, random_state=0).fit(rows[NUMBERS]),
    "SphericalKMeans": lambda rows: sc.SphericalKMeans(3, random_state=0).fit(rows[NUMBERS]),
    "KernelDensity": lambda rows: sc.KernelDensity().fit(rows[["y"]]),
    "Histogram": lambda rows: sc.Histogram().fit(rows[["visits"]]),
}
COLUMNS = {
    "GaussianMixture": NUMBERS, "KMeans": NUMBERS, "SphericalKMeans": NUMBERS, "KernelDensity": ["y"],
    "Histogram": ["visits"],
}  # fmt: skip
NOT_BY_ROW = {"BagOfWords", "MarkovChain", "HiddenMarkov"}
"""Words are sparse, and sequences go on from row to row."""


@cache
def made(name: str) -> Any:
    return MODELS[name](learned())


def rows_for(name: str) -> pd.DataFrame:
    rows = asked_about()
    wanted = COLUMNS.get(name)
    return rows if wanted is None else rows[wanted].fillna(rows[wanted].mean())


def questions(model: Any) -> list[str]:
    found = inspect.getmembers(type(model), lambda member: getattr(member, "row_by_row", False))
    return [name for name, _ in found]


def test_every_estimator_is_among_the_models() -> None:
    public = {name for name in dir(sc) if hasattr(getattr(sc, name), "fit")}
    assert public - NOT_BY_ROW <= {type(made(name)).__name__ for name in MODELS}
    for name in MODELS:
        assert questions(made(name)), name


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.filterwarnings("ignore")
def test_partitions_are_answered_as_the_same_rows_of_pandas(name: str) -> None:
    """Bit for bit partition by partition; where products are added up, whole tables differ in the last digit."""
    model, rows = made(name), rows_for(name)
    answers = {question: getattr(model, question)(parted(rows)) for question in questions(model)}
    computed = dask.compute(answers, scheduler="sync")[0]
    parts = [rows.iloc[a:b] for a, b in pairwise(BORDERS) if a < b]
    for question, answer in answers.items():
        found, declared = computed[question], answer._meta
        assert answer.npartitions == len(BORDERS) - 1 and type(declared) is type(found)
        assert found.index.equals(rows.index) and found.index.name == "customer"
        alone = [getattr(model, question)(part) for part in parts]
        assert_cells(found, np.concatenate([cells_of(part) for part in alone]), rtol=0)
        assert_cells(found, getattr(model, question)(rows), rtol=1e-11)
        declared, found = (side.to_frame() if side.ndim == 1 else side for side in (declared, found))
        assert declared.dtypes.equals(found.dtypes), question


def cells_of(answer: Any) -> np.ndarray:
    found = answer.drop(columns="row", errors="ignore").to_numpy() if hasattr(answer, "columns") else np.asarray(answer)
    return found[:, None] if found.ndim == 1 else found


def assert_cells(one: Any, other: Any, rtol: float) -> None:
    """Numbers within a tolerance, of the largest of their column where they are tiny; other cells the same."""
    assert cells_of(one).shape == cells_of(other).shape
    for left, right in zip(cells_of(one).T, cells_of(other).T, strict=True):
        try:
            left, right = (np.asarray(pd.Series(side).astype(float)) for side in (left, right))
        except ValueError:
            assert pd.Series(left).astype(object).equals(pd.Series(right).astype(object))
            continue
        finite = np.abs(right[np.isfinite(right)])
        np.testing.assert_allclose(left, right, rtol=rtol, atol=rtol * finite.max(initial=1.0))


def test_columns_are_called_as_everywhere() -> None:
    model, rows = made("NaiveBayes"), parted(asked_about())
    assert model.predict(rows).name == "predicted"
    assert list(model.predict_proba(rows).columns) == ["p(a)", "p(b)"]
    assert list(model.membership_entropy(rows).columns) == ["class", "probability", "entropy", "relative_entropy"]
    assert list(made("KMeans").transform(parted(rows_for("KMeans"))).columns) == ["kmeans0", "kmeans1", "kmeans2"]
    assert list(made("BayesNet").predict_proba(rows, of="colour").columns)[:2] == ["p(blue)", "p(green)"]


def test_nothing_is_computed_before_it_is_wanted() -> None:
    def read(part: int) -> pd.DataFrame:
        raise AssertionError("read too early")

    rows = frames.from_map(read, [0, 1], meta=asked_about().iloc[:0])
    answers = [made("NaiveBayes").predict_proba(rows), made("Mixture").impute(rows)]
    with pytest.raises(AssertionError, match="too early"):
        answers[0].compute(scheduler="sync")


def test_settings_of_a_question_go_with_it() -> None:
    model, rows = made("NaiveBayes"), asked_about()
    how: dict[str, Any] = {"class_prior": {"a": 0.01}, "costs": {("a", "b"): 30.0}}
    with pytest.warns(DataWarning):
        assert (model.predict(parted(rows), **how).compute(scheduler="sync") == model.predict(rows, **how)).all()
    with pytest.raises(DataError, match="estimate_class_prior finds"):
        model.predict(parted(rows), class_prior="estimate")


@pytest.mark.filterwarnings("ignore")
def test_figures_of_a_frame_are_those_of_pandas() -> None:
    model, rows = made("Classifier"), asked_about()
    with dask.config.set(scheduler="sync"):
        assert model.score(parted(rows), "kind") == model.score(rows, "kind")
        assert model.evaluate(parted(rows), "kind").log_loss == model.evaluate(rows, "kind").log_loss
    with pytest.raises(DataError, match="no column 'sort'"):
        model.score(parted(rows), "sort")


def test_a_column_that_lacks_is_told_at_once_and_a_failure_names_its_partition() -> None:
    with pytest.warns(DataWarning, match="not in the table"):
        made("NaiveBayes").predict(parted(asked_about().drop(columns="x")))
    rows = rows_for("KMeans").copy()
    rows.iloc[100, 0] = np.nan
    with pytest.raises(DataError, match=r"^partition 3: .*'x'") as refused:
        made("KMeans").predict(parted(rows)).compute(scheduler="sync")
    assert "\n" not in str(refused.value)


def test_a_fill_that_a_category_cannot_hold_is_refused_and_of_unknown_ones_all_are_objects() -> None:
    apart = np.arange(ROWS) % 2 == 0
    levels = np.where(apart, "red", "late").astype(object)
    rows = pd.DataFrame({"colour": levels, "x": np.where(apart, 5.0, -5.0) + learned()["y"].fillna(0).to_numpy()})
    model = sc.Mixture(2, random_state=0, n_init=2).fit(rows)
    holes = rows.assign(colour=np.where(np.arange(ROWS) % 5 == 0, None, levels))
    filled = model.impute(parted(holes).astype({"colour": "category"})).compute(scheduler="sync")
    assert filled["colour"].dtype == object and filled["colour"].tolist() == levels.tolist()
    usual = model.impute(pd.DataFrame({"colour": [None], "x": [None]}, dtype=object))["colour"][0]
    fewer = holes.assign(colour=pd.Categorical(holes["colour"], [usual]))
    with pytest.raises(DataError, match=r"'colour' is filled with what its type \(category\) cannot hold"):
        model.impute(parted(fewer)).compute(scheduler="sync")


def test_what_needs_all_rows_says_how_to_bring_them() -> None:
    rows = parted(asked_about())
    model, mixture = made("NaiveBayes"), made("Mixture")
    for ask in (model.anomalies, model.augment, mixture.score, mixture.bic, made("BayesNet").log_likelihood, sc.read):
        with pytest.raises(DataError, match=r"Fetch them: X\.compute\(\)"):
            ask(rows)


def test_documents_in_a_series_and_rows_of_an_array_are_answered_as_such() -> None:
    arrays = pytest.importorskip("dask.array")
    texts = pd.Series(["good film", "bad film", "good", "dull and bad"] * 60, name="said")
    model = sc.NaiveBayes(kinds="text").fit(texts, ["yes", "no", "yes", "no"] * 60)
    found = model.predict(parted(texts)).compute(scheduler="sync")
    assert found.tolist() == model.predict(texts).tolist() and found.index.equals(texts.index)
    rows = rows_for("KMeans").to_numpy(dtype=float)
    plain = sc.GaussianMixture(2, random_state=0).fit(rows)
    blocks = arrays.from_array(rows, chunks=(100, 1))
    for question in ("predict", "predict_proba", "score_samples", "impute"):
        answer = getattr(plain, question)(blocks)
        whole = getattr(plain, question)(rows)
        assert answer.chunks[0] == (100, 100, 40) and answer.shape == whole.shape and answer.dtype == whole.dtype
        np.testing.assert_allclose(answer.compute(scheduler="sync"), whole, rtol=1e-12)


def test_a_model_fitted_by_a_client_answers_without_it() -> None:
    distributed = pytest.importorskip("distributed")
    how = {"processes": False, "threads_per_worker": 2, "dashboard_address": ":0", "n_workers": 1}
    rows = learned()
    with distributed.LocalCluster(**how) as cluster, distributed.Client(cluster) as client:
        model = sc.NaiveBayes(engine=client).fit(parted(rows), "kind")
        found = model.predict_proba(parted(rows)).compute()
        clusters = sc.KMeans(2, random_state=0).fit_predict(parted(rows[NUMBERS])).compute()
    np.testing.assert_allclose(found.to_numpy(), model.predict_proba(rows), rtol=1e-12)
    assert len(clusters) == ROWS
