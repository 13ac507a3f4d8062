"""The API: clients queue a job, then poll it until it is final.

    DATABASE_URL=postgresql://api@/app uvicorn jobservice.api:app

With JOBWARDEN_STACK set, the schedules of that stack are registered when the API starts. When that
fails it is logged, and the API serves all the same.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID

import anyio.to_thread
import psycopg
from psycopg.types.json import Jsonb
from psycopg_pool import AsyncConnectionPool, PoolTimeout
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from infra.db.boot import boot
from jobservice import problems
from jobservice.actions import ACTIONS
from jobservice.problems import Problem

MAX_BODY = 1_000_000
POLL_SECONDS = "2"
Pool = AsyncConnectionPool[psycopg.AsyncConnection[tuple[Any, ...]]]
FINAL = {"done", "failed"}

QUEUE = "INSERT INTO jobs (action, payload) VALUES (%s, %s) RETURNING id"
# One look-up by primary key. Postgres writes the document, so that nothing is parsed on the way.
POLL = """
SELECT status, json_build_object(
  'id', id, 'action', action, 'status', status, 'result', result, 'error', error,
  'created_at', created_at, 'started_at', started_at, 'completed_at', completed_at)::text
FROM jobs WHERE id = %s
"""

log = logging.getLogger("jobservice.api")


async def queue_job(request: Request) -> Response:
    """``POST /api/jobs``: 202 and where to poll."""
    action, payload = await _wanted(request)
    try:
        row = await _ask(request, QUEUE, action, Jsonb(payload))
    except psycopg.DataError as error:  # such as a NUL in a text, which jsonb cannot hold
        raise Problem(422, f"the payload cannot be stored: {error.diag.message_primary}") from error
    assert row is not None
    body = {"id": str(row[0]), "status": "queued"}
    headers = {"Location": f"/api/jobs/{row[0]}", "Retry-After": POLL_SECONDS}
    return JSONResponse(body, 202, headers)


async def poll_job(request: Request) -> Response:
    """``GET /api/jobs/{id}``: ``Retry-After`` says poll again; without it the job is final."""
    key = _key(request.path_params["key"])
    row = await _retried(lambda: _ask(request, POLL, key)) if key else None
    if row is None:
        raise Problem(404, "there is no such job; finished ones are deleted after a while")
    status, text = row
    body = text.encode()
    tag = f'"{hashlib.blake2b(body, digest_size=12).hexdigest()}"'
    headers = {"ETag": tag, "Cache-Control": "no-cache"}
    if status not in FINAL:
        headers["Retry-After"] = POLL_SECONDS
    if _knows(request.headers.get("If-None-Match", ""), tag):
        return Response(status_code=304, headers=headers)
    return Response(body, headers=headers, media_type="application/json")


async def _wanted(request: Request) -> tuple[str, dict[str, Any]]:
    """The action and payload a client sent. Raises Problem."""
    try:
        sent = json.loads(await _body(request), parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise Problem(422, f"the body is not JSON: {error}") from error
    if not isinstance(sent, dict):
        raise Problem(422, 'the body must be an object: {"action": "...", "payload": {...}}')
    action, payload = sent.get("action"), sent.get("payload", {})
    if not isinstance(action, str) or action not in ACTIONS:
        raise Problem(422, f"action must be one of {', '.join(ACTIONS)}")
    if not isinstance(payload, dict):
        raise Problem(422, "payload must be an object")
    return action, payload


async def _body(request: Request) -> bytes:
    """Read the body, and stop as soon as it is too long, whatever its length was said to be."""
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > MAX_BODY:
            raise Problem(413, f"the body is longer than {MAX_BODY} bytes", {"Connection": "close"})
    return bytes(body)


def _no_number(text: str) -> float:
    raise ValueError(f"{text} is not JSON")


def _key(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None


def _knows(sent: str, tag: str) -> bool:
    """Whether the client has this version (RFC 9110, 13.1.2: weak comparison)."""
    tags = [each.strip().removeprefix("W/") for each in sent.split(",")]
    return tag in tags or tags == ["*"]


async def _ask(request: Request, query: str, *values: object) -> tuple[Any, ...] | None:
    """Run one query. Raises Problem 503 while the database is away."""
    pool: Pool = request.app.state.pool
    try:
        async with pool.connection() as connection:
            return await (await connection.execute(query.encode(), values)).fetchone()
    except (psycopg.OperationalError, psycopg.InterfaceError) as error:
        if not isinstance(error, PoolTimeout):
            await pool.check()  # after a restart of Postgres every idle connection is dead
        log.warning("the database is away: %s", " ".join(str(error).split()))
        raise Problem(503, "the database is away", {"Retry-After": POLL_SECONDS}) from error


async def _retried(
    ask: Callable[[], Awaitable[tuple[Any, ...] | None]],
) -> tuple[Any, ...] | None:
    """Read once more after a lost connection. Only reads: a write may have been made."""
    try:
        return await ask()
    except Problem:
        return await ask()


@asynccontextmanager
async def _life(app: Starlette) -> AsyncIterator[None]:
    """Register the schedules, which never stops the start; hold the connections until the end."""
    if stack := os.environ.get("JOBWARDEN_STACK"):
        await anyio.to_thread.run_sync(boot, stack)
    async with Pool(
        os.environ.get("DATABASE_URL", ""),
        min_size=1,
        max_size=10,
        timeout=3,
        reconnect_timeout=10,
        kwargs={"autocommit": True, "connect_timeout": 3, "options": "-c timezone=UTC"},
        open=False,
    ) as pool:
        app.state.pool = pool
        yield


app = Starlette(
    routes=[
        Route("/api/jobs", queue_job, methods=["POST"]),
        Route("/api/jobs/{key}", poll_job),
    ],
    exception_handlers={
        Problem: problems.of_problem,
        HTTPException: problems.of_framework,
        500: problems.of_bug,
    },
    lifespan=_life,
)
