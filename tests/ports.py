"""Ports for servers of a test."""

from __future__ import annotations

import socket


def free_port() -> int:
    """A port of this machine that nobody listens on at this moment."""
    with socket.create_server(("127.0.0.1", 0)) as there:
        return int(there.getsockname()[1])
