"""What learning gives: structure, counts, priors and the parameters they give, with the history of the fit."""

from __future__ import annotations

from dataclasses import asdict, field
from typing import Any

import numpy as np

from softcount.counts import Counts
from softcount.learn.evidence import bic, description_length
from softcount.learn.fit_record import FitRecord
from softcount.models.base import ClassModel
from softcount.models.nodes import Imagined, Params
from softcount.records import dataclass
from softcount.table.schema import Key, Schema


@dataclass(frozen=True, slots=True)
class Trial:
    """A number of classes and what speaks for it: `bic`, `mdl` and `icl` are better when smaller, others when larger.

    `cv` is the log-likelihood per row of rows held out, None where it was not asked for. `reached` is how many classes
    were some in the end: where it is less than `classes`, the others died, hold a single row or narrowed down on one
    value, and the number does not stand for election.
    """

    classes: int
    log_likelihood: float
    n_parameters: int
    bic: float
    icl: float
    evidence: float
    cv: float | None
    reached: int

    @property
    def mdl(self) -> float:
        """The description length in bits."""
        return description_length(self.bic)

    @property
    def figures(self) -> dict[str, Any]:
        """All that is known of it, by name, the description length beside BIC."""
        kept = asdict(self)
        before = [*kept][: [*kept].index("bic") + 1]
        return {**{name: kept[name] for name in before}, "mdl": self.mdl, **kept}

    def merit(self, criterion: str) -> float:
        """What is to be as large as possible."""
        value = getattr(self, criterion)
        if self.reached < self.classes > 1 or value is None or not np.isfinite(value):
            return -np.inf
        return float(-value if criterion in ("bic", "icl") else value)


@dataclass(frozen=True, slots=True, eq=False)
class Learned:
    """A model with its parameters, and the counts by node that they come from.

    `classes` names the groups of a model of known classes and is None for a mixture, whose groups are numbered;
    `named` are the classes of a mixture that some labels told, its first groups in this order. `selection` is the
    table of what was tried where the number of groups was looked for; `undecided` the entropy of the rows'
    memberships, in nats; with `half_steps` the trace has two entries for each iteration. `record` is what reports
    need to know of the fit, where it was kept.
    """

    model: ClassModel
    estimates: Params
    counts: Counts
    imagined: Imagined
    classes: list[Any] | None = None
    target: Key | None = None
    notes: list[str] = field(default_factory=list)
    prior: Any = 1.0
    class_prior: Any = None
    estimate: str = "mean"
    missing: dict[Key, float] = field(default_factory=dict)
    trace: list[float] = field(default_factory=list)
    converged: bool = True
    log_likelihood: float | None = None
    objective: str = ""
    agreed: tuple[int, int] | None = None
    named: list[Any] | None = None
    selection: list[Any] | None = None
    half_steps: bool = False
    interrupted: bool = False
    record: FitRecord | None = None
    undecided: float | None = None

    @property
    def information(self) -> dict[str, float] | None:
        """AIC, BIC, the memberships' entropy in nats, and ICL of both, of the rows that a mixture was learned from.

        None where the log-likelihood was not kept, or is of known classes; all but the entropy are better when smaller.
        """
        if self.log_likelihood is None or self.classes is not None:
            return None
        height, size = self.log_likelihood, self.n_parameters
        short = bic(height, size, self.counts.rows)
        known = {"log_likelihood": height, "bic": short, "aic": 2.0 * size - 2 * height}
        unsure = self.undecided
        return known if unsure is None else {**known, "entropy": unsure, "icl": short + 2 * unsure}

    @property
    def schema(self) -> Schema:
        return self.model.schema

    @property
    def n_groups(self) -> int:
        return self.model.groups

    @property
    def shares(self) -> np.ndarray:
        return self.estimates.shares

    @property
    def n_parameters(self) -> int:
        return self.model.nodes.n_parameters(self.imagined)
