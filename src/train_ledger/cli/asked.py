"""By which command was an answer asked for?

A page that is sent on says how it was made, so that whoever gets it can make it again.
"""

from __future__ import annotations

import shlex
import time
from collections.abc import Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from train_ledger.render import Made

__all__ = ["made", "remember"]

_COMMAND: ContextVar[str] = ContextVar("command", default="")


def remember(arguments: Sequence[str]) -> None:
    """Keep what was typed behind `train-ledger`."""
    _COMMAND.set(shlex.join(["train-ledger", *arguments]))


def made(verb: str, as_known_t: float | None = None) -> Made:
    """How the answer of a verb is made, now; `as_known_t` is what --at said."""
    from train_ledger import __version__
    from train_ledger.render import Made

    return Made(verb, _COMMAND.get(), __version__, time.time(), as_known_t)
