"""Alert rules, held by promtool, and a real Prometheus that reads our figures."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

from infra.metrics import HELP
from tests.story.prometheus import RULES, asked, figures, scraping, served
from tests.story.service import Service, wait_for


def test_the_rules_pass_their_own_tests(tool: Callable[[str], str]) -> None:
    for kind, file in (("check", RULES), ("test", RULES.with_name("jobwarden.test.yml"))):
        argv = [tool("promtool"), kind, "rules", str(file)]
        told = subprocess.run(argv, capture_output=True, text=True, check=False)
        assert told.returncode == 0, told.stdout + told.stderr


def test_each_rule_has_a_test_and_reads_figures_that_exist() -> None:
    rules = RULES.read_text(encoding="utf-8")
    names = set(re.findall(r"alert: (\w+)", rules))
    tests = RULES.with_name("jobwarden.test.yml").read_text(encoding="utf-8")
    used = set(re.findall(r"\bjobwarden_\w+", rules))

    assert len(names) >= 6
    assert names == set(re.findall(r"alertname: (\w+)", tests))
    assert used <= HELP.keys()


def test_a_real_prometheus_reads_what_metrics_prints(
    service: Service, tool: Callable[[str], str], tmp_path: Path
) -> None:
    service.rows(
        "INSERT INTO jobs (action, status, started_at)"
        " VALUES (E'we\"ird\\\\\\n', 'running', now() - interval '5 minutes')"
    )
    service.rows("CALL jobwarden.sweep()")
    text = figures(service).stdout
    with served(text) as port, scraping(service, tool("prometheus"), port, tmp_path) as client:
        wait_for(lambda: asked(client, "jobwarden_healthy"), 30)
        (oldest,) = asked(client, "jobwarden_oldest_running_seconds")
        (interval,) = asked(client, 'jobwarden_schedule_interval_seconds{kind="sweep"}')
        (up,) = asked(client, 'up{job="story"}')

    assert oldest["metric"]["action"] == 'we"ird\\\n'
    assert 299 < float(oldest["value"][1]) < 360
    assert float(interval["value"][1]) == 300
    assert up["value"][1] == "1"
