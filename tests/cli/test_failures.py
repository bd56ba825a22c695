"""Every failure: one line on standard error, its hints, the documented exit code, and no traceback."""

from __future__ import annotations

import errno
import warnings
from collections.abc import Callable

import click
import pytest
from click.testing import CliRunner, Result

from softcount.cli import CommandGroup, main
from softcount.cli.outputs import DATA, RESOURCES, exit_code, message_lines
from softcount.errors import DataError, DataWarning, ModelFileError, ResourceError

CODES = [
    (DataError("column 'a'"), 3),
    (ModelFileError("not a model"), 4),
    (ResourceError("too large"), 5),
    (MemoryError(), 5),
    (OSError(errno.ENOSPC, "No space left on device"), 5),
    (FileNotFoundError(errno.ENOENT, "No such file or directory", "a.csv"), 3),
    (PermissionError(errno.EACCES, "Permission denied", "a.csv"), 3),
    (click.UsageError("no such option"), 2),
    (click.Abort(), 130),
    (ZeroDivisionError("division by zero"), 1),
]


@pytest.mark.parametrize(("error", "code"), CODES, ids=lambda value: type(value).__name__)
def test_each_failure_ends_with_its_documented_code(error, code):
    assert exit_code(error) == code
    assert message_lines(error)[0].strip()


def test_a_full_disk_is_a_matter_of_resources_even_when_reported_as_data():
    error = DataError("cannot write 'a.csv'")
    error.__cause__ = OSError(errno.ENOSPC, "No space left on device")
    assert exit_code(error) == 5


def test_a_system_error_names_its_file():
    error = FileNotFoundError(errno.ENOENT, "No such file or directory", "a.csv")
    assert message_lines(error) == ["a.csv: no such file or directory"]


class OneCommand(CommandGroup):
    """`softcount` with a single command, which does what it is given to do."""

    def __init__(self, work: Callable[[], None]) -> None:
        super().__init__("softcount")
        self.work = work

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command:
        return click.Command(cmd_name, callback=self.work)


def failing(error: BaseException) -> Result:
    """A command that raises the given error."""

    def work() -> None:
        raise error

    return CliRunner().invoke(OneCommand(work), ["work"])


def test_an_error_is_one_line_and_its_hints():
    result = failing(DataError("column 'n' is a count, but row 17 holds -3.0.\n  Declare it real: --kind n=normal\n"))
    assert result.exit_code == 3
    assert result.stdout == ""
    assert result.stderr == "error: column 'n' is a count, but row 17 holds -3.0.\n  Declare it real: --kind n=normal\n"


def test_an_error_cannot_smuggle_escapes_to_the_terminal():
    assert "\x1b" not in failing(DataError("column '\x1b[31m'")).stderr


def test_an_interrupt_ends_with_130():
    result = failing(KeyboardInterrupt())
    assert result.exit_code == 130
    assert result.stderr.strip() == "error: interrupted"


def test_a_reader_that_leaves_early_is_no_failure():
    result = failing(BrokenPipeError())
    assert (result.exit_code, result.stderr) == (0, "")


def test_a_fault_of_ours_is_one_line_that_says_so():
    result = failing(ZeroDivisionError("division\nby zero"))
    assert result.exit_code == 1
    assert result.stderr.startswith("error: internal error: ZeroDivisionError: division by zero\n")
    assert "Traceback" not in result.stderr


def test_the_traceback_is_there_for_those_who_ask(monkeypatch):
    monkeypatch.setenv("SOFTCOUNT_DEBUG", "1")
    failing(DataError("x"))
    result = failing(ZeroDivisionError("x"))
    assert "Traceback" in result.stderr


def test_a_warning_about_data_is_a_note_and_others_are_silent():
    def work() -> None:
        warnings.warn("3 cells unseen\nin 'a\x07'", DataWarning, stacklevel=1)
        warnings.warn("rounding", RuntimeWarning, stacklevel=1)

    result = CliRunner().invoke(OneCommand(work), ["work"])
    assert (result.exit_code, result.stderr) == (0, "note: 3 cells unseen in 'a\\x07'\n")


USAGE = [
    ["fti"],
    ["fit"],
    ["fit", "a.csv", "--classes", "0"],
    ["fit", "a.csv", "--classes", "many"],
    ["fit", "a.csv", "--classes", "2", "--target", "y"],
    ["fit", "a.csv", "--starts", "2", "--target", "y"],
    ["fit", "a.csv", "--folds", "5"],
    ["fit", "a.csv", "--holdout", "0.2"],
    ["fit", "a.csv", "--target", "y", "--holdout", "0.2", "--folds", "3"],
    ["fit", "a.csv", "--target", "y", "--holdout", "1"],
    ["fit", "a.csv", "--target", "y", "--folds", "1"],
    ["fit", "a.csv", "--kind", "a"],
    ["fit", "a.csv", "--kind", "=normal"],
    ["fit", "a.csv", "--kind", "a=normal", "--kind", "a=poisson"],
    ["fit", "a.csv", "--prior", "-1"],
    ["fit", "a.csv", "--prior", "nan"],
    ["fit", "a.csv", "--estimate", "best"],
    ["fit", "a.csv", "--jobs", "0"],
    ["predict", "m.sc"],
    ["explain", "m.sc", "a.csv", "--row", "0"],
    ["query", "m.sc", "--samples", "5"],
    ["sample", "m.sc", "-n", "-1"],
    ["show", "m.sc", "--nonsense"],
]


@pytest.mark.parametrize("arguments", USAGE, ids=" ".join)
def test_a_wrong_command_line_is_refused_before_anything_is_read(arguments):
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 2
    assert result.stderr.startswith("error: ")
    assert "--help" in result.stderr
    assert result.stdout == ""


def test_memory_that_arrow_lacks_for_a_file_is_no_fault_of_the_file() -> None:
    assert exit_code(OSError("Memory mapping file failed: Cannot allocate memory")) == RESOURCES
    assert exit_code(OSError("Memory mapping file failed: Permission denied")) == DATA
