"""What do the arguments of an activity tell: which launch it is of, which collective, what number?

Writers put numbers down as numbers or as text, or leave them out.
"""

from __future__ import annotations

from train_ledger.slow.trace.reading.events import Arguments
from train_ledger.slow.trace.reading.spans import Collective

__all__ = ["NONE", "collective", "correlation", "is_forward", "rank"]

NONE = -1
"""Stands where no number is told."""


def correlation(args: Arguments) -> int:
    """What joins a launch to its activities; where only that of the operator is told, a number below −1."""
    found = _whole(args.correlation)
    if found != NONE or args.external_id is None:
        return found
    operator = _whole(args.external_id)
    return NONE - operator if operator > 0 else NONE


def is_forward(args: Arguments) -> bool:
    """Whether gradients of an operator are asked for, by its sequence number.

    Those of the backward pass carry that of what they are the gradient of, and the thread of that.
    """
    return not args.forward_thread and _whole(args.sequence) >= 0


def rank(value: object) -> int | None:
    """The number of a rank, or how many there are; None where it is none."""
    number = _whole(value)
    return number if number >= 0 else None


def collective(args: Arguments) -> Collective:
    """What an activity says of the collective that it is."""
    elements = _whole(args.elements)
    group = " ".join(str(it) for it in (args.group, args.group_ranks) if it is not None)
    return Collective(
        str(args.collective),
        group,
        elements if elements >= 0 else None,
        "" if args.dtype is None else str(args.dtype),
        None if _whole(args.number) < 0 else _whole(args.number),
        "" if args.described is None else str(args.described),
    )


def _whole(value: object) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1 << 62:
        return value
    if isinstance(value, str) and value.isdecimal() and len(value) < 19:
        return int(value)
    return NONE
