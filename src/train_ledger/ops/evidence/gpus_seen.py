"""What do the readings of the hardware say of this run, now or at the time when its steps ended?

XIDs that DCGM alone tells, memory errors, GPUs that are gone, ports that are down. Named are the ranks on
those GPUs and the hosts of those ports; GPUs of nobody in the run, and what was over before, accuse nobody.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from train_ledger.answer import Confidence, Diagnosis, NextCommand, RuledOut
from train_ledger.config import Alerts
from train_ledger.dash.hardware_conditions import bad_ports, failing_memory, lost_gpus, recent_xids
from train_ledger.hang.verdict.rank_lines import clock
from train_ledger.ledger import RunState, xid
from train_ledger.ledger.hardware.places import host_key
from train_ledger.ledger.state import GpuState, PortState
from train_ledger.ops.hosts import is_host
from train_ledger.ops.words import step_clock
from train_ledger.render import harmless

__all__ = ["gpus_named", "of_hardware", "of_slow_ports", "with_readings"]

_BEFORE_S = 90.0
"""Clocks of hosts differ, and the step during which a GPU failed may still have been written down."""

_DBE = "an uncorrected memory error"
_WAITING = ("hang.", "unknown")
_OPEN = ("hang.fabric", "unknown")
"""Causes that name nobody, and that a fault of the network explains."""

_LOOK = "nvidia-smi -i {} -q -d ECC,PERFORMANCE,ROW_REMAPPER; sudo dmesg -T | grep -i xid"
_LOOK_AT_PORT = "ibstat {0}; grep . /sys/class/infiniband/{0}/ports/*/counters/*err*"


@dataclass(frozen=True, slots=True)
class _Found:
    """`t` is when; `action` what is done about it."""

    gpu: GpuState
    cause: str
    what: str
    action: str
    t: float | None

    @property
    def line(self) -> str:
        where = " on ".join(it for it in (self.gpu.pci or _number(self.gpu), self.gpu.host) if it)
        at = "" if self.t is None else f", at {clock(self.t)}"
        ranks = ", ".join(str(rank) for rank in self.gpu.ranks[:4])
        return harmless(f"GPU of rank {ranks} ({where}): {self.what}{at}", longest=300)


def _number(gpu: GpuState) -> str:
    return "" if gpu.gpu is None else f"gpu {gpu.gpu}"


def of_hardware(state: RunState, alerts: Alerts) -> Diagnosis | None:
    """The hardware that failed under a run that goes on, as found; None where none did."""
    found = [
        *(_of_xid(gpu, told.code, told.last_t) for gpu, told in recent_xids(state, alerts, "page")),
        *_lost(state, alerts),
        *_memory(state, alerts),
    ]
    if not found:
        return None
    first = found[0]
    named = [it for it in found if it.cause == first.cause]
    return Diagnosis(
        state=state.state,
        cause=first.cause,
        ranks=_ranks(named),
        confidence="high",
        since_step=state.step,
        since_t=min((it.t for it in named if it.t is not None), default=None),
        evidence=(*dict.fromkeys(it.line for it in found), step_clock(state)),
        next=tuple(_next(named)),
    )


def with_readings(
    diagnosis: Diagnosis, state: RunState, alerts: Alerts, fallen_t: float | None = None
) -> Diagnosis:
    """The diagnosis of a hang, or the hardware that caused it by its readings.

    By `fallen_t` (unix seconds) the run had fallen: what came up after that has come of it.
    """
    if not state.gpus and not state.ports:
        return diagnosis
    if diagnosis.cause.startswith("hardware."):
        return diagnosis
    at_stop = [it for it in _at_the_stop(state, alerts) if it.gpu.ranks]
    found = [it for it in at_stop if not _is_late(it.t, fallen_t)]
    is_open = diagnosis.cause.startswith(_WAITING) and diagnosis.cause != "hang.mismatch"
    if found and is_open:
        return _caused(diagnosis, found)
    said = (*diagnosis.evidence, *dict.fromkeys(it.line for it in found[:2]))
    ports = list(bad_ports(state))
    fell = [
        it
        for it in ports
        if (it[0].down_since_t or 0.0) >= _stood_t(state) - _BEFORE_S
        and not _is_late(it[0].down_since_t, fallen_t)
    ]
    if fell and not found and is_open and _explains(diagnosis, fell):
        return _by_ports(diagnosis, fell, "high")
    lines = tuple(_port_line(port, why) for port, why in ports[:2])
    told = replace(diagnosis, evidence=(*said, *lines))
    return told if at_stop or ports else _ruled_out(told, state)


def _is_late(t: float | None, fallen_t: float | None) -> bool:
    return t is not None and fallen_t is not None and t > fallen_t


def of_slow_ports(state: RunState) -> Diagnosis | None:
    """A run that is slow since a link is down, or slower than it was; None where all are as ever."""
    ports = [(port, why) for port, why in bad_ports(state) if why.startswith("the link")]
    if not ports:
        return None
    diagnosis = Diagnosis(state.state, "hardware.nic", since_step=state.step, evidence=(step_clock(state),))
    return _by_ports(diagnosis, ports, "medium")


def gpus_named(state: RunState, ranks: Iterable[int]) -> tuple[str, ...]:
    """What the GPUs of these ranks are called where their readings alone say it."""
    wanted = frozenset(ranks)
    names = {it.uuid or it.pci for it in state.gpus if not wanted.isdisjoint(it.ranks)}
    return tuple(sorted(name for name in names if name))


def _of_xid(gpu: GpuState, code: int, t: float) -> _Found:
    row = xid(code)
    return _Found(gpu, "hardware.xid", f"XID {code}, {row.meaning}", row.action, t)


def _lost(state: RunState, alerts: Alerts, *, at_any_time: bool = False) -> Iterator[_Found]:
    for gpu in lost_gpus(state, alerts, at_any_time=at_any_time):
        what = "no longer seen while the other GPUs of the host are; last seen"
        yield _Found(
            gpu, "hardware.gpu_lost", what, "take the host out and reboot it, cold if needed", gpu.seen_t
        )


def _memory(state: RunState, alerts: Alerts) -> Iterator[_Found]:
    yield from (_of_memory(gpu, why) for gpu, why in failing_memory(state, alerts))


def _of_memory(gpu: GpuState, why: str) -> _Found:
    t = gpu.dbe_t if why == _DBE else None
    return _Found(gpu, "hardware.ecc", why, "take the host out, reset the GPU", t)


def _at_the_stop(state: RunState, alerts: Alerts) -> Iterator[_Found]:
    """What came up when the steps ended, or since; however long ago that is, it is no less the cause."""
    since_t = _stood_t(state) - _BEFORE_S
    for gpu in state.gpus:
        for told in gpu.xids:
            if told.level == "page" and told.last_t >= since_t:
                yield _of_xid(gpu, told.code, told.last_t)
    lost = _lost(state, alerts, at_any_time=True)
    yield from (it for it in lost if (it.t or 0.0) >= since_t)
    yield from (_of_memory(it, _DBE) for it in state.gpus if it.dbe_t is not None and it.dbe_t >= since_t)


def _stood_t(state: RunState) -> float:
    began_t = state.attempts[-1].started_t if state.attempts else state.t
    return began_t if state.last_step_t is None else state.last_step_t


def _caused(diagnosis: Diagnosis, found: list[_Found]) -> Diagnosis:
    of_culprits = [it for it in found if not set(it.gpu.ranks).isdisjoint(diagnosis.ranks)]
    first = (of_culprits or found)[0]
    named = [it for it in of_culprits or found if it.cause == first.cause]
    lines = dict.fromkeys(it.line for it in (*named, *found))
    return replace(
        diagnosis,
        cause=first.cause,
        ranks=_ranks(named),
        confidence="high" if of_culprits or diagnosis.cause in _OPEN else "medium",
        evidence=(*lines, *(line for line in diagnosis.evidence if line not in lines)),
        next=tuple(_next(named)),
    )


def _ranks(found: Iterable[_Found]) -> tuple[int, ...]:
    return tuple(sorted({rank for it in found for rank in it.gpu.ranks}))


def _explains(diagnosis: Diagnosis, fell: list[tuple[PortState, str]]) -> bool:
    """A link of another host does not say why a rank never came, and errors that are counted say nothing."""
    hosts = {host_key(port.host) for port, _ in fell}
    culprits = {host_key(host) for host in diagnosis.hosts}
    return diagnosis.cause in _OPEN or (bool(culprits) and hosts >= culprits)


def _by_ports(diagnosis: Diagnosis, ports: list[tuple[PortState, str]], confidence: Confidence) -> Diagnosis:
    lines = tuple(_port_line(port, why) for port, why in ports[:4])
    return replace(
        diagnosis,
        cause="hardware.nic",
        ranks=(),
        hosts=tuple(sorted({port.host for port, _ in ports})),
        confidence=confidence,
        evidence=(*lines, *(line for line in diagnosis.evidence if line not in lines)),
        next=tuple(_next_of_ports(ports)),
    )


def _port_line(port: PortState, why: str) -> str:
    at = "" if port.down_since_t is None else f", since {clock(port.down_since_t)}"
    return harmless(f"port {port.device} of {port.host}: {why}{at}", longest=300)


def _ruled_out(diagnosis: Diagnosis, state: RunState) -> Diagnosis:
    """Only what was looked at is ruled out: every GPU, or a port of every host."""
    out = []
    read = {rank for gpu in state.gpus if gpu.seen_t is not None for rank in gpu.ranks}
    if state.ranks and read >= state.ranks.keys():
        by = f"all {len(state.ranks)} ranks' GPUs are read: none is gone, none counts uncorrected errors"
        out += [RuledOut("hardware.gpu_lost", by), RuledOut("hardware.ecc", by)]
    hosts = {host_key(rank.host) for rank in state.ranks.values() if rank.host}
    if state.ports and hosts <= {host_key(port.host) for port in state.ports}:
        out.append(RuledOut("hardware.nic", "the ports of all hosts are active and count no errors"))
    return replace(diagnosis, ruled_out=(*diagnosis.ruled_out, *out))


def _next(found: Iterable[_Found]) -> Iterator[NextCommand]:
    seen: set[tuple[str, str]] = set()
    for it in found:
        name = it.gpu.pci or it.gpu.uuid or (None if it.gpu.gpu is None else str(it.gpu.gpu))
        if name is None or (it.gpu.host, it.action) in seen or len(seen) >= 2 or not is_host(it.gpu.host):
            continue
        seen.add((it.gpu.host, it.action))
        look = _LOOK.format(shlex.quote(name))
        why = f"on {it.gpu.host}: {it.action}; the state of that GPU now"
        yield NextCommand(why, f"ssh {shlex.quote(it.gpu.host)} {shlex.quote(look)}")


def _next_of_ports(ports: Iterable[tuple[PortState, str]]) -> Iterator[NextCommand]:
    seen: set[str] = set()
    for port, _ in ports:
        if port.host in seen or len(seen) >= 2 or not is_host(port.host):
            continue
        seen.add(port.host)
        look = _LOOK_AT_PORT.format(shlex.quote(port.device))
        why = f"on {port.host}: check the cable and the switch port of {harmless(port.device, longest=40)}"
        yield NextCommand(why, f"ssh {shlex.quote(port.host)} {shlex.quote(look)}")
