"""A socket before the server that counts what passes, and one that never answers."""

from __future__ import annotations

import socket
import struct
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from infra.local.folder import PORT


class Counter:
    """``connections`` made, and ``answers``: how often the server said it was ready again."""

    def __init__(self) -> None:
        self.connections = 0
        self.ready = 0

    @property
    def round_trips(self) -> int:
        """The first readiness of a connection answers no statement."""
        return self.ready - self.connections


@contextmanager
def counted(folder: Path) -> Iterator[tuple[Path, Counter]]:
    """Stand before the server in ``folder``; give the folder to connect to."""
    counter = Counter()
    with _listening() as (place, listener):
        thread = threading.Thread(target=_serve, args=(listener, folder, counter), daemon=True)
        thread.start()
        yield place, counter
        listener.shutdown(socket.SHUT_RDWR)
        thread.join(5)


@contextmanager
def silent() -> Iterator[Path]:
    """Give the folder of a listener that takes connections and never answers."""
    with _listening() as (place, _listener):
        yield place


@contextmanager
def _listening() -> Iterator[tuple[Path, socket.socket]]:
    with tempfile.TemporaryDirectory(prefix="jw-", dir="/tmp") as name:
        listener = socket.socket(socket.AF_UNIX)
        with listener:
            listener.bind(f"{name}/.s.PGSQL.{PORT}")
            listener.listen(16)
            yield Path(name), listener


def _serve(listener: socket.socket, folder: Path, counter: Counter) -> None:
    while True:
        try:
            client, _ = listener.accept()
        except OSError:
            return
        counter.connections += 1
        server = socket.socket(socket.AF_UNIX)
        server.connect(str(folder / f".s.PGSQL.{PORT}"))
        upwards = threading.Thread(target=_pump, args=(client, server), daemon=True)
        upwards.start()
        _count(server, client, counter)
        upwards.join(5)
        client.close()
        server.close()


def _pump(source: socket.socket, sink: socket.socket) -> None:
    while data := source.recv(65536):
        sink.sendall(data)
    sink.shutdown(socket.SHUT_WR)


def _count(server: socket.socket, client: socket.socket, counter: Counter) -> None:
    """Pass the server's messages on: a letter, a length with itself, a body."""
    with server.makefile("rb") as stream:
        while head := stream.read(5):
            body = stream.read(struct.unpack("!I", head[1:])[0] - 4)
            if head[:1] == b"Z":
                counter.ready += 1
            client.sendall(head + body)
