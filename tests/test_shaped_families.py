"""Gamma and Student columns: maxima other software finds, rows far out, digits, floors, and every answer."""

from __future__ import annotations

from decimal import Decimal, localcontext
from typing import Any

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad

import softcount as sc
from shaped import shape_of
from softcount.core.counts import Twofold
from softcount.core.special import height
from softcount.families import Family, Gamma, Normal, Setting, Student, floors
from softcount.families.density import Density
from softcount.families.normal import LOOSE

ONE: dict[str, Any] = {"n_components": 1, "n_init": 1, "n_jobs": 1}


def two_groups(seed: int, rows: int = 1_000) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Numbers around -4 and 4 with deviation one, which group each is of, and the same with one in twenty 50 away."""
    rng = np.random.default_rng(seed)
    first = rng.random(rows) < 0.5
    clean = rng.normal(np.where(first, -4.0, 4.0), 1.0)
    far = np.where(rng.random(rows) < 0.05, rng.choice([-50.0, 50.0], rows), 0.0)
    return clean, first, clean + far


# -- the maximum is the maximum


@pytest.mark.parametrize("shape", [0.3, 2.3, 40.0, 1e4])
def test_one_gamma_class_is_where_scipy_finds_the_maximum(shape: float) -> None:
    x = np.random.default_rng(1).gamma(shape, 5.0, 2_000)
    model = sc.Mixture(kinds={"x": "gamma"}, estimate="ml", **ONE).fit({"x": x})
    k, _, scale = stats.gamma.fit(x, floc=0)
    right = stats.gamma.logpdf(x, k, 0, scale).sum()
    own = model.params_["x"]["shape"][0]
    assert model.log_likelihood_ == pytest.approx(right, rel=1e-6)
    assert model.log_likelihood_ >= right - 1e-9 * abs(right)
    assert model.log_likelihood_ == pytest.approx(stats.gamma.logpdf(x, own, 0, x.mean() / own).sum(), rel=1e-11)
    assert model.params_["x"]["mean"][0] == pytest.approx(x.mean(), rel=1e-13)


@pytest.mark.parametrize("freedom", [1.5, 4.0, 12.0])
def test_one_student_class_is_where_scipy_finds_the_maximum(freedom: float) -> None:
    x = np.random.default_rng(2).standard_t(freedom, 2_000) * 2.0 + 7.0
    model = sc.Mixture(kinds={"x": "student"}, estimate="ml", tol=1e-11, **ONE).fit({"x": x})
    right = stats.t.logpdf(x, *stats.t.fit(x)).sum()
    assert model.log_likelihood_ == pytest.approx(right, rel=1e-6)
    assert model.log_likelihood_ >= right - 1e-8 * abs(right)


def test_known_classes_of_student_columns_are_each_where_scipy_finds_them() -> None:
    rng = np.random.default_rng(3)
    x = np.concatenate([rng.standard_t(3.0, 800), 5.0 + 2.0 * rng.standard_t(6.0, 800)])
    model = sc.NaiveBayes(kinds={"x": "student"}, estimate="ml", tol=1e-12).fit({"x": x}, ["a"] * 800 + ["b"] * 800)
    assert any("hidden weights: EM converged" in note for note in model.notes_)
    for g, part in enumerate((x[:800], x[800:])):
        nu, middle, scale = (model.params_["x"][name][g] for name in ("freedom", "mean", "spread"))
        mine = stats.t.logpdf(part, nu, middle, np.sqrt(scale)).sum()
        assert mine == pytest.approx(stats.t.logpdf(part, *stats.t.fit(part)).sum(), rel=1e-6)


def test_a_known_freedom_stays_and_normal_rows_have_the_highest() -> None:
    x = np.random.default_rng(4).normal(size=1_000)
    held = sc.Mixture(kinds={"x": sc.families.Student(freedom=7)}, **ONE).fit({"x": x})
    assert held.params_["x"]["freedom"].tolist() == [7.0] and held.fitted_.n_parameters == 2
    loose = sc.Mixture(kinds={"x": "student"}, estimate="ml", **ONE).fit({"x": x})
    assert loose.params_["x"]["freedom"][0] > 50
    assert loose.params_["x"]["spread"][0] == pytest.approx(x.var(), rel=0.05)


@pytest.mark.parametrize("freedom", [0, -1.0, float("nan"), "four", 1e9])
def test_a_senseless_freedom_is_refused(freedom: Any) -> None:
    with pytest.raises(sc.DataError, match="freedom"):
        sc.families.Student(freedom=freedom)


# -- rows far out


@pytest.mark.parametrize("family", ["student", sc.families.Student(freedom=4)], ids=["free", "known"])
def test_rows_far_out_do_not_move_student_classes(family: Any) -> None:
    clean, first, x = two_groups(5)
    model = sc.Mixture(2, kinds={"x": family}, n_init=4, random_state=0, n_jobs=1).fit({"x": x})
    right = [clean[first].mean(), clean[~first].mean()]
    np.testing.assert_allclose(np.sort(model.params_["x"]["mean"]), right, atol=0.1)
    assert np.all(model.params_["x"]["spread"] < 2.0)


def test_rows_far_out_cost_a_normal_mixture_a_class_or_its_widths() -> None:
    _, _, x = two_groups(5)
    params = sc.Mixture(2, kinds={"x": "normal"}, n_init=4, random_state=0, n_jobs=1).fit({"x": x}).params_["x"]
    assert params["variance"].max() > 50


def test_what_a_prior_imagines_of_a_student_column_is_not_what_lies_far_out() -> None:
    clean, _, x = two_groups(6)
    models = [sc.Mixture(kinds={"x": "student"}, **ONE).fit({"x": rows}).fitted_ for rows in (clean, x)]
    first, second = (m.imagined.hypers["x"]["s2"] / m.model.leaves[0].setting.scale[0] ** 2 for m in models)
    assert x.var() > 5 * clean.var()
    assert second < 2 * first


# -- digits


@pytest.mark.parametrize("shape", [1e4, 1e8, 1e11])
def test_a_narrow_gamma_class_far_from_the_anchor_keeps_its_shape(shape: float) -> None:
    rng = np.random.default_rng(7)
    near, far = np.exp(rng.normal(0.0, 0.3, 400)), 2_000.0 * (1.0 + rng.normal(size=300) / np.sqrt(shape))
    table, names = {"x": np.concatenate([near, far])}, [0] * 400 + [1] * 300
    model = sc.NaiveBayes(kinds={"x": "gamma"}, estimate="ml").fit(table, names)
    with localcontext(prec=60):
        exact = [Decimal(value) for value in far.tolist()]
        apart = (sum(exact) / 300).ln() - sum(value.ln() for value in exact) / 300
    assert model.params_["x"]["shape"][1] == pytest.approx(shape_of(float(apart), 1e13), rel=1e-11)


def test_a_gamma_score_at_an_enormous_shape_is_right_to_the_last_digits() -> None:
    x, params = np.array([3.0, 3.000001]), {"mean": np.array([3.0]), "shape": np.array([1e12])}
    mine = Gamma().density(params, Setting()).score(x)[:, 0]
    normal = 0.5 * np.log(1e12 / (2 * np.pi)) - 0.5 * 1e12 * ((x - 3.0) / 3.0) ** 2
    np.testing.assert_allclose(mine, normal, rtol=1e-5)


@pytest.mark.parametrize(("offset", "scale"), [(1e8, 1.0), (0.0, 1e150), (0.0, 1e-150)])
def test_units_and_offsets_change_nothing_of_a_student_mixture(offset: float, scale: float) -> None:
    _, _, x = two_groups(8, 400)
    settings: dict[str, Any] = {"n_components": 2, "kinds": {"x": "student"}, "n_jobs": 1, "tol": 0.0, "max_iter": 30}
    start = np.where(x[:, None] > 0, [[0.1, 0.9]], [[0.9, 0.1]])
    plain = sc.Mixture(init=start, **settings).fit({"x": x})
    moved = sc.Mixture(init=start, **settings).fit({"x": (x + offset) * scale})
    assert moved.log_likelihood_ / 400 + np.log(scale) == pytest.approx(plain.log_likelihood_ / 400, abs=1e-9)
    assert np.array_equal(plain.predict({"x": x}), moved.predict({"x": (x + offset) * scale}))
    means = moved.params_["x"]["mean"] / scale - offset
    np.testing.assert_allclose(means, plain.params_["x"]["mean"], atol=1e-6)


@pytest.mark.parametrize("scale", [1e150, 1e-150])
def test_units_change_nothing_of_a_gamma_mixture(scale: float) -> None:
    rng = np.random.default_rng(9)
    x = np.concatenate([rng.gamma(2.0, 1.0, 200), rng.gamma(50.0, 1.0, 200)])
    settings: dict[str, Any] = {"n_components": 2, "kinds": {"x": "gamma"}, "n_init": 2, "random_state": 0, "n_jobs": 1}
    plain, moved = (sc.Mixture(**settings).fit({"x": x * unit}) for unit in (1.0, scale))
    assert moved.log_likelihood_ / 400 + np.log(scale) == pytest.approx(plain.log_likelihood_ / 400, abs=1e-9)
    assert np.array_equal(plain.predict({"x": x}), moved.predict({"x": x * scale}))


# -- what cannot be told apart


@pytest.mark.parametrize("how", ["ml", "mean"])
@pytest.mark.parametrize("kind", ["gamma", "student"])
@pytest.mark.parametrize("groups", [1, 3])
@pytest.mark.parametrize(
    "values",
    [[3.0] * 50, [1.0, 2.0, 3.0] * 10, [1.0] * 50 + [1e6], [1.0, 2.0, 3.0]],
    ids=["same", "three", "far", "few"],
)
@pytest.mark.filterwarnings("ignore:EM stopped at its smallest variance")
def test_values_that_repeat_make_no_nan(values: list[float], groups: int, kind: str, how: str) -> None:
    model = sc.Mixture(groups, kinds={"x": kind}, estimate=how, n_init=2, random_state=0, n_jobs=1).fit({"x": values})
    assert np.isfinite(model.log_likelihood_) and np.isfinite(model.trace_).all()
    assert all(np.isfinite(value).all() for value in model.params_["x"].values())
    assert np.isfinite(model.predict_proba({"x": values})).all()


@pytest.mark.parametrize("kind", ["gamma", "student"])
def test_a_column_that_does_not_vary_is_said_to(kind: str) -> None:
    model = sc.NaiveBayes(kinds={"x": kind}, estimate="ml").fit({"x": [3.0] * 6 + [4.0, 5.0, 7.0]}, [0] * 6 + [1] * 3)
    assert any("'x' does not vary in group 0" in note for note in model.notes_)


@pytest.mark.parametrize("kind", ["gamma", "student"])
def test_priors_these_columns_cannot_take_are_refused(kind: str) -> None:
    with pytest.raises(sc.DataError, match="cannot take"):
        sc.NaiveBayes(kinds={"x": kind}, prior={"x": sc.priors.Beta(1, 1)}).fit(
            {"x": [1.0, 2.0, 4.0, 3.0]}, [0, 0, 1, 1]
        )


def test_a_gamma_column_holds_no_zero() -> None:
    with pytest.raises(sc.DataError, match=r"'x'.*row 2"):
        sc.NaiveBayes(kinds={"x": "gamma"}).fit({"x": [1.0, 0.0, 4.0, 3.0]}, [0, 0, 1, 1])


# -- the pieces of the objective


FAMILIES: list[tuple[Family, dict[str, Any]]] = [
    (Gamma(), {"mean": np.array([1.3, 0.4]), "shape": np.array([2.0, 30.0])}),
    (Student(), {"mean": np.array([0.3, -1.0]), "spread": np.array([0.7, 2.0]), "freedom": np.array([3.0, 20.0])}),
]
both = pytest.mark.parametrize(("family", "params"), FAMILIES, ids=["gamma", "student"])


def counted(family: Family, params: dict[str, Any]) -> Twofold:
    rng = np.random.default_rng(10)
    column = rng.gamma(3.0, 0.4, 60)
    return family.count(column, rng.dirichlet([1.0, 1.0], 60), params, Setting())


def columns(stats: Twofold) -> Twofold:
    return stats.spread(1)


@both
@pytest.mark.parametrize("how", ["ml", "mean"])
def test_the_estimate_is_the_top_and_the_slope_is_a_slope(family: Family, params: dict[str, Any], how: Any) -> None:
    counts = counted(family, params)
    hyper = {name: value[0] for name, value in family.hyper(2.5, columns(counts), Setting()).items()}

    def climbed(at: dict[str, Any]) -> float:
        return family.completed(counts, at) + np.sum(family.log_prior(at, hyper, how))

    slope, best = family.slope(counts, params, hyper, how), family.estimate(counts, hyper, how)
    assert slope is not None
    for name in params:
        for g in range(2):
            step = np.eye(2)[g] * 1e-5 * np.abs(params[name][g])
            rise = climbed(params | {name: params[name] + step}) - climbed(params | {name: params[name] - step})
            assert slope[name][g] == pytest.approx(rise / (2 * step[g]), rel=1e-5, abs=1e-6)
            for factor in (0.999, 1.001):
                other = best | {name: best[name] * np.where(np.arange(2) == g, factor, 1.0)}
                assert climbed(floors.clip(family, other, hyper)) <= climbed(best) + 1e-12


@both
def test_what_is_fixed_stays_and_the_rest_is_the_best_beside_it(family: Family, params: dict[str, Any]) -> None:
    counts = counted(family, params)
    hyper = {name: value[0] for name, value in family.hyper(1.0, columns(counts), Setting()).items()}
    for name in params:
        held = family.estimate(counts, hyper, "mean", {name: params[name]}) | {name: params[name]}
        assert np.array_equal(held[name], params[name])
        height_here = family.completed(counts, held) + np.sum(family.log_prior(held, hyper, "mean"))
        for other in params.keys() - {name}:
            for factor in (0.999, 1.001):
                moved = floors.clip(family, held | {other: held[other] * factor}, hyper)
                there = family.completed(counts, moved) + np.sum(family.log_prior(moved, hyper, "mean"))
                assert there <= height_here + 1e-12


def test_gamma_evidence_is_the_integral_over_shapes() -> None:
    family, params = FAMILIES[0]
    counts = counted(family, params)[:1]
    hyper = {name: value[0] for name, value in family.hyper(1.0, columns(counts), Setting()).items()}
    best = family.estimate(counts, hyper, "ml")

    def belief(u: float) -> float:
        return float(height(np.exp(u)) - np.exp(u) * hyper["apart"])

    def seen(u: float) -> float:
        return family.completed(counts, best | {"shape": np.array([np.exp(u)])})

    top = seen(np.log(best["shape"][0]))
    area = quad(lambda u: np.exp(seen(u) - top + belief(u)), -4, 6, limit=200)[0]
    whole = quad(lambda u: np.exp(belief(u)), -40, 6, limit=400)[0]
    assert family.evidence(counts, hyper) == pytest.approx(top + np.log(area / whole), abs=1e-6)
    spread_out = family.evidence(counts, family.proper(hyper))
    rows = counts.value[0, 0]
    assert spread_out == pytest.approx(family.evidence(counts, hyper) - 0.5 * np.log1p(rows / LOOSE), abs=0.2)


def test_student_evidence_with_an_enormous_freedom_is_that_of_a_normal() -> None:
    rng = np.random.default_rng(11)
    column, members = rng.normal(size=40), np.ones((40, 1))
    family, plain = Student(freedom=1e6), Normal()
    start = {"mean": np.zeros(1), "spread": np.ones(1), "freedom": np.array([1e6])}
    rows = family.count(column, members, start, Setting())
    hyper = plain.proper(plain.hyper(1.0, columns(rows[:, 1:4]), Setting()))
    hyper = {name: value[0] for name, value in hyper.items()}
    # Weights known for sure: what they alone make probable is taken out.
    seen = plain.completed(rows[:, 1:4], {"mean": start["mean"], "variance": np.ones(1)})
    alone = family.completed(rows, start) - seen
    assert family.evidence(rows, hyper) - alone == pytest.approx(plain.evidence(rows[:, 1:4], hyper), abs=1e-3)


@both
def test_the_number_of_classes_can_be_chosen(family: Family, params: dict[str, Any]) -> None:
    rng = np.random.default_rng(12)
    x = np.concatenate([rng.gamma(20.0, 0.1, 150), rng.gamma(20.0, 1.0, 150)])
    settings: dict[str, Any] = {"kinds": {"x": family}, "n_init": 2, "random_state": 0, "n_jobs": 1}
    one, two = (sc.Mixture(k, **settings).fit({"x": x}).bic({"x": x}) for k in (1, 2))
    assert two < one


# -- answers


@pytest.fixture(scope="module")
def model() -> Any:
    rng = np.random.default_rng(13)
    first = rng.random(500) < 0.4
    table = {
        "delay": np.where(first, -5.0, 5.0) + rng.standard_t(2.5, 500),
        "wait": np.where(first, rng.gamma(2.0, 3.0, 500), rng.gamma(9.0, 30.0, 500)),
    }
    return sc.Mixture(2, kinds={"delay": "student", "wait": "gamma"}, n_init=2, random_state=0, n_jobs=1).fit(table)


def test_any_column_is_answered_from_the_other(model: Any) -> None:
    wait = model.query(of="wait", given={"delay": 6.0})
    delay = model.query(of="delay", given={"wait": 300.0})
    assert wait.mean == pytest.approx(270.0, rel=0.1) and delay.mean == pytest.approx(5.0, abs=0.3)
    for answer, low, high in ((wait, 0.0, 2_000.0), (delay, -200.0, 200.0)):
        assert quad(answer.pdf, low, high, limit=500, points=[answer.mean])[0] == pytest.approx(1.0, abs=2e-3)
        for share in (0.05, 0.5, 0.99):
            assert answer.cdf(answer.quantile(share)) == pytest.approx(share, abs=1e-9)


def test_a_student_quantile_is_right_in_tiny_units() -> None:
    x = np.random.default_rng(14).standard_t(1.5, 300) * 1e-150
    answer = sc.Mixture(kinds={"x": "student"}, **ONE).fit({"x": x}).query(of="x")
    assert np.isinf(answer.variance)
    assert answer.cdf(answer.quantile(0.9)) == pytest.approx(0.9, abs=1e-9)


def test_samples_fills_and_explanations_have_both_columns(model: Any) -> None:
    drawn = model.sample(2_000, random_state=1)
    assert np.median(drawn["wait"].to_numpy()) > 0
    holes = {"delay": [None, 5.0], "wait": [6.0, None]}
    filled = model.impute(holes)
    assert filled["delay"][0] == pytest.approx(-5.0, abs=0.5) and filled["wait"][1] == pytest.approx(270.0, rel=0.15)
    told = model.explain({"delay": [-5.0], "wait": [None]})
    assert told["delay"].to_numpy()[0] > 1 and told["wait"].to_numpy()[0] == 0


@pytest.mark.parametrize("kind", ["gamma", sc.families.Student(freedom=4)], ids=["gamma", "student"])
def test_predictive_plugs_the_parameters_in(kind: Any) -> None:
    x = np.random.default_rng(15).gamma(3.0, 1.0, 40)
    names = ["a", "b"] * 20
    models = [sc.NaiveBayes(kinds={"x": kind}, estimate=how).fit({"x": x}, names) for how in ("mean", "predictive")]
    mean, predictive = (model.params_["x"] for model in models)
    assert mean.keys() == predictive.keys()
    for name, value in mean.items():
        np.testing.assert_allclose(predictive[name], value, rtol=1e-3)


@pytest.mark.parametrize("kind", ["gamma", "student"])
def test_entropy_is_the_average_surprise(kind: str, model: Any) -> None:
    key = {"gamma": "wait", "student": "delay"}[kind]
    density = model.fitted_.model.nodes[key].density(model.fitted_.estimates)
    np.testing.assert_allclose(density.entropy(), Density.entropy(density), atol=0.1)


def test_folds_of_student_columns_are_fitted_as_the_whole_is() -> None:
    from softcount.evaluate.scores import cross_validate
    from softcount.learn.record import Plan
    from softcount.models.declare import read_kinds
    from softcount.run.local import Threads
    from softcount.table import open_table

    _, first, x = two_groups(16, 300)
    declared = read_kinds({"x": "student"})
    table = open_table({"x": x, "c": np.where(first, "u", "v")}, target="c", kinds=declared.forced)
    with Threads(1) as threads:
        found = cross_validate(table, Plan(declared=declared, target="c"), threads)
    assert found is not None and found.accuracy > 0.93
