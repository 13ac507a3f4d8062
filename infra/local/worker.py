"""A worker as any application may have it: plain SQL on its own table, nothing of ours.

python -m infra.local.worker URL NAME

TERM lets it end its job first. It stops by itself when the database is gone.
"""

from __future__ import annotations

import signal
import sys
import time

from infra.db.connect import connect
from infra.errors import InfraError

CLAIM = """
SELECT id, (payload ->> 'seconds')::float FROM jobs WHERE status = 'queued'
ORDER BY created_at, id LIMIT 1 FOR UPDATE SKIP LOCKED
"""
START = "UPDATE jobs SET status = 'running', worker = %s WHERE id = %s"
FINISH = "UPDATE jobs SET status = 'done' WHERE id = %s"
REFUSED = "[JW001]"
_IDLE_SECONDS = 0.1


class Worker:
    """Takes one job after the other until it is told to stop."""

    def __init__(self, url: str, name: str) -> None:
        self.url = url
        self.name = name
        self.stopping = False

    def stop(self) -> None:
        """Take no further job."""
        self.stopping = True

    def run(self) -> None:
        """Work until told to stop. Raises InfraError when the database is gone."""
        while not self.stopping:
            try:
                self._work()
            except InfraError as error:
                # It came too late: the job was failed meanwhile. The next one may fare better.
                if REFUSED not in error.message:
                    raise

    def _work(self) -> None:
        with connect(self.url) as connection:
            while not self.stopping:
                with connection.transaction():
                    job = connection.execute(CLAIM).fetchone()
                    if job:
                        connection.execute(START, [self.name, job[0]])
                # The work itself, outside any transaction.
                time.sleep(job[1] if job else _IDLE_SECONDS)
                if job:
                    connection.execute(FINISH, [job[0]])


def main() -> None:
    """Run the worker that the arguments name."""
    _, url, name = sys.argv
    worker = Worker(url, name)
    signal.signal(signal.SIGTERM, lambda *_: worker.stop())
    worker.run()


if __name__ == "__main__":
    main()
