"""Which verb? One thin file for each."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
"""As `typing` has it. Until `main` runs Ctrl-C cannot be answered: what takes time is not loaded here."""

if TYPE_CHECKING:
    from typing import Any, NoReturn

__all__ = ["app", "main"]

_INTERRUPTED = 130
_TERMINATED = 143


def main() -> None:
    """The command `train-ledger`; Ctrl-C ends it at once while it still loads, and no more once it is done.

    SIGTERM ends it as it would by itself, but what it started and unpacked goes first.
    """
    try:
        _answer_signals()
        from train_ledger.cli import command_line

        command_line.main()
    except ModuleNotFoundError as error:
        if (error.name or "train_ledger").partition(".")[0] == "train_ledger":
            raise
        _say_what_is_missing(error.name)
    except KeyboardInterrupt:
        _leave_interrupted()
    except SystemExit as end:
        _leave(end.code)
        raise


def _answer_signals() -> None:
    """Those that whoever started us has not taken for something else."""
    import signal

    from train_ledger.cli.before_work import interrupted

    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, interrupted)
    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, _terminated)


def _terminated(number: int, _: object) -> NoReturn:
    import signal

    signal.signal(number, signal.SIG_DFL)  # the second one ends it at once
    raise SystemExit(_TERMINATED)


def _leave(status: object) -> None:
    import signal

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if status == _INTERRUPTED:
        _leave_interrupted()
    if status == _TERMINATED:
        os.kill(os.getpid(), signal.SIGTERM)


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
    import contextlib

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
