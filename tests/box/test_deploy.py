"""From a bare Debian to a watched queue, and back, on both releases. In the order of the file.

One box of each release serves the whole module: each test starts from what the one before left.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from typing import Any

import pytest

from tests.box.deploying import Deployer, Run
from tools.boxes import Box

OLD, NEW = "bookworm", "trixie"
WORKER = "/bin/sh -c 'trap \"echo drained; exit 0\" TERM; echo $QUEUE; while :; do sleep 0.2; done'"
_MOVE = """ -c "UPDATE jobs SET status = '{}' WHERE worker = session_user AND status = '{}'\""""
TICK = (
    "/usr/bin/psql $DATABASE_URL -XAtq"
    """ -c "INSERT INTO jobs (action, worker) VALUES ('tick', session_user)\""""
    f"{_MOVE.format('running', 'queued')}{_MOVE.format('done', 'running')}"
)
BEAT = "/bin/sh -c 'sleep 1; test ! -e /var/lib/jobwarden/beat/broken || { echo ow; exit 3; }'"
TICKED = "SELECT string_agg(status, ' ') FROM jobs WHERE worker = 'jobwarden-tick'"
KEYS: dict[str, Any] = {
    "postgres": {"database": "app", "settings": {"work_mem": "8MB"}},
    "watchdog": {"schedule": "* * * * *", "timeout": "2s"},
    # Odd characters go through ssh, sh, psql and JSON, there and back.
    "schedules": [
        {
            "name": "täglich | \"x\" 'y'",
            "schedule": "0 3 * * *",
            "command": "SELECT 'a|b\tc' || $x$ :name \\n `d` $(e) $x$",
        }
    ],
    "services": {
        "api": {
            "command": "/usr/bin/sleep infinity",
            "memoryMax": "64M",
            "environment": {"GREETING": 'say "hi" to $HOME \\ 100%', "PORT": 8080},
            "secrets": ["API_TOKEN"],
            "databaseRole": "jobwarden_readonly",
        },
        "worker": {"command": WORKER, "instances": 2, "drain": "5s"},
        # A job from the queue to its end, as the role that the variables lead to; once a deploy.
        "tick": {"command": TICK, "every": "1d", "databaseRole": "jobwarden_worker"},
        # At work or at rest, a deploy never knows: it must not see a change in either.
        "beat": {"command": BEAT, "every": "2s"},
    },
}
SECRET = {"API_TOKEN": "open sesame"}


class Site(Deployer):
    """A deployer whose service has its secret, with what the runs for both boxes said of it."""

    first: Run
    foreseen: Run
    bare: str
    killed: str

    def run(self, *options: str, **given: Any) -> Run:
        """Deploy with the secret in the environment."""
        return super().run(*options, **{"environment": SECRET, **given})

    @property
    def old(self) -> bool:
        """Debian 12, whose pg_cron connects as a client."""
        return self.box.record.release == OLD

    def kill_a_worker(self) -> str:
        """Kill a worker that has a job, and return its number."""
        pid = self.box.ssh("systemctl show -p MainPID --value worker@1").stdout.strip()
        self.sql(
            "INSERT INTO jobs (action, status, started_at, worker)"
            f" VALUES ('pdf', 'running', now(), '{pid}')"
        )
        self.box.ssh(f"kill -9 {pid}", check=True)
        return pid


def together(sites: Mapping[str, Site], *options: str) -> Run:
    """One run for both boxes, by the inventory of the stack."""
    one = next(iter(sites.values()))
    known = one.folder / "known_hosts"
    known.write_text("".join(site.box.known_hosts.read_text() for site in sites.values()))
    boxes = [
        {
            "host": site.box.host, "sshPort": site.box.port, "sshUser": "admin",
            "sshKey": str(site.box.key), "allowRestart": True,
        }
        for site in sites.values()
    ]  # fmt: skip
    data = ("--data", f"ssh_known_hosts_file={known}")
    return one.deploy("inventory.py", *data, *options, environment=SECRET, keys={"boxes": boxes})


@pytest.fixture(scope="module")
def sites(
    _able_to_boot: None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Mapping[str, Site]]:
    """Two bare boxes, taken by one run to a watched queue; then a worker of each is killed."""
    with ExitStack() as boxes:
        found = {
            release: Site(
                boxes.enter_context(Box.boot(release)), tmp_path_factory.mktemp(release), KEYS
            )
            for release in (OLD, NEW)
        }
        foreseen = together(found, "--dry")
        for site in found.values():
            site.bare = site.box.ssh("dpkg -l 'postgresql*'").stdout
        first = together(found)
        for site in found.values():
            host = site.box.host
            site.foreseen, site.first = foreseen.on(host), first.on(host)
            site.killed = site.kill_a_worker() if first.code == 0 else ""
        yield found


@pytest.fixture(params=[OLD, NEW])
def site(request: pytest.FixtureRequest, sites: Mapping[str, Site]) -> Site:
    """Each of the two boxes in turn."""
    release: str = request.param
    return sites[release]


def wait_until(true: Callable[[], bool], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.3)


def test_a_dry_run_on_a_bare_box_says_what_is_known_and_what_is_not(site: Site) -> None:
    run = site.foreseen

    assert run.code == 0, run.log
    assert set(run.of("package")) == {f"postgresql-{site.major}", f"postgresql-{site.major}-cron"}
    assert run.of("cluster")[f"{site.major}/main"]["action"] == "create"
    unknown = {name for name, change in run.of("stage").items() if change["action"] == "unknown"}
    assert "Apply SQL, policy and schedules" in unknown
    assert {change["why"] for change in run.of("stage").values()} == {"unknown until installed"}
    assert "postgresql-common" not in site.bare


def test_one_deploy_makes_a_bare_box_a_watched_queue(site: Site) -> None:
    run = site.first

    assert run.code == 0, run.log
    assert run.of("parameter")["cron.database_name"]["new"] == "app"
    assert run.of("schedule")["jobsStuckWatchdog"]["action"] == "create"
    odd = KEYS["schedules"][0]
    assert site.sql("SELECT command FROM cron.job WHERE jobname LIKE 'täglich%'") == odd["command"]
    assert run.of("probe")
    assert site.show("shared_preload_libraries") == "pg_cron"
    assert site.show("work_mem") == "8MB"
    assert site.show("cron.use_background_workers") == ("off" if site.old else "on")
    assert site.sql("SELECT username FROM cron.job GROUP BY 1") == "jobwarden_runner"
    assert site.sql("SELECT count(*) FROM cron.job WHERE jobname LIKE '%probe%'") == "0"
    assert {name: change["action"] for name, change in run.of("role").items()} == {
        "jobwarden-api": "create",
        "jobwarden-tick": "create",
    }
    # The deploy's run is one; a box that booted less than a minute ago has the boot's soon after.
    assert site.sql(TICKED) in {"done", "done done"}


def test_the_second_run_changes_nothing_at_all(sites: Mapping[str, Site]) -> None:
    stat = "stat -c '%n %Y %i' /etc/postgresql/*/main/* /etc/systemd/system/*"
    before = [site.box.ssh(stat).stdout for site in sites.values()]
    run = together(sites)

    assert (run.code, run.changed, run.changes) == (0, [], ()), run.log
    assert [site.box.ssh(stat).stdout for site in sites.values()] == before


def test_a_dry_run_on_converged_boxes_is_empty(sites: Mapping[str, Site]) -> None:
    run = together(sites, "--dry")

    assert (run.code, run.changed, run.changes) == (0, [], ()), run.log


def test_the_row_of_a_killed_worker_is_failed_by_pg_cron(site: Site) -> None:
    query = f"SELECT status, error ->> 'code' FROM jobs WHERE worker = '{site.killed}'"
    wait_until(lambda: site.sql(query) == "failed|watchdog_timeout", 75)

    again = site.box.ssh("systemctl show -p MainPID --value worker@1").stdout.strip()
    assert again not in ("0", site.killed)


def test_what_was_changed_by_hand_is_shown_with_both_values_and_put_back(site: Site) -> None:
    site.sql(
        "SELECT cron.alter_job(jobid, schedule := '9 9 * * *') FROM cron.job"
        " WHERE jobname = 'jobsDailyCleanup'"
    )
    site.sql("UPDATE jobwarden.policy SET timeout = interval '1 hour' WHERE action = '*'")
    site.box.ssh("sed -i 's/8MB/4MB/' /etc/postgresql/*/main/conf.d/90-jobwarden.conf")
    foreseen = site.dry()

    assert foreseen.code == 0, foreseen.log
    cleanup = foreseen.of("schedule")["jobsDailyCleanup"]
    assert (cleanup["old"], cleanup["new"]) == (
        {"schedule": "9 9 * * *"},
        {"schedule": "0 2 * * *"},
    )
    assert foreseen.of("policy")["*"]["old"]["timeout"] == "1h"
    assert foreseen.of("policy")["*"]["new"]["timeout"] == "2s"
    parameter = foreseen.of("parameter")["work_mem"]
    assert (parameter["old"], parameter["new"]) == ("4MB", "8MB")

    made = site.allowed()
    assert made.code == 0, made.log
    assert made.changes == foreseen.changes
    assert site.allowed().changes == ()


def test_a_paused_schedule_stays_paused(site: Site) -> None:
    pause = (
        "SELECT cron.alter_job(jobid, active := {}) FROM cron.job"
        " WHERE jobname = 'jobsDailyCleanup'"
    )
    site.sql(pause.format("false"))
    run = site.allowed()

    assert run.code == 0, run.log
    assert run.of("schedule")["jobsDailyCleanup"]["action"] == "paused"
    assert run.changed == []
    assert site.sql("SELECT active FROM cron.job WHERE jobname = 'jobsDailyCleanup'") == "f"
    site.sql(pause.format("true"))


def test_without_leave_a_restart_is_only_reported_and_later_made_once(site: Site) -> None:
    keys = {"postgres": {"database": "app", "settings": {"work_mem": "8MB", "cron.log_run": "off"}}}
    started = "SELECT pg_postmaster_start_time()"
    before = site.sql(started)
    run = site.run(**keys)

    assert run.code == 0, run.log
    assert run.of("restart")[f"{site.major}/main"]["waits"]
    assert f"systemctl restart postgresql@{site.major}-main" in run.log
    assert site.sql(started) == before
    # As after a run that died between the writing and the restart: only the server knows.
    healed = site.allowed(**keys)
    assert healed.code == 0, healed.log
    assert healed.of("parameter") == {}
    assert site.sql(started) != before
    assert site.show("cron.log_run") == "off"
    back = site.allowed()
    assert back.code == 0, back.log
    assert site.show("cron.log_run") == "on"
    assert site.allowed().changes == ()


def test_a_file_the_server_does_not_accept_is_taken_back_before_any_restart(site: Site) -> None:
    run = site.allowed(postgres={"database": "app", "settings": {"work_mem": "banana"}})

    assert run.code == 1
    assert "does not accept the new" in run.log
    assert "work_mem" in run.log
    assert site.show("work_mem") == "8MB"
    assert site.allowed().changes == ()


def test_a_library_that_is_not_there_is_refused_before_any_restart(site: Site) -> None:
    run = site.allowed(postgres={"database": "app", "preload": ["pg_nowhere"]})

    assert run.code == 1
    assert f"pg_nowhere is not installed for PostgreSQL {site.major}" in run.log
    assert site.show("shared_preload_libraries") == "pg_cron"


def test_a_server_that_does_not_come_up_gets_its_old_file_back(site: Site) -> None:
    settings = {"max_connections": "10", "superuser_reserved_connections": "10"}
    run = site.allowed(postgres={"database": "app", "settings": settings})

    assert run.code == 1
    assert "the old file is back and the server is up" in run.log
    assert "superuser_reserved_connections" in run.log
    assert site.show("max_connections") == "100"
    assert site.allowed().code == 0


def test_alter_system_that_wins_is_named_with_the_exact_way_out(site: Site) -> None:
    site.sql("ALTER SYSTEM SET shared_preload_libraries = 'auto_explain'", "postgres")
    site.sql("SELECT pg_reload_conf()")
    foreseen, run = site.dry(), site.allowed()

    assert (foreseen.code, run.code) == (0, 1)
    for log in (foreseen.log, run.log):
        assert "postgresql.auto.conf" in log
        assert "ALTER SYSTEM RESET shared_preload_libraries" in log
    site.sql("ALTER SYSTEM RESET shared_preload_libraries", "postgres")
    site.sql("SELECT pg_reload_conf()")
    mended = site.allowed()
    assert mended.code == 0, mended.log
    assert site.show("shared_preload_libraries") == "pg_cron,auto_explain"


def test_services_are_hardened_limited_and_given_their_variables(site: Site) -> None:
    for unit in ("api.service", "worker@1.service", "beat.service"):
        said = site.box.ssh(f"systemd-analyze security --no-pager {unit} | tail -n 1").stdout
        assert float(said.partition(": ")[2].split()[0]) <= 3.0, said
    shown = site.box.ssh("systemctl show api -p MemoryMax -p OOMPolicy -p User -p After").stdout
    assert "MemoryMax=67108864" in shown
    assert "OOMPolicy=stop" in shown
    assert "User=jobwarden-api" in shown
    assert f"postgresql@{site.major}-main.service" in shown
    pid = site.box.ssh("systemctl show -p MainPID --value api").stdout.strip()
    environment = site.box.ssh(f"cat /proc/{pid}/environ").stdout.split("\0")
    assert 'GREETING=say "hi" to $HOME \\ 100%' in environment
    assert "API_TOKEN=open sesame" in environment
    url = "postgresql://jobwarden-api@/app?host=/var/run/postgresql&port=5432"
    assert f"DATABASE_URL={url}" in environment
    asked = f"cd / && runuser -u jobwarden-api -- psql '{url}' -XAtqc"
    assert site.box.ssh(f"{asked} 'SELECT count(*) > 0 FROM jobwarden.run'").stdout == "t\n"
    refused = site.box.ssh(f"{asked} 'SELECT count(*) FROM jobs'")
    assert "permission denied for table jobs" in refused.stderr
    mode = site.box.ssh("stat -c '%a %U %G' /etc/jobwarden/api.env").stdout.strip()
    assert mode == "640 root jobwarden-api"
    assert "sesame" not in str(site.first.changes) + site.first.log


def test_a_stopped_worker_may_drain(site: Site) -> None:
    site.box.ssh("systemctl stop worker@2", check=True)

    assert "drained" in site.box.journal("worker@2")
    healed = site.allowed()
    assert set(healed.of("unit")) == {"worker@2.service"}


def test_an_instance_that_was_stopped_by_hand_does_not_outlive_its_service(site: Site) -> None:
    """It is set to come up after a boot, and systemd leaves it out when asked by a pattern."""
    site.box.ssh("systemctl stop worker@2", check=True)
    fewer = KEYS["services"] | {"worker": KEYS["services"]["worker"] | {"instances": 1}}
    run = site.allowed(services=fewer)

    assert run.code == 0, run.log
    assert run.of("unit")["worker@2.service"]["action"] == "delete"
    assert site.box.ssh("systemctl is-enabled worker@2").stdout.strip() == "disabled"
    assert site.allowed(services=fewer).changes == ()
    assert set(site.allowed().of("unit")) == {"worker@2.service"}


def test_a_service_that_fails_is_an_error_with_its_last_words(site: Site) -> None:
    bad = {"command": "/bin/sh -c 'echo no luck today; exit 3'"}
    worse = {"command": "/bin/sh -c 'echo nor tomorrow; exit 4'", "every": "1h"}
    run = site.allowed(services={**KEYS["services"], "bad": bad, "worse": worse})

    assert run.code == 1
    assert "bad.service does not stay up" in run.log
    assert "no luck today" in run.log
    # What a timer starts is tried again too: the deploy before must not have hidden that it fails.
    again = site.allowed(services={**KEYS["services"], "worse": worse})
    assert (again.code, again.of("unit")["worse.timer"]["action"]) == (1, "update")
    assert "worse.service does not succeed" in again.log
    assert "nor tomorrow" in again.log
    gone = site.allowed()
    assert gone.code == 0, gone.log
    assert site.box.ssh("ls /etc/systemd/system/ | grep -E 'bad|worse'").stdout == ""
    assert site.box.ssh("systemctl list-units --all 'bad*' 'worse*' --no-legend").stdout == ""
    assert site.box.ssh("systemctl is-active worker@1").stdout == "active\n"
    assert site.box.ssh("systemctl --failed --no-legend").stdout == ""


def test_a_deploy_that_ends_between_two_files_is_made_good_by_the_next(site: Site) -> None:
    """Its new variables are there, so that nothing but a note says they are not in use."""
    changed = {"api": KEYS["services"]["api"] | {"environment": {"GREETING": "new"}}}
    services = KEYS["services"] | changed | {"extra": {"command": "/usr/bin/sleep infinity"}}
    in_the_way = "/etc/systemd/system/.extra.service.new/x"
    greeting = "tr '\\0' '\\n' </proc/$(systemctl show -P MainPID api)/environ | grep GREETING"
    site.box.ssh(f"mkdir -p {in_the_way}", check=True)
    broken = site.allowed(services=services)
    site.box.ssh(f"rm -r {in_the_way.removesuffix('/x')}", check=True)

    assert broken.code == 1
    assert "extra.service could not be written" in broken.log
    assert "new" not in site.box.ssh(greeting).stdout
    mended = site.allowed(services=services)
    assert mended.code == 0, mended.log
    assert site.box.ssh(greeting).stdout == "GREETING=new\n"
    assert site.allowed(services=services).changes == ()
    assert site.allowed().code == 0


def test_a_timer_fires_and_a_later_failure_is_systemd_s_to_show(site: Site) -> None:
    runs = "journalctl -u beat -o cat | grep -c Finished"
    before = int(site.box.ssh(runs).stdout)
    wait_until(lambda: int(site.box.ssh(runs).stdout) >= before + 2, 15)
    broken = "/var/lib/jobwarden/beat/broken"
    site.box.ssh(f"touch {broken}", check=True)
    failed = "systemctl --failed --no-legend"
    wait_until(lambda: "beat.service" in site.box.ssh(failed).stdout, 15)
    run = site.allowed()
    site.box.ssh(f"rm {broken}", check=True)

    assert (run.code, run.changes) == (0, ()), run.log
    wait_until(lambda: site.box.ssh(failed).stdout == "", 15)


def test_a_service_may_become_a_timer_s_and_stay_up_again(site: Site) -> None:
    services = KEYS["services"]
    beat = {"command": "/usr/bin/sleep infinity"}
    once = {"command": "/usr/bin/true", "every": "1d", "databaseRole": "jobwarden_readonly"}
    there = (
        "cd /etc/systemd/system; ls beat.* api.* multi-user.target.wants timers.target.wants"
        " | grep -E 'beat|api'; systemctl is-active beat api"
    )
    before = site.box.ssh(there).stdout.replace("activating", "inactive")
    run = site.allowed(services={**services, "beat": beat, "api": once})

    assert run.code == 0, run.log
    assert site.box.ssh(there).stdout.split() == [
        *("api.service", "api.timer", "beat.service"),
        *("beat.service", "api.timer", "active", "inactive"),
    ]
    assert site.allowed(services={**services, "beat": beat, "api": once}).changes == ()
    back = site.allowed()
    assert back.code == 0, back.log
    assert site.box.ssh(there).stdout.replace("activating", "inactive") == before
    assert site.box.ssh("systemctl --failed --no-legend").stdout == ""


def test_a_login_is_refused_proven_mended_and_never_dropped(site: Site) -> None:
    late = {"command": "/usr/bin/sleep infinity", "databaseRole": "jobwarden_worker"}
    services = {**KEYS["services"], "late": late}
    rights = "SELECT pg_has_role('jobwarden-late', 'jobwarden_worker', 'USAGE')"
    site.sql('CREATE ROLE "jobwarden-late" NOLOGIN')
    run = site.allowed(services=services)
    assert (run.code, run.changes) == (1, ()), run.log
    assert 'ALTER ROLE "jobwarden-late" LOGIN' in run.log

    site.sql('ALTER ROLE "jobwarden-late" LOGIN')
    hba = f"/etc/postgresql/{site.major}/main/pg_hba.conf"
    as_peer, as_md5 = "^local *all *all *peer", "local all all scram-sha-256"
    site.box.ssh(f"cp -p {hba} /var/tmp/hba; sed -i 's/{as_peer}/{as_md5}/' {hba}", check=True)
    site.sql("SELECT pg_reload_conf()")
    for _ in range(2):  # a login that is made and does not work is no success the second time
        shut = site.allowed(services=services)
        assert shut.code == 1
        assert "user jobwarden-late does not get into Postgres as role jobwarden-late" in shut.log
        assert "no password supplied" in shut.log
        assert 'Try: keep a line "local all all peer" in pg_hba.conf' in shut.log
        assert site.box.ssh("ls /etc/systemd/system/late.service").returncode != 0
    site.box.ssh(f"cp -p /var/tmp/hba {hba}", check=True)
    site.sql("SELECT pg_reload_conf()")
    opened = site.allowed(services=services)
    assert opened.code == 0, opened.log
    assert site.box.ssh("systemctl is-active late").stdout == "active\n"

    site.sql('REVOKE jobwarden_worker FROM "jobwarden-late"')
    mended = site.allowed(services=services)
    assert (mended.code, [each["kind"] for each in mended.changes]) == (0, ["role"]), mended.log
    assert site.sql(rights) == "t"
    assert site.allowed(services=services).changes == ()
    assert site.allowed().code == 0
    assert site.sql(rights) == "t"


def test_a_unit_that_is_not_ours_is_never_overwritten(site: Site) -> None:
    run = site.allowed(services={"ssh": {"command": "/usr/bin/sleep infinity"}})

    assert run.code == 1
    assert "ssh.service is there and is not ours" in run.log
    assert site.box.ssh("systemctl is-active worker@1").stdout == "active\n"


def test_variables_that_are_not_ours_are_never_touched(site: Site) -> None:
    site.box.ssh("echo A=1 >/etc/jobwarden/theirs.env", check=True)
    theirs = {"theirs": {"command": "/usr/bin/sleep infinity"}}
    run = site.allowed(services={**KEYS["services"], **theirs})

    assert run.code == 1
    assert "/etc/jobwarden/theirs.env is there and is not ours" in run.log
    again = site.allowed()
    assert (again.code, again.changes) == (0, ()), again.log
    assert site.box.ssh("cat /etc/jobwarden/theirs.env").stdout == "A=1\n"


def test_without_its_secret_a_service_is_unknown_to_a_plan_and_an_error_to_a_deploy(
    site: Site,
) -> None:
    foreseen, run = site.dry(environment={}), site.allowed(environment={})

    assert foreseen.code == 0, foreseen.log
    variables = foreseen.of("file")["/etc/jobwarden/api.env"]
    assert (variables["action"], variables["why"]) == ("unknown", "secret API_TOKEN not given")
    assert (run.code, run.changes) == (1, ())
    assert "Try: export API_TOKEN=" in run.log


def test_without_pg_cron_timers_do_the_work_and_go_away_when_it_is_back(site: Site) -> None:
    without = {
        "postgres": {"database": "app", "cron": {"enabled": False}, "preload": ["auto_explain"]}
    }
    run = site.allowed(**without)

    assert run.code == 0, run.log
    assert site.show("shared_preload_libraries") == "auto_explain"
    assert site.sql("SELECT count(*) FROM cron.job WHERE username = 'jobwarden_runner'") == "0"
    timers = site.box.ssh("systemctl list-timers --no-legend 'jobwarden-*'").stdout
    assert "jobwarden-fallback-watchdog.timer" in timers
    site.sql("INSERT INTO jobs (action, status, started_at, worker)"
             " VALUES ('t', 'running', now() - interval '1 hour', 'timer')")  # fmt: skip
    site.box.ssh("systemctl start jobwarden-fallback-watchdog.service", check=True)
    assert site.sql("SELECT status FROM jobs WHERE worker = 'timer'") == "failed"
    # A unit that runs as postgres must not take Postgres's shared memory with it when it ends.
    time.sleep(0.5)
    assert site.sql("SELECT 1") == "1"
    site.sql("ALTER PROCEDURE jobwarden.sweep(int) RENAME TO swept")
    assert site.box.ssh("systemctl start jobwarden-fallback-watchdog.service").returncode != 0
    assert "jobwarden-fallback-watchdog" in site.box.ssh("systemctl --failed --no-legend").stdout
    site.sql("ALTER PROCEDURE jobwarden.swept(int) RENAME TO sweep")
    assert site.allowed(**without).changed == []

    back = site.allowed()
    assert back.code == 0, back.log
    assert site.box.ssh("ls /etc/systemd/system | grep jobwarden-fallback").stdout == ""
    assert site.box.ssh("systemctl --failed --no-legend").stdout == ""
    assert site.allowed().changes == ()


def test_a_moved_port_is_repaired_and_proven_anew(site: Site) -> None:
    conf = f"/etc/postgresql/{site.major}/main/postgresql.conf"
    site.box.ssh(
        f"sed -i 's/^port = .*/port = 5444/' {conf}; systemctl restart postgresql@{site.major}-main"
    )
    run = site.allowed()

    assert run.code == 0, run.log
    assert run.of("probe")
    pid = site.box.ssh("systemctl show -p MainPID --value api").stdout.strip()
    assert "port=5444" in site.box.ssh(f"cat /proc/{pid}/environ").stdout
    if site.old:
        assert run.of("schedule")["jobsStuckWatchdog"]["new"]["nodeport"] == 5444
        rows = site.sql("SELECT DISTINCT nodeport FROM cron.job", port=5444)
        assert rows == "5444"
    site.box.ssh(
        f"sed -i 's/^port = .*/port = 5432/' {conf}; systemctl restart postgresql@{site.major}-main"
    )


def test_removal_takes_ours_and_leaves_theirs(site: Site) -> None:
    site.sql("SELECT cron.schedule('theirs', '0 0 1 1 *', 'SELECT 1')")
    rows = site.sql("SELECT count(*) FROM jobs")
    absent = ("--data", "state=absent", "--data", "allow_restart=true")
    run = site.run(*absent, environment={})  # it needs no secret

    assert run.code == 0, run.log
    assert site.sql("SELECT count(*) FROM jobs") == rows
    assert site.sql("SELECT jobname FROM cron.job") == "theirs"
    assert "our file stays" in run.log
    assert 'DROP ROLE "jobwarden-api"' in run.log
    assert site.sql("SELECT count(*) FROM pg_roles WHERE rolname ~ '^jobwarden-'") == "3"
    units = "ls /etc/systemd/system | grep -E 'api|beat|tick|worker'; systemctl list-units --all"
    assert site.box.ssh(f"{units} 'api*' 'beat*' 'tick*' 'worker*' --no-legend").stdout == ""
    site.sql("SELECT cron.unschedule('theirs')")
    rest = site.run(*absent)
    assert rest.code == 0, rest.log
    assert site.show("shared_preload_libraries") == ""
    left = site.box.ssh("grep -ril jobwarden /etc/postgresql /etc/systemd /usr/local/lib").stdout
    assert left == ""
    assert site.box.ssh("cat /etc/jobwarden/*.env").stdout == "A=1\n"
    last = site.run(*absent)
    assert (last.code, last.changed, last.changes) == (0, [], ())
