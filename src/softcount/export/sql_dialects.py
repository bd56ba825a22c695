"""The dialects of SQL that queries are written in, by their names in sqlglot."""

DIALECTS = ("duckdb", "postgres", "sqlite", "spark", "bigquery", "snowflake")
