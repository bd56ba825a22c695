"""Whether the seams hold: nothing outside `families/` asks what a family is, learning knows no model by name, and
SciPy is loaded when it is first called; and options of the command line are named by `remedies`, so that who works in
Python is told in Python what to do.

Elsewhere a family is called, not examined: no `isinstance` or `type` of one, no comparison of what it is called or of
its parameters' names, no `getattr` on it. A line that ends in `# seam: why` is let pass.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1] / "src" / "softcount"
EXAMINED = {"name", "kind", "block", "discrete", "stack", "title"}
"""What a family is, rather than what it can do."""
MODELS = {
    "softcount.models.star", "softcount.models.stacks", "softcount.models.block_stack", "softcount.models.hidden_chain",
}  # fmt: skip
"""Modules of models themselves; `one_hot` of stacks is arithmetic."""

SHELL = ("cli", "report", "pictures", "core")
"""Packages that may name options of the command line, or text that looks like them, such as CSS."""
OPTION = re.compile(r"(^|[\s(])--[a-z]")


def family_names() -> set[str]:
    """The classes of the families, and the names of their parameters."""
    found = set()
    for path in (ROOT / "families").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef) and any(
                isinstance(x, ast.Name) and x.id == "register" for x in node.decorator_list
            ):
                found.add(node.name)
    return found


def is_family(node: ast.expr) -> bool:
    """Whether an expression is a family by its name: `family`, `leaf.family`, `self.family`."""
    return (isinstance(node, ast.Name) and node.id == "family") or (
        isinstance(node, ast.Attribute) and node.attr == "family"
    )


def offences(nodes: list[ast.AST], classes: set[str]) -> Iterator[tuple[int, str]]:
    """Lines of a module that ask what a family is."""
    for node in nodes:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            if node.func.id in ("isinstance", "issubclass") and _names(node.args[1]) & classes:
                yield node.lineno, "tests the type of a family"
            if node.func.id in ("getattr", "hasattr", "type") and is_family(node.args[0]):
                yield node.lineno, "looks into a family"
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            if any(map(_examined, sides)):
                yield node.lineno, "compares what a family is"
        if isinstance(node, (ast.If, ast.IfExp)) and _examined(node.test):
            yield node.lineno, "branches on what a family is"


def _examined(node: ast.expr) -> bool:
    """Whether an expression is a fact about what a family is: `family.name`, `leaf.family.facts.kind`."""
    if not isinstance(node, ast.Attribute) or node.attr not in EXAMINED:
        return False
    of = node.value
    return is_family(of) or (isinstance(of, ast.Attribute) and of.attr == "facts" and is_family(of.value))


def _names(node: ast.expr) -> set[str]:
    return {x.id for x in ast.walk(node) if isinstance(x, ast.Name)}


def imports(nodes: list[ast.AST]) -> Iterator[tuple[int, str]]:
    """Lines that import a model, or a part of one."""
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and node.module in MODELS and [x.name for x in node.names] != ["one_hot"]:
            yield node.lineno, f"imports {node.module}"


def loads_scipy(module: ast.Module) -> Iterator[tuple[int, str]]:
    """Lines by which importing a module loads special functions or sparse matrices, which a small fit does not need."""
    for node in module.body:
        names = {x.name for x in node.names} if isinstance(node, ast.ImportFrom) and node.module == "scipy" else set()
        if names & {"special", "sparse"} or (isinstance(node, ast.ImportFrom) and node.module == "scipy.special"):
            yield node.lineno, "loads SciPy; take it from softcount.core.lazy"


def speaks_shell(nodes: list[ast.AST]) -> Iterator[tuple[int, str]]:
    """Lines of text that name an option of the command line, to whoever may be reading."""
    worded = {id(part) for node in nodes if _asks_remedies(node) for part in ast.walk(node)}
    passed = worded | {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    for node in nodes:
        if not isinstance(node, ast.Constant) or id(node) in passed:
            continue
        if isinstance(node.value, str) and OPTION.search(node.value):
            yield node.lineno, "names an option; word it by softcount.core.remedies (kind, missing, setting, either)"


def _asks_remedies(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and _names(node.func) == {"remedies"}


def found() -> Iterator[str]:
    """Every offence, as `file:line: what`."""
    classes = family_names()
    for path in sorted(ROOT.rglob("*.py")):
        inside = path.relative_to(ROOT).parts[0]
        text = path.read_text()
        lines, module = text.splitlines(), ast.parse(text)
        nodes = [*ast.walk(module)]
        asked = [] if inside == "families" else [*offences(nodes, classes)]
        asked += [*imports(nodes)] if inside == "learn" else []
        asked += [*loads_scipy(module)]
        asked += [] if inside in SHELL else [*speaks_shell(nodes)]
        for line, what in asked:
            if "# seam:" not in lines[line - 1]:
                yield f"{path.relative_to(ROOT.parents[1])}:{line}: {what}"


if __name__ == "__main__":
    problems = [*found()]
    print("\n".join(problems) or "seams kept")
    sys.exit(bool(problems))
