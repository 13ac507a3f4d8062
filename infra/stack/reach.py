"""A connection to the database of a resource, or the reason why there is none."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import psycopg

from infra.db.connect import NoConnection, connect, resolve
from infra.stack.parts import FROM_ENVIRONMENT, PRIVATE

# Resources of one run share the answer: each would wait for the same time-out otherwise.
_REMEMBERED_SECONDS: Final = 20.0
_unreached: dict[str, tuple[float, NoConnection]] = {}


@contextmanager
def reach(
    database: str, password: str | None, secret: str | None = None
) -> Iterator[psycopg.Connection]:
    """Open the database that the inputs of a resource name. ``secret``: ARN of its password.

    Raises NoConnection, InfraError.
    """
    known = _unreached.get(database)
    if known and time.monotonic() - known[0] < _REMEMBERED_SECONDS:
        raise known[1]
    try:
        with connect(_url(database), password=_read(secret) or password) as connection:
            yield connection
    except NoConnection as error:
        _unreached[database] = (time.monotonic(), error)
        raise


def _read(secret: str | None) -> str | None:
    if not secret:
        return None
    from infra.aws.secrets import password  # only for AWS

    return password(secret)


def _url(database: str) -> str:
    if database == PRIVATE:
        return resolve(None, None, target="local")
    return resolve(None, None if database == FROM_ENVIRONMENT else database)
