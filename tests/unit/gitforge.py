"""A forge that holds comments and issues in memory: as much of two APIs as our scripts ask."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

BOT = {"type": "Bot", "login": "github-actions[bot]", "id": 7}
STRANGER = {"type": "User", "login": "mallory", "id": 8}


class Forge:
    """``comments`` and ``issues`` as they are; ``said``: what was asked; ``busy``: refusals."""

    def __init__(self) -> None:
        self.comments: list[dict[str, Any]] = []
        self.issues: list[dict[str, Any]] = []
        self.said: list[str] = []
        self.busy = 0
        self.token = "let me in"  # noqa: S105  # of a server that ends with the test
        self.url = ""

    def answer(self, method: str, target: str, body: dict[str, Any]) -> tuple[int, Any]:
        """The status and the document for one call."""
        parts = urlsplit(target)
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        self.said.append(f"{method} {parts.path}")
        if parts.path.endswith("/user"):
            return 200, BOT
        kind = self.issues if re.search(r"/issues(/\d+)?$", parts.path) else self.comments
        found = re.search(r"/(\d+)$", parts.path)
        if method == "GET":
            return 200, self._listed(kind, query)
        if method == "POST":
            kind.append({"id": 100 + len(kind), "number": len(kind), "iid": len(kind), **_by(body)})
            return 201, kind[-1]
        keys = ("number", "iid") if kind is self.issues else ("id",)
        number = int(found[1]) if found else -1
        item = next(it for it in kind if number in [it.get(key) for key in keys])
        item.update(body)
        return 200, item

    def _listed(self, kind: list[dict[str, Any]], query: dict[str, str]) -> list[dict[str, Any]]:
        size, page = int(query.get("per_page", 30)), int(query.get("page", 1))
        shown = [
            it for it in kind if it.get("state") != "closed" and it.get("state_event") != "close"
        ]
        return shown[(page - 1) * size : page * size]

    @contextmanager
    def serving(self) -> Iterator[Forge]:
        """Serve on a port of this machine."""
        forge = self

        class Handler(BaseHTTPRequestHandler):
            def _do(self) -> None:
                length = int(self.headers.get("Content-Length") or 0)
                body = json.loads(self.rfile.read(length) or b"{}")
                given = f"{self.headers.get('Authorization')} {self.headers.get('PRIVATE-TOKEN')}"
                if forge.busy:
                    forge.busy -= 1
                    status, document = 503, {"message": "busy"}
                elif forge.token not in given:
                    status, document = 401, {"message": "Bad credentials"}
                else:
                    status, document = forge.answer(self.command, self.path, body or {})
                text = json.dumps(document).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            do_GET = do_POST = do_PATCH = do_PUT = _do  # noqa: N815  # the server's names

            def log_message(self, *_: Any) -> None:
                """Say nothing."""

        with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
            self.url = f"http://127.0.0.1:{server.server_port}"
            thread = threading.Thread(target=server.serve_forever, daemon=True)
            thread.start()
            try:
                yield self
            finally:
                server.shutdown()
                thread.join()


def _by(body: dict[str, Any]) -> dict[str, Any]:
    return {**body, "user": BOT, "author": BOT}
