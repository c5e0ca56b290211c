"""What makes a run slow, by the gauges that its exporters make of it?

Exporters compare ranks with their peers and the run with its own past; here their figures are read. The
parts of a step stand in the ranks' own lines, so that what is told is coarser than `train-ledger slow`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from statistics import median

from train_ledger.answer import Confidence, Diagnosis, RuledOut
from train_ledger.config import Alerts
from train_ledger.dash.speed_conditions import (
    data_waits,
    fragmented_ranks,
    mfu_of_baseline,
    rank_outliers,
    step_times,
)
from train_ledger.ledger import RunState
from train_ledger.ops.words import step_clock
from train_ledger.slow.suspects import Cards
from train_ledger.slow.suspects.cards import of_clocks
from train_ledger.sources.prometheus import RunSeries

__all__ = ["of_gauges"]

_FILES_SAY = "the parts of a step and their history: train-ledger slow reads them in the run directory"


def of_gauges(series: RunSeries, state: RunState, alerts: Alerts) -> Diagnosis | None:
    """The first that holds: few ranks drag, all wait for data, memory falls to pieces; None where none."""
    if state.finished or state.stalled_for_s > state.stall_threshold_s:
        return None
    found = _few(state, alerts) or _data(state, alerts) or _memory(state, alerts)
    found = found or _saves(series, state, alerts) or _slower(state, alerts)
    if found is None:
        return None
    told = (*found.evidence, *_slower_in_words(state, alerts), step_clock(state))
    return replace(
        found,
        evidence=tuple(dict.fromkeys(told)),
        not_observed=(*found.not_observed, _FILES_SAY),
    )


def _diagnosis(state: RunState, cause: str, said: str, confidence: Confidence = "medium") -> Diagnosis:
    return Diagnosis(state=state.state, cause=cause, confidence=confidence, evidence=(said,))


def _few(state: RunState, alerts: Alerts) -> Diagnosis | None:
    outliers = rank_outliers(state)
    if not outliers:
        return None
    ranks = tuple(it.rank for it in outliers)
    said = tuple(
        f"train_rank_outlier_ratio: own work of rank {it.rank}{f' on {it.host}' if it.host else ''} is "
        f"{it.ratio:.2f} × that of its peers"
        for it in outliers
    )
    clocks = of_clocks(Cards(state.gpus), ranks, alerts)
    found = _diagnosis(state, "slow.straggler.software", said[0], "low")
    found = replace(found, ranks=ranks, evidence=said)
    if clocks.verdict == "confirmed":
        return replace(found, cause="slow.straggler.clock", confidence="medium", evidence=(*said, clocks.by))
    links = "slow.straggler.link: no metric tells the links' errors of these ranks"
    if clocks.verdict == "ruled_out":
        ruled_out = (RuledOut("slow.straggler.clock", clocks.by),)
        return replace(found, ruled_out=ruled_out, not_observed=(links,))
    return replace(found, not_observed=(f"{clocks.cause}: {clocks.by}", links))


def _data(state: RunState, alerts: Alerts) -> Diagnosis | None:
    waits = {
        rank: share for rank, share in data_waits(state, alerts).items() if share > alerts.data_wait_fraction
    }
    if not waits:
        return None
    worst = max(waits, key=lambda rank: (waits[rank], -rank))
    others = (
        f", and {len(waits) - 1} more ranks over {alerts.data_wait_fraction:.0%}" if len(waits) > 1 else ""
    )
    said = f"train_data_wait_fraction: rank {worst} waits for data in {waits[worst]:.0%} of its time{others}"
    return _diagnosis(state, "slow.data", said)


def _memory(state: RunState, alerts: Alerts) -> Diagnosis | None:
    grown = fragmented_ranks(state, alerts)
    if not grown:
        return None
    worst = max(grown, key=lambda rank: (grown[rank].retries, -rank))
    retries = f"{grown[worst].retries:.0f} on rank {worst}, {len(grown)} ranks in all"
    said = f"train_fragmented_alloc_retries: {retries}"
    return _diagnosis(state, "slow.fragmentation", said)


def _saves(series: RunSeries, state: RunState, alerts: Alerts) -> Diagnosis | None:
    told = [it.value for it in series.of("train_ckpt_duration_ratio")]
    ratio = median(told) if told else 0.0
    if ratio <= alerts.checkpoint_slower_factor:
        return None
    return _diagnosis(
        state,
        "slow.checkpoint",
        f"train_ckpt_duration_ratio: the last save took {ratio:.1f} × as long as usual",
    )


def _slower(state: RunState, alerts: Alerts) -> Diagnosis | None:
    """Slower, and no gauge says why."""
    said = next(_slower_in_words(state, alerts), None)
    if said is None:
        return None
    found = _diagnosis(state, "unknown", said, "low")
    return replace(found, not_observed=("steps became slower, and no gauge of the exporters says why",))


def _slower_in_words(state: RunState, alerts: Alerts) -> Iterator[str]:
    times = step_times(state, alerts)
    if times is not None and times.ratio >= alerts.step_regressed_factor:
        was = f"was {times.usual_s:.3g} s in an earlier hour"
        yield f"the median step time became {times.recent_s:.3g} s, {was}"
    share = mfu_of_baseline(state, alerts)
    if share is not None and share < alerts.mfu_degraded_fraction:
        yield f"MFU is at most {share:.0%} of its baseline"
