"""Densities chosen by rows held out (`kinds="auto"`) beside one family for all columns, on rows that neither saw.

For each table: the mean log-density of a row's numbers given its class, in nats a column, over some folds. No family
has a density narrower than the rounding of its column; a column that a family cannot hold is normal.

    python scripts/compare_chosen_densities.py [wine wdbc heart credit adult covtype]
"""

from __future__ import annotations

import gzip
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import stdtr

from softcount.errors import DataError
from softcount.families import FAMILIES, Mixed
from softcount.families.candidates import facts_of_numbers
from softcount.fit.classes import ClassRequest
from softcount.learn.density_choice import Contest, choose_families, sample_rows
from softcount.learn.record import Plan
from softcount.models.declare import Declared, read_kinds
from softcount.run.local import Threads
from softcount.table import open_table

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"
NAMES = ("normal", "lognormal", "gamma", "exponential", "student", "mixed", "histogram", "kde")
Data = tuple[dict[str, np.ndarray], np.ndarray]


def wine() -> Data:
    from sklearn.datasets import load_wine

    return _of_array(load_wine())


def wdbc() -> Data:
    from sklearn.datasets import load_breast_cancer

    return _of_array(load_breast_cancer())


def _of_array(found: Any) -> Data:
    return {str(name): found.data[:, j] for j, name in enumerate(found.feature_names)}, found.target


def heart() -> Data:
    rows = _rows(SHARED / "uci_heart" / "processed.cleveland.data")
    places = {"age": 0, "pressure": 3, "cholesterol": 4, "rate": 7, "depression": 9}
    return _columns(rows, places), np.array([float(row[13]) > 0 for row in rows]).astype(int)


def credit() -> Data:
    rows = _rows(SHARED / "uci_credit_approval" / "crx.data")
    return _columns(rows, {f"A{j + 1}": j for j in (1, 2, 7, 10, 13, 14)}), np.array(
        [int(row[15] == "+") for row in rows]
    )


def adult() -> Data:
    rows = _rows(SHARED / "uci_adult" / "adult.data.gz")
    places = {"age": 0, "fnlwgt": 2, "education": 4, "gain": 10, "loss": 11, "hours": 12}
    return _columns(rows, places), np.array([int(">" in row[14]) for row in rows])


def covtype() -> Data:
    rows = _rows(SHARED / "covtype" / "covtype.csv.gz", 30_001)
    rows = [row for row in rows if row[0].lstrip("-").replace(".", "").isdigit()][:30_000]
    return _columns(rows, {f"x{j}": j for j in range(10)}), np.array([int(float(row[-1])) - 1 for row in rows])


def _rows(path: Path, most: int | None = None) -> list[list[str]]:
    with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as text:
        lines = (line.strip() for _, line in zip(range(most or 10**9), text, strict=False))
        return [[cell.strip() for cell in line.split(",")] for line in lines if line]


def _columns(rows: list[list[str]], places: dict[str, int]) -> dict[str, np.ndarray]:
    return {name: np.array([np.nan if row[j] == "?" else float(row[j]) for row in rows]) for name, j in places.items()}


TABLES: dict[str, Callable[[], Data]] = {
    "wine": wine, "wdbc": wdbc, "heart": heart, "credit": credit, "adult": adult, "covtype": covtype,
}  # fmt: skip


def declared_as(name: str, table: Any, runner: Any) -> tuple[Any, Declared]:
    """Every column by one family, or as its rows choose; none narrower than the rounding."""
    if name == "auto":
        table, plan = choose_families(table, Plan(read_kinds("auto")), runner)
        return table, plan.declared
    rows, plans = sample_rows(table.chunks()), {x.key: x for x in table.plans}
    assert rows is not None
    found, family = {}, Mixed("normal", 2) if name == "mixed" else FAMILIES[name]()
    for spec in table.schema.used:
        contest = Contest(spec.key, rows.numbers(spec.key, table.schema, True), plans, "mean", 1.0, strict=False)
        try:
            found[spec.key], _ = contest.choose([family], True)
        except DataError:
            found[spec.key], _ = contest.choose([FAMILIES["normal"]()], True)
    table = table.chosen({key: (entry.plan, "") for key, entry in found.items() if entry.plan is not None})
    families = {key: entry.trial.node.family for key, entry in found.items()}
    floors = {key: entry.floor for key, entry in found.items()}
    return table, Declared(families, {key: x.facts.reads for key, x in families.items()}, floors=floors)


def log_density(columns: dict[str, np.ndarray], labels: np.ndarray, test: np.ndarray, name: str, runner: Any) -> float:
    """The mean log-density of the tested rows' numbers in their classes, learned from the others."""
    train, groups = ~test, int(labels.max()) + 1
    kinds: dict[Any, Any] = dict.fromkeys(columns, "real")
    table = open_table(
        {key: x[train] for key, x in columns.items()}, kinds=kinds, labels=labels[train].astype(np.int32)
    )
    table, declared = declared_as(name, table, runner)
    fitted = ClassRequest(Plan(declared), classes=list(range(groups))).learn(table, runner)
    total, tested = 0.0, np.flatnonzero(test)
    for leaf in fitted.model.leaves:
        values = columns[str(leaf.key)][tested]
        scores = leaf.density(fitted.estimates).log_pdf(values)[np.arange(len(tested)), labels[tested]]
        if leaf.family.name == "student":  # whose floor is told by its middle rows, not by the column's rounding
            scores = _in_steps(values, fitted.params[leaf.key], labels[tested], columns[str(leaf.key)])
        scores = np.where(np.isfinite(scores), scores, -np.inf)  # a number that the family cannot hold
        total += float(np.where(np.isnan(values), 0.0, scores).mean())
    return total


def _in_steps(values: np.ndarray, params: Any, labels: np.ndarray, column: np.ndarray) -> np.ndarray:
    """The log-density of Student's t averaged over the step to which numbers are rounded."""
    there = column[~np.isnan(column)]
    half = facts_of_numbers(there, np.ones(len(there)), 1.0).rounding / 2
    mean, scale, freedom = params["mean"][labels], np.sqrt(params["spread"])[labels], params["freedom"][labels]
    mass = stdtr(freedom, (values + half - mean) / scale) - stdtr(freedom, (values - half - mean) / scale)
    return np.asarray(np.log(np.maximum(mass, 1e-300) / (2 * half)))


def compare(title: str, folds: int) -> bool:
    columns, labels = TABLES[title]()
    fold = np.random.default_rng(7).permutation(len(labels)) % folds
    found, took = {}, {}
    with Threads(1) as runner:
        for name in (*NAMES, "auto"):
            begun = time.process_time()
            tried = [log_density(columns, labels, fold == f, name, runner) for f in range(folds)]
            found[name], took[name] = float(np.mean(tried)) / len(columns), time.process_time() - begun
    best = max(NAMES, key=lambda name: found[name])
    good = found["auto"] >= found[best] - 0.01
    print(f"\n{title}: {len(labels):,} rows, {len(columns)} numbers; nats a column (CPU seconds for {folds} folds)")
    for name, value in sorted(found.items(), key=lambda pair: -pair[1]):
        print(f"  {name:<12} {value:9.4f}  {took[name]:7.1f} s")
    print(
        f"  auto less the best single ({best}): {found['auto'] - found[best]:+.4f}  {'good' if good else 'BELOW'}",
        flush=True,
    )
    return good


if __name__ == "__main__":
    asked = sys.argv[1:] or list(TABLES)
    results = [compare(name, 2 if name in ("adult", "covtype") else 5) for name in asked]
    sys.exit(0 if all(results) else 1)
