"""A headless Chromium, spoken to over its own DevTools protocol."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from websockets.sync.client import ClientConnection, connect

Scheme = Literal["light", "dark"]
SECONDS = 30.0
ARGUMENTS = (
    "--headless=new",
    "--remote-debugging-port=0",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-dev-shm-usage",
    "--disable-gpu",
    "--no-default-browser-check",
    "--no-first-run",
)


class Tab:
    """One page: commands go out, and what the browser tells between two answers is kept."""

    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket
        self._number = 0
        self._session: str | None = None
        self.events: list[dict[str, Any]] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)[
            "sessionId"
        ]
        for domain in ("Page", "Runtime", "Log", "Network", "Accessibility"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: Any) -> Any:
        """Give a command and return its result."""
        self._number += 1
        command = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            command["sessionId"] = self._session
        self._socket.send(json.dumps(command))
        while (told := self._heard()).get("id") != self._number:
            self.events.append(told)
        assert "result" in told, told
        return told["result"]

    def open(self, address: str, width: int, scheme: Scheme) -> None:
        """Show a page on a screen so wide, to somebody who likes it light or dark."""
        feature = {"name": "prefers-color-scheme", "value": scheme}
        self.call("Emulation.setEmulatedMedia", features=[feature])
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=844 if width < 600 else 800,
            deviceScaleFactor=1,
            mobile=width < 600,
        )
        self.events.clear()
        self.call("Page.navigate", url=address)
        while not self.told("Page.loadEventFired"):
            self.events.append(self._heard())

    def value(self, expression: str) -> Any:
        """Evaluate JavaScript on the page."""
        told = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in told, told
        return told["result"].get("value")

    def told(self, method: str) -> list[dict[str, Any]]:
        """What the browser told of one kind since the page was opened."""
        return [event["params"] for event in self.events if event.get("method") == method]

    def _heard(self) -> dict[str, Any]:
        heard: dict[str, Any] = json.loads(self._socket.recv(SECONDS))
        return heard


@contextmanager
def browser(program: str, folder: Path) -> Iterator[Tab]:
    """Start a browser with an empty profile in ``folder``, and end it with the block."""
    sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []
    argv = [program, *ARGUMENTS, *sandbox, f"--user-data-dir={folder}", "about:blank"]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(argv, stdout=log, stderr=log)
    try:
        address = _address(folder / "DevToolsActivePort", process)
        with connect(address, max_size=None, compression=None) as socket:
            tab = Tab(socket)
            yield tab
            tab.call("Browser.close")
        process.wait(SECONDS)
    finally:
        process.kill()
        process.wait()


def _address(file: Path, process: subprocess.Popen[bytes]) -> str:
    """Where it listens, which it writes to a file of its profile: the port, then the path."""
    deadline = time.monotonic() + SECONDS
    while True:
        lines = file.read_text().splitlines() if file.exists() else []
        if len(lines) == 2:
            return f"ws://127.0.0.1:{lines[0]}{lines[1]}"
        assert process.poll() is None, (file.parent / "log").read_text()
        assert time.monotonic() < deadline, "the browser does not listen"
        time.sleep(0.05)
