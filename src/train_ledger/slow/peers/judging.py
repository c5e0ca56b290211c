"""Who drags all others, or does nobody?

In synchronous training every step takes all ranks equally long, so step times accuse nobody. A rank is named
where its own work passes every gate beside its peers', and the others wait for it; else what is seen is told
apart, and nobody is named.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from train_ledger.config import Alerts
from train_ledger.slow.peers.culprits import (
    excess_of,
    off_by_history,
    off_by_peers,
    waits_of,
    whole_hosts,
)
from train_ledger.slow.peers.detector import by_detector, tells_stragglers
from train_ledger.slow.peers.doubts import doubt
from train_ledger.slow.peers.log_timers import of_log, tells_spans
from train_ledger.slow.peers.measured import Measured, measured, median_of
from train_ledger.slow.peers.ratios import FEWEST
from train_ledger.slow.peers.stages import SlowStage, slow_stage
from train_ledger.slow.peers.turns import turns, was_slow
from train_ledger.slow.peers.verdict import Excess, Phase, Who
from train_ledger.slow.table import StepTable

__all__ = ["who"]

_UNTOLD = (
    "no rank tells its own work (compute_s, or comm_wait_s): steps take all ranks equally long, whoever drags"
)
_FAR, _AT_TIMES = 0.10, 0.3
_RISEN_WITH = 0.5
"""Of what a stage rose by, so much at least the other stages of its host did."""


def who(table: StepTable, alerts: Alerts | None = None, before: StepTable | None = None) -> Who:
    """Who drags in the newest steps of the table, by the gates of `alerts` (outlier_…).

    `before` are earlier steps of the run: who was used to work how long.
    """
    alerts = alerts or Alerts()
    if tells_stragglers(table) and not table.tells("compute_s"):
        named = by_detector(table, alerts)
        return named if named.kind != "cannot_tell" or not tells_spans(table) else of_log(table, alerts)
    if table.of_all or tells_spans(table):
        return of_log(table, alerts)
    found = measured(table, alerts, before)
    if found is None:
        return Who("cannot_tell", _UNTOLD)
    if (refusal := _too_little(found, alerts)) is not None:
        return refusal
    rows = off_by_peers(found, alerts)
    if rows:
        return _accused(found, rows, alerts)
    by_history = off_by_history(found, alerts)
    if by_history:
        return _named(found, by_history, alerts, by_history=True)
    return _nobody_named(found, alerts)


def _too_little(found: Measured, alerts: Alerts) -> Who | None:
    """Why nothing can be said, where nothing can."""
    steps = len(found.table.steps)
    told = int(found.recent.any(axis=1).sum())
    if not told:
        least = alerts.outlier_least_steps
        return Who("cannot_tell", f"{steps} steady steps were told; it takes {least} to say who drags")
    if (found.groups < 0).any():
        return Who(
            "cannot_tell", "run.json's parallelism does not fit its world_size: who does the same work?"
        )
    if told < FEWEST:
        return _of_two(found, told)
    if told <= (found.table.world_size or 0) / 2:
        return Who("cannot_tell", f"{told} of {found.table.world_size} ranks told their own work")
    return None


def _of_two(found: Measured, told: int) -> Who:
    """Of two ranks only the difference is known."""
    if told < 2:
        return Who("cannot_tell", "one rank alone told its own work: there is nobody to compare it with")
    rows = np.flatnonzero(found.recent.any(axis=1))
    first, second = (float(np.nanmedian(found.work.seconds[row][found.recent[row]])) for row in rows)
    names = [found.table.ranks[int(row)] for row in rows]
    reason = (
        f"own work is {first:.4g} s on rank {names[0]} and {second:.4g} s on rank {names[1]}, "
        f"a ratio of {max(first, second) / max(min(first, second), 1e-12):.3g}: "
        "of two ranks nobody can say which one is as usual"
    )
    return Who("cannot_tell", reason, steps=_judged(found))


def _accused(found: Measured, rows: list[int], alerts: Alerts) -> Who:
    """Ranks that pass every gate beside their peers: are they really few, and does somebody wait for them?"""
    waits = waits_of(found, rows)
    excesses = tuple(excess_of(found, row, alerts) for row in rows)
    if waits == "contradict":
        kept = [row for row in rows if waits_of(found, [row]) != "contradict"]
        if kept and len(kept) < len(rows):
            return _accused(found, kept, alerts)
        reason = f"{_in_words(excesses)}, but the others do not wait for it: one of the two figures is wrong"
        return Who("cannot_tell", reason, excesses=excesses, waits=waits, steps=_judged(found))
    risen = [row for row in rows if found.has_risen(row)]
    if risen and len(risen) < len(rows) and not found.table.layout_told:
        return _accused(found, risen, alerts)  # the rest has more work since ever, as a stage may
    named = _named(found, rows, alerts)
    if len(risen) < len(rows) and (why := doubt(found, rows)) is not None:
        return Who("cannot_tell", why, excesses=excesses, waits=waits, steps=_judged(found), otherwise=named)
    return named


def _named(found: Measured, rows: Sequence[int], alerts: Alerts, *, by_history: bool = False) -> Who:
    excesses = tuple(excess_of(found, row, alerts, by_history=by_history) for row in rows)
    hosts = whole_hosts(found, rows)
    of_hosts = hosts and all(found.table.hosts[row] in hosts for row in rows)
    worst = max(excesses, key=lambda it: it.impact)
    culprits = tuple(it.rank for it in excesses)
    return Who(
        "host" if of_hosts else "rank",
        _in_words(excesses),
        ranks=culprits,
        hosts=hosts,
        phase=_phase(excesses),
        excesses=excesses,
        victims=tuple(rank for rank in found.table.ranks if rank not in culprits),
        cost=worst.impact,
        since_step=worst.since_step,
        waits="confirm" if by_history else waits_of(found, rows),
        steps=_judged(found),
    )


def _phase(excesses: Sequence[Excess]) -> Phase:
    """Where most of the excess of all of them is."""
    together = {phase: sum(it.parts.get(phase, 0.0) for it in excesses) for phase in excesses[0].parts}
    return max(together, key=lambda phase: together[phase])


def _in_words(excesses: Sequence[Excess]) -> str:
    worst = max(excesses, key=lambda it: it.impact)
    others = f" (and {len(excesses) - 1} more)" if len(excesses) > 1 else ""
    return (
        f"rank {worst.rank}{others} works {worst.ratio:.2f} × as long as its peers in {worst.share:.0%} "
        f"of the steps, {worst.excess_s:.3g} s more, most of it {worst.phase}"
    )


def _nobody_named(found: Measured, alerts: Alerts) -> Who:
    """Nobody is off for long: do they take turns, is it a stage, was it somebody for a while?"""
    taking = turns(found, alerts)
    stage = slow_stage(found, alerts)
    most = max(taking.gc, taking.sequence)
    if stage is not None and stage.impact >= most:
        return _of_stage(found, stage, alerts)
    if most < alerts.outlier_impact:
        return _nobody(found, alerts)
    steps = _judged(found)
    if taking.gc == most:
        reason = (
            f"{taking.gc_ranks} ranks take turns in being slow, by their garbage collection: "
            f"{taking.gc:.1%} of the time"
        )
        return Who("gc", reason, phase="gc", cost=taking.gc, steps=steps)
    reason = (
        f"{taking.slowest_ranks} ranks take turns in being slow, by the tokens of their sequences "
        f"(correlation {taking.correlation:.2f}): {taking.sequence:.1%} of the time"
    )
    return Who("sequence", reason, phase="compute", cost=taking.sequence, steps=steps)


def _of_stage(found: Measured, stage: SlowStage, alerts: Alerts) -> Who:
    """A stage of one host, which became slow as a whole, is that host's fault: layouts stay as they are."""
    rows = [int(row) for row in np.flatnonzero(found.groups == stage.stage)]
    hosts = {found.table.hosts[row] for row in rows}
    of_host = [row for row, host in enumerate(found.table.hosts) if host in hosts]
    if stage.has_risen and len(hosts) == 1 and None not in hosts and len(of_host) > 1:
        risen = median_of(found.risen, found.recent)
        others = [risen[row] for row in of_host if row not in rows]
        if all(it > _RISEN_WITH * np.log(stage.ratio) for it in others):
            return _named(found, of_host, alerts, by_history=True)
    reason = (
        f"the {len(rows)} ranks of stage {stage.stage} work {stage.ratio:.2f} × as long as those of the "
        f"other stages in {stage.share:.0%} of the steps: the layout is out of balance"
    )
    return Who("stage", reason, phase="compute", stage=stage.stage, cost=stage.impact, steps=_judged(found))


def _nobody(found: Measured, alerts: Alerts) -> Who:
    seen = was_slow(found, alerts)
    excesses = tuple(excess_of(found, row, alerts) for row, _, _ in seen if found.recent[row].any())
    steps = _judged(found)
    ended = [(row, count) for row, count, still in seen if not still]
    if seen and len(ended) == len(seen):
        row, count = max(ended, key=lambda it: it[1])
        reason = f"rank {found.table.ranks[row]} was slow for {count} steps, and is not any more"
        return Who("transient", reason, excesses=excesses, steps=steps)
    if seen:
        row, count, _ = max(seen, key=lambda it: it[1])
        least = alerts.outlier_least_steps
        reason = f"rank {found.table.ranks[row]} has been slow for {count} steps; it takes {least} to say so"
        return Who("nobody", reason, excesses=excesses, steps=steps)
    if np.isfinite(found.ratios).any():
        with np.errstate(all="ignore"):
            off = [float(np.nanmedian(row)) if np.isfinite(row).any() else 0.0 for row in found.ratios]
        if at_times := _at_times(found, alerts):
            return Who("cannot_tell", at_times, steps=steps)
        reason = f"no rank works longer than {np.exp(max(off)):.3f} × its peers"
        if max(off) > np.log1p(alerts.outlier_effect):
            reason += ", which ranks that vary as these do are by chance, or for a while"
        return Who("nobody", reason, steps=steps)
    reason = f"no stage has {FEWEST} ranks, so that nobody's peers are known"
    return Who("cannot_tell", reason, steps=steps)


def _at_times(found: Measured, alerts: Alerts) -> str:
    """Who is far off in too few of the newest steps to be named, but in many; "" where nobody is."""
    far = (np.nan_to_num(found.ratios) > np.log1p(_FAR)) & found.recent
    shares = far.sum(axis=1) / np.maximum(1, found.recent.sum(axis=1))
    row = int(shares.argmax())
    if shares[row] < _AT_TIMES:
        return ""
    ratio = float(np.exp(np.median(found.ratios[row][far[row]])))
    return (
        f"rank {found.table.ranks[row]} works {ratio:.2f} × as long as its peers in {shares[row]:.0%} of the "
        f"newest steps; it takes {alerts.outlier_share:.0%} of them to say that it drags"
    )


def _judged(found: Measured) -> int:
    """How many steps the newest verdict rests on."""
    return int(found.recent.sum(axis=1).max()) if found.recent.size else 0
