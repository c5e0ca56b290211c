"""`train-ledger top`: how does the run go, as it goes?"""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Annotated

import typer

from train_ledger.answer import ExitCode
from train_ledger.cli.options import Json, Run, seconds

if TYPE_CHECKING:
    from rich.console import Console

    from train_ledger.watch.following import Following

__all__ = ["top"]

_PIPED_WIDTH = 120


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
    where there is one, its verdict stands first. Ctrl-C ends it.

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
    lives = sys.stdout.isatty() and not once and not json
    console = Console(
        no_color=not wants_colour(sys.stdout), width=None if sys.stdout.isatty() else _PIPED_WIDTH
    )
    try:
        if lives:
            _live(following, console, every_s, ranks)
        else:
            _once(following, console, ranks, as_json=json)
    finally:
        following.close()
    return ExitCode.NOTHING_WRONG


def _live(following: Following, console: Console, every_s: float, ranks: int) -> None:
    from rich.live import Live
    from rich.text import Text

    from train_ledger.watch.top import screen

    with Live(console=console, auto_refresh=False, screen=True) as live:
        try:
            while True:
                began_s = time.monotonic()
                view = following.look()
                if (share := following.progress) is not None:
                    live.update(Text(f"reading what the run has written: {share:.0%}"), refresh=True)
                    continue
                live.update(screen(view, ranks=ranks), refresh=True)
                time.sleep(max(0.0, every_s - (time.monotonic() - began_s)))
        except KeyboardInterrupt:
            return


def _once(following: Following, console: Console, ranks: int, *, as_json: bool) -> None:
    from train_ledger.cli.output import show
    from train_ledger.dash.page.web import state_json
    from train_ledger.watch.top import screen

    view = following.look()
    while following.progress is not None:
        view = following.look()
    if as_json:
        show(state_json(view))
        return
    with console.capture() as capture:
        console.print(screen(view, ranks=ranks))
    show("\n".join(line.rstrip() for line in capture.get().splitlines()))
