"""One script at a time to a box, as root, and its answer; errors name the host and the step."""

from __future__ import annotations

import base64
import shlex
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from paramiko import SSHException
from pyinfra.api import Host, StringCommand

from infra.errors import InfraError

# Whoever logs in: root itself, or somebody whom sudo asks for nothing.
AS_ROOT = (
    'if [ "$(id -u)" = 0 ]; then exec sh -s; fi; '
    "if sudo -n true 2>/dev/null; then exec sudo -n -H sh -s; fi; "
    'echo "jobwarden-error: user $(id -un) may not become root without a password" >&2; '
    'echo "jobwarden-try: log in as root, or give $(id -un) NOPASSWD in /etc/sudoers.d" >&2; '
    "exit 1"
)
_FOLDER = Path(__file__).parent / "files"


@cache
def text_of(name: str) -> str:
    """A script of this package."""
    return (_FOLDER / f"{name}.sh").read_text(encoding="utf-8")


def script(name: str, variables: Mapping[str, str]) -> str:
    """The whole text for ``sh -s``: read to its end before anything of it runs."""
    given = "".join(f"{key}={shlex.quote(value)}\n" for key, value in variables.items())
    return f"{{\n{given}{text_of('common')}{text_of(name)}\nexit 0\n}}\n"


def carry(host: Host, step: str, name: str, variables: Mapping[str, str]) -> str:
    """Run a script on a box and return what it answered. Raises InfraError."""
    text = script(name, variables)
    try:
        done, said = host.run_shell_command(StringCommand(AS_ROOT), _stdin=text)
    except (OSError, SSHException, EOFError, AttributeError) as error:
        raise InfraError(
            f"{host.name}: {step}: the ssh connection broke ({str(error) or type(error).__name__})",
            hint="deploy again; a step that had begun on the box is carried to its end there",
        ) from None
    if not done:
        raise failure(f"{host.name}: {step}", said.stderr_lines)
    return answer(said.stdout_lines)


def answer(lines: list[str]) -> str:
    """What a script sent back in base64; "" where it had nothing to say."""
    coded = [line.removeprefix("answer ") for line in lines if line.startswith("answer ")]
    return base64.b64decode(coded[-1]).decode(errors="replace") if coded else ""


def failure(where: str, lines: list[str]) -> InfraError:
    """The error that a script's last words stand for."""
    errors = [line.partition(": ")[2] for line in lines if line.startswith("jobwarden-error: ")]
    hints = [line.partition(": ")[2] for line in lines if line.startswith("jobwarden-try: ")]
    if errors:
        return InfraError(f"{where}: {errors[-1]}", hint=hints[-1] if hints else "deploy again")
    text = " ".join(lines[-3:]) or "the connection ended before the script did"
    return InfraError(f"{where}: {text}", hint="deploy again; if it stays, run it on the box")
