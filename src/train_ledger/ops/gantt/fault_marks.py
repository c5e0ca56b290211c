"""What trouble do logs and kernels tell of, and on whose row is it marked?"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path

from train_ledger.facts import Fault
from train_ledger.ops.gantt.clocks import Clocks
from train_ledger.ops.gantt.lanes import Threads
from train_ledger.ops.gantt.selection import Selection
from train_ledger.ops.gantt.tally import Tally
from train_ledger.ops.gantt.trace_file import TraceFile, encoded, microseconds
from train_ledger.sources import read_facts

__all__ = ["FaultMarks"]

_NOBODY = 2_000_000
"""The process that holds what no rank is known of: larger than any rank."""

_LONGEST_TEXT = 300
_MOST_DETAILS = 12


class FaultMarks:
    """Draws the faults that logs tell of, as instants; `threads_of` gives the row of a rank that has one."""

    def __init__(
        self,
        trace: TraceFile,
        selection: Selection,
        tally: Tally,
        clocks: Clocks,
        threads_of: Callable[[int], Threads | None],
    ) -> None:
        self._trace = trace
        self._selection = selection
        self._tally = tally
        self._clocks = clocks
        self._threads_of = threads_of
        self._nobody: Threads | None = None

    def draw(self, logs: Sequence[Path]) -> None:
        """Read the logs and mark their faults; what is not read is counted."""
        reading = read_facts(logs)
        for fact in reading:
            if isinstance(fact, Fault):
                self._mark(fact)
        for file in reading.files:
            if file.not_read is not None:
                self._tally.miss(f"log: {file.not_read}", file.path)
            for reason, number in file.damaged.items():
                self._tally.miss(f"log line: {reason}", file.path, number)

    def _mark(self, fault: Fault) -> None:
        if fault.t is None or not math.isfinite(fault.t):
            self._tally.miss("fault without a time", fault.source)
            return
        t = fault.t - self._lead_s(fault)
        if not self._selection.touches(t, t):
            return
        threads = None if fault.rank is None else self._threads_of(fault.rank)
        if threads is None:
            if fault.rank is not None and not self._selection.has_rank(fault.rank):
                return
            threads = self._of_nobody()
        told: dict[str, object] = {
            "source": fault.source,
            "host": fault.host,
            "rank": fault.rank,
            "step": fault.step,
        }
        shown = {key: value for key, value in told.items() if value is not None}
        shown |= {key: _short(value) for key, value in list(fault.details.items())[:_MOST_DETAILS]}
        tid = threads["faults in logs"]
        self._trace.instant(threads.pid, tid, fault.fault, "fault", microseconds(t), encoded(shown), "p")
        self._tally.faults += 1

    def _lead_s(self, fault: Fault) -> float:
        if fault.host is not None:
            return self._clocks.lead_of_host_s(fault.host)
        return 0.0 if fault.rank is None else self._clocks.lead_s(fault.rank, fault.attempt)

    def _of_nobody(self) -> Threads:
        if self._nobody is None:
            self._trace.named("process_name", _NOBODY, 0, "of no rank that is known")
            self._trace.named("process_sort_index", _NOBODY, 0, _NOBODY)
            self._nobody = Threads(_NOBODY, self._trace.named)
        return self._nobody


def _short(value: object) -> object:
    plain = value is None or isinstance(value, bool | int | float)
    return value if plain else str(value)[:_LONGEST_TEXT]
