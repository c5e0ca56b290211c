"""Which verb? One thin file for each."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from typing import Any, NoReturn

__all__ = ["app", "main"]

_INTERRUPTED = 130


def main() -> None:
    """The command `train-ledger`; Ctrl-C is answered while it still loads, and no more once it is done."""
    try:
        from train_ledger.cli import command_line

        command_line.main()
    except KeyboardInterrupt:
        _leave_interrupted()
    except SystemExit as end:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        if end.code == _INTERRUPTED:
            _leave_interrupted()
        raise


def _leave_interrupted() -> NoReturn:
    # An interrupt within exec(), as dataclasses use it, is remembered by the interpreter, which would end by
    # SIGINT instead of telling the status.
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, AttributeError):
            stream.flush()
    os._exit(_INTERRUPTED)


def __getattr__(name: str) -> Any:
    """`app`, the typer application, is loaded when it is asked for."""
    if name != "app":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from train_ledger.cli.command_line import app

    return app
