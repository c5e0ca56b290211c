"""Which recorded sizes are not to be relied on?

Before version 2.4 those of all_to_all: they could be those of another call (pytorch 134528).
"""

from __future__ import annotations

from msgspec.structs import replace

from train_ledger.hang.dumps.entry import ALL_TO_ALL, Op

__all__ = ["without_doubtful_sizes"]


def without_doubtful_sizes(op: Op) -> Op:
    """The same operation of a dump before 2.4, without the sizes of an all_to_all."""
    return replace(op, input_sizes=(), output_sizes=()) if op.name in ALL_TO_ALL else op
