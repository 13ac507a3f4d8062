import pytest

from infra.extensions import EXTENSIONS, MANAGED_OWN, find_setting, managed_default


def test_every_extension_is_listed_under_its_own_name() -> None:
    assert all(name == extension.name for name, extension in EXTENSIONS.items())


def test_every_setting_begins_with_its_extension() -> None:
    prefixes = {"pg_cron": "cron."}
    for name, extension in EXTENSIONS.items():
        prefix = prefixes.get(name, f"{name}.")
        assert all(setting.startswith(prefix) for setting in extension.settings)


def test_what_must_come_before_an_extension_is_in_the_table_and_needs_no_follower() -> None:
    for extension in EXTENSIONS.values():
        for before in extension.after:
            assert extension.name not in EXTENSIONS[before].after


def test_only_an_extension_that_goes_first_may_fail_elsewhere() -> None:
    strict = {each.name for each in EXTENSIONS.values() if each.or_fails}
    assert strict == {"citus"}
    assert all(EXTENSIONS[name].first for name in strict)


@pytest.mark.parametrize("setting", ["cron.log_min_messages", "cron.launch_active_jobs"])
def test_two_settings_of_pg_cron_need_only_a_reload(setting: str) -> None:
    rule = find_setting(setting)
    assert rule is not None
    assert not rule.static


def test_all_other_settings_of_pg_cron_need_a_restart() -> None:
    static = {name for name, rule in EXTENSIONS["pg_cron"].settings.items() if rule.static}
    reload = {"cron.log_min_messages", "cron.launch_active_jobs"}
    assert static == set(EXTENSIONS["pg_cron"].settings) - reload


def test_the_time_zone_came_with_one_five() -> None:
    rule = find_setting("cron.timezone")
    assert rule is not None
    assert (rule.since, rule.default, rule.kind) == ("1.5", "GMT", "timezone")


def test_an_enum_lists_its_choices_and_its_default_is_one_of_them() -> None:
    enums = [
        rule
        for extension in EXTENSIONS.values()
        for rule in extension.settings.values()
        if rule.kind == "enum"
    ]
    assert enums
    assert all(rule.default in rule.choices for rule in enums)


def test_managed_servers_fix_how_jobs_connect() -> None:
    fixed = {name for name, rule in EXTENSIONS["pg_cron"].settings.items() if not rule.managed}
    assert fixed == {"cron.host", "cron.use_background_workers"}


def test_a_setting_nobody_has_is_not_found() -> None:
    assert find_setting("cron.database_nme") is None


@pytest.mark.parametrize(
    ("family", "default"),
    [
        (None, ("pg_stat_statements",)),
        ("postgres13", ("pg_stat_statements",)),
        ("aurora-postgresql16", ("pg_stat_statements",)),
        ("postgres18", ("pg_tle", "pg_stat_statements")),
    ],
)
def test_a_parameter_group_starts_from_the_default_of_its_family(
    family: str | None, default: tuple[str, ...]
) -> None:
    assert managed_default(family) == default
    assert MANAGED_OWN.isdisjoint(default)
