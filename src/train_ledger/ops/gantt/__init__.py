"""What did all ranks do, side by side on one axis of time? A trace that Perfetto opens."""

from __future__ import annotations

from train_ledger.ops.gantt.drawing import Gantt
from train_ledger.ops.gantt.selection import GanttError, Selection, rank_ranges, step_range
from train_ledger.ops.gantt.trace_file import TraceFile

__all__ = ["Gantt", "GanttError", "Selection", "TraceFile", "rank_ranges", "step_range"]
