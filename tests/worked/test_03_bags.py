"""Worked example 3: five kinds of bag, and draws that are all lime."""

import math

import pytest

import softcount as sc

SHARES = {"h1": 1.0, "h2": 0.75, "h3": 0.5, "h4": 0.25, "h5": 0.0}
PRIOR = dict(zip(SHARES, [0.1, 0.2, 0.4, 0.2, 0.1], strict=True))
BAGS = sc.Hypotheses(PRIOR, {h: {"cherry": share, "lime": 1 - share} for h, share in SHARES.items()})

POSTERIORS = {
    1: [0, 0.1, 0.4, 0.3, 0.2],
    2: [0, 0.038462, 0.307692, 0.346154, 0.307692],
    3: [0, 0.013158, 0.210526, 0.355263, 0.421053],
    10: [0, 0.000002, 0.003499, 0.100872, 0.895628],
}
NEXT_IS_LIME = {0: 0.5, 1: 0.65, 2: 0.730769, 3: 0.796053, 4: 0.847107, 10: 0.973031}


def after(draws):
    return BAGS.observe(["lime"] * draws)


@pytest.mark.parametrize("draws", POSTERIORS)
def test_what_is_believed_of_each_bag(draws):
    assert list(after(draws).posterior.values()) == pytest.approx(POSTERIORS[draws], abs=5e-7)


@pytest.mark.parametrize("draws", NEXT_IS_LIME)
def test_how_probable_another_lime_is(draws):
    assert after(draws).predict("lime") == pytest.approx(NEXT_IS_LIME[draws], abs=5e-7)


def test_what_the_map_hypothesis_says():
    assert [after(draws).predict("lime", by="map") for draws in range(4)] == [0.5, 0.5, 0.75, 1.0]
    assert [after(draws).map for draws in range(4)] == ["h3", "h3", "h4", "h5"]


def test_what_the_ml_hypothesis_says():
    assert [after(draws).predict("lime", by="ml") for draws in (1, 2, 3, 10)] == [1.0] * 4
    assert after(1).ml == "h5"


def test_description_lengths_in_bits_whose_minimum_is_the_map():
    bits = after(3).description_length
    assert list(bits.values()) == pytest.approx([math.inf, 8.3219, 4.3219, 3.5670, 3.3219], abs=5e-5)
    assert min(bits, key=bits.get) == after(3).map


def test_the_history_has_every_figure():
    history = after(10).history.to_pydict()
    for draws, posterior in POSTERIORS.items():
        assert [history[h][draws] for h in SHARES] == pytest.approx(posterior, abs=5e-7)
    for draws, probability in NEXT_IS_LIME.items():
        assert history["bayes lime"][draws] == pytest.approx(probability, abs=5e-7)
        assert history["bayes cherry"][draws] == pytest.approx(1 - probability, abs=5e-7)
    assert history["map lime"][:4] == [0.5, 0.5, 0.75, 1.0]
    assert history["ml lime"] == [None] + [1.0] * 10
    assert history["observed"] == list(range(11))
    assert history["value"] == [None] + ["lime"] * 10
