"""Estimators with scikit-learn's interface: thin wrappers of fitted models, each loaded when it is first used."""
