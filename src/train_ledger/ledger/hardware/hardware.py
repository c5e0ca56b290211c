"""Whose GPU is it, and what happened to it in the time of the run?"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from train_ledger.config import Alerts, Config
from train_ledger.facts import Fault, HardwareReading
from train_ledger.ledger.hardware.gpu import GpuFold
from train_ledger.ledger.hardware.kernel import Reports
from train_ledger.ledger.hardware.places import Place, host_key, is_same_host
from train_ledger.ledger.hardware.port import PortFold
from train_ledger.ledger.hardware.records import GpuState, PortState, XidState
from train_ledger.sources import pci_address

__all__ = ["HardwareFold", "HostClock"]

HostClock = Callable[[str], float]
"""Seconds to add to a host's own time to have it on rank 0's clock, by the host's `host_key`."""

_MOST_GPUS = 1 << 18
_MOST_PORTS = 1 << 18
_MOST_CODES = 1 << 14
_MOST_MISSING = 200
_MAY_BE_BEFORE_S = 5.0
"""A rank's first line may be written a moment after its process took the GPU."""


_Key = tuple[str, str]
"""A host's `host_key`, and what is unique on it."""


class _Made(NamedTuple):
    inputs: tuple[object, ...]
    state: GpuState


@dataclass(slots=True)
class _Shown:
    """What was shown last: which ranks are on which GPU, on which is none that is read, and each GPU."""

    places: list[Place]
    gpus: int
    on: dict[_Key, list[Place]]
    unread: dict[str, list[Place]]
    made: dict[_Key, _Made]


class HardwareFold:
    """The accumulator of all GPUs and ports that are read, and of what kernels report of GPUs."""

    def __init__(self) -> None:
        self._gpus: dict[_Key, GpuFold] = {}
        self._ports: dict[_Key, PortFold] = {}
        self._reports: dict[str, dict[str, dict[int, Reports]]] = {}
        self._codes = 0
        self._missing: dict[str, set[str]] = {}
        self._shown: _Shown | None = None

    @property
    def is_empty(self) -> bool:
        """Whether nothing was folded yet."""
        return not (self._gpus or self._ports or self._reports)

    # -- what is folded

    def add(self, reading: HardwareReading, alerts: Alerts) -> None:
        """Fold a reading; of one host they come in the order of their times."""
        key = host_key(reading.host)
        if reading.not_observed:
            known = self._missing.setdefault(reading.host, set())
            known.update(reading.not_observed[: _MOST_MISSING - len(known)])
        if reading.device is not None:
            self._port(reading, (key, f"{reading.device}/{reading.port}"))
        elif reading.gpu is not None or reading.uuid:
            gpu = (key, reading.uuid or f"#{reading.gpu}")
            fold = self._gpus.get(gpu)
            if fold is None and len(self._gpus) < _MOST_GPUS:
                fold = self._gpus[gpu] = GpuFold(reading.host)
            if fold is not None:
                fold.add(reading, alerts)

    def _port(self, reading: HardwareReading, key: _Key) -> None:
        port = self._ports.get(key)
        if port is None and len(self._ports) < _MOST_PORTS and reading.device is not None:
            port = self._ports[key] = PortFold(reading.host, reading.device, reading.port)
        if port is not None:
            port.add(reading)

    def add_fault(self, fault: Fault, config: Config) -> None:
        """Fold a line of a kernel that reports an XID; one of no time or no host is of no use here."""
        code, pci = fault.details.get("code"), fault.details.get("pci")
        if fault.fault != "xid" or fault.t is None or not fault.host:
            return
        address = pci_address(pci) if isinstance(pci, str) else None
        if address is None or not isinstance(code, int):
            return
        codes = self._reports.setdefault(host_key(fault.host), {}).setdefault(address, {})
        if code not in codes:
            if self._codes >= _MOST_CODES:
                return
            self._codes += 1
            codes[code] = Reports(code)
        text, pid, lines = (fault.details.get(name) for name in ("text", "pid", "times"))
        codes[code].add(
            fault.t,
            text if isinstance(text, str) else "",
            pid if isinstance(pid, int) else None,
            config.xid,
            lines if isinstance(lines, int) else 1,
        )

    # -- what comes out

    def not_observed(self) -> Mapping[str, tuple[str, ...]]:
        """What each host does not tell."""
        return {host: tuple(sorted(names)) for host, names in self._missing.items()}

    def ports(self, add_s: HostClock, alerts: Alerts) -> tuple[PortState, ...]:
        """All ports, by host and device."""
        return tuple(self._ports[key].shown(add_s(key[0]), alerts) for key in sorted(self._ports))

    def gpus(self, places: Iterable[Place], add_s: HostClock, config: Config) -> tuple[GpuState, ...]:
        """All GPUs that are read or on which a rank is, by host and index.

        `places` are the ranks' last known ones.
        """
        shown = self._standing(sorted(places))
        gpus = [self._gpu(key, shown, add_s(key[0]), config) for key in self._gpus]
        for host, unread in shown.unread.items():
            gpus += self._unread(host, unread, add_s(host), config)
        return tuple(sorted(gpus, key=lambda it: (it.host, -1 if it.gpu is None else it.gpu, it.uuid or "")))

    def _standing(self, places: list[Place]) -> _Shown:
        """Who is on which GPU; asked again where a rank moved or a GPU was first read."""
        shown = self._shown
        if shown is not None and shown.places == places and shown.gpus == len(self._gpus):
            return shown
        unread: dict[str, list[Place]] = {}
        for place in places:
            unread.setdefault(host_key(place.host), []).append(place)
        on: dict[_Key, list[Place]] = {}
        for key, fold in self._newest_first():
            here = [it for it in unread.get(key[0], ()) if is_same_host(it.host, fold.host)]
            on[key] = [it for it in here if it.is_on(fold.gpu, fold.uuid, fold.pci)]
            if on[key]:
                unread[key[0]] = [it for it in unread[key[0]] if it not in on[key]]
        made = shown.made if shown else {}
        self._shown = _Shown(places, len(self._gpus), on, unread, made)
        return self._shown

    def _newest_first(self) -> list[tuple[_Key, GpuFold]]:
        """A rank of which the GPU's number alone is known is on the one that has this number by now."""
        return sorted(self._gpus.items(), key=lambda it: -it[1].read_t)

    def _gpu(self, key: _Key, shown: _Shown, add_s: float, config: Config) -> GpuState:
        fold, on = self._gpus[key], shown.on[key]
        pci = (pci_address(fold.pci) if fold.pci else None) or _pci_of(on)
        reports = self._reports_on(key[0], pci, on)
        inputs = (fold.readings, sum(it.lines for it in reports), tuple(on), add_s)
        known = shown.made.get(key)
        if known is None or known.inputs != inputs:
            state = fold.shown(_later(add_s), config.alerts)
            if on:
                xids = tuple(_xids(reports, fold, _since(on), add_s, config))
                state = _with_ranks(state, on, xids)
            known = shown.made[key] = _Made(inputs, state)
        return known.state

    def _unread(self, host: str, places: list[Place], add_s: float, config: Config) -> Iterator[GpuState]:
        """GPUs of ranks that nobody reads; the kernel may speak of them."""
        while places:
            first = places[0]
            on = [it for it in places if it is first or it.is_on(first.gpu, first.uuid, first.pci)]
            places = [it for it in places if it not in on]
            if first.gpu is None and not first.uuid and not first.pci:
                on = on[:1]
            reports = self._reports_on(host, _pci_of(on), on)
            xids = tuple(_xids(reports, None, _since(on), add_s, config))
            if xids:
                yield GpuState(
                    host=first.host,
                    gpu=first.gpu,
                    uuid=first.uuid,
                    pci=first.pci,
                    ranks=tuple(it.rank for it in on),
                    xids=xids,
                )

    def _reports_on(self, host: str, pci: str | None, on: list[Place]) -> list[Reports]:
        """What the kernel said of this GPU; of a process on it where nobody says which GPU that is."""
        if not on or host not in self._reports:
            return []
        if pci is not None:
            return list(self._reports[host].get(pci, {}).values())
        pids = {it.pid for it in on} - {None}
        return [
            it
            for codes in self._reports[host].values()
            for it in codes.values()
            if not pids.isdisjoint(it.pids(_since(on)))
        ]


def _with_ranks(state: GpuState, on: list[Place], xids: tuple[XidState, ...]) -> GpuState:
    first = on[0]
    return replace(
        state,
        host=first.host,
        gpu=state.gpu if first.gpu is None else first.gpu,
        uuid=state.uuid or first.uuid,
        pci=state.pci or first.pci,
        ranks=tuple(it.rank for it in on),
        xids=xids,
    )


def _later(seconds: float) -> Callable[[float], float]:
    return lambda t: t + seconds


def _since(on: list[Place]) -> float:
    return min(it.since_t for it in on) - _MAY_BE_BEFORE_S


def _pci_of(on: list[Place]) -> str | None:
    return next((pci_address(it.pci) for it in on if it.pci), None)


def _xids(
    reports: list[Reports], fold: GpuFold | None, since_t: float, add_s: float, config: Config
) -> Iterator[XidState]:
    told = [it for one in reports for it in one.shown(since_t, _later(add_s))]
    yield from sorted(told, key=lambda it: (it.code, it.level))
    codes = {it.code for it in told}
    if fold is not None:
        yield from (it for it in fold.xids(since_t, _later(add_s), config.xid) if it.code not in codes)
