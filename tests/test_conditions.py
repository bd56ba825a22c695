"""Ranges, sets and negation in what is given: held against sums and integrals of plain answers."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate
from scipy.stats import norm

import softcount as sc
from contract.family_examples import EXAMPLES
from softcount import conditions
from softcount.errors import DataError
from softcount.fitted.conditions import Condition, Piece, number_of, share_within, within

RNG = np.random.default_rng(5)
ROWS = 400
SORT = RNG.integers(0, 2, ROWS)
TABLE = pd.DataFrame(
    {
        "length": RNG.normal(3 + SORT, 1.0),
        "price": np.exp(RNG.normal(5 + SORT, 0.8)),
        "visits": RNG.poisson(3 + 40 * SORT),
        "brakes": np.where(RNG.random(ROWS) < 0.3 + 0.4 * SORT, "disc", RNG.choice(["rim", "drum"], ROWS)),
        "gears": RNG.choice([1, 3, 7, 21], ROWS, p=[0.4, 0.3, 0.2, 0.1]),
        "wide": RNG.normal(0, 1 + SORT),
    }
)
TABLE["long"] = TABLE["wide"] + RNG.normal(0, 0.5, ROWS)
KINDS = {"visits": "poisson", "price": "lognormal", ("wide", "long"): "multinormal"}
LEVELS = {"brakes": ["disc", "drum", "rim"], "gears": [1, 3, 7, 21]}


@pytest.fixture(scope="module")
def bayes() -> sc.NaiveBayes:
    return sc.NaiveBayes(kinds=KINDS).fit(TABLE, np.array(["city", "road"])[SORT])


@pytest.fixture(scope="module")
def joint() -> sc.NaiveBayes:
    kinds = {"price": "ignore", "wide": "ignore", "long": "ignore", ("brakes", "gears"): "joint"}
    return sc.NaiveBayes(kinds=kinds).fit(TABLE, np.array(["city", "road"])[SORT])


@pytest.fixture(scope="module")
def net() -> sc.BayesNet:
    frame = TABLE[["length", "visits", "brakes", "gears"]].assign(sort=np.array(["city", "road"])[SORT])
    edges = [("sort", name) for name in ("length", "visits", "brakes", "gears")]
    return sc.BayesNet(edges, kinds={"visits": "poisson", "length": "normal"}).fit(frame)


def summed(model: Any, of: str, column: str, levels: list[Any], known: dict[str, Any]) -> dict[Any, float]:
    """The answer where a column is one of some levels, from answers where it is each of them."""
    shares = model.query(column, known)
    parts = [(shares[level], model.query(of, {**known, column: level})) for level in levels]
    total = sum(share for share, _ in parts)
    return {name: sum(share * answer[name] for share, answer in parts) / total for name in parts[0][1]}


def close(one: dict[Any, float], other: dict[Any, float], rel: float = 1e-9) -> None:
    assert one == pytest.approx(other, rel=rel)


SETS: list[tuple[str, Condition | list[Any], list[Any]]] = [
    ("brakes", conditions.any_of("disc", "rim"), ["disc", "rim"]),
    ("brakes", ["disc", "rim"], ["disc", "rim"]),
    ("brakes", conditions.not_("disc"), ["drum", "rim"]),
    ("brakes", conditions.not_("disc", "rim"), ["drum"]),
    ("gears", conditions.between(2, 7), [3, 7]),
    ("gears", conditions.above(3), [7, 21]),
    ("gears", conditions.below(3), [1]),
    ("gears", conditions.between(low=3), [3, 7, 21]),
    ("gears", conditions.not_(conditions.between(2, 7)), [1, 21]),
    ("gears", conditions.any_of(1, conditions.above(7)), [1, 21]),
]


@pytest.mark.parametrize("made", ["bayes", "joint", "net"])
@pytest.mark.parametrize(("column", "condition", "levels"), SETS, ids=str)
def test_a_set_of_levels_is_the_sum_over_them(made, column, condition, levels, request) -> None:
    model = request.getfixturevalue(made)
    for of in ("sort" if made == "net" else "(class)", "brakes" if column == "gears" else "gears"):
        for known in ({}, {"length": 3.5}):
            close(model.query(of, {**known, column: condition}), summed(model, of, column, levels, known))


def test_two_sets_in_one_block_are_the_sum_over_both(joint) -> None:
    given_both = {"brakes": conditions.not_("disc"), "gears": conditions.above(1)}
    pairs = [{"brakes": b, "gears": g} for b, g in product(["drum", "rim"], [3, 7, 21])]
    shares = [
        joint.query("brakes", {})[p["brakes"]] * joint.query("gears", {"brakes": p["brakes"]})[p["gears"]]
        for p in pairs
    ]
    answers = [joint.query("(class)", pair)["road"] for pair in pairs]
    assert joint.query("(class)", given_both)["road"] == pytest.approx(np.dot(shares, answers) / sum(shares), rel=1e-9)


RANGES = {
    "length": [
        (2.0, 3.0),
        conditions.above(4.5),
        conditions.below(1.0),
        conditions.not_(conditions.between(2.0, 4.0)),
        conditions.any_of(conditions.between(1, 2), conditions.between(1.5, 4)),
    ],
    "price": [(100.0, 200.0), conditions.above(1000), conditions.between(high=50)],
    "wide": [(0.0, 0.5), conditions.below(-1.0)],
}


CASES = [("bayes", c, x) for c, own in RANGES.items() for x in own] + [("net", "length", x) for x in RANGES["length"]]


@pytest.mark.parametrize(("made", "column", "condition"), CASES, ids=str)
def test_a_range_is_the_integral_over_it(made, column, condition, request) -> None:
    model = request.getfixturevalue(made)
    of = "sort" if made == "net" else "(class)"
    pieces = (condition if isinstance(condition, Condition) else conditions.between(*condition)).pieces(number_of)
    density, ends = model.query(column), (1e-6 if column == "price" else -12.0, 1e5 if column == "price" else 15.0)

    def share(x: float) -> float:
        return density.pdf(x) * model.query(of, {column: x})["road"]

    found = []
    for term in (share, density.pdf):
        edges = [(max(p.low, ends[0]), min(p.high, ends[1])) for p in pieces]
        found.append(sum(integrate.quad(term, *edge, limit=200)[0] for edge in edges))
    assert model.query(of, {column: condition})["road"] == pytest.approx(found[0] / found[1], rel=1e-5)


@pytest.mark.parametrize("made", ["bayes", "net"])
def test_whole_numbers_are_counted_one_by_one(made, request) -> None:
    model = request.getfixturevalue(made)
    of, pmf = ("sort" if made == "net" else "(class)"), model.query("visits").pdf
    for condition, held in (
        (conditions.between(2, 4), [2, 3, 4]),
        (conditions.below(2), [0, 1]),
        ([3, 30], [3, 30]),
        ((1.5, 3.2), [2, 3]),
    ):
        shares = [pmf(float(n)) for n in held]
        wanted = np.dot(shares, [model.query(of, {"visits": n})["road"] for n in held]) / sum(shares)
        assert model.query(of, {"visits": condition})["road"] == pytest.approx(wanted, rel=1e-9)


def test_one_of_several_numbers_is_told_by_their_densities(bayes) -> None:
    density = bayes.query("length").pdf
    shares = [density(2.0), density(5.0)]
    answers = [bayes.query("(class)", {"length": x})["road"] for x in (2.0, 5.0)]
    wanted = np.dot(shares, answers) / sum(shares)
    assert bayes.query("(class)", {"length": [2.0, 5.0]})["road"] == pytest.approx(wanted, rel=1e-9)


def test_a_number_that_is_not_one_value_says_nothing(bayes) -> None:
    close(bayes.query("(class)", {"length": conditions.not_(3.0)}), bayes.query("(class)"))


def test_far_out_no_digit_is_lost(bayes) -> None:
    """1 - cdf is exactly 0 there; the ratio of two tails is not."""
    params = bayes.params_["length"]
    tails = norm.sf(18.0, params["mean"], np.sqrt(params["variance"])) * bayes.class_prior_
    assert tails.max() < 1e-18
    assert bayes.query("(class)", {"length": conditions.above(18)})["road"] == pytest.approx(
        tails[1] / tails.sum(), rel=1e-9
    )


@pytest.mark.parametrize("made", ["bayes", "joint", "net"])
def test_without_a_column_every_column_is_answered(made, request) -> None:
    model = request.getfixturevalue(made)
    known = {"brakes": conditions.not_("disc"), "length": (2.0, 4.0)}
    found = model.query(given=known)
    columns = {
        "bayes": ["(class)", "price", "visits", "gears", "wide", "long"],
        "joint": ["(class)", "visits", "gears"],
    }
    assert list(found) == columns.get(made, ["sort", "visits", "gears"])
    for of, answer in found.items():
        alone = model.query(of, known)
        if isinstance(answer, dict):
            close(answer, alone)
        else:
            assert (answer.mean, answer.quantile(0.5)) == (alone.mean, alone.quantile(0.5))


@pytest.mark.parametrize("made", ["bayes", "joint", "net"])
def test_samples_keep_to_what_is_given_and_follow_the_query(made, request) -> None:
    model = request.getfixturevalue(made)
    known = {"brakes": conditions.not_("disc"), "gears": conditions.between(2, 7), "length": (2.5, 4.5)}
    rows = model.sample(4000, known, random_state=1)
    assert set(rows["brakes"]) == {"drum", "rim"} and set(rows["gears"]) == {3, 7}
    assert rows["length"].between(2.5, 4.5).all()
    share = model.query("gears", {k: v for k, v in known.items() if k != "gears"})
    wanted = share[7] / (share[3] + share[7])
    assert (rows["gears"] == 7).mean() == pytest.approx(wanted, abs=4 * np.sqrt(wanted * (1 - wanted) / 4000))


def test_a_named_target_may_be_any_but_one() -> None:
    frame = TABLE[["length", "brakes"]].assign(
        sort=np.where(RNG.random(ROWS) < 0.3, "tandem", np.array(["city", "road"])[SORT])
    )
    model = sc.NaiveBayes().fit(frame, "sort")
    close(
        model.query("brakes", {"sort": conditions.not_("city")}),
        summed(model, "brakes", "sort", ["road", "tandem"], {}),
    )


REFUSED = [
    ({"brakes": conditions.any_of("dsc")}, "column 'brakes' has no category 'dsc'. Did you mean 'disc'"),
    ({"brakes": (1, 2)}, "column 'brakes' has no numbers for levels"),
    ({"length": (5, 1)}, "holds nothing"),
    ({"length": "x"}, "^column 'length' holds numbers, and 'x' is not a number.$"),
    ({"length": conditions.between("x", 2)}, "column 'length' holds numbers, and 'x' is not a number"),
    ({"length": conditions.any_of(None)}, "column 'length' holds numbers, and None is not a number"),
    ({"nope": (1, 2)}, "no column 'nope'"),
    ({"Gears": (1, 2)}, "no column 'Gears'. Did you mean 'gears'"),
    ({"gears": conditions.between(8, 20)}, "leaves none of its levels possible"),
    ({"wide": (0, 1), "long": (0, 1)}, "same block: together they have no exact answer"),
    ({"visits": conditions.below(0)}, "probability zero"),
]


@pytest.mark.parametrize(("known", "said"), REFUSED, ids=str)
def test_what_cannot_be_is_refused_in_words(bayes, known, said) -> None:
    with pytest.raises(DataError, match=said):
        bayes.query("(class)", known)


def test_a_range_beside_its_block_is_refused_but_tells_other_columns(bayes) -> None:
    with pytest.raises(DataError, match="of the same block"):
        bayes.query("long", {"wide": (0, 1)})
    assert "long" not in bayes.query(given={"wide": (0, 1)})


def test_text_takes_no_condition() -> None:
    mail = sc.NaiveBayes(kinds={"note": "text"}).fit(
        {"note": ["win money", "see you"] * 5, "n": [1.5, 2.5] * 5}, ["a", "b"] * 5
    )
    with pytest.raises(DataError, match="is text: the given value must be one document"):
        mail.query("n", {"note": ["win", "see"]})


@pytest.mark.parametrize(
    "call", [conditions.between, conditions.any_of, conditions.not_], ids=lambda call: call.__name__
)
def test_a_condition_of_nothing_is_refused(call) -> None:
    with pytest.raises(DataError, match=r"between needs at least one end|any_of needs"):
        call()


# -- the line of numbers

ENDS = st.floats(-5, 5).map(lambda x: round(x * 2) / 2)
SIMPLE = st.one_of(
    st.tuples(ENDS, ENDS).map(lambda two: conditions.between(min(two), max(two))),
    ENDS.map(conditions.above), ENDS.map(conditions.below), ENDS.map(conditions.any_of),
)  # fmt: skip
NESTED = st.recursive(
    SIMPLE,
    lambda own: st.one_of(
        own.map(conditions.not_), st.lists(own, min_size=1, max_size=3).map(lambda x: conditions.any_of(*x))
    ),
)


def holds(condition: Any, x: float) -> bool:
    """Whether a condition allows a number, straight from what it says."""
    kind = type(condition).__name__
    if kind == "Not":
        return not holds(condition.condition, x)
    if kind == "AnyOf":
        return any(holds(value, x) if isinstance(value, Condition) else value == x for value in condition.values)
    low = condition.low is None or (x >= condition.low if condition.low_in else x > condition.low)
    return low and (condition.high is None or (x <= condition.high if condition.high_in else x < condition.high))


@settings(max_examples=150, deadline=None)
@given(NESTED)
def test_pieces_hold_what_the_condition_allows_and_do_not_overlap(condition: Condition) -> None:
    pieces, grid = condition.pieces(number_of), np.arange(-6, 6.1, 0.25)
    assert within(pieces, grid).tolist() == [holds(condition, x) for x in grid]
    assert not any(one.both(other) for i, one in enumerate(pieces) for other in pieces[:i])


@pytest.mark.parametrize("known", [0.0, conditions.any_of(0.0, 7.5), conditions.not_(conditions.above(0.0))], ids=str)
def test_a_spike_has_a_probability_beside_which_densities_are_nothing(known) -> None:
    rain = np.where(RNG.random(ROWS) < 0.2 + 0.6 * SORT, 0.0, np.exp(RNG.normal(size=ROWS)))
    model = sc.NaiveBayes(kinds={"rain": sc.families.Spiked("lognormal")}).fit({"rain": rain}, SORT)
    spikes = model.params_["rain"]["spike"] * model.class_prior_
    assert model.query("(class)", {"rain": known})[1] == pytest.approx(spikes[1] / spikes.sum(), rel=1e-9)


# -- families

NUMERIC = [
    x for x in EXAMPLES if not x.family.facts.block and x.family.facts.kind.numeric and not x.family.facts.kind.coded
]


VALUES = np.tile([1.0, 2.0, 3.0, 5.0, 8.0, 13.0, 21.0, 4.0], 5)  # numbers that any family of numbers takes


@pytest.mark.parametrize("family", list(dict.fromkeys(x.family for x in NUMERIC)), ids=repr)
def test_what_is_above_and_below_makes_one(family) -> None:
    for estimate in ("mean", "predictive"):
        model = sc.NaiveBayes(kinds={"x": family}, estimate=estimate).fit({"x": VALUES}, [0, 1, 1, 0, 1] * 8)
        answer = model.query("x")
        for x in (0.5, 2.0, 4.5, 30.0):
            above, below = answer.density.cdf(x, above=True), answer.density.cdf(x)
            np.testing.assert_allclose(above + below, 1.0, rtol=1e-11)
        parts = [Piece(-np.inf, 3.0), Piece(3.0, 8.0, False), Piece(8.0, np.inf, False)]
        np.testing.assert_allclose(share_within(answer.density, parts), 1.0, rtol=1e-11)


def test_a_column_of_hidden_parts_answers_as_its_parameters_say() -> None:
    model = sc.NaiveBayes(kinds={"x": sc.families.Mixed(parts=2)}).fit({"x": VALUES}, [0, 1, 1, 0, 1] * 8)
    own, answer = model.params_["x"], model.query("x")
    weights = model.class_prior_[:, None] * own["share"]
    assert answer.mean == pytest.approx((weights * own["mean"]).sum())
    wanted = (weights * norm.cdf(6.0, own["mean"], np.sqrt(own["variance"]))).sum()
    assert answer.cdf(6.0) == pytest.approx(wanted) and answer.cdf(answer.quantile(0.3)) == pytest.approx(0.3)
