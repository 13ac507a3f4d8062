"""How a command ends: a message and an exit code for a user's mistake, never a stack trace."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any

import typer

from infra.cli import hints
from infra.cli.options import INTERRUPTED, USAGE
from infra.errors import InfraError


def of(command: Callable[[], Any]) -> int:
    """Run a command and return its exit code, with what is to be said on stderr."""
    _harden()
    try:
        code = command()
        sys.stdout.flush()
    except InfraError as error:
        return _say(error.message, error.hint, error.exit_code)
    except (KeyboardInterrupt, typer.Abort):
        code = INTERRUPTED
    except BrokenPipeError:
        return _silent()
    except OSError as error:
        return _say(f"the answer could not be written: {error}", "mend where stdout goes to", 1)
    except Exception as error:
        # click's own errors, which typer may bring along in its own copy
        if not hasattr(error, "format_message"):
            raise
        where = getattr(getattr(error, "ctx", None), "command_path", "jobwarden")
        return _say(str(error.format_message()), f"{where} --help", USAGE)
    if code == INTERRUPTED:
        sys.stderr.write("interrupted; run it again to finish what was begun\n")
    return code if isinstance(code, int) else 0


def _harden() -> None:
    """Let odd terminals be: closed streams, and letters that their encoding does not have."""
    for name, stream in (("stdout", sys.stdout), ("stderr", sys.stderr)):
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: PTH123, SIM115
        elif hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def _silent() -> int:
    """Nobody reads any more. Nothing is left to flush at exit, which would complain."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


def _say(message: str, hint: str | None, code: int) -> int:
    """Print the error where the reader looks: as JSON, too, where JSON was asked for."""
    hint = hints.complete(hint) if hint else None
    message = hints.complete(message)
    if "--json" in sys.argv[1:]:
        import json

        document = {"error": {"message": message, "try": hint}}
        sys.stdout.write(json.dumps(document, indent=2, ensure_ascii=False) + "\n")
    sys.stderr.write(message + (f"\nTry: {hint}\n" if hint else "\n"))
    return code
