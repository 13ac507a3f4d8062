"""Errors a user can act on: what was wrong, the value got, what is allowed, then a way out.

Every error that leaves this package for a user is an :class:`InfraError`. The command line prints
``str(error)`` without a stack trace and exits with ``error.exit_code``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


class InfraError(Exception):
    """Something the user can mend. ``hint`` is the text behind ``Try:``, without the word."""

    exit_code = 1

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        self.message = message
        self.hint = hint
        super().__init__(message)

    def __str__(self) -> str:
        return f"{self.message}\nTry: {self.hint}" if self.hint else self.message


class RuleError(InfraError, ValueError):
    """A value breaks a rule. Raised by the rule modules; ``config`` adds the path.

    It is a ValueError too, so that pydantic collects it with the other faults.
    """

    def __init__(self, problem: str, *, got: object, allowed: str, hint: str) -> None:
        self.problem = problem
        self.got = got
        self.allowed = allowed
        super().__init__(f"{problem} (got {got!r}; allowed: {allowed})", hint=hint)


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault of an environment: where, what was wrong, the value got, what is allowed."""

    path: str
    problem: str
    got: str
    allowed: str
    hint: str

    def __str__(self) -> str:
        return (
            f"{self.path}: {self.problem} (got {self.got}; allowed: {self.allowed})\n"
            f"  Try: {self.hint}"
        )


class ConfigError(InfraError):
    """An environment with faults: all of them, in one message."""

    def __init__(self, faults: Iterable[Fault], *, source: str = "environment") -> None:
        self.faults = tuple(faults)
        self.source = source
        count = len(self.faults)
        lines = "\n".join(str(fault) for fault in self.faults)
        super().__init__(f"{source}: {count} fault{'s' if count != 1 else ''}\n{lines}")


class UsageError(InfraError):
    """The command line itself was wrong. Exits 64 (EX_USAGE of sysexits.h)."""

    exit_code = 64
