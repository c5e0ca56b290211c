"""`train-ledger top`: how does the run go, as it goes?"""

from __future__ import annotations

import os
import sys
import time
from typing import TYPE_CHECKING, Annotated

import typer

from train_ledger.answer import ExitCode
from train_ledger.cli.options import Json, Run, seconds
from train_ledger.cli.progress import listening

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from train_ledger.watch.following import Following

__all__ = ["top"]

_PIPED_WIDTH = 120
_STATUS = {
    "fine": ExitCode.NOTHING_WRONG,
    "ended": ExitCode.NOTHING_WRONG,
    "trouble": ExitCode.TROUBLE,
    "unsure": ExitCode.CANNOT_TELL,
}
_AWAKE_EVERY_S = 0.25
"""So soon a key is answered, and the screen is drawn anew where the terminal has got another size."""


def top(
    run: Run,
    every_s: Annotated[
        float, typer.Option(parser=seconds, metavar="SECONDS", help="Seconds between two looks.")
    ] = 1.0,
    ranks: Annotated[int, typer.Option(min=1, max=10_000, metavar="N", help="Ranks that are listed.")] = 8,
    once: Annotated[
        bool, typer.Option("--once", help="Show it once and end; so, too, where no terminal reads it.")
    ] = False,
    json: Json = False,
) -> int:
    """Show a run in the terminal as it goes.

    Step, rate, MFU, memory, the ranks of which there is most to say – those in trouble first, then those that
    work longest – and the alerts that hold. Only looks: it writes nothing, pages nobody, and needs no keeper;
    where there is one, its verdict stands first. q or Ctrl-C ends it. Where it is shown once the exit status
    is that of what stands first: 1 is trouble, 3 not known.

    \b
    Example:
      train-ledger top runs/r42
      train-ledger top runs/r42 --ranks 32 --every-s 5
      train-ledger top runs/r42 --once
    """
    from rich.console import Console

    from train_ledger import config
    from train_ledger.render import wants_colour
    from train_ledger.run_dir import RunDir
    from train_ledger.watch.following import Following

    run_dir = RunDir.existing(run)
    following = Following(run_dir, config.load(run_dir))
    lives = sys.stdout.isatty() and os.environ.get("TERM") != "dumb" and not once and not json
    width = None if sys.stdout.isatty() else _PIPED_WIDTH
    colour = wants_colour(sys.stdout)
    console = Console(force_terminal=lives or colour, no_color=not colour, width=width, highlight=False)
    try:
        if not lives:
            return _once(following, console, ranks, as_json=json)
        _live(following, console, every_s, ranks)
    finally:
        following.close()
    return ExitCode.NOTHING_WRONG


def _live(following: Following, console: Console, every_s: float, ranks: int) -> None:
    from rich.live import Live

    from train_ledger.cli.keys import Keys

    with Keys(sys.stdin) as keys, Live(console=console, auto_refresh=False, screen=True) as live:
        shown: RenderableType = ""
        size: tuple[int, int] | None = None
        due_s = 0.0
        try:
            while not keys.wanted_to_quit:
                if time.monotonic() >= due_s:
                    due_s = time.monotonic() + every_s
                    shown = _looked(following, ranks, every_s)
                    due_s = 0.0 if following.progress is not None else due_s
                    size = None
                if size != console.size:  # it is another look, or another terminal
                    size = console.size
                    live.update(shown, refresh=True)
                keys.wait(min(_AWAKE_EVERY_S, max(0.0, due_s - time.monotonic())))
        except KeyboardInterrupt:
            return


def _looked(following: Following, ranks: int, every_s: float) -> RenderableType:
    from rich.text import Text

    from train_ledger.watch.top import screen

    view = following.look()
    if (share := following.progress) is not None:
        return Text(f"reading what the run has written: {share:.0%}   q quits")
    foot = f"{time.strftime('%H:%M:%S %Z')}, every {every_s:g} s; q quits"
    return screen(view, ranks=ranks, foot=foot, fits=True)


def _once(following: Following, console: Console, ranks: int, *, as_json: bool) -> ExitCode:
    from train_ledger.cli.output import show
    from train_ledger.dash.page.headline import headline
    from train_ledger.watch.top import screen

    with listening(sys.stderr):
        view = following.look()
        while following.progress is not None:
            view = following.look()
    if as_json:
        from train_ledger.dash.page.web import state_json

        show(state_json(view))
        return _STATUS[headline(view).tone]
    with console.capture() as capture:
        console.print(screen(view, ranks=ranks))
    show("\n".join(line.rstrip() for line in capture.get().splitlines()))
    return _STATUS[headline(view).tone]
