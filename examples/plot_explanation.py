"""
Explain a prediction
====================

Each bar is the contribution of a column to the log-odds of the predicted class against
the runner-up. The bars add up to the total.
"""

import softcount as sc
from softcount.demo import table_path
from softcount.plot import ExplanationDisplay

model = sc.NaiveBayes().fit(table_path(), "type")
bike = {"gears": [21], "price": [350.0], "brakes": ["disc"], "colour": ["black"], "weight_kg": [13.5]}
print(dict(zip(model.classes_, model.predict_proba(bike)[0].round(3).tolist(), strict=True)))
ExplanationDisplay.from_estimator(model, bike)
