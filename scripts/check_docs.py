"""Fail if a public object lacks a part of its documentation; `make lint` runs this.

    python scripts/check_docs.py                  every failure, one line each, and the count
    python scripts/check_docs.py KMeans           only objects with this word in their name

Public are the names of `softcount` and of its public modules, and the methods and properties of classes. A method is
checked where it is defined. One that overrides a documented method may do without a docstring, or has a complete one.

What is checked, by `numpydoc.validate` and below:

- summary: one line, ends with a period, and begins with a verb in functions and methods
- Parameters: all of them, in order, each with type, default and meaning; the constructor's stand in the class
- Returns, with type and meaning, if a function returns something; properties need a summary only
- Attributes: every attribute of a class whose name ends in "_"
- See Also and Examples in classes and functions; References in estimators
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
import textwrap
from collections.abc import Iterator, Mapping
from functools import cache, cached_property
from importlib import import_module, util
from typing import Any

from numpydoc.docscrape import get_doc_object
from numpydoc.validate import ERROR_MSGS, Validator, validate

from softcount.errors import SoftcountError
from softcount.estimators.base import Estimator
from softcount.families.base import Family

PUBLIC = ("", ".families", ".priors", ".conditions", ".images", ".plot", ".errors")
"""Modules of `softcount` whose names are public."""
OF_NAMES = {"SA01", "EX01"}
"""Checks of classes and functions that are not made of methods: See Also, and Examples."""
ALWAYS = set(ERROR_MSGS) - OF_NAMES - {"GL01", "GL02", "ES01"}
"""Checks of every object. Not checked: lines around the quotes, and an extended summary."""


class Documented(Validator):  # type: ignore[misc]  # numpydoc has no types
    """The docstring of an object, wherever it was written: some are made when a class is."""

    source_file_name = source_file_def_line = None

    def __init__(self, obj_name: Any) -> None:
        super().__init__(get_doc_object(obj_name, config={"show_class_members": False}))


def public_objects() -> Iterator[tuple[str, Any]]:
    """Names of the public modules, with the classes and functions they are."""
    for module in (f"softcount{name}" for name in PUBLIC):
        if util.find_spec(module) is None:
            continue
        home = import_module(module)
        names = getattr(home, "__all__", None) or [name for name, own in vars(home).items() if _is_of(own, module)]
        for name in names:
            own = getattr(home, name)
            if not name.startswith("_") and (inspect.isclass(own) or inspect.isfunction(own)) and _is_ours(own):
                yield _path(own), own


def _is_of(own: Any, module: str) -> bool:
    return getattr(own, "__module__", "") == module


def _is_ours(own: Any) -> bool:
    return str(getattr(own, "__module__", "")).startswith("softcount")


def _path(own: Any) -> str:
    """Package and name, such as `families.Gamma`, wherever an object was imported from."""
    package = own.__module__.split(".")[1:2]
    return ".".join([*package, own.__qualname__])


def members(cls: type) -> Iterator[tuple[str, Any]]:
    """Public methods and properties of a class that have a docstring or should, by the name where they are defined.

    Members of families are the protocol of `docs/extending.md`, which users do not call.
    """
    if issubclass(cls, Family):
        return
    for name in dir(cls):
        bases = [base for base in cls.__mro__ if name in vars(base)]
        if name.startswith("_") or not bases or not _is_ours(bases[0]):
            continue
        own = vars(bases[0])[name]
        called = inspect.isfunction(inspect.unwrap(getattr(own, "__func__", own)))
        if not (called or isinstance(own, (property, cached_property))):
            continue
        if not own.__doc__ and any(vars(base)[name].__doc__ for base in bases[1:]):
            continue
        yield f"{_path(bases[0])}.{name}", getattr(own, "__func__", own)


def failures() -> dict[str, list[str]]:
    """What is missing in every public object; an empty list if it is complete."""
    found: dict[str, list[str]] = {}
    for name, own in public_objects():
        found[name] = [*check(own, ALWAYS | OF_NAMES - _excused(own))]
        for member, method in members(own) if inspect.isclass(own) else ():
            if member not in found:
                found[member] = [*check(method, ALWAYS)]
    return found


def _excused(own: Any) -> set[str]:
    """Checks that are not made of an object: errors and warnings need no examples."""
    is_error = inspect.isclass(own) and issubclass(own, (SoftcountError, Warning))
    return {"EX01"} if is_error else set()


def check(own: Any, codes: set[str]) -> Iterator[str]:
    """What one object lacks."""
    if isinstance(own, (property, cached_property)):
        codes = codes - {"RT01", "PR01"}
    for code, message in validate(own, Documented)["errors"]:
        if code in codes:
            yield f"{code} {message}"
    shown = Documented(own)
    for name, given in [] if isinstance(own, property) else signature_of(own).items():
        stated = shown.doc_all_parameters.get(name, ("default",))[0]
        if given.default is not given.empty and not re.search("default|optional", stated):
            yield f"PR Parameter {name} has no default in its type"
    if inspect.isclass(own):
        doc = shown.doc
        listed = {entry.name for entry in doc["Attributes"]}
        if lacking := sorted(fitted_attributes(own) - listed):
            yield f"Attributes {', '.join(lacking)} not documented"
        if issubclass(own, Estimator) and not doc["References"]:
            yield "No References section"


def signature_of(own: Any) -> Mapping[str, inspect.Parameter]:
    """The parameters of a class or function."""
    try:
        return inspect.signature(own).parameters
    except (TypeError, ValueError):
        return {}


def fitted_attributes(cls: type) -> set[str]:
    """Names ending in "_" that are properties of a class, or that its methods set on `self`."""
    names: set[str] = set()
    for base in cls.__mro__:
        if _is_ours(base):
            names |= {name for name, own in vars(base).items() if isinstance(own, (property, cached_property))}
            names |= set(inspect.get_annotations(base)) | set_on_self(base)
    return {name for name in names if name.endswith("_") and not name.startswith("_")}


@cache
def set_on_self(cls: type) -> set[str]:
    """Names of attributes that the methods of a class assign on `self`."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(cls)))
    targets = [node for node in ast.walk(tree) if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)]
    return {node.attr for node in targets if isinstance(node.value, ast.Name) and node.value.id == "self"}


def main(words: list[str]) -> int:
    """Print the failures of objects with one of the words in their names, or all; 1 if there are any."""
    found = failures()
    lacking = [name for name in sorted(found) if found[name]]
    for name in lacking:
        if not words or any(word in name for word in words):
            print("\n".join(f"{name}: {missing}" for missing in found[name]))
    print(f"documented: {len(found) - len(lacking)} of {len(found)} public objects")
    return bool(lacking)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
