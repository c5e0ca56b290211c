"""What did a recorded run tell, and from when on was each statement known?

A line counts from its own time on, read on the run's clock, and never before an earlier line of the same
writer. So the order is that of a keeper that followed the run, whatever the hosts' clocks said.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from train_ledger.dash.backtest.pauses import with_pauses
from train_ledger.dash.backtest.replay import Known
from train_ledger.facts import Event, Fact, Fault, HardwareReading
from train_ledger.ledger import dated, dated_of_hosts
from train_ledger.run_dir import RunDir
from train_ledger.sources import read_run

__all__ = ["Recording", "record"]

_DAY_S = 86_400.0

_NOT_SEEN = (
    "deaths of processes of which no line tells: a keeper sees them in the process table, and writes no fact "
    "of them"
)


_RECKONED = (
    "when those lines of a log came that carry no time: reckoned from the lengths of its steps, back from "
    "its last writing"
)


@dataclass(frozen=True, slots=True)
class Recording:
    """A run as it was recorded: everything that was told, in the order in which it became known.

    `ended_t` is when the last of it became known. `not_observed` says in words what the files do not tell.
    `by_logs` says that logs tell it, in which most ranks are never named.
    """

    run: str
    run_json: Mapping[str, Any]
    known: tuple[Known, ...]
    ended_t: float
    not_observed: tuple[str, ...] = ()
    by_logs: bool = False

    @property
    def began_t(self) -> float:
        return self.known[0].t if self.known else self.ended_t


def record(run_dir: RunDir) -> Recording:
    """Read all that a run directory holds.

    Raises RunDirError where run.json cannot be used.
    """
    run_json = run_dir.read_run()
    reading = read_run(run_dir, hardware_bytes=None)
    known, untimed = _known(with_pauses(reading.facts), reading.hardware)
    known, apart = _of_the_run(known)
    run = run_dir.name_in(run_json)
    ended_t = known[-1].t if known else math.nan
    said = [*reading.not_read, _NOT_SEEN]
    if reading.by_logs:
        said.append(_RECKONED)
    if untimed:
        said.append(f"{untimed} lines that carry no time: when they came is not known, so they are left out")
    if apart:
        said.append(f"{apart} lines of hardware of over a day before or after all lines of the ranks")
    return Recording(run, run_json, tuple(known), ended_t, tuple(said), reading.by_logs)


def _of_the_run(known: list[Known]) -> tuple[list[Known], int]:
    """What hosts told about the time in which ranks told anything, and how much was told beside it.

    A host whose clock stood at 1970 until it was set would make the run one of many years.
    """
    told_t = [it.t for it in known if not it.of_host]
    if not told_t:
        return known, 0
    begin_t, end_t = told_t[0] - _DAY_S, told_t[-1] + _DAY_S
    found = [it for it in known if begin_t <= it.t <= end_t]
    return found, len(known) - len(found)


def _known(facts: Iterable[Fact], hardware: Iterable[HardwareReading | Fault]) -> tuple[list[Known], int]:
    """All that was told, by the times at which it became known, and how much of it says no time."""
    lead_of: dict[str | None, float] = {}
    newest: dict[int, float] = {}
    first: dict[tuple[int, int], float] = {}
    found, untimed = [], 0
    past = dated(facts)
    for it in past:
        if it.t is None or not math.isfinite(it.t):
            untimed += 1
            continue
        writer = -1 if it.fact.rank is None else it.fact.rank
        lead_of[it.fact.host] = it.lead_s
        newest[writer] = max(it.t, newest.get(writer, it.t))
        began_t = first.setdefault((writer, it.fact.attempt), newest[writer])
        # How a log is written shows when it is read as a whole; who followed it saw it line by line.
        is_of_all = isinstance(it.fact, Event) and it.fact.name == "log_every"
        found.append(Known(began_t if is_of_all else newest[writer], it.fact, it.lead_s))
    for told, t in dated_of_hosts(past, hardware):
        if t is None:
            untimed += 1
        else:
            found.append(Known(t, told, lead_of.get(told.host, 0.0), of_host=True))
    found.sort(key=lambda it: it.t)
    return found, untimed
