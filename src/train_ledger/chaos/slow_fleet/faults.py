"""What makes a job slow, by cause?"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from train_ledger.chaos.slow_fleet.plan import SlowTruth
from train_ledger.chaos.slow_fleet.work import GIB, Work
from train_ledger.slow.table.step_table import Ints

__all__ = ["FAULTS"]


def _hits(work: Work, kind: str, part: str, rows: Ints) -> None:
    ranks = tuple(int(row) for row in rows)
    hosts = tuple(sorted({work.hosts[rank] for rank in ranks})) if kind == "host" else ()
    work.truth = SlowTruth(work.plan.cause, kind, ranks, hosts, work.plan.onset, part)


def _culprits(work: Work) -> tuple[str, Ints]:
    """One rank, or all of one host."""
    rank = int(work.rng.integers(0, work.plan.ranks))
    if not work.plan.whole_host:
        return "rank", np.array([rank])
    return "host", np.array([it for it, host in enumerate(work.hosts) if host == work.hosts[rank]])


def _clock(work: Work) -> None:
    """Kernels take longer on few ranks."""
    kind, rows = _culprits(work)
    work.parts["compute_s"][np.ix_(rows, work.after > 0)] *= 1 + work.plan.effect
    _hits(work, kind, "compute_s", rows)


def _link(work: Work) -> None:
    """A rank's link is slow: every transfer takes longer, and nobody works longer."""
    work.comm_s[work.after > 0] += work.plan.effect * work.plan.step_s
    _hits(work, "nobody", "comm_wait_s", np.zeros(0, dtype=int))


def _software(work: Work) -> None:
    """A rank's host code takes time that no peer's does: its loader, its log, or anything."""
    kind, rows = _culprits(work)
    part = ("compute_s", "data_wait_s", "log_s")[int(work.rng.integers(0, 3))]
    more_s = work.plan.effect * work.plan.step_s * work.rng.lognormal(0, 0.1, (len(rows), work.plan.steps))
    work.parts[part][rows] += more_s * (work.after > 0)
    _hits(work, kind, part, rows)


def _stage(work: Work) -> None:
    """One stage has more layers, from the beginning on."""
    stage = int(work.rng.integers(0, work.plan.pp))
    work.parts["compute_s"][work.stage == stage] *= 1 + max(0.15, work.plan.effect)
    _hits(work, "stage", "compute_s", np.zeros(0, dtype=int))


def _sequence(work: Work) -> None:
    """Sequences become unequal: whoever has the long ones is slow in that step."""
    shape = (work.plan.dp, work.plan.steps)
    drawn = work.rng.lognormal(0.0, 0.15 + 0.3 * work.plan.effect, shape)[work.replica]
    drawn = np.where(work.after > 0, drawn, 1.0)
    work.tokens = work.tokens * drawn
    work.parts["compute_s"] *= 0.6 * drawn + 0.4 * drawn**2
    _hits(work, "sequence", "compute_s", np.zeros(0, dtype=int))


def _of_all(part: str, kind: str = "nobody") -> Callable[[Work], None]:
    def fault(work: Work) -> None:
        shape = (work.plan.ranks, work.plan.steps)
        more_s = work.plan.effect * work.plan.step_s * work.rng.lognormal(0.0, 0.1, shape)
        work.parts[part] += more_s * (work.after > 0)
        if part == "log_s":
            work.others["stdout_bytes"] += np.cumsum(50_000.0 * (work.after > 0)) + np.zeros(shape)
        _hits(work, kind, part, np.zeros(0, dtype=int))

    return fault


def _fragmentation(work: Work) -> None:
    """Blocks are cut into pieces, more and more; allocations are tried again, and every retry is a stall."""
    grown = work.after / max(1, work.plan.steps - work.plan.onset)
    work.others["mem_inactive_split"] += 20 * GIB * grown
    retries = work.rng.poisson(0.5 + 2 * grown, (work.plan.ranks, work.plan.steps)) * (work.after > 0)
    work.others["num_alloc_retries"] += np.cumsum(retries, axis=1)
    work.others["num_device_alloc"] += np.cumsum(8.0 * retries, axis=1)
    work.parts["compute_s"] *= 1 + work.plan.effect * (0.5 * (work.after > 0) + 2 * grown)
    _hits(work, "nobody", "compute_s", np.zeros(0, dtype=int))


def _checkpoint(work: Work) -> None:
    """Saves copy beside the training, in many steps, and slow all ranks."""
    shape = (work.plan.ranks, work.plan.steps)
    work.parts["ckpt_s"] += work.plan.effect * work.plan.step_s * (work.after > 0) * np.ones(shape)
    _hits(work, "nobody", "ckpt_s", np.zeros(0, dtype=int))


def _gc(work: Work) -> None:
    """Every rank collects its garbage at a time of its own, and the others wait for it."""
    every, shape = 30, (work.plan.ranks, work.plan.steps)
    phase = work.rng.integers(0, every, work.plan.ranks)
    collects = ((np.arange(work.plan.steps)[None, :] + phase[:, None]) % every == 0) & (work.after > 0)
    pause_s = work.plan.step_s * (0.2 + work.plan.effect)
    work.parts["gc_s"] += collects * pause_s * work.rng.lognormal(0.0, 0.1, shape)
    _hits(work, "gc", "gc_s", np.zeros(0, dtype=int))


def _host_memory(work: Work) -> None:
    """Every rank's memory grows until its host swaps, and steps grow with it."""
    grown = work.after / max(1, work.plan.steps - work.plan.onset)
    work.others["rss_bytes"] += 150 * GIB * grown
    work.parts["compute_s"] *= 1 + work.plan.effect * (0.5 * (work.after > 0) + 2 * grown)
    _hits(work, "nobody", "compute_s", np.zeros(0, dtype=int))


def _communication(work: Work) -> None:
    """The network became slower for all."""
    _link(work)


FAULTS: Mapping[str, Callable[[Work], None]] = {
    "slow.straggler.clock": _clock,
    "slow.straggler.link": _link,
    "slow.straggler.software": _software,
    "slow.stage_imbalance": _stage,
    "slow.sequence_imbalance": _sequence,
    "slow.data": _of_all("data_wait_s"),
    "slow.fragmentation": _fragmentation,
    "slow.logging": _of_all("log_s"),
    "slow.checkpoint": _checkpoint,
    "slow.gc": _gc,
    "slow.host_memory": _host_memory,
    "slow.communication": _communication,
}
