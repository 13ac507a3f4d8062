"""The account as a whole: an HTTP endpoint on this machine that boto3 takes for AWS."""

from __future__ import annotations

import io
import json
import secrets
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from threading import Thread
from types import TracebackType
from typing import Any, Self
from unittest import mock
from urllib.parse import parse_qs
from xml.sax.saxutils import escape

import moto.rds.urls
from moto.core.models import DEFAULT_ACCOUNT_ID
from moto.moto_api._internal.models import moto_api_backend
from moto.moto_server.werkzeug_app import (
    DomainDispatcherApplication,
    MotoRequestHandler,
    create_backend_app,
)
from moto.rds.models import DBCluster, DBInstance, MasterUserSecret, rds_backends
from werkzeug.serving import BaseWSGIServer, make_server

from tests.engine.account.control import Control
from tests.engine.account.plane import DataPlane, Endpoint, NoDataPlane
from tests.engine.account.service import Service

REGION = "eu-central-1"
_NOWHERE = Endpoint("127.0.0.1", 1)


@dataclass(slots=True)
class Fault:
    """What AWS answers instead of doing an action, the next ``times`` times."""

    code: str
    message: str
    status: int
    times: int


class Account:
    """One AWS account in one region. Use it as a context manager.

    ``calls`` lists the actions asked for, in order, refused ones too. Moto holds its state in this
    process, so one account can be open at a time.
    """

    def __init__(self, plane: DataPlane | None = None) -> None:
        self.control = Control(plane or NoDataPlane())
        self.calls: list[str] = []
        self.url = ""
        self._faults: dict[str, Fault] = {}
        self._open = ExitStack()

    def environment(self) -> dict[str, str]:
        """Return the variables by which boto3 and the provider find this account."""
        return {
            "AWS_ENDPOINT_URL": self.url,
            "AWS_ACCESS_KEY_ID": "testing",
            "AWS_SECRET_ACCESS_KEY": "testing",
            "AWS_DEFAULT_REGION": REGION,
            "AWS_REGION": REGION,
            "AWS_EC2_METADATA_DISABLED": "true",
            "AWS_CONFIG_FILE": "/nonexistent",
            "AWS_SHARED_CREDENTIALS_FILE": "/nonexistent",
        }

    def client(self, service: str) -> Any:
        """Return a boto3 client of this account."""
        import boto3  # noqa: PLC0415  (a second; not every test needs one)

        return boto3.client(
            service,
            endpoint_url=self.url,
            region_name=REGION,
            aws_access_key_id="testing",
            aws_secret_access_key="testing",  # noqa: S106  (moto asks for one, and reads it not)
        )

    def fail(
        self, action: str, code: str, message: str = "", *, status: int = 400, times: int = 1
    ) -> None:
        """Answer the next calls of one action (``ModifyDBParameterGroup``) with an error of AWS."""
        self._faults[action] = Fault(
            code, message or f"{code} (asked for by a test)", status, times
        )

    def counted(self) -> Counter[str]:
        return Counter(self.calls)

    def __enter__(self) -> Self:
        class OurService(Service):
            control = self.control

        patches: list[Any] = [
            mock.patch.dict(moto.rds.urls.url_paths, {"{0}/$": OurService.dispatch}),
            *_watched(self.control),
            mock.patch.object(MasterUserSecret, "_generate_secret_string", _credentials),
        ]
        for patch in patches:
            self._open.enter_context(patch)
        self._open.callback(_forget_everything)
        self._serve()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for name in dict.fromkeys(self.control.endpoints):
            self.control.plane.destroy(name)
        self._open.close()

    def _serve(self) -> None:
        app = _Gate(DomainDispatcherApplication(_backend_app), self.calls, self._faults)
        server: BaseWSGIServer = make_server(
            "127.0.0.1", 0, app, threaded=True, request_handler=_Quiet
        )
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        self._open.callback(server.server_close)
        self._open.callback(thread.join)
        self._open.callback(server.shutdown)
        self.url = f"http://127.0.0.1:{server.server_port}"


def _backend_app(service: Any) -> Any:
    app = create_backend_app(service)
    app.config["PROPAGATE_EXCEPTIONS"] = True  # up to the gate, which shows them
    return app


class _Quiet(MotoRequestHandler):
    def log(self, type: str, message: str, *args: Any) -> None:  # noqa: A002  (werkzeug's name)
        pass


class _Gate:
    """Notes each action of the query API, and answers it with a fault where one is asked for."""

    def __init__(
        self, app: Callable[..., Iterable[bytes]], calls: list[str], faults: dict[str, Fault]
    ) -> None:
        self._app = app
        self._calls = calls
        self._faults = faults

    def __call__(
        self, environ: dict[str, Any], start: Callable[[str, list[tuple[str, str]]], Any]
    ) -> Iterable[bytes]:
        body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        environ["wsgi.input"] = io.BytesIO(body)
        action = _action(environ, body)
        self._calls.append(action)
        fault = self._faults.get(action)
        if fault and fault.times > 0:
            fault.times -= 1
            start(f"{fault.status} Refused", [("Content-Type", "text/xml")])
            return [_answer(fault)]
        try:
            return self._app(environ, start)
        except Exception:  # noqa: BLE001  (whatever it is, the test that asked must see it)
            start("400 Broken", [("Content-Type", "text/xml")])
            return [_answer(Fault("TestAccountBroken", traceback.format_exc(), 400, 1))]


def _action(environ: Mapping[str, Any], body: bytes) -> str:
    target = str(environ.get("HTTP_X_AMZ_TARGET", ""))
    if target:
        return target.rpartition(".")[2]
    form = parse_qs(body.decode("utf-8", errors="replace"))
    return form.get("Action", [str(environ.get("PATH_INFO", ""))])[0]


def _answer(fault: Fault) -> bytes:
    return (
        f"<ErrorResponse><Error><Type>Sender</Type><Code>{fault.code}</Code>"
        f"<Message>{escape(fault.message)}</Message></Error><RequestId>0</RequestId></ErrorResponse>"
    ).encode()


def _watched(control: Control) -> list[Any]:
    """Let moto's objects show the status and the addresses that this account knows."""

    def place(name: str) -> Endpoint:
        return control.endpoints.get(name, _NOWHERE)

    def endpoint(database: DBInstance) -> dict[str, object]:
        at = place(database.db_instance_identifier)
        return {"Address": at.host, "Port": at.port}

    def address(database: DBInstance) -> str:
        return place(database.db_instance_identifier).host

    def cluster_address(cluster: DBCluster) -> str:
        return place(cluster.db_cluster_identifier).host

    def cluster_port(cluster: DBCluster) -> int:
        return place(cluster.db_cluster_identifier).port

    def ignored(cluster: DBCluster, value: object) -> None:
        """The place is the data plane's to choose."""

    replaced: list[tuple[type, str, property]] = [
        (DBInstance, "db_parameter_group_status_list", property(control.own_status)),
        (DBInstance, "endpoint", property(endpoint)),
        (DBInstance, "address", property(address)),
        (DBCluster, "db_cluster_members", property(control.member_status)),
        (DBCluster, "endpoint", property(cluster_address)),
        (DBCluster, "port", property(cluster_port, ignored)),
    ]
    return [mock.patch.object(owner, name, value, create=True) for owner, name, value in replaced]


def _credentials(secret: MasterUserSecret) -> str:
    """Return what a managed secret holds; moto's own is the same for every database."""
    username = secret.resource.master_username
    return json.dumps({"username": username, "password": secrets.token_urlsafe(18)})


def _forget_everything() -> None:
    moto_api_backend.reset()


def backend() -> Any:
    """Return moto's own RDS state, for tests that look behind the API."""
    return rds_backends[DEFAULT_ACCOUNT_ID][REGION]
