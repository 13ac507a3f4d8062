"""Ask the server what is there, in one round trip."""

from __future__ import annotations

import psycopg

from infra import observed, sqltext
from infra.config import Environment
from infra.observed import Observed


def observe(connection: psycopg.Connection, environment: Environment) -> Observed:
    """Run the read-only query and read its document. Raises psycopg.Error."""
    cursor = connection.execute(sqltext.observe(environment).encode())
    while cursor.description is None and cursor.nextset():
        pass
    row = cursor.fetchone()
    if row is None:  # pragma: no cover - the query always returns its document
        raise psycopg.DataError("the observing query returned nothing")
    return observed.parse(row[0])
