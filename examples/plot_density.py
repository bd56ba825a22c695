"""
Compare a column between classes
================================

The price of second-hand bicycles by type, and their brakes.
"""

import matplotlib.pyplot as plt

import softcount as sc
from softcount.demo import table_path
from softcount.plot import DensityDisplay

model = sc.NaiveBayes().fit(table_path(), "type")
figure, axes = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained")
DensityDisplay.from_estimator(model, column="price", ax=axes[0])
DensityDisplay.from_estimator(model, column="brakes", ax=axes[1])
