"""Answers of fitted models: predictions, explanations, queries, anomaly scores, profiles and characteristic words."""
