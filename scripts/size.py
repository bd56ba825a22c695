"""Print how large and how tangled the package is, and fail if a figure rose above its committed value.

`make size` compares with `scripts/size.json`. `python scripts/size.py --lower` writes the figures that fell into that
file; a figure is raised by hand only, with a reason in the commit.
"""

from __future__ import annotations

import ast
import json
import re
import statistics
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import click
from walk import Calls, files, fit_command, fit_naive_bayes, record_calls
from walk import functions as count_functions

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "softcount"
LIMITS = Path(__file__).with_suffix(".json")

SCORERS = {"scorer", "ensemble", "calibration"}
"""The field of a fitted model that says how rows are scored, and its optional parts."""
MODEL = re.compile(r"(Fitted|Star|Net|Chain|States|Centres|Ensemble|Scorer|ColumnWeights|LinearWeights)[A-Za-z]*$")
"""Names of classes of models and scorers, which code outside the model should not ask for."""
CODEC = re.compile(r"(_part|_files?|filing|saving)\.py$")
"""Names of modules that turn one kind of record into a file entry and back by hand."""

Tree = dict[Path, tuple[str, ast.Module]]


def measure() -> dict[str, int]:
    """All figures by name, in the order in which they are printed."""
    tree = {path: _parse(path) for path in sorted(SOURCE.rglob("*.py"))}
    functions = [node for node in _nodes(tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]
    lengths = [(node.end_lineno or node.lineno) - node.lineno + 1 for node in functions]
    print(f"median length of a function: {statistics.median(lengths):.0f} lines")
    texts = [text for text, _ in tree.values()]
    walks = _walks()
    options = [option for command in _commands() for option in _options(command)]
    return {
        "files in src": len(tree),
        "lines in src": sum(text.count("\n") for text in texts),
        "code lines in src": sum(_code_lines(text, module) for text, module in tree.values()),
        "functions": len(functions),
        "packages": len({path.parent for path in tree if path.parent != SOURCE}),
        "files entered by softcount fit": len(files(walks["fit"])),
        "functions entered by softcount fit": count_functions(walks["fit"]),
        "files entered by NaiveBayes.fit": len(files(walks["naive Bayes"])),
        "functions entered by NaiveBayes.fit": count_functions(walks["naive Bayes"]),
        "members of Family": _members_of_family(),
        "branches on the model or scorer": sum(map(_asks_which_model, _nodes(tree))),
        "hand-written file codecs": sum(bool(CODEC.search(path.name)) for path in tree),
        "imports inside functions": sum(_imports_within(functions)),
        "numeric constants of modules": sum(_constants(module) for _, module in tree.values()),
        "Any": sum(len(re.findall(r"\bAny\b", text)) for text in texts),
        "command-line options": len(options),
        "distinct command-line options": len(set(options)),
        "options of fit": len(_options(_command("fit"))),
        "public top-level names": _public_names(),
        "lines in tests": sum(path.read_text().count("\n") for path in (ROOT / "tests").rglob("*.py")),
    }


def _parse(path: Path) -> tuple[str, ast.Module]:
    text = path.read_text(encoding="utf-8")
    return text, ast.parse(text)


def _nodes(tree: Tree) -> Iterator[ast.AST]:
    for _, module in tree.values():
        yield from ast.walk(module)


def _code_lines(text: str, module: ast.Module) -> int:
    """Lines that are neither blank, nor a comment, nor part of a docstring."""
    documented: set[int] = set()
    for node in ast.walk(module):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            documented |= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    lines = enumerate(text.splitlines(), 1)
    return sum(bool(line.strip()) and not line.lstrip().startswith("#") and n not in documented for n, line in lines)


def _members_of_family() -> int:
    """Public methods and attributes of the base class of families."""
    from softcount.families import Family

    return len([name for name in dir(Family) if not name.startswith("_")])


def _asks_which_model(node: ast.AST) -> bool:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "isinstance":
        return any(isinstance(x, ast.Name) and MODEL.search(x.id) is not None for x in ast.walk(node.args[1]))
    if isinstance(node, ast.Compare) and isinstance(node.ops[0], (ast.Is, ast.IsNot)):
        return isinstance(node.left, ast.Attribute) and node.left.attr in SCORERS
    return False


def _imports_within(functions: list[ast.FunctionDef | ast.AsyncFunctionDef]) -> Iterator[int]:
    seen: set[int] = set()
    for function in functions:
        found = {id(x) for x in ast.walk(function) if isinstance(x, (ast.Import, ast.ImportFrom))} - seen
        seen |= found
        yield len(found)


def _constants(module: ast.Module) -> int:
    """Module-level names that stand for a number."""
    values = [node.value for node in module.body if isinstance(node, (ast.Assign, ast.AnnAssign))]
    return sum(_is_number(value) for value in values)


def _is_number(value: ast.expr | None) -> bool:
    if isinstance(value, ast.UnaryOp):
        return _is_number(value.operand)
    if isinstance(value, ast.BinOp):
        return _is_number(value.left) and _is_number(value.right)
    return isinstance(value, ast.Constant) and type(value.value) in (int, float)


def _walks() -> dict[str, Calls]:
    table, target = str(SOURCE / "demo" / "bicycles.csv"), "type"
    return {
        "fit": record_calls(partial(fit_command, table, target)),
        "naive Bayes": record_calls(partial(fit_naive_bayes, table, target)),
    }


def _command(name: str) -> click.Command:
    from softcount.cli import main

    found = main.get_command(click.Context(main), name)
    assert found is not None
    return found


def _commands() -> list[click.Command]:
    from softcount.cli import main

    return [_command(name) for name in main.list_commands(click.Context(main))]


def _options(command: click.Command) -> list[str]:
    return [max(each.opts, key=len) for each in command.params if isinstance(each, click.Option)]


def _public_names() -> int:
    import softcount

    return len(softcount.__all__)


def main() -> int:
    """Print the table and report each figure above its limit."""
    found = measure()
    limits: dict[str, int] = json.loads(LIMITS.read_text()) if LIMITS.exists() else {}
    for name, value in found.items():
        limit = limits.get(name, value)
        mark = f"  above {limit:,}" if value > limit else ""
        print(f"{name:35}{value:9,}{mark}")
    if "--lower" in sys.argv:
        lowered = {name: min(value, limits.get(name, value)) for name, value in found.items()}
        LIMITS.write_text(json.dumps(lowered, indent=2) + "\n")
    risen = [name for name, value in found.items() if value > limits.get(name, value)]
    if risen:
        print(f"risen: {', '.join(risen)}. Delete or merge first, or raise scripts/size.json with a reason.")
    return bool(risen)


if __name__ == "__main__":
    sys.exit(main())
