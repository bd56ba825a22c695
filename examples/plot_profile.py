"""
What sets classes apart
=======================

Three classes that nobody named, in a table of mixed columns with holes.
"""

import softcount as sc
from softcount.demo import table_path
from softcount.plot import ProfileDisplay

model = sc.Mixture(3, kinds={"type": "ignore"}, random_state=0).fit(table_path())
ProfileDisplay.from_estimator(model)
