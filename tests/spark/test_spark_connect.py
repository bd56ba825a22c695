"""Spark Connect: a session that speaks with a server learns what one machine does, of files and of a frame.

The server runs with a process of its own: where a session has been started, none can be connected to.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from parted_rows import PARTS, ROWS, columns

pytest.importorskip("pyspark", reason="pyspark is not installed; make scale installs it")
pytest.importorskip("grpc_status", reason='a connection needs pip install "pyspark[connect]"')

CONNECTED = """
import json, sys
import numpy as np
import softcount as sc
from parted_rows import differs
from pyspark.sql import SparkSession

folder, noted = sys.argv[1:]
session = SparkSession.builder.remote("local[2]").config("spark.ui.enabled", "false").getOrCreate()

def note(batches):
    for batch in batches:
        with open(noted, "a") as file:
            file.write(f"{batch.num_rows}\\n")
        yield batch

rows = session.read.parquet(folder)
frame = rows.mapInArrow(note, rows.schema)
setting = {"n_init": 1, "max_iter": 5, "tol": 0, "random_state": 0, "kinds": {"kind": "ignore"}}
alone, mixed = sc.NaiveBayes(n_jobs=1).fit(folder, "kind"), sc.Mixture(3, n_jobs=1, **setting).fit(folder)
here = sc.NaiveBayes(n_jobs=1).fit(rows.toArrow(), "kind")  # files in Spark's order, which decides the anchors

def far(found):
    return float(np.abs(np.divide(found.trace_, mixed.trace_) - 1).max())

told = {
    "bayes of files": differs(alone, sc.NaiveBayes(engine=session).fit(folder, "kind")),
    "bayes of a frame": differs(here, sc.NaiveBayes().fit(frame, "kind")),
    "mixture of files": far(sc.Mixture(3, engine=session, **setting).fit(folder)),
    "mixture of a frame": far(sc.Mixture(3, **setting).fit(frame)),
}
session.stop()
print(json.dumps(told | {"remote": type(session).__module__}))
"""


def test_what_is_learned_over_a_connection_is_what_one_machine_learns(tmp_path: Path) -> None:
    parts, on_disk, noted = tmp_path / "parts", tmp_path / "on disk", tmp_path / "noted"
    for made in (parts, on_disk):
        made.mkdir()
    for part in range(PARTS):
        pq.write_table(pa.table(columns(part)), parts / f"part-{part}.parquet")
    beside = {"PYSPARK_PYTHON": os.environ.get("PYSPARK_PYTHON", sys.executable), "TMPDIR": str(on_disk)}
    beside["PYTHONPATH"] = str(Path(__file__).parents[1])
    said = subprocess.run(
        [sys.executable, "-c", CONNECTED, str(parts), str(noted)],
        env=os.environ | beside, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert said.returncode == 0, said.stderr[-2_000:]
    told = json.loads(said.stdout.splitlines()[-1])
    assert "connect" in told.pop("remote")
    for what, most in {"bayes": 1e-13, "mixture": 1e-14}.items():
        assert {name: figure for name, figure in told.items() if what in name and figure > most} == {}
    # Each of the two fits of the frame looks at its rows and has them encoded; no further pass makes them again.
    assert sum(map(int, noted.read_text().split())) == 4 * PARTS * ROWS
    assert not [path for path in on_disk.iterdir() if "softcount" in path.name]
