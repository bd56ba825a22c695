"""Settings that mean nothing are refused by name, with what would be right."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest

import softcount as sc
from small_tables import KINDS, fruit, refused

FRAME, LABELS = fruit()
GAPS = np.where(np.arange(60) % 5 == 0, None, LABELS.astype(object))


def fits(**how):
    """Both estimators with these settings, each as a function that fits the fruit."""
    return [
        lambda: sc.NaiveBayes(**{"kinds": KINDS, **how}).fit(FRAME, GAPS),
        lambda: sc.Mixture(**{"n_components": 2, "kinds": KINDS, "n_init": 1, "random_state": 0, **how}).fit(FRAME),
    ]


BAD_KINDS = {
    "misspelt": ({"size": "nomral"}, ("'size'", "'nomral'", "Did you mean 'normal'")),
    "misspelt for all": ("nomral", ("'nomral'", "Did you mean 'normal'")),
    "unlike any": ({"size": "banana"}, ("'banana'", "Known: .*categorical.*ignore.*normal")),
    "a class": ({"size": sc.families.Normal}, ("'size'", "not a kind")),
    "a number": ({"size": 3}, ("'size'", "3")),
    "a type of other software": ({"size": "float"}, ("'float'", "Did you mean 'real'")),
    "nothing": ({"size": None}, ("'size'", "None")),
    "text of a block": ({("colour", "size"): "text"}, ("text is for a single column",)),
    "no such column": ({"sise": "normal"}, ("'sise'", "Did you mean 'size'")),
    "no such column in a block": ({("size", "length"): "multinormal"}, ("'length'", "the table has no")),
    "several for one": ({("size", "visits"): "normal"}, ("normal is for a single column", "2 of them")),
    "one for several": ({"size": "multinormal"}, ("multinormal is for a block", "tuple", "'size'")),
    "an empty block": ({(): "multinormal"}, ("block of no columns",)),
    "twice in a block": ({("size", "size"): "multinormal"}, ("'size' twice",)),
    "alone and in a block": ({("size", "visits"): "multinormal", "size": "normal"}, ("'size' twice",)),
    "in two blocks": ({("size", "visits"): "multinormal", ("visits", "size"): "multinomial"}, ("'visits' twice",)),
    "three columns": ({("size", "visits", "colour"): "binomial"}, ("binomial takes two columns",)),
    "words as numbers": ({"colour": "normal"}, ("'colour'", "row 1", "categorical")),
    "words in a block": ({("size", "colour"): "multinormal"}, ("'colour'", "row 1")),
    "negative as positive": ({"size": "lognormal"}, ("'size'", "above zero", "row")),
    "fractions as counts": ({"size": "poisson"}, ("'size'", "0, 1, 2", "row 1")),
    "many as two": ({"colour": "bernoulli"}, ("'colour'", "3 values", "categorical")),
    "all ignored": (dict.fromkeys(KINDS, "ignore"), ("no column is left", "'size'")),
    "a list": (["normal"], ("mapping", "normal")),
    "a whole number": (5, ("mapping", "5")),
}


@pytest.mark.parametrize("name", BAD_KINDS)
def test_a_kind_that_cannot_be_is_refused(name):
    kinds, words = BAD_KINDS[name]
    for fit in fits(kinds=kinds):
        refused(fit, *words)


BAD_PRIORS = {
    "negative": (-1.0, ("0 or more", "-1")),
    "not a number": (math.nan, ("0 or more", "nan")),
    "infinite": (math.inf, ("0 or more", "inf")),
    "a word": ("banana", ("'banana'", "jeffreys", "auto")),
    "a word for a column": ({"colour": "banana"}, ("'banana'", "jeffreys")),
    "a truth": (True, ("True",)),
    "nothing": (None, ("None",)),
    "a list": ([1, 2], (r"\[1, 2\]",)),
    "another column": ({"length": 1.0}, ("'length'", "not a column")),
    "another family's": ({"size": sc.priors.Beta(1, 1)}, ("normal", "Beta")),
    "two for three": ({"colour": sc.priors.Beta(1, 1)}, ("'colour'", "3 levels", "Dirichlet")),
    "two of three": ({"colour": sc.priors.Dirichlet([1, 1])}, ("'colour'", "3 levels", "one number per level")),
}


@pytest.mark.parametrize("name", BAD_PRIORS)
def test_a_prior_that_cannot_be_is_refused(name):
    prior, words = BAD_PRIORS[name]
    for fit in fits(prior=prior):
        refused(fit, *words)


BAD_NUMBERS = {
    "estimate": ["banana", None, 3, "ML"],
    "tol": [-1.0, math.nan, "small", None],
    "max_iter": [-1, 1.5, "many", None, True],
    "n_jobs": [0, "all", 1.5, True],
    "missing": [5, 2.5],
}


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in BAD_NUMBERS.items() for value in values])
def test_a_setting_of_both_estimators_that_means_nothing_is_refused_by_name(name, value):
    for fit in fits(**{name: value}):
        refused(fit, name, re.escape(str(value)))


BAD_FOR_MIXTURES = {
    "n_components": [0, -1, 2.0, "two", None, True],
    "n_init": [0, -3, 1.5],
    "random_state": ["seed", -1, 1.5],
    "init": ["banana", 5, None, object()],
    "criterion": ["aic", None, 3],
    "assign": ["firm", None],
    "finish": ["newton", True],
    "half_steps": ["yes", 1, None],
    "verbose": ["loud", 2],
    "accelerate": ["yes", None],
    "fixed": [3, {"size": 3}, {"sise": {"variance": 1.0}}, {"size": {"rate": 1.0}}, {"weights": [0.5, 0.6]}],
}


@pytest.mark.parametrize(
    ("name", "value"), [(name, value) for name, values in BAD_FOR_MIXTURES.items() for value in values]
)
def test_a_setting_of_mixtures_that_means_nothing_is_refused_by_name(name, value):
    refused(fits(**{name: value})[1], name)


BAD_FOR_CLASSES = {
    "class_prior": ["banana", -1.0, math.nan, [0.5, 0.6], [0.2, 0.3, 0.5], [math.nan, 1.0], ["a", "b"], {"ripe": 1.0}],
    "unlabelled_weight": [-1.0, math.nan, math.inf, "half"],
}


@pytest.mark.parametrize(
    ("name", "value"), [(name, value) for name, values in BAD_FOR_CLASSES.items() for value in values]
)
def test_a_setting_of_naive_bayes_that_means_nothing_is_refused(name, value):
    words = () if name == "class_prior" and value in (-1.0, math.nan) else (name,)
    refused(fits(**{name: value})[0], *words)


def test_one_word_for_missing_cells_is_a_word_not_its_letters():
    frame = FRAME.assign(colour=FRAME.colour.replace({"blue": "red!", "green": "d"}))
    model = sc.NaiveBayes(kinds=KINDS, missing="red").fit(frame, LABELS)
    assert model.levels_["colour"] == ["d", "red!"]


@pytest.mark.parametrize("word", ["informative", "ignore", "most_frequent"])
def test_how_to_treat_missing_cells_is_not_a_word_for_one(word):
    for make in (lambda: sc.NaiveBayes(missing=word).fit(FRAME, LABELS), lambda: sc.read(FRAME, missing=word)):
        refused(make, f"missing={word!r} is not a setting", f"missing=[{word!r}]")
    assert sc.NaiveBayes(missing=[word]).fit(FRAME, LABELS).levels_["colour"]


def test_a_mode_on_the_edge_is_refused_by_column_suggesting_the_mean():
    sure = FRAME.assign(colour=np.where(LABELS == "ripe", "red", "green"))
    refused(lambda: sc.NaiveBayes(kinds=KINDS, estimate="map", prior=0.5).fit(sure, LABELS), "'colour'", "mode", "mean")
    jeffreys = sc.NaiveBayes(kinds=KINDS, estimate="map", prior="jeffreys").fit(sure, LABELS)
    mean = sc.NaiveBayes(kinds=KINDS, estimate="mean", prior="jeffreys").fit(sure, LABELS)
    np.testing.assert_array_equal(jeffreys.params_["colour"]["probability"], mean.params_["colour"]["probability"])


def start(**changed):
    """Parameters a mixture of two can start from, some of them changed."""
    sound = {
        "weights": [0.5, 0.5],
        "size": {"mean": [0.0, 1.0], "variance": [1.0, 1.0]},
        "colour": {"blue": [0.3, 0.3], "green": [0.3, 0.2], "red": [0.4, 0.5]},
        "visits": {"rate": [2.0, 4.0]},
    }
    return sound | changed


BAD_STARTS = {
    "shares beyond one": (start(weights=[0.5, 0.6]), ("'weights'", "sum to one")),
    "shares below zero": (start(weights=[1.5, -0.5]), ("'weights'", "sum to one")),
    "three shares": (start(weights=[0.2, 0.3, 0.5]), ("'weights'", "2 shares")),
    "words as shares": (start(weights=["a", "b"]), ("'weights'", "2 shares")),
    "a column left out": ({key: value for key, value in start().items() if key != "size"}, ("'size'", "no parameters")),
    "another column": (start(length={"mean": [0.0, 1.0], "variance": [1.0, 1.0]}), ("'length'", "not a column")),
    "negative variance": (start(size={"mean": [0.0, 1.0], "variance": [1.0, -1.0]}), ("'size'", "positive")),
    "no variance": (start(size={"mean": [0.0, 1.0]}), ("'size'", "variance")),
    "three means": (start(size={"mean": [0.0, 1.0, 2.0], "variance": [1.0, 1.0]}), ("'size'", "mean", "2 groups")),
    "a mean not known": (start(size={"mean": [0.0, math.nan], "variance": [1.0, 1.0]}), ("'size'", "mean", "finite")),
    "a misspelt rate": (start(visits={"rat": [1.0, 2.0]}), ("'visits'", "rate")),
    "a negative rate": (start(visits={"rate": [-1.0, 2.0]}), ("'visits'", "rates")),
    "not summing to one": (start(colour={"blue": [0.3, 0.3], "red": [0.4, 0.5]}), ("'colour'", "sum to one")),
    "below zero": (start(colour={"blue": [1.3, 0.5], "green": [-0.3, 0.5], "red": [0.0, 0.0]}), ("'colour'", "one")),
    "memberships of other rows": (np.full((3, 2), 0.5), ("60 rows x 2 groups", r"\(3, 2\)")),
    "memberships beyond one": (np.full((60, 2), 0.7), ("sum to one in every row",)),
    "memberships not known": (np.full((60, 2), math.nan), ("sum to one in every row",)),
    "impossible rows": (
        start(colour={"blue": [0.5, 0.5], "green": [0.5, 0.5], "red": [0.0, 0.0]}),
        (f"row {int(np.argmax(FRAME.colour == 'red')) + 1} ", "impossible"),
    ),
}


@pytest.mark.parametrize("name", BAD_STARTS)
def test_a_start_that_makes_no_sense_is_refused(name):
    init, words = BAD_STARTS[name]
    refused(fits(init=init, estimate="ml")[1], *words)


def test_a_sound_start_is_taken():
    model = sc.Mixture(2, kinds=KINDS, init=start(), max_iter=0, n_init=1).fit(FRAME)
    np.testing.assert_allclose(model.params_["size"]["mean"], [0.0, 1.0], atol=1e-12)
    assert math.isfinite(model.log_likelihood_)


def test_a_start_from_a_model_of_other_groups_or_families_is_refused():
    three = sc.Mixture(3, kinds=KINDS, n_init=1, random_state=0).fit(FRAME)
    refused(fits(init=three)[1], "3 groups", "2 are wanted")
    other = sc.Mixture(2, kinds=KINDS | {"visits": "normal"}, n_init=1, random_state=0).fit(FRAME)
    refused(fits(init=other)[1], "'visits'", "normal", "poisson")


def test_families_refuse_settings_they_do_not_have():
    refused(lambda: sc.families.Normal(tied="rows"), "tied='rows'", "classes")
    refused(lambda: sc.families.Normal(variance=-1.0), "positive", "-1")
    refused(lambda: sc.families.Normal(variance=math.nan), "positive", "nan")
    refused(lambda: sc.families.Multinormal("round"), "'round'", "spherical")
    refused(lambda: sc.families.Multinormal(prior_scale="rows"), "'rows'", "table")
    refused(lambda: sc.priors.Older(sc.NaiveBayes(kinds=KINDS).fit(FRAME, LABELS), weight=-1.0), "weight", "-1")


def test_one_kind_for_every_column_of_a_file_leaves_the_target_out(tmp_path):
    (tmp_path / "a.csv").write_text("x,z,y\n1,2,p\n2,1,q\n3,3,p\n")
    model = sc.NaiveBayes(kinds="normal").fit(tmp_path / "a.csv", "y")
    assert {key: family.name for key, family in model.fitted_.families.items()} == {"x": "normal", "z": "normal"}
    np.testing.assert_allclose(model.params_["x"]["mean"], [2.0, 2.0])


def test_what_was_said_of_a_table_when_it_was_opened_holds_when_it_is_fitted(tmp_path):
    (tmp_path / "a.csv").write_text("x,z,w,y\n1,-99,3,p\n2,1,5,q\n3,3,1,p\n2,2,2,q\n")
    said = {"x": "categorical", "w": "ignore"}
    for target in ("y", None):
        table = sc.read(tmp_path / "a.csv", kinds=said, missing=("-99",))
        model = sc.NaiveBayes().fit(table, target) if target else sc.Mixture(1, kinds={"y": "ignore"}).fit(table)
        names = {key: family.name for key, family in model.fitted_.families.items()}
        assert names == {"x": "categorical", "z": "normal"}
        assert model.params_["z"]["mean"].min() > 0
