"""What a network answers, held against the joint table of a small one; tables of rows against single questions."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from scipy import stats

import softcount as sc
from enumerated import along
from explained import contributions
from softcount.errors import DataError
from softcount.estimators.result_frames import arrow_of as arrow
from softcount.networks.network import Graph

pytestmark = pytest.mark.filterwarnings("ignore::softcount.errors.DataWarning")
NAMES = ["cloud", "rain", "spray", "wet", "mud", "number"]
LEVELS = [["no", "yes"], ["none", "some", "much"], ["off", "on"], ["dry", "wet"], [0, 1, 2], [1, 2, 5, 9]]
GRAPH = Graph.of(
    [("cloud", "rain"), ("cloud", "spray"), ("rain", "wet"), ("spray", "wet"), ("wet", "mud"), ("rain", "number")],
    NAMES,
)
seeds = pytest.mark.parametrize("seed", range(6))


@pytest.fixture(scope="module", params=range(2))
def net(request) -> Any:
    """A network learned from every combination of levels, weighted by its probability under random tables."""
    rng = np.random.default_rng(request.param)
    chances = np.ones([len(own) for own in LEVELS])
    for family in GRAPH.families:
        table = rng.dirichlet(np.ones(len(LEVELS[family[-1]])), [len(LEVELS[node]) for node in family[:-1]])
        if request.param and len(family) > 1:
            table[1:, ..., 0][rng.random(table[1:, ..., 0].shape) < 0.4] = 0.0
        chances = chances * along(table / table.sum(axis=-1, keepdims=True), family, len(LEVELS))
    rows = list(product(*LEVELS))
    table = {name: [row[place] for row in rows] for place, name in enumerate(NAMES)}
    found = sc.BayesNet(GRAPH, kinds={"mud": "categorical", "number": "categorical"}, estimate="ml")
    return found.fit(table, sample_weight=chances.ravel())


def joint(net: Any) -> dict[tuple[Any, ...], float]:
    """The probability of every combination of levels, by multiplying what the tables say."""
    found = {}
    levels = [net.levels_[name] for name in NAMES]
    for row in product(*levels):
        value = dict(zip(NAMES, row, strict=True))
        chance = 1.0
        for name in NAMES:
            table = net.table(name)
            place = tuple(own.index(value[parent]) for parent, own in table.parents.items())
            chance *= table.values[place][table.levels.index(value[name])]
        found[row] = chance
    return found


def weight(value: Any, given: Any) -> float:
    """How likely a level makes what is given of its node."""
    if isinstance(given, dict):
        return float(given.get(value, 0.0))
    if isinstance(given, tuple):
        return float(given[0] <= value <= given[1])
    if isinstance(given, (set, list)):
        return float(value in given)
    return float(value == given)


def conditional(whole: dict[tuple[Any, ...], float], of: list[str], given: dict[str, Any]) -> dict[Any, float]:
    """Shares of what the joint table leaves; nothing where it leaves nothing."""
    total: dict[Any, float] = {}
    for row, chance in whole.items():
        value = dict(zip(NAMES, row, strict=True))
        for name, said in given.items():
            chance *= weight(value[name], said)
        key = tuple(value[name] for name in of) if len(of) > 1 else value[of[0]]
        total[key] = total.get(key, 0.0) + chance
    mass = sum(total.values())
    return {key: chance / mass for key, chance in total.items()} if mass else {}


def random_given(rng: np.random.Generator, net: Any, but: list[str]) -> dict[str, Any]:
    """Certain levels, sets, lists, ranges and likelihoods of some nodes."""
    found: dict[str, Any] = {}
    for name in NAMES:
        levels = net.levels_[name]
        kind = rng.integers(0, 7)
        if name in but or kind > 4:
            continue
        some = [level for level in levels if rng.random() < 0.7] or [levels[-1]]
        found[name] = {0: levels[-1], 1: set(some), 2: some, 3: {level: float(rng.random()) for level in some}}.get(
            int(kind), levels[-1]
        )
        if kind == 4 and name == "number":
            found[name] = (2, 6)
    return found


@seeds
def test_any_question_is_answered_as_the_joint_table_does(net, seed):
    rng = np.random.default_rng(seed)
    whole = joint(net)
    for _ in range(8):
        of = [str(name) for name in rng.choice(NAMES, rng.integers(1, 4), replace=False)]
        given = random_given(rng, net, of)
        wanted = conditional(whole, of, given)
        asked = of if len(of) > 1 else of[0]
        if not wanted:
            with pytest.raises(DataError, match="probability zero"):
                net.query(asked, given)
            continue
        found = net.query(asked, given)
        assert found.keys() == wanted.keys()
        np.testing.assert_allclose([found[key] for key in wanted], list(wanted.values()), rtol=1e-11, atol=1e-14)


def test_levels_that_are_numbers_are_numbers(net):
    assert net.levels_["number"] == [1, 2, 5, 9] and net.levels_["mud"] == [0, 1, 2]
    wanted = conditional(joint(net), ["rain"], {"number": {2, 5}})
    assert net.query("rain", {"number": (1.5, 5)}) == pytest.approx(wanted, rel=1e-12)
    assert net.query("rain", {"number": [2, 5]}) == pytest.approx(wanted, rel=1e-12)


def test_each_of_several_nodes_by_itself(net):
    given = {"mud": {1, 2}}
    found = net.query(["cloud", "rain", "wet"], given, each=True)
    for name in ("cloud", "rain", "wet"):
        assert found[name] == pytest.approx(net.query(name, given), rel=1e-13)


def test_a_likelihood_counts_only_in_proportion(net):
    one = net.query("rain", {"wet": {"dry": 0.2, "wet": 0.5}})
    assert net.query("rain", {"wet": {"dry": 2.0, "wet": 5.0}}) == pytest.approx(one, rel=1e-12)
    assert net.query("rain", {"wet": {"dry": 3, "wet": 3}}) == pytest.approx(net.query("rain"), rel=1e-12)
    assert net.query("rain", {"wet": ["dry", "wet"]}) == pytest.approx(net.query("rain"), rel=1e-12)
    assert net.query("rain", {"wet": {"wet": 7.0}}) == pytest.approx(net.query("rain", {"wet": "wet"}), rel=1e-12)


def test_a_likelihood_may_be_of_the_node_that_is_asked_for(net):
    before, seen = net.query("wet"), {"dry": 0.1, "wet": 0.6}
    mass = sum(before[level] * seen[level] for level in seen)
    wanted = {level: before[level] * seen[level] / mass for level in seen}
    assert net.query("wet", {"wet": seen}) == pytest.approx(wanted, rel=1e-12)


# -- doing, and the likeliest of all


@seeds
def test_doing_cuts_the_arrows_into_a_node(net, seed):
    rng = np.random.default_rng(seed)
    name = str(rng.choice(["rain", "spray", "wet", "mud"]))
    level = net.levels_[name][-1]
    done = net.do({name: level})
    place = NAMES.index(name)
    cut: dict[tuple[Any, ...], float] = {}
    for row, chance in joint(net).items():
        own = net.table(name)
        above = tuple(own_levels.index(row[NAMES.index(parent)]) for parent, own_levels in own.parents.items())
        share = own.values[above][own.levels.index(row[place])]
        cut[row] = (chance / share if share else 0.0) if row[place] == level else 0.0
    for of in NAMES:
        if of != name and net.query(name)[level] > 0 and all(x > 0 for x in net.table(name).values[..., -1].ravel()):
            wanted = conditional(cut, [of], {})
            assert done.query(of) == pytest.approx(wanted, rel=1e-11, abs=1e-14)
    assert all(child != name for _, child in done.edges_)
    assert done.query(name)[level] == 1.0
    assert net.edges_ != done.edges_ or not net.table(name).parents


def test_seeing_is_not_doing(net):
    seen, done = net.query("cloud", {"spray": "on"}), net.do(spray="on").query("cloud")
    assert done == pytest.approx(net.query("cloud"), rel=1e-12)
    assert abs(seen["yes"] - done["yes"]) > 1e-3
    below = net.do(spray="on").query("mud", {"rain": "some"})
    assert below == pytest.approx(net.query("mud", {"rain": "some", "spray": "on"}), rel=1e-12)


def test_a_network_after_doing_is_saved_and_loaded(net, tmp_path):
    done = net.do(wet="wet")
    done.save(tmp_path / "done.sc")
    again = sc.load(tmp_path / "done.sc")
    assert again.query("mud") == done.query("mud") and again.edges_ == done.edges_
    done.write(tmp_path / "done.bif")
    assert sc.BayesNet.read(tmp_path / "done.bif").query("rain") == pytest.approx(done.query("rain"), rel=1e-12)


@seeds
def test_the_likeliest_of_all_is_the_top_of_the_joint_table(net, seed):
    rng = np.random.default_rng(seed)
    given = random_given(rng, net, [])
    heights = {}
    for row, chance in joint(net).items():
        for name, said in given.items():
            chance *= weight(row[NAMES.index(name)], said)
        heights[row] = chance
    found = net.most_probable(given)
    top = max(heights.values())
    assert heights[tuple(found.levels[name] for name in NAMES)] == pytest.approx(top, rel=1e-12)
    assert found.log_probability == pytest.approx(np.log(top), rel=1e-10)


# -- drawn rows


def test_drawn_rows_follow_the_network(net):
    drawn = arrow(net.sample(20_000, random_state=1)).to_pandas()
    for name in NAMES:
        for level, share in net.query(name).items():
            off = abs((drawn[name] == level).mean() - share)
            assert off <= 4 * np.sqrt(share * (1 - share) / len(drawn)) + 1e-12, (name, level)


@pytest.mark.parametrize(
    "given",
    [{"wet": "wet"}, {"mud": {1, 2}}, {"number": (2, 6), "spray": "on"}, {"wet": {"dry": 0.2, "wet": 0.9}}],
    ids=str,
)
def test_drawn_rows_under_what_is_given_follow_the_posterior(net, given):
    drawn = arrow(net.sample(4_000, given=given, random_state=2)).to_pandas()
    for name in NAMES:
        if name in given and isinstance(given[name], str):
            assert set(drawn[name]) == {given[name]}
            continue
        for level, share in net.query(
            name, {k: v for k, v in given.items() if k != name or isinstance(v, dict)}
        ).items():
            if name in given and not isinstance(given[name], dict):
                assert weight(level, given[name]) or not (drawn[name] == level).any()
                continue
            off = abs((drawn[name] == level).mean() - share)
            assert off <= 4 * np.sqrt(share * (1 - share) / len(drawn)) + 1e-12, (name, level)


def test_drawn_rows_are_the_same_for_the_same_seed(net):
    one, other = (net.sample(50, random_state=7) for _ in range(2))
    assert one.equals(other)
    assert not one.equals(net.sample(50, random_state=8))


# -- numbers that hang on levels


@pytest.fixture(scope="module")
def mixed() -> Any:
    rng = np.random.default_rng(3)
    a, b = rng.integers(0, 2, 400), rng.integers(0, 3, 400)
    table = {
        "a": np.array(["no", "yes"])[a].tolist(),
        "b": np.array(["l", "m", "t"])[(a + b) % 3].tolist(),
        "x": rng.normal(a * 2.0 - b, 1.0 + a).tolist(),
        "n": rng.poisson(2.0 + 3 * a).tolist(),
    }
    edges = [("a", "b"), ("a", "x"), ("b", "x"), ("a", "n")]
    return sc.BayesNet(edges, kinds={"n": "poisson"}).fit(table)


def densities(mixed: Any, x: Any = None, n: Any = None) -> np.ndarray:
    """(a, b) joint probability of the levels and what is given of the numbers, by scipy."""
    a, b = mixed.table("a").values, mixed.table("b").values
    found = a[:, None] * b
    own = mixed.params_["x"]
    mean, deviation = (np.reshape(v, (2, 3)) for v in (own["mean"], np.sqrt(own["variance"])))
    if isinstance(x, tuple):
        found = found * (stats.norm.cdf(x[1], mean, deviation) - stats.norm.cdf(x[0], mean, deviation))
    elif x is not None:
        found = found * stats.norm.pdf(x, mean, deviation)
    rate = mixed.params_["n"]["rate"]
    return found if n is None else found * stats.poisson.pmf(n, rate)[:, None]


@pytest.mark.parametrize(
    "given", [{"x": 1.5}, {"n": 4}, {"x": -2.0, "n": 1}, {"x": (0.0, 2.0)}, {"x": (1.0, 9.0), "n": 6}]
)
def test_numbers_are_evidence_by_their_density(mixed, given):
    cells = densities(mixed, **given)
    cells = cells / cells.sum()
    assert list(mixed.query("a", given).values()) == pytest.approx(cells.sum(axis=1).tolist(), rel=1e-10)
    assert list(mixed.query(["a", "b"], given).values()) == pytest.approx(cells.ravel().tolist(), rel=1e-10)
    other = "n" if "n" not in given else "x"
    if other not in given:
        means = mixed.params_[other]["rate" if other == "n" else "mean"]
        shares = cells.sum(axis=1) if other == "n" else cells.ravel()
        assert mixed.query(other, given).mean == pytest.approx(float(shares @ means), rel=1e-10)


def test_drawn_numbers_stay_in_the_range_that_is_given(mixed):
    drawn = arrow(mixed.sample(2_000, given={"x": (0.5, 1.5)}, random_state=0)).to_pandas()
    assert drawn["x"].between(0.5, 1.5).all()
    share = mixed.query("a", {"x": (0.5, 1.5)})["yes"]
    assert abs((drawn["a"] == "yes").mean() - share) < 4 * np.sqrt(share * (1 - share) / len(drawn))
    held = arrow(mixed.sample(3, given={"x": 1.25, "n": 3}, random_state=0)).to_pandas()
    assert held["x"].tolist() == [1.25] * 3 and held["n"].tolist() == [3] * 3


def test_rows_are_scored_by_their_density(mixed):
    table = {"a": ["yes", None, None], "b": ["m", "m", None], "x": [1.0, 1.0, 1.0], "n": [3, 3, None]}
    wanted = [densities(mixed, 1.0, 3)[1, 1], densities(mixed, 1.0, 3)[:, 1].sum(), densities(mixed, 1.0).sum()]
    np.testing.assert_allclose(mixed.score_samples(table), np.log(wanted), rtol=1e-10)
    assert mixed.log_likelihood(table) == pytest.approx(np.log(wanted).sum(), rel=1e-12)


# -- whole tables


def rows_of(net: Any, n: int, lost: float, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    table = arrow(net.sample(n, random_state=seed)).to_pandas()
    return table.astype(object).mask(rng.random(table.shape) < lost, None)


def shown(row: Any, but: str | None = None) -> dict[str, Any]:
    return {key: value for key, value in row.items() if key != but and value is not None and pd.notna(value)}


def test_tables_are_answered_as_single_questions_are(mixed):
    table = rows_of(mixed, 25, 0.3)
    for of in ("a", "b"):
        chances, chosen = mixed.predict_proba(table, of), mixed.predict(table, of)
        for (_, row), chance, level in zip(table.iterrows(), chances, chosen, strict=True):
            wanted = mixed.query(of, shown(row, of))
            np.testing.assert_allclose(chance, list(wanted.values()), rtol=1e-11)
            assert wanted[level] == max(wanted.values())
    means = mixed.predict(table, "x")
    for (_, row), mean in zip(table.iterrows(), means, strict=True):
        assert mean == pytest.approx(mixed.query("x", shown(row, "x")).mean, rel=1e-10, abs=1e-12)


def test_holes_are_filled_with_what_the_rest_of_the_row_says(mixed):
    table = rows_of(mixed, 25, 0.3, 1)
    filled = mixed.impute(table)
    assert not filled.isna().any().any()
    for (_, row), (_, full) in zip(table.iterrows(), filled.iterrows(), strict=True):
        for name in table:
            if name in shown(row):
                assert full[name] == row[name]
            elif name in mixed.levels_:
                chances = mixed.query(name, shown(row))
                assert chances[full[name]] == pytest.approx(max(chances.values()), rel=1e-12)
            else:
                mean, whole = mixed.query(name, shown(row)).mean, (table[name].dropna() % 1 == 0).all()
                assert full[name] == (round(mean) if whole else pytest.approx(mean, rel=1e-9))


@pytest.mark.parametrize("of", ["a", "b"])
def test_an_explanation_adds_up_to_the_log_odds(mixed, of):
    table = rows_of(mixed, 20, 0.3, 2)
    found = contributions(mixed.explain(table, of)).to_pandas()
    assert set(found) == {"(prior)", *mixed.nodes} - {of}
    for (_, row), pieces in zip(table.iterrows(), found.to_numpy(), strict=True):
        chances = sorted(mixed.query(of, shown(row, of)).values())
        assert pieces.sum() == pytest.approx(np.log(chances[-1] / chances[-2]), rel=1e-8, abs=1e-9)
    silent = table.isna()
    for name in set(found) - {"(prior)"}:
        np.testing.assert_allclose(found.loc[silent[name].to_numpy(), name], 0.0, atol=1e-12)


def test_an_anomaly_is_what_its_nodes_add_up_to(mixed):
    table = rows_of(mixed, 60, 0.1, 3)
    table.loc[7, ["x", "n"]] = [40.0, 60]
    scores = mixed.anomaly_score(table)
    assert scores.argmax() == 7
    worst = arrow(mixed.anomalies(table, 5)).to_pandas()
    assert worst["row"].tolist() == np.argsort(-scores, kind="stable")[:5].tolist()
    np.testing.assert_allclose(worst[mixed.nodes].sum(axis=1), worst["score"], rtol=1e-10)
    np.testing.assert_allclose(worst["score"], scores[worst["row"]], rtol=1e-12)
    assert worst["reason"][0] in ("x", "n")
    whole = pd.DataFrame(arrow(mixed.sample(3_000, random_state=5)).to_pandas())
    typical = mixed.anomaly_score(whole)
    assert abs(typical.mean()) < 4 * typical.std() / np.sqrt(len(whole))


def test_anomalies_of_no_rows_are_none(mixed):
    table = rows_of(mixed, 5, 0.0)
    assert arrow(mixed.anomalies(table, 0)).num_rows == 0
    assert arrow(mixed.anomalies(table, 99)).num_rows == 5


def test_cut_numbers_are_asked_by_number_range_or_name():
    rng = np.random.default_rng(0)
    z = rng.normal(size=300)
    table = {"z": z.tolist(), "a": np.where(z + rng.normal(size=300) > 0, "up", "down").tolist()}
    net = sc.BayesNet([("z", "a")], cut={"z": [-1.0, 0.0, 1.0]}).fit(table)
    names = net.levels_["z"]
    assert len(names) == 4
    by_name = [net.query("a", {"z": name}) for name in names]
    for value, place in ((-5, 0), (-1.0, 0), (-0.5, 1), (0.0, 1), (0.5, 2), (1.0, 2), (7.5, 3)):
        assert net.query("a", {"z": value}) == by_name[place], value
    assert net.query("a", {"z": (-1.0, 1.0)}) == pytest.approx(net.query("a", {"z": names[1:3]}), rel=1e-12)
    assert net.query("a", {"z": (-9, 9)}) == pytest.approx(net.query("a"), rel=1e-12)
    parts = [net.query("z").cdf(high) - net.query("z").cdf(low) for low, high in ((-0.5, 0.0), (0.0, 0.5))]
    mixed = {level: np.dot(parts, [by_name[1][level], by_name[2][level]]) / sum(parts) for level in ("down", "up")}
    assert net.query("a", {"z": (-0.5, 0.5)}) == pytest.approx(mixed, rel=1e-12)  # as much of each as is in the range


# -- numbers that are cut


def cut_rows(n: int = 400) -> pd.DataFrame:
    """A number that a class depends on, with holes."""
    rng = np.random.default_rng(8)
    age = rng.normal(40, 10, n).round(1)
    old = np.where(rng.random(n) < 0.9, age > 45, age <= 45)
    frame = pd.DataFrame({"age": age, "old": np.where(old, "yes", "no")})
    frame.loc[::7, "age"] = np.nan
    return frame


@pytest.mark.parametrize("cut", [3, [30.0, 45.0], [0.0, 45.0]])
def test_holes_of_a_number_that_is_cut_are_filled_with_what_it_is_in_the_mean(cut, tmp_path):
    """By the shares of its intervals times the mean of the rows in each; the end of one that no row is in."""
    rows = cut_rows()
    net = sc.BayesNet([("age", "old")], cut={"age": cut}).fit(rows)
    edges = net.fitted_.net.cuts["age"]
    seen = rows.dropna()
    place = np.searchsorted(edges, seen["age"])
    means = [seen["age"][place == at].mean() if (place == at).any() else edges[at] for at in range(len(edges) + 1)]
    net.save(tmp_path / "net.sc")
    for model in (net, sc.load(tmp_path / "net.sc")):
        filled = model.impute(rows)
        assert filled["age"].dtype == float and not filled["age"].isna().any()
        pd.testing.assert_series_equal(filled["age"][seen.index], seen["age"])
        for level in ("no", "yes"):
            shares = model.query("age", {"old": level})
            hole = rows.index[rows["age"].isna() & (rows["old"] == level)][0]
            mean, form = np.dot(shares.shares, means), model.fitted_.schema["age"].written
            assert filled["age"][hole] == pytest.approx(mean if form is None else round(mean, form.digits), rel=1e-12)


@pytest.mark.parametrize("how", ["chow_liu", "search", "tan"])
def test_a_number_that_is_cut_is_drawn_asked_and_scored_as_a_number(how, tmp_path):
    """Whatever finds the edges: draws are numbers within the range seen, and densities integrate to one."""
    rng = np.random.default_rng(3)
    job = rng.choice(["a", "b", "c"], 600)
    shift = 15 * (job == "b") + 30 * (job == "c")
    rows = pd.DataFrame({"age": (rng.normal(25, 5, 600) + shift).round().astype(int), "pay": rng.gamma(2, 1 + shift)})
    net = sc.BayesNet.tan(rows, job) if how == "tan" else getattr(sc.BayesNet, how)(rows.assign(job=job))
    given = {"(class)": "b"} if how == "tan" else {"job": "b"}
    assert {"age", "pay"} & set(net.fitted_.net.cuts)
    net.save(tmp_path / "net.sc")
    for model in (net, sc.load(tmp_path / "net.sc")):
        drawn = pa.table(model.sample(500, given=given, random_state=0)).to_pandas()
        assert drawn["age"].dtype == np.int64 and drawn["age"].between(rows["age"].min(), rows["age"].max()).all()
        assert drawn["age"].mean() == pytest.approx(rows["age"][job == "b"].mean(), abs=1.5)
        within = model.sample(50, given={"age": (30, 33)}, random_state=0)["age"].tolist()
        assert set(within) == {30, 31, 32, 33}
        for name, high in (("age", 200.0), ("pay", 1500.0)):
            answer, grid = model.query(name, given), np.linspace(1e-3, high, 20_001)
            assert answer.mean == pytest.approx(rows[name][job == "b"].mean(), rel=0.12)
            assert np.trapezoid(answer.pdf(grid), grid) == pytest.approx(1.0, abs=2e-3)
            assert answer.cdf(answer.quantile(0.3)) == pytest.approx(0.3)
            alone = pd.DataFrame({"age": np.nan, "pay": np.nan}, index=range(len(grid)))
            alone[name] = grid
            scores = model.score_samples(alone if how == "tan" else alone.assign(job=None))
            assert np.trapezoid(np.exp(scores), grid) == pytest.approx(1.0, abs=5e-3) and np.isfinite(scores).all()
    assert net.predict(rows if how == "tan" else rows.assign(job=job), "age").dtype == float


def test_what_rows_say_of_two_columns_names_them():
    found = sc.BayesNet().dependence(cut_rows(), "age", "old")
    assert (found.a, found.b, found.given) == ("age", "old", ())
    assert found.g2 > 50 and found.p_value < 1e-9
    assert str(found).startswith("'age' and 'old': 0.") and "G2" in str(found)


def test_every_node_that_no_column_shows_may_be_hidden_with_as_many_levels_as_there_is_evidence_for():
    rng = np.random.default_rng(9)
    kind = rng.integers(0, 2, 300)
    rows = {f"c{at}": np.where(rng.random(300) < np.where(kind, 0.9, 0.1), "y", "n") for at in range(5)}
    edges = [("kind", name) for name in rows]
    net = sc.BayesNet(edges, hidden="auto", random_state=0).fit(rows)
    assert net.levels_["kind"] == [0, 1]
    assert any("'kind' has 2 levels by evidence" in note for note in net.notes_)
    assert sc.BayesNet([("c0", "c1")], hidden="auto").fit(rows).nodes == ["c0", "c1"]


def test_a_number_that_its_column_cannot_hold_stays_as_it_is() -> None:
    price = np.exp(np.random.default_rng(0).normal(np.arange(60) % 2, 2.0))
    model = sc.BayesNet("kind>price").fit(pd.DataFrame({"kind": ["a", "b"] * 30, "price": price}))
    with pytest.warns(sc.DataWarning, match="they stay as they are"):
        filled = model.impute(pd.DataFrame({"kind": ["a", "b"], "price": [-3.0, None]}))
    assert filled["price"][0] == -3.0 and filled["price"][1] > 0
