"""Which cards did the ranks of a run use, what was read of each, and what did kernels report of it?"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from train_ledger.dash.backtest.signs.lines import Lines
from train_ledger.facts import Event, Fault, HardwareReading
from train_ledger.ledger.hardware.places import Place, host_key, is_same_host
from train_ledger.sources import pci_address

__all__ = ["Card", "cards_of"]

_MAY_BE_BEFORE_S = 5.0


@dataclass(slots=True)
class Card:
    """A GPU on which ranks of the run are; `reports` are lines of the kernel about it.

    Of neither anything after `left_t`, when the last of those ranks went on elsewhere, or was no more.
    """

    host: str
    gpu: int | None
    uuid: str | None
    pci: str | None
    seats: list[tuple[float, Place]] = field(default_factory=list)
    looks: list[tuple[float, HardwareReading]] = field(default_factory=list)
    reports: list[tuple[float, Fault]] = field(default_factory=list)
    left_t: float = math.inf

    @property
    def since_t(self) -> float:
        """When the run came to it."""
        return min(t for t, _ in self.seats) - _MAY_BE_BEFORE_S

    @property
    def labels(self) -> Mapping[str, str]:
        """As the alerts name it."""
        gpu = {} if self.gpu is None else {"gpu": str(self.gpu)}
        return {"host": self.host, **gpu}

    def is_at(self, pci: str) -> bool:
        return self.pci is not None and pci_address(self.pci) == pci


def cards_of(lines: Lines) -> list[Card]:
    """The cards of the run's ranks."""
    cards: dict[str, list[Card]] = {}
    for t, event in lines.starts:
        if event.host and event.rank is not None:
            _seat(cards.setdefault(host_key(event.host), []), t, _place(t, event, event.rank, event.host))
    _note_leaving([card for those in cards.values() for card in those], lines)
    for host, looks in lines.readings.items():
        _read(cards.get(host_key(host), []), host, looks)
    for t, fault in lines.kernel:
        for card in _reported(cards.get(host_key(fault.host or ""), []), fault):
            if t < card.left_t:
                card.reports.append((t, fault))
    return [card for those in cards.values() for card in those]


def _place(t: float, event: Event, rank: int, host: str) -> Place:
    gpu, uuid, pci, pid = (event.details.get(name) for name in ("gpu", "uuid", "pci", "pid"))
    return Place(
        rank,
        host,
        gpu if isinstance(gpu, int) else None,
        uuid if isinstance(uuid, str) else None,
        pci if isinstance(pci, str) else None,
        pid if isinstance(pid, int) else None,
        t,
    )


def _seat(cards: list[Card], t: float, place: Place) -> None:
    for card in cards:
        if is_same_host(card.host, place.host) and place.is_on(card.gpu, card.uuid, card.pci):
            card.seats.append((t, place))
            return
    cards.append(Card(place.host, place.gpu, place.uuid, place.pci, [(t, place)]))


def _note_leaving(cards: Iterable[Card], lines: Lines) -> None:
    begun: dict[int, list[float]] = {}
    for t, event in lines.starts:
        if event.rank is not None and event.host:
            begun.setdefault(event.rank, []).append(t)
    for card in cards:
        newest = {place.rank: t for t, place in card.seats}
        card.left_t = max(_left_t(rank, t, begun[rank], lines) for rank, t in newest.items())


def _left_t(rank: int, seated_t: float, begun: Iterable[float], lines: Lines) -> float:
    """When a rank that came to a card last at `seated_t` was elsewhere, or beyond the size of the world."""
    moved = [t for t in begun if t > seated_t]
    smaller = [
        it.began_t
        for it in lines.attempts.values()
        if it.began_t > seated_t and it.world_size is not None and it.world_size <= rank
    ]
    return min([*moved, *smaller], default=math.inf)


def _read(cards: list[Card], host: str, looks: list[tuple[float, HardwareReading]]) -> None:
    known: dict[tuple[int | None, str | None], Card | None] = {}
    for look in looks:
        it = look[1]
        if it.gpu is None and not it.uuid:
            continue
        key = (it.gpu, it.uuid)
        if key not in known:
            known[key] = next(_on(cards, host, it), None)
        card = known[key]
        if card is not None and look[0] < card.left_t:
            card.looks.append(look)
            card.pci, card.gpu = card.pci or it.pci, it.gpu if card.gpu is None else card.gpu


def _on(cards: list[Card], host: str, it: HardwareReading) -> Iterator[Card]:
    for card in cards:
        on = any(place.is_on(it.gpu, it.uuid, it.pci) for _, place in card.seats)
        if on and is_same_host(card.host, host):
            yield card


def _reported(cards: list[Card], fault: Fault) -> Iterator[Card]:
    """The card that the kernel means: by its address, else by the process that it names."""
    pci, pid = fault.details.get("pci"), fault.details.get("pid")
    address = pci_address(pci) if isinstance(pci, str) else None
    if fault.fault != "xid" or address is None:
        return
    for card in cards:
        if card.is_at(address) or (
            card.pci is None and pid in {place.pid for _, place in card.seats} - {None}
        ):
            yield card
