"""The engine tier: the real Pulumi CLI and SDK, a test provider, an account over moto."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import pytest

from infra.errors import InfraError
from infra.local.servers import find_server

if TYPE_CHECKING:
    from tests.engine.account.server import Account
    from tests.engine.aws_stack import Stack
    from tests.engine.instance import LocalPlane
    from tests.engine.project import Project

Missing = Callable[[str], NoReturn]

NEEDED = ("boto3", "grpc", "moto", "pulumi", "pulumi_aws")
ABSENT = [name for name in NEEDED if find_spec(name) is None]

# Without these packages most modules cannot even be imported; test_needs.py says so.
NEEDING = (
    *("test_account.py", "test_instance.py", "test_provider*.py", "test_story.py"),
    *("test_rds_story.py", "test_aurora_story.py", "test_aws_faults.py", "test_preview.py"),
)
collect_ignore_glob = list(NEEDING) if ABSENT else []


@pytest.fixture(scope="session")
def pulumi_home(tmp_path_factory: pytest.TempPathFactory, missing: Missing) -> Path:
    """Return a private PULUMI_HOME that holds the test provider."""
    from tests.engine.project import make_home, why_no_pulumi  # noqa: PLC0415  (may not be there)

    if reason := why_no_pulumi():
        missing(reason)
    return make_home(tmp_path_factory.mktemp("pulumi-home"))


@pytest.fixture
def account() -> Iterator[Account]:
    """Yield an empty AWS account without a data plane."""
    from tests.engine.account.server import Account  # noqa: PLC0415  (may not be there)

    with Account() as account:
        yield account


@pytest.fixture
def project(tmp_path: Path, pulumi_home: Path, account: Account) -> Project:
    """Return an empty Pulumi project on that account."""
    from tests.engine.project import Project  # noqa: PLC0415  (may not be there)

    return Project(tmp_path / "project", pulumi_home, account.environment())


@pytest.fixture
def plane(missing: Missing) -> Iterator[LocalPlane]:
    """Yield a data plane: local servers as instances."""
    from tests.engine.instance import local_plane  # noqa: PLC0415  (may not be there)

    try:
        find_server(pg_cron=True)
    except InfraError as error:
        missing(error.message)
    with local_plane() as plane:
        yield plane


@pytest.fixture
def served(plane: LocalPlane) -> Iterator[Account]:
    """Yield an empty AWS account whose instances are real servers."""
    from tests.engine.account.server import Account  # noqa: PLC0415  (may not be there)

    with Account(plane) as account:
        yield account


@pytest.fixture
def stack(tmp_path: Path, pulumi_home: Path, served: Account, plane: LocalPlane) -> Stack:
    """Return a stack of ours for RDS on that account, nothing made yet."""
    from tests.engine.aws_stack import make_stack  # noqa: PLC0415  (may not be there)

    return make_stack(tmp_path, pulumi_home, served, plane)
