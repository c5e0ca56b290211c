"""How do we do something that may never return – touch a dead file server, walk a big dump – and go on?"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

__all__ = ["within"]

T = TypeVar("T")
Other = TypeVar("Other")


def within(timeout_s: float, call: Callable[[], T], otherwise: Other) -> T | Other:
    """What `call` returns if it does so in time, else `otherwise`; the call then goes on by itself, unheeded.

    An OSError or RuntimeError in the call counts as not having returned.
    """
    results: list[T] = []

    def attempt() -> None:
        try:
            results.append(call())
        except (OSError, RuntimeError):
            return

    thread = threading.Thread(target=attempt, name="train-ledger-bounded", daemon=True)
    try:
        thread.start()
    except RuntimeError:  # no thread to be had
        return otherwise
    thread.join(timeout_s)
    return results[0] if results else otherwise
