"""A run of pyinfra: what is wanted of its hosts, and what it does without."""

from __future__ import annotations

import runpy
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("pyinfra")

from pyinfra.api import Config
from pyinfra.api.state import StateStage
from pyinfra.context import ctx_config, ctx_host, ctx_state

from infra.box import hosts, stages
from infra.box_decision import Decision, Target
from tests.unit import boxsamples

ROOT = Path(__file__).parents[2]
STACK = """
config:
  jobwarden:target: box
  jobwarden:boxes: [{host: db1}]
  jobwarden:services: {api: {command: /srv/api, secrets: [API_TOKEN]}}
"""


@pytest.fixture
def stack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stack whose service has a secret, which is not given."""
    file = tmp_path / "Pulumi.x.yaml"
    file.write_text(STACK)
    monkeypatch.setenv("JOBWARDEN_STACK", str(file))
    monkeypatch.delenv("API_TOKEN", raising=False)


def target(**data: str) -> Target:
    host: Any = SimpleNamespace(name="db1", data=SimpleNamespace(get=data.get))
    return hosts.target(host)


@pytest.mark.usefixtures("stack")
@pytest.mark.parametrize("state", ["present", "absent"])
def test_a_host_is_known_without_its_secrets(state: str) -> None:
    assert target(state=state).secrets == {}


@pytest.mark.usefixtures("stack")
def test_a_secret_is_taken_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("API_TOKEN", "open sesame")

    assert target().secrets == {"API_TOKEN": "open sesame"}


class Played:
    """A host and a state of pyinfra; nothing is there, and all that is said is kept."""

    def __init__(self, phase: StateStage) -> None:
        self.state: Any = SimpleNamespace(current_stage=phase, fail_hosts=lambda _: None)
        self.said: list[str] = []
        keep = lambda text, **_: self.said.append(text)  # noqa: E731  # one line says it
        self.host: Any = SimpleNamespace(name="db1", data={}, log=keep, log_styled=keep, noop=keep)

    def stage(self, title: str, wanted: Target) -> list[bool]:
        """Run a stage: what each of its commands came to."""
        with ctx_state.use(self.state), ctx_host.use(self.host):
            commands = list(stages.stage._inner(title, wanted))  # noqa: SLF001  # pyinfra's own name
            return [each.function(self.state, self.host) for each in commands]


def nothing(_target: Target, _box: object) -> Decision:
    return Decision()


@pytest.mark.parametrize(
    ("phase", "title", "done"),
    [
        (StateStage.Execute, stages.INSTALL, [False]),
        (StateStage.Prepare, stages.INSTALL, []),
        (StateStage.Execute, stages.REMOVE_UNITS, []),
    ],
    ids=["run", "plan", "absent"],
)
def test_only_a_run_that_needs_a_secret_ends_before_it_changes_anything(
    phase: StateStage, title: str, done: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stages, "look", lambda *_: boxsamples.box())
    monkeypatch.setitem(stages._DECIDE, title, nothing)  # noqa: SLF001  # the stage's own decision
    services = {"api": {"command": "/srv/api", "secrets": ["KEY"]}}
    played = Played(phase)

    assert played.stage(title, boxsamples.target(services=services)) == done
    assert ("secret KEY not given" in str(played.said)) == bool(done)


@pytest.mark.usefixtures("stack")
@pytest.mark.parametrize("given", [None, 50])
def test_a_host_that_cannot_be_reached_does_not_stop_a_plan(given: int | None) -> None:
    """Without -y pyinfra sets 0 before it reads the inventory, and then asks at each failure."""
    config: Any = Config(FAIL_PERCENT=given)  # type: ignore[no-untyped-call]
    config.lock_current_state()
    config.FAIL_PERCENT = 0
    with ctx_config.use(config):
        found = runpy.run_path(str(ROOT / "inventory.py"))

    assert given == config.FAIL_PERCENT
    assert [name for name, _ in found["boxes"]] == ["db1"]
