"""Which verb? One thin file for each."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from typing import Any, NoReturn

__all__ = ["app", "main"]

_INTERRUPTED = 130
_TERMINATED = 128 + signal.SIGTERM


def main() -> None:
    """The command `train-ledger`; Ctrl-C is answered while it still loads, and no more once it is done.

    SIGTERM ends it as it would by itself, but what it started and unpacked goes first.
    """
    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, _terminated)
    try:
        from train_ledger.cli import command_line

        command_line.main()
    except ModuleNotFoundError as error:
        if (error.name or "train_ledger").partition(".")[0] == "train_ledger":
            raise
        _say_what_is_missing(error.name)
    except KeyboardInterrupt:
        _leave_interrupted()
    except SystemExit as end:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        if end.code == _INTERRUPTED:
            _leave_interrupted()
        if end.code == _TERMINATED:
            os.kill(os.getpid(), signal.SIGTERM)
        raise


def _terminated(number: int, _: object) -> NoReturn:
    signal.signal(number, signal.SIG_DFL)  # the second one ends it at once
    raise SystemExit(_TERMINATED)


def _say_what_is_missing(module: str | None) -> NoReturn:
    """An environment for training alone was made without the command's dependencies."""
    sys.stderr.write(
        f"train-ledger: the command needs the Python module {module}, which is not installed here; training "
        "needs nothing else, but the command does: pip install . in a clone\n"
    )
    raise SystemExit(2)


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
