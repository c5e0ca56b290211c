"""What can be known of a training run, one statement at a time?

Every source – our own signal lines, a framework's log, the kernel log – yields the same three kinds of
fact, so that whatever folds, judges or shows a run never learns where a statement came from. A fact is
frozen, carries its own time and says which file and line it was read from. What the hardware of a host
reads is no statement about a rank, and a record of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

from train_ledger.fields import FIELDS

__all__ = ["Event", "Fact", "Fault", "HardwareReading", "PlainStep", "Step", "Stretch"]


@dataclass(frozen=True, slots=True)
class Step:
    """One rank finished (or reported on) one step.

    `t` is unix seconds by the clock of the host that wrote it, nan where a log tells no time; `rank` is None
    where it tells no rank; `values` holds the numbers of the line by the names of `train_ledger.fields`,
    non-finite ones as real `nan` and `inf`; `source` is "file:line".
    """

    t: float
    step: int
    rank: int | None
    attempt: int = 0
    host: str | None = None
    source: str = ""
    values: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Event:
    """Something with a name happened to one rank: `run_start`, `phase_end`, `ckpt_saved`, …

    `name` is one of `fields.EVENTS`, or of `fields.LOG_EVENT_MEANINGS`, which logs tell besides; `t` and
    `rank` as in `Step`; `details` holds the other keys of the line as they were written.
    """

    t: float
    name: str
    rank: int | None
    step: int | None = None
    attempt: int = 0
    host: str | None = None
    source: str = ""
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Fault:
    """Somebody else reported trouble: a watchdog, the kernel, a launcher, an exception in a log.

    `fault` is one of watchdog_timeout, oom, exception, killed, signal, xid, nccl_error, desync,
    nan_suspected, checkpoint_failed. What the line does not say is None.
    """

    t: float | None
    fault: str
    rank: int | None = None
    step: int | None = None
    attempt: int = 0
    host: str | None = None
    source: str = ""
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class HardwareReading:
    """One look at one card of a host: a GPU, or a port of its network card.

    `t` is unix seconds by the host's clock. Of a GPU `gpu` is its index, `uuid` and `pci` what the driver
    calls it (pci as "0000:3b:00"), and `values` has the names of dcgm-exporter's fields
    (DCGM_FI_DEV_SM_CLOCK in MHz, DCGM_FI_DEV_POWER_USAGE in W, …; counters as they stand). Of a network port
    `device` and `port` name it, and `values` has the names that node_exporter gives to the files of
    /sys/class/infiniband, without "node_infiniband_". `by` says who was asked: "dcgm", "nvml" or "sysfs".
    A field that has several figures has one value for each, by the name that Prometheus gives to the series
    (DCGM_EXP_XID_ERRORS_COUNT{xid="79"}); which XIDs a reading tells says `sources.hardware.xids_told`.
    `not_observed` are fields that this host does not tell; a reading with neither gpu nor device says only
    that.
    """

    t: float
    host: str
    gpu: int | None = None
    uuid: str | None = None
    pci: str | None = None
    device: str | None = None
    port: int | None = None
    by: str = ""
    values: Mapping[str, float] = field(default_factory=dict)
    not_observed: tuple[str, ...] = ()
    source: str = ""


Fact: TypeAlias = Step | Event | Fault


class PlainStep(Protocol):
    """A step whose line tells nothing odd; every field of `FIELDS` is an attribute, None where absent."""

    @property
    def t(self) -> float: ...
    @property
    def step(self) -> int: ...
    @property
    def loss(self) -> float | None: ...
    @property
    def step_time_s(self) -> float | None: ...
    @property
    def ckpt_s(self) -> float | None: ...
    @property
    def data_wait_s(self) -> float | None: ...
    @property
    def compute_s(self) -> float | None: ...
    @property
    def grad_norm(self) -> float | None: ...
    @property
    def mfu(self) -> float | None: ...
    @property
    def mfu_baseline(self) -> float | None: ...
    @property
    def mem_inactive_split(self) -> float | None: ...
    @property
    def num_alloc_retries(self) -> float | None: ...


@dataclass(frozen=True, slots=True)
class Stretch:
    """Steps that one rank completed in a row in one attempt: each higher than the last, all values finite.

    Stands for so many `Step`s, `earlier` and then `last`, which alone is there in full: of a step that
    another one follows nobody asks for fields that are not in `FIELDS`, nor where it stood.
    """

    earlier: Sequence[PlainStep]
    last: Step

    def steps(self) -> Iterator[Step]:
        """The facts that it stands for, in order."""
        yield from map(self.step_of, self.earlier)
        yield self.last

    def step_of(self, plain: PlainStep) -> Step:
        """The fact of one of the earlier steps."""
        values = {name: value for name in FIELDS if (value := getattr(plain, name)) is not None}
        last = self.last
        return Step(plain.t, plain.step, last.rank, last.attempt, last.host, values=values)
