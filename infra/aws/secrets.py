"""The master's password, read when it is needed and kept nowhere."""

from __future__ import annotations

import json

from infra.aws.calls import AwsError, client, told

_ARN_PARTS = 7


def password(arn: str) -> str:
    """Return the password in a secret that RDS manages. Raises AwsError, without any part of it."""
    region = _region(arn)
    with told(f"reading the secret {arn}"):
        text = client("secretsmanager", region).get_secret_value(SecretId=arn)["SecretString"]
    try:
        found = json.loads(text)["password"]
    except (KeyError, TypeError, ValueError):
        found = None
    if not isinstance(found, str):
        raise AwsError(
            f"the secret {arn} has no password in it",
            hint="RDS keeps username and password there as JSON; was it written over by hand?",
        )
    return found


def _region(arn: str) -> str:
    """Return the region of a secret: arn:aws:secretsmanager:REGION:ACCOUNT:secret:NAME."""
    parts = arn.split(":")
    if len(parts) < _ARN_PARTS or parts[2] != "secretsmanager":
        raise AwsError(f"this is not the ARN of a secret: {arn}", hint="see masterUserSecretArn")
    return parts[3]
