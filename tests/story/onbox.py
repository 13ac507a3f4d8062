"""The story on a bare Debian box: deployed as a user would, and left to systemd."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import psycopg
from ruamel.yaml import YAML

from infra import config, plan, sqltext
from tests.box.deploying import Deployer, Run
from tests.ports import free_port
from tests.story.place import WATCHDOG, Place
from tests.story.service import EXAMPLE, wait_for
from tests.story.tunnel import Tunnel
from tools.boxes import Box

SOCKET = ".s.PGSQL.5432"
PORT = 8000


class OnBox(Place):
    """One run of the example's own ``deploy.py``. What is killed afterwards is systemd's matter."""

    name = "box"

    def __init__(self, stack: ExitStack, box: Box, folder: Path) -> None:
        super().__init__(stack, folder)
        self.box = box
        self._port = PORT if box.record.network.private else free_port()
        values = self._values()
        parsed = config.parse(values)
        self.plan = plan.build(parsed, sqltext.render(parsed))
        self.url = f"postgresql://postgres@/app?host={folder}"
        self._deployer = Deployer(box, folder, values, EXAMPLE / "deploy.py")
        self.first = self.deploy()
        assert self.first.code == 0, self.first.log
        stack.enter_context(Tunnel(self._ways()))
        wait_for(self._answers, 30)

    def deploy(self, *options: str, **keys: Any) -> Run:
        """Deploy as the example says; ``keys`` replace keys of its file.

        The addresses of the webhooks are secrets of a unit.
        """
        known = ("--data", f"ssh_known_hosts_file={self.box.known_hosts}")
        return self._deployer.deploy(
            "inventory.py", *known, *options, environment=self.hooks, keys=keys
        )

    def processes(self) -> list[str]:
        """The main process of each unit of the service."""
        show = "systemctl show -P MainPID api alerts worker@1 worker@2 worker@3"
        return self.box.ssh(show, check=True).stdout.split()

    def client(self) -> httpx.Client:
        return httpx.Client(base_url=f"http://{self.box.host}:{self._port}", timeout=20)

    def rows(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        with psycopg.connect(self.url, autocommit=True, connect_timeout=10) as connection:
            cursor = connection.execute(query.encode(), values or None)
            return cursor.fetchall() if cursor.description else []

    def freeze(self, unit: str) -> None:
        self._do(f"systemctl kill -s STOP {_unit(unit)}")

    def wake(self, unit: str) -> None:
        self._do(f"systemctl kill -s CONT {_unit(unit)}")

    def kill(self, unit: str) -> None:
        ask = f"systemctl show -P MainPID {_unit(unit)}"
        before = self._do(ask)
        self._do(f"systemctl kill -s KILL {_unit(unit)}")
        wait_for(lambda: self._do(ask) not in {"0", before}, 30)

    def kill_postgres(self) -> None:
        self._do(f"systemctl kill -s KILL --kill-whom=main {self._cluster()}")
        state = f"systemctl is-active {self._cluster()} || :"
        wait_for(lambda: self._do(state) == "failed", 30)

    def start_postgres(self) -> None:
        """As an operator does: Debian lets a killed server lie."""
        assert self._do(f"systemctl is-active {self._cluster()} || :") == "failed"
        self._do(f"systemctl start {self._cluster()}")
        wait_for(self._answers, 60)

    def restart(self) -> None:
        self.box.reboot()
        wait_for(self._answers, 60)

    def log(self, unit: str) -> str:
        return self.box.journal(_unit(unit))

    def _values(self) -> dict[str, Any]:
        """The example's own file for this box, with the story's limits."""
        text = (EXAMPLE / "Pulumi.box.example.yaml").read_text(encoding="utf-8")
        loaded = YAML(typ="safe", pure=True).load(text.replace(f" {PORT}", f" {self._port}"))
        values = {key.removeprefix("jobwarden:"): each for key, each in loaded["config"].items()}
        reach = {"sshUser": "admin", "sshPort": self.box.port, "sshKey": str(self.box.key)}
        entry = {"host": self.box.host, "allowRestart": True, **reach}
        return {**values, "boxes": [entry], "watchdog": WATCHDOG}

    def _ways(self) -> list[str]:
        """Postgres' socket comes here, as whose owner ssh logs in; the webhooks go there.

        A box without a network of its own sees the webhooks anyhow.
        """
        *ssh, host = self.box.ssh_argv("postgres")
        ways = ["-L", f"{self.folder}/{SOCKET}:/var/run/postgresql/{SOCKET}"]
        if self.box.record.network.private:
            for hook in self.hooks.values():
                port = urlsplit(hook).port
                ways += ["-R", f"127.0.0.1:{port}:127.0.0.1:{port}"]
        options = ["-N", "-o", "ExitOnForwardFailure=yes", "-o", "StreamLocalBindUnlink=yes"]
        # A box that is gone is noticed within three seconds.
        options += ["-o", "ServerAliveInterval=1", "-o", "ServerAliveCountMax=3"]
        return [*ssh, *options, *ways, host]

    def _answers(self) -> bool:
        try:
            return self.value("SELECT true") is True
        except psycopg.OperationalError:
            return False

    def _cluster(self) -> str:
        return f"postgresql@{self._deployer.major}-main.service"

    def _do(self, command: str) -> str:
        return self.box.ssh(command, check=True).stdout.strip()


def _unit(name: str) -> str:
    """``worker-2`` is the instance worker@2."""
    kind, _, number = name.partition("-")
    return f"{kind}@{number}.service" if number else f"{kind}.service"
