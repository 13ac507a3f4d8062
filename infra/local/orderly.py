"""Ends the demo in an orderly way, whatever ends it, and keeps the user's libpq settings off it."""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Ended(BaseException):
    """A signal came. Not an Exception, so that nothing on the way out takes it for a fault."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.exit_code = 128 + number
        self.name = (
            "interrupted" if number == signal.SIGINT else f"ended by {signal.Signals(number).name}"
        )


class Signals:
    """What to do when one comes: raise Ended, or let a step that must be whole end first."""

    def __init__(self) -> None:
        self._holding = False
        self._came: int | None = None

    @contextmanager
    def held(self) -> Iterator[None]:
        """Let what is inside end first, so that nothing it made is lost; a second one breaks in."""
        self._holding = True
        try:
            yield
        finally:
            self._holding = False
        if self._came is not None:
            self._end(self._came)

    def come(self, number: int, _frame: FrameType | None) -> None:
        """Take a signal."""
        if self._holding and self._came is None:
            self._came = number
        else:
            self._end(number)

    def _end(self, number: int) -> NoReturn:
        for each in _SIGNALS:
            signal.signal(each, signal.SIG_IGN)
        raise Ended(number)


@contextmanager
def orderly() -> Iterator[Signals]:
    """Turn Ctrl-C, TERM and HUP into Ended, once; later ones do not disturb the clearing up.

    Those that the caller ignores (nohup, a shell's background) stay ignored.
    """
    signals = Signals()
    before = {each: signal.getsignal(each) for each in _SIGNALS}
    # A query that is cut off is no news here, and its connection goes anyway.
    logging.getLogger("psycopg").addHandler(logging.NullHandler())
    ours = [each for each, handler in before.items() if handler is not signal.SIG_IGN]
    for each in ours:
        signal.signal(each, signals.come)
    try:
        with _without_libpq_settings():
            yield signals
    finally:
        for each in ours:
            signal.signal(each, before[each])


@contextmanager
def _without_libpq_settings() -> Iterator[None]:
    """Put PGOPTIONS, PGSERVICE and the like aside: they are meant for another server."""
    aside = {name: os.environ.pop(name) for name in list(os.environ) if name.startswith("PG")}
    try:
        yield
    finally:
        os.environ.update(aside)
