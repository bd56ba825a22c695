"""The laws of counting hold for networks too: halves, weights, nulls, order, threads, files, more rows and fewer."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import softcount as sc
from contract.networks import (
    HIDDEN,
    LEVELS,
    NUMBERS,
    Net,
    close,
    close_counts,
    drawn,
    every_complete_network,
    every_network,
    same_bits,
)
from softcount.errors import DataError

pytestmark = pytest.mark.filterwarnings("ignore::softcount.errors.DataWarning")
seeds = pytest.mark.parametrize("seed", range(2))


def asked(net: Net, model: Any, table: pd.DataFrame) -> list[Any]:
    """Answers of every kind, as plain arrays."""
    found = [model.score_samples(table), model.anomaly_score(table)]
    for node in model.nodes:
        found.append(model.predict(table, node))
        if node in model.levels_:
            found.append(model.predict_proba(table, node))
            answer = model.query(node, {"a": "yes"} if node != "a" else {"b": "mid"})
            found.append(np.array(list(answer.values())) if isinstance(answer, dict) else answer.shares)
    found.append(np.array(model.most_probable().log_probability))
    return found


# -- halves, weights, order


@seeds
@every_complete_network
def test_two_halves_merged_are_the_whole(net: Net, seed: int) -> None:
    table, cut = net.table(seed), 20 + 15 * seed
    whole, left, right = (net.fit(part) for part in (table, table[:cut], table[cut:]))
    before = left.predict(table[:cut], "a").tolist()
    merged = left.merge(right)
    close_counts(merged, whole)
    close(merged, whole)
    close(right.merge(left), whole)
    assert left.predict(table[:cut], "a").tolist() == before
    assert merged.counts_.rows == whole.counts_.rows == len(table)


@every_complete_network
def test_levels_that_only_one_half_has_are_joined(net: Net) -> None:
    table = net.table(5)
    first = (table["b"] != "top") & (table.index % 2 == 0)
    table = pd.concat([table[first], table[~first]])
    cut = int(first.sum())
    merged = net.fit(table[:cut]).merge(net.fit(table[cut:]))
    close(merged, net.fit(table))


@seeds
@every_network
def test_weight_two_is_the_row_twice(net: Net, seed: int) -> None:
    table = net.table(seed)
    weights = np.random.default_rng(seed).integers(1, 4, len(table))
    weighted = net.fit(table, weights)
    repeated = net.fit(table.loc[table.index.repeat(weights)])
    close_counts(weighted, repeated)
    close(weighted, repeated)
    assert weighted.log_likelihood_ == pytest.approx(repeated.log_likelihood_, rel=1e-12)


@seeds
@every_network
def test_rows_of_weight_zero_count_for_nothing(net: Net, seed: int) -> None:
    table = net.table(seed)
    odd = pd.DataFrame({"a": "never", "b": "low", "c": "other", "x": 1e9, "k": 99.0, "z": -1e9}, index=[0, 1])
    with_odd = pd.concat([odd, table, odd])
    found = net.fit(with_odd, [0, 0, *[1.0] * len(table), 0, 0])
    plain = net.fit(table, [1.0] * len(table))
    close(found, plain)
    close_counts(found, plain)
    assert "never" not in found.levels_["a"] and "other" not in found.levels_.get("c", [])


@seeds
@every_network
def test_the_order_of_rows_does_not_matter(net: Net, seed: int) -> None:
    table = net.table(seed)
    shuffled = table.sample(frac=1, random_state=seed)
    one, other = net.fit(table), net.fit(shuffled)
    close(one, other)
    close_counts(one, other)


@every_network
def test_the_order_of_columns_does_not_matter(net: Net) -> None:
    table = net.table(1)
    one, other = net.fit(table), net.fit(table[table.columns[::-1]])
    close(one, other)


@every_network
def test_two_threads_give_the_bits_of_one(net: Net) -> None:
    table = net.table(2, rows=9_000)
    one, other = net.fit(table, n_jobs=1), net.fit(table, n_jobs=2)
    same_bits(one, other)


@pytest.mark.parametrize("edges", ["tan", "chow-liu", "search"])
def test_structures_that_are_found_do_not_depend_on_order_weights_or_threads(edges: str) -> None:
    table = drawn(3, 300)
    target = "c" if edges == "tan" else None
    how = {"cut": {"x": 3, "z": 3}}
    found = sc.BayesNet(edges, n_jobs=1, **how).fit(table, target)
    mixed = sc.BayesNet(edges, n_jobs=2, **how).fit(table.sample(frac=1, random_state=1), target)
    weights = np.resize([1, 2, 3], len(table))
    weighted = sc.BayesNet(edges, **how).fit(table, target, weights)
    repeated = sc.BayesNet(edges, **how).fit(table.loc[table.index.repeat(weights)], target)
    assert set(found.edges_) == set(mixed.edges_)
    assert set(weighted.edges_) == set(repeated.edges_)


# -- nulls


@every_network
def test_a_null_is_no_evidence(net: Net) -> None:
    """What follows from a row with nulls is what follows from the cells that it has."""
    table = net.table(4)
    model = net.fit(table)
    blank = table[:6].assign(b=None)
    for row, answer in zip(range(6), model.predict_proba(blank, "b"), strict=True):
        given = {
            name: blank.iloc[row][name] for name in model.nodes if name in table and pd.notna(blank.iloc[row][name])
        }
        if net.target is not None:
            given.pop(net.target, None)  # rows that are predicted have no class
        np.testing.assert_allclose(list(model.query("b", given).values()), answer, rtol=1e-12, atol=1e-15)


@every_network
def test_rows_of_nulls_change_neither_the_height_nor_the_place_that_em_ends_at(net: Net) -> None:
    table = net.table(6)
    nothing = pd.DataFrame({name: [None] * 7 for name in table}).astype(table.dtypes.to_dict(), errors="ignore")
    longer = pd.concat([table, nothing], ignore_index=True)
    how = {"max_iter": 20_000, "tol": 1e-15, "n_init": 1}
    start = net.fit(table, **how)
    plain, found = (net.fit(rows, **how, init=start) for rows in (table, longer))
    assert found.log_likelihood_ == pytest.approx(plain.log_likelihood_, rel=1e-9)
    close(found, plain, 2e-5, but="unseen")  # which depends on the number of rows
    np.testing.assert_allclose(plain.score_samples(longer)[-7:], 0.0, atol=1e-14)


# -- more rows and fewer


@seeds
@every_complete_network
def test_learning_in_parts_is_learning_at_once(net: Net, seed: int) -> None:
    table = net.table(seed)
    grown = net.new()
    for part in (table[:30], table[30:31], table[31:]):
        grown.partial_fit(part, net.target)
    close(grown, net.fit(table))
    close_counts(grown, net.fit(table))


@seeds
@every_complete_network
def test_rows_that_are_forgotten_were_never_there(net: Net, seed: int) -> None:
    table = net.table(seed)
    found = net.fit(table).forget(table[50:], net.target)
    rest = net.fit(table[:50])
    close_counts(found, rest)
    close(found, rest, 1e-9)


@every_network
def test_more_is_not_forgotten_than_was_learned(net: Net) -> None:
    table = net.table(1)
    model = net.fit(table[:20])
    before = model.predict_proba(table, "b")
    with pytest.raises(DataError, match="more is to be forgotten than was learned"):
        model.forget(table, net.target)
    np.testing.assert_array_equal(model.predict_proba(table, "b"), before)


@pytest.mark.parametrize("name", ["levels", "numbers"])
def test_holes_of_further_rows_are_shared_out_as_the_network_so_far_says(name: str) -> None:
    edges = {"levels": LEVELS, "numbers": NUMBERS}[name]
    table = drawn(7, 80)
    more = pd.DataFrame({"a": ["yes", None, "no"], "b": [None, "top", None], "c": ["u", "v", None]})
    more = more.assign(x=[0.5, None, -1.0], k=[2.0, 3.0, None], z=0.0)
    before = sc.BayesNet(edges).fit(table)
    after = sc.BayesNet(edges).fit(table).partial_fit(more)
    given = [{key: row[key] for key in before.nodes if pd.notna(row[key])} for _, row in more.iterrows()]
    wanted = np.zeros(3)
    for known in given:
        known = dict(known)
        own = {known.pop("b"): 1.0} if "b" in known else before.query("b", known)
        wanted += [own.get(level, 0.0) for level in before.levels_["b"]]
    gained = (after.counts_["b"] - before.counts_["b"]).sum(axis=0)
    np.testing.assert_allclose(gained, wanted, rtol=1e-11)


def test_a_hidden_node_learns_from_further_rows_and_is_not_merged() -> None:
    table = drawn(8, 80)
    net = Net(HIDDEN, {"hidden": {"h": 2}})
    model, other = net.fit(table[:40]), net.fit(table[40:])
    shares = model.predict_proba(table[40:], "h").sum(axis=0)
    before = model.counts_["h"].sum(axis=0)
    with pytest.raises(DataError, match="'h' is hidden"):
        model.merge(other)
    model.partial_fit(table[40:])
    np.testing.assert_allclose(model.counts_["h"].sum(axis=0), before + shares, rtol=1e-11)


# -- files


@every_network
def test_a_saved_network_answers_the_same(net: Net, tmp_path: Any) -> None:
    table = net.table(9)
    model = net.fit(table)
    model.save(tmp_path / "net.sc")
    again = sc.load(tmp_path / "net.sc")
    same_bits(model, again)
    for one, other in zip(asked(net, model, table), asked(net, again, table), strict=True):
        np.testing.assert_array_equal(one, other)
    assert again.notes_ == model.notes_ and again.n_parameters_ == model.n_parameters_
    again.save(tmp_path / "again.sc")
    same_bits(sc.load(tmp_path / "again.sc"), model)


@every_complete_network
def test_a_loaded_network_learns_on_as_the_one_that_was_saved(net: Net, tmp_path: Any) -> None:
    table = net.table(9)
    net.fit(table[:40]).save(tmp_path / "net.sc")
    grown = sc.load(tmp_path / "net.sc").partial_fit(table[40:], net.target)
    close(grown, net.fit(table))
    close(sc.load(tmp_path / "net.sc").merge(net.fit(table[40:])), net.fit(table))


def test_settings_of_a_network_come_back_from_a_file(tmp_path: Any) -> None:
    table = drawn(1, 60)
    settings = {
        "hidden": {"h": ["one", "two"]}, "cut": {"z": [0.0, 1.0]}, "prior": {"a": 2.0}, "max_parents": 2,
        "required": [("h", "b")], "forbidden": [("b", "a")], "criterion": "bdeu", "kinds": {"k": "poisson"},
    }  # fmt: skip
    model = sc.BayesNet([("h", "a"), ("h", "b"), ("z", "a"), ("b", "k")], max_iter=3, n_init=1, **settings).fit(table)
    model.save(tmp_path / "net.sc")
    again = sc.load(tmp_path / "net.sc").get_params()
    assert set(again["edges"]) == set(model.get_params()["edges"])
    for name in settings:
        assert again[name] == model.get_params()[name], name
