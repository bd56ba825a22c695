"""Hidden Markov models: laws over every family, what they find, and what they say of it."""

from __future__ import annotations

import pickle
import threading
import tracemalloc
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import softcount as sc
from contract.examples import EXAMPLES, Example
from every_path import every_path

NEXT = np.array([[0.9, 0.08, 0.02], [0.1, 0.8, 0.1], [0.05, 0.05, 0.9]])
MEANS = np.array([0.0, 4.0, 9.0])


def planted(count: int = 12, steps: int = 60, seed: int = 0) -> tuple[list[list[dict[str, Any]]], list[np.ndarray]]:
    """Sequences of a number, a symbol and a count, some cells missing, and the states they were made with."""
    rng, sequences, paths = np.random.default_rng(seed), [], []
    for _ in range(count):
        path = [int(rng.integers(3))]
        while len(path) < steps:
            path.append(int(rng.choice(3, p=NEXT[path[-1]])))
        sequences.append([_step(rng, state) for state in path])
        paths.append(np.array(path))
    return sequences, paths


def _step(rng: np.random.Generator, state: int) -> dict[str, Any]:
    cells = {
        "size": float(rng.normal(MEANS[state], 1.0)),
        "mark": "abc"[(state + int(rng.random() < 0.2)) % 3],
        "visits": int(rng.poisson(1.0 + 5.0 * state)),
    }
    return {key: None if rng.random() < 0.1 else cell for key, cell in cells.items()}


SEQUENCES, PATHS = planted()
KINDS = {"size": "normal", "mark": "categorical", "visits": "poisson"}
FAST: dict[str, Any] = {"kinds": KINDS, "random_state": 0, "n_init": 3}


@pytest.fixture(scope="module")
def model() -> sc.HiddenMarkov:
    return sc.HiddenMarkov(3, **FAST).fit(SEQUENCES)


def same_bits(one: sc.HiddenMarkov, other: sc.HiddenMarkov) -> None:
    assert one.trace_ == other.trace_ and np.array_equal(one.transitions_, other.transitions_)
    for key in one.counts_:
        assert np.array_equal(one.counts_[key], other.counts_[key])


def close(one: sc.HiddenMarkov, other: sc.HiddenMarkov, tolerance: float = 1e-11) -> None:
    assert np.allclose(one.first_, other.first_, rtol=tolerance) and one.converged_ == other.converged_
    assert np.allclose(one.transitions_, other.transitions_, rtol=tolerance)
    for key, own in one.params_.items():
        for name, values in own.items():
            assert np.allclose(values, other.params_[key][name], rtol=tolerance, atol=tolerance), (key, name)


# -- laws over every family


def of_example(example: Example, **own: Any) -> sc.HiddenMarkov:
    """A few maps of two states that start from nearest rows."""
    how = {"n_init": 1, "max_iter": 3, "tol": 0.0, "random_state": 1, "n_jobs": 1, "prior": 1.0} | own
    return sc.HiddenMarkov(2, kinds=example.kinds, **how)


def steps_of(example: Example) -> list[dict[str, Any]]:
    return [dict(zip(example.columns, row, strict=True)) for row in example.values]


FAMILIES = [e for e in EXAMPLES if e.family.facts.has_density and not (e.family.facts.needs_classes or e.needs_values)]
each_family = pytest.mark.parametrize("example", FAMILIES, ids=[example.title for example in FAMILIES])


@each_family
def test_a_sequence_of_weight_two_is_it_twice_and_a_missing_one_says_nothing(example: Example) -> None:
    steps = steps_of(example)
    one, other = steps, [*steps[3:], *steps[:2]]
    nothing = [dict.fromkeys(example.columns)] * 2
    heavy = of_example(example).fit([one, other], sample_weight=[2.0, 1.0])
    twice = of_example(example).fit([one, one, other])
    close(heavy, twice, 1e-9)
    logs = heavy.score_samples([one, nothing, [*nothing, *one]])
    assert logs[1] == pytest.approx(0.0, abs=1e-12)
    assert np.isfinite(logs).all()


@each_family
def test_halves_add_to_the_whole(example: Example) -> None:
    steps = steps_of(example)
    fitted = of_example(example).fit([steps, steps[2:]])
    whole, left, right = (fitted._count_steps(part, None) for part in ([steps, steps[2:]], [steps], [steps[2:]]))
    for key in whole:
        assert np.allclose(whole[key], (left + right)[key], rtol=1e-12, atol=1e-12)
    assert whole.log_likelihood == pytest.approx(left.log_likelihood + right.log_likelihood, rel=1e-12)
    assert fitted.log_likelihood([steps, steps[2:]]) == pytest.approx(whole.log_likelihood, rel=1e-12)


@each_family
def test_the_objective_never_falls(example: Example) -> None:
    steps = steps_of(example)
    fitted = of_example(example, max_iter=12).fit([steps, steps[::-1], steps[1:]])
    assert (np.diff(fitted.trace_) >= -1e-9 * np.abs(fitted.trace_[-1])).all()


@each_family
def test_a_saved_model_answers_the_same(example: Example, tmp_path: Path) -> None:
    steps = steps_of(example)
    fitted = of_example(example).fit([steps, steps[1:]])
    fitted.save(tmp_path / "chain.sc")
    loaded = sc.load(tmp_path / "chain.sc")
    same_bits(fitted, loaded)
    assert np.array_equal(fitted.score_samples([steps]), loaded.score_samples([steps]))
    assert np.array_equal(fitted.predict([steps])[0], loaded.predict([steps])[0])


# -- laws of the whole


def test_the_same_bits_at_any_number_of_threads() -> None:
    rng = np.random.default_rng(3)
    steps = [rng.normal(np.where(np.arange(n) % 50 < 25, 0.0, 3.0), 1.0) for n in (9000, 400, 9000, 20_000)]
    one, four = (sc.HiddenMarkov(2, n_init=1, max_iter=3, tol=0.0, random_state=0, n_jobs=n).fit(steps) for n in (1, 4))
    same_bits(one, four)


def test_a_pass_over_a_long_sequence_holds_steps_x_states_once() -> None:
    steps = np.random.default_rng(1).normal(np.arange(60_000) // 50 % 8, 0.5)
    sequences = sc.read_sequences([steps])
    fitted = sc.HiddenMarkov(8, n_init=1, max_iter=1, tol=0.0, random_state=0, n_jobs=1).fit(sequences).fitted_
    (chunk,) = sequences.chunks(fitted.table(sequences))
    (part,) = fitted.chain.arranged([fitted.chain.prepare(chunk)])
    peaks = []

    def measured() -> None:  # in a thread that has no memory of its own yet
        tracemalloc.start()
        fitted.chain.expect(fitted.compiled, part)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()

    thread = threading.Thread(target=measured)
    thread.start()
    thread.join()
    assert peaks[0] < 1.6 * len(steps) * 8 * 8


def test_a_sequence_without_weight_is_not_there_and_a_model_pickles() -> None:
    steps = [list("abab"), list("zzz"), list("bba")]
    light = sc.HiddenMarkov(2, random_state=0, n_init=2).fit(
        steps, [[*"xy", None, None], [*"www"], [None] * 3], [1, 0, 1]
    )
    without = sc.HiddenMarkov(2, random_state=0, n_init=2).fit([steps[0], steps[2]], [[*"xy", None, None], [None] * 3])
    close(light, without)
    assert light.levels_ == {0: ["a", "b"]} and light.states_.tolist() == ["x", "y"]
    light.predict([list("ab")])
    again = pickle.loads(pickle.dumps(light))
    assert np.array_equal(again.predict([list("abba")])[0], light.predict([list("abba")])[0])


def test_one_state_is_the_one_class_of_a_mixture() -> None:
    rows = [step for sequence in SEQUENCES for step in sequence]
    table = {key: [row[key] for row in rows] for key in KINDS}
    chain, mixture = sc.HiddenMarkov(1, kinds=KINDS).fit(SEQUENCES), sc.Mixture(1, kinds=KINDS).fit(table)
    assert chain.log_likelihood_ == pytest.approx(mixture.log_likelihood_, rel=1e-12)
    for key, own in mixture.params_.items():
        for name, values in own.items():
            assert np.allclose(chain.params_[key][name], values, rtol=1e-12), (key, name)


def test_a_missing_step_is_summed_out() -> None:
    symbols = [list("aabbbacca"), list("bbca"), list("accab")]
    fitted = sc.HiddenMarkov(2, random_state=0, n_init=2, max_iter=20).fit(symbols)
    for gap in range(3):
        shown = [*"abc"]
        ways = np.exp([fitted.score_samples([[*shown[:gap], way, *shown[gap + 1 :]]])[0] for way in "abc"])
        shown[gap] = None  # type: ignore[call-overload]
        assert fitted.score_samples([shown])[0] == pytest.approx(np.log(ways.sum()), rel=1e-10)


def test_likelihood_paths_and_posteriors_are_those_of_every_path(model: sc.HiddenMarkov) -> None:
    sequences = [sequence[:6] for sequence in SEQUENCES[:4]]
    logs = np.concatenate([_by_hand(model, sequence) for sequence in sequences])
    right = every_path(logs, np.arange(0, 25, 6), np.ones(4), model.first_, model.transitions_)
    assert np.allclose(model.score_samples(sequences), right.logs, rtol=1e-12)
    assert np.allclose(np.concatenate(model.predict_proba(sequences)), right.members, atol=1e-12)
    for sequence, path, best in zip(sequences, model.predict(sequences), right.likeliest, strict=True):
        own = _by_hand(model, sequence)[np.arange(6), path].sum() + np.log(model.first_[path[0]])
        own += sum(np.log(model.transitions_[a, b]) for a, b in pairwise(path))
        assert own == pytest.approx(best, rel=1e-12)


def _by_hand(model: sc.HiddenMarkov, sequence: list[dict[str, Any]]) -> np.ndarray:
    """(steps x states) log-density of every step by the textbook's formulas."""
    from scipy import stats

    size, mark, visits = (model.params_[key] for key in ("size", "mark", "visits"))
    found = np.zeros((len(sequence), 3))
    for t, step in enumerate(sequence):
        if step["size"] is not None:
            found[t] += stats.norm.logpdf(step["size"], size["mean"], np.sqrt(size["variance"]))
        if step["mark"] is not None:
            found[t] += np.log(mark["probability"][:, model.levels_["mark"].index(step["mark"])])
        if step["visits"] is not None:
            found[t] += stats.poisson.logpmf(step["visits"], visits["rate"])
    return found


# -- what is found


def matched(model: sc.HiddenMarkov, sequences: Any, paths: list[np.ndarray]) -> float:
    """The share of steps whose state is right, states being named as fits best."""
    from scipy.optimize import linear_sum_assignment

    found, right = np.concatenate(model.predict(sequences)).astype(int), np.concatenate(paths)
    table = np.zeros((model.n_states_, right.max() + 1))
    np.add.at(table, (found, right), 1)
    return float(table[linear_sum_assignment(-table)].sum() / len(right))


def test_planted_states_are_found_and_counted_by_evidence() -> None:
    auto = sc.HiddenMarkov(**FAST).fit(SEQUENCES)
    assert auto.n_states_ == 3 and auto.selection_["states"].tolist()[:3] == [1, 2, 3]
    assert matched(auto, SEQUENCES, PATHS) > 0.97
    assert any("3 states have the best evidence" in note for note in auto.notes_)
    order = np.argsort(auto.params_["size"]["mean"])
    assert np.allclose(auto.transitions_[np.ix_(order, order)], NEXT, atol=0.08)
    assert (np.diff(auto.occupied_) <= 0).all()  # the fullest first
    assert np.allclose(auto.durations_, 1 / (1 - np.diag(auto.transitions_)))
    share = auto.stationary()
    assert sum(share.values()) == pytest.approx(1.0)
    assert np.allclose(np.array([*share.values()]) @ auto.transitions_, [*share.values()], atol=1e-12)


def test_transitions_that_are_zero_stay_zero_and_left_right_only_goes_on() -> None:
    rng = np.random.default_rng(1)
    sequences = [np.repeat([0.0, 5.0, 2.0, 8.0], rng.integers(4, 9, 4)) + rng.normal(0, 0.5, 1) for _ in range(15)]
    sequences = [steps + rng.normal(0.0, 0.4, len(steps)) for steps in sequences]
    line = sc.HiddenMarkov(4, transitions="left-right", random_state=0, n_init=3).fit(sequences)
    assert not np.tril(line.transitions_, -1).any() and line.first_.tolist() == [1.0, 0.0, 0.0, 0.0]
    assert np.abs(line.params_[0]["mean"] - [0.0, 5.0, 2.0, 8.0]).max() < 0.6
    for path in line.predict(sequences):
        assert (np.diff(path) >= 0).all() and path[0] == 0
    ring = np.array([[1, 1, 0], [0, 1, 1], [1, 0, 1]])
    turning = sc.HiddenMarkov(3, transitions=ring, random_state=0, n_init=3, estimate="ml").fit(sequences)
    assert (turning.transitions_[ring == 0] == 0).all() and (turning.transitions_.sum(axis=1) == pytest.approx(1.0))
    assert line.n_parameters_ == 6 + 8 and turning.n_parameters_ == 3 + 2 + 6


def test_states_that_are_tied_show_the_same() -> None:
    symbols = [list("aaaaabbbbbaaaaabbbbb"), list("aaaabbbbaaaa")]
    tied = sc.HiddenMarkov(3, tied=["calm", "storm", "calm"], random_state=0, n_init=4).fit(symbols)
    shown = tied.params_[0]["probability"]
    assert np.array_equal(shown[0], shown[2]) and not np.allclose(shown[0], shown[1])
    assert tied.n_parameters_ == 2 + 6 + 2
    assert tied.counts_[0].sum() == pytest.approx(32) and len(tied.counts_[0]) == 2


def test_known_states_are_kept_and_name_the_others() -> None:
    known = [[("low", "mid", "high")[state] if t % 7 == 0 else None for t, state in enumerate(path)] for path in PATHS]
    some = sc.HiddenMarkov(3, **FAST).fit(SEQUENCES, known)
    assert sorted(some.states_) == ["high", "low", "mid"]
    names = np.array(["low", "mid", "high"])
    right = [names[path] for path in PATHS]
    assert np.mean(np.concatenate(some.predict(SEQUENCES)) == np.concatenate(right)) > 0.97
    every = sc.HiddenMarkov(3, kinds=KINDS, estimate="ml").fit(SEQUENCES, right)
    pairs = [pair for path in right for pair in pairwise(path)]
    table = np.array([[sum(p == (a, b) for p in pairs) for b in every.states_] for a in every.states_])
    assert np.allclose(every.transitions_, table / table.sum(axis=1, keepdims=True), rtol=1e-12)
    more = sc.HiddenMarkov(4, **FAST | {"max_iter": 5}).fit(SEQUENCES, known)
    assert more.n_states_ == 4 and len(set(map(str, more.states_))) == 4
    with pytest.raises(sc.DataError, match="3 states are known, but only 2"):
        sc.HiddenMarkov(2, **FAST).fit(SEQUENCES, known)


def test_full_covariances_with_holes() -> None:
    rng = np.random.default_rng(2)
    path = (np.arange(400) // 20) % 2
    spreads = np.array([[[1.0, 0.9], [0.9, 1.0]], [[1.0, -0.9], [-0.9, 1.0]]])
    steps = np.array([rng.multivariate_normal([0, 0], spreads[state]) for state in path])
    steps[rng.random(steps.shape) < 0.1] = np.nan
    block = sc.HiddenMarkov(2, kinds={(0, 1): "multinormal"}, random_state=0, n_init=5).fit([steps])
    assert matched(block, [steps], [path]) > 0.9
    assert (np.diff(block.trace_) >= -1e-9 * abs(block.trace_[-1])).all()


# -- what is said


def test_filtered_states_know_nothing_of_later_steps(model: sc.HiddenMarkov) -> None:
    whole, part = SEQUENCES[0], SEQUENCES[0][:20]
    seen = model.predict_proba([whole], filtered=True)[0]
    assert np.allclose(seen[:20], model.predict_proba([part], filtered=True)[0], atol=1e-12)
    assert np.allclose(model.predict_proba([part])[0][-1], seen[19], atol=1e-12)


def test_forecasts_follow_the_transitions_and_cover(model: sc.HiddenMarkov) -> None:
    now = np.stack([part[-1] for part in model.predict_proba(SEQUENCES, filtered=True)])
    coming = model.forecast_proba(SEQUENCES, h=3)
    assert np.allclose(coming[:, 2], now @ np.linalg.matrix_power(model.transitions_, 3), atol=1e-12)
    table = model.forecast(SEQUENCES, h=2, level=0.8)
    assert list(table.columns[:4]) == ["sequence", "ahead", "state", "p(state)"] and len(table) == 2 * len(SEQUENCES)
    means, odds = model.params_["size"]["mean"], coming[:, :2].reshape(-1, 3)
    assert np.allclose(table["size"].to_numpy(), odds @ means, rtol=1e-9)
    drawn = model.sample(300, length=40, random_state=4)
    size, names = drawn["size"].to_numpy(), np.array(drawn["sequence"])
    whole = [[{"size": x, "mark": None, "visits": None} for x in size[names == n]] for n in range(1, 301)]
    ahead = model.forecast([sequence[:-1] for sequence in whole], level=0.8)
    low, high = ahead["size low"].to_numpy(), ahead["size high"].to_numpy()
    last = np.array([sequence[-1]["size"] for sequence in whole])
    assert 0.72 < np.mean((low <= last) & (last <= high)) < 0.88


def test_explanations_add_up_to_the_log_odds(model: sc.HiddenMarkov) -> None:
    told, members = model.explain(SEQUENCES[:2]), np.concatenate(model.predict_proba(SEQUENCES[:2]))
    state, other = told["state"].to_numpy(), told["against"].to_numpy()
    rows = np.arange(len(members))
    odds = np.log(members[rows, state]) - np.log(members[rows, other])
    parts = sum(told[name].to_numpy() for name in ("(before)", "size", "mark", "visits", "(after)"))
    assert np.allclose(parts, odds, rtol=1e-9, atol=1e-9) and (odds >= 0).all()
    gone = [row["size"] is None for sequence in SEQUENCES[:2] for row in sequence]
    assert (told["size"].to_numpy()[gone] == 0).all()


def test_an_odd_step_is_found_with_its_reason(model: sc.HiddenMarkov) -> None:
    odd = [dict(step) for step in SEQUENCES[3]]
    odd[25] = odd[25] | {"size": 60.0}
    worst = model.anomalies([SEQUENCES[0], odd], 1)
    first = worst.to_dict("records")[0]
    assert (first["sequence"], first["step"], first["reason"]) == (2, 26, "size")
    scores = model.anomaly_score([SEQUENCES[0], odd])
    assert scores[1].argmax() == 25 and scores[1].max() == pytest.approx(first["score"])
    assert abs(np.mean(np.concatenate(model.anomaly_score(SEQUENCES)))) < 0.5  # about 0 for ordinary steps


def test_samples_come_from_the_model(model: sc.HiddenMarkov) -> None:
    drawn = model.sample(40, length=200, random_state=1)
    state, size = drawn["state"].to_numpy(), drawn["size"].to_numpy()
    for k in range(3):
        assert size[state == k].mean() == pytest.approx(model.params_["size"]["mean"][k], abs=0.15)
    pairs = np.zeros((3, 3))
    inside = drawn["step"].to_numpy()[1:] > 1
    np.add.at(pairs, (state[:-1][inside], state[1:][inside]), 1)
    assert np.allclose(pairs / pairs.sum(axis=1, keepdims=True), model.transitions_, atol=0.05)
    assert model.sample(3, length=4, random_state=1).equals(model.sample(3, length=4, random_state=1))
    begun = model.sample(5, length=2, start=2, random_state=1)
    assert set(begun["state"].to_numpy()[::2]) == {2}


def test_more_sequences_are_learned_from(model: sc.HiddenMarkov) -> None:
    grown = sc.HiddenMarkov(3, **FAST).fit(SEQUENCES[:8])
    before = grown.transitions_.copy()
    counts = {key: grown.counts_[key].copy() for key in grown.counts_}
    fresh = grown._count_steps(SEQUENCES[8:], None)
    grown.partial_fit(SEQUENCES[8:])
    assert grown.counts_.rows == 12 * 60 and not np.allclose(grown.transitions_, before)
    assert np.allclose(grown.counts_["mark"], counts["mark"] + fresh["mark"], rtol=1e-12)
    assert np.allclose(np.sort(np.diag(grown.transitions_)), np.sort(np.diag(model.transitions_)), atol=0.05)
    assert sc.HiddenMarkov(3, **FAST).partial_fit(SEQUENCES).counts_.rows == 12 * 60


def test_a_fit_may_start_from_another(model: sc.HiddenMarkov) -> None:
    again = sc.HiddenMarkov(3, kinds=KINDS, init=model).fit(SEQUENCES)
    assert again.n_iter_ < 12
    assert again.log_likelihood_ == pytest.approx(model.log_likelihood_, rel=1e-6)


def test_an_interrupted_fit_is_what_it_had_come_to(monkeypatch: pytest.MonkeyPatch) -> None:
    from softcount.models.hidden_chain import HiddenChain

    calls, plain = [0], HiddenChain.expect

    def tired(self: Any, *given: Any, **named: Any) -> Any:
        calls[0] += 1
        if calls[0] == 9:
            raise KeyboardInterrupt
        return plain(self, *given, **named)

    monkeypatch.setattr(HiddenChain, "expect", tired)
    with pytest.warns(sc.DataWarning, match="interrupted"):
        stopped = sc.HiddenMarkov(3, **FAST).fit(SEQUENCES)
    assert stopped.fitted_.interrupted and stopped.predict(SEQUENCES[:1])[0].shape == (60,)


def test_sequences_come_as_a_long_table_too(model: sc.HiddenMarkov) -> None:
    rows = [{"who": n, "at": t, **step} for n, sequence in enumerate(SEQUENCES) for t, step in enumerate(sequence)]
    order = np.random.default_rng(0).permutation(len(rows))
    table = {key: [rows[i][key] for i in order] for key in rows[0]}
    long = sc.HiddenMarkov(3, **FAST).fit(sc.read_sequences(table, sequence="who", sort_by="at"))
    assert long.log_likelihood_ == pytest.approx(model.log_likelihood_, rel=1e-9)


def test_all_ways_of_two_states_and_three_symbols_sum_to_one() -> None:
    fitted = sc.HiddenMarkov(2, random_state=0, n_init=2, max_iter=30).fit([list("abcabcaab"), list("ccabb")])
    total = np.exp(fitted.score_samples([list(way) for way in product("abc", repeat=4)])).sum()
    assert total == pytest.approx(1.0, rel=1e-12)
