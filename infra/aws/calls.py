"""boto3: a client, and its errors in words a user can act on. No message holds a credential."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from infra.errors import InfraError

# botocore's own: a wait that doubles, with chance in it, for what AWS calls throttling.
ATTEMPTS: Final = 8
# What AWS says of a database that is not there.
GONE: Final = frozenset({"DBClusterNotFoundFault", "DBInstanceNotFound"})
_SIGN_IN: Final = "sign in again (aws sso login, or new keys) and run pulumi up again"
_HINTS: Final = {
    "AccessDenied": "allow the action to the role that runs pulumi, then run pulumi up again",
    "AccessDeniedException": "allow the action to the role that runs pulumi, then pulumi up",
    "ExpiredToken": _SIGN_IN,
    "ExpiredTokenException": _SIGN_IN,
    "InvalidClientTokenId": _SIGN_IN,
    "RequestLimitExceeded": "AWS takes no more calls for now: run pulumi up again in a minute",
    "Throttling": "AWS takes no more calls for now: run pulumi up again in a minute",
    "ThrottlingException": "AWS takes no more calls for now: run pulumi up again in a minute",
    "UnrecognizedClientException": _SIGN_IN,
}


class AwsError(InfraError):
    """AWS refused a call, could not be asked, or did not do in time what it was asked for."""

    def __init__(self, message: str, *, hint: str | None = None, code: str = "") -> None:
        self.code = code
        super().__init__(message, hint=hint)


def client(service: str, region: str | None) -> Any:
    """Return a client that waits and tries again when AWS throttles. Raises AwsError: no region."""
    import boto3  # noqa: PLC0415  # only when something is asked
    from botocore.config import Config  # noqa: PLC0415
    from botocore.exceptions import NoRegionError  # noqa: PLC0415

    settings = Config(
        retries={"mode": "standard", "max_attempts": ATTEMPTS},
        connect_timeout=10,
        read_timeout=30,
    )
    try:
        # A session of its own: the shared one keeps credentials that may have run out.
        return boto3.Session().client(service, region_name=region, config=settings)
    except NoRegionError:
        raise AwsError(
            "no AWS region is set", hint="pulumi config set aws:region eu-central-1"
        ) from None


@contextmanager
def told(doing: str) -> Iterator[None]:
    """Turn an error of boto3 into an AwsError that says what was being done."""
    from botocore.exceptions import (  # noqa: PLC0415
        BotoCoreError,
        ClientError,
        NoCredentialsError,
        PartialCredentialsError,
        TokenRetrievalError,
    )

    try:
        yield
    except ClientError as error:
        raise _refused(doing, error.response.get("Error", {})) from error
    except (NoCredentialsError, PartialCredentialsError, TokenRetrievalError) as error:
        raise AwsError(f"{doing}: no AWS credentials ({error})", hint=_SIGN_IN) from error
    except BotoCoreError as error:
        text = " ".join(str(error).split())
        raise AwsError(f"{doing}: AWS could not be asked ({text})", hint="try again") from error


def _refused(doing: str, detail: dict[str, Any]) -> AwsError:
    code, text = str(detail.get("Code", "")), str(detail.get("Message", ""))
    hint = _HINTS.get(code, "mend the cause and run pulumi up again")
    return AwsError(f"{doing}: {code}: {text}", hint=hint, code=code)
