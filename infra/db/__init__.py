"""Postgres by psycopg: carries the query of ``observed`` and the statements of ``sqltext``."""
