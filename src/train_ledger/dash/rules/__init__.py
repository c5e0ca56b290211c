"""Which conditions wake somebody, and which are only put on record?

Each rule stands here once: its name (a contract, runbooks and silences hang on it), its level, what it means
in PromQL and what it means on the state of a run. `promql.alerts_yml` makes a rules file for Prometheus of
this table; `judge.Judge` evaluates it without any server.

In the PromQL, `$name` is a threshold of `config.Alerts` as a number, and `$name` without its `_s` the same as
a duration. One test decides about the level: if nobody acts, are GPU-hours lost for the next hour?
"""

from __future__ import annotations

from train_ledger.dash.rule import Inhibition, Recording, Rule
from train_ledger.dash.rules.checkpoints import CHECKPOINT_RECORDINGS, CHECKPOINT_RULES
from train_ledger.dash.rules.goodput import GOODPUT_RECORDINGS, GOODPUT_RULES
from train_ledger.dash.rules.gpus import HARDWARE_RECORDINGS
from train_ledger.dash.rules.hardware import HARDWARE_RULES
from train_ledger.dash.rules.losses import LOSS_RULES
from train_ledger.dash.rules.plain_speed import PLAIN_RECORDINGS
from train_ledger.dash.rules.recordings import SHARED_RECORDINGS
from train_ledger.dash.rules.restarts import RESTART_RULES
from train_ledger.dash.rules.speed import SPEED_RECORDINGS, SPEED_RULES
from train_ledger.dash.rules.steps import STEP_RULES
from train_ledger.dash.rules.telemetry import TELEMETRY_RECORDINGS, TELEMETRY_RULES

__all__ = ["INHIBITIONS", "RECORDINGS", "RULES"]

INHIBITIONS = (
    Inhibition(
        sources=frozenset({"GpuXidError", "GpuEccDbe", "GpuLost", "TrainingRestarting"}),
        targets=frozenset({"TrainingStepStalled", "TrainingProcessGone", "TrainingTelemetryLost"}),
    ),
    Inhibition(sources=frozenset({"GpuXidError"}), targets=frozenset({"GpuClockLow"}), equal=("run", "host")),
)

RULES: tuple[Rule, ...] = (
    *STEP_RULES,
    *LOSS_RULES,
    *RESTART_RULES,
    *CHECKPOINT_RULES,
    *SPEED_RULES,
    *GOODPUT_RULES,
    *TELEMETRY_RULES,
    *HARDWARE_RULES,
)

RECORDINGS: tuple[Recording, ...] = (
    *SHARED_RECORDINGS,
    *CHECKPOINT_RECORDINGS,
    *SPEED_RECORDINGS,
    *PLAIN_RECORDINGS,
    *GOODPUT_RECORDINGS,
    *TELEMETRY_RECORDINGS,
    *HARDWARE_RECORDINGS,
)
"""In the order in which they are computed: one may read those before it."""
