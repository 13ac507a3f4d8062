"""Decisions for RDS and Aurora: each refused before AWS would refuse it, with the way out."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from infra import rds, rds_facts
from infra.errors import RuleError
from infra.extensions import EXTENSIONS
from infra.rds import Parameter


@pytest.mark.parametrize(
    ("target", "version", "family"),
    [
        ("rds", "16", "postgres16"),
        ("rds", "15.14", "postgres15"),
        ("aurora", "17", "aurora-postgresql17"),
    ],
)
def test_the_family_follows_from_target_and_version(target: str, version: str, family: str) -> None:
    assert rds.family(target, version) == family


def test_a_family_of_another_version_is_refused_with_the_right_one() -> None:
    with pytest.raises(RuleError, match="allowed: postgres16"):
        rds.check_family("postgres15", "rds", "16")
    with pytest.raises(RuleError, match="allowed: aurora-postgresql16"):
        rds.check_family("postgres16", "aurora", "16")


@pytest.mark.parametrize(
    ("name", "value", "sent"),
    [
        ("work_mem", "16MB", "16384"),
        ("work_mem", "8192", "8192"),
        ("shared_buffers", "{DBInstanceClassMemory/32768}", "{DBInstanceClassMemory/32768}"),
        ("shared_buffers", "1GB", "131072"),
        ("effective_cache_size", "4 GB", "524288"),
        ("statement_timeout", "30s", "30000"),
        ("checkpoint_timeout", "15min", "900"),
        ("log_min_duration_statement", "-1", "-1"),
        ("log_rotation_age", "1d", "1440"),
        ("max_wal_size", "4GB", "4096"),
        ("jit", "off", "0"),
        ("rds.force_ssl", "ON", "1"),
        ("cron.log_run", "false", "0"),
        (
            "max_worker_processes",
            "GREATEST({DBInstanceVCPU*2},8)",
            "GREATEST({DBInstanceVCPU*2},8)",
        ),
        ("random_page_cost", "1.1", "1.1"),
    ],
)
def test_a_value_is_sent_in_the_unit_that_aws_has(name: str, value: str, sent: str) -> None:
    assert rds.parameter(name, value).value == sent


@pytest.mark.parametrize(
    ("name", "method"),
    [
        ("shared_preload_libraries", "pending-reboot"),
        ("cron.database_name", "pending-reboot"),
        ("cron.max_running_jobs", "pending-reboot"),
        ("cron.log_min_messages", "immediate"),
        ("max_connections", "pending-reboot"),
        ("rds.logical_replication", "pending-reboot"),
        ("pg_stat_statements.max", "pending-reboot"),
        ("pg_stat_statements.track", "immediate"),
        ("work_mem", "immediate"),
        ("rds.force_ssl", "immediate"),
    ],
)
def test_static_parameters_wait_and_dynamic_ones_do_not(name: str, method: str) -> None:
    assert rds.parameter(name, "1").method == method


def test_every_static_setting_of_pg_cron_is_applied_with_a_reboot() -> None:
    settings = EXTENSIONS["pg_cron"].settings
    managed = {name: rule for name, rule in settings.items() if rule.managed}

    assert len(managed) > 5
    for name, rule in managed.items():
        assert rds.parameter(name, "1").static is rule.static


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("work_memory", "1", "did you mean work_mem?"),
        ("cron.use_background_workers", "on", "does not let this parameter be changed"),
        ("cron.host", "localhost", "does not let this parameter be changed"),
        ("something_else_entirely", "1", "rds.parameters"),
        ("work_mem", "16 MiB", "allowed: a number, alone or with one of B, kB, MB, GB, TB"),
        ("work_mem", "lots", "whole number of kB"),
        ("work_mem", "1.5B", "multiple of kB"),
        ("statement_timeout", "5MB", "one of us, ms, s, min, h, d"),
        ("checkpoint_timeout", "1500ms", "whole number of s"),
        ("jit", "maybe", "on or off"),
    ],
)
def test_what_aws_would_refuse_is_refused_with_the_way_out(
    name: str, value: str, says: str
) -> None:
    with pytest.raises(RuleError) as caught:
        rds.parameter(name, value)

    assert says in str(caught.value)


def test_a_static_parameter_is_never_sent_as_immediate() -> None:
    with pytest.raises(RuleError, match="max_connections is static"):
        Parameter("max_connections", "100", static=False)

    assert Parameter("max_connections", "100", static=True).method == "pending-reboot"
    assert Parameter("io_method", "worker", static=False).method == "immediate"


@given(st.lists(st.sampled_from(sorted(rds_facts.PARAMETERS)), max_size=30), st.randoms())
def test_the_order_of_parameters_is_that_of_their_names(names: list[str], random: object) -> None:
    parameters = [Parameter(name, "1", static=True) for name in names]
    random.shuffle(parameters)  # type: ignore[attr-defined]

    assert [each.name for each in rds.in_order(parameters)] == sorted(set(names))


def test_the_last_of_a_name_counts() -> None:
    first, last = Parameter("jit", "1", static=False), Parameter("jit", "0", static=False)

    assert rds.in_order([first, last]) == (last,)


def test_pg_cron_comes_behind_the_users_libraries_in_lower_case_and_once() -> None:
    assert rds.libraries(["AUTO_EXPLAIN", "pg_cron"]) == ("auto_explain", "pg_cron")
    assert rds.libraries([]) == ("pg_cron",)


@pytest.mark.parametrize("name", ["citus", "timescaledb", "TimescaleDB"])
def test_a_library_that_aws_does_not_have_is_refused(name: str) -> None:
    with pytest.raises(RuleError, match="is not to be had on RDS"):
        rds.libraries([name])


@pytest.mark.parametrize(
    ("instance_class", "cpus"),
    [
        ("db.t4g.micro", 2),
        ("db.t3.medium", 2),
        ("db.m7g.large", 2),
        ("db.r6g.xlarge", 4),
        ("db.r7g.4xlarge", 16),
        ("db.r6gd.16xlarge", 64),
        ("db.serverless", None),
        ("db.x2iedn.metal", None),
    ],
)
def test_a_class_tells_its_virtual_cpus(instance_class: str, cpus: int | None) -> None:
    assert rds.vcpus(instance_class) == cpus


@pytest.mark.parametrize(
    ("instance_class", "settings", "slots"),
    [
        ("db.t4g.micro", {}, 8),
        ("db.r7g.4xlarge", {}, 32),
        ("db.r7g.4xlarge", {"max_worker_processes": "10"}, 10),
        ("db.serverless", {}, None),
        ("db.t4g.micro", {"max_worker_processes": "GREATEST({DBInstanceVCPU*2},8)"}, None),
    ],
)
def test_worker_slots_follow_from_the_setting_or_the_class(
    instance_class: str, settings: dict[str, str], slots: int | None
) -> None:
    assert rds.worker_slots(instance_class, settings) == slots


@pytest.mark.parametrize(
    ("instance_class", "settings", "enough"),
    [
        ("db.t4g.micro", {}, True),
        ("db.t4g.micro", {"cron.max_running_jobs": "7"}, True),
        ("db.t4g.micro", {"cron.max_running_jobs": "8"}, False),
        ("db.t4g.micro", {"max_worker_processes": "5"}, False),
        ("db.t4g.micro", {"max_worker_processes": "6"}, True),
        ("db.serverless", {"cron.max_running_jobs": "100"}, True),
    ],
)
def test_jobs_without_a_worker_slot_are_refused(
    instance_class: str, settings: dict[str, str], *, enough: bool
) -> None:
    if enough:
        rds.check_slots(instance_class, settings)
        return
    with pytest.raises(RuleError, match="max_worker_processes"):
        rds.check_slots(instance_class, settings)


@pytest.mark.parametrize("value", ["pg_cron", "pg_stat_statements, PG_CRON", "*"])
def test_a_list_of_allowed_extensions_with_pg_cron_is_fine(value: str) -> None:
    rds.check_allowed_extensions({"rds.allowed_extensions": value})


@pytest.mark.parametrize("value", ["", "pg_stat_statements"])
def test_a_list_of_allowed_extensions_without_pg_cron_is_refused(value: str) -> None:
    with pytest.raises(RuleError, match="add pg_cron"):
        rds.check_allowed_extensions({"rds.allowed_extensions": value})


def test_the_smallest_burstable_classes_have_no_performance_insights() -> None:
    assert not rds.has_insights("db.t4g.micro")
    assert not rds.has_insights("db.t3.small")
    assert rds.has_insights("db.t4g.medium")


def test_no_parameter_is_listed_twice_or_belongs_to_an_extension() -> None:
    of_extensions = {name for each in EXTENSIONS.values() for name in each.settings}
    listed = [name for names in rds_facts._NAMES.values() for name in names.split()]  # noqa: SLF001

    assert len(listed) == len(set(listed)) == len(rds_facts.PARAMETERS)
    assert not of_extensions & set(listed)
    assert rds.PRELOAD not in listed
