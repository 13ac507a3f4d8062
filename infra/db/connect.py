"""One way to open a connection, and one way to say why it did not open."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from psycopg import errors

from infra import dburl
from infra.errors import InfraError

CONNECT_SECONDS = 5

_HINTS = (
    (
        r"password authentication failed|no password supplied",
        "check the user, and PGPASSWORD or the ~/.pgpass file",
    ),
    (
        r"Peer authentication failed|Ident authentication failed",
        "run it as the OS user of that role, or name another user in the URL",
    ),
    (
        r"no pg_hba.conf entry",
        "allow this client in pg_hba.conf, or connect from a host that is allowed",
    ),
    (r'database ".*" does not exist', "name a database that is there; psql -l lists them"),
    (r'role ".*" does not exist', "name a role that is there, as the user of the URL"),
    (
        r"could not translate host name|Name or service not known|nodename nor servname",
        "check the host in the URL",
    ),
    (
        r"Connection refused|No such file or directory",
        "check that the server is up, and the host and port",
    ),
    (
        r"timeout expired|timed out",
        "check the network and the firewall between here and the server",
    ),
    (
        r"starting up|shutting down|recovery mode",
        "wait until the server takes connections, then try again",
    ),
)


def resolve(url: str | None, declared: str | None) -> str:
    """The URL given, the environment file's, DATABASE_URL, else libpq's own environment ("")."""
    return url or declared or os.environ.get("DATABASE_URL") or ""


@contextmanager
def connect(url: str, *, seconds: int = CONNECT_SECONDS) -> Iterator[psycopg.Connection]:
    """Open a connection in autocommit, and close it. ``seconds`` bounds the attempt.

    Raises InfraError, with what to try, when the server cannot be reached or the statement that
    was running failed: never psycopg's own error.
    """
    try:
        connection = psycopg.connect(
            url, autocommit=True, connect_timeout=seconds, application_name="jobwarden"
        )
    except psycopg.Error as error:
        raise _no_connection(error, url) from error
    with connection:
        try:
            yield connection
        except psycopg.Error as error:
            raise _failed(error) from error


def _no_connection(error: psycopg.Error, url: str) -> InfraError:
    text = " ".join(str(error).split())
    hint = next((hint for pattern, hint in _HINTS if re.search(pattern, text)), None)
    where = dburl.masked(url) if url else "the server of libpq's environment"
    return InfraError(f"no connection to {where}: {text}", hint=hint or "check the URL")


def _failed(error: psycopg.Error) -> InfraError:
    text = error.diag.message_primary or " ".join(str(error).split()) or type(error).__name__
    if isinstance(error, errors.InsufficientPrivilege):
        hint = error.diag.message_hint or "grant what is missing, or connect as a role that has it"
    elif isinstance(error, errors.LockNotAvailable):
        hint = "something holds the jobs table; end it, or try again when it is quiet"
    elif isinstance(error, psycopg.OperationalError):
        hint = "the connection was lost; nothing is half-applied. Run it again"
    else:
        hint = error.diag.message_hint or "nothing is half-applied; mend the cause and run it again"
    return InfraError(f"{text} [{error.sqlstate or 'no SQLSTATE'}]", hint=hint)
