"""What does a training process write, and how, so that it costs it microseconds and never its life?

Standard library only; torch is looked up where it is used and never required.
"""

from __future__ import annotations

from train_ledger.signals.monitor import Monitor
from train_ledger.signals.start import start
from train_ledger.signals.writing.logger import SignalLogger

__all__ = ["Monitor", "SignalLogger", "start"]
