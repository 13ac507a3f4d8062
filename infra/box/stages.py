"""The stages of a deploy as pyinfra operations. Each looks, says what differs, and carries that.

There is one operation per stage, and a stage with nothing to do runs no command: a converged box
costs one round trip in all.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator

from pyinfra.api import FunctionCommand, Host, State, operation
from pyinfra.api.state import StateStage
from pyinfra.context import ctx_host, ctx_state

from infra import box_database, box_plan, box_removal
from infra.box.carrier import carry
from infra.box.looking import forget, look
from infra.box.telling import tell
from infra.box_decision import Decision, Target
from infra.boxes import Box
from infra.changes import Change
from infra.checks import Problem
from infra.errors import InfraError

Decide = Callable[[Target, Box], Decision]
_MOST_PASSES = 3

INSTALL = "Install PostgreSQL and pg_cron"
DATABASE = "Make the database"
CONFIGURE = "Configure PostgreSQL"
RESTART = "Restart PostgreSQL where a setting waits for it"
APPLY = "Apply SQL, policy and schedules"
PROVE = "Prove that a schedule fires"
SERVICES = "Set up services"
FALLBACK = "Run timers while pg_cron does not do the work"
REMOVE_UNITS = "Remove services and timers"
REMOVE_SQL = "Remove schedules and SQL"
REMOVE_CONF = "Remove our configuration"
RESTART_WITHOUT = "Restart PostgreSQL without our configuration"

PRESENT: tuple[tuple[str, Decide], ...] = (
    (INSTALL, box_plan.install),
    (DATABASE, box_database.database),
    (CONFIGURE, box_plan.configure),
    (RESTART, box_plan.restart),
    (APPLY, box_database.apply),
    (PROVE, box_database.prove),
    (SERVICES, box_plan.services),
    (FALLBACK, box_plan.fallback),
)
ABSENT: tuple[tuple[str, Decide], ...] = (
    (REMOVE_UNITS, box_removal.units_and_timers),
    (REMOVE_SQL, box_removal.sql),
    (REMOVE_CONF, box_removal.configuration),
    (RESTART_WITHOUT, box_removal.restart),
)
_DECIDE = dict((*PRESENT, *ABSENT))


@operation()
def stage(title: str, target: Target) -> Generator[FunctionCommand, None, None]:
    """One stage on one host: nothing is yielded where nothing is to be done."""
    # The objects themselves: pyinfra's globals stand for another host in each greenlet.
    state, host = ctx_state.get(), ctx_host.get()  # type: ignore[no-untyped-call]
    if _executing(state) and title == INSTALL and (lacking := box_plan.lacking(target)):
        # The first stage: a run that cannot be carried to its end changes nothing at all.
        _complain(host, title, (Problem("services", *_split(lacking)),))
        yield _command(lambda _state, _host: False)
        return
    box = look(state, host, target)
    if box is None:
        if _executing(state):
            yield _command(lambda _state, _host: False)
        return
    decision = _DECIDE[title](target, box)
    tell(state, host, title, (*decision.changes, *_unknown(title, decision)))
    for note in decision.notes:
        host.log(note)
    if not _executing(state):
        yield from _foresee(state, host, title, decision)
    elif _idle(decision):
        host.noop(f"{title}: as it should be")
    else:
        yield _command(lambda st, ho: _act(st, ho, title, target, decision))


def _command(function: Callable[[State, Host], bool]) -> FunctionCommand:
    def act(state: State, host: Host) -> bool:
        return function(state, host)

    return FunctionCommand(act, (), {})


def _executing(state: State) -> bool:
    return bool(state.current_stage == StateStage.Execute)


def _idle(decision: Decision) -> bool:
    return not (decision.script or decision.problems or decision.unknown)


def _unknown(title: str, decision: Decision) -> tuple[Change, ...]:
    return (Change("stage", title, "unknown", why=decision.unknown),) if decision.unknown else ()


def _foresee(state: State, host: Host, title: str, decision: Decision) -> Iterator[FunctionCommand]:
    """In a plan: a stage that would do something yields; one that must not fails the host."""
    if decision.problems:
        _complain(host, title, decision.problems)
        state.fail_hosts({host})  # type: ignore[no-untyped-call]
    elif decision.script or decision.unknown:
        yield _command(lambda _state, _host: True)
    else:
        host.noop(f"{title}: as it should be")


def _act(state: State, host: Host, title: str, target: Target, decision: Decision) -> bool:
    """Carry a decision; look and decide again where it says so. False fails the host."""
    for _ in range(_MOST_PASSES):
        problems = decision.problems
        if decision.unknown:
            problems = (Problem(title, *_split(decision.unknown)),)
        if problems or decision.script is None:
            return not _complain(host, title, problems)
        try:
            answer = carry(host, title, decision.script.name, decision.script.variables)
        except InfraError as error:
            host.log_styled(str(error), fg="red")
            return False
        finally:
            forget(host)
        if decision.verify and _complain(host, title, decision.verify(answer)):
            return False
        if not decision.again:
            return True
        box = look(state, host, target)
        if box is None:
            return False
        decision = _DECIDE[title](target, box)
        tell(state, host, title, decision.changes)
    return True


def _split(text: str) -> tuple[str, str]:
    message, _, hint = text.partition(" Try: ")
    return message, hint or "deploy again"


def _complain(host: Host, title: str, problems: tuple[Problem, ...]) -> bool:
    for problem in problems:
        host.log_styled(f"{host.name}: {title}: {problem}", fg="red")
    return bool(problems)
