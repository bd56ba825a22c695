"""Reports of text, networks, sequences and k-means: whole, harmless, and with the model's own figures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import softcount as sc
from html_checks import HOSTILE, checked
from softcount.cli import main
from softcount.report.network import edge_information
from softcount.report.page import Picture


def titles(report: Any) -> list[str]:
    return [block.title for block in report.page.blocks if isinstance(block, Picture)]


MAILS = ["win a free prize now", "free entry claim your prize", "lunch at noon today", "see you at dinner today"] * 5
KINDS = ["spam", "spam", "ham", "ham"] * 5


def test_text_has_characteristic_words_and_marked_documents() -> None:
    model = sc.NaiveBayes(kinds="text").fit(MAILS, KINDS)
    report = model.report(MAILS, KINDS)
    html = report.html
    checked(html)
    assert {"spam", "ham"} <= set(titles(report))
    assert '<mark class="for' in html and "prize" in html


def test_hostile_documents_stay_text() -> None:
    mails = [f"{word} {mail}" for word, mail in zip(HOSTILE[:20], MAILS, strict=True)]
    checked(sc.NaiveBayes(kinds="text").fit(mails, KINDS).report(mails, KINDS).html)


def candies(n: int = 200) -> dict[str, list[str]]:
    rng = np.random.default_rng(0)
    bag = rng.integers(0, 2, n)
    flavour = np.where(rng.random(n) < np.where(bag, 0.9, 0.2), "cherry", "lime")
    return {
        "Bag": ["one" if b else "two" for b in bag],
        "Flavor": flavour.tolist(),
        "Hole": rng.choice(["y", "n"], n).tolist(),
    }


def test_a_network_is_drawn_with_arcs_as_wide_as_their_information() -> None:
    net = sc.BayesNet([("Bag", "Flavor"), ("Bag", "Hole")]).fit(candies())
    report = net.report(candies())
    checked(report.html)
    assert titles(report)[-4:] == ["Nodes and edges", "Bag", "Flavor, given Bag", "Hole, given Bag"]
    says = edge_information(net.fitted_)
    joint = net.query(["Bag", "Flavor"])
    bags, flavours = net.query("Bag"), net.query("Flavor")
    by_hand = sum(p * np.log(p / (bags[a] * flavours[b])) for (a, b), p in joint.items())
    graph = net.fitted_.net.graph
    assert abs(says[graph.place("Bag"), graph.place("Flavor")] - by_hand) < 1e-12
    assert says[graph.place("Bag"), graph.place("Flavor")] > 10 * says[graph.place("Bag"), graph.place("Hole")]


def test_a_network_from_the_shell_has_its_evaluation_and_drift(tmp_path: Path) -> None:
    table = candies()
    lines = [",".join(table), *(",".join(row) for row in zip(*table.values(), strict=True))]
    (tmp_path / "candy.csv").write_text("\n".join(lines))
    run = CliRunner().invoke
    words = ["fit", str(tmp_path / "candy.csv"), "--target", "Bag", "--net", "tan", "-o", str(tmp_path / "net.sc")]
    assert run(main, words).exit_code == 0
    done = run(
        main, ["report", str(tmp_path / "net.sc"), str(tmp_path / "candy.csv"), "-o", str(tmp_path / "net.html")]
    )
    assert done.exit_code == 0, done.output
    html = (tmp_path / "net.html").read_text()
    checked(html)
    for said in ("Confusion matrix", "No column differs by more", "Nodes and edges", "SHA-256"):
        assert said in html


def test_chains_and_hidden_states_show_what_follows_what(tmp_path: Path) -> None:
    chain = sc.MarkovChain().fit(["abab<b>ba", "baab"])
    report = chain.report()
    checked(report.html)
    assert titles(report) == ["Transition probabilities", "Transition graph"]
    rng = np.random.default_rng(0)
    steps = [rng.normal(3 * (np.arange(40) // 10 % 2), 1.0)[:, None] for _ in range(10)]
    hidden = sc.HiddenMarkov(2, random_state=0, n_init=2).fit(steps)
    checked(hidden.report().html)
    chain.save(tmp_path / "chain.sc")
    done = CliRunner().invoke(main, ["report", str(tmp_path / "chain.sc"), "-o", str(tmp_path / "chain.html")])
    assert done.exit_code == 0, done.output


def test_k_means_shows_centres_regions_and_its_cost(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(0, 1, (60, 3)), rng.normal(5, 1, (60, 3)), rng.normal((0, 6, 0), 1, (60, 3))])
    X = pd.DataFrame(X, columns=["a", "b", "c"])
    model = sc.KMeans(3, n_init=2, random_state=1).fit(X)
    report = model.report(X)
    checked(report.html)
    assert titles(report)[:2] == ["Centres", "Nearest centre"]
    model.save(tmp_path / "km.sc")
    run = CliRunner().invoke
    assert run(main, ["report", str(tmp_path / "km.sc"), "-o", str(tmp_path / "km.html")]).exit_code == 0
    (tmp_path / "x.csv").write_text("c,b,a\n1,2,3\n1,,\n9,9,9\n")
    words = [str(tmp_path / name) for name in ("km.sc", "x.csv", "km.html")]
    assert run(main, ["report", *words[:2], "-o", words[2]]).exit_code == 0
    assert '<td class="r">50.0 %</td>' in (tmp_path / "km.html").read_text()
    assert run(main, ["explore", *words[:2], "-o", words[2]]).exit_code == 0
    (tmp_path / "x.csv").write_text("c,b\n1,2\n")
    done = run(main, ["report", *words[:2], "-o", words[2]])
    assert done.exit_code == 3 and "Leave it out" in done.output


@pytest.mark.filterwarnings("ignore::softcount.errors.DataWarning")
def test_models_of_other_kinds_are_reported_too() -> None:
    from scipy import sparse

    from softcount.demo import table_path

    counts = np.random.default_rng(0).poisson(1.0, (60, 8))
    kinds = np.arange(60) % 2
    for X in (counts.astype(float), sparse.csr_matrix(counts)):
        checked(sc.NaiveBayes().fit(X, kinds).report(X, kinds).html)
    for settings in ({"calibration": "temperature"}, {"kinds": {("price", "weight_kg"): "multinormal"}}):
        model = sc.NaiveBayes(**settings).fit(str(table_path()), "type")  # type: ignore[arg-type]
        checked(model.report(str(table_path())).html)
    checked(sc.Mixture(1, kinds={"type": "ignore"}).fit(str(table_path())).report(str(table_path())).html)
