"""The address of an instance: a TCP port with TLS in front of a server's private Unix socket.

It can be cut, so that the database is there and cannot be reached. One thread a connection; both
ways share it, which is enough for what tests send.
"""

from __future__ import annotations

import datetime as dt
import select
import socket
import ssl
import struct
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from ipaddress import IPv4Address
from pathlib import Path
from threading import Thread

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

HOST = "127.0.0.1"
_SSL_REQUEST, _GSS_REQUEST = 80877103, 80877104
_CHUNK = 65536
_PATIENCE_SECONDS = 10.0


class Door:
    """Listens on a port of this machine, or on a free one, as soon as it is made."""

    def __init__(self, target: Path, certificate: Path, port: int = 0) -> None:
        self._target = str(target)
        self._tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._tls.load_cert_chain(certificate)
        self._cut = False
        self._listener = socket.create_server((HOST, port))
        self.port: int = self._listener.getsockname()[1]
        Thread(target=self._serve, daemon=True).start()

    @contextmanager
    def cut(self) -> Iterator[None]:
        """End every new connection at once."""
        self._cut = True
        try:
            yield
        finally:
            self._cut = False

    def close(self) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _serve(self) -> None:
        with suppress(OSError):  # closed
            while True:
                client, _ = self._listener.accept()
                Thread(target=self._answer, args=(client,), daemon=True).start()

    def _answer(self, client: socket.socket) -> None:
        with suppress(OSError, EOFError), client:
            if self._cut:
                return
            client.settimeout(_PATIENCE_SECONDS)
            inside, first = self._welcome(client)
            with inside, socket.socket(socket.AF_UNIX) as server:
                server.connect(self._target)
                server.sendall(first)
                inside.settimeout(None)
                _pump(inside, server)

    def _welcome(self, client: socket.socket) -> tuple[socket.socket, bytes]:
        """Do what comes before the start-up message; return the stream and what was read of it."""
        while True:
            first = _exactly(client, 8)
            request = struct.unpack("!ii", first)[1]
            if request == _SSL_REQUEST:
                client.sendall(b"S")
                client = self._tls.wrap_socket(client, server_side=True)
            elif request == _GSS_REQUEST:
                client.sendall(b"N")
            else:
                return client, first


def _exactly(stream: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        part = stream.recv(count - len(data))
        if not part:
            raise EOFError
        data += part
    return data


def _pump(client: socket.socket, server: socket.socket) -> None:
    ways = {client: server, server: client}
    while True:
        waiting = isinstance(client, ssl.SSLSocket) and client.pending()
        ready = [client] if waiting else select.select(list(ways), [], [])[0]
        for source in ready:
            data = source.recv(_CHUNK)
            if not data:
                return
            ways[source].sendall(data)


def write_certificate(folder: Path) -> Path:
    """Write a key with its own certificate for this machine; return the file. It is its own CA."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "test instances")])
    now = dt.datetime.now(tz=dt.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(hours=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(IPv4Address(HOST))]), critical=False
        )
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    file = folder / "instances.pem"
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    file.write_bytes(certificate.public_bytes(serialization.Encoding.PEM) + private)
    return file
