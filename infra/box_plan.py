"""What is to be done on one box, stage by stage. Values only; ``box`` carries them.

Each stage looks at the box as it is at that moment and answers with a Decision: the changes, what
stands in the way, and the one script that makes them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from infra import box_conf, box_doors, box_fallback, box_install, box_roles, units
from infra.box_decision import (
    UNTIL_APPLIED,
    UNTIL_INSTALLED,
    Decision,
    Script,
    Target,
    carried,
    cluster_of,
    no_server,
    server_variables,
)
from infra.boxes import Box
from infra.changes import Change
from infra.checks import Problem
from infra.quoting import ident
from infra.unit_texts import Place, user_of


def install(target: Target, box: Box) -> Decision:
    """Packages, their source, and the cluster."""
    found = box_install.decide(target.environment, target.entry, box)
    if found.problems or not found.changes:
        return Decision(found.changes, found.problems)
    variables = {
        "PACKAGES": " ".join(found.packages),
        "SOURCES": found.sources or "",
        "SOURCES_FILE": box_install.SOURCES,
        "KEY_FILE": box_install.KEY,
        "VERSION": found.version,
        "NAME": found.name,
        "MAKE_CLUSTER": "" if box.chosen else "yes",
        "APT_SECONDS": str(target.apt_seconds),
    }
    return Decision(found.changes, script=Script("install", variables))


def configure(target: Target, box: Box) -> Decision:
    """Our file in ``conf.d`` and the blocks in pg_hba.conf and pg_ident.conf."""
    if unknown := no_server(box):
        return Decision(unknown=unknown)
    if target.wants_cron and box.cron_version is None:
        return Decision(unknown=UNTIL_INSTALLED)
    conf = box_conf.decide(target.environment, box)
    missing = _missing_libraries(box, conf)
    if missing and conf.changes:
        return Decision(conf.changes, (missing,))
    if conf.problems and not conf.changes:
        return Decision(problems=conf.problems)
    doors = box_doors.decide(target.environment, box)
    changes = (*conf.changes, *doors.changes)
    if not changes:
        return Decision(problems=conf.problems)
    # Our file is written although another one wins: it then holds what that one has to say.
    script = configure_script(box, conf, doors)
    notes = tuple(str(problem) for problem in conf.problems)
    return Decision(changes, script=script, verify=lambda _: conf.problems, notes=notes)


def configure_script(box: Box, conf: box_conf.Conf, doors: box_doors.Doors) -> Script:
    """Write our file and our blocks, checked by the server itself."""
    cluster = cluster_of(box)
    variables = server_variables(cluster) | {
        "CONF": cluster.conf,
        "TEXT": conf.text,
        "WRITE_CONF": "yes" if conf.changes else "",
        "HBA": doors.hba or "",
        "IDENT": doors.ident or "",
    }
    return Script("configure", variables)


def restart(target: Target, box: Box) -> Decision:
    """Restart where the server says that a setting waits for it, and where it is allowed."""
    if target.wants_cron and box.server and box.cron_version is None:
        return Decision(unknown=UNTIL_INSTALLED)  # what will wait for it is not written yet
    return restart_decision(target, box, box_conf.decide(target.environment, box))


def restart_decision(target: Target, box: Box, conf: box_conf.Conf) -> Decision:
    """What waits for a restart, and the restart itself where it is allowed."""
    if unknown := no_server(box):
        return Decision(unknown=unknown)
    if not conf.waiting or conf.problems:
        return Decision()
    if missing := _missing_libraries(box, conf):
        return Decision(problems=(missing,))
    cluster = cluster_of(box)
    names = ", ".join(conf.waiting)
    waits = None if target.allow_restart else "restarts are not allowed here"
    change = Change("restart", cluster.title, "update", None, names, "these wait for it", waits)
    if waits:
        note = (
            f"{cluster.title} waits for a restart ({names}); allow it with"
            " `--data allow_restart=true` or `allowRestart: true`, or restart it yourself:"
            f" systemctl restart {cluster.unit}"
        )
        return Decision((change,), notes=(note,))
    variables = server_variables(cluster) | {
        "UNIT": cluster.unit,
        "CONF": cluster.conf,
        "LOG": cluster.log,
    }
    return Decision((change,), script=Script("restart", variables))


def services(target: Target, box: Box) -> Decision:
    """The environment's services as systemd units, and the roles they log in as."""
    declared = target.environment.services
    if unknown := _not_ready(target, box):
        return Decision(unknown=unknown)
    roles = box_roles.decide(declared, box)
    wanted = units.plan(declared, _place(target, box), target.secrets)
    found = units.diff(wanted, box)
    if problems := (*roles.problems, *found.problems):
        return Decision(problems=problems)
    changes = (*roles.changes, *found.changes)
    if unknown := lacking(target) or box_roles.nobody(declared, box):
        return Decision(changes, unknown=unknown, notes=roles.notes)
    if not changes:
        return Decision(notes=roles.notes)
    variables = units_variables(found, wanted.groups) | _role_variables(target, box, roles, found)
    return Decision(changes, script=Script("units", variables), notes=roles.notes)


def _not_ready(target: Target, box: Box) -> str:
    declared = target.environment.services
    if not box.systemd:
        return "there is no systemd"
    if box.chosen is None and declared:
        return UNTIL_INSTALLED
    return no_server(box) if box_roles.wanted(declared) else ""


def _place(target: Target, box: Box) -> Place:
    """Where services find Postgres: as the server says; its files may wait for a restart."""
    if box.chosen is None:
        return Place()
    place = Place(box.chosen.unit, target.database, box.chosen.port)
    if box.server is None:
        return place
    sockets = box.server.setting("unix_socket_directories") or ""
    folder = sockets.partition(",")[0].strip().strip('"')
    port = int(box.server.setting("port") or place.port)
    return replace(place, folder=folder or place.folder, port=port)


def _role_variables(
    target: Target, box: Box, roles: box_roles.Roles, found: units.Units
) -> dict[str, str]:
    """Also a login whose variables are new is tried: the last deploy may have ended before that."""
    services, place = target.environment.services, _place(target, box)
    new = [name for name in found.envs or {} if services[name].database_role and not box.standby]
    users = dict.fromkeys([*roles.users, *(user_of(name, services[name]) for name in new)])
    if not users:
        return {}
    groups = ", ".join(ident(group) for group in box_roles.groups(services, users))
    return server_variables(cluster_of(box)) | {
        "ROLES": roles.sql,
        "TRY": " ".join(place.url(user) for user in users),
        "LET_CONNECT": f"GRANT CONNECT ON DATABASE {ident(target.database)} TO {groups}",
    }


def lacking(target: Target) -> str:
    """Which secrets of services were not given, and the way out; "" where none is missing."""
    services = target.environment.services.values()
    asked = dict.fromkeys(key for service in services for key in service.secrets)
    missing = [key for key in asked if key not in target.secrets]
    if not missing:
        return ""
    first = f"export {missing[0]}=... where you deploy, then deploy again"
    return f"secret {', '.join(missing)} not given. Try: {first}"


def units_decision(found: units.Units, groups: Mapping[str, str]) -> Decision:
    """The script that makes what ``units`` found."""
    if found.problems or not found.changes:
        return Decision(found.changes, found.problems)
    return Decision(found.changes, script=Script("units", units_variables(found, groups)))


def units_variables(found: units.Units, groups: Mapping[str, str]) -> dict[str, str]:
    """What ``units.sh`` is given for what ``units`` found."""
    timers = [unit for unit in found.restart if unit.endswith(".timer")]
    return {
        "NEW_USERS": " ".join(found.users),
        "ROLES": "",
        "TRY": "",
        "STOP": " ".join(found.stop),
        "RESTART": " ".join(unit for unit in found.restart if unit not in timers),
        "TIMERS": " ".join(timers),
        "REMOVE": " ".join(found.remove),
        "REMOVE_ENVS": " ".join(found.remove_envs),
        "WRITE": " ".join(found.write or {}),
        "ENVS": " ".join(f"{name}:{groups[name]}" for name in found.envs or {}),
        **{f"FILE_{index}": text for index, text in enumerate((found.write or {}).values())},
        **{f"ENV_{index}": text for index, text in enumerate((found.envs or {}).values())},
    }


def fallback(target: Target, box: Box) -> Decision:
    """Timers while pg_cron does not do the work, and none once it does."""
    if unknown := no_server(box):
        return Decision(unknown=unknown)
    found = box.observed
    if not box.standby and not (found and found.installed):
        return Decision(unknown=UNTIL_APPLIED)
    wanted = not box.standby and not (found and carried(found))
    made = box_fallback.decide(
        target.plan, box, target.database, wanted=wanted, script=target.fallback_script
    )
    return fallback_decision(target, made)


def fallback_decision(target: Target, made: box_fallback.Fallback) -> Decision:
    """The script that makes what ``box_fallback`` found."""
    if not made.changes:
        return Decision()
    write, statements = made.write or {}, made.statements or {}
    variables = {
        "WRITE": " ".join(write),
        "STATEMENTS": " ".join(statements),
        "TIMERS": " ".join(made.timers),
        "REMOVE": " ".join(made.remove),
        "SCRIPT": target.fallback_script if statements else "",
        "SCRIPT_FILE": box_fallback.SCRIPT,
        **{f"FILE_{index}": text for index, text in enumerate(write.values())},
        **{f"STATEMENT_{index}": text for index, text in enumerate(statements.values())},
    }
    return Decision(made.changes, script=Script("timers", variables))


def _missing_libraries(box: Box, conf: box_conf.Conf) -> Problem | None:
    """A library that is not there keeps the server from starting at all."""
    names = [lib for lib in conf.libraries if "/" not in lib.removeprefix("$libdir/")]
    plain = {lib: lib.removeprefix("$libdir/").removesuffix(".so") + ".so" for lib in names}
    gone = [lib for lib, file in plain.items() if file not in box.libraries]
    if not gone:
        return None
    version = cluster_of(box).version
    return Problem(
        "shared_preload_libraries",
        f"{', '.join(gone)} is not installed for PostgreSQL {version}: the server would not start",
        f"apt-get install postgresql-{version}-{gone[0].removeprefix('pg_')}, or take it out",
    )
