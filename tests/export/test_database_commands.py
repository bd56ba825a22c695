"""Databases from the shell: models of their rows; passwords are for connecting only."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest
from click.testing import CliRunner

import softcount as sc
from export.test_sql import fill
from softcount.cli import main
from softcount.core.remedies import Address, discreet

SECRET = "s3cr/et@no"
WRITTEN = "s3cr%2Fet%40no"
QUERY = "SELECT * FROM things"
KEPT = 'SELECT * FROM "kept things"'


def run(*words: object) -> tuple[int, str]:
    found = CliRunner().invoke(main, [str(word) for word in words])
    return found.exit_code, found.output


@pytest.fixture(scope="module")
def table() -> pa.Table:
    rng = np.random.default_rng(1)
    n = 1_200
    group = rng.integers(0, 3, n)
    cells: dict[str, Any] = {
        "real": rng.normal(group, 1.0),
        "count": rng.poisson(2 + 3 * group),
        "word": np.array(["red", "blue", "NA", "ünï'côde"])[rng.integers(0, 4, n)],
        "truth": rng.random(n) < 0.2 + 0.2 * group,
        "few": rng.integers(0, 3, n) + group,
        "w": rng.integers(0, 4, n).astype(float),
    }
    holes = {key: rng.random(n) < 0.1 for key in ("real", "word", "few")}
    columns = {key: pa.array(column, mask=holes.get(key)) for key, column in cells.items()}
    return pa.table({**columns, "y": np.array(["a", "it's", 'q"; --'])[group]})


@pytest.fixture(scope="module")
def things(tmp_path_factory: pytest.TempPathFactory, table: pa.Table) -> Path:
    """A file of DuckDB and one of SQLite that hold the same table."""
    folder = tmp_path_factory.mktemp("bases")
    with duckdb.connect(str(folder / "t.duckdb")) as base:
        base.register("given", table)
        base.execute("CREATE TABLE things AS SELECT * FROM given")
    with sqlite3.connect(folder / "t.db") as own:
        fill(own, table.to_pydict(), "things", {})
    return folder


@pytest.mark.parametrize("weight", [None, "w"])
def test_a_model_of_a_database_is_the_model_of_its_rows(
    things: Path, tmp_path: Path, table: pa.Table, weight: str | None
) -> None:
    """From DuckDB by a query, and by the name of its table; from SQLite, which has no booleans."""
    words = ["--target", "y", "--model", "naive-bayes", *([] if weight is None else ["--weight", weight])]
    found = {}
    for file, query in (("t.duckdb", ["--sql", QUERY]), ("t.duckdb::things", []), ("t.db", [])):
        code, out = run("fit", things / file, *query, *words, "-o", tmp_path / "m.sc")
        assert code == 0 and "1,200 rows" in out and "accuracy" in out, out
        assert f"softcount predict {tmp_path}/m.sc {things}/{file}" in out
        found[file] = sc.load(tmp_path / "m.sc")
    parquet.write_table(table, tmp_path / "t.parquet")
    code, out = run("fit", tmp_path / "t.parquet", *words, "-o", tmp_path / "m.sc")
    assert code == 0, out
    plain = sc.load(tmp_path / "m.sc")
    for file, model in found.items():
        assert model.classes_.tolist() == plain.classes_.tolist()
        for key, own in plain.params_.items():
            for name, value in own.items() if file != "t.db" or key != "truth" else ():
                np.testing.assert_array_equal(model.params_[key][name], value, err_msg=f"{file} {key} {name}")


def test_a_table_of_a_file_is_named_or_asked_for(things: Path, tmp_path: Path) -> None:
    assert sc.read(str(things / "t.duckdb::things")).n_rows == sc.read(things / "t.duckdb").n_rows == 1_200
    code, out = run("schema", things / "t.duckdb::no")
    assert code == 3 and "there is no table 'no' in" in out and "t.duckdb::things" in out
    with duckdb.connect(str(tmp_path / "empty.duckdb")):
        pass
    code, out = run("schema", tmp_path / "empty.duckdb")
    assert code == 3 and "empty.duckdb has no table." in out


# -- passwords


@pytest.fixture(scope="module")
def address(postgres: Any, table: pa.Table) -> Iterator[str]:
    """The address of a server that trusts everybody, with a password."""
    types = {int: "bigint", float: "double precision", str: "text", bool: "boolean"}
    fill(postgres, table.to_pydict(), "kept things", types, "%s")
    postgres.commit()
    info = postgres.info
    yield f"postgresql://{info.user}:{WRITTEN}@/{info.dbname}?host={info.host}&application_name=s&sslpassword={SECRET}"

    postgres.execute('DROP TABLE "kept things"')
    postgres.commit()


def secret_in(text: str | bytes) -> bool:
    whole = text.decode("latin-1") if isinstance(text, bytes) else text
    return any(part in whole for part in ("s3cr", "et@no", "et%40no"))


def test_no_command_tells_a_password_and_no_model_keeps_it(address: str, tmp_path: Path) -> None:
    model = tmp_path / "m.sc"
    naive = ["--target", "y", "--model", "naive-bayes"]
    code, out = run("fit", address, "--sql", KEPT, *naive, "-o", model)
    assert code == 0 and "1,200 rows" in out and not secret_in(out), out
    assert not secret_in(model.read_bytes()) and b"postgresql://" in model.read_bytes()
    for words in (
        ["fit", f"{address}::kept things", *naive, "--folds", "2", "-o", model],
        ["fit", f"{address}::public.kept things", "--classes", "2", "--starts", "1", "-o", model, "--json"],
        ["schema", address, "--sql", KEPT],
        ["predict", model, address, "--sql", KEPT],
        ["report", model, address, "--sql", KEPT, "-o", tmp_path / "r.html"],
        ["show", model],
    ):
        code, out = run(*words)
        assert code == 0 and not secret_in(out), out
        assert not secret_in(model.read_bytes())
    assert not secret_in((tmp_path / "r.html").read_text())


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["fit", "{}"], "is a database. Name a table"),
        (["fit", "{}", "--sql", "SELECT nothing"], "the database refused the query"),
        (["fit", "{}", "--sql", KEPT, "--target", "no"], "target: the table has no column 'no'"),
        (["fit", "{}", "{}"], "unexpected extra argument"),
        (["compare", "{}", "--sql", KEPT, "--target", "no"], "has no column 'no'"),
        (["schema", "postgresql://ann:s3cr/et@no@nowhere/shop", "--sql", KEPT], "cannot be reached"),
        (["schema", "postgresql://ann@127.0.0.1:1/shop?password=s3cret@no", "--sql", KEPT], "cannot be reached"),
        (["schema", "host=nowhere user=ann password=s3cret@no", "--sql", KEPT], "is not a known database"),
    ],
)
def test_no_error_tells_a_password(address: str, words: list[str], said: str) -> None:
    code, out = run(*(word.replace("{}", address) for word in words))
    assert code in (2, 3) and said in out and not secret_in(out), out


def test_parts_of_a_password_are_not_repeated_after_a_driver() -> None:
    address = "postgresql://ann:hush/hush@1@host/shop"
    assert str(Address(address)) == "postgresql://ann@host/shop" and Address(address).whole == address
    said = discreet('invalid integer value "hush" for connection option "port"', address)
    assert said == 'invalid integer value "***" for connection option "port"'
