"""What do the ranks of a job write while it goes on, step by step?

A job told from outside: every method lets something happen to it, and each rank's lines grow by what the rank
would have written, stamped by its host's own clock.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

__all__ = ["Plan", "Story", "encode", "identity", "identity_at"]

_START_UP_S = 20.0
_COMPILE_S = 15.0
_LONGEST_SAVE_S = 120.0
_JITTER = 0.002
encode = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True)
class Plan:
    """What the job is like; `clock_offsets_s` sets single hosts' clocks ahead."""

    hosts: tuple[str, ...]
    ranks_per_host: int
    steps: int
    step_time_s: float
    seed: int
    culprit: int
    fault_step: int
    checkpoint_every: int
    start_t: float
    clock_offsets_s: Mapping[str, float]

    @property
    def world_size(self) -> int:
        return len(self.hosts) * self.ranks_per_host

    def host_of(self, rank: int) -> str:
        return self.hosts[rank // self.ranks_per_host]


@dataclass(slots=True)
class Story:
    """A job as it goes on: `t` is true time, every line is stamped by its host's own clock."""

    plan: Plan
    t: float
    attempt: int = 0
    step: int = 0
    step_of_attempt: int = 0
    fault_t: float | None = None
    lines: dict[int, list[bytes]] = field(init=False)
    _random: random.Random = field(init=False)
    _last_step_t: float | None = None

    def __post_init__(self) -> None:
        self.lines = {rank: [] for rank in self.ranks}
        self._random = random.Random(self.plan.seed)  # noqa: S311  (noise, no secret)

    @property
    def ranks(self) -> range:
        return range(self.plan.world_size)

    @property
    def others(self) -> list[int]:
        return [rank for rank in self.ranks if rank != self.plan.culprit]

    def wait(self, seconds: float) -> None:
        self.t += seconds

    def fault_now(self) -> None:
        self.fault_t = self.t

    def event(self, name: str, ranks: Iterable[int] | None = None, **details: Any) -> None:
        for rank in self.ranks if ranks is None else ranks:
            self._line(rank, {"event": name, **details}, details.get("step"))

    def phase(self, name: str, seconds: float, ranks: Iterable[int] | None = None) -> None:
        ranks = self.ranks if ranks is None else list(ranks)
        self.event("phase_start", ranks, phase=name)
        self.wait(seconds)
        self.event("phase_end", ranks, phase=name)

    def start(self, ranks: Iterable[int] | None = None) -> None:
        """A launcher starts the job: every rank says who it is, sets up and compiles."""
        for rank in self.ranks if ranks is None else ranks:
            self._line(
                rank, {"event": "run_start", "world_size": self.plan.world_size, **identity(self, rank)}
            )
        self.phase("start_up", _START_UP_S, ranks)

    def steps(
        self, count: int, *, slow: float = 1.0, culprit_slow: float = 1.0, loss: str | None = None
    ) -> None:
        """`count` steps more; `slow` stretches all of them, `culprit_slow` the culprit's own work."""
        for _ in range(count):
            self._complete_step(max(slow, culprit_slow), culprit_slow, loss)
            every = self.plan.checkpoint_every
            if every and self.step % every == 0:
                self.save()

    def _complete_step(self, slow: float, culprit_slow: float, loss: str | None) -> None:
        noise = self._random.random
        compile_s = 0.0 if self.step_of_attempt else _COMPILE_S
        took_s = self.plan.step_time_s * slow * (1 + 0.01 * noise()) + compile_s
        self.step += 1
        self.step_of_attempt += 1
        self.t += took_s
        since_last_s = took_s if self._last_step_t is None else self.t - self._last_step_t
        self._last_step_t = self.t
        value = 2.0 + 8.0 / (1 + 0.05 * self.step) + 0.01 * noise()
        for rank in self.ranks:
            own_s = self.plan.step_time_s * (0.8 + 0.01 * noise())
            if rank == self.plan.culprit:
                own_s *= culprit_slow
            late_s = _JITTER * self.plan.step_time_s * noise()
            fields = self._fields(loss or value, since_last_s, own_s)
            self._line(rank, fields, self.step, late_s)

    def _fields(self, loss: float | str, took_s: float, own_s: float) -> dict[str, Any]:
        tokens = 4096.0 / took_s
        return {
            "loss": loss,
            "grad_norm": "NaN" if isinstance(loss, str) else 0.5 + 0.01 * loss,
            "lr": 3e-4,
            "step_time_s": took_s,
            "tps": tokens,
            "mfu": 40.0 * self.plan.step_time_s / took_s,
            "data_wait_s": 0.002 * self.plan.step_time_s,
            "compute_s": own_s,
            "comm_wait_s": max(0.0, took_s - own_s),
            "mem_allocated_peak": 42_000_000_000,
            "mem_reserved_peak": 48_000_000_000,
            "rss_bytes": 9_000_000_000,
            "consumed_samples": self.step * self.plan.world_size,
        }

    def save(self, error: str | None = None) -> None:
        """A checkpoint, as all ranks report it."""
        took_s = min(3 * self.plan.step_time_s, _LONGEST_SAVE_S)
        self.event("ckpt_start", step=self.step)
        self.phase("checkpoint_save", took_s)
        if error:
            self.event("ckpt_failed", step=self.step, error=error)
        else:
            self.event("ckpt_saved", step=self.step, duration_s=took_s, blocking_s=took_s, durable=True)

    def restart(self, from_step: int) -> None:
        """The launcher starts the next attempt, which loads the checkpoint of `from_step`."""
        self.wait(30.0)
        self.attempt += 1
        self.step = from_step
        self.step_of_attempt = 0
        self._last_step_t = None
        self.start()
        self.phase("checkpoint_load", 5.0)

    def end(self) -> None:
        self.event("run_end")

    def _line(self, rank: int, content: dict[str, Any], step: int | None = None, late_s: float = 0.0) -> None:
        t = self.t + late_s + self.plan.clock_offsets_s.get(self.plan.host_of(rank), 0.0)
        head: dict[str, Any] = {"t": round(t, 6), "step": step, "rank": rank, "attempt": self.attempt}
        if step is None:
            del head["step"]
        self.lines[rank].append(encode({**head, **content, **head}) + b"\n")


def identity(story: Story, rank: int) -> dict[str, Any]:
    """Who a rank is, as its run_start says."""
    return identity_at(story.plan.host_of(rank), rank % story.plan.ranks_per_host, story.attempt)


def identity_at(host: str, local: int, attempt: int) -> dict[str, Any]:
    """Who the rank is that has the GPU `local` of a host."""
    digest = hashlib.sha256(f"{host}/{local}".encode()).hexdigest()
    return {
        "host": host,
        "local_rank": local,
        "gpu": local,
        "uuid": f"GPU-{digest[:8]}-{digest[8:12]}-{digest[12:16]}-{digest[16:20]}-{digest[20:32]}",
        "pci": f"00000000:{0x10 + local:02X}:00.0",
        "pid": 100_000 + attempt * 1000 + local,
    }
