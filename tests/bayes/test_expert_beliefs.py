"""An expert's beliefs of cells: read, made a prior, and held against what the data say."""

import math

import numpy as np
import pytest

import softcount as sc
from softcount.errors import DataError
from softcount.priors import Expert

RNG = np.random.default_rng(0)
X = {
    "Sky": RNG.choice(["blue", "grey", "red"], 40).tolist(),
    "Wind": RNG.choice([0, 1, 2], 40).tolist(),
    "Heat": RNG.normal(20, 5, 40).tolist(),
}
Y = RNG.choice(["rain", "sun"], 40).tolist()
MODEL = sc.NaiveBayes(kinds={"Wind": "categorical"}).fit(X, Y)
CELLS = {("Sky", "grey", "rain"): Expert(8, 10), ("Sky", "blue", "rain"): Expert(1, 10), ("Wind", 2): Expert(3, 5)}


def counted(column, level, name):
    return sum(x == level and y == name for x, y in zip(X[column], Y, strict=True))


def table_of(cells):
    columns = {"column": [], "level": [], "class": [], "n": [], "m": []}
    for cell, said in cells.items():
        for name, value in zip(columns, [*[*cell, None][:3], said.n, said.m], strict=True):
            columns[name].append(value)
    return columns


def file_of(cells, path):
    columns = table_of(cells)
    lines = [",".join("" if v is None else str(v) for v in line) for line in zip(*columns.values(), strict=True)]
    path.write_text("\n".join([",".join(columns), *lines]) + "\n", encoding="utf-8")
    return path


def test_imagined_counts_are_the_experts_and_the_rest_is_shared():
    prior = sc.priors.expert_prior(CELLS, MODEL)
    assert prior == {
        "Sky": sc.priors.Dirichlet([[1, 8, 1], [1, 1, 1]], levels=("blue", "grey", "red")),
        "Wind": sc.priors.Dirichlet([[1, 1, 3], [1, 1, 3]], levels=(0, 1, 2)),
    }


def test_a_file_columns_and_cells_say_the_same(tmp_path):
    wanted = sc.priors.expert_prior(CELLS, MODEL)
    path = file_of(CELLS, tmp_path / "beliefs.csv")
    for beliefs in (table_of(CELLS), path, str(path)):
        assert sc.priors.expert_prior(beliefs, MODEL) == wanted
        assert sc.priors.compare_beliefs(beliefs, MODEL).equals(sc.priors.compare_beliefs(CELLS, MODEL))


def test_the_model_counts_imagined_rows_beside_those_seen():
    both = sc.NaiveBayes(kinds={"Wind": "categorical"}, prior=sc.priors.expert_prior(CELLS, MODEL)).fit(X, Y)
    rain = Y.count("rain")
    shares = both.params_["Sky"]["probability"]
    assert shares[0, 1] == pytest.approx((counted("Sky", "grey", "rain") + 8) / (rain + 10))
    assert shares[1, 1] == pytest.approx((counted("Sky", "grey", "sun") + 1) / (len(Y) - rain + 3))
    wind = both.params_["Wind"]["probability"]
    assert wind[0, 2] == pytest.approx((counted("Wind", 2, "rain") + 3) / (rain + 5))
    assert wind[1, 0] == pytest.approx((counted("Wind", 0, "sun") + 1) / (len(Y) - rain + 5))


def plain_bits(column, name, alpha):
    """The bits of a class's cells, row by row, each predicted from what was imagined and seen before it."""
    seen, bits = dict(alpha), 0.0
    for x, y in zip(X[column], Y, strict=True):
        if y == name:
            bits -= math.log2(seen[x] / sum(seen.values()))
            seen[x] += 1
    return bits


def test_the_expert_beside_the_data():
    lines = sc.priors.compare_beliefs(CELLS, MODEL).to_pylist()
    assert [(line["column"], line["level"], line["class"]) for line in lines] == [
        ("Sky", "blue", "rain"),
        ("Sky", "grey", "rain"),
        ("Wind", "2", "rain"),
        ("Wind", "2", "sun"),
    ]
    grey, rain = lines[1], Y.count("rain")
    assert (grey["n"], grey["m"], grey["expert"], grey["rows"]) == (8, 10, 0.8, rain)
    assert grey["data"] == pytest.approx(counted("Sky", "grey", "rain") / rain)
    assert grey["both"] == pytest.approx((counted("Sky", "grey", "rain") + 8) / (rain + 10))
    flat = plain_bits("Sky", "rain", dict.fromkeys(["blue", "grey", "red"], 1))
    wanted = plain_bits("Sky", "rain", {"blue": 1, "grey": 8, "red": 1}) - flat
    assert [line["surprise_bits"] for line in lines[:2]] == pytest.approx([wanted, wanted])
    wind = plain_bits("Wind", "sun", {0: 1, 1: 1, 2: 3}) - plain_bits("Wind", "sun", {0: 1, 1: 1, 2: 1})
    assert lines[3]["surprise_bits"] == pytest.approx(wind)


def test_an_expert_who_is_right_surprises_less_and_one_who_rules_out_what_happened_without_end():
    share = counted("Sky", "grey", "rain") / Y.count("rain")
    bits = {
        n: sc.priors.compare_beliefs({("Sky", "grey", "rain"): Expert(n, 100)}, MODEL)["surprise_bits"][0].as_py()
        for n in (round(100 * share), 95, 100)
    }
    assert bits[round(100 * share)] < 0 < bits[95]
    assert bits[100] == math.inf


def test_a_belief_of_every_class_gives_way_to_those_of_one():
    cells = {("Sky", "grey"): Expert(5, 10), ("Sky", "red", "sun"): Expert(1, 4)}
    alpha = sc.priors.expert_prior(cells, MODEL)["Sky"].alpha
    assert alpha.tolist() == [[2.5, 5, 2.5], [1.5, 1.5, 1]]


def test_a_level_nobody_saw_joins_those_seen():
    prior = sc.priors.expert_prior(
        {"column": ["Sky", "Wind"], "level": ["green", "7"], "n": [1, 2], "m": [4, 2]}, MODEL
    )
    assert prior["Sky"] == sc.priors.Dirichlet([[1, 1, 1, 1]] * 2, levels=("blue", "grey", "red", "green"))
    assert prior["Wind"] == sc.priors.Dirichlet([[0, 0, 0, 2]] * 2, levels=(0, 1, 2, 7))
    grown = sc.NaiveBayes(kinds={"Wind": "categorical"}, prior=prior).fit(X, Y)
    assert grown.levels_["Sky"] == ["blue", "green", "grey", "red"]
    assert sc.priors.compare_beliefs({("Sky", "green"): Expert(1, 4)}, MODEL)["data"].to_pylist() == [0.0, 0.0]


def test_groups_of_a_mixture_keep_the_priors_they_were_given():
    found = sc.Mixture(2, random_state=0).fit({"Sky": X["Sky"], "Heat": X["Heat"]})
    for first, second in ((0, 1), (1, 0)):
        cells = {("Sky", "red", first): Expert(40, 50), ("Sky", "blue", second): Expert(300, 400)}
        prior = sc.priors.expert_prior(cells, found)
        guided = sc.Mixture(2, prior=prior, random_state=0).fit({"Sky": X["Sky"], "Heat": X["Heat"]})
        alpha, shares = prior["Sky"].alpha, guided.params_["Sky"]["probability"]
        counts = guided.counts_.arrays["Sky"].value
        np.testing.assert_allclose(shares, (counts + alpha) / (counts + alpha).sum(axis=1, keepdims=True), atol=1e-6)
        assert shares[first].argmax() == 2
        assert shares[second].argmax() == 0


@pytest.mark.parametrize(
    ("beliefs", "said"),
    [
        ({("Sky", "grey", "rain"): Expert([1, 2])}, "is not a belief"),
        ({("Sky", "grey", "rain"): 0.8}, "is not a belief"),
        ({"Sky": Expert(1, 2)}, "is not a belief"),
        ({("Heat", "20"): Expert(1, 2)}, "no column 'Heat' with levels. There are: Sky, Wind"),
        ({("Sky", "grey", "snow"): Expert(1, 2)}, "no class 'snow'. There are: rain, sun"),
        ({("Wind", "strong"): Expert(1, 2)}, "'strong' is not a level of column 'Wind', which has 0, 1, 2"),
        ({("Wind", "1.5"): Expert(1, 2)}, "'1.5' is not a level"),
        ({("Sky", "grey"): Expert(0, 0)}, "m is 0"),
        ({("Sky", "grey"): Expert(1, 2), ("Sky", "red"): Expert(1, 3)}, "m is 3, but .* has 2 prior rows"),
        ({("Sky", "grey"): Expert(2, 3), ("Sky", "red"): Expert(2, 3)}, "n sum to 4, and m is 3"),
        ({("Sky", x): Expert(1, 5) for x in ("blue", "grey", "red")}, "n sum to 3, and m is 5"),
        ({("Wind", 1): Expert(1, 3), ("Wind", "1"): Expert(1, 3)}, "have a belief already"),
        ({"column": ["Sky"], "level": ["grey"], "class": ["rain"], "n": [4], "m": [3]}, "belief 1: Expert's n is 4"),
        ({"column": ["Sky"], "level": ["grey"], "n": ["many"], "m": [3]}, "belief 1: n is 'many' and m is 3"),
        ({"column": ["Sky", "Wind"], "level": ["grey"], "n": [1], "m": [3]}, "different lengths"),
        ({}, "no belief is given"),
        (3, "a CSV file or a mapping, not int"),
    ],
    ids=str,
)  # fmt: skip
def test_beliefs_that_make_no_sense_are_refused(beliefs, said):
    with pytest.raises(DataError, match=said):
        sc.priors.expert_prior(beliefs, MODEL)


def test_a_file_that_makes_no_sense_is_refused_by_its_line(tmp_path):
    path = tmp_path / "beliefs.csv"
    with pytest.raises(DataError, match="cannot be read"):
        sc.priors.expert_prior(path, MODEL)
    path.write_text("column,level,n\nSky,grey,1\n")
    with pytest.raises(DataError, match="no column 'm'"):
        sc.priors.expert_prior(path, MODEL)
    path.write_text("column,level,class,n,m\nSky,grey,rain,1,2\nSky,red,rain,3,2\n")
    with pytest.raises(DataError, match=r"line 3: Expert's n is 3. It is at most m, which is 2"):
        sc.priors.expert_prior(path, MODEL)


def test_a_model_without_classes_is_refused():
    for model in (sc.NaiveBayes(), sc.BayesNet([("Sky", "Wind")]).fit({"Sky": X["Sky"], "Wind": X["Wind"]})):
        with pytest.raises(DataError, match="fitted NaiveBayes or Mixture"):
            sc.priors.expert_prior(CELLS, model)
