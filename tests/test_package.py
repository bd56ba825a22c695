"""What the package as a whole promises: one version, one licence, and a light import."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import softcount

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ROOT / "src" / "softcount"
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


def test_editors_and_lazy_loading_know_the_same_names() -> None:
    """The imports for type checkers are those of the names that are loaded on first use."""
    tree = parsed(SOURCES / "__init__.py")
    typed = next(x for x in tree.body if isinstance(x, ast.If) and getattr(x.test, "id", "") == "TYPE_CHECKING")
    imports = [x for x in typed.body if isinstance(x, ast.ImportFrom)]
    found = {name.name: x.module for x in imports for name in x.names}
    assert {name: home for name, home in found.items() if home != "softcount"} == softcount._HOMES
    assert {name for name, home in found.items() if home == "softcount"} == set(softcount._MODULES)
    own = {"__version__", "load", "read", "read_sequences", "read_sql"}
    assert set(softcount.__all__) == own | set(softcount._HOMES) and len(softcount.__all__) == 29


@pytest.mark.parametrize("name", dir(softcount))
def test_every_listed_name_is_there(name: str) -> None:
    found = getattr(softcount, name)
    for public in getattr(found, "__all__", ()) if name in softcount._MODULES else ():
        assert getattr(found, public).__doc__, public


def test_a_name_that_moved_says_where_it_is() -> None:
    homes = {"Normal": "families.Normal", "Gamma": "priors.Gamma", "AveragedStars": "AODE", "GaussianNB": "NaiveBayes"}
    for name, home in homes.items():
        with pytest.raises(AttributeError, match=rf"softcount\.{home}\."):
            getattr(softcount, name)
    with pytest.raises(AttributeError, match=r"no attribute 'fish'$"):
        _ = softcount.fish


def test_constraints_hold_names_and_versions_only_and_every_dependency() -> None:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pinned = dict(line.split("==") for line in lines if line and not line.startswith("#"))
    assert all(re.fullmatch(r"[A-Za-z0-9_.-]+", name) for name in pinned)
    assert all(re.fullmatch(r"[0-9][0-9A-Za-z.]*", version) for version in pinned.values())
    asked = PROJECT["dependencies"] + PROJECT["optional-dependencies"]["test"]
    names = {re.split(r"[<>=!~ \[]", need)[0].lower() for need in asked}
    assert names <= {name.lower().replace("_", "-") for name in pinned}


# Modules and names

CHECKED = sorted(path.parent.name for path in SOURCES.glob("*/__init__.py"))
"""Packages in which no module may import, by however many steps, one that imports it."""


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def module_of(path: Path) -> str:
    return ".".join(("softcount", *path.relative_to(SOURCES).with_suffix("").parts))


def imported_by(path: Path) -> set[str]:
    """The modules of this project that a file imports when it runs, also within functions."""
    tree = parsed(path)
    typed = [x for x in tree.body if isinstance(x, ast.If) and getattr(x.test, "id", "") == "TYPE_CHECKING"]
    aside = {id(node) for block in typed for node in ast.walk(block)}
    found = set()
    for node in ast.walk(tree):
        if id(node) not in aside and isinstance(node, ast.ImportFrom) and node.module is not None and not node.level:
            found |= {node.module, *(f"{node.module}.{name.name}" for name in node.names)}
    return found


@pytest.mark.parametrize("package", CHECKED)
def test_no_module_imports_itself_through_its_neighbours(package: str) -> None:
    paths = [path for path in (SOURCES / package).rglob("*.py") if path.stem != "__init__"]
    names = {module_of(path) for path in paths}
    graph = {module_of(path): imported_by(path) & names for path in paths}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(" -> ".join(error.args[1]))


def test_no_package_hides_a_public_name() -> None:
    assert not {path.parent.name for path in SOURCES.glob("*/__init__.py")} & set(softcount.__all__)
