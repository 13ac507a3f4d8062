"""Serve the provider: print the port, then wait until the engine ends this process."""

from __future__ import annotations

import sys
from concurrent import futures
from importlib.metadata import version

import grpc
from pulumi.runtime.proto import provider_pb2_grpc

from tests.engine.provider.service import Provider


def main() -> None:
    server = grpc.server(
        futures.ThreadPoolExecutor(max_workers=8),
        options=[("grpc.max_receive_message_length", 64 << 20)],
    )
    provider_pb2_grpc.add_ResourceProviderServicer_to_server(
        Provider(version("pulumi-aws")), server
    )
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    sys.stdout.write(f"{port}\n")
    sys.stdout.flush()
    server.wait_for_termination()


if __name__ == "__main__":
    main()
