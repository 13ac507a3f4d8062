"""One field of a cron schedule, by the rules of pg_cron, and one fault at a time.

Where pg_cron silently takes a field for something else than it says, the field is refused. Sources:
``get_list``, ``get_range`` and ``get_number`` in pg_cron's ``src/entry.c``, v1.4.2 to v1.6.7.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from infra.errors import RuleError


@dataclass(frozen=True, slots=True)
class FieldRule:
    """What a field may hold. ``cycle``: after how many values the first one comes again."""

    name: str
    low: int
    high: int
    cycle: int
    names: tuple[str, ...] = ()

    @property
    def allowed(self) -> str:
        """Return the values in words."""
        words = f" or {self.names[0]} to {self.names[-1]}" if self.names else ""
        return f"{self.name}: {self.low} to {self.high}{words}, ranges a-b, steps a-b/n and */n"


_MONTHS = (
    *("jan", "feb", "mar", "apr", "may", "jun"),
    *("jul", "aug", "sep", "oct", "nov", "dec"),
)
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")

RULES = (
    FieldRule("minute", 0, 59, 60),
    FieldRule("hour", 0, 23, 24),
    FieldRule("day of month", 1, 31, 31),
    FieldRule("month", 1, 12, 12, _MONTHS),
    FieldRule("day of week", 0, 7, 7, _DAYS),
)

_PART = re.compile(
    r"(?:(?P<star>\*)|(?P<first>[0-9A-Za-z]+)(?P<range>-(?P<last>[0-9A-Za-z]*))?)"
    r"(?P<slash>/(?P<step>[0-9A-Za-z]*))?(?P<rest>.*)",
    re.DOTALL,
)
_SIGNS = {
    "?": "write * instead of ?",
    "L": "write $ as the day of month for the last day (pg_cron 1.6 and later)",
    "W": "pg_cron has no nearest weekday; choose days of the week, such as 1-5",
    "#": "pg_cron has no nth weekday; let the command itself check the date",
    "$": "$ stands alone, and only as the day of month",
}


@dataclass(frozen=True, slots=True)
class Field:
    """A field read: its values, and what of its spelling changes the meaning.

    ``starred``: it begins with ``*``. ``uneven``: a step whose last gap is shorter than the others.
    """

    text: str
    values: frozenset[int]
    starred: bool
    uneven: str | None = None


def parse_field(text: str, rule: FieldRule, schedule: str) -> Field:
    """Return the field that ``text`` spells. Raises RuleError, quoting the whole ``schedule``."""
    values: set[int] = set()
    uneven = None
    for part in text.split(","):
        found, step = _Part(part, rule, schedule).read()
        values.update(found)
        if step > 1 and _is_uneven(found, step, rule):
            uneven = uneven or part
    if rule.names == _DAYS:
        values = {value % 7 for value in values}
    return Field(text, frozenset(values), text.startswith("*"), uneven)


def _is_uneven(found: range, step: int, rule: FieldRule) -> bool:
    # A range that stops early, such as 8-18/2, is meant to stop; one all the way round is not.
    if found[0] - step >= rule.low or found[-1] + step <= rule.high:
        return False
    last_gap = found[0] + rule.cycle - found[-1]
    return len(found) > 1 and 0 < last_gap != step


def _span(first: int, last: int) -> str:
    return str(first) if first == last else f"{first}-{last}"


@dataclass(frozen=True, slots=True)
class _Part:
    """One element of a field's list, on its way to its values."""

    text: str
    rule: FieldRule
    schedule: str

    def read(self) -> tuple[range, int]:
        """Return the values and the step."""
        found = _PART.fullmatch(self.text)
        if found is None or not self.text:
            raise self._fault("has an element that cannot be read", self._sign_hint(self.text))
        if found["rest"]:
            raise self._fault(f"has trailing {found['rest']!r}", self._sign_hint(found["rest"]))
        first, last = self._ends(found)
        step = self._step(found["step"]) if found["slash"] else 1
        if found["slash"] and found["first"] and not found["range"]:
            written = f"{found['first']}-{self.rule.high}/{found['step']}"
            raise self._fault("has a step without a range", f"write {written}")
        return range(first, last + 1, step), step

    def _ends(self, found: re.Match[str]) -> tuple[int, int]:
        if found["star"]:
            return self.rule.low, self.rule.high
        first = self._number(found["first"])
        last = self._number(found["last"]) if found["range"] else first
        if last < first:
            raise self._fault("has a range that runs backwards", self._backwards_hint(first, last))
        return first, last

    def _backwards_hint(self, first: int, last: int) -> str:
        if self.rule.names == _DAYS:  # 7 is Sunday again
            return f"write {first}-7" if last == 0 else f"write {first}-7,{_span(1, last)}"
        return f"write {_span(first, self.rule.high)},{_span(self.rule.low, last)}"

    def _number(self, written: str) -> int:
        name = written.lower()
        if name in self.rule.names:
            return self.rule.names.index(name) + self.rule.low
        if not written.isdigit():
            raise self._fault(f"has the word {written!r}", self._word_hint(name))
        value = int(written[:9])
        if not self.rule.low <= value <= self.rule.high:
            raise self._fault(f"has {written}, which is out of range", self._limits())
        return value

    def _step(self, written: str) -> int:
        value = int(written[:9]) if written.isdigit() else 0
        if value < 1:
            raise self._fault("has a step that is not 1 or more", "write a step such as */5")
        # Before 1.6.5 pg_cron took it, and only the first value was left.
        if value > self.rule.high:
            raise self._fault(
                f"has a step of {value}, past its last value {self.rule.high}",
                f"write a step up to {self.rule.high}, or a larger unit",
            )
        return value

    def _limits(self) -> str:
        return f"write {self.rule.name} from {self.rule.low} to {self.rule.high}"

    def _word_hint(self, name: str) -> str:
        if name[:3] in self.rule.names:
            return f"names have three letters: {name[:3]}"
        if self.rule.names:
            return f"names have three letters: {', '.join(self.rule.names)}"
        return self._sign_hint(name)

    def _sign_hint(self, text: str) -> str:
        sign = text.upper().lstrip("0123456789")[:1]
        return _SIGNS.get(sign, f"{self._limits()}, or *")

    def _fault(self, problem: str, hint: str) -> RuleError:
        return RuleError(
            f"the {self.rule.name} field {problem}",
            got=self.schedule,
            allowed=self.rule.allowed,
            hint=hint,
        )
