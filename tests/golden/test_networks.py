"""Networks held against other people's software and figures: asia, pyAgrum's EM, pgmpy, Weka's TAN, structures."""

from __future__ import annotations

from itertools import islice, pairwise
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import StratifiedKFold

import softcount as sc
from small_networks import SmallNetwork, drawn, random_network, with_holes
from softcount.networks.network import Graph

pytestmark = pytest.mark.filterwarnings("ignore::softcount.errors.DataWarning")


# -- asia


def test_asia(data):
    """Marginals of Lauritzen and Spiegelhalter's network, and one joint probability."""
    net = sc.BayesNet.read(data("bif/asia.bif.gz"))
    wanted = {"tub": 0.0104, "lung": 0.055, "bronc": 0.45, "either": 0.064828, "xray": 0.11029, "dysp": 0.4359706}
    for name, share in wanted.items():
        assert net.query(name)["yes"] == pytest.approx(share, abs=5e-7)
    assert net.query(["dysp", "xray"])["yes", "yes"] == pytest.approx(0.0706701044, abs=5e-11)
    assert (len(net.nodes), len(net.edges_), net.n_parameters_) == (8, 8, 18)


SIZES = {
    "alarm": (37, 46, 509), "asia": (8, 8, 18), "cancer": (5, 4, 10), "child": (20, 25, 230), "earthquake": (5, 4, 10),
    "hailfinder": (56, 66, 2656), "insurance": (27, 52, 1008), "sachs": (11, 17, 178), "survey": (6, 6, 21),
}  # fmt: skip


@pytest.mark.parametrize("name", SIZES)
def test_nodes_arcs_and_free_parameters(data, name):
    net = sc.BayesNet.read(data(f"bif/{name}.bif.gz"))
    assert (len(net.nodes), len(net.edges_), net.n_parameters_) == SIZES[name]


# -- missing cells: pyAgrum's EM, step by step


def coded(network: Any, codes: np.ndarray) -> pd.DataFrame:
    """Codes as text, None where lost."""
    names = network.graph.names
    table = pd.DataFrame(codes, columns=list(names)).astype(str)
    return table.mask(codes < 0, None)


def first_rows(network: Any) -> np.ndarray:
    """A row for every level of every node, so that all of them are met."""
    rows = max(network.sizes)
    return np.stack([np.arange(rows) % size for size in network.sizes], axis=1)


def case(seed: int, lost: float = 0.2) -> tuple[Any, pd.DataFrame, dict[str, np.ndarray]]:
    """A network, rows of it with holes, and tables to start from."""
    rng = np.random.default_rng(seed)
    network = random_network(rng, 5)
    codes = np.concatenate([first_rows(network), with_holes(rng, drawn(rng, network, 250), lost)])
    start = {
        name: rng.dirichlet(np.full(table.shape[-1], 3.0), table.shape[:-1])
        for name, table in zip(network.graph.names, network.tables, strict=True)
    }
    return network, coded(network, codes), start


def ours(network: Any, table: pd.DataFrame, start: dict[str, np.ndarray], **how: Any) -> Any:
    kinds = dict.fromkeys(network.graph.names, "categorical")
    return sc.BayesNet(network.graph, init=start, estimate="ml", kinds=kinds, **how).fit(table)


def theirs(network: Any, table: pd.DataFrame, start: dict[str, np.ndarray], iterations: int) -> dict[str, np.ndarray]:
    gum = pytest.importorskip("pyagrum")
    names = network.graph.names
    base = gum.BayesNet()
    for name, size in zip(names, network.sizes, strict=True):
        base.add(gum.LabelizedVariable(name, name, [str(level) for level in range(size)]))
    for parent, child in network.graph.edges:
        base.addArc(parent, child)
    scopes = {
        name: [names[node] for node in family] for name, family in zip(names, network.graph.families, strict=True)
    }
    for name, scope in scopes.items():
        for place in np.ndindex(*start[name].shape):
            base.cpt(name)[dict(zip(scope, map(int, place), strict=True))] = float(start[name][place])
    learner = gum.BNLearner(table.fillna("?"), base, ["?"])
    learner.useNoPrior().useEMWithDiffCriterion(1e-300, 0.0).EMsetMaxIter(iterations)
    found = learner.learnParameters(base)
    result = {name: np.zeros_like(start[name]) for name in names}
    for name, scope in scopes.items():
        for place in np.ndindex(*start[name].shape):
            result[name][place] = found.cpt(name)[dict(zip(scope, map(int, place), strict=True))]
    return result


def same_tables(net: Any, tables: dict[str, np.ndarray], tolerance: float) -> None:
    for name, table in tables.items():
        np.testing.assert_allclose(net.table(name).values, table, atol=tolerance, err_msg=name)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("iterations", [1, 4])
def test_every_step_of_em_is_pyagrums(seed, iterations):
    network, table, start = case(seed)
    net = ours(network, table, start, max_iter=iterations, tol=0.0, accelerate=False)
    same_tables(net, theirs(network, table, start, iterations), 1e-12)


@pytest.mark.parametrize("seed", range(2))
def test_em_ends_where_pyagrums_does(seed):
    """A chain and few holes: thirty plain steps are at the end, and pyAgrum's are slow."""
    rng = np.random.default_rng(seed)
    graph = Graph.of([("n0", "n1"), ("n1", "n2")])
    network = SmallNetwork(graph, (2, 2, 2), [rng.dirichlet([4, 4], shape) for shape in ((), (2,), (2,))])
    table = coded(network, with_holes(rng, drawn(rng, network, 90), 0.1))
    start = {name: np.full(own.shape, 0.5) for name, own in zip(graph.names, network.tables, strict=True)}
    net = ours(network, table, start, max_iter=20_000, tol=1e-16)
    same_tables(net, theirs(network, table, start, 30), 1e-6)


@pytest.mark.parametrize("seed", range(4))
def test_the_objective_never_falls(seed):
    network, table, start = case(seed, lost=0.4)
    for accelerate in (False, True):
        for estimate in ("ml", "mean"):
            how = {"estimate": estimate, "accelerate": accelerate, "max_iter": 60, "tol": 0.0}
            net = sc.BayesNet(network.graph, init=start, kinds=dict.fromkeys(network.graph.names, "categorical"), **how)
            trace = net.fit(table).trace_
            assert len(trace) > 10
            assert all(low <= high + 1e-9 * abs(high) for low, high in pairwise(trace))


def test_pgmpy_drops_rows_with_holes_and_so_differs():
    models = pytest.importorskip("pgmpy.models")
    rng = np.random.default_rng(0)
    a = rng.integers(0, 2, 400)
    table = pd.DataFrame({"a": a, "b": (a + (rng.random(400) < 0.2)) % 2}).astype(object)
    table.loc[(table["b"] == 1) & (rng.random(400) < 0.6), "a"] = np.nan
    whole = table.dropna().astype(int)
    model = models.DiscreteBayesianNetwork([("a", "b")])
    model.fit(whole)
    theirs = model.get_cpds("a").values
    dropped = sc.BayesNet([("a", "b")], estimate="ml").fit(whole)
    net = sc.BayesNet([("a", "b")], estimate="ml", tol=1e-12).fit(table)
    np.testing.assert_allclose(list(dropped.query("a").values()), theirs, rtol=1e-9)
    assert abs(net.query("a")[1] - theirs[1]) > 0.05
    assert net.log_likelihood(table) > dropped.log_likelihood(table) + 5


# -- hidden nodes


def test_a_hidden_node_recovers_the_network_that_made_the_rows():
    """Up to the names of its levels, and within four standard errors or so of the rows that show each level."""
    rng = np.random.default_rng(4)
    rows = 20_000
    share = 0.35
    red = {"A": (0.9, 0.2), "B": (0.8, 0.3), "C": (0.15, 0.7), "D": (0.25, 0.85)}
    bag = (rng.random(rows) < share).astype(int)
    table = {name: np.where(rng.random(rows) < np.array(p)[bag], "yes", "no").tolist() for name, p in red.items()}
    edges = [("Bag", name) for name in red]
    net = sc.BayesNet(edges, {"Bag": 2}, estimate="ml", random_state=0, n_init=5).fit(table)
    second = int(net.query("A", {"Bag": 1})["yes"] < net.query("A", {"Bag": 0})["yes"])
    assert net.query("Bag")[second] == pytest.approx(share, abs=0.03)
    for name, (first, other) in red.items():
        assert net.query(name, {"Bag": 1 - second})["yes"] == pytest.approx(first, abs=0.03)
        assert net.query(name, {"Bag": second})["yes"] == pytest.approx(other, abs=0.04)
    truth = sum(
        np.log(
            sum(
                p * np.prod([red[n][b] if table[n][row] == "yes" else 1 - red[n][b] for n in red])
                for b, p in ((0, 1 - share), (1, share))
            )
        )
        for row in range(500)
    )
    some = {name: cells[:500] for name, cells in table.items()}
    assert net.log_likelihood(some) == pytest.approx(truth, rel=0.01)


# -- TAN


def accuracy(model: Any, table: pd.DataFrame, labels: pd.Series) -> float:
    return float(np.mean(model.predict(table) == labels.to_numpy()))


def test_tan_on_adult_is_as_good_as_wekas(data):
    """85.87 % of the 16,281 test rows."""
    names = [
        "age", "workclass", "fnlwgt", "education", "education_num", "marital", "occupation", "relationship", "race",
        "sex", "gain", "loss", "hours", "country", "income",
    ]  # fmt: skip
    train, test = (
        pd.read_csv(
            data(f"uci_adult/{part}.gz"), header=None, names=names, skipinitialspace=True, comment="|", na_values="?"
        )
        for part in ("adult.data", "adult.test")
    )
    labels = test["income"].str.rstrip(".")
    model = sc.BayesNet.tan(train, "income")
    found = accuracy(model, test.drop(columns="income"), labels)
    assert found >= 0.8587 - np.sqrt(0.8587 * 0.1413 / len(test))


def folded(table: pd.DataFrame, target: str, tried: int = 10) -> float:
    """The share that is right, over the first of ten folds."""
    right = rows = 0
    folds = StratifiedKFold(10, shuffle=True, random_state=0).split(table, table[target])
    for train, test in islice(folds, tried):
        model = sc.BayesNet.tan(table.iloc[train], target)
        right += int((model.predict(table.iloc[test]) == table[target].iloc[test].to_numpy()).sum())
        rows += len(test)
    return right / rows


def test_tan_on_car_is_as_good_as_wekas(data):
    """94.62 % by ten folds of 1,728 rows."""
    names = ["buying", "maint", "doors", "persons", "boot", "safety", "class"]
    table = pd.read_csv(data("uci_car/car.data"), header=None, names=names, dtype=str)
    assert folded(table, "class") >= 0.9462 - np.sqrt(0.9462 * 0.0538 / len(table))


def test_tan_on_mushroom_has_one_row_wrong_where_wekas_has_none(data):
    """Weka's is 100 % by ten folds."""
    table = pd.read_csv(data("uci_mushroom/agaricus-lepiota.data"), header=None, dtype=str, na_values="?")
    table.columns = ["class", *(f"x{i}" for i in range(1, table.shape[1]))]
    assert round((1.0 - folded(table, "class")) * len(table)) <= 1


# -- structures that are known


@pytest.mark.parametrize("name", ["asia", "cancer", "survey", "sachs"])
def test_search_recovers_a_network_from_rows_drawn_from_it(data, name):
    """No edge is missed, asia's weak one from a visit to tuberculosis among them, and none is added."""
    truth = sc.BayesNet.read(data(f"bif/{name}.bif.gz"))
    found = sc.BayesNet.search(truth.sample(100_000, random_state=1))
    graphs = [Graph.of(net.edges_, sorted(net.nodes)) for net in (truth, found)]
    assert graphs[0].skeleton == graphs[1].skeleton
    assert graphs[0].is_equivalent(graphs[1])
