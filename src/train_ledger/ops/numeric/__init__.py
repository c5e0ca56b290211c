"""The numbers went wrong: at which step and data, over all attempts, and where does one go back to?"""

from __future__ import annotations

from train_ledger.ops.numeric.advice import Advice, advice_about
from train_ledger.ops.numeric.bad_steps import BadStep, Steps, steps_of
from train_ledger.ops.numeric.spike import LossSpike, spike_in

__all__ = ["Advice", "BadStep", "LossSpike", "Steps", "advice_about", "spike_in", "steps_of"]
