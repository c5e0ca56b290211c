"""How do we break it on purpose, and was it noticed?"""

from __future__ import annotations

from train_ledger.chaos.demo import demo
from train_ledger.chaos.faults import MODES, Mode
from train_ledger.chaos.layout import GROUPS, Layout
from train_ledger.chaos.plan import Plan, plan_of

__all__ = ["GROUPS", "MODES", "Layout", "Mode", "Plan", "demo", "plan_of"]
