"""An ack-first queue in 20 lines, and why its redelivery never comes.

    DATABASE_URL=postgresql://postgres@/app python examples/service/ackfirst.py

It needs a database where `jobwarden apply` was made. See ack-first.md beside it.
"""

from __future__ import annotations

import os

import psycopg

QUEUE = """
CREATE TABLE IF NOT EXISTS messages (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, job uuid NOT NULL,
  visible_at timestamptz NOT NULL DEFAULT now())
"""
SEND = """
WITH job AS (INSERT INTO jobs (action) VALUES ('pdf_build') RETURNING id)
INSERT INTO messages (job) SELECT id FROM job RETURNING job
"""
READ = """
UPDATE messages SET visible_at = now() + interval '30 seconds' WHERE id = (
  SELECT id FROM messages WHERE visible_at <= now() ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED)
RETURNING id, job
"""
ACK = "DELETE FROM messages WHERE id = %s"
START = "UPDATE jobs SET status = 'running', worker = 'doomed' WHERE id = %s"
STATE = "SELECT status, error ->> 'code' FROM jobs WHERE id = %s"


def main() -> None:
    """Send one message; a worker takes it, acknowledges it, and dies in the middle of its job."""
    with psycopg.connect(os.environ.get("DATABASE_URL", ""), autocommit=True) as queue:
        queue.execute(QUEUE)
        queue.execute(SEND)
        message, job = queue.execute(READ).fetchone() or (None, None)
        queue.execute(ACK, [message])
        queue.execute(START, [job])
        print("the worker is gone; its job is", queue.execute(STATE, [job]).fetchone())
        queue.execute("UPDATE messages SET visible_at = '-infinity'")  # as if time had passed
        print("the queue delivers again:", queue.execute(READ).fetchone())
        queue.execute("UPDATE jobs SET started_at = now() - interval '1 hour' WHERE id = %s", [job])
        queue.execute("CALL jobwarden.sweep()")
        print("after the sweep its job is", queue.execute(STATE, [job]).fetchone())


if __name__ == "__main__":
    main()
