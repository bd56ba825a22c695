"""Networks by the command line: learned, shown, asked, put to tables; network files in the place of models."""

from __future__ import annotations

import csv
import io
import json
import math
import random
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from click.testing import CliRunner, Result

import softcount
from cli.shell import python
from cli.tables import fruit_rows, write_table
from networks.drawn_networks import HOSTILE, hostile_network
from small_networks import marginal, random_network
from softcount.cli import main
from softcount.estimators.result_frames import arrow_of as arrow
from softcount.files.bif import write_network
from softcount.networks.network import Network

CANDY = ("flavor", "wrapper", "holes", "weight", "kind")
EDGES = "bag>flavor, bag>wrapper, bag>holes"


def candy_rows(n: int = 300, seed: int = 2) -> list[tuple[str, ...]]:
    """Candies of two bags, which no column shows; their kind follows from flavour and wrapper."""
    rng = random.Random(seed)
    rows = []
    for _ in range(n):
        share = 0.8 if rng.random() < 0.6 else 0.2
        flavor = "cherry" if rng.random() < share else "lime"
        wrapper = "red" if rng.random() < share else "green"
        holes = "yes" if rng.random() < share else "no"
        same = (flavor == "cherry") == (wrapper == "red")
        kind = ("plain" if same else "odd") if rng.random() < 0.9 else "rare"
        rows.append((flavor, wrapper, holes, f"{rng.gauss(5 if same else 9, 1):.2f}", kind))
    return rows


def call(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(word) for word in arguments])


def run(*arguments: object) -> Result:
    """Run a command that must succeed."""
    result = call(*arguments)
    assert result.exit_code == 0, result.output
    return result


def answer(*arguments: object) -> dict:
    return json.loads(run(*arguments, "--json").stdout)


def sheet(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table, and networks of it: with a hidden node, with a number, one that tells the kind."""
    place = tmp_path_factory.mktemp("candy")
    table = write_table(place / "candy.csv", candy_rows(), CANDY)
    run("fit", table, "--net", EDGES, "--hidden", "bag=2", "-o", place / "bag.sc")
    run("fit", table, "--net", "flavor>wrapper, flavor>weight, wrapper>weight", "-o", place / "weight.sc")
    run("fit", table, "--net", "tan", "--target", "kind", "--folds", "0", "-o", place / "kind.sc")
    return place


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[Path, np.ndarray, Network]]:
    """Random networks in files, each with its whole joint table."""
    place, rng, found = tmp_path_factory.mktemp("drawn"), np.random.default_rng(7), []
    for number, ending in enumerate((".bif", ".BIF", ".bif.gz")):
        small = random_network(rng, 5)
        levels = [[f"s{level}" for level in range(size)] for size in small.sizes]
        network = Network(small.graph, levels, small.tables)
        path = place / f"net{number}{ending}"
        write_network(network, path)
        found.append((path, small.joint, network))
    return found


# -- a network file where a model is expected


def test_a_network_file_answers_as_its_joint_table_does(drawn):
    for path, joint, _ in drawn:
        found = answer("query", path, "--of", "n0", "--given", "n1=s1", "--given", "n3=s0|s1")
        table = joint[:, 1, :, :2].sum(axis=(1, 2, 3))
        assert [line["probability"] for line in found["levels"]] == pytest.approx(table / table.sum(), abs=1e-12)


def test_several_nodes_are_answered_for_jointly(drawn):
    for path, joint, _ in drawn:
        found = answer("query", path, "--of", "n4", "--of", "n2", "--given", "n0=s0")
        table = marginal(joint[:1], (4, 2))
        by_levels = {tuple(line["levels"]): line["probability"] for line in found["joint"]}
        for (a, b), p in np.ndenumerate(table / table.sum()):
            assert by_levels[f"s{a}", f"s{b}"] == pytest.approx(p, abs=1e-12)
        page = run("query", path, "--of", "n4", "--of", "n2").stdout
        assert page.splitlines()[:2] == ["n4, n2", "  n4  n2  probability"]


def test_a_network_file_is_shown_with_all_its_tables(drawn):
    for path, _, network in drawn:
        found = answer("show", path)
        assert found["edges"] == [list(edge) for edge in network.graph.edges]
        assert found["parameters"] == network.n_parameters
        for node, table in zip(found["nodes"], network.tables, strict=True):
            lines = [line["probabilities"] for line in node["table"]]
            np.testing.assert_allclose(lines, np.reshape(table, (-1, table.shape[-1])), atol=1e-15)
        page = run("show", path).stdout
        assert "5 nodes" in page and all(name in page for name in network.graph.names)


def test_a_network_file_is_drawn_from_by_its_seed(drawn):
    path, joint, _ = drawn[0]
    rows = sheet(run("sample", path, "-n", 4000, "--seed", 3).stdout)
    share = sum(row["n2"] == "s0" for row in rows) / len(rows)
    assert share == pytest.approx(marginal(joint, (2,))[0], abs=0.03)
    assert sheet(run("sample", path, "-n", 4000, "--seed", 3).stdout) == rows
    held = sheet(run("sample", path, "-n", 20, "--given", "n1=s1").stdout)
    assert {row["n1"] for row in held} == {"s1"}
    assert run("sample", path, "-n", 0).stdout.strip() == "n0,n1,n2,n3,n4"


def test_the_edges_of_a_network_file_are_learned_with(drawn, tmp_path):
    path, _, network = drawn[0]
    run("sample", path, "-n", 300, "-o", tmp_path / "rows.csv")
    found = answer("fit", tmp_path / "rows.csv", "--net", path, "-o", tmp_path / "m.sc")
    assert sorted(map(tuple, found["edges"])) == sorted(network.graph.edges)
    assert found["rows"] == 300
    assert any("only the edges of" in note for note in found["notes"])


def test_of_many_combinations_the_likeliest_are_shown_and_all_are_data(data):
    asia = data("bif/asia.bif.gz")
    of = [word for name in ("asia", "tub", "smoke", "lung", "bronc", "xray", "dysp") for word in ("--of", name)]
    page = run("query", asia, *of).stdout
    assert len(page.splitlines()) == 103 and page.endswith("and 28 combinations more (--json has all)\n")
    found = answer("query", asia, *of)["joint"]
    assert len(found) == 128 and sum(line["probability"] for line in found) == pytest.approx(1)


# -- learning


def test_given_edges_give_the_shares_that_were_counted(folder, tmp_path):
    found = answer("fit", folder / "candy.csv", "--net", "flavor>wrapper", "--estimate", "ml", "-o", tmp_path / "m.sc")
    counts = Counter((row[0], row[1]) for row in candy_rows())
    wrapper = next(node for node in found["nodes"] if node["node"] == "wrapper")
    for line in wrapper["table"]:
        own = [counts[line["given"][0], level] for level in wrapper["levels"]]
        assert line["rows"] == sum(own)
        assert line["probabilities"] == pytest.approx(np.array(own) / sum(own))
    assert any("weight" in note for note in found["notes"])
    n, k, height = found["rows"], found["parameters"], found["log_likelihood"]
    by_hand = sum(c * np.log(c / n) for c in counts.values())
    assert height == pytest.approx(by_hand)
    assert found["bic"] == pytest.approx(k * np.log(n) - 2 * height)
    assert found["description_length_bits"] == pytest.approx((k / 2 * np.log(n) - height) / np.log(2))


def test_a_row_of_weight_two_is_the_row_twice(tmp_path):
    rows = candy_rows(60)
    weights = [str(1 + place % 2) for place in range(60)]
    twice = [row for row, weight in zip(rows, weights, strict=True) for _ in range(int(weight))]
    weighted = [(*row, weight) for row, weight in zip(rows, weights, strict=True)]
    write_table(tmp_path / "weighted.csv", weighted, (*CANDY, "times"))
    write_table(tmp_path / "twice.csv", twice, CANDY)
    asked = "--net", "flavor>wrapper, wrapper>holes", "-o", tmp_path / "m.sc"
    one = answer("fit", tmp_path / "weighted.csv", "--weight", "times", *asked)
    other = answer("fit", tmp_path / "twice.csv", *asked)
    assert one["nodes"] == other["nodes"]
    assert one["log_likelihood"] == pytest.approx(other["log_likelihood"])


def test_a_naive_network_is_naive_bayes_in_what_it_predicts_and_how_well(folder, tmp_path):
    # Without a prior: that of the class is not the same in both.
    asked = folder / "candy.csv", "--target", "kind", "--kind", "weight=ignore", "--estimate", "ml"
    star = answer("fit", *asked, "--model", "naive-bayes", "-o", tmp_path / "star.sc")
    net = answer("fit", *asked, "--net", "naive", "-o", tmp_path / "net.sc")
    for name in ("accuracy", "balanced_accuracy", "log_loss", "calibration_error", "baseline"):
        assert net["evaluation"][name] == pytest.approx(star["evaluation"][name]), name
    for name in ("how", "rows"):
        assert net["evaluation"][name] == star["evaluation"][name]
    for one, other in zip(net["evaluation"]["folds"], star["evaluation"]["folds"], strict=True):
        assert one == pytest.approx(other)
    both = [sheet(run("predict", tmp_path / f"{name}.sc", folder / "candy.csv").stdout) for name in ("star", "net")]
    for one, other in zip(*both, strict=True):
        assert one["predicted"] == other["predicted"]
        for name in ("p(odd)", "p(plain)", "p(rare)"):
            assert float(one[name]) == pytest.approx(float(other[name]), abs=1e-9)


def test_a_tree_tells_what_two_columns_say_together(folder, tmp_path):
    asked = folder / "candy.csv", "--target", "kind", "--kind", "weight=ignore", "-o", tmp_path / "m.sc"
    tree = answer("fit", *asked, "--net", "tan")["evaluation"]
    assert tree["accuracy"] > answer("fit", *asked, "--net", "naive")["evaluation"]["accuracy"] + 0.2
    held = answer("fit", *asked, "--net", "tan", "--holdout", "0.25")["evaluation"]
    assert held["how"] == "25 % held out" and 0 < held["rows"] < 150
    page = run("fit", *asked, "--net", "tan").stdout
    assert "5-fold cross-validation" in page and "baseline" in page and "softcount query" in page


def test_a_search_keeps_to_what_it_is_told(folder, tmp_path):
    found = answer(
        "fit", folder / "candy.csv", "--net", "search", "--criterion", "bdeu", "--required", "holes>weight",
        "--forbidden", "flavor>wrapper,wrapper>flavor", "--max-parents", 1, "-o", tmp_path / "m.sc",
    )  # fmt: skip
    edges = [tuple(edge) for edge in found["edges"]]
    assert ("holes", "weight") in edges
    assert not {("flavor", "wrapper"), ("wrapper", "flavor")} & set(edges)
    assert max(Counter(child for _, child in edges).values()) == 1


def test_numbers_are_cut_where_it_is_said(folder, tmp_path):
    found = answer(
        "fit", folder / "candy.csv", "--net", "weight>kind", "--cut", "weight=6.5,8", "-o", tmp_path / "m.sc"
    )
    node = found["nodes"][0]
    assert node["cut"] == [6.5, 8.0] and node["levels"] == ["<= 6.5", "6.5 to 8", "> 8"]
    weights = [float(row[3]) for row in candy_rows()]
    assert node["table"][0]["rows"] == 300
    given = answer("query", tmp_path / "m.sc", "--of", "kind", "--given", "weight=4")
    named = answer("query", tmp_path / "m.sc", "--of", "kind", "--given", "weight=<= 6.5")
    assert given["levels"] == named["levels"]
    some = answer("query", tmp_path / "m.sc", "--of", "weight", "--given", "kind=odd|plain|rare")
    below = sum(weight <= 6.5 for weight in weights)
    assert softcount.load(tmp_path / "m.sc").query("weight").cdf(6.5) == pytest.approx((below + 1) / 303)
    assert some["mean"] == pytest.approx(np.mean(weights), abs=0.05)
    counted = answer("fit", folder / "candy.csv", "--net", "weight>kind", "--cut", "weight=4", "-o", tmp_path / "m.sc")
    assert len(counted["nodes"][0]["levels"]) == 4
    assert any("'weight' is discretised into 4 intervals" in note for note in counted["notes"])


def test_a_loaded_network_says_what_the_command_says(folder):
    net = softcount.load(folder / "bag.sc")
    asked = answer("query", folder / "bag.sc", "--of", "bag", "--given", "flavor=lime")
    said = net.query("bag", {"flavor": "lime"})
    assert {line["level"]: line["probability"] for line in asked["levels"]} == pytest.approx(said)
    assert net.edges == net.edges_ and list(net.hidden) == ["bag"]


def test_learning_a_network_loads_no_scikit_learn(folder, tmp_path):
    words = ["fit", str(folder / "candy.csv"), "--net", "flavor>wrapper", "-o", str(tmp_path / "m.sc")]
    code = f"import sys\nfrom softcount.cli import main\nmain.main({words!r}, standalone_mode=False)\n"
    done = python("-c", code + "assert not {'sklearn', 'numba', 'pandas'} & set(sys.modules)")
    assert done.returncode == 0, done.stderr


# -- hidden nodes, numbers, the class


def test_a_hidden_node_is_found_shown_and_asked_for(folder, tmp_path):
    page = run(
        "fit", folder / "candy.csv", "--net", EDGES, "--hidden", "bag=one,two", "-o", tmp_path / "m.sc", "--full"
    )
    page = page.stdout
    assert "(bag)" in page and "initialisations reached the best" in page and "EM converged" in page
    found = answer("query", tmp_path / "m.sc", "--of", "bag", "--given", "flavor=cherry", "--given", "wrapper=red")
    assert {line["level"] for line in found["levels"]} == {"one", "two"}
    assert max(line["probability"] for line in found["levels"]) > 0.8
    assert [node["hidden"] for node in answer("show", tmp_path / "m.sc")["nodes"]] == [True, False, False, False]
    assert "dashed" in run("show", tmp_path / "m.sc", "--dot", "-").stdout
    assert "stroke-dasharray" in run("show", tmp_path / "m.sc", "--svg", "-").stdout
    assert "bag" in sheet(run("sample", tmp_path / "m.sc", "-n", 2).stdout)[0]


def test_a_number_answers_with_figures_and_is_predicted_by_its_mean(folder):
    found = answer("query", folder / "weight.sc", "--of", "weight", "--given", "flavor=lime", "--given", "wrapper=red")
    cells = [float(row[3]) for row in candy_rows() if row[:2] == ("lime", "red")]
    assert found["mean"] == pytest.approx(np.mean(cells), abs=0.2)
    near = answer("query", folder / "weight.sc", "--of", "wrapper", "--given", "flavor=lime", "--given", "weight=8..12")
    assert next(line["probability"] for line in near["levels"] if line["level"] == "red") > 0.5
    predicted = sheet(run("predict", folder / "weight.sc", folder / "candy.csv", "--of", "weight").stdout)
    place = next(n for n, row in enumerate(candy_rows()) if row[:2] == ("lime", "red"))
    assert float(predicted[place]["predicted"]) == pytest.approx(found["mean"])
    assert "mean" in run("show", folder / "weight.sc").stdout


def test_the_class_of_a_row_is_evidence_for_its_other_nodes(folder):
    rows = sheet(run("predict", folder / "kind.sc", folder / "candy.csv", "--of", "wrapper", "--digits", "17").stdout)
    for place in (0, 7, 20):
        flavor, _, holes, weight, kind = candy_rows()[place]
        given = [f"flavor={flavor}", f"holes={holes}", f"weight={weight}", f"kind={kind}"]
        asked = [word for pair in given for word in ("--given", pair)]
        found = answer("query", folder / "kind.sc", "--of", "wrapper", *asked)
        for line in found["levels"]:
            assert float(rows[place][f"p({line['level']})"]) == pytest.approx(line["probability"])


def test_the_class_is_predicted_whether_or_not_the_table_has_it(folder, tmp_path):
    bare = write_table(tmp_path / "bare.csv", [row[:4] for row in candy_rows()], CANDY[:4])
    with_class = run("predict", folder / "kind.sc", folder / "candy.csv")
    assert run("predict", folder / "kind.sc", bare).stdout == with_class.stdout
    assert run("predict", folder / "kind.sc", bare, "--of", "kind").stdout == with_class.stdout


def test_rows_without_a_class_and_with_holes_are_learned_from(tmp_path):
    rows = [(*row[:-1], "") if place % 4 == 0 else row for place, row in enumerate(fruit_rows())]
    table = write_table(tmp_path / "fruit.csv", rows)
    found = answer("fit", table, "--target", "sort", "--net", "tan", "-o", tmp_path / "m.sc")
    assert found["evaluation"]["rows"] == 90 and found["evaluation"]["accuracy"] > 0.8
    missing = {column["column"]: column["missing"] for column in found["columns"]}
    assert missing["colour"] == sum(row[1] in ("", "NA", "?") for row in rows)


# -- text from data


def test_no_name_reaches_terminal_or_picture_unescaped(tmp_path):
    names = [name for name in HOSTILE if "\ud800" not in name]
    network = hostile_network(names)
    write_network(network, tmp_path / "hostile.bif")
    for words in (("show",), ("show", "--json"), ("show", "--dot", "-"), ("query", "--of", "table")):
        shown = run(words[0], tmp_path / "hostile.bif", *words[1:]).stdout
        assert all(char.isprintable() or char in "\n" for char in shown), words
    picture = run("show", tmp_path / "hostile.bif", "--svg", "-").stdout
    titles = [each.text for each in ElementTree.fromstring(picture).iter("{http://www.w3.org/2000/svg}title")]
    assert len(titles) == 1 + sum(map(bool, names)) and "&amp;<b>" in titles  # the first is that of the whole picture
    drawn = run("sample", tmp_path / "hostile.bif", "-n", 5).stdout_bytes.decode()
    head, *rows = csv.reader(io.StringIO(drawn, newline=""))
    assert head == names and len(rows) == 5 and {cell for row in rows for cell in row} <= set(names)


def test_pictures_go_to_files(folder, tmp_path):
    shown = run("show", folder / "bag.sc", "--dot", tmp_path / "bag.dot", "--svg", tmp_path / "bag.svg")
    assert shown.stdout == ""
    assert (tmp_path / "bag.dot").read_text().startswith("digraph")
    assert ElementTree.parse(tmp_path / "bag.svg").getroot().tag.endswith("svg")


# -- what cannot be

USAGE = [
    (("--net", "tan"), "--target"),
    (("--net", "A>"), "A>B"),
    (("--net", "chowliu"), "chow-liu"),
    (("--net", "a>b, b>a"), "cycle"),
    (("--net", "search", "--classes", "2"), "--classes"),
    (("--net", "search", "--calibrate", "temperature"), "--calibrate"),
    (("--net", "search", "--folds", "3"), "--target"),
    (("--net", "search", "--hidden", "bag=2"), "--hidden"),
    (("--net", "search", "--starts", "3"), "--starts"),
    (("--net", "search", "--criterion", "cv"), "bdeu"),
    (("--net", "search", "--required", "a>b", "--forbidden", "a>b"), "a>b"),
    (("--net", "search", "--required", "a>b,b>a"), "cycle"),
    (("--net", "search", "--min-count", "2"), "text"),
    (("--net", "chow-liu", "--max-parents", "2"), "--net search"),
    (("--net", "chow-liu", "--criterion", "bic"), "--net search"),
    (("--hidden", "bag=2"), "--net"),
    (("--cut", "weight=3"), "--net"),
    (("--criterion", "bdeu"), "--net search"),
    (("--net", EDGES, "--hidden", "bag"), "bag=2"),
    (("--net", EDGES, "--hidden", "bag=1"), "bag=2"),
    (("--net", EDGES, "--hidden", "bag=a,a"), "bag=2"),
    (("--net", EDGES, "--hidden", "bag=2", "--hidden", "bag=3"), "twice"),
    (("--net", "search", "--cut", "weight=1"), "age=5"),
    (("--net", "search", "--cut", "weight=3,2"), "age=5"),
    (("--net", "search", "--cut", "weight=3,nan"), "age=5"),
    (("--net", "search", "--required", "a"), "A>B"),
    (("--net", "tan", "--target", "kind", "--folds", "1"), "--folds 1"),
]
DATA = [
    (("--net", "bag>flavor"), "--hidden bag=2"),
    (("--net", "flavr>kind"), "Did you mean 'flavor'"),
    (("--net", "no-such.bif"), "no-such.bif"),
    (("--net", "flavor>kind", "--hidden", "bag=2"), "in no edge"),
    (("--net", "flavor>kind", "--hidden", "flavor=2"), "not hidden"),
    (("--net", "flavor>wrapper", "--target", "kind"), "in no edge"),
    (("--net", "flavor>kind", "--cut", "flavor=2"), "categorical"),
    (("--net", "flavor>kind", "--cut", "wait=2"), "weight"),
    (("--net", "search", "--forbidden", "flavor>hole"), "holes"),
    (("--net", "flavor>kind", "--kind", "flavor=ignore"), "left out"),
    (("--net", "flavor>kind", "--target", "knd"), "kind"),
    (("--net", "chow-liu", "--kind", "kind=text"), "--kind kind=ignore"),
    (("--net", "chow-liu", "--kind", "flavor,holes=joint"), "flavor,holes"),
]


def refused(result: Result, code: int, word: str) -> None:
    assert result.exit_code == code, result.output
    assert result.stderr.startswith("error: ") and word.lower() in result.stderr.lower(), result.stderr
    assert "internal error" not in result.stderr and result.stdout == ""


@pytest.mark.parametrize(("options", "word"), USAGE, ids=lambda x: " ".join(x) if isinstance(x, tuple) else "")
def test_what_contradicts_itself_is_a_usage_error(folder, tmp_path, options, word):
    refused(call("fit", folder / "candy.csv", "-o", tmp_path / "m.sc", *options), 2, word)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("options", "word"), DATA, ids=lambda x: " ".join(x) if isinstance(x, tuple) else "")
def test_what_does_not_fit_the_table_is_named(folder, tmp_path, options, word):
    refused(call("fit", folder / "candy.csv", "-o", tmp_path / "m.sc", *options), 3, word)
    assert not list(tmp_path.iterdir())


def test_why_a_row_has_its_class_adds_up_node_by_node(folder):
    """The log-odds of the likeliest level against the next, which `predict` gives as probabilities."""
    rows = sheet(run("explain", folder / "kind.sc", folder / "candy.csv").stdout)
    three = "explain", folder / "kind.sc", folder / "candy.csv", "--row", "3"
    assert sheet(run(*three, "-o", "-").stdout) == rows[2:3]
    parts = [name for name in rows[0] if name not in ("(row)", "(class)", "(against)", "(total)")]
    page = run(*three).stdout
    assert f"Row 3: kind = {rows[2]['(class)']} rather than {rows[2]['(against)']}" in page and "probability of" in page
    predicted = sheet(run("predict", folder / "kind.sc", folder / "candy.csv", "--digits", "17").stdout)
    for line, answer in zip(rows[:20], predicted, strict=False):
        assert sum(float(line[name]) for name in parts) == pytest.approx(float(line["(total)"]), rel=1e-9, abs=1e-12)
        shares = sorted((float(x) for name, x in answer.items() if name.startswith("p(")), reverse=True)
        assert float(line["(total)"]) == pytest.approx(math.log(shares[0] / shares[1]), abs=1e-9)
        assert line["(class)"] == answer["predicted"] and line["(against)"] != line["(class)"]


QUESTIONS = [
    (("query", "bag.sc", "--of", "bog"), 3, "Did you mean 'bag'"),
    (("query", "bag.sc", "--of", "bag", "--given", "flavr=lime"), 3, "Did you mean 'flavor'"),
    (("query", "bag.sc", "--of", "bag", "--given", "flavor=lemon"), 3, "no category 'lemon'"),
    (("query", "bag.sc", "--of", "bag", "--given", "flavor=lime|lemon"), 3, "no category 'lemon'"),
    (("query", "bag.sc", "--of", "bag", "--given", "bag=1"), 3, "both `of` and given"),
    (("query", "bag.sc", "--of", "bag", "--given", "flavor"), 2, "COL=VALUE"),
    (("query", "bag.sc", "--of", "bag", "--given", "flavor=lime", "--given", "flavor=cherry"), 2, "twice"),
    (("query", "bag.sc", "--of", "bag", "--given", "flavor=1..2"), 3, "no category '1..2'"),
    (("query", "weight.sc", "--of", "flavor", "--given", "weight=much"), 3, "20..30"),
    (("query", "weight.sc", "--of", "flavor", "--given", "weight=9..2"), 3, "holds nothing"),
    (("query", "weight.sc", "--of", "flavor", "--of", "weight"), 3, "weight"),
    (("query", "kind.sc", "--of", "flavor", "--given", "kind=even"), 3, "no category 'even'"),
    (("predict", "bag.sc", "candy.csv"), 3, "--of NODE"),
    (("predict", "bag.sc", "candy.csv", "--of", "bog"), 3, "Did you mean 'bag'"),
    (("sample", "bag.sc", "--given", "flavor=lemon"), 3, "no category 'lemon'"),
    (("explain", "bag.sc", "candy.csv"), 3, "--of NODE"),
    (("explain", "kind.sc", "candy.csv", "--row", "1000000"), 3, "there is no row"),
    (("query", "bag.sc", "--of", "bag", "--given", "flavor=lime:0.5|lemon:1"), 3, "no category 'lemon'"),
    (("query", "bag.sc", "--of", "bag", "--given", "flavor=lime:-1|cherry:1"), 3, "0 or more"),
    (("query", "bag.sc", "--of", "bag", "--likeliest"), 2, "--likeliest"),
    (("query", "bag.sc", "--samples", "5"), 2, "--of"),
    (("query", "bag.sc", "--likeliest", "--samples", "5"), 2, "--samples"),
    (("query", "bag.sc", "--of", "bag", "--memory", "much"), 2, "--memory"),
    (("query", "bag.sc", "--of", "bag", "--memory", "8"), 5, "--samples"),
    (("query", "bag.sc", "--of", "bag", "--samples", "0"), 2, "--samples"),
    (("show", "kind.sc", "--parameters"), 3, "network"),
    (("show", "kind.sc", "--json", "--dot", "-"), 2, "--json"),
    (("show", "kind.sc", "--svg", "-", "--dot", "-"), 2, "one place"),
    (("show", "kind.sc", "--svg", "kind.sc"), 2, "overwritten"),
    (("show", "none.bif"), 4, "none.bif"),
]


@pytest.mark.parametrize(
    ("words", "code", "word"), QUESTIONS, ids=lambda x: " ".join(x) if isinstance(x, tuple) else ""
)
def test_what_cannot_be_answered_is_one_clear_line(folder, monkeypatch, words, code, word):
    monkeypatch.chdir(folder)
    refused(call(*words), code, word)


def test_impossible_evidence_and_broken_files_are_said_so(tmp_path):
    sure = "variable a { type discrete [2] {x, y}; } variable b { type discrete [2] {x, y}; } probability (a) { table "
    rest = "; } probability (b | a) { (x) 1, 0; (y) 0, 1; }"
    (tmp_path / "sure.bif").write_text(f"network n {{}} {sure}0.5, 0.5{rest}")
    (tmp_path / "short.bif").write_text(f"network n {{}} {sure}0.5, 0.4{rest}")
    (tmp_path / "cut.bif").write_text(f"network n {{}} {sure}")
    write_table(tmp_path / "rows.csv", [("x", "x"), ("x", "y")], ("a", "b"))
    assert answer("query", tmp_path / "sure.bif", "--of", "a", "--given", "b=x")["levels"][0]["probability"] == 1
    for words in (("query", "--of", "a", "--of", "b"), ("sample", "-n", 2)):
        assert call(words[0], tmp_path / "sure.bif", *words[1:]).exit_code == 0
    (tmp_path / "three.bif").write_text(
        (tmp_path / "sure.bif").read_text()
        + " variable c { type discrete [2] {x, y}; } probability (c) { table 0.5, 0.5; }"
    )
    given = "--given", "a=x", "--given", "b=y"
    refused(call("query", tmp_path / "three.bif", "--of", "c", *given), 3, "probability zero")
    refused(call("sample", tmp_path / "three.bif", *given), 3, "probability zero")
    for name in ("short.bif", "cut.bif"):
        refused(call("show", tmp_path / name), 4, name)
        refused(call("fit", tmp_path / "rows.csv", "--net", tmp_path / name, "-o", tmp_path / "m.sc"), 3, name)


def test_what_is_for_networks_is_refused_by_other_models(tmp_path):
    table = write_table(tmp_path / "fruit.csv", fruit_rows())
    run("fit", table, "--target", "sort", "--folds", "0", "-o", tmp_path / "m.sc")
    refused(call("show", tmp_path / "m.sc", "--dot", "-"), 3, "not a network")
    refused(call("query", tmp_path / "m.sc", "--of", "sort", "--of", "colour"), 2, "networks")
    refused(call("predict", tmp_path / "m.sc", table, "--of", "colour"), 3, "not a network")
    assert run("predict", tmp_path / "m.sc", table, "--of", "sort").stdout.startswith("predicted")


# -- numbers that depend on numbers


def test_numbers_along_a_line_are_shown_asked_for_and_drawn(tmp_path):
    rng = random.Random(4)
    rows = []
    for _ in range(200):
        sex, height = rng.choice("fm"), rng.gauss(170, 9)
        rows.append((sex, f"{height:.2f}", f"{0.9 * height - (95 if sex == 'f' else 80) + rng.gauss(0, 4):.2f}"))
    table, model = write_table(tmp_path / "people.csv", rows, ("sex", "height", "weight")), tmp_path / "m.sc"
    run("fit", table, "--net", "sex>weight, height>weight", "-o", model)
    page = run("show", model).stdout
    assert "weight, given sex, height" in page and "height, sd " in page
    found = {node["node"]: node for node in answer("show", model)["nodes"]}["weight"]
    assert found["parents"] == ["sex", "height"] and [line["given"] for line in found["table"]] == [["f"], ["m"]]
    assert np.array(found["parameters"]["coefficients"]) == pytest.approx(np.full((2, 1), 0.9), abs=0.15)
    net = softcount.load(model)
    mean = answer("query", model, "--of", "weight", "--given", "height=180", "--given", "sex=m")["mean"]
    assert mean == pytest.approx(net.query("weight", {"height": 180.0, "sex": "m"}).mean, rel=1e-9)
    assert mean == pytest.approx(82, abs=3)
    lines = sheet(run("predict", model, table, "--of", "weight").stdout)
    right = net.predict({"sex": [rows[0][0]], "height": [float(rows[0][1])]}, "weight")[0]
    assert float(next(iter(lines[0].values()))) == pytest.approx(right, rel=1e-4)
    held = sheet(run("sample", model, "-n", "50", "--given", "height=180").stdout)
    assert {float(line["height"]) for line in held} == {180.0} and len({line["weight"] for line in held}) > 1


def test_levels_may_be_given_as_likelihoods_and_answered_by_samples(drawn):
    """The joint table times the likelihood, by hand; samples within five of their errors, the same by every run."""
    path = drawn[0][0]
    net = softcount.BayesNet.read(path)
    node, other = net.edges_[0]
    first, second = net.levels_[node][:2]
    given = f"{node}={first}:0.3|{second}:0.9"
    exact = answer("query", path, "--of", other, "--given", given)["levels"]
    joint = net.query([node, other])
    weights = {
        level: sum(w * joint[own, level] for own, w in ((first, 0.3), (second, 0.9))) for level in net.levels_[other]
    }
    for line in exact:
        assert line["probability"] == pytest.approx(weights[line["level"]] / sum(weights.values()), rel=1e-12)
    words = "query", path, "--of", other, "--given", given, "--samples", 20_000
    sampled = answer(*words)["levels"]
    assert sampled == answer(*words)["levels"]
    for line, truth in zip(sampled, exact, strict=True):
        assert line["error"] > 0 and abs(line["probability"] - truth["probability"]) < 5 * line["error"]
    assert "standard error" in run(*words).stdout and "likelihood 0.3" in run(*words).stdout


def test_the_likeliest_levels_of_all_nodes_are_those_of_the_library(drawn):
    path = drawn[0][0]
    net = softcount.BayesNet.read(path)
    found = answer("query", path, "--likeliest")
    expected = net.most_probable()
    assert {line["node"]: line["level"] for line in found["levels"]} == expected.levels
    assert found["log_probability"] == pytest.approx(expected.log_probability, rel=1e-12)
    assert "log-probability" in run("query", path, "--likeliest").stdout


def test_rows_that_fit_a_network_worst_are_shown_with_what_makes_them_odd(folder):
    """The scores of `predict --anomaly` without the class, and those of the library with all that a row shows."""
    net = softcount.load(folder / "bag.sc")
    rows = softcount.read(folder / "candy.csv")
    worst = arrow(net.anomalies(rows, 3)).to_pylist()
    found = answer("show", folder / "bag.sc", folder / "candy.csv", "--anomalies", "3")
    for line, own in zip(found, worst, strict=True):
        assert line["row"] == own["row"] + 1 and line["score"] == pytest.approx(own["score"], rel=1e-9)
        assert line["reasons"][0]["node"] == own["reason"]
        assert sum(part["surprise"] for part in line["reasons"]) == pytest.approx(line["score"], rel=1e-9)
    assert "Rows that fit worst" in run("show", folder / "bag.sc", folder / "candy.csv").stdout
    scores = sheet(
        run("predict", folder / "bag.sc", folder / "candy.csv", "--of", "bag", "--anomaly", "--digits", "17").stdout
    )
    for line in worst:
        assert float(scores[line["row"]]["anomaly"]) == pytest.approx(line["score"], rel=1e-9)


def test_a_hidden_node_may_have_as_many_levels_as_there_is_evidence_for(folder, tmp_path):
    edges = "bag>flavor, bag>wrapper, bag>holes"
    run("fit", folder / "candy.csv", "--net", edges, "--hidden", "bag=auto", "-o", tmp_path / "m.sc")
    net = softcount.load(tmp_path / "m.sc")
    assert any("levels by evidence" in note for note in net.notes_)


def test_imagined_rows_are_shared_by_the_cells_of_a_table(folder, tmp_path):
    for said, rows in (("bdeu", 1.0), ("bdeu:10", 10.0)):
        run("fit", folder / "candy.csv", "--net", "flavor>wrapper", "--prior", said, "-o", tmp_path / "m.sc")
        own = softcount.BayesNet("flavor>wrapper", prior="bdeu", equivalent_sample_size=rows).fit(folder / "candy.csv")
        np.testing.assert_allclose(
            softcount.load(tmp_path / "m.sc").params_["wrapper"]["probability"],
            own.params_["wrapper"]["probability"],
            rtol=1e-12,
        )
    for said in ("bdeu:0", "bdeu:x", "bdeu:inf"):
        refused(call("fit", folder / "candy.csv", "--net", "flavor>wrapper", "--prior", said), 2, "bdeu:10")
    refused(call("fit", folder / "candy.csv", "--target", "kind", "--prior", "bdeu"), 2, "--net")


def test_a_column_without_a_value_has_no_way_to_be_kept(tmp_path):
    (tmp_path / "gap.csv").write_text("a,b,c\n1,x,\n2,y,\n1,x,\n")
    refused(call("fit", tmp_path / "gap.csv", "--net", "a>b, a->c", "-o", tmp_path / "m.sc"), 3, "take it out of --net")
