"""`jobwarden metrics --textfile`, read by the real node_exporter and the real Prometheus."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from tests.ports import free_port
from tests.story.prometheus import asked, figures, rules, scraping
from tests.story.service import Service, wait_for

Tool = Callable[[str], str]
# Two tables that a cleanup would scan: the same warning twice, as one series.
CHILDREN = "CREATE TABLE {} (job uuid REFERENCES jobs)"
ODD = "INSERT INTO jobs (action, status) VALUES (E'we\"ird\\\\\\n\\x1b', 'running')"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder that node_exporter reads."""
    (tmp_path / "figures").mkdir()
    return tmp_path / "figures"


@pytest.fixture
def exporter(service: Service, tool: Tool, folder: Path) -> int:
    """The port of a node_exporter that knows nothing but the folder."""
    port = free_port()
    argv = [tool("prometheus-node-exporter"), "--collector.disable-defaults"]
    argv += ["--collector.textfile", f"--collector.textfile.directory={folder}"]
    service.start("exporter", [*argv, f"--web.listen-address=127.0.0.1:{port}"])
    wait_for(lambda: "istening on" in service.log("exporter"), 20)
    return port


def test_node_exporter_reads_what_is_written(service: Service, folder: Path, exporter: int) -> None:
    for name in ("child_one", "child_two"):
        service.rows(CHILDREN.format(name))
    service.rows(ODD)
    service.rows("CALL jobwarden.sweep()")
    told = figures(service, "--textfile", str(folder / "jobwarden.prom"))
    page = httpx.get(f"http://127.0.0.1:{exporter}/metrics")

    assert (told.returncode, told.stdout, told.stderr) == (0, "", "")
    assert page.status_code == 200
    lines = page.text.splitlines()
    assert "node_textfile_scrape_error 0" in lines
    assert "jobwarden_up 1" in lines
    assert "# TYPE jobwarden_running_jobs gauge" in lines
    assert 'jobwarden_running_jobs{action="we\\"ird\\\\\\n\\\\x1b"} 1' in lines
    assert sum('check="warning"' in line for line in lines) == 1
    written = (folder / "jobwarden.prom").read_text(encoding="utf-8")
    assert _series(written) == _series(page.text)
    assert "level=error" not in service.log("exporter")


def test_a_database_that_cannot_be_asked_shows_at_once_and_no_old_figure_stays(
    service: Service, folder: Path, exporter: int, tool: Tool, tmp_path: Path
) -> None:
    file = folder / "jobwarden.prom"
    figures(service, "--textfile", str(file))
    with scraping(service, tool("prometheus"), exporter, tmp_path) as client:
        wait_for(lambda: asked(client, "jobwarden_healthy"), 30)
        wait_for(lambda: {rule["health"] for rule in rules(client).values()} == {"ok"}, 30)
        assert [rule for rule in rules(client).values() if rule.get("lastError")] == []
        assert rules(client)["JobwardenFiguresFailing"]["state"] == "inactive"

        nobody = f"postgresql://reader@127.0.0.1:{free_port()}/app"
        told = figures(service, "--textfile", str(file), url=nobody)
        wait_for(lambda: not asked(client, "jobwarden_healthy"), 30)
        wait_for(lambda: rules(client)["JobwardenFiguresFailing"]["state"] == "pending", 30)

    assert told.returncode == 1
    assert "check that the server is up" in told.stderr
    assert _series(file.read_text(encoding="utf-8")) == {"jobwarden_up"}


def test_a_wrong_command_line_leaves_what_another_one_wrote(service: Service, folder: Path) -> None:
    file = folder / "jobwarden.prom"
    figures(service, "--textfile", str(file))
    before = file.read_bytes()
    told = figures(service, "--textfile", str(file), "-s", "")

    assert told.returncode == 64, told.stderr
    assert file.read_bytes() == before


def test_an_environment_with_a_fault_is_told_in_the_file_too(
    service: Service, folder: Path
) -> None:
    file = folder / "jobwarden.prom"
    figures(service, "--textfile", str(file))
    wrong = folder / "Pulumi.wrong.yaml"
    wrong.write_text("config: {jobwarden:watchdog: {timeout: soon}}\n")
    told = figures(service, "--textfile", str(file), "-s", str(wrong))

    assert told.returncode == 1
    assert "watchdog.timeout: " in told.stderr
    assert _series(file.read_text(encoding="utf-8")) == {"jobwarden_up"}


def _series(text: str) -> set[str]:
    return set(re.findall(r"^(jobwarden_\w+)", text, re.MULTILINE))
