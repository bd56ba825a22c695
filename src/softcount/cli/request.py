"""What the person asked `softcount fit` for, and words that several commands share; loads nothing heavy."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from msgspec import Struct, field

from softcount.cli.options import InputFormat, SequenceForm

BDEU = "bdeu"
"""The prior of networks: imagined rows shared by the cells of each table; bdeu:10 says how many."""


WITH_CLASS = ("naive", "tan", "joint")


NETWORK_WORDS = (*WITH_CLASS, "chow-liu", "search")
"""Ways to find a structure; the first ones need the class."""


FILES = (".bif", ".xmlbif", ".bifxml", ".xml")
"""Endings of network files, also with .gz after them; XML is refused by a line that names BIF."""


Edges = tuple[tuple[str, str], ...]


def is_network_file(name: str) -> bool:
    """Whether a name is that of a network file.

    >>> is_network_file("nets/alarm.BIF.gz"), is_network_file("alarm.sc"), is_network_file("a>b.bif")
    (True, False, False)
    """
    return name.lower().removesuffix(".gz").endswith(FILES) and ">" not in name


class NetRequest(Struct, frozen=True):
    """What was asked of a network; `said` is a word, the name of a file, or edges."""

    said: str
    hidden: Mapping[Any, Any] = field(default_factory=dict)
    cut: Mapping[Any, Any] = field(default_factory=dict)
    required: Edges = ()
    forbidden: Edges = ()
    max_parents: int | None = None
    criterion: str = "bic"


class FitRequest(Struct, frozen=True):
    """What the person asked `fit` for; None where the choice is ours."""

    data: str
    target: str | None = None
    classes: int | str | None = None
    kinds: Mapping[str, str] = field(default_factory=dict)
    form: InputFormat = field(default_factory=InputFormat)
    weight: str | None = None
    prior: Any = None
    estimate: str = "mean"
    holdout: float | None = None
    folds: int | None = None
    calibrate: str | None = None
    seed: int = 0
    criterion: str | None = None
    starts: int | None = None
    jobs: int | None = None
    spill: str | None = None
    checkpoint: str | None = None
    resume: bool = False
    engine: str | None = None
    texts: Mapping[str, Any] = field(default_factory=dict)
    unlabelled_weight: float | None = None
    net: NetRequest | None = None
    expert: str | None = None
    model: str | None = None
    command: str = ""
    layout: SequenceForm | None = None
    states: int | str | None = None
    context: int | str | None = None
    symbols: str | None = None
    ends: bool | None = None

    @property
    def of_naive_bayes(self) -> str | None:
        """An option that asks something of naive Bayes, so that it tells the classes unless somebody says otherwise."""
        asked = {name: getattr(self, name) for name in ("prior", "expert", "calibrate", "unlabelled_weight")}
        asked["estimate"] = None if self.estimate == "mean" else self.estimate
        return next((f"--{name.replace('_', '-')}" for name, value in asked.items() if value is not None), None)

    @property
    def decides(self) -> bool:
        """Whether rows held out decide what tells the classes."""
        return self.of_naive_bayes is None if self.model is None else self.model == "auto"

    @property
    def looks_for_classes(self) -> bool:
        """Whether something was asked that only makes sense where the classes are not known."""
        return self.model in ("mixture", "network") or any(
            x is not None for x in (self.classes, self.criterion, self.starts)
        )


def holds_classes(data: str) -> bool:
    """Whether DATA may be documents in folders, which are their classes, by looking at how it begins."""
    from softcount.sources.documents import is_tar
    from softcount.sources.joined_files import table_parts

    if os.path.isdir(data):
        return not table_parts(data)
    return os.path.isfile(data) and is_tar(data)
