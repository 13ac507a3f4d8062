"""What goes wrong on the way to a box: an error names host and step, and the next run heals.

One Debian 13 serves the whole module, in the order of the file.
"""

from __future__ import annotations

import os
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.box.deploying import PYINFRA, ROOT, Deployer, Run
from tools.boxes import Box

KEYS: dict[str, Any] = {"postgres": {"database": "app"}}
CONF_D = "/etc/postgresql/17/main/conf.d"
LOCK_APT = (
    "python3 -c \"import fcntl, time; f = open('/var/lib/dpkg/lock-frontend', 'w');"
    ' fcntl.lockf(f, fcntl.LOCK_EX); time.sleep(600)"'
)


@pytest.fixture(scope="module")
def site(_able_to_boot: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployer]:
    with Box.boot("trixie") as box:
        yield Deployer(box, tmp_path_factory.mktemp("stack"), KEYS)


def timers(site: Deployer) -> str:
    """The timers that stand in for pg_cron."""
    return site.box.ssh("systemctl list-timers --no-legend 'jobwarden-*'").stdout


@pytest.fixture(scope="module")
def deployed(site: Deployer) -> Deployer:
    """The same box, after a first deploy."""
    run = site.allowed()
    assert run.code == 0, run.log
    return site


def test_a_user_without_sudo_is_told_what_is_missing(site: Deployer) -> None:
    for run in (site.run("--dry", user="nosudo"), site.run(user="nosudo")):
        assert run.code == 1
        assert f"[{site.box.host}]" in run.log
        assert "user nosudo may not become root without a password" in run.log
        assert "NOPASSWD in /etc/sudoers.d" in run.log


def test_a_wrong_key_names_the_host(site: Deployer, tmp_path: Path) -> None:
    key = tmp_path / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True)
    run = site.run(key=key)

    assert run.code == 1
    assert f"[{site.box.host}]" in run.log
    assert "Authentication" in run.log


def test_an_unreachable_host_does_not_stop_the_others(site: Deployer) -> None:
    boxes = [{"host": site.box.host}, {"host": "127.0.0.1", "sshPort": 1}]
    run = site.run("--dry", hosts="inventory.py", boxes=boxes)

    assert "[127.0.0.1]" in run.log
    assert run.of("package")["postgresql-17"]["host"] == site.box.host
    limited = site.run("--dry", "--limit", site.box.host, hosts="inventory.py", boxes=boxes)
    assert limited.code == 0, limited.log
    assert "127.0.0.1" not in limited.log


def test_a_plan_for_people_asks_nothing_about_an_unreachable_host(site: Deployer) -> None:
    ssh = {"sshPort": site.box.port, "sshUser": "admin", "sshKey": str(site.box.key)}
    boxes = [{"host": site.box.host, **ssh}, {"host": "127.0.0.1", "sshPort": 1}]
    site.run("--dry", hosts="inventory.py", boxes=boxes)  # it writes the stack's file
    known = f"ssh_known_hosts_file={site.box.known_hosts}"
    strict = "ssh_strict_host_key_checking=yes"
    done = subprocess.run(
        [PYINFRA, "inventory.py", "deploy.py", "--dry", "--data", known, "--data", strict],
        cwd=ROOT, env={**os.environ, "JOBWARDEN_STACK": str(site.folder / "Pulumi.box.yaml")},
        stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
    )  # fmt: skip

    assert done.returncode == 1
    assert "Could not connect" in done.stderr
    assert "+ package postgresql-17" in done.stderr
    assert "continue?" not in done.stderr


def test_an_apt_that_is_at_work_already_is_named(site: Deployer) -> None:
    site.box.ssh(f"systemd-run --quiet --unit=holder {LOCK_APT}", check=True)
    run = site.run("--data", "apt_seconds=1")

    assert run.code == 1
    assert f"{site.box.host}: Install PostgreSQL and pg_cron: apt is at work already" in run.log
    site.box.ssh("systemctl stop holder", check=True)


def test_while_a_restart_waits_timers_do_the_work_until_it_is_made(site: Deployer) -> None:
    run = site.run()

    assert run.code == 0, run.log
    assert run.of("restart")["17/main"]["waits"]
    assert run.of("schedule")["jobsStuckWatchdog"]["waits"]
    assert "jobwarden-fallback-watchdog.timer" in timers(site)
    assert site.box.ssh("systemctl start jobwarden-fallback-watchdog.service").returncode == 0
    assert site.sql("SELECT outcome FROM jobwarden.run WHERE kind = 'sweep'") == "ok"
    allowed = site.allowed()
    assert allowed.code == 0, allowed.log
    assert timers(site) == ""


def test_a_full_disk_leaves_the_old_file_and_the_next_run_heals(deployed: Deployer) -> None:
    keys: dict[str, Any] = {"postgres": {"database": "app", "settings": {"work_mem": "16MB"}}}
    deployed.box.ssh(
        f"cp -a {CONF_D} /var/tmp/; mount -t tmpfs -o size=8k tmpfs {CONF_D};"
        f" cp -a /var/tmp/conf.d/. {CONF_D}/; chmod 755 {CONF_D};"
        f" dd if=/dev/zero of={CONF_D}/fill bs=1k count=64 2>/dev/null; true"
    )
    before = deployed.box.ssh(f"cat {CONF_D}/90-jobwarden.conf", check=True).stdout
    run = deployed.run(**keys)

    assert run.code == 1
    assert f"{deployed.box.host}: Configure PostgreSQL: {CONF_D}/90-jobwarden.conf" in run.log
    assert "could not be written" in run.log
    assert deployed.box.ssh(f"cat {CONF_D}/90-jobwarden.conf").stdout == before
    deployed.box.ssh(f"umount {CONF_D}", check=True)
    assert deployed.run(**keys).code == 0
    assert deployed.show("work_mem") == "16MB"
    assert deployed.run().code == 0


def test_a_server_that_is_down_is_unknown_to_a_dry_run_and_an_error_to_a_deploy(
    deployed: Deployer,
) -> None:
    deployed.box.ssh("systemctl stop postgresql@17-main", check=True)
    foreseen, run = deployed.dry(), deployed.run()

    assert foreseen.code == 0, foreseen.log
    assert "17/main does not answer" in foreseen.of("stage")["Configure PostgreSQL"]["why"]
    assert run.code == 1
    assert f"{deployed.box.host}: Make the database: " in run.log
    assert "systemctl start postgresql@17-main.service" in run.log
    deployed.box.ssh("systemctl start postgresql@17-main", check=True)
    assert deployed.run().changes == ()


def test_a_connection_that_drops_in_the_middle_is_healed_by_the_next_run(
    deployed: Deployer,
) -> None:
    deployed.box.ssh(
        "cd / && systemd-run --quiet --unit=holder --uid=postgres psql -d app -c"
        " \"SELECT pg_advisory_lock(hashtext('jobwarden.apply')), pg_sleep(600)\"",
        check=True,
    )
    keys: dict[str, Any] = {"watchdog": {"timeout": "7m"}}
    runs: list[Run] = []
    deploy = threading.Thread(target=lambda: runs.append(deployed.run(**keys)))
    deploy.start()
    waiting = "pgrep -x sleep -u root"  # between two tries for the lock
    deadline = time.monotonic() + 30
    while deployed.box.ssh(waiting).returncode != 0 and time.monotonic() < deadline:
        time.sleep(0.2)
    deployed.box.ssh("pkill -KILL -u admin")
    deploy.join(60)

    assert not deploy.is_alive()
    assert runs[0].code == 1
    assert f"{deployed.box.host}: Apply SQL, policy and schedules: " in runs[0].log
    deployed.sql(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE query LIKE '%pg_sleep(600)%' AND pid <> pg_backend_pid()"
    )
    healed = deployed.run(**keys)
    assert healed.code == 0, healed.log
    assert deployed.sql("SELECT timeout FROM jobwarden.policy WHERE action = '*'") == "00:07:00"
    assert deployed.run(**keys).changes == ()


def test_of_two_clusters_only_the_chosen_one_is_touched(deployed: Deployer) -> None:
    deployed.box.ssh("pg_createcluster 17 second --start", check=True)
    run = deployed.run()

    assert run.code == 1
    assert "17/main (port 5432), 17/second (port 5433)" in run.log
    started = "SELECT pg_postmaster_start_time()"
    before = deployed.sql(started, "postgres", 5433)
    files = "find /etc/postgresql/17/second -type f -printf '%p %T@\\n' | sort"
    untouched = deployed.box.ssh(files).stdout
    chosen: dict[str, Any] = {"boxes": [{"host": deployed.box.host, "cluster": "17/main"}]}
    settings: dict[str, Any] = {"database": "app", "settings": {"cron.log_run": "off"}}
    made = deployed.allowed(postgres=settings, **chosen)
    assert made.code == 0, made.log
    assert made.of("restart")["17/main"]
    assert deployed.sql(started, "postgres", 5433) == before
    assert deployed.box.ssh(files).stdout == untouched
    assert deployed.sql("SHOW shared_preload_libraries", "postgres", 5433) == ""
    assert deployed.run("--data", "port=5432", postgres=settings).changes == ()
    deployed.box.ssh("pg_dropcluster --stop 17 second", check=True)


def test_a_standby_gets_the_configuration_and_no_schedules(deployed: Deployer) -> None:
    deployed.box.ssh(
        "pg_createcluster 17 standby && cd / && data=/var/lib/postgresql/17/standby"
        " && rm -rf $data && runuser -u postgres -- pg_basebackup -p 5432 -D $data -R -c fast"
        " && systemctl start postgresql@17-standby",
        check=True,
    )
    run = deployed.run("--data", "cluster=17/standby", "--data", "allow_restart=true")

    assert run.code == 0, run.log
    assert "a standby: it gets the configuration, and no schedules" in run.log
    assert run.of("schedule") == {}
    libraries = deployed.sql("SHOW shared_preload_libraries", "postgres", 5433)
    assert libraries == "pg_cron"
    again = deployed.run("--data", "cluster=17/standby", "--data", "allow_restart=true")
    assert (again.code, again.changes) == (0, ())
