"""What does a person see who waits for long work?

A bar on standard error, where that is a terminal, from half a second on; it goes when the answer comes. Where
it is none, a line now and then, and only of work that takes long. Nothing of it is ever on standard output.
"""

from __future__ import annotations

import functools
import os
import stat
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, ParamSpec, TextIO

from train_ledger.headway import Headway, Unit, heard_by

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

__all__ = ["Bar", "Lines", "amount", "clear_bar", "end_bar", "is_in_front", "listening", "with_progress"]

_SHOWN_FROM_S = 0.5
_EVERY_S = 0.1
_FIRST_LINE_S = 10.0
_LINE_EVERY_S = 30.0
_WIDE_COLUMNS = 60
"""Of a narrower terminal the words and figures take all."""

_Options = ParamSpec("_Options")


def with_progress(verb: Callable[_Options, int]) -> Callable[_Options, int]:
    """The verb, and how far it is is shown while it works."""

    @functools.wraps(verb)
    def shown(*args: _Options.args, **kwargs: _Options.kwargs) -> int:
        with listening(sys.stderr):
            return verb(*args, **kwargs)

    return shown


@contextmanager
def listening(stream: TextIO) -> Iterator[None]:
    """Shows on `stream` what is told of long work until the context ends, and then nothing of it is left."""
    if not (stream.isatty() and _can_go_back()):
        with heard_by(Lines(stream)):
            yield
        return
    global _bar
    before, _bar = _bar, Bar(stream)
    try:
        with heard_by(_bar):
            yield
    finally:
        _bar.end()
        _bar = before


def clear_bar() -> None:
    """Takes the bar away before something else is said; work that goes on brings it back."""
    if _bar is not None:
        _bar.clear()


def end_bar() -> None:
    """Takes the bar away for good: an answer that comes line by line begins.

    Not where a file takes it: then nobody reads it on the same terminal, as `less` would show it.
    """
    if _bar is not None and not stat.S_ISREG(os.fstat(1).st_mode):
        _bar.end()


_bar: Bar | None = None
"""That of the verb that runs; what else writes to the terminal cannot be handed it."""


def _can_go_back() -> bool:
    return os.environ.get("TERM") not in ("dumb", "unknown")


def is_in_front(fd: int) -> bool:
    """Whether the terminal is this process's to draw on, which it is not behind `&`."""
    try:
        return os.tcgetpgrp(fd) == os.getpgrp()
    except OSError:  # it is nobody's controlling terminal
        return True


class Bar:
    """A bar for each kind of work that goes on; one that is over is not shown."""

    def __init__(self, stream: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream, self._clock = stream, clock
        self._pid = os.getpid()
        self._due_s: float | None = None
        self._ended = False
        self._progress: Progress | None = None
        self._tasks: dict[str, TaskID] = {}
        self._untold: dict[str, Headway] = {}

    def __call__(self, headway: Headway) -> None:
        if self._ended or os.getpid() != self._pid:
            return
        now_s = self._clock()
        if self._due_s is None:
            self._due_s = now_s + _SHOWN_FROM_S
        self._untold[headway.what] = headway
        if now_s < self._due_s:
            return
        self._due_s = now_s + _EVERY_S
        with suppress(OSError):  # the terminal is gone; the answer may go elsewhere
            self._draw()

    def clear(self) -> None:
        """Nothing of it is left on the screen."""
        if self._progress is not None:
            with suppress(OSError):
                self._progress.stop()
            self._progress = None
            self._tasks.clear()
            self._due_s = None

    def end(self) -> None:
        self.clear()
        self._ended = True

    def _draw(self) -> None:
        if not is_in_front(self._stream.fileno()):
            return
        if self._progress is None:
            if all(it.is_over for it in self._untold.values()):
                return
            self._progress = _progress(self._stream)
            self._progress.start()
        for headway in self._untold.values():
            self._update(self._progress, headway)
        self._untold.clear()
        self._progress.refresh()

    def _update(self, progress: Progress, headway: Headway) -> None:
        task = self._tasks.get(headway.what)
        if task is None:
            task = self._tasks[headway.what] = progress.add_task(headway.what, visible=False, amount="")
        progress.update(
            task,
            completed=headway.done,
            total=headway.total,
            visible=not headway.is_over,
            amount=amount(headway, brief=progress.console.width < _WIDE_COLUMNS),
        )


def _progress(stream: TextIO) -> Progress:
    """Ours to redraw: a thread that did would be within every process that is begun meanwhile."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    from train_ledger.render import wants_colour

    colour = wants_colour(stream)
    console = Console(file=stream, force_terminal=True, no_color=not colour, highlight=False)
    console.width -= len("^C")  # which the terminal writes behind the bar, and must not begin a line
    bar = BarColumn(bar_width=None, complete_style="cyan", finished_style="cyan", pulse_style="cyan")
    wide = [bar] if console.width >= _WIDE_COLUMNS else []
    return Progress(
        TextColumn("{task.description}", markup=False),
        *wide,
        TextColumn("{task.fields[amount]}", markup=False),
        TimeRemainingColumn(compact=True),
        console=console,
        auto_refresh=False,
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
    )


class Lines:
    """A line of text when work has gone on for long, and then now and then."""

    def __init__(self, stream: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream, self._clock = stream, clock
        self._due_s = clock() + _FIRST_LINE_S

    def __call__(self, headway: Headway) -> None:
        if headway.is_over or self._clock() < self._due_s:
            return
        self._due_s = self._clock() + _LINE_EVERY_S
        with suppress(OSError):
            print(f"train-ledger: {headway.what}: {amount(headway)}", file=self._stream, flush=True)


def amount(headway: Headway, *, brief: bool = False) -> str:
    """How much was done, and of how much, in words; in `brief` the share alone, where it is known.

    >>> amount(Headway("reading dumps", 3e6, 12e6, "bytes"))
    '25 %, 3.0 of 12.0 MB'
    """
    share = "" if not headway.total else f"{min(1.0, headway.done / headway.total):.0%}".replace("%", " %")
    if share and (brief or headway.unit == "seconds"):
        return share
    done, total = _figure(headway.done, headway.unit), headway.total
    told = done if total is None else f"{done} of {_figure(total, headway.unit)}"
    unit = "MB" if headway.unit == "bytes" else headway.unit
    return f"{share}, {told} {unit}" if share else f"{told} {unit}"


def _figure(number: float, unit: Unit) -> str:
    return f"{number / 1e6:,.1f}" if unit == "bytes" else f"{number:,.0f}"
