"""What is known of one GPU, and of one port, at one moment?

Frozen records; all times are unix seconds on the clock of rank 0's host.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

__all__ = ["GpuState", "PortState", "XidState"]


@dataclass(frozen=True, slots=True)
class XidState:
    """One XID of one GPU with one level, since the run came to that host.

    `count` is how often it was told, `first_t` and `last_t` when. `level` is "page", "record" or "ignore" by
    `ledger.xids` and the configuration; a code may stand here twice, where a repetition pages that the first
    time did not. `text` is the last line; `by` is "kernel" or, where DCGM alone tells it, "dcgm", who knows
    neither how often nor when exactly.
    """

    code: int
    level: Literal["page", "record", "ignore"]
    count: int
    first_t: float
    last_t: float
    text: str = ""
    by: str = "kernel"


@dataclass(frozen=True, slots=True)
class GpuState:
    """One GPU of a host that is looked at, or on which a rank is.

    `ranks` are those of the run that are on it, or were when last heard of; empty for a GPU of somebody else.
    `seen_t` is the newest reading, None where the kernel alone speaks of it, and `values` what it told, by
    dcgm-exporter's names.
    `dbe_t` is when an uncorrected memory error was last added, `sbe_grown` how many corrected ones came in
    their window, `links_grown` which NVLink counters grew within theirs, and by how much; `replays_grown` how
    often PCIe replayed in that.
    `low_since_t` is since when the clocks are low without a break and `low_why` by what (see `clocks`);
    `usual_mhz` is the card's usual SM clock under load; `low_t` are the beginnings of the last times that it
    was low for long enough, the newest last. `recent` are medians over the last five minutes, without
    readings of a card that had nothing to do: one between two steps decides nothing.
    """

    host: str
    gpu: int | None = None
    uuid: str | None = None
    pci: str | None = None
    ranks: tuple[int, ...] = ()
    by: str = ""
    seen_t: float | None = None
    values: Mapping[str, float] = field(default_factory=dict)
    xids: tuple[XidState, ...] = ()
    dbe_t: float | None = None
    sbe_grown: float = 0.0
    links_grown: Mapping[str, float] = field(default_factory=dict)
    replays_grown: float = 0.0
    low_since_t: float | None = None
    low_why: str = ""
    usual_mhz: float | None = None
    low_t: tuple[float, ...] = ()
    recent: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PortState:
    """One port of a network card.

    `values` are the last reading's, by node_exporter's names without their front. `grown` says which error
    counters grew within the window, and by how much; `down_since_t` since when a port is not active that was;
    `usual_rate` is the highest that its rate (bytes a second) was in the last day.
    """

    host: str
    device: str
    port: int | None = None
    seen_t: float | None = None
    values: Mapping[str, float] = field(default_factory=dict)
    grown: Mapping[str, float] = field(default_factory=dict)
    down_since_t: float | None = None
    usual_rate: float | None = None
