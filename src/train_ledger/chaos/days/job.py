"""What is told of a job while it goes on, by its ranks and by the hosts that they run on?

Every method lets something happen and tells the facts of it, each with the true time at which it can be read;
hosts' clocks stamp them. A script is a generator that goes through such methods.
"""

from __future__ import annotations

import heapq
import math
import random
from collections.abc import Callable, Iterable, Iterator
from itertools import count
from typing import Any

from train_ledger.chaos.days.clock import HostClock
from train_ledger.chaos.days.day import Told, Truth
from train_ledger.chaos.days.machines import Load, Machines
from train_ledger.chaos.days.plan import JobPlan
from train_ledger.chaos.story import identity_at
from train_ledger.facts import Event, Fault, Step

__all__ = ["Job", "Tells"]

Tells = Iterator[Told]

_CLOCK = HostClock()
_READ_S = 1.0
"""So long after it was written a line is read at the latest."""


class Job:
    """A job as it goes on; `t` is true time.

    `stretch` says by how much steps are longer at a time, `work` by how much more they do; `drags` by how
    much a rank's own work is longer. `mute` holds ranks that write nothing. `loss`, `grad_norm` and `skipped`
    are what the next step reports, `mfu` its percentage without pauses, `samples_shift` by how much the data
    position is off. `step_times` are the steps that were told, each as (its end, how long it took without a
    pause), `saved_t` when saves succeeded.
    """

    def __init__(self, plan: JobPlan, seed: int, truth: Truth) -> None:
        self.plan = plan
        self.truth = truth
        self.rng = random.Random(seed)  # noqa: S311  (noise, no secret)
        self.t = plan.start_t
        self.hosts = list(plan.hosts)
        self.routine = plan.routine
        self.step_times: list[tuple[float, float]] = []
        self.saved_t: list[float] = []
        self.machines = Machines(plan.per_host, self.rng)
        self.load: Load = "idle"
        self.attempt = 0
        self.step = 0
        self.stretch: Callable[[float], float] = _as_ever
        self.work: Callable[[float], float] = _as_ever
        self.drags: dict[int, float] = {}
        self.mute: set[int] = set()
        self.loss: float | None = None
        self.grad_norm = 0.5
        self.loss_scale = 65_536.0
        self.skipped = 0.0
        self.mfu = 40.0
        self.samples_shift = 0
        self.last_step_t: float | None = None
        self.paused_s = 0.0
        self._looked_t = plan.start_t
        self._later: list[tuple[float, int, Callable[[], Iterable[Told] | None]]] = []
        self._numbers = count()

    # -- who there is

    @property
    def ranks(self) -> range:
        return range(len(self.hosts) * self.plan.per_host)

    def host_of(self, rank: int) -> str:
        return self.hosts[rank // self.plan.per_host]

    def ranks_of(self, host: str) -> range:
        first = self.hosts.index(host) * self.plan.per_host
        return range(first, first + self.plan.per_host)

    def clock(self, host: str) -> HostClock:
        return self.plan.clocks.get(host, _CLOCK)

    # -- time

    @property
    def looked_t(self) -> float:
        """When the hardware was looked at last."""
        return self._looked_t

    def later(self, t: float, what: Callable[[], Iterable[Told] | None]) -> None:
        """Let something happen at `t`, whatever the job does then."""
        heapq.heappush(self._later, (t, next(self._numbers), what))

    def wait(self, seconds: float) -> Tells:
        """Time goes on: what was planned for it happens, and the hosts' hardware is looked at."""
        yield from self.wait_until(self.t + seconds)

    def wait_until(self, until_t: float) -> Tells:
        while True:
            look_t = self._looked_t + self.plan.look_every_s
            planned_t = self._later[0][0] if self._later else math.inf
            if min(look_t, planned_t) > until_t:
                break
            self.t = max(self.t, min(look_t, planned_t))
            if planned_t <= look_t:
                yield from heapq.heappop(self._later)[2]() or ()
            else:
                self._looked_t = look_t
                yield from self._look()
        self.t = max(self.t, until_t)

    def _look(self) -> Tells:
        for host in self.hosts:
            for reading in self.machines.readings(host, self.clock(host).reads(self.t), self.load):
                yield Told(self.t + _READ_S, reading)

    # -- what is told

    def event(self, name: str, ranks: Iterable[int] | None = None, **details: Any) -> Tells:
        """All ranks, or those given, tell an event."""
        for rank in self.ranks if ranks is None else ranks:
            host = self.host_of(rank)
            if rank not in self.mute and host not in self.machines.silent_hosts:
                t = self.clock(host).reads(self.t)
                step = details.get("step")
                fact = Event(t, name, rank, step, self.attempt, host, details=details)
                yield Told(self._read_t(rank), fact)

    def seen_gone(self, ranks: Iterable[int]) -> Tells:
        """Whoever looks at the processes, on rank 0's clock, finds these gone."""
        t = self.clock(self.hosts[0]).reads(self.t)
        for rank in ranks:
            pid = identity_at(self.host_of(rank), rank % self.plan.per_host, self.attempt)["pid"]
            details = {"pid": pid, "why": "no such process"}
            yield Told(self.t, Event(t, "process_gone", rank, None, self.attempt, None, details=details))

    def kernel_xid(self, host: str, gpu: int, code: int, text: str, pid: int | None = None) -> Tells:
        """The kernel of a host reports an XID of one of its GPUs."""
        details = {"code": code, "pci": self.machines.cards(host)[gpu].pci, "text": text}
        if pid is not None:
            details["pid"] = pid
        yield Told(self.t + _READ_S, Fault(self.clock(host).reads(self.t), "xid", host=host, details=details))

    def complete_step(self, took_s: float) -> Tells:
        """Time goes on to the end of a step, which all ranks then tell if it is one that is told."""
        yield from self.wait(took_s)
        self.step += 1
        since_s = took_s + self.paused_s if self.last_step_t is None else self.t - self.last_step_t
        if self.step % self.plan.log_every == 0:
            self.step_times.append((self.t, took_s))
            yield from self._tell_step(since_s, took_s)
            self.loss = None
            self.paused_s = 0.0
        self.last_step_t = self.t

    def _tell_step(self, since_s: float, took_s: float) -> Tells:
        common = self._common(since_s, took_s)
        silent = self.machines.silent_hosts
        read_t, stages = self.clock, self.plan.stages
        for place, host in enumerate(self.hosts):
            if host in silent:
                continue
            t = read_t(host).reads(self.t)
            for local in range(self.plan.per_host):
                rank = place * self.plan.per_host + local
                if rank in self.mute:
                    continue
                own_s = 0.8 * self.plan.step_time_s * (1 + 0.006 * self.rng.random())
                own_s *= self.drags.get(rank, 1.0)
                if stages > 1:
                    own_s *= 1 + 0.15 * (rank * stages // len(self.ranks))
                values = {**common, "compute_s": own_s, "comm_wait_s": max(0.0, took_s - own_s)}
                early_s = 0.002 * self.rng.random()
                fact = Step(t - early_s, self.step, rank, self.attempt, host, values=values)
                yield Told(self._read_t(rank), fact)

    def _common(self, since_s: float, took_s: float) -> dict[str, float]:
        work = self.work(self.t)
        loss = 2.0 + 8.0 / (1 + 0.01 * self.step) + 0.02 * self.rng.random()
        return {
            "loss": loss if self.loss is None else self.loss,
            "grad_norm": self.grad_norm * (1 + 0.2 * self.rng.random()),
            "lr": 3e-4,
            "loss_scale": self.loss_scale,
            "skipped": self.skipped,
            "step_time_s": since_s,
            "tps": 4096.0 * work / since_s,
            "mfu": self.mfu * self.plan.step_time_s * work / since_s,
            "data_wait_s": 0.002 * took_s,
            "ckpt_s": self.paused_s,
            "mem_allocated_peak": 42e9,
            "mem_reserved_peak": 48e9,
            "rss_bytes": 9e9,
            "consumed_samples": float(self.step * 1024 + self.samples_shift),
        }

    def _read_t(self, rank: int) -> float:
        """When what the rank writes now can be read."""
        burst_s = self.plan.burst_s.get(rank)
        t = self.t if burst_s is None else math.ceil(self.t / burst_s) * burst_s
        return t + self.plan.late_s.get(rank, 0.0)


def _as_ever(_: float) -> float:
    return 1.0
