"""Scoring queries: every family's, in every database there is here, against the library."""

from __future__ import annotations

import sqlite3
import warnings
from collections.abc import Sequence
from contextlib import closing
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
import sqlglot
from msgspec.structs import replace
from sqlglot import exp

import softcount as sc
from contract.examples import EXAMPLES, Example
from softcount.core.formulas import Apply, Cell, Formula, total
from softcount.export import DIALECTS
from softcount.export.scoring_plan import plan_model
from softcount.export.sql_formulas import number, operate
from softcount.export.sql_query import as_sql, scoring_query
from softcount.families.base import family_title
from softcount.families.normal import NormalDensity

CLOSE = 1e-12
REFUSED = {"markov", "mixed_block"}
"""Families of which no formula is known that a database could compute."""
REFUSED_PREDICTIVE = REFUSED | {"binomial", "exponential", "geometric", "multinomial", "poisson", "text, multinomial"}

Cells = dict[str, list[Any]]
Answers = list[tuple[Any, ...]]


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def query(model: Any, dialect: str, table: str) -> str:
    """The query alone: these tests check it themselves."""
    return scoring_query(model._export_plan(), dialect, table, keep=["row"])


def run_sqlite(cells: Cells, model: Any, table: str = "rows") -> Answers:
    with closing(sqlite3.connect(":memory:")) as base:
        fill(base, cells, table, {})
        return sorted(base.execute(query(model, "sqlite", table)).fetchall())


def run_duckdb(cells: Cells, model: Any, table: str = "rows") -> Answers:
    with duckdb.connect(":memory:") as base:
        base.register("given", pa.table(cells))
        base.execute(f"CREATE TABLE {quoted(table)} AS SELECT * FROM given")
        found: Answers = sorted(base.execute(query(model, "duckdb", table)).fetchall())
        assert base.execute(f"SELECT count(*) FROM {quoted(table)}").fetchone() == (len(cells["row"]),)
        return found


def fill(base: Any, cells: Cells, table: str, types: dict[type, str], mark: str = "?") -> None:
    kinds = {name: next((type(x) for x in column if x is not None), str) for name, column in cells.items()}
    columns = ", ".join(f"{quoted(name)} {types.get(kind, '')}" for name, kind in kinds.items())
    base.execute(f"CREATE TABLE {quoted(table)} ({columns})")
    marks = ", ".join([mark] * len(cells))
    cursor = base.cursor()
    cursor.executemany(f"INSERT INTO {quoted(table)} VALUES ({marks})", list(zip(*cells.values(), strict=True)))


POSTGRES = {int: "bigint", float: "double precision", str: "text", bool: "boolean"}


def run_postgres(
    base: Any, cells: Cells, model: Any, table: str = "rows", types: dict[type, str] = POSTGRES
) -> Answers:
    fill(base, cells, table, types, "%s")
    try:
        found: Answers = sorted(base.execute(query(model, "postgres", table)).fetchall())
        return found
    finally:
        base.rollback()


def agrees(found: Answers, model: Any, cells: Cells) -> None:
    """Whether a database says of rows what the library says of them."""
    table = pa.table({name: column for name, column in cells.items() if name != "row"})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sc.DataWarning)
        proba, said = model.predict_proba(table), model.predict(table)
    assert [row[0] for row in found] == list(range(len(found)))
    assert np.abs(np.array([row[2:] for row in found], dtype=float) - proba).max() <= CLOSE
    assert [row[1] for row in found] == said.tolist()


def numbered(cells: Cells) -> Cells:
    return {"row": list(range(len(next(iter(cells.values()))))), **cells}


# -- families


def fitted(example: Example, estimate: str) -> Any:
    labels = np.array(["a", "b"] * len(example.values))[: len(example.values)]
    return sc.NaiveBayes(kinds=example.kinds, estimate=estimate).fit(example.table(example.values), labels)


def is_refused(example: Example, estimate: str) -> bool:
    names = REFUSED if estimate == "mean" else REFUSED_PREDICTIVE
    return not names.isdisjoint({example.family.name, family_title(example.family)})


@pytest.mark.parametrize("estimate", ["mean", "predictive"])
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.title)
def test_every_family_is_exported_and_agrees_or_is_refused_by_name(example: Example, estimate: str) -> None:
    model = fitted(example, estimate)
    if is_refused(example, estimate):
        with pytest.raises(sc.DataError, match="cannot be exported") as raised:
            model.to_sql()
        title = family_title(model.fitted_.families[example.keys[0]])
        assert repr(example.keys[0]) in str(raised.value) and title in str(raised.value)
        return
    text = example.family.name == "text"  # whose words SQLite cannot find
    for dialect in ("duckdb",) if text else ("duckdb", "sqlite") if estimate == "mean" else ("sqlite",):
        _, check = as_sql(model, dialect, "rows", ())
        assert check.rows == 1_000 and check.difference <= CLOSE and check.otherwise == 0


def test_what_is_exported_is_compared_with_what_the_library_says(monkeypatch: pytest.MonkeyPatch) -> None:
    model = fitted(next(e for e in EXAMPLES if e.title == "normal"), "mean")
    monkeypatch.setattr(NormalDensity, "formula_of", lambda self, x: x * self.params["mean"])
    with pytest.raises(sc.DataError, match="does not agree with the model"):
        model.to_sql()


def test_a_sum_is_a_tree_that_is_not_deep() -> None:
    def depth(of: Formula) -> int:
        return 1 + max(map(depth, of.parts)) if isinstance(of, Apply) else 0

    assert depth(total([Cell(str(j)) for j in range(1000)])) == 10


# -- a table with everything in it


@pytest.fixture(scope="module")
def people() -> tuple[Any, Cells]:
    rng = np.random.default_rng(4)
    n = 400
    groups = rng.integers(0, 3, n)
    cells: Cells = {
        "height": (rng.normal(170 + 5 * groups, 8.0)).tolist(),
        "pay": np.exp(rng.normal(7 + groups, 0.5)).tolist(),
        "visits": rng.poisson(1 + 2 * groups).tolist(),
        "wait": rng.exponential(1.0 + groups).tolist(),
        "colour": np.array(["red", "blue", "n'one"])[(groups + rng.integers(0, 2, n)) % 3].tolist(),
        "rooms": ((groups + rng.integers(0, 4, n)) % 5).tolist(),
        "own": (rng.random(n) < 0.3 + 0.2 * groups).tolist(),
    }
    for column in cells.values():
        for hole in rng.integers(0, n, 20):
            column[hole] = None
    kinds = {"visits": "poisson", "wait": "exponential", "rooms": "categorical", "height": "cut"}
    model = sc.NaiveBayes(kinds=kinds).fit(pa.table(cells), np.array(["no", "it's", "maybe"])[groups])
    cells["colour"][0] = "a new one"
    cells["colour"][1], cells["colour"][2] = " NA ", "?"
    cells["pay"][3] = float("nan")
    cells["rooms"][4] = 17
    return model, numbered(cells)


def test_duckdb_says_what_the_library_says(people: Any) -> None:
    model, cells = people
    agrees(run_duckdb(cells, model), model, cells)


def test_words_of_documents_are_found_and_summed(postgres: Any) -> None:
    """In any script, as often as they occur or once; documents that occur twice, are empty or hold no known word."""
    documents = [
        "The cat, the MAT_1 x",
        "dog & DOG: caf\u00e9s",
        "\u00c4rger \u00fcber \u00c9COLE",
        "\u65e5\u672c \u0414\u043e\u043c \u0434\u043e\u043c",
        "",
        None,
    ] * 4
    labels, more = ["a", "b", "a", "b", "a", "b"] * 4, {"n": list(range(24)), "c": ["u", "v"] * 12}
    asked = numbered({"t": [*documents[:-2], "\u00c9cole unheard of", "it's; -- a \\ 'cat'"], **more})
    for kind in (sc.families.Text(), sc.families.Text("bernoulli"), sc.families.Text("complement", lowercase=False)):
        model = sc.NaiveBayes(kinds={"t": kind, "n": "normal"}).fit(pa.table({"t": documents, **more}), labels)
        agrees(run_duckdb(asked, model), model, asked)
        agrees(run_postgres(postgres, asked, model), model, asked)
        assert difference(model, "bigquery") <= CLOSE
    for refused in (lambda: model.to_sql("sqlite"), model.to_onnx):
        with pytest.raises(sc.DataError, match=r"column 't' is text.*Export it as SQL for duckdb"):
            refused()
    runs = sc.NaiveBayes(kinds={"t": sc.families.Text(ngrams=(1, 2))}).fit(pa.table({"t": documents}), labels)
    with pytest.raises(sc.DataError, match="only plain words can be exported"):
        runs.to_sql()


def test_sqlite_says_what_the_library_says(people: Any) -> None:
    model, cells = people
    agrees(run_sqlite(cells, model), model, cells)


def test_postgres_says_what_the_library_says(people: Any, postgres: Any) -> None:
    model, cells = people
    agrees(run_postgres(postgres, cells, model), model, cells)


def test_numbers_kept_as_text_are_read_and_words_among_them_leave_a_row_without_a_class(people: Any) -> None:
    model, cells = people
    spelt = cells | {
        name: [None if x is None else repr(x) for x in cells[name]] for name in ("height", "pay", "visits")
    }
    spelt["height"][7], spelt["height"][8] = "n/a", "-"
    plain = cells | {"height": [None if j in (7, 8) else x for j, x in enumerate(cells["height"])]}
    agrees(run_sqlite(spelt, model), model, plain)
    agrees(run_duckdb(spelt, model), model, plain)
    odd = spelt | {"height": ["tall", *spelt["height"][1:]]}
    assert run_sqlite(odd, model)[0][1:] == (None,) * 4
    with pytest.raises(duckdb.ConversionException):
        run_duckdb(odd, model)


# -- names and words are data


HOSTILE = [
    "a b", "a'b", 'a"b', "a;b", "a--b", "/*a*/", "a\\b", "a`b", "[a]", "a.b", "a,b", "(a)", "a=b", "%s", "?", ":a",
    "$1", "@a",
    "'; DROP TABLE rows; --", '"; DROP TABLE rows; --', "select", "top", "null", "None", "0", "-1", "1e5", " a",
    "a ", "a\tb", "a\nb", "ä", "日本", "🙂", "c0", "k", "g0", "softcount_cells", "' OR '1'='1", "\u202eabc",
]  # fmt: skip
assert len(HOSTILE) == 40


@pytest.fixture(scope="module")
def hostile() -> tuple[Any, Cells]:
    """Hostile names of columns, levels and classes, each of which says something."""
    rng = np.random.default_rng(1)
    n = 2 * len(HOSTILE)
    groups = np.arange(n) % 4
    words = [word for word in HOSTILE if word.strip() == word and word not in ("?", "null", "None")]
    cells: Cells = {
        name: [words[(g + j + rng.integers(0, 2)) % len(words)] for g in groups]
        if j % 2
        else rng.normal(groups * 0.1 * j, 1.0).tolist()
        for j, name in enumerate(HOSTILE)
    }
    classes = np.array(["it's", '"; --', "a\\", "日本"])[groups]
    return sc.NaiveBayes(kinds={name: "categorical" for name in HOSTILE[1::2]}).fit(pa.table(cells), classes), numbered(
        cells
    )


@pytest.mark.parametrize("table", ["rows", "a'b\"; DROP TABLE rows; --"])
def test_hostile_names_are_inert(hostile: Any, postgres: Any, table: str) -> None:
    model, cells = hostile
    agrees(run_duckdb(cells, model, table), model, cells)
    agrees(run_sqlite(cells, model, table), model, cells)
    agrees(run_postgres(postgres, cells, model, table), model, cells)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_dialect_parses_to_the_same_words_and_numbers(hostile: Any, dialect: str) -> None:
    model, _ = hostile
    written = scoring_query(plan_model(model.fitted_), dialect, "rows", HOSTILE)
    parsed = sqlglot.parse(written, dialect=dialect)
    assert len([one for one in parsed if one is not None]) == 1
    read = {column.name for column in parsed[0].find_all(exp.Column) if column.table == "t"}
    assert read == set(HOSTILE) - ({"a.b"} if dialect == "bigquery" else set())  # where no name has a dot
    texts = {literal.this for literal in parsed[0].find_all(exp.Literal) if literal.is_string}
    levels = {level for levels in model.fitted_.levels.values() for level in levels}
    assert levels | {"it's", '"; --', "a\\", "日本"} <= texts
    found = {float(literal.this) for literal in parsed[0].find_all(exp.Literal) if not literal.is_string}
    means = [abs(x) for key in HOSTILE[::2] for x in model.params_[key]["mean"]]
    assert set(means) <= found


def test_a_number_after_a_minus_starts_no_comment() -> None:
    for value in (-0.2, 0.1, -1e-300, 123456.789, 1e22, 5e-324, 0.0, 2.0**-1074 * 3):
        assert "--" not in operate("x", "-", number(value))
        got = duckdb.connect().execute(f"SELECT {number(value)}").fetchone()[0]
        assert got == value and type(got) is float
    assert sqlite3.connect(":memory:").execute(f"SELECT {number(-0.2)}").fetchone() == (-0.2,)


def test_a_name_of_a_table_may_have_its_schema(people: Any) -> None:
    assert 'FROM "main"."people"' in people[0].to_sql("postgres", "main.people")
    with pytest.raises(sc.DataError, match="not a name of a table"):
        people[0].to_sql("postgres", "a..b")
    with pytest.raises(sc.DataError, match="there is no dialect 'mysql'"):
        people[0].to_sql("mysql")


# -- sizes and extremes


def test_a_thousand_columns_are_added_as_a_tree() -> None:
    X = np.random.default_rng(0).normal(size=(40, 1_010))
    X[::2] += 0.05
    model = sc.NaiveBayes().fit(X, np.array(["a", "b"] * 20))
    plan = model._export_plan()
    plan = replace(plan, columns=tuple(replace(column, missing=("",)) for column in plan.columns))
    cells = numbered({str(j): X[:5, j].tolist() for j in range(X.shape[1])})
    with closing(sqlite3.connect(":memory:")) as base:
        fill(base, cells, "rows", {})
        found = sorted(base.execute(scoring_query(plan, "sqlite", keep=["row"])).fetchall())
    assert np.abs(np.array([row[2:] for row in found]) - model.predict_proba(X[:5])).max() <= CLOSE


def test_more_tables_are_joined_than_sqlite_joins_at_once() -> None:
    rng = np.random.default_rng(0)
    cells: Cells = {f"q{j}": np.array(["yes", "no", "maybe"])[rng.integers(0, 3, 60)].tolist() for j in range(90)}
    model = sc.NaiveBayes().fit(pa.table(cells), np.array(["a", "b"] * 30))
    agrees(run_sqlite(numbered(cells), model), model, numbered(cells))


def test_classes_far_apart_neither_underflow_nor_lose_their_digits(postgres: Any) -> None:
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=50), rng.normal(size=50) + 1e6, rng.normal(size=50) + 0.3])
    labels = np.repeat([1, 2, 3], 50)
    model = sc.NaiveBayes().fit(pa.table({"x": X}), labels)
    cells = numbered({"x": X.tolist()})
    for found in (run_sqlite(cells, model), run_duckdb(cells, model), run_postgres(postgres, cells, model)):
        agrees(found, model, cells)


def test_an_impossible_row_has_no_class(postgres: Any) -> None:
    table = pa.table({"a": ["x", "x", "y", "y"], "b": ["u", "u", "v", "v"]})
    model = sc.NaiveBayes(estimate="ml", kinds={"a": "categorical", "b": "categorical"}).fit(table, [0, 0, 1, 1])
    cells: Cells = {"row": [0, 1], "a": ["x", "x"], "b": ["u", "v"]}
    for found in (run_sqlite(cells, model), run_duckdb(cells, model), run_postgres(postgres, cells, model)):
        assert found == [(0, 0, 1.0, 0.0), (1, None, None, None)]


# -- other models


def iris() -> tuple[np.ndarray, np.ndarray]:
    from sklearn.datasets import load_iris

    X, y = load_iris(return_X_y=True)
    return X, y


def difference(model: Any, dialect: str = "sqlite") -> float:
    found = as_sql(model, dialect, "rows", ())[1]
    assert found.otherwise == 0 and found.rows >= 500
    return found.difference


@pytest.mark.parametrize("calibration", ["temperature", "isotonic"])
@pytest.mark.parametrize("classes", [2, 3])
def test_calibration_is_exported(calibration: str, classes: int) -> None:
    X, y = iris()
    model = sc.NaiveBayes(calibration=calibration).fit(X[y < classes, :2], y[y < classes])
    assert model.calibration_ is not None and difference(model) <= CLOSE


def test_weights_of_columns_and_of_features_are_exported(people: Any) -> None:
    X, y = iris()
    assert difference(sc.NaiveBayes(weights="columns").fit(X, y)) <= CLOSE
    linear = {j: sc.families.Normal(tied="classes") for j in range(4)}
    assert difference(sc.NaiveBayes(kinds=linear).fit(X, y).to_logistic(X, y)) <= CLOSE
    table = pa.table({name: people[1][name] for name in ("height", "colour", "rooms")})
    said = people[0].predict(pa.table({k: v for k, v in people[1].items() if k != "row"}))
    assert difference(sc.NaiveBayes(weights="columns", estimate="ml").fit(table, said)) <= CLOSE


def test_rows_with_holes_in_a_block_are_scored_by_elimination() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 6)) @ rng.normal(size=(6, 6))
    X[::2] += 1.0
    for estimate in ("mean", "predictive"):
        model = sc.NaiveBayes(kinds={tuple(range(6)): "multinormal"}, estimate=estimate).fit(X, ["a", "b"] * 30)
        assert as_sql(model, "sqlite", "rows", ())[1].rows == 1_000 and difference(model) <= CLOSE


def test_a_block_that_is_too_large_for_holes_says_so() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 45))
    X[::2] += 0.3
    model = sc.NaiveBayes(kinds={tuple(range(45)): "multinormal"}).fit(X, ["a", "b"] * 200)
    _, check = as_sql(model, "sqlite", "rows", ())
    assert 500 <= check.rows < 1_000 and "get no class" in str(check)


def test_mixtures_are_exported() -> None:
    X, _ = iris()
    rows = pa.table({"a": X[:, 0], "b": X[:, 1], "c": np.where(X[:, 2] > 3, "long", "short")})
    assert difference(sc.Mixture(3, random_state=0).fit(rows)) <= CLOSE
    assert difference(sc.GaussianMixture(3, random_state=0).fit(X)) <= CLOSE
    assert difference(sc.GaussianMixture(2, "tied", random_state=0).fit(np.hstack([X, X**2])), "duckdb") <= CLOSE


@pytest.mark.parametrize("kind", [sc.KMeans, sc.SphericalKMeans])
def test_the_nearest_centre_is_exported(kind: Any) -> None:
    X, _ = iris()
    model = kind(3, random_state=0).fit(pa.table({name: X[:, j] for j, name in enumerate("abcd")}))
    cells = numbered({name: X[:, j].tolist() for j, name in enumerate("abcd")})
    cells["a"][0] = None
    found = run_sqlite(cells, model)
    assert found[0] == (0, None) and [row[1] for row in found[1:]] == model.labels_[1:].tolist()
    assert difference(kind(3, random_state=0).fit(X)) != 0.0


def test_plan_names_its_columns(people: Any) -> None:
    plan = plan_model(people[0].fitted_)
    assert [column.name for column in plan.columns] == [name for name in people[1] if name != "row"]


def kept_names(model: Any, keep: Sequence[str]) -> list[str]:
    with duckdb.connect() as base:
        base.execute("CREATE TABLE rows AS SELECT 1 AS predicted, 2 AS x")
        return [column[0] for column in base.execute(model.to_sql(keep=keep)).description]


def test_kept_columns_come_first_and_none_is_named_twice() -> None:
    model = sc.NaiveBayes().fit(pa.table({"x": [1.0, 2.0, 3.0, 4.0]}), ["a", "a", "b", "b"])
    assert kept_names(model, ["predicted", "x"]) == ["predicted", "x", "(predicted)", "p(a)", "p(b)"]
