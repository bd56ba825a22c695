"""Rows in a mapped file: the same arrays, the same fits, and nothing left behind."""

from __future__ import annotations

import os
import resource
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec import Struct
from scipy import sparse

import softcount as sc
from cli.shell import softcount_command
from softcount.errors import DataError
from softcount.run import local as spilling
from softcount.run.local import Memory, Spill, Threads, arrays_in, free_memory

ROWS = 4_500


class Some(Struct):
    """A part of a table with arrays of every sort."""

    plain: np.ndarray
    turned: np.ndarray
    few: np.ndarray
    words: Any
    none: None = None


def some(seed: int) -> Some:
    rng = np.random.default_rng(seed)
    turned = np.asfortranarray(rng.normal(size=(4000, 7)))
    return Some(rng.normal(size=5000), turned, np.arange(3), sparse.random(3000, 90, 0.1, "csr", rng=rng))


def table(rows: int = ROWS) -> dict[str, Any]:
    """Numbers with holes, levels, counts and documents."""
    rng = np.random.default_rng(5)
    group = rng.integers(0, 2, rows)
    x = np.where(rng.random(rows) < 0.1, np.nan, rng.normal(size=rows) + 3 * group)
    words = np.where(group[:, None] == 0, rng.choice(["ant", "bee"], (rows, 3)), rng.choice(["cat", "bee"], (rows, 3)))
    return {
        "x": x, "y": rng.normal(size=rows) - group, "colour": rng.choice(["red", "blue", "green"], rows).tolist(),
        "visits": rng.poisson(2 + group, rows), "note": [" ".join(row) for row in words],
    }  # fmt: skip


def test_arrays_come_back_as_they_were_and_lie_in_the_file(tmp_path: Path) -> None:
    spill = Spill(str(tmp_path))
    kept = [spill.kept(some(seed)) for seed in range(3)]
    assert spill.used
    assert os.listdir(tmp_path) == []  # the file has no name
    for seed, part in enumerate(kept):
        for was, now in zip(arrays_in(some(seed)), arrays_in(part), strict=True):
            assert np.array_equal(was, now)
            assert was.dtype == now.dtype and was.strides == now.strides
            assert (now in spill._known) == (now.nbytes >= spilling.SMALL)
            assert now.flags.writeable
    spill.close()
    assert np.array_equal(kept[0].plain, some(0).plain)  # what is mapped stays until nobody needs it


def test_what_lies_in_the_file_is_not_written_again(tmp_path: Path) -> None:
    spill = Spill(str(tmp_path))
    part = spill.kept(some(0))
    view = spill.kept([part.plain[10:4000], part.turned[:, 2:5], part.turned[5:900]])
    assert spill._file is not None
    end = spill._file._end
    again = spill.kept(part)
    assert spill._file._end == end
    assert all(np.shares_memory(one, other) for one, other in zip(arrays_in(part), arrays_in(again), strict=True))
    assert all(np.shares_memory(part.turned, array) or np.shares_memory(part.plain, array) for array in view)


def test_a_part_may_be_larger_than_what_is_mapped_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spilling, "FIRST_SEGMENT", 1 << 16)
    monkeypatch.setattr(spilling, "LARGEST_SEGMENT", 1 << 17)
    spill = Spill(str(tmp_path))
    kept = [spill.kept(some(seed)) for seed in range(5)]
    assert all(np.array_equal(part.turned, some(seed).turned) for seed, part in enumerate(kept))


def test_arrays_that_somebody_has_anyway_stay_where_they_are(tmp_path: Path) -> None:
    mine, spill = np.arange(60_000.0).reshape(-1, 6), Spill(str(tmp_path))
    spill.kept_elsewhere(mine[:500])
    assert np.shares_memory(spill.kept(mine[500:]), mine)
    assert not spill.used
    assert not spill.kept(mine + 1).flags.owndata
    assert spill.used


def test_rows_are_held_as_long_as_there_is_room(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(spilling, "ALWAYS", 50_000)
    monkeypatch.setattr(spilling, "free_memory", lambda: 4 * 100_000)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    spill = Spill()
    parts = [spill.kept(np.full(5_000, float(number))) for number in range(5)]
    assert [part.flags.owndata for part in parts] == [True, True, False, False, False]
    assert [part[0] for part in parts] == [0.0, 1.0, 2.0, 3.0, 4.0]
    assert free_memory() > 0


def test_memory_knows_views_of_what_it_was_told() -> None:
    known, whole = Memory(), np.zeros((100, 10))
    known.add(whole[3:5])
    assert whole[50:, 3] in known
    assert np.zeros(3) not in known


@pytest.mark.parametrize("how", ["a folder", "by itself"])
def test_a_spilled_mixture_has_the_same_bits(how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kinds = {"note": "text", ("x", "y"): "multinormal"}
    setting: dict[str, Any] = {"kinds": kinds, "n_init": 2, "max_iter": 6, "random_state": 0, "n_jobs": 2}
    held = sc.Mixture(2, **setting).fit(table())
    if how == "by itself":
        monkeypatch.setattr(spilling, "ALWAYS", 0)
        monkeypatch.setattr(spilling, "free_memory", lambda: 0)
    found: list[bool] = []
    close = Spill.close
    monkeypatch.setattr(Spill, "close", lambda self: (found.append(self.used), close(self))[1])
    spilled = sc.Mixture(2, **setting, spill=tmp_path if how == "a folder" else None).fit(table())
    assert any(found)
    assert spilled.trace_ == held.trace_
    for key, own in held.counts_.arrays.items():
        assert np.array_equal(own.hi, spilled.counts_.arrays[key].hi)
        assert np.array_equal(own.lo, spilled.counts_.arrays[key].lo)
    assert os.listdir(tmp_path) == []


def test_a_spilled_naive_bayes_with_gaps_in_its_labels_has_the_same_bits(tmp_path: Path) -> None:
    X, y = table(3_000), [None if row % 3 == 0 else "ab"[row % 2] for row in range(3_000)]
    held, spilled = (sc.NaiveBayes(spill=folder, max_iter=5).fit(X, y) for folder in (None, tmp_path))
    assert np.array_equal(held.predict_proba(X), spilled.predict_proba(X))


def csv(path: Path, rows: int = 6_000) -> str:
    rng = np.random.default_rng(0)
    lines = [f"{a},{b}" for a, b in rng.normal(size=(rows, 2)).tolist()]
    path.write_text("\n".join(["a,b", *lines]))
    return str(path)


def test_a_full_disk_is_one_line_and_the_exit_code_of_resources(tmp_path: Path) -> None:
    data = csv(tmp_path / "data.csv")
    least = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))  # noqa: E731
    found = softcount_command(
        "fit", data, "--classes", "2", "--spill", str(tmp_path), "-o", str(tmp_path / "m.sc"), preexec_fn=least
    )
    lines = found.stderr.decode().splitlines()
    assert found.returncode == 5
    assert [line for line in lines if line.startswith("error")] == lines
    assert "cannot be kept in" in lines[0] and "--spill DIR" in lines[0]
    assert sorted(os.listdir(tmp_path)) == ["data.csv"]


def test_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"cannot be kept in .*no such file.*spill=FOLDER"):
        sc.Mixture(2, spill=tmp_path / "no").fit(table(500))
    with pytest.raises(DataError, match="spill must be"):
        sc.Mixture(2, spill=3).fit(table(500))
    with Threads(1) as threads:
        assert not threads.spill.used
