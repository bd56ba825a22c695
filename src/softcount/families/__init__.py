"""Distributions, one file each. Importing this package fills the registry."""

import pkgutil
from importlib import import_module

from softcount.families.base import FAMILIES, HOWS, Family, How, Hyper, Params, Setting
from softcount.families.binned import Cut, HistogramFamily
from softcount.families.categorical import Bernoulli, Categorical, Grouped
from softcount.families.gamma import GammaFamily
from softcount.families.joint import Joint
from softcount.families.kernel import KernelFamily
from softcount.families.linear import Linear
from softcount.families.lognormal import LogNormal
from softcount.families.markov import Markov
from softcount.families.mixed import Mixed
from softcount.families.multinomial import Binomial, Multinomial
from softcount.families.multinormal import Multinormal
from softcount.families.normal import Normal
from softcount.families.spiked import Spiked
from softcount.families.student import Student
from softcount.families.text import Text
from softcount.families.totals import Exponential, Geometric, Poisson

for _found in pkgutil.iter_modules(__path__):  # registers families that are not imported above
    import_module(f"{__name__}.{_found.name}")

__all__ = [
    "FAMILIES",
    "HOWS",
    "Bernoulli",
    "Binomial",
    "Categorical",
    "Cut",
    "Exponential",
    "Family",
    "GammaFamily",
    "Geometric",
    "Grouped",
    "HistogramFamily",
    "How",
    "Hyper",
    "Joint",
    "KernelFamily",
    "Linear",
    "LogNormal",
    "Markov",
    "Mixed",
    "Multinomial",
    "Multinormal",
    "Normal",
    "Params",
    "Poisson",
    "Setting",
    "Spiked",
    "Student",
    "Text",
]
