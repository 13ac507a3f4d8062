# ruff: noqa: N802, ARG002  (the methods and their arguments are those of the protocol)
"""The gRPC side: what the engine asks of a provider, answered by the kinds."""

from __future__ import annotations

import secrets
import time
from typing import Any, NoReturn

import grpc
from google.protobuf import any_pb2, empty_pb2
from google.rpc import status_pb2
from pulumi.runtime.proto import plugin_pb2, provider_pb2, provider_pb2_grpc

from tests.engine.provider import clusters, databases, groups, network
from tests.engine.provider.invokes import invoke
from tests.engine.provider.kinds import Kind, RefusedError
from tests.engine.provider.values import Properties, has_unknown, pack, unpack

KINDS: dict[str, Kind] = {
    kind.type_name: kind
    for kind in (
        groups.ParameterGroup(),
        groups.ClusterParameterGroup(),
        databases.Instance(),
        clusters.Cluster(),
        clusters.ClusterInstance(),
        network.SubnetGroup(),
        network.SecurityGroup(),
        network.IngressRule(),
        network.EgressRule(),
    )
}


class Provider(provider_pb2_grpc.ResourceProviderServicer):
    """One provider process, for the length of one ``pulumi`` command."""

    def __init__(self, version: str) -> None:
        self._version = version

    def GetPluginInfo(self, request: Any, context: Any) -> Any:
        return plugin_pb2.PluginInfo(version=self._version)

    def CheckConfig(self, request: Any, context: Any) -> Any:
        return provider_pb2.CheckResponse(inputs=request.news)

    def DiffConfig(self, request: Any, context: Any) -> Any:
        return provider_pb2.DiffResponse()

    def Configure(self, request: Any, context: Any) -> Any:
        return provider_pb2.ConfigureResponse(acceptSecrets=False, supportsPreview=False)

    def Cancel(self, request: Any, context: Any) -> Any:
        return empty_pb2.Empty()

    def Invoke(self, request: Any, context: Any) -> Any:
        try:
            answer = invoke(request.tok, unpack(request.args))
        except RefusedError as error:
            _refuse(context, error)
        return provider_pb2.InvokeResponse(**{"return": pack(answer)})

    def Check(self, request: Any, context: Any) -> Any:
        kind = _kind(request.urn, context)
        old, new = unpack(request.olds), unpack(request.news)
        inputs = {**kind.defaults, **new}
        _give_name(kind, request.urn, old, inputs)
        return provider_pb2.CheckResponse(
            inputs=pack(inputs),
            failures=[
                provider_pb2.CheckFailure(property=name, reason=reason)
                for name, reason in kind.faults(inputs)
            ],
        )

    def Diff(self, request: Any, context: Any) -> Any:
        kind = _kind(request.urn, context)
        old, new = unpack(request.old_inputs), unpack(request.news)
        changed = [
            key
            for key in sorted(old.keys() | new.keys())
            if has_unknown(new.get(key)) or not kind.same(key, old.get(key), new.get(key))
        ]
        some = provider_pb2.DiffResponse.DIFF_SOME
        return provider_pb2.DiffResponse(
            changes=some if changed else provider_pb2.DiffResponse.DIFF_NONE,
            diffs=changed,
            replaces=[key for key in changed if key in kind.replacing()],
        )

    def Create(self, request: Any, context: Any) -> Any:
        kind, inputs = _kind(request.urn, context), unpack(request.properties)
        try:
            identity = kind.create(inputs)
            outputs = {**inputs, **(kind.read(identity) or {})}
        except RefusedError as error:
            _refuse(context, error, _as_it_is(kind, error.made, inputs))
        return provider_pb2.CreateResponse(id=identity, properties=pack(outputs))

    def Read(self, request: Any, context: Any) -> Any:
        kind = _kind(request.urn, context)
        try:
            live = kind.read(request.id)
        except RefusedError as error:
            _refuse(context, error)
        if live is None:
            return provider_pb2.ReadResponse()
        given, state = unpack(request.inputs), unpack(request.properties)
        inputs = _as_inputs(kind, given, live)
        if not given:  # an import: all that a program could have said
            inputs = {key: value for key, value in live.items() if key in kind.known()}
        return provider_pb2.ReadResponse(
            id=request.id, properties=pack({**state, **live}), inputs=pack(inputs)
        )

    def Update(self, request: Any, context: Any) -> Any:
        kind, new = _kind(request.urn, context), unpack(request.news)
        # The state may know of inputs that never came true: a creation that failed half way.
        old = _as_inputs(kind, unpack(request.old_inputs), unpack(request.olds))
        try:
            kind.update(request.id, old, new)
            outputs = {**new, **(kind.read(request.id) or {})}
        except RefusedError as error:
            _refuse(context, error, _as_it_is(kind, error.made, old))
        return provider_pb2.UpdateResponse(properties=pack(outputs))

    def Delete(self, request: Any, context: Any) -> Any:
        kind = _kind(request.urn, context)
        try:
            kind.delete(request.id, {**unpack(request.properties), **unpack(request.old_inputs)})
        except RefusedError as error:
            _refuse(context, error)
        return empty_pb2.Empty()


def _kind(urn: str, context: Any) -> Kind:
    token = urn.split("::")[2].rpartition("$")[2]
    if token not in KINDS:
        context.abort(grpc.StatusCode.UNIMPLEMENTED, f"the test provider knows no {token}")
    return KINDS[token]


def _give_name(kind: Kind, urn: str, old: Properties, inputs: Properties) -> None:
    """Make up a name as the real provider does: from the prefix, or from the resource's own."""
    if kind.name is None or inputs.get(kind.name) is not None:
        return
    prefix = inputs.get(kind.prefix) if kind.prefix else None
    if old.get(kind.name) and (kind.prefix is None or old.get(kind.prefix) == prefix):
        inputs[kind.name] = old[kind.name]
    elif isinstance(prefix, str):
        stamp = f"{time.time_ns() // 100:018d}{secrets.token_hex(4)}"
        inputs[kind.name] = f"{prefix}{stamp}"[: kind.longest_name].lower()
    else:
        own = urn.rpartition("::")[2].lower()
        inputs[kind.name] = f"{own[: kind.longest_name - 8]}-{secrets.token_hex(4)[:7]}"


def _as_inputs(kind: Kind, given: Properties, live: Properties) -> Properties:
    return {key: kind.as_input(key, value, live.get(key)) for key, value in given.items()}


def _as_it_is(kind: Kind, identity: str | None, given: Properties) -> Properties:
    """Return the inputs that came true, so that the next update does the rest."""
    live = kind.read(identity) if identity else None
    return _as_inputs(kind, given, live or {})


def _refuse(context: Any, error: RefusedError, state: Properties | None = None) -> NoReturn:
    """Fail the call. What was made by then goes into the engine's state with the reason."""
    if error.made is not None and state is not None:
        detail = any_pb2.Any()
        detail.Pack(
            provider_pb2.ErrorResourceInitFailed(
                id=error.made, properties=pack(state), reasons=[str(error)], inputs=pack(state)
            )
        )
        status = status_pb2.Status(code=2, message=str(error), details=[detail])
        blob = status.SerializeToString()
        context.set_trailing_metadata((("grpc-status-details-bin", blob),))
    context.abort(grpc.StatusCode.UNKNOWN, str(error))
    raise AssertionError(error)  # abort raises; this tells the type checker
