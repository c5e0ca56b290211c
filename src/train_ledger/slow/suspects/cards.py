"""What do the readings of a rank's GPU say, beside the card's own history and the other cards of the run?

A card that drags is named by its rank's work, not by this: readings say why. Power, heat and how busy the
tensor cores are follow from waiting as well as from trouble, so that they are told and decide nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from train_ledger.answer import Suspect
from train_ledger.config import Alerts
from train_ledger.ledger.hardware.clocks import SM_CLOCK
from train_ledger.ledger.hardware.places import host_key
from train_ledger.ledger.hardware.port import RATE
from train_ledger.ledger.hardware.records import GpuState, PortState

__all__ = ["Cards", "of_clocks", "of_links"]

_TEMPERATURE, _POWER = "DCGM_FI_DEV_GPU_TEMP", "DCGM_FI_DEV_POWER_USAGE"
_TENSOR = "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE"
_NVLINK = ("DCGM_FI_PROF_NVLINK_TX_BYTES", "DCGM_FI_PROF_NVLINK_RX_BYTES")
_SLOW_CLOCK = 0.9
_UNEQUAL = 0.7
_FEWEST_PEERS = 3
_MANY_REPLAYS = 100.0
_SHOWN = 4


@dataclass(frozen=True, slots=True)
class Cards:
    """The GPUs and ports of the run's hosts, by their last minutes."""

    gpus: tuple[GpuState, ...] = ()
    ports: tuple[PortState, ...] = ()

    def of(self, ranks: Iterable[int]) -> list[GpuState]:
        """The cards that were read of these ranks."""
        wanted = frozenset(ranks)
        return [it for it in self.gpus if it.seen_t is not None and not wanted.isdisjoint(it.ranks)]

    def peers(self, gpu: GpuState) -> list[GpuState]:
        """The other cards of the run."""
        return [it for it in self.gpus if it.ranks and it.seen_t is not None and it is not gpu]

    @property
    def hosts_in_trouble(self) -> tuple[str, ...]:
        """The hosts whose links count errors, are down, or slower than they were."""
        hosts = {host_key(it.host): it.host for it in self.gpus if it.links_grown}
        hosts |= {host_key(it.host): it.host for it in self.ports if _port_trouble(it)}
        return tuple(sorted(hosts.values()))


def of_clocks(cards: Cards, ranks: Sequence[int], alerts: Alerts) -> Suspect:
    """Are the cards of these ranks slowed down: by heat, by power, or by clocks that are lower than usual?"""
    cause = "slow.straggler.clock"
    read = cards.of(ranks)
    if not read:
        return Suspect(cause, "not_observed", "hardware: no readings of the GPUs of these ranks")
    slow = {it.ranks: why for it in read if (why := _why_slow(it, cards, alerts))}
    lines = [f"{_name(it)}: {slow.get(it.ranks) or _clock(it)}{_besides(it, cards)}" for it in read]
    words = "; ".join(lines[:_SHOWN])
    if not slow:
        return Suspect(cause, "ruled_out", words)
    return Suspect(cause, "confirmed", words, ranks=tuple(sorted({rank for of in slow for rank in of})))


def of_links(cards: Cards, ranks: Sequence[int]) -> Suspect:
    """Do the links of these ranks' cards and hosts count errors, or carry less than those beside them?"""
    cause = "slow.straggler.link"
    read = cards.of(ranks)
    hosts = {host_key(it.host) for it in read}
    ports = [it for it in cards.ports if host_key(it.host) in hosts]
    if not read and not ports:
        return Suspect(cause, "not_observed", "hardware: no readings of the links of these ranks")
    found = [f"{_name(it)}: {why}" for it in read if (why := ", ".join(_link_trouble(it, cards)))]
    found += [f"port {it.device} of {it.host}: {why}" for it in ports if (why := _port_trouble(it))]
    if found:
        return Suspect(cause, "confirmed", "; ".join(found[:_SHOWN]), ranks=tuple(ranks))
    return Suspect(cause, "ruled_out", "no NVLink, PCIe or port of these ranks counts errors")


def _name(gpu: GpuState) -> str:
    ranks = ", ".join(str(rank) for rank in gpu.ranks[:_SHOWN])
    return f"GPU of rank {ranks} on {gpu.host}"


def _why_slow(gpu: GpuState, cards: Cards, alerts: Alerts) -> str:
    if gpu.low_since_t is not None:
        return gpu.low_why
    mhz = _figure(gpu, SM_CLOCK)
    if mhz is None:
        return ""
    if gpu.usual_mhz is not None and mhz < _SLOW_CLOCK * gpu.usual_mhz:
        return f"{mhz:.0f} MHz where {gpu.usual_mhz:.0f} is usual for this card"
    others = _of_peers(gpu, cards, SM_CLOCK)
    if others is not None and mhz < _SLOW_CLOCK * others:
        return f"{mhz:.0f} MHz where the other cards run at {others:.0f}"
    return ""


def _clock(gpu: GpuState) -> str:
    mhz = _figure(gpu, SM_CLOCK)
    usual = "" if gpu.usual_mhz is None else f" where {gpu.usual_mhz:.0f} is usual"
    return "no clock was read, no clock event" if mhz is None else f"{mhz:.0f} MHz{usual}, no clock event"


def _besides(gpu: GpuState, cards: Cards) -> str:
    told = []
    for name, unit, factor in (
        (_TEMPERATURE, "°C", 1.0),
        (_POWER, "W", 1.0),
        (_TENSOR, "% tensor active", 100.0),
    ):
        own, others = _figure(gpu, name), _of_peers(gpu, cards, name)
        if own is not None:
            far = others is not None and others > 0 and not _UNEQUAL <= own / others <= 1 / _UNEQUAL
            beside = (
                "" if others is None else f" ({'far from the ' if far else ''}others {others * factor:.0f})"
            )
            told.append(f"{own * factor:.0f} {unit}{beside}")
    if gpu.sbe_grown:
        told.append(f"{gpu.sbe_grown:.0f} corrected memory errors")
    return "".join(f", {it}" for it in told)


def _figure(gpu: GpuState, name: str) -> float | None:
    """The median of the last minutes; where there is none, the last reading."""
    return gpu.recent.get(name, gpu.values.get(name))


def _of_peers(gpu: GpuState, cards: Cards, name: str) -> float | None:
    told = [value for it in cards.peers(gpu) if (value := _figure(it, name)) is not None]
    return median(told) if len(told) >= _FEWEST_PEERS else None


def _link_trouble(gpu: GpuState, cards: Cards) -> Iterator[str]:
    for name, more in gpu.links_grown.items():
        short = name.removeprefix("DCGM_FI_DEV_").removesuffix("_COUNT_TOTAL").lower()
        yield f"{short} +{more:.0f}"
    beside = [it for it in cards.peers(gpu) if host_key(it.host) == host_key(gpu.host)]
    own = _traffic(gpu)
    told = [it for it in map(_traffic, beside) if it is not None]
    if own is not None and len(told) >= _FEWEST_PEERS and own < _UNEQUAL * median(told):
        yield f"NVLink carries {own / 1e9:.3g} GB/s where the cards beside it carry {median(told) / 1e9:.3g}"
    others = [it.replays_grown for it in cards.peers(gpu)]
    usual = median(others) if others else 0.0
    if gpu.replays_grown >= max(_MANY_REPLAYS, 10 * usual):
        yield f"PCIe has replayed {gpu.replays_grown:.0f} times, the other cards {usual:.0f}"


def _traffic(gpu: GpuState) -> float | None:
    told = [value for name in _NVLINK if (value := _figure(gpu, name)) is not None]
    return sum(told) if len(told) == len(_NVLINK) else None


def _port_trouble(port: PortState) -> str:
    if port.down_since_t is not None:
        return "the link is down"
    told = [f"{name.removesuffix('_total')} +{more:.0f}" for name, more in port.grown.items()]
    rate = port.values.get(RATE)
    if rate is not None and port.usual_rate is not None and rate < port.usual_rate:
        told.append(f"{rate / 1e9:.3g} GB/s where it was linked at {port.usual_rate / 1e9:.3g}")
    return ", ".join(told)
