"""Will the Flight Recorder have what a hang needs, and will its dumps be written where they last?

`apply` sets what the user has left unset, before torch reads it; `check` looks at what really stands in a
rank's environment; VARIABLES is the table behind both.
"""

from __future__ import annotations

from train_ledger.signals.flight.inspection import check, dump_prefix
from train_ledger.signals.flight.settings import apply
from train_ledger.signals.flight.variables import VARIABLES, Finding, Variable

__all__ = ["VARIABLES", "Finding", "Variable", "apply", "check", "dump_prefix"]
