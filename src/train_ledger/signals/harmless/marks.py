"""How is an exception known again without being kept?

A kept exception would keep the frames of a caught out-of-memory error alive, and with them their tensors; a
kept `id` is soon another exception's. So the exception itself carries what is known of it.
"""

from __future__ import annotations

from typing import Any

__all__ = ["mark", "marked"]


def mark(error: BaseException, name: str, value: str) -> None:
    """Have `error` carry `value`, whatever its class thinks of attributes."""
    object.__setattr__(error, f"_train_ledger_{name}", value)


def marked(error: BaseException, name: str) -> str | None:
    """What `error` carries by that name."""
    try:
        found: Any = object.__getattribute__(error, f"_train_ledger_{name}")
    except AttributeError:
        return None
    return found if type(found) is str else None
