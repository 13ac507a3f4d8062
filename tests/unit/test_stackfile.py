"""Stack files: found by name or path, read as YAML 1.2, and refused with the way out."""

from __future__ import annotations

from pathlib import Path

import pytest

from infra import stackfile
from infra.errors import InfraError

GOOD = "config:\n  jobwarden:target: local\n"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(stackfile.FOLDER_VARIABLE, raising=False)
    return tmp_path


def _load(text: str) -> dict[str, object]:
    Path("Pulumi.dev.yaml").write_text(text, encoding="utf-8")
    return stackfile.load("dev").values


def _refusal(text: str) -> str:
    with pytest.raises(InfraError) as caught:
        _load(text)
    assert caught.value.hint
    return str(caught.value)


def test_a_name_is_a_file_of_the_current_folder() -> None:
    Path("Pulumi.dev.yaml").write_text(GOOD)

    stack = stackfile.load("dev")

    assert stack == stackfile.StackFile("dev", Path("Pulumi.dev.yaml"), {"target": "local"})


def test_a_name_is_looked_for_in_the_folder_of_the_environment(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "stacks").mkdir()
    (folder / "stacks" / "Pulumi.live.yaml").write_text(GOOD)
    monkeypatch.setenv("JOBWARDEN_STACKS", str(folder / "stacks"))

    assert stackfile.load("live").path == folder / "stacks" / "Pulumi.live.yaml"
    assert stackfile.stacks() == ("live",)


def test_the_current_folder_comes_first(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "stacks").mkdir()
    (folder / "stacks" / "Pulumi.dev.yaml").write_text(GOOD)
    monkeypatch.setenv("JOBWARDEN_STACKS", str(folder / "stacks"))

    assert _load("config:\n  jobwarden:target: existing\n") == {"target": "existing"}


@pytest.mark.parametrize("name", ["Pulumi.dev.yaml", "./Pulumi.dev.yaml", "other.yml"])
def test_a_path_is_taken_as_it_is(name: str) -> None:
    Path(name).write_text(GOOD)

    stack = stackfile.load(name)

    assert stack.path == Path(name)
    assert stack.name in {"dev", "other"}


def test_a_missing_stack_names_those_that_are_there() -> None:
    Path("Pulumi.dev.yaml").write_text(GOOD)
    Path("Pulumi.live.yaml").write_text(GOOD)

    with pytest.raises(InfraError, match=r"'prod'.*Pulumi\.prod\.yaml.*are there: dev, live"):
        stackfile.load("prod")


def test_a_missing_stack_says_so_when_there_is_none() -> None:
    with pytest.raises(InfraError, match=r"are there: none"):
        stackfile.load("./nowhere/Pulumi.prod.yaml")


def test_keys_of_others_are_left_alone() -> None:
    values = _load(
        "encryptionsalt: v1:abc\n"
        "config:\n"
        "  aws:region: eu-central-1\n"
        "  other:password: {secure: abc}\n"
        "  jobwarden:strict: true\n"
    )

    assert values == {"strict": True}


@pytest.mark.parametrize("text", ["", "# nothing\n", "config:\n", "encryptionsalt: v1:abc\n"])
def test_a_file_that_says_nothing_of_us_is_empty(text: str) -> None:
    assert _load(text) == {}


def test_booleans_are_those_of_yaml_1_2() -> None:
    values = _load("config:\n  jobwarden:jobs: {states: {running: on, done: no, failed: true}}\n")

    assert values == {"jobs": {"states": {"running": "on", "done": "no", "failed": True}}}


def test_json_as_pulumi_config_set_writes_it_is_read() -> None:
    values = _load(
        "config:\n"
        '  jobwarden:watchdog: \'{"timeout": "3m"}\'\n'
        "  jobwarden:schedules: '[]'\n"
        '  jobwarden:strict: "true"\n'
        '  jobwarden:target: "{oops"\n'
    )

    assert values == {
        "watchdog": {"timeout": "3m"},
        "schedules": [],
        "strict": True,
        "target": "{oops",
    }


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("config:\n  jobwarden:schedule: */5 * * * *\n", "Pulumi.dev.yaml:2:"),
        ("config:\n  jobwarden:a: [1\n", "Pulumi.dev.yaml:3:"),
        ("config:\n  jobwarden:a: 1\n  jobwarden:a: 2\n", "Pulumi.dev.yaml:3:3: found duplicate"),
        ("config:\n  jobwarden:a: {b: 1, b: 2}\n", "Pulumi.dev.yaml:2:"),
        ("config:\n\tjobwarden:a: 1\n", "Pulumi.dev.yaml:2:"),
        ("config: {}\n---\nconfig: {}\n", "Pulumi.dev.yaml:2:"),
        ("config: \x01\n", "is not YAML"),
        ("config:\n  jobwarden:a: !!python/object:os.system x\n", "Pulumi.dev.yaml:2:"),
        ("- config\n", "the file is not a mapping"),
        ("config: local\n", "config is not a mapping"),
        ("jobwarden:target: local\n", "at the top level"),
        ("config:\n  target: local\n", "write jobwarden:target"),
        (
            "config:\n  jobwarden:databaseUrl: {secure: v1:x}\n",
            "jobwarden:databaseUrl is encrypted",
        ),
        ("config:\n  jobwarden:a: {b: [1, {secure: v1:x}]}\n", "jobwarden:a.b.1 is encrypted"),
    ],
)
def test_a_file_that_cannot_be_read_says_where_and_why(text: str, says: str) -> None:
    assert says in _refusal(text)


def test_a_tab_is_answered_with_spaces() -> None:
    said = _refusal("config:\n\tjobwarden:a: 1\n")

    assert "Try: indent with spaces" in said
    assert "quotes" not in said


def test_an_encrypted_value_is_not_shown() -> None:
    assert "v1:hunter2" not in _refusal("config:\n  jobwarden:a: {secure: v1:hunter2}\n")


def test_a_value_that_holds_itself_ends() -> None:
    values = _load("config:\n  jobwarden:a: &a [*a]\n")

    assert list(values) == ["a"]


def test_a_file_in_another_encoding_is_refused() -> None:
    Path("Pulumi.dev.yaml").write_bytes("config: {jobwarden:a: é}".encode("latin-1"))

    with pytest.raises(InfraError, match="not UTF-8"):
        stackfile.load("dev")


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("local.example", "local.example"),
        ("/srv/app/Pulumi.production.yaml", "production"),
        ("stack.yaml", "stack"),
    ],
)
def test_a_stack_has_a_name_however_it_was_given(given: str, name: str) -> None:
    assert stackfile.name_of(given) == name
