"""Averages of models: exact where everything can be added up, refused where models are not of one table."""

import math
from itertools import product

import numpy as np
import pytest
from scipy.special import gammaln, logsumexp

import softcount as sc
from softcount.bayes.evidence import stacking_weights
from softcount.estimators.result_frames import arrow_of as arrow

ROWS = {
    "Sky": ["grey", "grey", "blue", "blue", "grey", "blue", "grey", "blue", "blue", "grey"],
    "Rain": ["yes", "yes", "no", "no", "yes", "no", "no", "no", "yes", "yes"],
    "Wet": ["yes", "yes", "no", "no", "yes", "no", "yes", "no", "yes", "no"],
}
GRAPHS = [[("Sky", "Rain"), ("Rain", "Wet")], [("Sky", "Rain"), ("Sky", "Wet")], {"Sky": [], "Rain": [], "Wet": []}]
LEVELS = [["blue", "grey"], ["no", "yes"], ["no", "yes"]]


def nets(rows):
    return [sc.BayesNet(graph).fit(rows) for graph in GRAPHS]


def one_more(row):
    return {key: [*ROWS[key], cell] for key, cell in zip(ROWS, row, strict=True)}


def drawn_table(rows=60, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.choice(["a", "b"], rows)
    x = np.exp(rng.normal(np.where(y == "a", 0.0, 0.8), 0.5))
    c = np.where(rng.random(rows) < 0.7, y, rng.choice(["a", "b"], rows))
    d = np.where(rng.random(rows) < 0.8, c, rng.choice(["a", "b"], rows))
    return {"x": x, "c": c.tolist(), "d": d.tolist()}, y.tolist()


def test_a_new_row_is_as_likely_as_all_graphs_together_make_it():
    """P(row | rows) is P(rows and row) / P(rows), each the sum over the graphs: nothing is approximated."""
    both = sc.average(nets(ROWS))
    before = logsumexp([net.log_evidence_ for net in both.models_])
    for row in product(*LEVELS):
        after = logsumexp([net.log_evidence_ for net in nets(one_more(row))])
        found = both.score_samples({key: [cell] for key, cell in zip(ROWS, row, strict=True)})[0]
        assert found == pytest.approx(after - before, abs=1e-10)


def test_what_is_predicted_follows_from_the_averaged_joint():
    both = sc.average(nets(ROWS))
    table = {key: list(cells) for key, cells in zip(ROWS, zip(*product(*LEVELS), strict=True), strict=True)}
    joint = np.exp(both.score_samples(table)).reshape(2, 2, 2)
    assert joint.sum() == pytest.approx(1.0, abs=1e-12)
    wanted = joint / joint.sum(axis=2, keepdims=True)  # of Wet, given Sky and Rain
    np.testing.assert_allclose(both.predict_proba(table, "Wet").reshape(2, 2, 2, 2)[:, :, 0], wanted, atol=1e-12)
    assert both.predict(table, "Wet").tolist() == [LEVELS[2][i] for i in np.repeat(wanted.argmax(axis=2).ravel(), 2)]
    given = both.query("Sky", {"Wet": "yes"})
    np.testing.assert_allclose(list(given.values()), joint[:, :, 1].sum(axis=1) / joint[:, :, 1].sum(), atol=1e-12)
    assert both.edge_probabilities_["Sky", "Rain"] == pytest.approx(both.weights_[:2].sum())


def dirichlet_evidence(cells, levels):
    counts = np.array([cells.count(level) for level in levels], dtype=float)
    flat = np.ones(len(levels))
    return gammaln(flat.sum()) - gammaln((flat + counts).sum()) + (gammaln(flat + counts) - gammaln(flat)).sum()


def test_naive_bayes_is_weighed_by_its_exact_evidence():
    table, y = drawn_table()
    table = {"c": table["c"], "d": table["d"]}
    apart, block = sc.NaiveBayes().fit(table, y), sc.NaiveBayes(kinds={("c", "d"): "categorical"}).fit(table, y)
    both = sc.average({"apart": apart, "block": block}, X=table, y=y)
    logs = {"apart": 0.0, "block": 0.0}
    for name in ("a", "b"):
        pairs = [(c, d) for c, d, own in zip(table["c"], table["d"], y, strict=True) if own == name]
        logs["apart"] += sum(dirichlet_evidence([pair[i] for pair in pairs], ["a", "b"]) for i in (0, 1))
        logs["block"] += dirichlet_evidence(pairs, list(product("ab", "ab")))
    assert np.log(both.weights_[1] / both.weights_[0]) == pytest.approx(logs["block"] - logs["apart"], abs=1e-9)


@pytest.mark.parametrize("by", ["evidence", "bic"])
def test_kinds_are_weighed_whatever_the_unit(by):
    table, y = drawn_table(200)
    kinds = {"bell": {"x": "normal"}, "skew": {"x": "lognormal"}, "gamma": {"x": "gamma"}}

    def weights(scale):
        X = table | {"x": table["x"] * scale}
        return sc.average({name: sc.NaiveBayes(kind).fit(X, y) for name, kind in kinds.items()}, by, X, y).weights_

    found = weights(1.0)
    assert found[1] > 0.9 > 1e-6 > found[0]
    np.testing.assert_allclose(weights(1e5), found, rtol=1e-6, atol=1e-12)


def test_numbers_of_classes_weigh_what_the_table_of_trials_says():
    rng = np.random.default_rng(3)
    table = {"x": np.concatenate([rng.normal(0, 1, 30), rng.normal(3.0, 1, 25)])}
    selection = sc.Mixture(random_state=0, n_init=3).fit(table).selection_
    evidence = {line["classes"]: line["evidence"] for line in arrow(selection).to_pylist()}
    model = sc.average([sc.Mixture(k, random_state=0, n_init=3).fit(table) for k in (1, 2, 3)])
    logs = np.array([evidence[k] for k in (1, 2, 3)])
    np.testing.assert_allclose(model.weights_, np.exp(logs - logsumexp(logs)), atol=2e-3)
    densities = np.stack([np.exp(mixture.score_samples(table)) for mixture in model.models_])
    np.testing.assert_allclose(np.exp(model.score_samples(table)), model.weights_ @ densities, rtol=1e-12)
    answer = model.query("x")
    values = np.linspace(-8, 12, 20_001)
    np.testing.assert_allclose(np.trapezoid(answer.pdf(values), values), 1.0, atol=1e-6)
    assert np.trapezoid(values * answer.pdf(values), values) == pytest.approx(answer.mean, abs=1e-6)
    assert answer.cdf(answer.quantile(0.2)) == pytest.approx(0.2, abs=1e-12)


def test_the_weights_of_stacking_are_the_best_there_are():
    rng = np.random.default_rng(0)
    logs = np.log(rng.dirichlet(np.ones(3), 50))
    found = stacking_weights(logs)
    height = np.mean(np.log(np.exp(logs) @ found))
    for other in rng.dirichlet(np.ones(3), 2000):
        assert np.mean(np.log(np.exp(logs) @ other)) <= height + 2e-9
    doubled = stacking_weights(np.concatenate([logs, logs[:10]]))
    np.testing.assert_allclose(stacking_weights(logs, np.repeat([2.0, 1.0], [10, 40])), doubled, atol=1e-4)


def test_stacking_prefers_what_predicts():
    table, y = drawn_table(300)
    noise = np.random.default_rng(1).choice(["a", "b"], 300).tolist()
    kinds = {"good": {"n": "ignore"}, "blind": {"x": "ignore", "c": "ignore", "d": "ignore"}}
    X = table | {"n": noise}
    both = sc.average({name: sc.NaiveBayes(kind).fit(X, y) for name, kind in kinds.items()}, "stacking", X, y)
    assert both.weights_[0] > 0.8
    models = {"skew": sc.NaiveBayes({"x": "lognormal"}), "tree": sc.BayesNet("tan", prior="row")}
    both = sc.average({name: model.fit(table, y) for name, model in models.items()}, "stacking", table, y)
    assert both.weights_.sum() == pytest.approx(1.0)
    chances = both.weights_ @ np.stack([model.predict_proba(table)[:, 1] for model in both.models_])
    np.testing.assert_allclose(both.predict_proba(table)[:, 1], chances, atol=1e-12)


CASES = ["naive bayes", "mixtures", "networks", "stacked"]


def averages(case):
    table, y = drawn_table()
    if case == "mixtures":
        return sc.average([sc.Mixture(k, random_state=0, n_init=2).fit(table) for k in (1, 2)]), table
    if case == "networks":
        return sc.average(nets(ROWS)), ROWS
    by = "stacking" if case == "stacked" else "evidence"
    models = [sc.NaiveBayes({"x": kind}).fit(table, y) for kind in ("normal", "lognormal")]
    return sc.average(models, by, table, y), table


@pytest.mark.parametrize("case", CASES)
def test_a_saved_average_answers_the_same(case, tmp_path):
    model, table = averages(case)
    model.save(tmp_path / "average.sc")
    again = sc.load(tmp_path / "average.sc")
    np.testing.assert_array_equal(again.score_samples(table), model.score_samples(table))
    assert again.names_ == model.names_ and again.by == model.by
    assert again.sample(20, random_state=1).equals(model.sample(20, random_state=1))
    assert again.explain(table).equals(model.explain(table))


@pytest.mark.parametrize("case", CASES)
def test_members_that_are_explained_add_up_to_the_answer(case):
    model, table = averages(case)
    told = arrow(model.explain(table)).to_pandas()
    np.testing.assert_allclose(told.groupby("row")["weight"].sum(), 1.0, atol=1e-12)
    assert list(told["member"].unique()) == model.names_
    if "class" in told:
        ours = np.where(told["class"] == "b", told["probability"], 1 - told["probability"])
        both = (told["weight"] * ours).groupby(told["row"]).sum()
        np.testing.assert_allclose(model.predict_proba(table)[:, 1], both, atol=1e-12)
        np.testing.assert_allclose(np.exp(model.predict_log_proba(table)).sum(axis=1), 1.0)


@pytest.mark.parametrize("case", CASES)
def test_one_model_is_its_own_average(case):
    model, table = averages(case)
    first = model.models_[0]
    alone = sc.average([first], "bic", *(() if case in ("mixtures", "networks") else drawn_table()))
    np.testing.assert_allclose(alone.score_samples(table), first.score_samples(table), atol=1e-12)
    assert alone.weights_.tolist() == [1.0]


def test_samples_come_from_members_by_their_weight():
    model, _ = averages("networks")
    drawn = arrow(model.sample(4000, given={"Wet": "yes"}, random_state=0)).to_pandas()
    assert (drawn["Wet"] == "yes").all()
    wanted = model.query("Sky", {"Wet": "yes"})["grey"]
    assert (drawn["Sky"] == "grey").mean() == pytest.approx(wanted, abs=4 * math.sqrt(0.25 / 4000))


@pytest.mark.parametrize("case", ["mixtures", "naive bayes"])
def test_a_range_counts_as_much_as_the_rows_in_it(case):
    model, _ = averages(case)
    x = np.linspace(0.5, 1.5, 4001)
    joint = []
    for c, d in product("ab", "ab"):
        rows = {"x": x, "c": [c] * len(x), "d": [d] * len(x)}
        joint.append(np.trapezoid(np.exp(model.score_samples(rows)), x))
    wanted = np.array(joint).reshape(2, 2).sum(axis=1) / np.sum(joint)
    np.testing.assert_allclose(list(model.query("c", {"x": (0.5, 1.5)}).values()), wanted, atol=1e-6)


def test_a_number_of_components_is_not_an_average():
    with pytest.raises(sc.DataError, match=r"sc\.average"):
        sc.Mixture("average").fit({"x": [1.0, 2.0, 3.0]})


def other_tables():
    table, y = drawn_table()
    fit = sc.Mixture(1).fit(table)
    fewer = {key: column[:-1] for key, column in table.items()}
    return {
        "60 and 59 rows": [fit, sc.Mixture(1).fit(fewer)],
        "column 'x' has other totals": [fit, sc.Mixture(2, n_init=1).fit(table | {"x": table["x"] + 1})],
        "column 'c' has other totals": [fit, sc.Mixture(1).fit(table | {"c": ["a"] * 30 + ["b"] * 30})],
        "column 'd' is in model 1 only": [fit, sc.Mixture(1).fit({key: table[key] for key in "xc"})],
        "model 1 knows classes": [sc.NaiveBayes().fit(table, y), fit],
        "their classes are a, b and p, q": [
            sc.NaiveBayes().fit(table, y), sc.NaiveBayes().fit(table, ["p" if own == "a" else "q" for own in y])
        ],
    }  # fmt: skip


@pytest.mark.parametrize("told", list(other_tables()))
def test_models_of_different_tables_are_refused(told):
    with pytest.raises(sc.DataError, match=f"different tables: {told}.* fit them on the same rows"):
        sc.average(other_tables()[told])


def test_what_cannot_be_averaged_is_refused_in_a_line():
    table, y = drawn_table()
    plain, tree = sc.NaiveBayes().fit(table, y), sc.BayesNet.tan(table, y)
    for asked, line in (
        (lambda: sc.average([]), "nothing to average"),
        (lambda: sc.average([sc.Mixture(2)]), "model 1 is not a fitted"),
        (lambda: sc.average([plain], by="luck"), "by='luck' is not known"),
        (lambda: sc.average([plain]), "learned in one pass.*Give them too"),
        (lambda: sc.average([plain], X=table), "Give them too"),
        (
            lambda: sc.average([plain], X={k: v[:9] for k, v in table.items()}, y=y[:9]),
            "learned from 60 rows.* X has 9",
        ),
        (
            lambda: sc.average([plain, tree], X=table, y=y),
            "column 'x' of .* is levels in one and numbers in the other.*compared",
        ),
        (lambda: sc.average([plain], by="stacking"), "stacking needs the rows"),
        (lambda: averages("mixtures")[0].predict(table), "have no average"),
        (lambda: averages("networks")[0].query("Fog"), "Fog"),
    ):
        with pytest.raises(sc.DataError, match=line):
            asked()


def test_documents_are_averaged_by_what_models_say_of_their_class():
    documents = ["win money now", "see you at noon", "free money", "lunch at noon", "money now", "noon lunch"]
    y = ["spam", "ham"] * 3
    models = [sc.NaiveBayes(sc.families.Text(model=model)).fit(documents, y) for model in ("multinomial", "bernoulli")]
    with pytest.raises(sc.DataError, match=r"column 'text' of .* is words read in two ways"):
        sc.average(models, X=documents, y=y)
    both = sc.average(models, "stacking", documents, y)
    assert both.predict(["free money"]).tolist() == ["spam"]


@pytest.mark.parametrize("kind", ["kde", "histogram", "cut", "spiked", "student"])
def test_every_shape_of_density_has_a_weight_in_any_unit(kind):
    table, y = drawn_table(80)

    def odds(scale):
        X = {"x": table["x"] * scale}
        models = [sc.NaiveBayes({"x": own}).fit(X, y) for own in ("normal", kind)]
        weights = sc.average(models, "evidence", X, y).weights_
        return np.log(np.maximum(weights, 1e-300))

    np.testing.assert_allclose(odds(1.0), odds(1024.0), atol=1e-4)


def spoilt(tmp_path, change):
    from softcount.files.archive import read, write

    averages("mixtures")[0].save(tmp_path / "a.sc")
    document, arrays = read(tmp_path / "a.sc")
    change(document["average"], arrays)
    write(tmp_path / "a.sc", document, arrays)
    return tmp_path / "a.sc"


@pytest.mark.parametrize(
    "change",
    [
        lambda about, arrays: about.update(by="luck"),
        lambda about, arrays: about.update(names=["one"]),
        lambda about, arrays: arrays.update({about["weights"]["array"]: np.array([0.5, 0.6])}),
        lambda about, arrays: arrays.update({about["weights"]["array"]: np.array([1.5, -0.5])}),
        lambda about, arrays: arrays.update({about["members"]["split"]: arrays[about["members"]["split"]][:-9]}),
        lambda about, arrays: about["members"]["lengths"].reverse(),
        lambda about, arrays: arrays.pop(about["members"]["split"]),
        lambda about, arrays: about.update(mixture={"settings": {"n_components": 2}, "columns": None}),
    ],
)
def test_a_file_that_makes_no_sense_is_refused(tmp_path, change):
    with pytest.raises(sc.ModelFileError, match=r"a\.sc: "):
        sc.load(spoilt(tmp_path, change))


def put_first(about, arrays, content):
    """Replace the first member of a file by this content."""
    name, lengths = about["members"]["split"], about["members"]["lengths"]
    arrays[name] = np.concatenate([content, arrays[name][lengths[0] :]])
    lengths[0] = len(content)


def test_an_average_in_an_average_is_refused(tmp_path):
    averages("networks")[0].save(tmp_path / "inner.sc")
    inner = np.frombuffer((tmp_path / "inner.sc").read_bytes(), dtype=np.uint8)
    with pytest.raises(sc.ModelFileError, match="itself an average"):
        sc.load(spoilt(tmp_path, lambda about, arrays: put_first(about, arrays, inner)))
