"""Numbers that depend on numbers, against least squares and against everything written out in full."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import softcount as sc
from explained import contributions
from networks.plain_numbers import (
    DISCRETE,
    NUMBERS,
    PlainNet,
    drawn,
    drawn_and_fitted,
    holed,
    random_table,
    rows_of_frame,
)
from softcount.estimators.network import BayesNet
from softcount.estimators.result_frames import arrow_of as arrow
from softcount.fitted.network_answers import surprises, usual_surprise

SEEDS = pytest.mark.parametrize("seed", range(6))


def observed(net: BayesNet, frame: pd.DataFrame) -> float:
    plain = PlainNet.of(net)
    return sum(plain.log_density(row) for row in rows_of_frame(frame))


# -- learning from complete rows


@SEEDS
def test_without_a_prior_every_number_is_fitted_by_least_squares(seed: int) -> None:
    _, edges, table = drawn(seed, 120)
    net = BayesNet(edges, estimate="ml").fit(table)
    plain = PlainNet.of(net)
    for name in plain.numbers:
        above = [p for p in plain.parents[name] if p in NUMBERS]
        groups = np.array([plain.group(name, row) for row in rows_of_frame(table)])
        for g in np.unique(groups):
            own = table[groups == g]
            if not above or len(own) <= len(above) + 1:
                continue
            design = np.column_stack([np.ones(len(own)), own[above]])
            line, *_ = np.linalg.lstsq(design, own[name].to_numpy(), rcond=None)
            found = net.params_[name]
            np.testing.assert_allclose(found["intercept"][g], line[0], rtol=1e-8, atol=1e-9)
            np.testing.assert_allclose(found["coefficients"][g], line[1:], rtol=1e-8, atol=1e-9)
            rest = own[name].to_numpy() - design @ line
            np.testing.assert_allclose(found["variance"][g], (rest**2).mean(), rtol=1e-7, atol=2e-6 * table[name].var())


def test_imagined_rows_have_the_variances_of_the_columns_and_no_correlation() -> None:
    rng = np.random.default_rng(3)
    x = rng.normal(4.0, 2.0, 30)
    y = 1.0 + 3.0 * x + rng.normal(size=30)
    net = BayesNet([("x", "y")], prior=2.5, estimate="mean").fit({"x": x, "y": y})
    a, sxx, syy = 2.5, 30 * x.var(), 30 * y.var()
    sxy = ((x - x.mean()) * (y - y.mean())).sum()
    slope = sxy / (sxx + a * x.var())
    found = net.params_["y"]
    np.testing.assert_allclose(found["coefficients"], [[slope]], rtol=1e-12)
    np.testing.assert_allclose(found["intercept"], [y.mean() - slope * x.mean()], rtol=1e-11)
    np.testing.assert_allclose(found["variance"], [(syy + a * y.var() - slope * sxy) / (30 + a)], rtol=1e-11)


@pytest.mark.parametrize("how", ["ml", "mean"])
@pytest.mark.parametrize("holes", [0.0, 0.25])
def test_all_edges_between_numbers_are_one_correlated_block(how: str, holes: float) -> None:
    rng = np.random.default_rng(5)
    table = pd.DataFrame(rng.normal(size=(60, 3)) @ rng.normal(size=(3, 3)) + [1.0, -2.0, 30.0], columns=list("abc"))
    table = holed(rng, table, holes)
    block = sc.Mixture(1, kinds={("a", "b", "c"): "multinormal"}, estimate=how, tol=1e-13, max_iter=3000).fit(table)
    net = BayesNet([("a", "b"), ("a", "c"), ("b", "c")], estimate=how, tol=1e-13, max_iter=3000)
    if how == "ml" or not holes:  # the variances of imagined rows are those of other cells where cells are missing
        net.fit(table)
        assert net.log_likelihood_ == pytest.approx(block.log_likelihood_, rel=1e-8)
        np.testing.assert_allclose(net.score_samples(table), block.score_samples(table), rtol=1e-4, atol=1e-4)
    assert net.fit(table).n_parameters_ == 9


def test_weight_two_is_the_row_twice_and_weight_zero_is_no_row() -> None:
    _, edges, table = drawn(2)
    heavy = np.random.default_rng(0).integers(0, 3, len(table))
    one = BayesNet(edges).fit(table, sample_weight=heavy)
    other = BayesNet(edges).fit(table.loc[table.index.repeat(heavy)])
    for name, own in one.params_.items():
        for part, value in own.items():
            np.testing.assert_allclose(value, other.params_[name][part], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(("offset", "scale"), [(1e8, 1.0), (0.0, 1e-40), (-3e5, 1e30)])
def test_units_do_not_matter(offset: float, scale: float) -> None:
    rng = np.random.default_rng(8)
    x = np.round(rng.normal(size=50), 3)
    y = np.round(2.0 * x + rng.normal(size=50), 3)
    plain = BayesNet([("x", "y")]).fit({"x": x, "y": y})
    moved = BayesNet([("x", "y")]).fit({"x": (x + offset) * scale, "y": (y - offset) * scale})
    np.testing.assert_allclose(moved.params_["y"]["coefficients"], plain.params_["y"]["coefficients"], rtol=1e-6)
    np.testing.assert_allclose(moved.params_["y"]["variance"] / scale**2, plain.params_["y"]["variance"], rtol=1e-6)
    logs = plain.score_samples({"x": x, "y": y}) - 2 * np.log(scale)
    np.testing.assert_allclose(
        moved.score_samples({"x": (x + offset) * scale, "y": (y - offset) * scale}), logs, rtol=1e-6
    )
    asked = moved.query("y", {"x": (0.5 + offset) * scale})
    assert asked.mean / scale + offset == pytest.approx(plain.query("y", {"x": 0.5}).mean, abs=1e-6)
    assert asked.variance / scale**2 == pytest.approx(plain.query("y", {"x": 0.5}).variance, rel=1e-6)


def test_numbers_that_do_not_vary_or_repeat_each_other_have_finite_answers() -> None:
    rng = np.random.default_rng(1)
    x = rng.normal(size=40)
    table = {"c": np.r_[np.full(39, 2.0), 2.5], "x": x, "same": x, "twice": 2 * x, "y": x + rng.normal(size=40)}
    edges = [("x", "same"), ("x", "twice"), ("same", "twice"), ("c", "y"), ("x", "y"), ("same", "y"), ("twice", "y")]
    for how in ("ml", "mean"):
        net = BayesNet(edges, estimate=how).fit(table)
        assert np.isfinite(net.score_samples(table)).all()
        assert all(np.isfinite(value).all() for own in net.params_.values() for value in own.values())
        found = net.query("x", {"y": 1.0, "twice": 2.0})
        assert found.variance > 0 and found.mean == pytest.approx(1.0, abs=0.1)


# -- what a network says, against everything written out


@SEEDS
@pytest.mark.parametrize("holes", [0.0, 0.2])
def test_rows_with_holes_are_scored_as_written_out_in_full(seed: int, holes: float) -> None:
    net, rows = drawn_and_fitted(seed, holes=holes)
    plain = PlainNet.of(net)
    right = [plain.log_density(row) for row in rows_of_frame(rows)]
    np.testing.assert_allclose(net.score_samples(rows), right, rtol=1e-9, atol=1e-9)


@SEEDS
def test_every_node_is_predicted_and_filled_as_written_out_in_full(seed: int) -> None:
    net, rows = drawn_and_fitted(seed)
    plain, filled = PlainNet.of(net), net.impute(rows)
    for name in net.nodes:
        cells = rows_of_frame(rows)
        hidden = [{key: value for key, value in row.items() if key != name} for row in cells]
        lost = rows[name].isna().to_numpy()
        if name in plain.levels:
            right = np.array([plain.posterior(name, row) for row in hidden])
            np.testing.assert_allclose(net.predict_proba(rows, name), right, atol=1e-9)
            assert list(filled[name][lost]) == [plain.levels[name][place] for place in right[lost].argmax(axis=1)]
        else:
            means = np.array([plain.mean(name, row) for row in hidden])
            np.testing.assert_allclose(net.predict(rows, name), means, rtol=1e-8, atol=1e-8)
            np.testing.assert_allclose(filled[name][lost], means[lost], rtol=1e-8, atol=1e-8)
            np.testing.assert_array_equal(filled[name][~lost], rows[name][~lost])


@SEEDS
def test_a_number_that_is_asked_for_is_a_mixture_of_conditional_normals(seed: int) -> None:
    net, rows = drawn_and_fitted(seed)
    plain = PlainNet.of(net)
    for row in rows_of_frame(rows)[:6]:
        for name in plain.numbers:
            given = {key: value for key, value in row.items() if key != name and value == value and value is not None}
            found = net.query(name, given)
            shares, means, variances = plain.mixture(name, given)
            middle = shares @ means
            assert found.mean == pytest.approx(middle, rel=1e-8, abs=1e-8)
            assert found.variance == pytest.approx(shares @ (variances + (means - middle) ** 2), rel=1e-7)
            bells = np.exp(-0.5 * (0.3 - means) ** 2 / variances) / np.sqrt(2 * np.pi * variances)
            assert found.pdf(0.3) == pytest.approx(shares @ bells, rel=1e-7, abs=1e-12)
            assert found.cdf(found.quantile(0.3)) == pytest.approx(0.3, abs=1e-9)


@SEEDS
def test_a_range_of_a_number_that_is_given_alone_is_exact(seed: int) -> None:
    net, _ = drawn_and_fitted(seed)
    name = net.nodes[-1] if net.nodes[-1] in NUMBERS else "u"
    plain, answer = PlainNet.of(net), net.query(name)
    share = answer.cdf(1.0) - answer.cdf(-0.5)
    asked = [level for level in DISCRETE if level in net.nodes]
    for node in asked:
        found = net.query(node, {name: (-0.5, 1.0)})
        for level in plain.levels[node]:
            under = net.query(name, {node: level})
            right = net.query(node)[level] * (under.cdf(1.0) - under.cdf(-0.5)) / share
            assert found[level] == pytest.approx(right, abs=1e-9)


def test_rows_that_are_drawn_follow_the_lines_and_what_is_held() -> None:
    net, _ = drawn_and_fitted(4, rows=200)
    plain = PlainNet.of(net)
    held = {plain.numbers[1]: 0.4}
    rows = arrow(net.sample(20000, held, random_state=1)).to_pandas()
    assert (rows[plain.numbers[1]] == 0.4).all()
    for name in [x for x in plain.numbers if x not in held]:
        found = net.query(name, held)
        assert rows[name].mean() == pytest.approx(found.mean, abs=5 * np.sqrt(found.variance / 20000))
        assert rows[name].var() == pytest.approx(found.variance, rel=0.1)
    for node in plain.levels:
        right = plain.posterior(node, held)
        np.testing.assert_allclose([(rows[node] == x).mean() for x in plain.levels[node]], right, atol=0.02)


def test_drawn_rows_are_as_correlated_as_the_network_says() -> None:
    net = BayesNet([("a", "b"), ("b", "c")]).fit(
        random_table(np.random.default_rng(2), [("a", "b"), ("b", "c")], [], list("abc"), 100)
    )
    _, covariance = PlainNet.of(net).normal({})
    rows = arrow(net.sample(40000, random_state=3)).to_pandas()[PlainNet.of(net).numbers]
    unit = np.sqrt(np.diagonal(covariance))
    np.testing.assert_allclose(rows.cov() / np.outer(unit, unit), covariance / np.outer(unit, unit), atol=0.03)


def test_setting_a_level_from_outside_leaves_the_lines_as_they_are() -> None:
    rng = np.random.default_rng(0)
    g = rng.integers(2, size=200)
    c = np.where(rng.random(200) < 0.8, g, 1 - g)
    x = rng.normal(g)
    net = BayesNet([("g", "c"), ("g", "x"), ("x", "y"), ("c", "y")]).fit(
        {"g": g.astype(str), "c": c.astype(str), "x": x, "y": x * (1 + c) + rng.normal(size=200)}
    )
    set_to = net.do(c="1")
    assert set_to.query("x").mean == pytest.approx(net.query("x").mean)
    assert net.query("x", {"c": "1"}).mean != pytest.approx(net.query("x").mean, abs=0.05)
    own, x_mean = net.params_["y"], net.query("x").mean
    assert set_to.query("y").mean == pytest.approx(own["intercept"][1] + own["coefficients"][1, 0] * x_mean)


# -- EM


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("how", ["ml", "mean"])
def test_the_objective_never_falls_with_holes_or_a_hidden_node(seed: int, how: str) -> None:
    rng, edges, table = drawn(seed)
    edges = [edge for edge in edges if "h" not in edge] + [("h", child) for child in ("u", "v")]
    net = BayesNet(edges, hidden={"h": 2}, estimate=how, n_init=1, max_iter=25, accelerate=False, random_state=seed)
    net.fit(holed(rng, table.drop(columns="h"), 0.2 if seed % 2 else 0.0))
    steps = np.diff(net.trace_)
    assert (steps >= -1e-9 * np.abs(net.trace_[0])).all()


@pytest.mark.parametrize("seed", range(2))
def test_with_holes_no_parameter_can_be_moved_to_a_higher_likelihood(seed: int) -> None:
    """What EM comes to without a prior is a top of the likelihood of what rows show, written out in full."""
    rng, edges, table = drawn(seed, 60)
    seen = holed(rng, table, 0.2)
    net = BayesNet(edges, estimate="ml", tol=1e-13, max_iter=5000).fit(seen)
    seen = seen[[name for name in seen if name in net.nodes]]
    top = observed(net, seen)
    assert top == pytest.approx(net.log_likelihood_, rel=1e-9)
    plain = PlainNet.of(net)
    for name in plain.numbers:
        for part, value in net.params_[name].items():
            for way in (-1e-3, 1e-3):
                step = way * (value if part == "variance" else np.ones_like(value))
                moved = PlainNet(
                    plain.params | {name: plain.params[name] | {part: value + step}},
                    plain.levels,
                    plain.parents,
                    plain.numbers,
                )
                assert sum(moved.log_density(row) for row in rows_of_frame(seen)) < top + 1e-6


def test_holes_in_a_number_that_nothing_follows_take_no_em() -> None:
    rng, edges = np.random.default_rng(4), [("x", "y"), ("x", "z")]
    table = random_table(rng, edges, [], list("xyz"), 60)
    lost = table.assign(y=table["y"].where(np.arange(60) % 3 > 0))
    net = BayesNet(edges).fit(lost)
    assert net.n_iter_ == 0
    apart = BayesNet([("x", "y")]).fit(lost.dropna())
    np.testing.assert_allclose(net.params_["y"]["coefficients"], apart.params_["y"]["coefficients"])
    np.testing.assert_allclose(net.params_["x"]["mean"], [table["x"].mean()])


def test_lines_of_a_hidden_class_are_found() -> None:
    rng = np.random.default_rng(6)
    h, x = rng.integers(2, size=600), rng.normal(size=600)
    y = np.where(h, 3.0 + 2.0 * x, -3.0 - 1.0 * x) + 0.3 * rng.normal(size=600)
    net = BayesNet([("h", "y"), ("x", "y")], hidden={"h": 2}, random_state=0).fit({"x": x, "y": y})
    found = net.params_["y"]
    order = np.argsort(found["coefficients"][:, 0])
    np.testing.assert_allclose(found["coefficients"][order, 0], [-1.0, 2.0], atol=0.1)
    np.testing.assert_allclose(found["intercept"][order], [-3.0, 3.0], atol=0.1)
    assert set(net.query("h", {"x": 0.0, "y": 3.0})) == {0, 1}


def test_numbers_under_a_hidden_node_have_the_prior_and_the_floor_of_their_column() -> None:
    rng = np.random.default_rng(7)
    x = np.r_[rng.normal(-4, 1, 40), np.full(40, 4.0)]
    net = BayesNet([("h", "x")], hidden={"h": 2}, estimate="ml", random_state=0).fit({"x": x})
    assert net.params_["x"]["variance"].min() == pytest.approx(1e-6 * x.var(), rel=1e-6)
    net = BayesNet([("h", "x")], hidden={"h": 2}, random_state=0).fit({"x": x})
    assert net.params_["x"]["variance"].min() == pytest.approx(x.var() / 41, rel=0.05)


@pytest.mark.parametrize("kind", ["student", "multinormal"])
def test_a_leaf_whose_counts_are_expected_ones_is_learned_as_naive_bayes_learns_it(kind: str) -> None:
    rng = np.random.default_rng(9)
    g = np.array(list("ab"))[rng.integers(2, size=60)]
    x = rng.standard_t(2, size=60) + (g == "a")
    kinds: Any = {"x": "student"}
    table = pd.DataFrame({"g": g, "x": x})
    if kind == "multinormal":
        kinds, table = {("x", "y"): "multinormal"}, table.assign(y=x + rng.normal(size=60))
        table.loc[::4, "y"] = np.nan
    key = next(iter(kinds))
    settings = {"kinds": kinds, "estimate": "ml", "tol": 1e-13, "max_iter": 3000}
    net = BayesNet([("g", key)], **settings).fit(table)
    star = sc.NaiveBayes(**settings).fit(table.drop(columns="g"), table["g"])
    for name, value in star.params_[key].items():
        np.testing.assert_allclose(net.params_[key][name], value, rtol=1e-4, atol=1e-5)


# -- explaining, and counts that add


@pytest.mark.parametrize("seed", range(4))
def test_what_nodes_add_to_a_level_and_to_a_surprise_adds_up(seed: int) -> None:
    net, rows = drawn_and_fitted(seed)
    for node in net.levels_:
        pieces = contributions(net.explain(rows, node)).to_pandas().sum(axis=1)
        shares = np.sort(net.predict_proba(rows, node), axis=1)
        np.testing.assert_allclose(pieces, np.log(shares[:, -1] / shares[:, -2]), rtol=1e-8, atol=1e-8)
    found, logs, usual = (
        surprises(net.fitted_, net.fitted_.table(rows)),
        -net.score_samples(rows),
        usual_surprise(net.fitted_),
    )
    seen = sum(np.where(rows[name].notna(), found[name] + usual[name], 0.0) for name in net.nodes)
    whole = rows.notna().all(axis=1).to_numpy()
    assert whole.any()
    np.testing.assert_allclose(seen[whole], logs[whole], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_two_fits_are_joined_to_that_of_all_rows_and_taken_apart_again(seed: int) -> None:
    rng, edges, table = drawn(seed, 160)
    shuffled = [edges[i] for i in rng.permutation(len(edges))]
    whole, first = BayesNet(edges).fit(table), BayesNet(edges).fit(table[:90])
    other = BayesNet(shuffled).fit(table[90:])
    alike(BayesNet(edges).fit(table[:90]).merge(other), whole)
    alike(BayesNet(edges).fit(table[:90]).partial_fit(table[90:]), whole)
    alike(BayesNet(edges).fit(table).forget(table[90:]), first)


def alike(one: BayesNet, other: BayesNet) -> None:
    for name, own in other.params_.items():
        for part, value in own.items():
            np.testing.assert_allclose(one.params_[name][part], value, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_holes_of_more_rows_are_shared_out_as_the_network_so_far_says(seed: int) -> None:
    rng, edges, table = drawn(seed, 120)
    net, more = BayesNet(edges).fit(table[:70]), holed(rng, table[70:], 0.3)
    added = net.counts_ + net.fitted_.count(net.fitted_.table(more))
    found = BayesNet(edges).fit(table[:70]).partial_fit(more).counts_
    for name in net.nodes:
        np.testing.assert_allclose(found.arrays[name].value, added.arrays[name].value, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("seed", range(4))
def test_a_network_with_its_edges_in_another_order_starts_from_what_the_other_says(seed: int) -> None:
    rng, edges, table = drawn(seed, 120)
    net, rows = BayesNet(edges).fit(table), holed(rng, table, 0.3)
    shuffled = [edges[i] for i in rng.permutation(len(edges))]
    started = BayesNet(shuffled, estimate="ml", init=net, max_iter=0).fit(rows)
    assert started.log_likelihood_ == pytest.approx(net.score_samples(rows).sum(), rel=1e-9)


def test_a_number_alone_is_the_start_of_itself() -> None:
    table = random_table(np.random.default_rng(1), [("x", "y")], ["p"], ["x", "y", "u"], 50)
    table.loc[3, "x"] = np.nan
    net = BayesNet({"y": ["x"], "u": [], "p": []}, estimate="ml").fit(table)
    started = BayesNet({"y": ["x"], "u": [], "p": []}, estimate="ml", init=net, max_iter=0).fit(table)
    assert started.log_likelihood_ == pytest.approx(net.score_samples(table).sum(), rel=1e-9)


def test_a_number_that_is_alone_is_drawn_in_a_range_beside_joined_ones() -> None:
    edges = [("p", "u"), ("p", "x"), ("x", "y")]
    table = random_table(np.random.default_rng(6), edges, ["p"], ["u", "x", "y"], 200)
    net, within = BayesNet(edges).fit(table), (float(table["u"].median()), float(table["u"].max()))
    rows = arrow(net.sample(4000, {"u": within, "y": 0.5}, random_state=2)).to_pandas()
    assert rows["u"].between(*within).all() and (rows["y"] == 0.5).all()
    right = net.query("p", {"u": within, "y": 0.5})["a"]
    assert (rows["p"] == "a").mean() == pytest.approx(right, abs=0.04)
    x = net.query("x", {"u": within, "y": 0.5})
    assert rows["x"].mean() == pytest.approx(x.mean, abs=5 * np.sqrt(x.variance / 4000))


def test_a_joined_number_is_the_same_whether_levels_are_given_as_they_are_or_as_one_would_write_them() -> None:
    edges = [("p", "x"), ("x", "y")]
    table = random_table(np.random.default_rng(6), edges, ["p"], ["x", "y"], 60)
    net = BayesNet(edges).fit(table)
    plain = PlainNet.of(net)
    for level in ("a", np.str_("a")):
        assert net.query("y", {"p": level}).mean == pytest.approx(plain.mean("y", {"p": "a"}), rel=1e-9)
