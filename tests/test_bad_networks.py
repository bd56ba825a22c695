"""Networks that cannot be, tables that say nothing, and questions without an answer: refused by name, or answered."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pandas as pd
import pytest

import softcount as sc
from contract.networks import drawn
from explained import contributions
from softcount.errors import DataError, DataWarning
from softcount.estimators.result_frames import arrow_of as arrow
from softcount.networks.network import Graph, Network

TABLE = drawn(0, 60)
ROWS = TABLE[["a", "b", "c"]]
EDGES = [("a", "b"), ("b", "c")]


@pytest.fixture(scope="module")
def net() -> Any:
    return sc.BayesNet(EDGES).fit(ROWS)


@pytest.fixture(scope="module")
def mixed() -> Any:
    return sc.BayesNet([("a", "b"), ("a", "x")]).fit(TABLE)


# -- what is said of the network

SETTINGS: dict[str, tuple[dict[str, Any], str]] = {
    "a circle": ({"edges": [("a", "b"), ("b", "c"), ("c", "a")]}, "form a cycle"),
    "an edge to itself": ({"edges": [("a", "a")]}, "from 'a' to itself"),
    "an edge twice": ({"edges": [("a", "b"), ("a", "b")]}, "from 'a' to 'b' is given twice"),
    "an edge of three": ({"edges": [("a", "b", "c")]}, "an edge is a pair"),
    "an edge of text": ({"edges": ["ab"]}, "an edge is a pair"),
    "a number for an edge": ({"edges": [5]}, "an edge is a pair"),
    "a list for a name": ({"edges": [(["a"], "b")]}, "a pair of names"),
    "a number for edges": ({"edges": 5}, "edges are pairs"),
    "no edges": ({"edges": []}, "no edges are given"),
    "no edges in a mapping": ({"edges": {}}, "no edges are given"),
    "empty text": ({"edges": ""}, "A>B"),
    "half an edge": ({"edges": "a>"}, "A>B"),
    "a word with a slip": ({"edges": "tann"}, "neither a list of edges"),
    "a file that is not there": ({"edges": "nowhere.bif"}, "no such file"),
    "an unknown column": ({"edges": [("a", "height")]}, r"no column 'height'.*hidden=\{'height': 2\}"),
    "a class that is not there": ({"edges": "naive"}, "needs the class"),
    "a hidden column": ({"hidden": {"a": 2}}, "'a' is a column of the table"),
    "a hidden node of no edge": ({"hidden": {"h": 2}}, "'h' is in no edge"),
    "a hidden node while edges are looked for": ({"edges": "search", "hidden": {"h": 2}}, "'h' is in no edge"),
    "no levels": ({"edges": [("h", "a")], "hidden": {"h": 0}}, "'h' has a number of levels"),
    "fewer than no levels": ({"edges": [("h", "a")], "hidden": {"h": -1}}, "'h' has a number of levels"),
    "half a level": ({"edges": [("h", "a")], "hidden": {"h": 2.5}}, "'h' has a number of levels"),
    "a truth of levels": ({"edges": [("h", "a")], "hidden": {"h": True}}, "'h' has a number of levels"),
    "levels beyond all memory": ({"edges": [("h", "a")], "hidden": {"h": 10**12}}, "'h' has a number of levels"),
    "a word for levels": ({"edges": [("h", "a")], "hidden": {"h": "two"}}, "'h' has a number of levels"),
    "a level twice": ({"edges": [("h", "a")], "hidden": {"h": ["x", "x"]}}, "different names"),
    "hidden as text": ({"hidden": "h"}, "hidden is a mapping"),
    "hidden as a list": ({"hidden": ["h"]}, "hidden is a mapping"),
    "cuts that fall": ({"edges": [("x", "a")], "cut": {"x": [1.0, 0.0]}}, "rising numbers"),
    "cuts that are none": ({"edges": [("x", "a")], "cut": {"x": [np.nan]}}, "rising numbers"),
    "no intervals": ({"edges": [("x", "a")], "cut": {"x": 0}}, "rising numbers"),
    "cuts in words": ({"edges": [("x", "a")], "cut": {"x": "many"}}, "rising numbers"),
    "a cut of levels": ({"cut": {"a": 3}}, "'a', which is categorical"),
    "a cut of nothing": ({"cut": {"height": 3}}, "not a column"),
    "cut as a number": ({"cut": 5}, "cut is a mapping"),
    "an unknown criterion": ({"edges": "search", "criterion": "aic"}, "criterion='aic'"),
    "required and forbidden": (
        {"edges": "search", "required": [("a", "b")], "forbidden": [("a", "b")]},
        "from 'a' to 'b' is both required and forbidden",
    ),
    "a circle that is required": ({"edges": "search", "required": "a>b, b>a"}, "cycle"),
    "an unknown required edge": ({"edges": "search", "required": [("a", "height")]}, "no column 'height'"),
    "an unknown forbidden edge": ({"edges": "search", "forbidden": [("height", "a")]}, "no column 'height'"),
    "more required than may be": (
        {"edges": "search", "required": "a>c, b>c", "max_parents": 1},
        "'c' has 2 required parents",
    ),
    "half a parent": ({"edges": "search", "max_parents": 1.5}, "max_parents"),
    "fewer than no parents": ({"edges": "search", "max_parents": -1}, "max_parents"),
    "an unknown estimate": ({"estimate": "best"}, "estimate='best'"),
    "an unknown prior": ({"prior": "strong"}, "prior 'strong'"),
    "a negative prior": ({"prior": -1.0}, "0 or more"),
    "a prior of an unknown node": ({"prior": {"height": 1.0}}, "no node 'height'"),
    "a prior of another shape": ({"prior": {"b": [[1.0, 2.0]]}}, "table of node 'b'"),
    "a start in a word": ({"hidden": {"h": 2}, "edges": "h>a", "init": "best"}, "init is a network"),
    "a start of an unknown node": ({"hidden": {"h": 2}, "edges": "h>a", "init": {"height": [1.0]}}, "no node 'height'"),
    "a start of another shape": ({"hidden": {"h": 2}, "edges": "h>a", "init": {"a": [1.0]}}, "table of node 'a'"),
    "a start beyond one": ({"hidden": {"h": 2}, "edges": "h>a", "init": {"h": [0.7, 0.7]}}, "sum to one"),
    "half an iteration": ({"max_iter": 1.5}, "max_iter"),
    "no starts": ({"n_init": 0}, "n_init"),
    "a sample size that nothing uses": ({"equivalent_sample_size": 5.0}, "is for prior='bdeu'"),
    "a negative sample size": ({"equivalent_sample_size": -1.0}, "equivalent_sample_size"),
}


@pytest.mark.parametrize("name", SETTINGS)
def test_settings_that_make_no_sense_are_refused(name):
    settings, said = SETTINGS[name]
    with pytest.raises(DataError, match=said) as caught:
        sc.BayesNet(**({"edges": EDGES} | settings)).fit(TABLE)
    assert "\n" not in str(caught.value)


def test_a_class_of_no_edge_and_a_class_that_is_hidden_are_refused():
    with pytest.raises(DataError, match="class 'c' is in no edge"):
        sc.BayesNet([("a", "b")]).fit(ROWS, "c")
    with pytest.raises(DataError, match="'c' is a column"):
        sc.BayesNet(EDGES, {"c": 2}).fit(ROWS, "c")


def test_a_sparse_matrix_is_refused():
    from scipy import sparse

    with pytest.raises(DataError, match="sparse"):
        sc.BayesNet().fit(sparse.eye_array(4).tocsr())


# -- tables


def test_a_table_without_rows_or_columns_is_refused():
    with pytest.raises(DataError, match="at least one row"):
        sc.BayesNet(EDGES).fit(ROWS[:0])
    with pytest.raises(DataError, match="at least one column"):
        sc.BayesNet().fit(pd.DataFrame())


def test_one_row_is_a_network():
    found = sc.BayesNet(EDGES).fit(ROWS[:1])
    assert found.query("a") == {ROWS["a"][0]: 1.0}


def test_a_column_without_a_value_is_refused_where_it_is_named_and_left_out_where_it_is_not():
    blank = ROWS.assign(d=None, e=np.nan)
    for name in ("d", "e"):
        with pytest.raises(DataError, match=f"'{name}' has no value in any row"):
            sc.BayesNet([("a", name)]).fit(blank)
        with pytest.raises(DataError, match=f"'{name}' has no value in any row"):
            sc.BayesNet([(name, "a")]).fit(blank)
    found = sc.BayesNet().fit(blank)
    assert set(found.nodes) == {"a", "b", "c"}
    assert any("'d'" in note for note in found.notes_)


@pytest.mark.parametrize("value", ["same", 3.5, True])
def test_a_column_of_one_value_is_certain(value):
    found = sc.BayesNet([("a", "d"), ("d", "b")]).fit(ROWS.assign(d=value))
    assert found.query("d") == {value: 1.0}
    plain = sc.BayesNet([("a", "d"), ("d", "b")]).fit(ROWS.assign(d=value), sample_weight=[1.0] * len(ROWS))
    assert plain.query("b", {"d": value}) == pytest.approx(found.query("b"), rel=1e-12)


def test_a_class_of_one_value_is_certain():
    found = sc.BayesNet("tan").fit(ROWS, ["k"] * len(ROWS))
    np.testing.assert_allclose(found.predict_proba(ROWS), 1.0, rtol=1e-15)


def test_all_classes_unknown_are_refused():
    with pytest.raises(DataError):
        sc.BayesNet("naive").fit(ROWS, [None] * len(ROWS))


def test_rows_must_have_the_columns_of_the_network(net):
    with pytest.raises(DataError):
        sc.BayesNet([(0, 1)]).fit(np.zeros((5, 3)) + np.arange(5)[:, None] % 2).predict(np.zeros((2, 2)), 0)
    with pytest.warns(DataWarning, match="'c'"):
        net.predict(ROWS[["a", "b"]], "a")


# -- names


ODD = [
    "(class)",
    "(prior)",
    "a b",
    " ",
    "ROOT",
    "(groups)",
    "row",
    "score",
    "naïve, 名",
    "a>b",
    "reason",
    "probability",
]


@pytest.mark.parametrize("first", ODD)
def test_odd_names_are_names(first, tmp_path):
    second = ODD[(ODD.index(first) + 1) % len(ODD)]
    plain = sc.BayesNet([("a", "b"), ("a", "c")]).fit(ROWS)
    rows = ROWS.rename(columns={"a": first, "b": second})
    found = sc.BayesNet([(first, second), (first, "c")]).fit(rows)
    assert found.query(second, {first: "yes"}) == plain.query("b", {"a": "yes"})
    pieces, wanted = (contributions(m.explain(r, "c")).to_pandas() for m, r in ((found, rows), (plain, ROWS)))
    np.testing.assert_array_equal(pieces.to_numpy(), wanted.to_numpy())
    assert pieces.columns[0] == ("((prior))" if "(prior)" in (first, second) else "(prior)")
    odd, usual = (arrow(m.anomalies(r, 3)).to_pandas() for m, r in ((found, rows), (plain, ROWS)))
    np.testing.assert_array_equal(odd.iloc[:, 3:].to_numpy(), usual.iloc[:, 3:].to_numpy())
    assert arrow(found.sample(3, random_state=0)).column_names == [first, second, "c"]
    found.save(tmp_path / "odd.sc")
    assert sc.load(tmp_path / "odd.sc").query(second) == plain.query("b")
    found.write(tmp_path / "odd.bif")
    assert sc.BayesNet.read(tmp_path / "odd.bif").query(second) == pytest.approx(plain.query("b"), rel=1e-12)


def test_a_class_without_a_name_stands_back_behind_columns():
    rows = ROWS[["a", "b"]].rename(columns={"a": "(class)"})
    found = sc.BayesNet("tan").fit(rows, ROWS["c"].tolist())
    assert set(found.nodes) == {"((class))", "(class)", "b"}
    plain = sc.BayesNet("tan").fit(ROWS, "c")
    np.testing.assert_allclose(found.predict_proba(rows), plain.predict_proba(ROWS), rtol=1e-12)


def test_columns_of_an_array_are_numbers():
    codes = np.stack([pd.factorize(ROWS[name], sort=True)[0] for name in "abc"], axis=1)
    found = sc.BayesNet([(0, 1), (1, 2)]).fit(codes)
    plain = sc.BayesNet(EDGES).fit(ROWS)
    assert found.nodes == [0, 1, 2] and not hasattr(found, "feature_names_in_")
    assert list(found.query(2, {0: 1}).values()) == list(plain.query("c", {"a": "yes"}).values())
    with pytest.raises(DataError, match="no column '0'"):
        sc.BayesNet("0>1").fit(codes)
    labelled = sc.BayesNet([("(class)", 0), ("(class)", 1)]).fit(codes[:, :2], codes[:, 2])
    named = sc.BayesNet([("c", "a"), ("c", "b")]).fit(ROWS, "c")
    np.testing.assert_array_equal(labelled.predict_proba(codes[:, :2]), named.predict_proba(ROWS))


def test_a_frame_may_have_numbers_for_names():
    frame = ROWS.rename(columns={"a": 7, "b": 3, "c": 5})
    found = sc.BayesNet([(7, 3), (3, 5)]).fit(frame)
    assert found.query(5, {7: "yes"}) == sc.BayesNet(EDGES).fit(ROWS).query("c", {"a": "yes"})


# -- questions

QUESTIONS: dict[str, tuple[Any, Any, str]] = {
    "an unknown node": ("height", None, "no node 'height'"),
    "an unknown node among several": (["a", "height"], None, "no node 'height'"),
    "no node": ([], None, "different nodes"),
    "a node twice": (["a", "a"], None, "different nodes"),
    "unknown evidence": ("a", {"height": 1}, "no node 'height'"),
    "asked and given": ("a", {"a": "yes"}, "both `of` and given"),
    "a set of unknown levels": ("a", {"b": {"low", "lower"}}, "no category 'lower'"),
    "a likelihood of an unknown level": ("a", {"b": {"lower": 1.0}}, "no category 'lower'"),
    "a negative likelihood": ("a", {"b": {"low": -1.0}}, "0 or more"),
    "a likelihood without end": ("a", {"b": {"low": np.inf}}, "0 or more"),
    "a likelihood in words": ("a", {"b": {"low": "much"}}, "0 or more"),
    "a likelihood of nothing": ("a", {"b": {"low": 0.0}}, "none of its levels possible"),
    "an empty set": ("a", {"b": set()}, "none of its levels possible"),
    "a range of words": ("a", {"b": (1, 2)}, "no numbers for levels"),
    "evidence that is none": ("a", ["b"], "given is a mapping.*of type list"),
}


@pytest.mark.parametrize("name", QUESTIONS)
def test_questions_that_make_no_sense_are_refused(net, name):
    of, given, said = QUESTIONS[name]
    with pytest.raises(DataError, match=said):
        net.query(of, given)


NUMBERS: dict[str, tuple[Any, str]] = {
    "a range that falls": ((2.0, 1.0), "holds nothing"),
    "a set of words": ({"tall", 2.0}, "holds numbers, and 'tall' is not a number"),
    "a word": ("tall", "'tall'"),
    "no number": (np.inf, "infinite"),
    "beyond all rows": (1e200, "probability zero"),
    "a likelihood": ({1.0: 0.5}, "give one, or a range"),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_that_make_no_sense_are_refused(mixed, name):
    given, said = NUMBERS[name]
    with pytest.raises(DataError, match=said):
        mixed.query("a", {"x": given})


@pytest.mark.parametrize("ask", [lambda net, given: net.query("a", given), lambda net, given: net.most_probable(given)])
def test_a_level_nobody_met_is_refused_with_those_there_are(net, ask):
    for given in ({"b": "lower"}, {"b": {"lower"}}, {"b": {"lower": 0.5}}):
        with pytest.raises(DataError, match=r"node 'b' has no category 'lower'\. Did you mean 'low'\?"):
            ask(net, given)
    with pytest.raises(DataError, match="has no category 'lower'"):
        net.sample(3, given={"b": "lower"})


def test_what_is_no_number_is_refused(mixed):
    with pytest.raises(DataError, match="'x' holds numbers"):
        mixed.query("a", {"x": "tall"})
    visits = sc.BayesNet([("a", "k")], kinds={"k": "poisson"}).fit({"a": ["x", "y", "x"], "k": [1, 2, 3]})
    with pytest.raises(DataError, match=r"'k' is a count.*-3"):
        visits.query("a", {"k": -3})


def test_a_joint_answer_about_a_number_is_refused(mixed):
    with pytest.raises(DataError, match="each=True"):
        mixed.query(["a", "x"])
    with pytest.raises(DataError, match="has no levels"):
        mixed.predict_proba(TABLE, "x")
    with pytest.raises(DataError, match="has no levels"):
        mixed.explain(TABLE, "x")
    with pytest.raises(DataError, match="has no table of levels"):
        mixed.table("x")
    with pytest.raises(DataError, match="tables of categories only"):
        mixed.write("never.bif")


def test_which_node_is_predicted_must_be_said(net):
    with pytest.raises(DataError, match="name the node to predict"):
        net.predict(ROWS)
    with pytest.raises(DataError, match="no node 'height'"):
        net.predict(ROWS, "height")


@pytest.fixture(scope="module")
def strict() -> Any:
    """A network in which some things cannot be: b follows a, c follows b."""
    rows = pd.DataFrame({"a": ["n", "y"] * 5, "b": ["n", "y"] * 5, "c": ["n", "y"] * 5})
    return sc.BayesNet(EDGES, estimate="ml").fit(rows)


def test_evidence_that_cannot_be_is_refused_everywhere(strict):
    for given in ({"a": "n", "c": "y"}, {"a": {"n": 1.0}, "c": ["y"]}):
        with pytest.raises(DataError, match="probability zero"):
            strict.query("b", given)
        with pytest.raises(DataError, match="probability zero"):
            strict.most_probable(given)
        with pytest.raises(DataError, match="probability zero"):
            strict.sample(3, given=given)
    rows = pd.DataFrame({"a": ["n", "n"], "b": ["n", None], "c": ["n", "y"]})
    with pytest.raises(DataError, match="row 2 has probability zero"):
        strict.predict(rows, "b")
    with pytest.raises(DataError, match="probability zero"):
        strict.explain(rows, "b")
    with pytest.raises(DataError, match="row 2 has probability zero"):
        strict.impute(rows)
    np.testing.assert_array_equal(strict.score_samples(rows), [np.log(0.5), -np.inf])
    assert strict.anomaly_score(rows)[1] == np.inf


def test_a_number_is_not_set_from_outside_nor_an_unknown_level(mixed):
    with pytest.raises(DataError, match="'x' is a number"):
        mixed.do(x=1.0)
    with pytest.raises(DataError, match="no node 'height'"):
        mixed.do(height=1)
    with pytest.raises(DataError, match="no category 'maybe'"):
        mixed.do(a="maybe")


# -- too large


def test_a_joint_table_too_large_is_refused_before_it_is_allocated():
    rng = np.random.default_rng(0)
    table = {f"x{j}": rng.integers(0, 4, 50).astype(str).tolist() for j in range(20)}
    tracemalloc.start()
    try:
        with pytest.raises(DataError, match=r"[0-9,]{13,} cells"):
            sc.BayesNet.joint(table, ["u", "v"] * 25)
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert most < 50_000_000, f"{most:,} bytes were asked for before the refusal"


def test_a_network_too_dense_to_compile_says_what_it_would_cost():
    """A layer of forty causes, each pair with an effect: no order makes it a small tree."""
    causes = [f"c{i}" for i in range(40)]
    edges = [(a, f"{a}{b}") for i, a in enumerate(causes) for b in causes[i + 1 :]]
    edges += [(b, f"{a}{b}") for i, a in enumerate(causes) for b in causes[i + 1 :]]
    graph = Graph.of(edges, causes)
    shapes = [[2] * (len(parents) + 1) for parents in graph.parents]
    network = Network(graph, [["n", "y"]] * len(graph.names), [np.full(shape, 0.5) for shape in shapes])
    dense = sc.BayesNet._of_network(network)
    seen = {name: "y" for name in graph.names if name not in causes}
    with pytest.raises(sc.SoftcountError, match=r"[0-9]"):
        dense.query("c0", seen)


# -- other networks


def test_only_a_network_of_the_same_edges_is_merged(net):
    with pytest.raises(DataError, match="the two networks differ"):
        net.merge(sc.BayesNet([("b", "a"), ("b", "c")]).fit(ROWS))
    with pytest.raises(DataError, match="not with NaiveBayes"):
        net.merge(sc.NaiveBayes().fit(ROWS, "c"))
    cut = sc.BayesNet([("x", "a")], cut={"x": [0.0]}).fit(TABLE)
    with pytest.raises(DataError, match="cut at other numbers"):
        cut.merge(sc.BayesNet([("x", "a")], cut={"x": [1.0]}).fit(TABLE))


def test_rows_of_an_unknown_class_are_not_forgotten():
    model = sc.BayesNet("naive").fit(ROWS, "c")
    with pytest.raises(DataError, match="row 1 has the class 'other'"):
        model.forget(ROWS[:3].assign(c="other"), "c")


def test_scores_are_of_known_classes():
    model = sc.BayesNet("naive").fit(ROWS, "c")
    assert model.score(ROWS, "c") == model.score(ROWS, ROWS["c"]) == np.mean(model.predict(ROWS) == ROWS["c"])
    with pytest.raises(DataError, match="label of row 1 is unknown"):
        model.score(ROWS, [None, *ROWS["c"][1:]])


@pytest.mark.parametrize(
    ("edges", "setting", "said"),
    [
        ([("a", "c")], {"forbidden": [("a", "c")]}, "forbidden: the network has the edge from 'a' to 'c'"),
        ([("a", "c")], {"required": [("b", "c")]}, "required: the network has no edge from 'b' to 'c'"),
        ([("a", "c"), ("b", "c")], {"max_parents": 1}, "max_parents=1, but 'c' has 2 parents"),
        ("chow-liu", {"max_parents": 0}, "max_parents=0, but"),
    ],
)
def test_edges_that_break_a_setting_of_the_search_are_refused(edges, setting, said):
    with pytest.raises(DataError, match=said):
        sc.BayesNet(edges, **setting).fit(ROWS)


# -- networks as priors and starts


def test_a_fitted_network_as_prior_has_its_own_weight():
    older = sc.BayesNet([("a", "c")]).fit(ROWS)
    with pytest.raises(DataError, match="does not go with a fitted network as the prior"):
        sc.BayesNet([("a", "c")], prior=older, equivalent_sample_size=50.0).fit(ROWS)
    assert sc.BayesNet([("a", "c")], prior=older).fit(ROWS).nodes == ["a", "c"]


def test_the_network_that_is_a_prior_may_name_parents_and_levels_in_another_order():
    levels = {"a": ["yes", "no"], "b": ["top", "low", "mid"], "c": ["w", "u", "v"]}
    graph = Graph.of([("b", "c"), ("a", "c")], ["b", "a", "c"])
    rng = np.random.default_rng(1)
    shares = {"a": rng.dirichlet([1, 1]), "b": rng.dirichlet([1] * 3), "c": rng.dirichlet([1] * 3, (3, 2))}
    expert = Network(graph, [levels[name] for name in graph.names], [shares[name] for name in graph.names])
    found = sc.BayesNet([("a", "c"), ("b", "c")], prior=expert, equivalent_sample_size=1e9).fit(ROWS)
    for i, b in enumerate(levels["b"]):
        for j, a in enumerate(levels["a"]):
            said = dict(zip(levels["c"], shares["c"][i, j], strict=True))
            assert found.query("c", {"a": a, "b": b}) == pytest.approx(said, rel=1e-6)


def test_an_older_network_is_a_prior_of_its_counts():
    older = sc.BayesNet(EDGES).fit(ROWS[:40])
    found = sc.BayesNet(EDGES, prior=older).fit(ROWS[40:])
    whole = sc.BayesNet(EDGES).fit(ROWS)
    for node in "abc":
        np.testing.assert_allclose(found.params_[node]["probability"], whole.params_[node]["probability"], rtol=1e-12)
    turned = sc.BayesNet([("b", "c"), ("a", "b")], prior=older).fit(ROWS[40:])
    assert turned.query("c", {"a": "yes"}) == pytest.approx(whole.query("c", {"a": "yes"}), rel=1e-12)


@pytest.mark.parametrize("way", ["partial_fit", "merge", "forget"])
def test_what_an_expert_imagined_survives_more_rows_and_fewer(way, tmp_path):
    expert = sc.BayesNet(EDGES, prior=5.0).fit(ROWS[:20])
    whole = sc.BayesNet(EDGES, prior=expert).fit(ROWS[20:])
    found = sc.BayesNet(EDGES, prior=expert).fit(ROWS[20:50] if way != "forget" else ROWS)
    if way == "merge":
        found = found.merge(sc.BayesNet(EDGES).fit(ROWS[50:]))
    else:
        getattr(found, way)(ROWS[50:] if way == "partial_fit" else ROWS[:20])
    for node in "abc":
        np.testing.assert_allclose(found.params_[node]["probability"], whole.params_[node]["probability"], rtol=1e-12)


def test_the_tables_of_a_file_survive_further_rows(net, tmp_path):
    net.write(tmp_path / "net.bif")
    found = sc.BayesNet.read(tmp_path / "net.bif").partial_fit(ROWS)
    said = sc.BayesNet(EDGES, prior=sc.BayesNet.read(tmp_path / "net.bif")).fit(ROWS)
    assert found.query("c", {"a": "yes"}) == pytest.approx(said.query("c", {"a": "yes"}), rel=1e-12)


def test_a_start_may_be_a_network_of_any_order_of_parents():
    lost = drawn(3, 60, 0.2)[["a", "b", "c"]]
    older = sc.BayesNet([("a", "c"), ("b", "c")]).fit(ROWS)
    how = {"init": older, "max_iter": 0}
    one, other = (sc.BayesNet(edges, **how).fit(lost) for edges in ([("a", "c"), ("b", "c")], [("b", "c"), ("a", "c")]))
    assert one.log_likelihood_ == pytest.approx(older.log_likelihood(lost), rel=1e-12)
    assert other.log_likelihood_ == pytest.approx(one.log_likelihood_, rel=1e-12)


def test_a_start_in_which_a_row_cannot_be_is_refused_by_the_row():
    with pytest.raises(DataError, match=r"row [0-9]+ has probability zero under the network that EM starts from"):
        how = {"hidden": {"h": 2}, "init": {"a": [[1.0, 0.0], [1.0, 0.0]]}, "estimate": "ml"}
        sc.BayesNet([("h", "a"), ("h", "b")], **how).fit(ROWS)
