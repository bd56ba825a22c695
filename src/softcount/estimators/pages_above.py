"""Pages of a model, which are made in layers above this one: they are found by name when they are asked for."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def explored(fitted: Any, **how: Any) -> Any:
    """The page to play with a fitted model."""
    return import_module("softcount.explore").explored(fitted, **how)
