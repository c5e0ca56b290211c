"""How do we break it on purpose, and was it noticed?"""

from __future__ import annotations

from train_ledger.chaos.demo import DemoOutcome, demo
from train_ledger.chaos.faults import MODES, Mode

__all__ = ["MODES", "DemoOutcome", "Mode", "demo"]
