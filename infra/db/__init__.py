"""Postgres by psycopg: carries the query of ``sql/observe.sql`` and the statements of ``sqltext``."""
