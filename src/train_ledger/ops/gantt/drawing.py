"""How does a run become a Gantt of all its ranks?

Rank by rank and file by file, line by line: what is in memory are the spans that are open on one rank, so
that neither the number of ranks nor that of steps matters.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from train_ledger.headway import counted
from train_ledger.ops.gantt.clocks import Clocks, read_clocks
from train_ledger.ops.gantt.fault_marks import FaultMarks
from train_ledger.ops.gantt.inputs import find_inputs, lines_of
from train_ledger.ops.gantt.lanes import Threads
from train_ledger.ops.gantt.rank_chart import RankChart
from train_ledger.ops.gantt.selection import Selection
from train_ledger.ops.gantt.tally import Tally
from train_ledger.ops.gantt.titan_chart import TitanChart
from train_ledger.ops.gantt.trace_file import TraceFile
from train_ledger.sources import SignalDecoder
from train_ledger.sources.formats.torchtitan.torchtitan_record import read_record

__all__ = ["Gantt"]

_NOTE = (
    "Times are microseconds since 1970 on the clock of rank 0's host. Slices of the category 'part' are laid "
    "out from durations, in the order of a training loop: their lengths were measured, their positions "
    "inside the step were not. All other slices begin and end at times that the rank wrote."
)


class Gantt:
    """A run whose Gantt can be drawn; raises GanttError where none of `paths` has anything of it.

    `counters` are the fields that are drawn as graphs beside each rank's row; with `with_logs` faults that
    the run's logs tell of are marked.
    """

    def __init__(
        self,
        paths: Sequence[Path],
        selection: Selection,
        counters: Sequence[str] = (),
        *,
        with_logs: bool = True,
    ) -> None:
        self.tally = Tally()
        self.clocks = Clocks()
        self._selection = selection
        self._counters = counters
        self._with_logs = with_logs
        self._rows: dict[int, Threads] = {}
        self._inputs = find_inputs(paths, selection, self.tally)

    def draw(self, trace: TraceFile) -> None:
        """Write the whole trace and close it; `tally` says what was drawn and what was not read."""
        self.clocks = read_clocks(self._inputs, self._selection)
        ranks = list(filter(self._selection.has_rank, self._inputs.ranks))
        for rank in counted(ranks, "drawing", "ranks"):
            self._draw_rank(rank, trace)
        if self._with_logs and self._inputs.logs:
            marks = FaultMarks(trace, self._selection, self.tally, self.clocks, self._rows.get)
            marks.draw(self._inputs.logs)
        trace.close(
            {
                "about": _NOTE,
                "clock_ahead_s": {host: lead_s for host, lead_s in self.clocks.by_host.items() if lead_s},
                "not_read": list(self.tally.not_read_lines),
            }
        )

    def _draw_rank(self, rank: int, trace: TraceFile) -> None:
        host = self._inputs.host_of.get(rank)
        self.tally.ranks.add(rank)
        if host is not None:
            self.tally.hosts.add(host)
        trace.named("process_name", rank, 0, f"rank {rank} on {host}" if host else f"rank {rank}")
        trace.named("process_sort_index", rank, 0, rank)
        threads = self._rows[rank] = Threads(rank, trace.named)
        self._draw_signals(rank, trace, threads)
        for attempt, path in enumerate(self._inputs.titan.get(rank, ())):
            self._draw_titan(rank, attempt, path, trace, threads)

    def _draw_signals(self, rank: int, trace: TraceFile, threads: Threads) -> None:
        files = self._inputs.signals.get(rank, ())
        if not files:
            return
        chart = RankChart(
            rank,
            trace,
            threads,
            self._selection,
            self.tally,
            lambda attempt: self.clocks.lead_s(rank, attempt),
            self._counters,
        )
        decoder = SignalDecoder()
        for path in files:
            for line in lines_of(path, self.tally):
                fact = decoder.decode(line.data, f"{path.name}:{line.number}", rank=rank)
                if fact is not None and fact.rank == rank:
                    chart.add(fact)
                elif fact is not None:
                    self.tally.miss("line of another rank", fact.source)
        chart.end()
        for reason, number in decoder.bad_lines.items():
            self.tally.miss(reason, decoder.where.get(reason, files[-1].name), number)

    def _draw_titan(self, rank: int, attempt: int, path: Path, trace: TraceFile, threads: Threads) -> None:
        lead_s = self.clocks.lead_s(rank, attempt)
        chart = TitanChart(rank, attempt, trace, threads, self._selection, self.tally, lead_s, self._counters)
        for line in lines_of(path, self.tally):
            if line.data.isspace() or not line.data:
                continue
            record = read_record(line.data.decode(errors="replace"))
            if record is None:
                self.tally.miss("not_json", f"{path.name}:{line.number}")
            else:
                chart.add(record, f"{path.name}:{line.number}")
        chart.end()
