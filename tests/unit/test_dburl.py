"""Database URLs: what libpq takes is kept, and a password is neither taken nor shown."""

from __future__ import annotations

import psycopg.conninfo
import pytest
from hypothesis import given
from hypothesis import strategies as st

from infra import dburl
from infra.errors import RuleError

KEPT = [
    "postgresql://",
    "postgres://h",
    "postgresql:///app",
    "postgresql://u@h:5432/app?sslmode=require&application_name=a",
    "postgresql://u@h1:5432,h2:5433/app",
    "postgresql://u@[2001:db8::1]:5432/app",
    "postgresql://%2Frun%2Fpostgresql/app",
    "postgresql:///app?host=/run/postgresql&port=5433",
    "postgresql://h/app?user=u@server",
    "postgresql://u%40corp@h/my%20app",
    "postgresql://u@h:/app",
]
PASSWORDS = [
    "postgresql://u:hunter2@h/db",
    "postgres://u:hunter2@h1,h2/db",
    "postgresql://u:hun@ter:hunter2@h/db",
    "postgresql://:hunter2@h/db",
    "postgresql://u:@h/db",
    "postgresql://u@h/db?password=hunter2",
    "postgresql://u@h/db?sslmode=require&pass%77ord=hunter2",
    "postgresql://u@h/db?sslpassword=hunter2",
]
MALFORMED = [
    "",
    "h/db",
    "mysql://u:hunter2@h/db",
    "postgresql:/h/db",
    "host=h password=hunter2",
    "POSTGRESQL://h/db",
    "postgresql://h:0/db",
    "postgresql://h:65536/db",
    "postgresql://h:x/db",
    "postgresql://h:5432 /db",
    "postgresql://h:٣/db",
    "postgresql://2001:db8::1/db",
    "postgresql://[::1/db",
    "postgresql://h/d b",
    "postgresql://h/db%zz",
    "postgresql://h/db%00",
    "postgresql://h/db\n",
    "postgresql://h/a/b",
    "postgresql://u:12/hunter2@h/db",
    "postgresql://u:hunter2/x@h/db",
    "postgresql://u:5432?hunter2@h/db",
    "postgresql://h/db?sslmode",
    "postgresql://h/db?=x",
    "postgresql://h/db?a=b=c",
]


@pytest.mark.parametrize("url", KEPT)
def test_a_url_that_libpq_takes_is_kept(url: str) -> None:
    assert psycopg.conninfo.conninfo_to_dict(url) is not None
    assert dburl.check(url) == url


@pytest.mark.parametrize("url", PASSWORDS)
def test_a_password_is_refused_and_not_shown(url: str) -> None:
    with pytest.raises(RuleError, match="has a password") as caught:
        dburl.check(url)

    assert "hunter2" not in str(caught.value) + repr(caught.value.got)
    assert "PGPASSWORD" in str(caught.value)


@pytest.mark.parametrize("url", MALFORMED)
def test_a_malformed_url_is_refused_without_its_secrets(url: str) -> None:
    with pytest.raises(RuleError) as caught:
        dburl.check(url)

    assert "hunter2" not in str(caught.value)
    assert caught.value.hint


@given(st.text(st.characters(codec="utf-8")))
def test_no_url_with_a_password_of_libpq_passes(text: str) -> None:
    url = "postgresql://" + text
    try:
        dburl.check(url)
    except RuleError:
        return
    try:
        parts = psycopg.conninfo.conninfo_to_dict(url)
    except psycopg.ProgrammingError:
        return  # an option that libpq does not know: it says so itself
    assert "password" not in parts


def test_a_masked_url_keeps_what_is_no_secret() -> None:
    assert dburl.masked("postgresql://u:p@h:5432/db?a=b") == "postgresql://u:***@h:5432/db?..."
    assert dburl.masked("postgresql://h/db") == "postgresql://h/db"


ODD = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1)


@given(user=ODD, database=ODD, port=st.integers(1, 65535))
def test_a_url_by_a_socket_is_read_by_libpq_as_it_was_meant(
    user: str, database: str, port: int
) -> None:
    url = dburl.by_socket(user, database, "/run/a b&c", port)

    assert psycopg.conninfo.conninfo_to_dict(dburl.check(url)) == {
        "user": user,
        "dbname": database,
        "host": "/run/a b&c",
        "port": str(port),
    }


def test_a_url_by_a_socket_is_as_it_is_promised() -> None:
    assert dburl.by_socket("jobwarden-api", "app", "/var/run/postgresql", 5432) == (
        "postgresql://jobwarden-api@/app?host=/var/run/postgresql&port=5432"
    )
