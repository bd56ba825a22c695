"""How probable a fitted model makes its own table, parameters integrated out, in the units of the table."""

from __future__ import annotations

from dataclasses import replace
from math import lgamma
from typing import Any

from softcount.learn.evidence import bic, cheeseman_stutz
from softcount.learn.labelled import estimated
from softcount.learn.learned import Learned


def with_plain_parameters(learned: Any) -> Any:
    """The same with parameters that are plugged in, which a log-likelihood of its rows is to be at."""
    if learned.imagined.how != "predictive":
        return learned
    return replace(learned, estimates=estimated(learned.model, learned.counts, learned.imagined.using("mean")))


def class_evidence(learned: Learned, log_likelihood: float, labelled: bool) -> float:
    """Log marginal likelihood of the rows and their classes, from the log-likelihood at these parameters.

    Exact where every class was known and no cell hidden; else by Cheeseman and Stutz.
    """
    counts = replace(learned.model.nodes.stacked(learned.counts), log_likelihood=log_likelihood)
    known = learned.n_groups if labelled else len(learned.named or ())
    return cheeseman_stutz(learned.model, learned.imagined, learned.estimates, counts, known)


def unnamed_orders(sizes: list[int]) -> float:
    """The logarithm of the ways to number the levels of hidden nodes: each is an optimum of its own."""
    return sum(lgamma(size + 1) for size in sizes)


def penalised(log_likelihood: float, learned: Learned) -> float:
    """The log-likelihood less what the parameters cost: minus half of BIC."""
    return -bic(log_likelihood, learned.n_parameters, learned.counts.rows) / 2
