"""Alerts: each failure that somebody must hear of is told, whoever is down at that moment."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest

from infra.alerts import send
from infra.local.cluster import Cluster
from tests.story.sender import ROUTES, Sender, heard
from tests.story.service import ROOT, Service, wait_for
from tests.story.webhook import Webhook, webhook


@pytest.fixture
def sender(serve: Callable[..., Service]) -> Iterator[Sender]:
    with webhook() as page, webhook() as notify:
        yield Sender(serve(alerts={"routes": ROUTES}), page, notify)


def test_each_code_takes_its_route_and_the_ignored_one_none(sender: Sender) -> None:
    sender.started()
    for code in ("watchdog_timeout", "validation_failed", "out_of_paper"):
        sender.fail(code)
    heard(sender.page, 1)
    heard(sender.notify, 1)
    (page,) = sender.page.got

    assert (page["code"], page["count"], page["actions"]) == (
        "watchdog_timeout",
        1,
        {"pdf_build": 1},
    )
    assert page["message"] == "why"
    assert sender.page.headers[0]["Authorization"] == "Bearer t0ken"
    assert sender.page.headers[0]["Idempotency-Key"] == page["key"]
    assert "1 job failed: out_of_paper" in sender.notify.got[0]["text"]
    wait_for(lambda: {each[2] for each in sender.alerts()} == {"delivered", "ignored"})
    assert ("ignore", "validation_failed", "ignored", None) in sender.alerts()


def test_ignored_failures_share_a_row(sender: Sender) -> None:
    for _ in range(3):
        sender.fail("validation_failed")
        sender.once()
    filed = "SELECT count(alert), count(DISTINCT alert) FROM jobwarden.event"

    assert sender.service.rows(filed) == [(3, 1)]


def test_a_plain_update_is_told_within_seconds_though_the_poll_is_slow(sender: Sender) -> None:
    sender.started()
    sender.fail()
    wait_for(lambda: sender.page.got, 10)


def test_a_burst_is_one_message_with_counts_and_ids(sender: Sender) -> None:
    sender.service.rows(
        "INSERT INTO jobs (action, status, started_at)"
        " SELECT CASE n % 2 WHEN 0 THEN 'ai_chat' ELSE 'pdf_build' END, 'running', 'epoch'"
        " FROM generate_series(1, 500) AS n"
    )
    sender.started()
    sender.service.rows("CALL jobwarden.sweep(50)")
    heard(sender.page, 1)
    (page,) = sender.page.got

    assert page["count"] == 500
    assert page["actions"] == {"ai_chat": 250, "pdf_build": 250}
    assert len(set(page["jobs"])) == 20
    assert page["summary"] == "500 jobs failed: watchdog_timeout (ai_chat 250, pdf_build 250)"


def test_a_second_burst_of_a_code_waits_for_a_minute_and_is_one_message(sender: Sender) -> None:
    sender.fail()
    sender.forward("1 second")
    sender.once()
    sender.forward("4 seconds")
    sender.once()
    sender.fail()
    sender.once()
    sender.fail()
    sender.forward("50 seconds")
    sender.once()
    assert [each["count"] for each in sender.page.got] == [1]
    sender.forward("62 seconds")
    sender.once()
    assert [each["count"] for each in sender.page.got] == [1, 2]


def test_what_failed_while_nobody_sent_is_told_afterwards(sender: Sender) -> None:
    sender.started()
    assert sender.service.stop("alerts") == 0
    sender.fail()
    sender.started()
    heard(sender.page, 1)


def test_failures_of_last_month_wake_nobody_when_alerts_first_run(sender: Sender) -> None:
    sender.fail()
    sender.service.rows("UPDATE jobwarden.event SET at = now() - interval '30 days'")
    sender.fail()
    sender.started()
    heard(sender.page, 1)

    assert sender.page.got[0]["count"] == 1


def test_a_kill_between_send_and_mark_sends_the_same_key_again(sender: Sender) -> None:
    sender.page.delay = 2
    sender.started()
    sender.fail()
    wait_for(lambda: sender.page.got, 20)
    sender.service.kill("alerts")
    sender.page.delay = 0
    assert [each[2] for each in sender.alerts()] == ["waiting"]
    sender.forward("61 seconds")
    sender.once()

    first, second = sender.page.got
    assert first == second
    assert [each[2] for each in sender.alerts()] == ["delivered"]


def test_an_alert_that_is_claimed_is_nobody_elses(sender: Sender) -> None:
    sender.fail()
    sender.once()
    sender.forward("3 seconds")
    sender.service.rows("SELECT * FROM jobwarden.claim_alert('60 s')")
    sender.once()
    assert sender.page.got == []


def test_one_who_was_too_slow_cannot_settle_anothers_attempt(sender: Sender) -> None:
    sender.fail()
    sender.once()
    sender.forward("3 seconds")
    claim = "SELECT key, attempt FROM jobwarden.claim_alert('60 s')"
    ((key, first),) = sender.service.rows(claim)
    sender.forward("70 seconds")
    ((same, second),) = sender.service.rows(claim)
    settle = "SELECT jobwarden.settle_alert(%s, %s, 'delivered', NULL, NULL)"

    assert (same, second) == (key, first + 1)
    assert sender.service.value(settle, key, first) is False
    assert sender.service.value(settle, key, second) is True


@pytest.mark.parametrize(
    ("status", "headers", "least", "most"),
    [
        (500, {}, 4, 5),
        (503, {"Retry-After": "120"}, 118, 120),
        (429, {"Retry-After": "90"}, 88, 90),
    ],
)
def test_an_answer_that_may_mend_itself_is_tried_again_when_it_says(
    sender: Sender, status: int, headers: dict[str, str], least: int, most: int
) -> None:
    sender.page.answers = [(status, headers)]
    sender.fail()
    sender.once()
    sender.forward("3 seconds")
    sender.once()

    assert sender.alerts() == [("page", "watchdog_timeout", "waiting", f"HTTP {status}")]
    assert least <= sender.service.value("SELECT jobwarden.next_alert()") + 1 <= most + 1
    sender.forward("2 hours")
    sender.once()
    assert [each["key"] for each in sender.page.got] == [sender.page.got[0]["key"]] * 2
    assert sender.alerts() == [("page", "watchdog_timeout", "delivered", None)]


@pytest.mark.parametrize("status", [301, 404])
def test_a_refusal_for_good_is_a_dead_letter_with_its_reason(sender: Sender, status: int) -> None:
    sender.page.answers = [(status, {"Location": "http://elsewhere.example.net/"})]
    sender.fail()
    sender.once()
    sender.forward("3 seconds")
    sender.once()
    ((_, _, state, reason),) = sender.alerts()

    assert (state, reason.split(":")[0]) == ("dead", f"HTTP {status}")
    assert sender.attempts() == 1


def test_a_webhook_that_is_down_is_tried_again_and_nothing_is_lost(sender: Sender) -> None:
    sender.page.close()
    sender.fail()
    sender.once()
    sender.forward("3 seconds")
    sender.once()
    assert sender.alerts() == [("page", "watchdog_timeout", "waiting", "ConnectError")]
    sender.page = Webhook()
    try:
        sender.forward("10 seconds")
        sender.once()
        assert len(sender.page.got) == 1
    finally:
        dead, sender.page = sender.page, Webhook()
        dead.close()
        sender.page.close()


def test_an_alert_that_was_refused_for_a_day_is_a_dead_letter(sender: Sender) -> None:
    sender.page.answers = [(500, {}), (500, {})]
    sender.fail()
    sender.once()
    for length in ("3 seconds", "25 hours"):
        sender.forward(length)
        sender.once()
    ((_, _, state, reason),) = sender.alerts()

    assert state == "dead"
    assert reason == "HTTP 500; gave up after 2 attempts in a day"


def test_a_slow_webhook_holds_up_nothing_for_ever(
    sender: Sender, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(send, "SECONDS", 1.5)
    sender.page.delay = 2.5
    sender.fail()
    sender.fail("out_of_paper")
    sender.once()
    sender.forward("3 seconds")
    sender.once()

    states = {route: (state, reason) for route, _, state, reason in sender.alerts()}
    assert states == {"page": ("waiting", "no answer in 2 s"), "notify": ("delivered", None)}


def test_a_restart_of_postgres_loses_nothing(sender: Sender, cluster: Cluster) -> None:
    sender.started()
    cluster.kill()
    cluster.start()
    sender.fail()
    heard(sender.page, 1)

    assert "the database is away" in sender.service.log("alerts")
    assert sender.service.stop("alerts") == 0


def test_once_ends_when_all_that_is_due_is_delivered(sender: Sender) -> None:
    sender.fail()
    sender.once()
    sender.forward("3 seconds")
    told = subprocess.run(
        [sys.executable, "-m", "infra", "alerts", "run", "-s", "Pulumi.story.yaml", "--once"],
        cwd=sender.service.folder,
        env={
            "PYTHONPATH": str(ROOT),
            "DATABASE_URL": sender.url,
            "PAGE_URL": sender.page.url,
            "PAGE_TOKEN": "t0ken",
            "NOTIFY_URL": sender.notify.url,
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )

    assert told.returncode == 0, told.stderr
    assert len(sender.page.got) == 1


def test_the_log_and_the_database_hold_no_address(sender: Sender) -> None:
    sender.page.answers = [(500, {})]
    sender.started()
    sender.fail()
    sender.fail("out_of_paper")
    wait_for(lambda: "delivered" in sender.service.log("alerts"), 20)

    kept = sender.service.log("alerts") + str(sender.service.rows("SELECT * FROM jobwarden.alert"))
    assert "s3cret" not in kept
    assert "t0ken" not in kept


def test_the_sender_may_read_no_job_and_write_no_event(sender: Sender) -> None:
    rights = sender.service.rows(
        "SELECT has_table_privilege('story_alerts', t, r)"
        " FROM unnest(ARRAY['jobs', 'jobwarden.event', 'jobwarden.alert', 'jobwarden.job']) AS t,"
        " unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE']) AS r"
    )
    assert set(rights) == {(False,)}


def test_a_trial_says_whether_the_route_took_it(
    sender: Sender, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    from infra.cli import app  # noqa: PLC0415 - its start-up is not every test's
    from infra.errors import InfraError, UsageError  # noqa: PLC0415

    stack = str(sender.service.folder / "Pulumi.story.yaml")
    for name, value in {
        "PAGE_URL": sender.page.url,
        "PAGE_TOKEN": "t0ken",
        "NOTIFY_URL": sender.notify.url,
    }.items():
        monkeypatch.setenv(name, value)

    def trial(route: str) -> None:
        app(["alerts", "test", route, "-s", stack], standalone_mode=False)

    trial("page")
    assert sender.page.got[0]["message"] == "A test of this route by hand."
    assert "route page took the message" in capfd.readouterr().err
    sender.page.answers = [(403, {})]
    with pytest.raises(InfraError, match="HTTP 403"):
        trial("page")
    with pytest.raises(UsageError, match="no route is called 'phone'"):
        trial("phone")
    monkeypatch.delenv("NOTIFY_URL")
    with pytest.raises(UsageError, match="NOTIFY_URL, which is not set"):
        trial("notify")
