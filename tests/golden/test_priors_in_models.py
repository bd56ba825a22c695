"""Priors inside models: what each adds to the counts, what it reserves, and what it refuses."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import softcount as sc
from softcount import priors
from softcount.estimators.result_frames import arrow_of
from softcount.priors.shares import best_concentration

LEVELS = {"colour": ["blue", "green", "red"], "rich": [False, True]}
pytestmark = pytest.mark.filterwarnings("ignore::softcount.errors.DataWarning")


def people(n: int = 120, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    """A mixed table of two classes."""
    rng = np.random.default_rng(seed)
    y = rng.integers(2, size=n)
    colour = np.where(rng.random(n) < 0.3 + 0.4 * y, "red", np.where(rng.random(n) < 0.5, "blue", "green"))
    frame = pd.DataFrame({"colour": colour, "size": rng.normal(2.0 * y, 1.0), "visits": rng.poisson(2 + 3 * y)})
    return frame.assign(rich=rng.random(n) < 0.2 + 0.5 * y), y


def counted(frame: pd.DataFrame, y: np.ndarray, column: str, imagined=0.0) -> np.ndarray:
    """(classes x levels) counts in a plain loop, on top of the imagined ones."""
    counts = np.zeros((max(y) + 1, len(LEVELS[column]))) + np.asarray(imagined)
    for value, g in zip(frame[column], y, strict=True):
        counts[g, LEVELS[column].index(value)] += 1
    return counts


def shares(counts: np.ndarray) -> np.ndarray:
    return counts / counts.sum(axis=1, keepdims=True)


# -- discrete columns


@pytest.mark.parametrize(
    ("prior", "imagined"), [("flat", 1.0), ("laplace", 1.0), ("jeffreys", 0.5), ("row", 1 / 3), (0, 0.0), (2.5, 2.5)]
)
def test_a_named_prior_adds_its_counts(prior, imagined):
    frame, y = people()
    model = sc.NaiveBayes(prior=prior).fit(frame[["colour"]], y)
    wanted = shares(counted(frame, y, "colour") + imagined)
    np.testing.assert_allclose(model.params_["colour"]["probability"], wanted, rtol=1e-14)


def test_laplace_with_map_is_ml():
    frame, y = people()
    by_map = sc.NaiveBayes(prior=1.0, estimate="map").fit(frame[["colour", "rich"]], y)
    ml = sc.NaiveBayes(estimate="ml").fit(frame[["colour", "rich"]], y)
    for name in LEVELS:
        np.testing.assert_allclose(by_map.params_[name]["probability"], ml.params_[name]["probability"], rtol=1e-14)


def test_map_takes_the_mode():
    frame, y = people()
    model = sc.NaiveBayes(prior=3.0, estimate="map").fit(frame[["colour"]], y)
    np.testing.assert_allclose(
        model.params_["colour"]["probability"], shares(counted(frame, y, "colour") + 2), rtol=1e-14
    )


def test_map_without_an_interior_mode_is_refused_naming_the_column():
    table = {"fine": ["a", "b", "a", "b"], "thin": ["x", "y", "x", "x"]}
    with pytest.raises(sc.DataError, match=r"'thin'.*below one.*estimate='mean'"):
        sc.NaiveBayes(prior=0.5, estimate="map").fit(table, [0, 0, 1, 1])


def test_jeffreys_with_map_is_its_mean():
    frame, y = people()
    by_map, mean = (sc.NaiveBayes(prior="jeffreys", estimate=how).fit(frame[["colour"]], y) for how in ("map", "mean"))
    np.testing.assert_array_equal(by_map.params_["colour"]["probability"], mean.params_["colour"]["probability"])


def test_an_expert_of_a_yes_or_no_column():
    frame, y = people()
    model = sc.NaiveBayes(prior={"rich": priors.Expert(n=2, m=3)}).fit(frame, y)
    wanted = shares(counted(frame, y, "rich", [1, 2]))
    np.testing.assert_allclose(model.params_["rich"]["probability"], wanted, rtol=1e-14)


def test_an_expert_of_several_levels():
    frame, y = people()
    model = sc.NaiveBayes(prior={"colour": priors.Expert(n={"red": 5, "blue": 3, "green": 1})}).fit(frame, y)
    wanted = shares(counted(frame, y, "colour", [3, 1, 5]))
    np.testing.assert_allclose(model.params_["colour"]["probability"], wanted, rtol=1e-14)


def test_a_beta_counts_successes_first():
    frame, y = people()
    model = sc.NaiveBayes(prior={"rich": priors.Beta(5, 3)}).fit(frame, y)
    np.testing.assert_allclose(
        model.params_["rich"]["probability"], shares(counted(frame, y, "rich", [3, 5])), rtol=1e-14
    )


@pytest.mark.parametrize("classes", [2, 3])
def test_a_beta_with_one_value_per_class_is_that_of_each_class(classes):
    frame, y = people()
    y = np.arange(len(frame)) % 3 if classes == 3 else y
    alpha, beta = [5.0, 1.0, 2.0][:classes], [3.0, 20.0, 7.0][:classes]
    model = sc.NaiveBayes(prior={"rich": priors.Beta(alpha, beta)}).fit(frame, y)
    wanted = shares(counted(frame, y, "rich") + np.stack([beta, alpha], axis=1))
    np.testing.assert_allclose(model.params_["rich"]["probability"], wanted, rtol=1e-14)
    model.summary("column")


def test_a_dirichlet_in_order_and_by_name():
    frame, y = people()
    wanted = shares(counted(frame, y, "colour", [3, 2, 7]))
    by_name = {"levels": ["red", "blue", "green"]}
    for prior in (priors.Dirichlet([3, 2, 7]), priors.Dirichlet([7, 3, 2], **by_name)):
        model = sc.NaiveBayes(prior={"colour": prior}).fit(frame, y)
        np.testing.assert_allclose(model.params_["colour"]["probability"], wanted, rtol=1e-14)


def test_a_level_that_only_the_prior_knows_exists():
    frame, y = people()
    prior = priors.Dirichlet([1, 1, 1, 4], levels=["blue", "green", "red", "violet"])
    model = sc.NaiveBayes(prior={"colour": prior}).fit(frame, y)
    assert model.levels_["colour"] == ["blue", "green", "red", "violet"]
    padded = np.hstack([counted(frame, y, "colour"), np.zeros((2, 1))])
    np.testing.assert_allclose(
        model.params_["colour"]["probability"], shares(padded + np.array([1, 1, 1, 4])), rtol=1e-14
    )


def test_columns_without_a_prior_of_their_own_have_laplace():
    frame, y = people()
    model = sc.NaiveBayes(prior={"rich": priors.Beta(5, 3)}).fit(frame, y)
    wanted = shares(counted(frame, y, "colour") + 1)
    np.testing.assert_allclose(model.params_["colour"]["probability"], wanted, rtol=1e-14)


@pytest.mark.parametrize(
    ("prior", "said"),
    [
        ({"colour": priors.Dirichlet([1, 1])}, "'colour' has 3 levels"),
        ({"colour": priors.Beta(1, 1)}, "'colour' has 3 levels"),
        ({"shape": priors.Beta(1, 1)}, "'shape'"),
        ({"size": priors.Beta(1, 1)}, "normal"),
        (
            {"rich": priors.Beta([1, 2, 3], [1, 2, 3])},
            r"'rich' has 2 groups, but its prior counts are of shape \(3, 2\)",
        ),
        (
            {"size": priors.NormalInverseChi2([0, 1], 1, 1, 1)},
            "'size' is normal; only categorical columns take a prior of each class",
        ),
        (-1.0, "0 or more"),
        ("jeffries", "'jeffries' is not known"),
    ],
)
def test_a_prior_that_does_not_fit_is_refused(prior, said):
    frame, y = people()
    with pytest.raises(sc.DataError, match=said):
        sc.NaiveBayes(prior=prior).fit(frame, y)


def test_the_automatic_prior_has_the_best_evidence_and_says_so():
    frame, y = people()
    model = sc.NaiveBayes(prior="auto").fit(frame[["colour", "rich"]], y)
    for name in LEVELS:
        a = best_concentration(counted(frame, y, name))
        wanted = shares(counted(frame, y, name) + a)
        np.testing.assert_allclose(model.params_[name]["probability"], wanted, rtol=1e-4)
        said = [float(note.split("prior of ")[1].split()[0]) for note in model.notes_ if repr(name) in note]
        assert said == pytest.approx([a], rel=1e-3)


# -- numeric columns


@pytest.mark.parametrize("a", [0.0, 1.0, 4.0])
def test_a_normal_variance_is_pulled_to_that_of_the_whole_column(a):
    frame, y = people()
    model = sc.NaiveBayes(prior=a, kinds={"size": "normal"}).fit(frame[["size"]], y)
    for g in (0, 1):
        part = frame["size"][y == g]
        assert model.params_["size"]["mean"][g] == pytest.approx(part.mean(), rel=1e-13)
        wanted = (((part - part.mean()) ** 2).sum() + a * frame["size"].var(ddof=0)) / (len(part) + a)
        assert model.params_["size"]["variance"][g] == pytest.approx(wanted, rel=1e-12)


def test_an_explicit_normal_prior_is_updated_as_the_belief_itself_is():
    frame, y = people()
    prior = priors.NormalInverseChi2(mean=5.0, kappa=3.0, nu=4.0, variance=2.0)
    model = sc.NaiveBayes(prior={"size": prior}).fit(frame[["size"]], y)
    for g in (0, 1):
        after = prior.update(frame["size"][y == g].to_numpy())
        assert model.params_["size"]["mean"][g] == pytest.approx(after.mean, rel=1e-12)
        assert model.params_["size"]["variance"][g] == pytest.approx(after.variance, rel=1e-12)


def test_a_gamma_prior_of_a_rate():
    frame, y = people()
    kinds = {"visits": "poisson"}
    for how, less in (("mean", 0.0), ("map", 1.0)):
        model = sc.NaiveBayes(kinds=kinds, estimate=how, prior={"visits": priors.Gamma(3, 2)}).fit(frame[["visits"]], y)
        for g in (0, 1):
            part = frame["visits"][y == g]
            wanted = (part.sum() + 3 - less) / (len(part) + 2)
            assert model.params_["visits"]["rate"][g] == pytest.approx(wanted, rel=1e-13)


# -- an older model


def test_an_older_model_counts_as_rows_of_less_weight():
    (past, old_y), (now, y) = people(seed=1), people(seed=2)
    older = sc.NaiveBayes(kinds={"visits": "poisson"}).fit(past, old_y)
    model = sc.NaiveBayes(kinds={"visits": "poisson"}, prior=priors.Older(older, weight=0.25)).fit(now, y)
    together, labels = pd.concat([now, past], ignore_index=True), np.concatenate([y, old_y])
    weights = np.repeat([1.0, 0.25], [len(y), len(old_y)])
    same = sc.NaiveBayes(kinds={"visits": "poisson"}).fit(together, labels, sample_weight=weights)
    assert_same(model, same, now)


def test_an_older_model_is_counted_once_however_the_rows_come():
    (past, old_y), (now, y) = people(seed=1), people(seed=2)
    settings = {"kinds": {"visits": "poisson"}}
    prior = priors.Older(sc.NaiveBayes(**settings).fit(past, old_y), weight=0.5)
    whole = sc.NaiveBayes(prior=prior, **settings).fit(now, y)
    parts = sc.NaiveBayes(prior=prior, **settings)
    for rows in np.array_split(np.arange(len(y)), 3):
        parts.partial_fit(now.iloc[rows], y[rows])
    assert_same(parts, whole, now)
    halves = [
        sc.NaiveBayes(prior=prior, **settings).fit(now.iloc[r], y[r]) for r in np.array_split(np.arange(len(y)), 2)
    ]
    assert_same(halves[0].merge(halves[1]), whole, now)
    more = sc.NaiveBayes(prior=prior, **settings).fit(pd.concat([now, past]), np.concatenate([y, old_y]))
    assert_same(more.forget(past, old_y), whole, now)


def test_an_older_model_is_never_dropped_silently():
    """With unlabelled rows it is used, or it is refused: not left out."""
    (past, old_y), (now, y) = people(seed=1), people(seed=2)
    older = sc.NaiveBayes().fit(past, old_y)
    gaps = [None if i % 3 == 0 else int(label) for i, label in enumerate(y)]
    try:
        model = sc.NaiveBayes(prior=priors.Older(older, weight=1000.0)).fit(now, gaps)
    except sc.DataError as error:
        assert "older" in str(error)
    else:
        np.testing.assert_allclose(model.class_prior_, older.class_prior_, atol=1e-2)


def test_an_older_model_of_nameless_groups_is_refused():
    frame, _ = people()
    older = sc.Mixture(2, n_init=1, random_state=0).fit(frame)
    with pytest.raises(sc.DataError, match=r"older model.*give it as init"):
        sc.Mixture(2, prior=priors.Older(older)).fit(frame)


def assert_same(one: sc.NaiveBayes, other: sc.NaiveBayes, table: pd.DataFrame) -> None:
    np.testing.assert_allclose(one.class_count_, other.class_count_, rtol=1e-12)
    np.testing.assert_allclose(one.predict_proba(table), other.predict_proba(table), rtol=1e-9, atol=1e-12)


# -- the posterior itself


def test_posterior_of_a_discrete_column():
    frame, y = people()
    model = sc.NaiveBayes(prior=0.7).fit(frame, y)
    after = model.posterior_["colour"]
    np.testing.assert_allclose(after.alpha, counted(frame, y, "colour") + 0.7, rtol=1e-14)
    np.testing.assert_allclose(after.mean, model.params_["colour"]["probability"], rtol=1e-14)
    low, high = after.interval(0.9)
    total = after.alpha.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(low, stats.beta.ppf(0.05, after.alpha, total - after.alpha), rtol=1e-9)
    np.testing.assert_allclose(high, stats.beta.ppf(0.95, after.alpha, total - after.alpha), rtol=1e-9)


def test_posterior_of_a_mean_is_the_classical_t_interval_under_the_reference_prior():
    frame, y = people()
    reference = priors.NormalInverseChi2(mean=0, kappa=0, nu=-1, variance=0)
    model = sc.NaiveBayes(prior={"size": reference}).fit(frame[["size"]], y)
    low, high = model.posterior_["size"].interval(0.95)
    for g in (0, 1):
        part = frame["size"][y == g]
        wanted = stats.t.interval(0.95, len(part) - 1, part.mean(), part.std(ddof=1) / np.sqrt(len(part)))
        assert (low[g], high[g]) == pytest.approx(wanted, rel=1e-10)


def test_posterior_of_a_mean_whose_variance_is_known_is_normal():
    frame, y = people()
    model = sc.NaiveBayes(kinds={"size": sc.families.Normal(variance=4.0)}, prior=0).fit(frame[["size"]], y)
    low, high = model.posterior_["size"].interval(0.95)
    for g in (0, 1):
        part = frame["size"][y == g]
        wanted = stats.norm.interval(0.95, part.mean(), 2.0 / np.sqrt(len(part)))
        assert (low[g], high[g]) == pytest.approx(wanted, rel=1e-10)


def test_posterior_of_a_shared_variance_has_the_rows_of_every_class():
    frame, y = people()
    model = sc.NaiveBayes(kinds={"size": sc.families.Normal(tied="classes")}, prior=0).fit(frame[["size"]], y)
    after = model.posterior_["size"]
    np.testing.assert_allclose(after.nu, len(y), rtol=1e-14)
    np.testing.assert_allclose(after.variance, model.params_["size"]["variance"], rtol=1e-14)


def test_posterior_of_a_variance_shared_between_columns_is_refused_or_pooled():
    frame, y = people()
    tied = sc.families.Normal(tied="columns")
    table = frame[["size"]].assign(other=frame["size"] * 2 + 1)
    model = sc.NaiveBayes(kinds={"size": tied, "other": tied}).fit(table, y)
    with pytest.raises(sc.DataError, match=r"'size'.*shares its variance"):
        model.posterior_["size"]


def test_posterior_of_a_rate():
    frame, y = people()
    model = sc.NaiveBayes(kinds={"visits": "poisson"}, prior={"visits": priors.Gamma(3, 2)}).fit(frame[["visits"]], y)
    low, high = model.posterior_["visits"].interval(0.95)
    for g in (0, 1):
        part = frame["visits"][y == g]
        wanted = stats.gamma.interval(0.95, part.sum() + 3, scale=1 / (len(part) + 2))
        assert (low[g], high[g]) == pytest.approx(wanted, rel=1e-9)


def test_a_mixture_names_what_its_posterior_is_conditional_on():
    """Its intervals treat memberships as known: with components 2 sd apart, 22 of 60 of them contain the mean."""
    frame, _ = people()
    model = sc.Mixture(2, kinds={"visits": "poisson"}, random_state=0).fit(frame[["visits"]])
    with pytest.raises(AttributeError, match="posterior_given_memberships_ treats them as known"):
        model.posterior_  # noqa: B018
    rows = arrow_of(model.augment(frame[["visits"]])).to_pandas()
    known = sc.NaiveBayes(kinds={"visits": "poisson"}, prior="row")
    known.fit(rows[["visits"]], rows["(class)"], sample_weight=rows["(count)"])
    low, high = model.posterior_given_memberships_["visits"].interval(0.95)
    np.testing.assert_allclose((low, high), known.posterior_["visits"].interval(0.95), rtol=1e-6)


# -- levels never seen


@pytest.mark.parametrize("a", [0.5, 1.0, 3.0])
def test_an_unseen_level_has_the_reserved_mass(a):
    frame, y = people()
    model = sc.NaiveBayes(prior=a).fit(frame[["colour"]], y)
    seen = np.array([(y == g).sum() for g in (0, 1)])
    reserved = a / (seen + a * (3 + 1))
    wanted = model.class_prior_ * reserved
    with pytest.warns(sc.DataWarning, match="1 cell holds levels never seen.*'colour'"):
        found = model.predict_proba(pd.DataFrame({"colour": ["purple"]}))[0]
    np.testing.assert_allclose(found, wanted / wanted.sum(), rtol=1e-13)
    assert model.score_samples(pd.DataFrame({"colour": ["purple"]}))[0] == pytest.approx(
        np.log(wanted.sum()), rel=1e-13
    )


def test_known_levels_are_not_changed_by_the_reserve():
    frame, y = people()
    model = sc.NaiveBayes(prior=1.0).fit(frame[["colour"]], y)
    counts = np.array([[((frame["colour"] == c) & (y == g)).sum() for c in LEVELS["colour"]] for g in (0, 1)])
    np.testing.assert_allclose(model.params_["colour"]["probability"], (counts + 1) / (counts.sum(1) + 3)[:, None])


def test_under_ml_an_unseen_level_is_no_evidence():
    frame, y = people()
    model = sc.NaiveBayes(estimate="ml").fit(frame[["colour", "rich"]], y)
    new = pd.DataFrame({"colour": ["purple"], "rich": [True]})
    known = pd.DataFrame({"colour": [None], "rich": [True]})
    np.testing.assert_array_equal(model.predict_proba(new), model.predict_proba(known))


def test_nothing_is_said_when_nothing_is_new():
    frame, y = people()
    model = sc.NaiveBayes().fit(frame, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.predict_proba(frame)


def test_bdeu_shares_one_imagined_row_between_groups_and_levels_and_implies_mean() -> None:
    table = {"colour": ["red", "red", "blue", "green"]}
    classes = ["a", "a", "b", "b"]
    for estimate in ("mean", "map"):
        model = sc.NaiveBayes(prior="bdeu", estimate=estimate).fit(table, classes)
        # Levels in sorted order: blue, green, red; one row over 2 classes x 3 levels.
        expected = (np.array([[0.0, 0.0, 2.0], [1.0, 1.0, 0.0]]) + 1 / 6) / (2 + 1 / 2)
        np.testing.assert_allclose(model.params_["colour"]["probability"], expected, rtol=1e-14)
