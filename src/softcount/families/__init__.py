"""Distributions, one file each. Importing this package fills the registry."""

import pkgutil
from importlib import import_module

from softcount.families.base import FAMILIES as FAMILIES
from softcount.families.base import HOWS as HOWS
from softcount.families.base import Family as Family
from softcount.families.base import How as How
from softcount.families.base import Hyper as Hyper
from softcount.families.base import Params as Params
from softcount.families.base import Setting as Setting
from softcount.families.binned import Cut, Histogram
from softcount.families.categorical import Bernoulli, Categorical, Grouped
from softcount.families.gamma import Gamma
from softcount.families.joint import Joint as Joint
from softcount.families.kernel import Kernel
from softcount.families.linear import Linear as Linear
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
    "Bernoulli",
    "Binomial",
    "Categorical",
    "Cut",
    "Exponential",
    "Gamma",
    "Geometric",
    "Grouped",
    "Histogram",
    "Kernel",
    "LogNormal",
    "Markov",
    "Mixed",
    "Multinomial",
    "Multinormal",
    "Normal",
    "Poisson",
    "Spiked",
    "Student",
    "Text",
]
