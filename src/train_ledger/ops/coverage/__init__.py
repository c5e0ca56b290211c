"""Was every signal collected beforehand?

For every cause that can be told, which signals decide it, whether each arrives now, and how to get what is
missing: what could not be told tonight is said before tonight.
"""

from __future__ import annotations

from train_ledger.ops.coverage.looking import coverage
from train_ledger.ops.coverage.records import Arrival, CauseCoverage, Coverage, SignalCoverage, exit_code_of
from train_ledger.ops.coverage.shown import report_of_coverage
from train_ledger.ops.coverage.signals import SIGNALS, Signal
from train_ledger.ops.coverage.table import ROWS, Row

__all__ = [
    "ROWS",
    "SIGNALS",
    "Arrival",
    "CauseCoverage",
    "Coverage",
    "Row",
    "Signal",
    "SignalCoverage",
    "coverage",
    "exit_code_of",
    "report_of_coverage",
]
