"""
Describe the classes of a mixture
=================================

Three classes found without labels in a table of mixed columns with missing cells. A cell
is darker if the class departs further from the whole table.
"""

import softcount as sc
from softcount.demo import table_path
from softcount.plot import ProfileDisplay

model = sc.Mixture(3, kinds={"type": "ignore"}, random_state=0).fit(table_path())
ProfileDisplay.from_estimator(model)
