"""The scikit-learn surface: thin wrappers of one fitted-model object, no maths; each is loaded when it is asked for."""
