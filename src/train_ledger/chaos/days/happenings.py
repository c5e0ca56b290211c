"""What happens to the hardware of a job's hosts while it goes on?"""

from __future__ import annotations

from train_ledger.chaos.days.job import Job, Tells
from train_ledger.chaos.days.machines import HW_THERMAL, SW_THERMAL, Card

__all__ = ["grow_sbe", "hot", "profiled", "xid"]


def xid(job: Job, t: float, host: str, gpu: int, code: int) -> None:
    """At `t` a kernel line and the field of dcgm, as one fault shows in both."""

    def happen() -> Tells:
        job.machines.cards(host)[gpu].xid = code
        text = f"NVRM: Xid (PCI:{job.machines.cards(host)[gpu].pci}): {code}, pid=4711, name=python"
        yield from job.kernel_xid(host, gpu, code, text, pid=4711)

    job.later(t, happen)


def grow_sbe(card: Card) -> None:
    card.sbe += 1


def hot(job: Job, t: float, for_s: float, card: Card) -> None:
    """A card is slowed by heat for a while."""

    def begin() -> None:
        card.clock_factor, card.reasons = 0.7, HW_THERMAL | SW_THERMAL

    def stop() -> None:
        card.clock_factor, card.reasons = 1.0, 0

    job.later(t, begin)
    job.later(t + for_s, stop)


def profiled(job: Job, t: float, for_s: float) -> None:
    """A profiler takes the counters of all cards for a while."""

    def mark(profiled: bool) -> None:
        for card in job.machines.all_of(job.hosts):
            card.profiled = profiled

    job.later(t, lambda: mark(True))
    job.later(t + for_s, lambda: mark(False))
