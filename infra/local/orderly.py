"""Ends the demo in an orderly way, whatever ends it, and keeps the user's libpq settings off it."""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Ended(BaseException):
    """A signal came. Not an Exception, so that nothing on the way out takes it for a fault."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.exit_code = 128 + number
        self.name = (
            "interrupted" if number == signal.SIGINT else f"ended by {signal.Signals(number).name}"
        )


@contextmanager
def orderly() -> Iterator[None]:
    """Turn Ctrl-C, TERM and HUP into Ended, once; later ones do not disturb the clearing up.

    Those that the caller ignores (nohup, a shell's background) stay ignored.
    """
    before = {each: signal.getsignal(each) for each in _SIGNALS}
    # A query that is cut off is no news here, and its connection goes anyway.
    logging.getLogger("psycopg").addHandler(logging.NullHandler())
    ours = [each for each, handler in before.items() if handler is not signal.SIG_IGN]
    for each in ours:
        signal.signal(each, _end)
    try:
        with _without_libpq_settings():
            yield
    finally:
        for each in ours:
            signal.signal(each, before[each])


def _end(number: int, _frame: FrameType | None) -> None:
    for each in _SIGNALS:
        signal.signal(each, signal.SIG_IGN)
    raise Ended(number)


@contextmanager
def _without_libpq_settings() -> Iterator[None]:
    """Put PGOPTIONS, PGSERVICE and the like aside: they are meant for another server."""
    aside = {name: os.environ.pop(name) for name in list(os.environ) if name.startswith("PG")}
    try:
        yield
    finally:
        os.environ.update(aside)
