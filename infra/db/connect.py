"""One way to open a connection, and one way to say why it did not open."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from psycopg import errors
from psycopg.conninfo import conninfo_to_dict

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
        r"could not translate host name|failed to resolve host|(Name or service|nodename) no[tr]",
        "check the host in the URL",
    ),
    (
        r"on socket .*No such file or directory",
        "check that the server is up; its socket is for that machine: run it there, or name a host",
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


PRIVATE_URL = "JOBWARDEN_LOCAL_URL"


def resolve(url: str | None, declared: str | None, *, target: str = "existing") -> str:
    """The URL given, the environment file's, DATABASE_URL, else libpq's own environment ("").

    Target local is the private cluster and nothing else: DATABASE_URL may well name production.
    Raises NoConnection when JOBWARDEN_LOCAL_URL does not say where that cluster is.
    """
    if url or declared or target != "local":
        return url or declared or os.environ.get("DATABASE_URL") or ""
    if private := os.environ.get(PRIVATE_URL):
        return private
    raise NoConnection(
        f"the private cluster of target local is not known here ({PRIVATE_URL} is not set)",
        hint=f"make up; or {PRIVATE_URL}=$(jobwarden local up), then run it again",
    )


class NoConnection(InfraError):
    """The server cannot be reached, or does not let this role in."""


@contextmanager
def connect(
    url: str, *, seconds: int = CONNECT_SECONDS, password: str | None = None
) -> Iterator[psycopg.Connection]:
    """Open a connection in autocommit, and close it. ``seconds`` bounds the attempt.

    Raises NoConnection when the server cannot be reached, and InfraError when the statement that
    was running failed, both with what to try: never psycopg's own error.
    """
    try:
        connection = psycopg.connect(
            url,
            password=password,  # None: as libpq finds it
            autocommit=True,
            connect_timeout=_each(url, seconds),
            application_name="jobwarden",
            client_encoding="utf8",  # what we send, whatever PGCLIENTENCODING says
        )
    except psycopg.ProgrammingError as error:
        raise _no_url(url) from error
    except psycopg.Error as error:
        raise _no_connection(error, url) from error
    with connection:
        try:
            yield connection
        except psycopg.Error as error:
            raise _failed(error) from error


def _each(url: str, seconds: int) -> int:
    """Share the time among the hosts of a list, since each is tried for itself."""
    named = conninfo_to_dict(url)
    hosts = str(named.get("host") or named.get("hostaddr") or os.environ.get("PGHOST") or "")
    return max(seconds // (hosts.count(",") + 1), 1)


def _no_url(url: str) -> InfraError:
    """Without libpq's own words, which repeat parts of the URL, the password among them."""
    return InfraError(
        f"no connection to {dburl.masked(url)}: it is not a database URL that libpq can read",
        hint="write it as postgresql://user@host:port/database, with % as %25 and @ as %40",
    )


def _no_connection(error: psycopg.Error, url: str) -> NoConnection:
    text = " ".join(str(error).split())
    hint = next((hint for pattern, hint in _HINTS if re.search(pattern, text)), None)
    where = dburl.masked(url) if url else "the server of libpq's environment"
    usual = "check the URL" if url else "check PGHOST, PGSERVICE and the other PG* variables"
    return NoConnection(f"no connection to {where}: {text}", hint=hint or usual)


# Classes of SQLSTATE after which the session is gone (PostgreSQL manual, appendix A).
_LOST = ("08", "57P0")


_MISSING = (
    errors.InvalidParameterValue,  # SET ROLE to one that is not there
    errors.InvalidSchemaName,
    errors.UndefinedFunction,
    errors.UndefinedTable,
)
_GRANTS = (
    "connect as a role that may, or have a superuser grant it: jobwarden_readonly to look,"
    " jobwarden_runner to run a sweep or a cleanup"
)


def _failed(error: psycopg.Error) -> InfraError:
    text = error.diag.message_primary or " ".join(str(error).split()) or type(error).__name__
    lost = isinstance(error, psycopg.OperationalError) and (error.sqlstate or "08").startswith(
        _LOST
    )
    if isinstance(error, errors.InsufficientPrivilege):
        hint = error.diag.message_hint or _GRANTS
    elif isinstance(error, errors.LockNotAvailable):
        hint = "something holds the jobs table; end it, or try again when it is quiet"
    elif isinstance(error, _MISSING) and "jobwarden" in text:
        hint = "a part of ours is missing: jobwarden apply makes it"
    elif lost:
        hint = "the connection was lost; nothing is half-applied. Run it again"
    else:
        hint = error.diag.message_hint or "nothing is half-applied; mend the cause and run it again"
    return InfraError(f"{text} [{error.sqlstate or 'no SQLSTATE'}]", hint=hint)
