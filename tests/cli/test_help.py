"""Help: at once, complete, and with an example that works."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

import softcount
from cli.shell import python
from softcount.cli import main

COMMANDS = list(main.commands)


def loaded_after(statement: str) -> set[str]:
    """The modules a fresh Python holds after the statement."""
    code = f"import sys\n{statement}\nprint(*sys.modules, file=sys.stderr)"
    done = python("-c", code)
    assert done.returncode == 0, done.stderr
    return set(done.stderr.decode().split())


HEAVY = {"numpy", "scipy", "pyarrow", "numba", "sklearn", "rich", "pandas", "polars"}


def test_help_loads_nothing_heavy():
    run = "from softcount.cli import main\nmain.main(['--help'], standalone_mode=False)"
    assert not loaded_after(run) & HEAVY


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_of_a_command_loads_nothing_heavy(name):
    run = f"from softcount.cli import main\nmain.main(['{name}', '--help'], standalone_mode=False)"
    assert not loaded_after(run) & HEAVY


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_explains_itself_with_an_example(name):
    result = CliRunner().invoke(main, [name, "--help"])
    assert result.exit_code == 0
    assert f"softcount {name}" in result.stdout.split("Examples:")[1]


def test_the_help_of_fit_fits_on_a_screen_and_says_how_to_see_the_rest():
    page = CliRunner().invoke(main, ["fit", "--help"], terminal_width=80).stdout
    assert len(page.splitlines()) <= 45
    headings = [line for line in page.splitlines() if line and not line.startswith(" ")][1:]
    assert headings == ["Task:", "Columns:", "Evaluation:", "Model:", "Examples:"]
    assert "softcount fit --help-all" in page


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_of_a_command_is_short_and_all_of_it_has_every_option(name):
    page = CliRunner().invoke(main, [name, "--help"], terminal_width=100).stdout
    assert len(page.splitlines()) <= 45
    everything = CliRunner().invoke(main, [name, "--help-all"]).stdout
    for param in main.commands[name].params:
        if isinstance(param, click.Option) and not param.hidden:
            assert all(flag in everything for flag in param.opts), param.opts


def test_a_word_that_is_no_command_gets_a_suggestion():
    for typed, meant in (("hlep", "help"), ("fti", "fit"), ("predcit", "predict")):
        result = CliRunner().invoke(main, [typed])
        assert result.exit_code == 2 and f"Did you mean '{meant}'?" in result.stderr
    result = CliRunner().invoke(main, ["fit", "t.csv", "--tagret", "y"])
    assert result.exit_code == 2 and "--target" in result.stderr


def test_help_is_also_a_command():
    def shown(*words):
        return CliRunner().invoke(main, words).stdout

    assert shown("help") == shown("--help")
    assert shown("help", "fit") == shown("fit", "--help")


@pytest.mark.parametrize("name", COMMANDS)
def test_every_example_in_the_help_is_a_command_line_that_parses(name):
    for words in examples(name):
        command = main.get_command(click.Context(main), words[1])
        assert command is not None
        command.make_context(words[1], words[2:])


def examples(name: str) -> list[list[str]]:
    """The words of each example, up to what the shell does with the result."""
    import shlex
    from itertools import takewhile

    command = main.get_command(click.Context(main), name)
    assert command is not None and command.epilog is not None
    found = []
    for line in command.epilog.split("\n\n")[0].splitlines():
        typed = line.strip().split("   ")[0].split(" | ")[0].split("<")[0]
        if "softcount " in typed:
            words = shlex.split(typed[typed.index("softcount ") :])
            found.append(list(takewhile(lambda word: word not in (">", ">>"), words)))
    return found


def test_every_command_is_listed_and_every_listed_command_exists():
    listing = CliRunner().invoke(main, ["--help"]).stdout
    for name, command in main.commands.items():
        assert command.name == name and f"{name} " in listing
        assert command.short_help and command.short_help in listing


def test_names_that_are_imported_lazily_exist():
    """Type checkers do not see them."""
    for path in Path(softcount.__file__).parent.rglob("*.py"):
        text = path.read_text()
        names = re.findall(r'lazy_function\("([\w.]+)", "(\w+)"\)', text)
        for name, module in re.findall(r'^(\w+)(?:: Any)? = LazyModule\("(softcount[\w.]+)"\)', text, re.M):
            names += [(module, used) for used in re.findall(rf"(?<![.\w\"]){name}\.(\w+)", text)]
        for module, name in names:
            assert hasattr(import_module(module), name), (path, module, name)


def test_no_command_at_all_shows_the_help_and_is_a_usage_error():
    result = CliRunner().invoke(main, [])
    assert result.exit_code == 2
    assert "Commands:" in result.stderr
