"""What else is known of a rank, besides its dump and its stack?

Handed in by whoever knows the run: its last signal line, whether its process is gone, what it raised. The
first rank to fall is wanted: one that raised because a peer's connection closed, that the launcher ended, or
that gloo aborted because a peer sent too much, is a victim.
"""

from __future__ import annotations

import signal as signals
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from train_ledger.render import harmless

__all__ = [
    "OTHER_GROUP",
    "Brought",
    "GpuFault",
    "RankKnowledge",
    "TimedOut",
    "first_fallen",
    "in_words",
    "is_consequence",
    "was_ended",
]

OTHER_GROUP = "another"
"""In the place of the name of a group of which only this is known: ranks do not count globally in it."""


@dataclass(frozen=True, slots=True)
class TimedOut:
    """What a rank's own watchdog said: it had come to this operation, and the operation did not end.

    `group` is the group's name as dumps have it ("0" is the default group), None where the log does not say.
    """

    seq: int | None
    op: str | None = None
    group: str | None = None
    timeout_s: float | None = None
    t: float | None = None
    source: str = ""


@dataclass(frozen=True, slots=True)
class Brought:
    """What a rank came with, as TORCH_DISTRIBUTED_DEBUG=DETAIL compared it: operation, shapes, types."""

    op: str | None
    seq: int | None = None
    shape: str | None = None
    dtypes: str | None = None


@dataclass(frozen=True, slots=True)
class GpuFault:
    """An XID of a rank's GPU, by the kernel log of its host; `level` is page, record or ignore."""

    code: int
    meaning: str = ""
    level: str = "record"
    pci: str | None = None
    t: float | None = None
    text: str = ""


@dataclass(frozen=True, slots=True)
class RankKnowledge:
    """What the run's own files and logs say of one rank; None, False or nothing where they say nothing.

    `exception` is "Type: message", `raised_in` the "file:line" of the log that says so, `raised_as_ended`
    that it raised only when its job was being ended from outside; `signal` is the number of the signal that
    ended the process, `exit_code` the status it ended with; `failed_first` that the launcher saw it fail
    before the others, `ended` that the rank itself said that its run ended.

    Of logs: `timed_out` are the reports of its watchdog, the earliest number first; `enqueued` is the last
    number of the default group that it had issued when it was asked for a dump; `brought` is what it came
    with where DETAIL found a mismatch; `missed_barrier` that rank 0 waited for it in vain in a monitored
    barrier; `stuck` that its watchdog itself made no progress, `no_gil` that its interpreter lock was not to
    be had; `no_memory` that the kernel killed it for want of memory; `no_dump` is why it left no dump, in
    words; `log_t` when its own log was written last, `has_log` that any line in the logs is its own.
    `gpu_faults` are those of its GPU.
    """

    rank: int
    host: str | None = None
    step: int | None = None
    phase: str | None = None
    gone: bool = False
    ended: bool = False
    exception: str | None = None
    raised_in: str | None = None
    raised_as_ended: bool = False
    signal: int | None = None
    exit_code: int | None = None
    failed_first: bool = False
    timed_out: tuple[TimedOut, ...] = ()
    enqueued: int | None = None
    brought: Brought | None = None
    missed_barrier: bool = False
    stuck: bool = False
    no_gil: bool = False
    no_memory: bool = False
    no_dump: str | None = None
    log_t: float | None = None
    has_log: bool = False
    gpu_faults: tuple[GpuFault, ...] = ()

    def came_to(self, group: str, seq: int) -> bool:
        """Whether its own watchdog says that it had issued this number of this group."""
        return any(it.group == group and it.seq is not None and it.seq >= seq for it in self.timed_out)


_CONSEQUENCES = (
    "keyboardinterrupt",
    "connection closed",
    "connection reset",
    "connection refused",
    "broken pipe",
    "remote process exited",
    "socket timeout",
    "timed out waiting",
    "watchdog",
    "communicator was aborted",
    "nccl communicator encountered error",
    "no route to host",
    "pair closure",
    "detected mismatch between collectives",
    "monitoredbarrier",
    "clients joined",
    "client socket has timed out",
    "timed out initializing",
    "recvvalue failed",
    "sendbytes failed",
    "signalexception",
    "killed by signal: terminated",
)
_DONE_TO_IT = (signals.SIGTERM, signals.SIGINT, signals.SIGABRT)


def first_fallen(known: Mapping[int, RankKnowledge], world: Collection[int]) -> tuple[int, ...]:
    """The ranks that fell by themselves; empty where a death can as well be a consequence.

    First those that say why, or that the kernel killed. Else the one that the launcher saw fail first. Else
    few ranks that are gone without a word, or that said that their run ended, while the others go on, or tell
    of a closed connection or of the launcher's signal. Where one signal ended all of them, only who says why.
    """
    launcher_tells = any(it.failed_first for it in known.values())
    by_reason = [rank for rank, it in known.items() if _fell_by_itself(it, launcher_tells)]
    if _ended_together(known, world):
        by_reason = [rank for rank in by_reason if known[rank].no_memory or known[rank].exception]
    if by_reason:
        return tuple(sorted(by_reason))
    seen_first = [rank for rank, it in known.items() if it.failed_first and it.exception is None]
    if seen_first := [rank for rank in seen_first if known[rank].signal is None]:
        return tuple(sorted(seen_first))
    gone = [rank for rank, it in known.items() if it.gone and it.exception is None and it.signal is None]
    silent = [rank for rank in gone if not known[rank].ended]
    left = silent or [rank for rank, it in known.items() if it.ended and it.signal is None]
    return tuple(sorted(left)) if 2 * len(left) < max(len(world), len(known)) else ()


def is_consequence(exception: str) -> bool:
    """Whether an exception ("Type: message") is what a rank raises because of another one.

    >>> is_consequence("RuntimeError: Connection closed by peer"), is_consequence("ValueError: no")
    (True, False)
    """
    said = exception.lower()
    return any(word in said for word in _CONSEQUENCES)


def was_ended(rank: RankKnowledge) -> bool:
    """Whether it did not fall by itself, but was ended by somebody else's signal."""
    return rank.raised_as_ended or (rank.exception is None and rank.signal in _DONE_TO_IT)


def _fell_by_itself(rank: RankKnowledge, launcher_tells: bool) -> bool:
    if rank.no_memory:
        return True
    if rank.exception is not None:
        return not rank.raised_as_ended and not is_consequence(rank.exception)
    if rank.signal == signals.SIGKILL and launcher_tells and not rank.failed_first:
        return False  # the launcher's, for a rank that its SIGTERM did not end
    return rank.signal is not None and rank.signal not in _DONE_TO_IT


def _ended_together(known: Mapping[int, RankKnowledge], world: Collection[int]) -> bool:
    """Whether one signal ended every rank: then who looked first says nothing of who fell first."""
    everybody = {*world, *known}
    ended_by = {known[rank].signal if rank in known else None for rank in everybody}
    return len(everybody) > 1 and len(ended_by) == 1 and None not in ended_by


def in_words(rank: RankKnowledge) -> str | None:
    """One evidence line; None where nothing is known.

    >>> in_words(RankKnowledge(5, step=41, phase="data", gone=True, signal=9))
    'rank 5 at step 41, in phase data: its process is gone (SIGKILL)'
    """
    places = [
        f"on {rank.host}" if rank.host else "",
        f"at step {rank.step}" if rank.step is not None else "",
        f"in phase {rank.phase}" if rank.phase else "",
    ]
    ends = ["it said that its run ended"] if rank.ended else []
    if rank.gone or rank.signal is not None:
        how = _signal(rank.signal) if rank.signal is not None else ""
        how = how or (f"exit status {rank.exit_code}" if rank.exit_code is not None else "")
        ends.append("its process is gone" + (f" ({how})" if how else ""))
    if rank.no_memory:
        ends.append("the kernel killed it for want of memory")
    if rank.exception:
        when = ", as it was being ended from outside" if rank.raised_as_ended else ""
        ends.append(f"it raised {harmless(rank.exception, longest=200)}{when}")
    place = ", ".join(it for it in places if it)
    end = "; ".join(ends)
    return (
        f"rank {rank.rank}" + (f" {place}" if place else "") + (f": {end}" if end else "")
        if place or end
        else None
    )


def _signal(number: int) -> str:
    try:
        return signals.Signals(number).name
    except ValueError:
        return f"signal {number}"
