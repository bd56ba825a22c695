"""What the package as a whole promises: one version, one licence, and a light import."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import softcount

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def modules_after(statement: str) -> set[str]:
    code = f"{statement}\nimport sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_the_version_is_the_same_everywhere() -> None:
    assert softcount.__version__ == PROJECT["version"]
    assert f"## {PROJECT['version']}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_importing_the_package_is_lazy() -> None:
    loaded = modules_after("import softcount")
    assert "softcount" in loaded
    assert not loaded & {"numba", "sklearn", "scipy", "pyarrow", "pandas", "polars", "rich"}


def test_constraints_hold_names_and_versions_only_and_every_dependency() -> None:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pinned = dict(line.split("==") for line in lines if line and not line.startswith("#"))
    assert all(re.fullmatch(r"[A-Za-z0-9_.-]+", name) for name in pinned)
    assert all(re.fullmatch(r"[0-9][0-9A-Za-z.]*", version) for version in pinned.values())
    asked = PROJECT["dependencies"] + PROJECT["optional-dependencies"]["test"]
    names = {re.split(r"[<>=!~ \[]", need)[0].lower() for need in asked}
    assert names <= {name.lower().replace("_", "-") for name in pinned}
