"""Databases from the shell: counted inside or read out, in one line which; passwords are for connecting only."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from click.testing import CliRunner

import softcount as sc
import softcount.sources.source as source
from export.drawn_queries import LOOKED_AT, drawn_table
from export.test_sql import fill
from softcount.cli import main
from softcount.sources.addresses import Address, discreet

SECRET = "s3cr/et@no"
WRITTEN = "s3cr%2Fet%40no"
QUERY = "SELECT * FROM things"
KEPT = 'SELECT * FROM "kept things"'


def run(*words: object) -> tuple[int, str]:
    found = CliRunner().invoke(main, [str(word) for word in words])
    return found.exit_code, found.output


@pytest.fixture(autouse=True)
def few_first_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "LOOK_ROWS", LOOKED_AT)


@pytest.fixture(scope="module")
def table() -> pa.Table:
    return drawn_table(1)


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


INSIDE = "1,200 rows were counted inside DuckDB."


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--model", "naive-bayes"], INSIDE),
        (["--folds", "0", "--prior", "0.5"], INSIDE),
        (["--model", "naive-bayes", "--folds", "2"], "rows were read out of DuckDB: --folds takes the rows themselves"),
        (["--folds", "0"], "rows were read out of DuckDB: what tells the classes is decided by rows held out"),
        (["--model", "naive-bayes", "--calibrate", "temperature"], "read out of DuckDB: --calibrate takes the rows"),
    ],
)
def test_naive_bayes_is_counted_inside_unless_rows_are_asked_for(
    things: Path, tmp_path: Path, words: list[str], said: str
) -> None:
    code, out = run("fit", things / "t.duckdb", "--sql", QUERY, "--target", "y", *words, "-o", tmp_path / "m.sc")
    assert code == 0, out
    assert said in out
    untried = "the model was not tried on rows held out, which are in the database: --folds 5 reads them out" in out
    assert untried == (said == INSIDE and "--folds" not in words)
    assert f"softcount predict {tmp_path}/m.sc {things}/t.duckdb --sql '{QUERY}' -o" in out


@pytest.mark.parametrize("weight", [None, "w"])
def test_what_is_counted_inside_is_what_is_read_out(things: Path, tmp_path: Path, weight: str | None) -> None:
    """Of DuckDB, and of SQLite, whose rows are read; also named as a table of the file."""
    words = [
        "--target",
        "y",
        "--model",
        "naive-bayes",
        "--folds",
        "0",
        *([] if weight is None else ["--weight", weight]),
    ]
    found = {}
    for file, note in (
        ("t.duckdb::things", INSIDE),
        ("t.db", "rows were read out of SQLite: SQLite gives rows faster"),
    ):
        code, out = run("fit", things / file, *words, "-o", tmp_path / f"{file}.sc")
        assert code == 0 and note in out and "1,200 rows, " in out, out
        found[file] = sc.load(tmp_path / f"{file}.sc")
    inside, out = found.values()
    assert inside.classes_.tolist() == out.classes_.tolist()
    for key, own in out.params_.items():
        if key not in ("truth", "same"):  # SQLite has no true and false, and so other kinds
            for name, value in own.items():
                np.testing.assert_allclose(inside.params_[key][name], value, rtol=1e-12, err_msg=f"{key} {name}")


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
    assert code == 0 and "1,200 rows were counted inside Postgres." in out and not secret_in(out), out
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
        (["fit", "{}", "--sql", KEPT, "--target", "no"], "target names column 'no'"),
        (["fit", "{}", "{}"], "unexpected extra argument"),
        (["compare", "{}", "--sql", KEPT, "--target", "no"], "has no column 'no'"),
        (["schema", "postgresql://ann:s3cr/et@no@nowhere/shop", "--sql", KEPT], "cannot be reached"),
        (["schema", "postgresql://ann@127.0.0.1:1/shop?password=s3cret@no", "--sql", KEPT], "cannot be reached"),
        (["schema", "host=nowhere user=ann password=s3cret@no", "--sql", KEPT], "is no database that is known"),
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
