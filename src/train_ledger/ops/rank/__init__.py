"""What is this one rank doing?

Where it runs, how far it is beside the run, what it wrote last, where it stands in its code and in its
collectives, what its GPU says, and who waits for it. Of a run of a thousand ranks only ends are read.
"""

from __future__ import annotations

from train_ledger.ops.rank.looking import RankError, look_at
from train_ledger.ops.rank.records import (
    Collective,
    GpuNow,
    LogTail,
    RankAnswer,
    StackNow,
    Waiting,
    Where,
    exit_code_of,
)
from train_ledger.ops.rank.shown import report_of_rank

__all__ = [
    "Collective",
    "GpuNow",
    "LogTail",
    "RankAnswer",
    "RankError",
    "StackNow",
    "Waiting",
    "Where",
    "exit_code_of",
    "look_at",
    "report_of_rank",
]
