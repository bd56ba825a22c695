"""Distributions, one file each. Importing this package fills the registry."""

from softcount.families.base import FAMILIES, HOWS, Family, How, Hyper, Params, Setting
from softcount.families.bernoulli import Bernoulli
from softcount.families.binomial import Binomial
from softcount.families.categorical import Categorical
from softcount.families.gamma import GammaFamily
from softcount.families.joint import Joint
from softcount.families.lognormal import LogNormal
from softcount.families.multinomial import Multinomial
from softcount.families.multinormal import Multinormal
from softcount.families.normal import Normal
from softcount.families.poisson import Poisson
from softcount.families.student import Student
from softcount.families.text_family import Text

__all__ = [
    "FAMILIES",
    "HOWS",
    "Bernoulli",
    "Binomial",
    "Categorical",
    "Family",
    "GammaFamily",
    "How",
    "Hyper",
    "Joint",
    "LogNormal",
    "Multinomial",
    "Multinormal",
    "Normal",
    "Params",
    "Poisson",
    "Setting",
    "Student",
    "Text",
]
