"""Which verb? One thin file for each."""

from __future__ import annotations

import sys
from typing import Any

__all__ = ["app", "main"]

_INTERRUPTED = 130


def main() -> None:
    """The command `train-ledger`; Ctrl-C is answered from its first moment on, while it still loads."""
    try:
        from train_ledger.cli import command_line

        command_line.main()
    except KeyboardInterrupt:
        sys.exit(_INTERRUPTED)


def __getattr__(name: str) -> Any:
    """`app`, the typer application, is loaded when it is asked for."""
    if name != "app":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from train_ledger.cli.command_line import app

    return app
