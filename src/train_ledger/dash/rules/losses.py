"""Are the numbers that the training makes still numbers?"""

from __future__ import annotations

from train_ledger.config import Alerts
from train_ledger.dash.conditions import last_loss_finite
from train_ledger.dash.rule import Firing, Rule
from train_ledger.dash.rules.recordings import of, remembered
from train_ledger.dash.rules.words import (
    QUIET_AFTER_THE_END,
    clock,
    of_run,
    place_of_run,
    place_of_run_promql,
    ranks_told,
)
from train_ledger.ledger.state import RunState

__all__ = ["LOSS_RULES"]


def _loss_not_finite(state: RunState, alerts: Alerts) -> list[Firing]:
    if state.finished:
        return []
    bad = sorted(
        (rank.nonfinite_t, rank.rank, rank.nonfinite_step)
        for rank in state.ranks.values()
        if rank.nonfinite_t is not None
        and (rank.nonfinite_t > state.t - alerts.loss_window_s or not last_loss_finite(rank))
    )
    if not bad:
        return []
    ranks = sorted(rank for _, rank, _ in bad)
    newest_t, _, step = bad[-1]
    of_all = any(state.ranks[rank].speaks_for_all for rank in ranks)
    whose = "" if of_all else f" on {ranks_told(ranks)}"
    text = f"the loss was not finite{whose} (last at step {step}, {clock(newest_t)})"
    return of_run(state, len(ranks), text + place_of_run(state))


_COUNTED = of("", f"{of('', remembered('train_loss_nonfinite_total'))} > 0")

_GREW = of(
    "count by (run)",
    f"increase(train_loss_nonfinite_total[$loss_window]) > 0\nand on (run, rank, instance) {_COUNTED}",
)

_BORN = of("count by (run)", f"{_COUNTED}\nand on (run) run:train_attempt_age:seconds <= $loss_window_s")
"""It counts the steps of this attempt, so that in a young one all of them are news."""

_LAST = of("count by (run)", f"{of('', remembered('train_loss_is_finite'))} == 0")

LOSS_RULES: tuple[Rule, ...] = (
    Rule(
        name="TrainingLossNotFinite",
        level="page",
        promql=of("", f"{_GREW}\nor on (run) {_BORN}\nor on (run) {_LAST}") + QUIET_AFTER_THE_END,
        summary="{{ $labels.run }}: the loss was not finite on {{ $value }} "
        "rank{{ if ne $value 1.0 }}s{{ end }}" + place_of_run_promql(),
        runbook="traininglossnotfinite",
        check=_loss_not_finite,
        keep_firing_for_s="keep_firing_s",
    ),
)
