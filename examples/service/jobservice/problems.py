"""Errors of the API, each as one ``application/problem+json`` document (RFC 9457)."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response


class Problem(Exception):
    """What a client did wrong, or what it should wait for."""

    def __init__(self, status: int, detail: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.headers = headers


def answer(status: int, detail: str, headers: Mapping[str, str] | None = None) -> Response:
    """Return the document of one problem."""
    title = HTTPStatus(status).phrase
    body = {"type": "about:blank", "title": title, "status": status, "detail": detail}
    return JSONResponse(body, status, headers, media_type="application/problem+json")


async def of_problem(_: Request, error: Exception) -> Response:
    """Answer a problem of ours."""
    assert isinstance(error, Problem)
    return answer(error.status, error.detail, error.headers)


async def of_framework(_: Request, error: Exception) -> Response:
    """Answer what the framework refuses by itself: an unknown path, a wrong method."""
    assert isinstance(error, HTTPException)
    return answer(error.status_code, error.detail, error.headers)


async def of_bug(_: Request, __: Exception) -> Response:
    """Answer anything else; the log has the stack trace."""
    return answer(500, "the service made a mistake; it is in its log")
