"""What did the ranks write in a stretch of time?

Of each rank only that stretch is read, found by halves. Every event in it is taken, and of the steps a few,
which show how far the clocks of the hosts are apart; of ranks that are asked about, all.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from train_ledger.config import Config
from train_ledger.facts import Event, Fact, Step
from train_ledger.ledger import Dated, Fold
from train_ledger.ops.ends import files_of_ranks
from train_ledger.run_dir import RunDir
from train_ledger.slow.table.cut import AfterTime
from train_ledger.slow.table.files import RankFiles
from train_ledger.sources import SignalDecoder

__all__ = ["Signals", "Window", "signals_in"]

_HEAD_BYTES = 4096
_CLOCKS_APART_S = 600.0
_SHORT_OF_BYTES = 128 << 10
"""Where a time lies in a file is found to within so much."""

_OF_A_RANK_BYTES = 16 << 20
_FOR_CLOCKS = 24


@dataclass(frozen=True, slots=True)
class Window:
    """The time that is asked about, when the run stood still in it, and which ranks are read most closely."""

    since_t: float
    until_t: float
    stood_t: float
    ranks: Collection[int] = ()

    def holds(self, t: float | None) -> bool:
        return t is not None and self.since_t <= t <= self.until_t


@dataclass(frozen=True, slots=True)
class Signals:
    """Facts on the run's clock, how far each host's clock leads, each rank's host, and what was not read."""

    facts: tuple[Dated, ...]
    leads: Mapping[str | None, float]
    hosts: Mapping[int | None, str]
    not_read: tuple[str, ...] = ()


def signals_in(run_dir: RunDir, window: Window) -> Signals:
    """The events of the window, and steps as above. A file that cannot be read is counted."""
    facts: list[Fact] = []
    unread = 0
    for rank, paths in sorted(files_of_ranks(run_dir).items()):
        try:
            facts += _of_rank(rank, paths, window)
        except OSError:
            unread += 1
    hosts: dict[int | None, str] = {it.rank: it.host for it in facts if it.host}
    lead_of = _leads(facts)
    leads: dict[str | None, float] = {host: lead_of.get(rank, 0.0) for rank, host in hosts.items()}
    dated = tuple(_on_the_runs_clock(it, lead_of) for it in facts)
    not_read = (f"signals of {unread} ranks: their files cannot be read",) if unread else ()
    return Signals(dated, leads, hosts, not_read)


def _of_rank(rank: int, paths: list[Path], window: Window) -> Iterator[Fact]:
    with RankFiles(paths) as files:
        since, until = window.since_t - _CLOCKS_APART_S, window.until_t + _CLOCKS_APART_S
        begin = files.end_before(AfterTime(since).is_beyond) - _SHORT_OF_BYTES
        start = files.line_start(max(0, begin))
        end = files.line_start(min(files.whole_end(), files.end_before(AfterTime(until).is_beyond)))
        head = files.read(0, files.line_start(min(_HEAD_BYTES, start)))
        body = files.read(start, min(end, start + _OF_A_RANK_BYTES))
    yield from _told(rank, head, body, is_asked=rank in window.ranks)


def _told(rank: int, head: bytes, body: bytes, *, is_asked: bool) -> Iterator[Fact]:
    decoder, host, steps = SignalDecoder(), None, 0
    head_lines = [line for line in head.splitlines() if b'"event"' in line]
    for line in [*head_lines, *body.splitlines()]:
        is_event = b'"event"' in line
        if not is_event and not is_asked and steps >= _FOR_CLOCKS:
            continue
        fact = decoder.decode(line, rank=rank, host=host)
        if isinstance(fact, Event) and fact.name == "run_start" and fact.host:
            host = fact.host
        if fact is not None:
            steps += isinstance(fact, Step)
            yield fact


def _leads(facts: Iterable[Fact]) -> dict[int | None, float]:
    """By how much the clock of each rank's host, as it was read in the end, is ahead of the run's."""
    fold = Fold("", Config())
    fold.add_all(sorted(facts, key=lambda it: -1.0 if it.t is None else it.t))
    return {rank: lead_s - fold.clock_of(rank)[0] for rank, lead_s in fold.leads_s().items()}


def _on_the_runs_clock(fact: Fact, lead_of: Mapping[int | None, float]) -> Dated:
    lead_s = lead_of.get(fact.rank, 0.0)
    return Dated(fact, None if fact.t is None else fact.t - lead_s, lead_s)
