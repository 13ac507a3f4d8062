"""The scene itself: jobs are queued, workers work, one is killed, and somebody rescues its job."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import datetime, timedelta
from itertools import cycle

from infra import cronexpr
from infra.errors import InfraError
from infra.local.crew import Crew
from infra.local.jobs import WORKER_ROLE, Job, Jobs, Look
from infra.local.screen import Picture, Screen
from infra.local.stage import ACTIONS, DOOMED, KEPT, Stage

WORKERS = ("worker-1", "worker-2", "worker-3")
_FIRST_JOBS = 12
_ENDLESS_SECONDS = 3600.0
_CLAIM_SECONDS = 30.0
_TICK_SECONDS = 0.2
PATIENCE_SECONDS = 120
_FEED_SECONDS = 1.5
# Parts of the shortest limit: work as it should be, far from being rescued.
_WORK_PARTS = (0.3, 0.4, 0.2, 0.35)
_LONGEST_LIMIT = 5

Show = Callable[[Picture], None]


class Scene:
    """Plays the scene on a stage that is set up."""

    def __init__(self, screen: Screen, stage: Stage, crew: Crew, jobs: Jobs, seconds: int) -> None:
        """``seconds``: the limit of the job that is rescued."""
        self._screen, self._stage, self._crew, self._jobs = screen, stage, crew, jobs
        self._seconds = seconds
        lengths = [part * min(seconds, _LONGEST_LIMIT) for part in _WORK_PARTS]
        self._work = zip(cycle(ACTIONS), cycle(lengths), strict=False)
        self._feed_at = 0.0
        self._victim: str | None = None
        # The oldest, so that a worker takes it before all others.
        self._doomed = jobs.queue(DOOMED, _ENDLESS_SECONDS)

    def play(self) -> tuple[Job, float]:
        """Play until the job is rescued; return it, and the seconds since its worker's end.

        Raises InfraError when that takes more than two minutes and the limit.
        """
        for _ in range(_FIRST_JOBS):
            self._queue_one()
        for name in WORKERS:
            self._crew.hire(name, self._stage.url(WORKER_ROLE))
        self._screen.say(f"Queue {_FIRST_JOBS + 1} jobs of 3 actions; start 3 worker processes")
        bound = PATIENCE_SECONDS + self._seconds
        with self._screen.picture() as show:
            self._until(show, "a worker claims its job", _CLAIM_SECONDS, lambda job: job.worker)
            self._linger(show, min(1.0, self._seconds / 4))
            killed_at = self._kill()
            job = self._until(show, "the rescue", bound, lambda job: job.completed_at)
        ended_at = job.completed_at or killed_at
        return job, (ended_at - killed_at).total_seconds()

    def close(self) -> None:
        """Send the workers home, and let what they finished get old enough for the cleanup."""
        self._crew.dismiss()
        time.sleep(KEPT.total_seconds())

    def _kill(self) -> datetime:
        self._victim = self._jobs.job(self._doomed).worker or WORKERS[0]
        pid = self._crew.kill(self._victim)
        killed_at = self._jobs.look().now
        if self._jobs.job(self._doomed).status != "running":
            raise InfraError(
                f"the job was failed before {self._victim} was killed: this machine is very busy",
                hint="jobwarden demo --seconds 30",
            )
        self._screen.say(
            f"{self._victim} is killed in the middle of {DOOMED} (SIGKILL to process {pid})."
            " Its row stays running",
            style="bold red",
        )
        return killed_at

    def _linger(self, show: Show, seconds: float) -> None:
        over = time.monotonic() + seconds
        self._until(show, "", seconds + _CLAIM_SECONDS, lambda _: time.monotonic() > over)

    def _until(self, show: Show, what: str, bound: float, true: Callable[[Job], object]) -> Job:
        """Feed the workers and show them until it is true of the job. ``bound`` in seconds."""
        give_up = time.monotonic() + bound
        while True:
            job = self._jobs.job(self._doomed)
            if time.monotonic() > self._feed_at:
                self._queue_one()
            show(self._picture(self._jobs.look()))
            if true(job):
                return job
            if lost := self._crew.lost():
                raise self._failure(f"{', '.join(lost)} ended unasked")
            if time.monotonic() > give_up:
                raise self._failure(f"waited {bound:.0f} s in vain until {what}")
            time.sleep(_TICK_SECONDS)

    def _queue_one(self) -> None:
        self._jobs.queue(*next(self._work))
        self._feed_at = time.monotonic() + _FEED_SECONDS

    def _failure(self, what: str) -> InfraError:
        logs = f"{self._stage.cluster.log_tail()}\n{self._crew.log_tail()}".strip()
        return InfraError(
            f"the demo failed: {what}; the logs end:\n{logs}",
            hint="mend what the logs name, or run it again when the machine is less busy",
        )

    def _picture(self, look: Look) -> Picture:
        to_sweep, between = _way_to_sweep(self._stage, look)
        return Picture(
            look=look,
            actions=ACTIONS,
            workers={name: self._doing(name, look) for name in WORKERS},
            to_sweep=to_sweep.total_seconds(),
            between_sweeps=between.total_seconds(),
        )

    def _doing(self, name: str, look: Look) -> str:
        action = look.busy.get(name)
        if name == self._victim:
            return "killed; its row says running" if action else "killed; its row says failed"
        return action or "waits for a job"


def _way_to_sweep(stage: Stage, look: Look) -> tuple[timedelta, timedelta]:
    """Return how long until the next sweep, and how long between two of them."""
    between = cronexpr.longest_gap(stage.sweep)
    since = look.now
    if stage.sweep.fields is None and look.last_sweep is not None:
        # One in seconds has no grid: it counts from the last one.
        since = look.last_sweep
    (coming,) = cronexpr.next_fires(stage.sweep, since, 1)
    return max(coming - look.now, timedelta()), between
