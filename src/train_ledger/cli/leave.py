"""How does a command end, and what is said when it cannot do its work?

One place turns every error that a person can mend into one line on standard error and exit status 2. What is
not listed here is a fault of ours: it keeps its traceback and ends with 3, never with 1, which a script would
take for "trouble found".
"""

from __future__ import annotations

import contextlib
import functools
import os
import signal
import sys
import traceback
from collections.abc import Callable
from types import TracebackType
from typing import ParamSpec

import typer

from train_ledger.answer import ExitCode
from train_ledger.cli.before_work import INTERRUPTED, interrupted
from train_ledger.cli.progress import clear_bar

__all__ = [
    "BadInputError",
    "complain",
    "crash",
    "ends_well",
    "hold_streams",
    "left_by_reader",
    "told",
]

_STANDARD_ERROR = 2

_MENDABLE = (
    ("train_ledger.cli.leave", "BadInputError"),
    ("train_ledger.run_dir", "RunDirError"),
    ("train_ledger.config", "ConfigError"),
    ("train_ledger.dash.deploy.settings", "DeployError"),
    ("train_ledger.dash.grafana.dashboard", "DashboardError"),
    ("train_ledger.ledger.lock", "KeeperHeld"),
    ("train_ledger.ledger.journal", "JournalError"),
    ("train_ledger.ops.gantt.selection", "GanttError"),
    ("train_ledger.ops.hosts.named", "HostsError"),
    ("train_ledger.ops.rank.looking", "RankError"),
    ("train_ledger.sources.prometheus.address", "PrometheusError"),
    ("train_ledger.ops.slow.wanted", "WantedError"),
    ("train_ledger.ops.hosts.launch", "LauncherError"),
    ("train_ledger.ops.preflight.records", "PreflightError"),
    ("train_ledger.chaos.servers", "ServerError"),
)
"""Module and name of the errors whose text is written for the person who typed the command."""

_Options = ParamSpec("_Options")


class BadInputError(Exception):
    """What was asked for cannot be done with what was given; the text says what to do."""


def ends_well(verb: Callable[_Options, int]) -> Callable[_Options, None]:
    """The verb as a command: its result is the exit status, its mendable errors are one line."""

    @functools.wraps(verb)
    def command(*args: _Options.args, **kwargs: _Options.kwargs) -> None:
        raise typer.Exit(_status(functools.partial(verb, *args, **kwargs)))

    return command


def _status(verb: Callable[[], int]) -> int:
    try:
        _be_interrupted_in_order()
        status = verb()
        sys.stdout.flush()
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        return left_by_reader()
    except OSError as error:
        return told(error)
    except _mendable() as error:
        complain(str(error))
        return ExitCode.BAD_INPUT
    return int(status)


def _be_interrupted_in_order() -> None:
    """From now on Ctrl-C lets what was begun be ended; until now it ended the process at once."""
    if signal.getsignal(signal.SIGINT) is interrupted:  # else somebody else answers it
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _mendable() -> tuple[type[Exception], ...]:
    """The error classes of the rooms that were loaded; an error of another room cannot have been raised."""
    loaded = ((sys.modules.get(module), name) for module, name in _MENDABLE)
    return tuple(getattr(module, name) for module, name in loaded if module)


def told(error: OSError, about: str = "") -> int:
    """Says which file the system refused; `about` names it where the error does not. The exit status."""
    about = error.filename or about
    complain(f"{about}: {error.strerror or error}" if about else error.strerror or str(error))
    try:
        sys.stdout.flush()
    except OSError:
        _read_by_nobody()
    return ExitCode.BAD_INPUT


def complain(text: str) -> None:
    """One line on standard error."""
    from train_ledger.render import harmless

    clear_bar()
    with contextlib.suppress(OSError):  # nobody is left to be told
        print(f"train-ledger: {harmless(text)}", file=sys.stderr, flush=True)


def hold_streams() -> None:
    """Keeps the places of standard streams that were closed, or the next file that is opened would take them.

    What is said on a closed standard error goes nowhere, above all not into the answer; without a standard
    output there is no answer, and the command ends here.
    """
    closed = sys.stdout is None
    while (place := os.open(os.devnull, os.O_RDWR)) <= _STANDARD_ERROR:
        os.set_inheritable(place, True)
    os.close(place)
    if sys.stderr is None:
        sys.stderr = open(_STANDARD_ERROR, "w", closefd=False)  # noqa: SIM115
    if closed:
        complain("standard output is closed; the answer has nowhere to go")
        sys.exit(ExitCode.BAD_INPUT)


def left_by_reader() -> int:
    """Ends quietly where nobody reads our output any more; the exit status."""
    _read_by_nobody()
    return INTERRUPTED


def _read_by_nobody() -> None:
    """Lets the interpreter flush into nothing at its end, instead of complaining once more."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def crash(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """`sys.excepthook`: a fault of ours, told in full; Ctrl-C is none."""
    if issubclass(kind, KeyboardInterrupt):
        raise SystemExit(INTERRUPTED)
    traceback.print_exception(kind, error, trace)
    print("train-ledger: this is a fault of train-ledger itself; please report it", file=sys.stderr)
    raise SystemExit(int(ExitCode.CANNOT_TELL))
