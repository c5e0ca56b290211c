"""What do logs and hardware say of one rank, in lines for a person?

The XIDs of its GPU, what its watchdog and its checks said, and since when its log is silent: each line is one
piece of evidence, for or against what the dumps say.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime

from train_ledger.hang.knowledge import Brought, GpuFault, RankKnowledge, TimedOut
from train_ledger.render import harmless, ranks_in_brief

__all__ = ["brought_in_words", "clock", "gpu_line", "of_rank", "timeouts_line"]

_MOST_FAULTS = 2
_SILENT_S = 30.0


def of_rank(rank: RankKnowledge) -> Iterator[str]:
    """The lines of one rank, the most telling first."""
    faults = sorted(rank.gpu_faults, key=lambda it: (it.level != "page", it.t or 0.0))
    for fault in faults[:_MOST_FAULTS]:
        yield gpu_line(rank, fault)
    if rank.stuck:
        yield f"log of rank {rank.rank}: its watchdog made no progress itself, as in a CUDA call that hangs"
    if rank.no_gil:
        yield f"log of rank {rank.rank}: the interpreter's lock was not to be had, some thread of it keeps it"
    if rank.missed_barrier:
        yield f"log of rank 0: a monitored barrier waited for rank {rank.rank} in vain"


def gpu_line(rank: RankKnowledge, fault: GpuFault) -> str:
    """An XID of a rank's GPU.

    >>> gpu_line(RankKnowledge(5, host="n1"), GpuFault(79, "fell off the bus", "page", "0000:3b:00", 60.0))
    "GPU of rank 5 (0000:3b:00 on n1): XID 79, fell off the bus, at 00:01:00 UTC"
    """
    place = " on ".join(it for it in (fault.pci, rank.host) if it)
    said = fault.meaning or harmless(fault.text, longest=80)
    at = f", at {clock(fault.t)}" if fault.t is not None else ""
    return f"GPU of rank {rank.rank}" + (f" ({place})" if place else "") + f": XID {fault.code}, {said}{at}"


def clock(t: float) -> str:
    """A time of day as people compare it with a log."""
    try:
        return f"{datetime.fromtimestamp(t, UTC):%H:%M:%S} UTC"
    except (ValueError, OverflowError, OSError):
        return f"{t:.0f}"


def timeouts_line(known: Mapping[int, RankKnowledge], seq: int | None, group: str | None) -> str | None:
    """Whose watchdogs timed out at this number of this group, and whose did not though they have a log.

    The group is told where it is known; a report whose group is not known counts by its number alone.
    """
    by = {rank: found for rank, it in known.items() if (found := _report(it, seq, group))}
    if not by:
        return None
    first = next(iter(by.values()))
    silent = [rank for rank, it in known.items() if it.has_log and rank not in by]
    op = f" ({harmless(first.op, longest=40)})" if first.op else ""
    after = f" after {first.timeout_s:.0f} s" if first.timeout_s else ""
    none_of = f"; nothing of {ranks_in_brief(silent)}" if silent and 2 * len(silent) < len(known) else ""
    return (
        f"logs: the watchdogs of {ranks_in_brief(sorted(by))} timed out at number {seq}{op}{after}{none_of}"
    )


def _report(rank: RankKnowledge, seq: int | None, group: str | None) -> TimedOut | None:
    return next((it for it in rank.timed_out if it.seq == seq and it.group in (None, group)), None)


def brought_in_words(brought: Brought) -> str:
    """
    >>> brought_in_words(Brought("ALLREDUCE", 2, "[4]", "Float"))
    'ALLREDUCE [4] Float'
    """
    parts = (brought.op or "an operation", brought.shape, brought.dtypes)
    return " ".join(harmless(part, longest=60) for part in parts if part)
