"""Models as SQL and ONNX for other programs."""

DIALECTS = ("duckdb", "postgres", "sqlite", "spark", "bigquery", "snowflake")
"""Dialects of SQL that queries are written in."""
