"""Names and commands of schedules: what pg_cron can keep, and what it can run."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from infra import schedules
from infra.errors import RuleError

ONE_STATEMENT = {
    "call": "CALL app.weekly_report()",
    "closing_semicolon": "VACUUM jobs;",
    "semicolon_in_a_text": "DELETE FROM a WHERE b = 'x;y'",
    "quote_in_a_text": "DELETE FROM a WHERE b = 'it''s; here'",
    "backslash_in_a_plain_text": r"DELETE FROM a WHERE b = 'c:\'",
    "semicolon_in_an_escape_text": r"SELECT E'it\'s; here'",
    "escape_text_over_two_lines": "SELECT E'a'\n  '\\'; b'",
    "semicolon_in_a_quoted_name": 'TRUNCATE "a;b"',
    "semicolon_in_dollar_quotes": "DO $$ BEGIN PERFORM 1; PERFORM 2; END $$",
    "tagged_dollar_quotes": "DO $a$ BEGIN PERFORM $$;$$; END $a$",
    "dollar_inside_a_name": "SELECT a$b$c FROM t",
    "semicolon_in_a_line_comment": "SELECT 1 -- one; two",
    "comment_first": "/* a; /* nested; */ b */ SELECT 1",
    "semicolon_in_parentheses": "CREATE RULE r AS ON INSERT TO t DO ALSO (NOTIFY a; NOTIFY b)",
    "union_in_parentheses": "(SELECT 1) UNION (SELECT 2)",
    "with": "WITH old AS (DELETE FROM a RETURNING *) INSERT INTO b SELECT * FROM old",
    "lower_case": "select 1",
    "copy_to_a_file_of_the_server": "COPY t TO '/tmp/stdout'",
    "copy_of_a_table_called_stdout": "COPY stdout TO PROGRAM 'gzip'",
    "copy_of_a_query_that_names_stdin": "COPY (SELECT a FROM stdin) TO '/tmp/f'",
    "word_set_in_an_update": "UPDATE a SET b = 1",
    "division": "SELECT 4/2*3",
}

REFUSED = {
    "empty": ("", "empty"),
    "only_space": (" \n\t", "empty"),
    "only_a_comment": ("-- later", "empty"),
    "only_semicolons": (";;", "empty"),
    "two_statements": ("DELETE FROM a; DELETE FROM b", "2 statements"),
    "three_statements": ("SELECT 1; SELECT 2; SELECT 3;", "3 statements"),
    "set_then_call": ("SET x = 1; CALL p()", "2 statements"),
    "statement_behind_a_plain_backslash": (r"SELECT 'a\'; DELETE FROM b; --'", "2 statements"),
    "statement_behind_a_comment": ("SELECT 1 /* ; */; SELECT 2", "2 statements"),
    "statement_behind_a_closed_parenthesis": ("SELECT 1); DROP TABLE b", "2 statements"),
    "parenthesis_open": ("SELECT (1; DELETE FROM b", "parenthesis"),
    "quote_open": ("SELECT 'a", "quote"),
    "quote_open_after_a_doubled_one": ("SELECT 'a''", "quote"),
    "name_open": ('SELECT "a', "quote"),
    "dollar_quote_open": ("DO $a$ BEGIN END $$", "quote"),
    "comment_open": ("SELECT 1 /* a /* b */", "comment"),
    "begin": ("BEGIN", "BEGIN"),
    "commit": ("commit", "COMMIT"),
    "start_transaction": ("START TRANSACTION", "START"),
    "prepare_transaction": ("PREPARE TRANSACTION 'a'", "PREPARE"),
    "psql": (r"\! ls", "psql"),
    "psql_behind_a_statement": (r"SELECT 1 \gexec", "psql"),
    "shell": ("pg_dump app", "PG_DUMP"),
    "a_text": ("'SELECT 1'", "does not begin"),
    "a_slip": ("SELCT 1", "SELCT"),
    "no_break_space": ("\u00a0SELECT 1", "does not begin"),
    "copy_to_stdout": ("COPY t TO STDOUT", "COPY"),
    "copy_query_to_stdout": ("copy (select 1) to stdout with csv", "COPY"),
    "copy_from_stdin": ("COPY t (a, b) FROM STDIN", "COPY"),
    "copy_with_a_comment_between": ("COPY t FROM /* the client */ STDIN", "COPY"),
    "copy_to_stdin_which_means_stdout": ("COPY t TO STDIN", "COPY"),
    "nul": ("SELECT '\0'", "NUL"),
    "surrogate": ("SELECT '\ud800'", "Unicode"),
}


@pytest.mark.parametrize("command", ONE_STATEMENT.values(), ids=ONE_STATEMENT)
def test_one_statement_is_kept_as_it_is(command: str) -> None:
    assert schedules.check_command(f"  {command}\n") == command


@pytest.mark.parametrize(("command", "says"), REFUSED.values(), ids=REFUSED)
def test_what_pg_cron_cannot_run_is_refused(command: str, says: str) -> None:
    with pytest.raises(RuleError) as caught:
        schedules.check_command(command)

    assert says in caught.value.problem
    assert caught.value.hint


def test_a_misspelt_statement_gets_a_suggestion() -> None:
    with pytest.raises(RuleError, match=r"did you mean SELECT\?"):
        schedules.check_command("SELCT 1")


@given(st.text())
def test_any_text_is_either_kept_or_refused(text: str) -> None:
    kept = _checked(text)

    assert kept.hint if isinstance(kept, RuleError) else kept == text.strip()


@given(st.text(st.characters(exclude_characters="\0", codec="utf-8")))
def test_no_quoted_text_ends_a_statement(text: str) -> None:
    literal = "'" + text.replace("'", "''") + "'"
    name = '"' + text.replace('"', '""') + '"'

    assert schedules.check_command(f"SELECT {literal} AS {name}")
    with pytest.raises(RuleError, match="2 statements"):
        schedules.check_command(f"SELECT {literal} AS {name}; SELECT 1")


@pytest.mark.parametrize("name", ["a", "Jobs Report", "täglich", "x" * 63, "é" * 31, "a@b", "🐘"])
def test_a_name_of_up_to_63_bytes_is_kept(name: str) -> None:
    assert schedules.check_name(name) == name


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("", "0 bytes"),
        ("x" * 64, "64 bytes"),
        ("é" * 32, "64 bytes"),
        ("a\nb", "control"),
        ("a\0", "control"),
        ("a\x7f", "control"),
        ("a\x85", "control"),
        ("\ud800", "Unicode"),
    ],
)
def test_a_name_pg_cron_could_not_keep_is_refused(name: str, says: str) -> None:
    with pytest.raises(RuleError) as caught:
        schedules.check_name(name)

    assert says in caught.value.problem


def test_our_schedules_hold_our_own_rules() -> None:
    for schedule in schedules.OURS:
        assert schedules.check_name(schedule.name) == schedule.name
        assert schedules.check_command(schedule.command) == schedule.command


def test_our_schedules_are_those_of_the_defaults() -> None:
    when = {schedule.name: schedule.schedule for schedule in schedules.OURS}

    assert when == {"jobsStuckWatchdog": "*/5 * * * *", "jobsDailyCleanup": "0 2 * * *"}


def test_our_names_are_ours_in_another_database_too() -> None:
    assert schedules.is_ours("jobsStuckWatchdog")
    assert schedules.is_ours("jobsDailyCleanup@app")
    assert not schedules.is_ours("jobsStuckWatchdogs")
    assert not schedules.is_ours("JOBSSTUCKWATCHDOG")


def _checked(text: str) -> str | RuleError:
    try:
        return schedules.check_command(text)
    except RuleError as error:
        return error
