"""``shared_preload_libraries``: read, merged with what we need, and written where it belongs.

The list is read by Postgres's own rules (``SplitDirectoriesString`` in its ``varlena.c``): commas,
optional double quotes with ``""`` for a quote, whitespace around elements dropped, case kept. A
list that breaks them makes the server start with no library at all, and a library that is missing
keeps it from starting. So what is in the list stays, in its order. What is already right is not
rewritten: a new spelling alone would ask for a restart.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from infra.errors import RuleError
from infra.extensions import EXTENSIONS, MANAGED_OWN, managed_default

_BLANK = " \t\n\r\f"
_PLAIN = re.compile(r"[A-Za-z0-9_$./+-]+")
_MANAGED = frozenset({"rds", "aurora"})
_LONGEST_NAME = 1023
_ALLOWED = "library names with commas between them, double quotes where a name needs them"
_NO_LIBRARY = "a server with such a list starts without any library"


@dataclass(frozen=True, slots=True)
class Merge:
    """The outcome: the whole ``text`` as it should be; ``same``: nothing needs to be written.

    ``added`` and ``removed`` name libraries. What RDS puts there by itself counts as neither.
    """

    text: str
    same: bool
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()


def parse(text: str | None) -> tuple[str, ...]:
    """Return the elements without their quotes; none for None, empty or blank text.

    Raises RuleError where Postgres would not accept the list, and for an element that is empty.
    """
    rest = (text or "").strip(_BLANK)
    elements: list[str] = []
    more = bool(rest)
    while more:
        element, rest = _take(rest, text or "", first=not elements)
        elements.append(element)
        more = rest.startswith(",")
        rest = rest[1:].lstrip(_BLANK)
    return tuple(elements)


def _take(rest: str, text: str, *, first: bool) -> tuple[str, str]:
    """Return the first element of ``rest``, and what follows it from the comma on."""
    if rest.startswith('"'):
        return _take_quoted(rest, text)
    element, comma, behind = rest.partition(",")
    element = element.rstrip(_BLANK)
    if not element:
        where = "leading" if first else "trailing" if not rest else "doubled"
        raise _broken(f"the list has a {where} comma, so an element is empty", text)
    return element, comma + behind


def _take_quoted(rest: str, text: str) -> tuple[str, str]:
    found = re.match(r'"((?:[^"]|"")*+)"', rest)
    if found is None:
        raise _broken("the list has a quote that is not closed", text)
    behind = rest[found.end() :].lstrip(_BLANK)
    if behind and not behind.startswith(","):
        raise _broken("the list has text behind a closing quote", text)
    if not found[1]:
        raise _broken("the list has an empty element", text)
    return found[1].replace('""', '"'), behind


def _broken(problem: str, text: str) -> RuleError:
    return RuleError(
        f"{problem}; {_NO_LIBRARY}",
        got=text,
        allowed=_ALLOWED,
        hint="mend shared_preload_libraries by hand first, such as 'pg_stat_statements,pg_cron'",
    )


def merge(
    current: str | None,
    want: Sequence[str],
    *,
    target: str = "box",
    family: str | None = None,
    remove: Sequence[str] = (),
    allow_removal: bool = False,
) -> Merge:
    """Return the list that keeps ``current``, holds all of ``want`` and none of ``remove``.

    ``current`` is the text in force, None if never set. On ``rds`` and ``aurora`` names have no
    case, a list that was never set starts from the default of the parameter group's ``family``, and
    libraries that RDS adds itself are left to it. Raises RuleError for a list that a server could
    not start with, and for a removal without ``allow_removal``.
    """
    managed = target in _MANAGED
    present = parse(current)
    if managed:
        have = [each.lower() for each in present if _key(each.lower()) not in MANAGED_OWN]
        want, remove = [each.lower() for each in want], [each.lower() for each in remove]
        have = have if present else list(managed_default(family))
    else:
        have = list(present)
        _check_case(have, want, current)
    added = _missing(have, want)
    removed = _removable(have, want, remove)
    if removed and not allow_removal:
        raise _removal_refused(removed, current)
    _check_first(have, want, current)
    same = not added and not removed
    keep_spelling = same and len(have) == len(present)
    kept = [each for each in have if each not in removed]
    text = current or "" if keep_spelling else _render(_placed(kept, added), managed=managed)
    return Merge(text, same, tuple(added), tuple(removed))


def _key(element: str) -> str:
    """Return what makes two elements the same library."""
    return element.removeprefix("$libdir/").removesuffix(".so")


def contains(current: str | None, lib: str) -> bool:
    """Tell whether the list has the library: the whole name, ``$libdir/`` and ``.so`` apart."""
    return _key(lib) in map(_key, parse(current))


def _missing(have: Iterable[str], want: Iterable[str]) -> list[str]:
    known = {_key(each) for each in have}
    added = []
    for lib in want:
        if _key(lib) not in known:
            known.add(_key(lib))
            added.append(lib)
    return added


def _removable(have: Iterable[str], want: Iterable[str], remove: Iterable[str]) -> list[str]:
    unwanted = {_key(each) for each in remove} - {_key(each) for each in want}
    return list(dict.fromkeys(each for each in have if _key(each) in unwanted))


def _placed(have: Sequence[str], added: Iterable[str]) -> list[str]:
    result = list(have)
    for lib in sorted(added, key=_rank):
        result.insert(_place(result, lib), lib)
    return result


def _rank(lib: str) -> tuple[bool, bool, int]:
    """Sort those that go first, in the table's order, before the rest; followers go last."""
    extension = EXTENSIONS.get(_key(lib))
    if extension is None:
        return True, False, 0
    order = list(EXTENSIONS).index(extension.name) if extension.first else 0
    return not extension.first, bool(extension.after), order


def _place(libs: Sequence[str], lib: str) -> int:
    """Return the index at which ``lib`` goes in: the end, unless an order is needed."""
    extension = EXTENSIONS.get(_key(lib))
    if extension is not None and extension.first:
        behind = [i for i, each in enumerate(libs) if _rank(each) > _rank(lib)]
    else:
        followers = {name for name, each in EXTENSIONS.items() if _key(lib) in each.after}
        behind = [i for i, each in enumerate(libs) if _key(each) in followers]
    return behind[0] if behind else len(libs)


def _check_first(have: Sequence[str], want: Sequence[str], current: str | None) -> None:
    wanted = [EXTENSIONS[_key(each)] for each in want if _key(each) in EXTENSIONS]
    strict = {each.name for each in wanted if each.or_fails}
    for index, lib in enumerate(have):
        if _key(lib) in strict and any(_rank(each) > _rank(lib) for each in have[:index]):
            raise RuleError(
                f"{_key(lib)} is in the list, but not first",
                got=current,
                allowed=f"{_key(lib)} before all other libraries",
                hint=f"move {_key(lib)} to the front of shared_preload_libraries and restart",
            )


def _check_case(have: Sequence[str], want: Sequence[str], current: str | None) -> None:
    names = {_key(each) for each in want if each == each.lower()} | set(EXTENSIONS)
    for lib in (*have, *want):
        name = _key(lib)
        if name not in names and name.lower() in names:
            raise RuleError(
                f"{lib} is not {name.lower()}: names of libraries have case, and the server would "
                "not start",
                got=current,
                allowed=name.lower(),
                hint=f"write {name.lower()} in shared_preload_libraries",
            )


def _removal_refused(removed: Sequence[str], current: str | None) -> RuleError:
    names = ", ".join(removed)
    return RuleError(
        f"{names} would be taken out of the list, and somebody may rely on it",
        got=current,
        allowed="libraries are only added, unless allowPreloadRemoval is true",
        hint=f"set allowPreloadRemoval: true to drop {names}, or keep it among the libraries",
    )


def _render(libs: Sequence[str], *, managed: bool) -> str:
    if managed:
        for lib in libs:
            _check_plain(lib)
    return render_list(libs)


def _check_plain(lib: str) -> None:
    # A value with quotes or spaces is refused by the API, after the preview.
    if not _PLAIN.fullmatch(lib):
        raise RuleError(
            "a parameter group takes plain names only",
            got=lib,
            allowed="letters, digits and _ $ . / + -",
            hint="take it out of the list of libraries",
        )


def render_list(libs: Iterable[str]) -> str:
    """Return the list as text that ``parse`` and Postgres read back.

    Raises RuleError for a name that is empty, has a NUL character or more than 1023 bytes.
    """
    return ",".join(_quote(each) for each in libs)


def _quote(lib: str) -> str:
    # Postgres cuts a longer path, without a word.
    if not lib or "\0" in lib or len(lib.encode(errors="replace")) > _LONGEST_NAME:
        raise RuleError(
            "this is not the name of a library",
            got=lib,
            allowed="1 to 1023 bytes, no NUL character",
            hint="write it like pg_cron",
        )
    return lib if _PLAIN.fullmatch(lib) else '"' + lib.replace('"', '""') + '"'


def render_conf_value(text: str) -> str:
    """Return ``text`` as the quoted value of a line in a Postgres configuration file."""
    escaped = text.replace("\\", "\\\\").replace("'", "''")
    return "'" + escaped.replace("\n", "\\n").replace("\r", "\\r") + "'"


def render_alter_system(libs: Sequence[str]) -> str:
    """Return the right side of ``ALTER SYSTEM SET shared_preload_libraries =``.

    One literal for each library: a single literal would be taken for one library of that name.
    Raises RuleError for an empty list (an empty literal is a library too) and for a line break.
    """
    if not libs:
        raise RuleError(
            "ALTER SYSTEM SET cannot write an empty list",
            got=libs,
            allowed="one library or more",
            hint="ALTER SYSTEM RESET shared_preload_libraries",
        )
    return ", ".join(_literal(each) for each in libs)


def _literal(lib: str) -> str:
    _quote(lib)
    if "\n" in lib or "\r" in lib:
        raise RuleError(
            "ALTER SYSTEM takes no line break",
            got=lib,
            allowed="names on one line",
            hint="write the list into a configuration file",
        )
    escaped = lib.replace("'", "''").replace("\\", "\\\\")
    return f"E'{escaped}'" if "\\" in lib else f"'{escaped}'"
