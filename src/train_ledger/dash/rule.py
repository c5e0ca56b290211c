"""What is a rule?"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from train_ledger.config import Alerts
from train_ledger.ledger.state import RunState

__all__ = ["Check", "Firing", "Group", "Inhibition", "Level", "Recording", "Rule"]

Level = Literal["page", "record"]
Group = Literal["run", "hardware", "slow"]


@dataclass(frozen=True, slots=True)
class Firing:
    """A condition that holds for one set of labels.

    `since_t` is when it began by the run's own lines, where they say; a rule's `for` then counts from there
    and not from the first evaluation, which a restarted keeper would have forgotten.
    """

    labels: Mapping[str, str]
    value: float
    summary: str
    since_t: float | None = None


@dataclass(frozen=True, slots=True)
class Recording:
    """A series that Prometheus computes first, for alerts to read.

    `group` is the one in which it is computed: groups do not wait for each other, and the steps of a run are
    not to wait for thousands of GPUs. Those of the group "slow" look back over a day, once a minute.
    """

    name: str
    promql: str
    group: Group = "run"


Check = Callable[[RunState, Alerts], Sequence[Firing]]
Seconds = float | str
"""A number of seconds, or the name of the threshold in `config.Alerts` that holds it."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One alert.

    `summary` is the annotation for Prometheus (Go template); the embedded judge's own summary comes from
    `check` and can say more. `runbook` is the anchor in the runbook. `labels` are those that the alert
    carries in both judges, besides `alertname` and `level`. `group` is as in `Recording`.
    """

    name: str
    level: Level
    promql: str
    summary: str
    runbook: str
    check: Check
    for_s: Seconds = 0.0
    keep_firing_for_s: Seconds = 0.0
    labels: tuple[str, ...] = ("run",)
    group: Group = "run"

    def hold_s(self, alerts: Alerts) -> float:
        """How long the condition has to hold before the alert fires."""
        return _seconds(self.for_s, alerts)

    def keep_s(self, alerts: Alerts) -> float:
        """How long the condition has to be gone before the alert is resolved."""
        return _seconds(self.keep_firing_for_s, alerts)


def _seconds(value: Seconds, alerts: Alerts) -> float:
    return float(getattr(alerts, value)) if isinstance(value, str) else value


@dataclass(frozen=True, slots=True)
class Inhibition:
    """While one of `sources` is active, `targets` notify nobody.

    Only where both carry every label of `equal` with the same value: two alerts that both lack a label are
    not equal in it.
    """

    sources: frozenset[str]
    targets: frozenset[str]
    equal: tuple[str, ...] = ("run",)
