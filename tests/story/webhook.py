"""A webhook to deliver to: it keeps what it gets, and answers as it is told."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Webhook:
    """``answers`` are used up one by one, then it judges for itself. ``delay`` is in seconds."""

    def __init__(self) -> None:
        self.got: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.answers: list[tuple[int, dict[str, str]]] = []
        self.delay = 0.0
        webhook = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                length = int(self.headers["Content-Length"])
                raw = self.rfile.read(length)
                webhook.headers.append(dict(self.headers))
                webhook.got.append(json.loads(raw))
                told = webhook.answers.pop(0) if webhook.answers else None
                status, headers, text = webhook.judge(raw) if told is None else (*told, "")
                time.sleep(webhook.delay)
                try:
                    self.send_response(status)
                    for name, value in headers.items():
                        self.send_header(name, value)
                    self.end_headers()
                    self.wfile.write(text.encode())
                except OSError:
                    return  # the sender is gone

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}/hook/s3cret"
        self._thread = threading.Thread(target=self._server.serve_forever, args=[0.05])
        self._thread.start()

    def judge(self, _raw: bytes) -> tuple[int, dict[str, str], str]:
        """Answer a body: status, headers, text. Receivers that look closer have their own."""
        return 200, {}, ""

    def jobs(self) -> list[str]:
        """The ids of all jobs it heard of, each time it heard."""
        return [job for each in self.got for job in each["jobs"]]

    def close(self) -> None:
        """Stop answering; the port is free afterwards."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@contextmanager
def webhook() -> Iterator[Webhook]:
    """A webhook for the length of a block."""
    hook = Webhook()
    try:
        yield hook
    finally:
        hook.close()
