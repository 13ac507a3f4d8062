"""Our sweep against the post's plain UPDATE without an index, in one run, on one table.

    uv run python bench/sweep.py --rows 1000000 --json

Ours is the whole CALL as pg_cron runs it: commits, an event and a run row. The plain statement
runs without any index of ours and commits too. The two take turns, so that a change of the
machine's mood hits both; each finds the same jobs stale, put back in between. The figure that
carries over to another machine is the ratio, not the milliseconds.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time

import psycopg

from infra import config, sqltext
from infra import plan as planning
from infra.db.apply import apply
from infra.local.cluster import Cluster
from infra.local.servers import find_server
from infra.sqltext import RUNNING_INDEX, TERMINAL_INDEX

PLAIN = """
UPDATE plain_jobs SET status = 'failed', completed_at = now(),
  error = '{"code": "watchdog_timeout", "message": "worker timed out (running >10 min)"}'
WHERE status = 'running' AND started_at < now() - interval '10 minutes'
"""


def main() -> None:
    """Fill two like tables, take turns, print the medians and their ratio."""
    options = _options()
    with Cluster.create(find_server(), durable=True, settings={"shared_buffers": "1GB"}) as cluster:
        environment = config.parse({})
        url = cluster.url()
        apply(planning.build(environment, sqltext.render(environment)), url)
        with psycopg.connect(url, autocommit=True) as connection:
            _fill(connection, options)
            times: dict[str, list[float]] = {"ours": [], "plain_update_no_index": []}
            for _ in range(options.rounds + 1):
                times["plain_update_no_index"].append(
                    _timed(connection, options, "plain_jobs", PLAIN)
                )
                times["ours"].append(_timed(connection, options, "jobs", "CALL jobwarden.sweep()"))
    _report(options, {name: values[1:] for name, values in times.items()})


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--running", type=int, default=1_000)
    parser.add_argument("--stale", type=int, default=50)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


def _fill(connection: psycopg.Connection, options: argparse.Namespace) -> None:
    """Finished jobs of 20 actions, ``running`` ones among them, in both tables alike."""
    sys.stderr.write(f"filling two tables with {options.rows} rows each\n")
    connection.execute(f"DROP INDEX {RUNNING_INDEX}, {TERMINAL_INDEX}".encode())
    connection.execute("ALTER TABLE jobs SET (autovacuum_enabled = off)")
    connection.execute(
        "INSERT INTO jobs (action, status, payload, started_at, completed_at)"
        " SELECT 'action_' || n %% 20, CASE WHEN n <= %(running)s THEN 'running' ELSE 'done' END,"
        " jsonb_build_object('text', repeat('x', 250)), now() - interval '1 minute',"
        " CASE WHEN n > %(running)s THEN now() - interval '1 hour' END"
        " FROM generate_series(1, %(rows)s) AS n ORDER BY hashint8(n)",
        {"rows": options.rows, "running": options.running},
    )
    connection.execute("CREATE TABLE plain_jobs (LIKE jobs INCLUDING DEFAULTS)")
    connection.execute(
        "ALTER TABLE plain_jobs SET (autovacuum_enabled = off), ADD PRIMARY KEY (id)"
    )
    connection.execute("INSERT INTO plain_jobs SELECT * FROM jobs")
    for name, rest in sqltext.render(config.parse({})).indexes.items():
        connection.execute(f"CREATE INDEX {name} {rest}".encode())
    connection.execute("VACUUM ANALYZE")
    connection.execute("CHECKPOINT")


def _timed(
    connection: psycopg.Connection, options: argparse.Namespace, table: str, statement: str
) -> float:
    """Make ``stale`` jobs overdue, time the statement in ms, and put them back."""
    guard = "ALTER TABLE jobs {} TRIGGER jobwarden_guard"
    connection.execute(
        f"UPDATE {table} SET started_at = now() - interval '11 minutes' WHERE id IN"
        f" (SELECT id FROM {table} WHERE status = 'running' ORDER BY id"
        f" LIMIT {options.stale})".encode()
    )
    begun = time.perf_counter()
    connection.execute(statement.encode())
    spent = (time.perf_counter() - begun) * 1000
    connection.execute(guard.format("DISABLE").encode())
    row = connection.execute(
        f"WITH back AS (UPDATE {table} SET status = 'running', error = NULL, completed_at = NULL,"
        " started_at = now() WHERE status = 'failed' RETURNING 1)"
        " SELECT count(*) FROM back".encode()
    ).fetchone()
    connection.execute(guard.format("ENABLE").encode())
    connection.execute(f"VACUUM {table}".encode())
    if row is None or row[0] != options.stale:
        raise SystemExit(f"{table}: {row} jobs were failed, and not {options.stale}")
    return spent


def _report(options: argparse.Namespace, times: dict[str, list[float]]) -> None:
    ratios = [
        plain / ours
        for plain, ours in zip(times["plain_update_no_index"], times["ours"], strict=True)
    ]
    document = {
        "rows": options.rows,
        "running": options.running,
        "stale": options.stale,
        "rounds": options.rounds,
        "median_ms": {name: round(statistics.median(values), 2) for name, values in times.items()},
        "ratios": {"plain_update_no_index": round(statistics.median(ratios), 1)},
        "ratio_range": [round(min(ratios), 1), round(max(ratios), 1)],
    }
    if options.json:
        print(json.dumps(document, indent=2))
        return
    for name, value in document["median_ms"].items():
        print(f"{name:24} {value:9.2f} ms (median of {options.rounds})")
    print(f"ours is {document['ratios']['plain_update_no_index']} times quicker, paired")


if __name__ == "__main__":
    main()
