"""Conditions on columns, for `query`, `sample`, `explain` and wherever a model takes `given`.

>>> from softcount import conditions
>>> conditions.between(100, 200), conditions.not_("disc"), conditions.any_of(0, conditions.above(100))
(100 to 200, not disc, 0 or above 100)
"""

from softcount.fitted.conditions import above, any_of, below, between, not_

__all__ = ["above", "any_of", "below", "between", "not_"]
