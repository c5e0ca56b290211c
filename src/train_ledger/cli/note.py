"""`train-ledger note`: what did the person on call do, and when?"""

from __future__ import annotations

from typing import Annotated

import typer

from train_ledger.answer import ExitCode
from train_ledger.cli.options import Json, Run, moment

__all__ = ["note"]


def note(
    run: Run,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="What happened.", show_default=False)],
    at: Annotated[
        float | None,
        typer.Option(
            "--at",
            metavar="T",
            parser=moment,
            help="When it happened, if not now: unix seconds or ISO 8601 (without a zone: this machine's).",
            show_default=False,
        ),
    ] = None,
    decision: Annotated[
        bool, typer.Option("--decision", help="It was decided what to do: this ends the decision.")
    ] = False,
    by: Annotated[
        str | None, typer.Option(metavar="NAME", help="Who says so, if not you.", show_default=False)
    ] = None,
    json: Json = False,
) -> int:
    """Write a line into the timeline of a run.

    It stands in the postmortem beside what the tool saw, with your name. One small file below RUN/notes, so
    that nobody who writes at the same time is in the way.

    \b
    Example:
      train-ledger note runs/r42 "collected the dumps; node037 it is"
      train-ledger note runs/r42 "node037 excluded, restarted" --decision --at 2026-11-30T03:09:00Z
    """
    import getpass
    import socket
    import time

    from train_ledger.cli.leave import BadInputError
    from train_ledger.cli.output import show
    from train_ledger.cli.run_wanted import run_to_write
    from train_ledger.ledger.notes import Note, write_note
    from train_ledger.render import as_json, harmless

    run_dir = run_to_write(run, "note")
    said = " ".join(text.split())
    if not said:
        raise BadInputError("an empty note says nothing; write what happened")
    try:
        name = by or getpass.getuser()
    except (KeyError, OSError):  # a container's user may have no name
        raise BadInputError("it is not known who you are; say so with --by NAME") from None
    now = time.time()
    t = now if at is None else at
    if t < 0:
        raise BadInputError(f"--at {t:.0f}: that is before 1970")
    written = write_note(run_dir, Note(t, said, name, socket.gethostname(), now, decision))
    if json:
        show(as_json({"note": written, "t": t, "by": name, "decision": decision}))
    else:
        show(f"noted in {harmless(run_dir.path / written)}")
    return ExitCode.NOTHING_WRONG
