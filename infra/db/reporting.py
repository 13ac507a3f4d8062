"""What the report draws, in one read-only call."""

from __future__ import annotations

from typing import Any

from infra import queries
from infra.db.connect import connect
from infra.errors import InfraError


def report(url: str, hours: int) -> dict[str, Any]:
    """The document of ``jobwarden.report()`` for the last ``hours``. Raises InfraError."""
    with connect(url) as connection:
        row = connection.execute(queries.REPORT, [hours]).fetchone()
    if row is None:  # pragma: no cover - the function always returns its document
        raise InfraError("the report is empty", hint="jobwarden status")
    document: dict[str, Any] = row[0]
    return document
