"""By how much is each host's clock ahead of that of rank 0's host?

Read off the steps that ranks completed together, as the ledger does it, before anything is drawn: of rank 0
and of one rank on each other host, attempt by attempt.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from train_ledger.config import Config
from train_ledger.facts import Event, Step
from train_ledger.headway import counted
from train_ledger.ledger import Fold
from train_ledger.ops.gantt.inputs import Inputs, lines_of
from train_ledger.ops.gantt.selection import Selection
from train_ledger.ops.gantt.tally import Tally
from train_ledger.sources import SignalDecoder
from train_ledger.sources.formats.torchtitan.torchtitan_record import read_record

__all__ = ["Clocks", "read_clocks"]


@dataclass(slots=True)
class Clocks:
    """Leads in seconds by (host, attempt)."""

    leads_s: dict[tuple[str, int], float] = field(default_factory=dict)
    host_of: dict[int, str] = field(default_factory=dict)

    def lead_s(self, rank: int, attempt: int) -> float:
        """0 where nothing is known of the rank's host; that of its newest attempt for an unknown one."""
        host = _host(rank, self.host_of)
        lead_s = self.leads_s.get((host, attempt))
        return self.lead_of_host_s(host) if lead_s is None else lead_s

    def lead_of_host_s(self, host: str) -> float:
        """0 where nothing is known of it; else that of the newest attempt."""
        return self.by_host.get(host, 0.0)

    @property
    def by_host(self) -> dict[str, float]:
        """The newest lead of each host that is known, in its order."""
        return {host: lead_s for (host, _), lead_s in sorted(self.leads_s.items())}


def read_clocks(inputs: Inputs, selection: Selection) -> Clocks:
    """From the selected steps; by our own signal lines where ranks have them, else by torchtitan's spans."""
    folds: dict[int, Fold] = {}
    tally = Tally()  # what is not read is counted when it is drawn
    ranks = _one_a_host(inputs, sorted(inputs.signals or inputs.titan))
    for rank in counted(ranks, "reading clocks", "ranks"):
        host = _host(rank, inputs.host_of)
        facts = _signals(rank, inputs, tally) if inputs.signals else _spans(rank, inputs.titan[rank], tally)
        for fact in facts:
            if isinstance(fact, Event) or selection.has_step(fact.step):
                folds.setdefault(fact.attempt, Fold("", Config())).add(replace(fact, host=host))
    leads_s = {
        (_host(rank, inputs.host_of), attempt): lead_s
        for attempt, fold in folds.items()
        for rank, lead_s in fold.leads_s().items()
        if math.isfinite(lead_s)
    }
    return Clocks(leads_s, inputs.host_of)


def _one_a_host(inputs: Inputs, ranks: list[int]) -> list[int]:
    first: dict[str, int] = {}
    for rank in ranks:
        first.setdefault(_host(rank, inputs.host_of), rank)
    return sorted(first.values())


def _host(rank: int, host_of: dict[int, str]) -> str:
    return host_of.get(rank) or f"rank {rank}"


def _signals(rank: int, inputs: Inputs, tally: Tally) -> Iterator[Step | Event]:
    decoder = SignalDecoder()
    for path in inputs.signals[rank]:
        for line in lines_of(path, tally):
            fact = decoder.decode(line.data, rank=rank)
            if fact is not None and fact.rank == rank:
                yield fact


def _spans(rank: int, files: list[Path], tally: Tally) -> Iterator[Step | Event]:
    """A step was completed when its last span ended."""
    for attempt, path in enumerate(files):
        step, ended_t = None, math.nan
        for line in lines_of(path, tally):
            record = read_record(line.data.decode(errors="replace"))
            if record is None or record.at_step is None or not record.kind.endswith("_end"):
                continue
            if step is not None and record.at_step != step and math.isfinite(ended_t):
                yield Step(ended_t, step, rank, attempt)
            step, ended_t = record.at_step, record.t
        if step is not None and math.isfinite(ended_t):
            yield Step(ended_t, step, rank, attempt)
