"""Polls of the example service against a bare Starlette endpoint with one indexed query.

    uv run python bench/api.py --rows 1000000 --json

Both run under uvicorn on a Unix socket, on one table, with the same pool. They take turns; one
client process keeps a few connections busy. What carries over to another machine is the ratio.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg
from psycopg_pool import AsyncConnectionPool
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from infra import config, sqltext
from infra import plan as planning
from infra.db.apply import apply
from infra.local.cluster import Cluster
from infra.local.servers import find_server

ROOT = Path(__file__).resolve().parents[1]
APPS = {"service": "jobservice.api:app", "bare": "bench.api:app"}
FILL = """
INSERT INTO jobs (action, status, result, started_at, completed_at)
SELECT 'ai_chat', 'done', '{"reply": "You said 2 words. What else?"}', now(), now()
FROM generate_series(1, %s)
"""


async def bare(request: Request) -> JSONResponse:
    """The least that answers: one look-up by key, one JSON document."""
    pool: AsyncConnectionPool[psycopg.AsyncConnection[tuple[Any, ...]]] = request.app.state.pool
    async with pool.connection() as connection:
        found = await connection.execute(
            "SELECT action, status, result, error FROM jobs WHERE id = %s",
            [UUID(request.path_params["key"])],
        )
        row = await found.fetchone()
    names = ("action", "status", "result", "error")
    return JSONResponse(dict(zip(names, row or (), strict=False)))


async def _open() -> None:
    app.state.pool = AsyncConnectionPool(
        os.environ["DATABASE_URL"],
        min_size=1,
        max_size=10,
        kwargs={"autocommit": True},
        open=False,
    )
    await app.state.pool.open()


class _Life:
    """Opens the pool when the server starts."""

    def __init__(self, _: Starlette) -> None:
        pass

    async def __aenter__(self) -> None:
        await _open()

    async def __aexit__(self, *_: object) -> None:
        await app.state.pool.close()


app = Starlette(routes=[Route("/api/jobs/{key}", bare)], lifespan=_Life)


def main() -> None:
    """Fill the table, start both, take turns, print polls per second, p99 and the ratios."""
    options = _options()
    with (
        Cluster.create(find_server(), settings={"shared_buffers": "1GB"}) as cluster,
        tempfile.TemporaryDirectory() as folder,
    ):
        keys = _filled(cluster.url(), options.rows)
        servers = {name: _started(name, cluster.url(), folder) for name in APPS}
        try:
            rounds = _played(options, folder, keys)
        finally:
            for server in servers.values():
                server.terminate()
                server.wait()
    _report(options, rounds)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=4)
    parser.add_argument("--connections", type=int, default=8)
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


def _filled(url: str, rows: int) -> list[str]:
    environment = config.parse({})
    apply(planning.build(environment, sqltext.render(environment)), url)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(FILL.encode(), [rows])
        connection.execute("VACUUM ANALYZE jobs")
        found = connection.execute("SELECT id::text FROM jobs TABLESAMPLE SYSTEM (1) LIMIT 5000")
        return [key for (key,) in found] or [str(UUID(int=0))]


def _started(name: str, url: str, folder: str) -> subprocess.Popen[bytes]:
    argv = [sys.executable, "-m", "uvicorn", APPS[name], "--uds", f"{folder}/{name}"]
    argv += ["--no-access-log", "--log-level", "warning"]
    places = f"{ROOT / 'examples' / 'service'}:{ROOT}"
    server = subprocess.Popen(
        argv, cwd=ROOT, env={**os.environ, "DATABASE_URL": url, "PYTHONPATH": places}
    )
    deadline = time.monotonic() + 30
    while not Path(f"{folder}/{name}").exists():
        if server.poll() is not None or time.monotonic() > deadline:
            sys.exit(f"{name} did not start")
        time.sleep(0.05)
    time.sleep(0.5)
    return server


def _played(
    options: argparse.Namespace, folder: str, keys: list[str]
) -> dict[str, list[tuple[float, float]]]:
    rounds: dict[str, list[tuple[float, float]]] = {name: [] for name in APPS}
    for _ in range(options.rounds + 1):
        for name, found in rounds.items():
            found.append(asyncio.run(_load(options, f"{folder}/{name}", keys)))
    return {name: found[1:] for name, found in rounds.items()}


async def _load(options: argparse.Namespace, socket: str, keys: list[str]) -> tuple[float, float]:
    """Polls per second and p99 in milliseconds."""
    until = time.perf_counter() + options.seconds
    clients = [
        _client(socket, keys[n :: options.connections], until) for n in range(options.connections)
    ]
    times = sorted(time for each in await asyncio.gather(*clients) for time in each)
    return len(times) / options.seconds, times[int(len(times) * 0.99)] * 1000


async def _client(socket: str, keys: list[str], until: float) -> list[float]:
    reader, writer = await asyncio.open_unix_connection(socket)
    times: list[float] = []
    while (began := time.perf_counter()) < until:
        key = keys[len(times) % len(keys)]
        writer.write(f"GET /api/jobs/{key} HTTP/1.1\r\nHost: api\r\n\r\n".encode())
        head = await reader.readuntil(b"\r\n\r\n")
        if not head.startswith(b"HTTP/1.1 200"):
            sys.exit(f"the answer was {head[:60]!r}")
        length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
        await reader.readexactly(length)
        times.append(time.perf_counter() - began)
    writer.close()
    return times


def _report(options: argparse.Namespace, rounds: dict[str, list[tuple[float, float]]]) -> None:
    middle = {
        name: {
            "polls_per_second": statistics.median(rate for rate, _ in found),
            "p99_ms": statistics.median(p99 for _, p99 in found),
        }
        for name, found in rounds.items()
    }
    ratios = {
        "polls_per_second": middle["bare"]["polls_per_second"]
        / middle["service"]["polls_per_second"],
        "p99": middle["service"]["p99_ms"] / middle["bare"]["p99_ms"],
    }
    document = {"rows": options.rows, "rounds": options.rounds, **middle, "ratio": ratios}
    if options.json:
        print(json.dumps(document, indent=2))
        return
    for name, found in middle.items():
        print(f"{name:8} {found['polls_per_second']:8.0f} polls/s  p99 {found['p99_ms']:.2f} ms")
    print(f"ratio    {ratios['polls_per_second']:8.2f}          p99 {ratios['p99']:.2f}")


if __name__ == "__main__":
    main()
