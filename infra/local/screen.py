"""How the demo is shown: lines with their time, and below them a picture that moves.

The picture moves only on a terminal. Elsewhere it is one plain line now and then.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.json import JSON
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from infra.local.jobs import STATES, Look

_STYLES = {"queued": "", "running": "yellow", "done": "green", "failed": "bold red"}
_LINE_SECONDS = 10.0
_WIDEST = 76


@dataclass(frozen=True, slots=True)
class Picture:
    """One moment: the jobs, what each worker is at, and the way to the next sweep in seconds."""

    look: Look
    actions: Sequence[str]
    workers: Mapping[str, str]
    to_sweep: float
    between_sweeps: float


class Screen:
    """Shows the story as it goes on."""

    def __init__(self, *, stderr: bool) -> None:
        """Show it on stdout, or on stderr where stdout is for machines."""
        self._console = Console(stderr=stderr, highlight=False)
        self._moves = self._console.file.isatty() and not self._console.is_dumb_terminal
        self._began = time.monotonic()

    def say(self, text: str, *below: RenderableType, style: str = "") -> None:
        """Print one line of the story, and what belongs below it."""
        grid = Table.grid(padding=(0, 2))
        grid.add_column(justify="right", style="dim", no_wrap=True, min_width=6)
        grid.add_column(overflow="fold")
        seconds = time.monotonic() - self._began
        grid.add_row(f"{seconds:.1f} s", Text(text, style=style))
        for part in below:
            grid.add_row("", part)
        self.show(grid)

    def tell(self, text: str, style: str = "") -> None:
        """Print a line without a time."""
        self.show(Text(text, style=style))

    def show(self, what: RenderableType) -> None:
        """Print anything, as wide as is good to read."""
        width = min(self._console.width, _WIDEST)
        if self._moves:
            self._console.print(what, width=width)
            return
        # A table fills each line with blanks, which a file need not keep.
        with self._console.capture() as captured:
            self._console.print(what, width=width)
        for line in captured.get().splitlines():
            self._console.out(line.rstrip())

    @contextmanager
    def picture(self) -> Iterator[Callable[[Picture], None]]:
        """Give a function that shows a moment; call it often. The last one stays on the screen."""
        if not self._moves:
            yield self._now_and_then()
            return
        with Live(console=self._console, auto_refresh=False) as live:
            yield lambda picture: live.update(_drawn(picture), refresh=True)

    def _now_and_then(self) -> Callable[[Picture], None]:
        due = time.monotonic() + _LINE_SECONDS

        def show(picture: Picture) -> None:
            nonlocal due
            if time.monotonic() >= due:
                due = time.monotonic() + _LINE_SECONDS
                self.say(_told(picture))

        return show


def quoted(text: str, style: str = "") -> Text:
    """Return SQL or a server's message, to stand below a line."""
    return Text(text, style=style)


def document(value: Any) -> Text:
    """Return a value as JSON that people can read; long lines fold, so that nothing is cut off."""
    text = JSON.from_data(value, indent=2).text
    text.no_wrap, text.overflow = False, "fold"
    return text


def pairs(rows: Mapping[str, str]) -> Table:
    """Return two columns: names and what is said of them."""
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="bold", no_wrap=True)
    grid.add_column(overflow="fold")
    for name, text in rows.items():
        grid.add_row(name, Text(text))
    return grid


def _drawn(picture: Picture) -> RenderableType:
    return Group("", _table(picture), "", pairs(picture.workers), _bar(picture), "")


def _table(picture: Picture) -> Table:
    """One column an action: this fits 40 columns, and one row an action does not."""
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 1, 0, 0))
    table.add_column("")
    for action in picture.actions:
        table.add_column(action, justify="right")
    for state in STATES:
        numbers = [picture.look.counts.get((action, state), 0) for action in picture.actions]
        cells = [Text(str(number), style=_STYLES[state] if number else "dim") for number in numbers]
        table.add_row(Text(state, style=_STYLES[state]), *cells)
    return table


def _bar(picture: Picture) -> Table:
    gone = picture.between_sweeps - picture.to_sweep
    grid = Table.grid(padding=(0, 2), expand=False)
    grid.add_row(
        Text("sweep in", style="bold"),
        Text(f"{picture.to_sweep:3.0f} s"),
        ProgressBar(total=picture.between_sweeps, completed=max(gone, 0), width=24),
    )
    return grid


def _told(picture: Picture) -> str:
    numbers = ", ".join(f"{picture.look.total(state)} {state}" for state in STATES)
    return f"{numbers}; next sweep in {picture.to_sweep:.0f} s"
