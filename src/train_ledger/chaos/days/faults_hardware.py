"""Which parts of the hardware fail under a job?"""

from __future__ import annotations

from collections.abc import Callable

from train_ledger.chaos.days.fault import Fault, blame
from train_ledger.chaos.days.happenings import hot
from train_ledger.chaos.days.job import Job, Tells
from train_ledger.chaos.days.life import train
from train_ledger.chaos.days.machines import Card

__all__ = ["FAULTS"]

_GPU_LOST_S = 120.0
_CLOCK_LOW_S = 300.0
_XID = frozenset({"GpuXidError"})
_ECC = frozenset({"GpuEccDbe"})


def _culprit(job: Job, *, drags: bool = False) -> tuple[int, str, int, Card]:
    rank = job.rng.choice(job.ranks)
    blame(job, rank, drags=drags)
    host, gpu = job.host_of(rank), rank % job.plan.per_host
    return rank, host, gpu, job.machines.cards(host)[gpu]


def _stops(job: Job) -> Tells:
    """The ranks wait for one that will not come."""
    yield from job.event("phase_start", phase="backward")
    job.load = "waits"


def _kernel_xid(code: int, *, stops: bool) -> Callable[[Job], Tells]:
    def script(job: Job) -> Tells:
        _, host, gpu, card = _culprit(job)
        text = f"NVRM: Xid (PCI:{card.pci}): {code}, an error of the GPU"
        job.truth.earliest_t = job.t
        yield from job.kernel_xid(host, gpu, code, text)
        if stops:
            card.present = False
            yield from _stops(job)
        else:
            yield from train(job, job.t + 480.0)

    return script


def _xid_twice(job: Job) -> Tells:
    """The same GPU has a user's XID for the second time in a day."""
    _, host, gpu, card = _culprit(job)
    text = f"NVRM: Xid (PCI:{card.pci}): 31, pid=4711, name=python"
    yield from job.kernel_xid(host, gpu, 31, text, pid=4711)
    yield from train(job, job.t + 7200.0)
    job.truth.earliest_t = job.t
    yield from job.kernel_xid(host, gpu, 31, text, pid=4711)
    yield from train(job, job.t + 480.0)


def _xid_by_dcgm(job: Job) -> Tells:
    """No kernel log is read; dcgm alone shows the code."""
    _, _, _, card = _culprit(job)
    card.xid = 74
    job.truth.earliest_t = job.looked_t + job.plan.look_every_s
    yield from _stops(job)


def _dbe(job: Job) -> Tells:
    card = _culprit(job)[3]
    card.dbe += 1
    job.truth.earliest_t = job.looked_t + job.plan.look_every_s
    yield from train(job, job.t + 480.0)


def _row_remap(job: Job) -> Tells:
    card = _culprit(job)[3]
    card.remap_pending = 1
    job.truth.earliest_t = job.looked_t + job.plan.look_every_s
    yield from train(job, job.t + 480.0)


def _vanishes(job: Job) -> Tells:
    """A GPU does not answer any more, without an XID; its rank stands in it."""
    card = _culprit(job)[3]
    card.present = False
    job.truth.earliest_t = job.looked_t + _GPU_LOST_S
    yield from _stops(job)


def _hot_thrice(job: Job) -> Tells:
    """A card is slowed by heat for eight minutes, three times; all ranks wait for its rank.

    The job saves beside its training: a card that idles in a long checkpoint is not low for five minutes.
    """
    rank, _, _, card = _culprit(job, drags=True)
    for _ in range(3):
        hot(job, job.t, 480.0, card)
        job.drags[rank] = 1.25
        low_t = job.looked_t + job.plan.look_every_s
        yield from train(job, job.t + 480.0)
        job.drags.clear()
        yield from train(job, job.t + 3000.0)
    job.truth.earliest_t = low_t + _CLOCK_LOW_S


FAULTS = (
    Fault("xid_79", _kernel_xid(79, stops=True), _XID, of_hardware=True),
    Fault("xid_95", _kernel_xid(95, stops=False), _XID, of_hardware=True),
    Fault("xid_48", _kernel_xid(48, stops=False), _XID, of_hardware=True),
    Fault("xid_31_twice", _xid_twice, _XID, of_hardware=True),
    Fault("xid_by_dcgm", _xid_by_dcgm, _XID, of_hardware=True),
    Fault("dbe", _dbe, _ECC, of_hardware=True),
    Fault("row_remap", _row_remap, _ECC, of_hardware=True),
    Fault(
        "gpu_vanishes",
        _vanishes,
        frozenset({"GpuLost"}),
        frozenset({"TrainingStepStalled"}),
        of_hardware=True,
    ),
    Fault(
        "hot_thrice",
        _hot_thrice,
        frozenset({"GpuClockLowRepeated"}),
        save_s=60.0,
        blocking_s=3.0,
        of_hardware=True,
    ),
)
