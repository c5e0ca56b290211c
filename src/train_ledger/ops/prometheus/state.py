"""What do a Prometheus' series of a run add up to?

The state that files are folded into, as far as metrics tell it: no phases, no exceptions and no world size,
and of a loss that was not finite not in which step it was. Times are on Prometheus' clock.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from statistics import median

from train_ledger.config import Config
from train_ledger.ledger import Attempt, Checkpoints, RankState, RunState
from train_ledger.ledger.machine import with_state
from train_ledger.ledger.trends import Fragmented, Outlier, Speed, Spike, StepTimes
from train_ledger.ops.prometheus.gpus import gpus_of
from train_ledger.sources.prometheus import RunSeries, Sample

__all__ = ["state_of"]

_TOLD_BY_EXPORTERS = ("numeric_fault", "hardware_fault", "restarting", "recovering")
"""States that rest on what is not exported; a stall is reckoned anew, by the time that has passed."""

_VALUES = ("step_time_s",)
_LARGEST_RANK = 1 << 20


def state_of(series: RunSeries, config: Config) -> RunState:
    """The run as known at the moment of the series."""
    ranks = _ranks(series)
    steps = [it.step for it in ranks.values() if it.step is not None]
    times = sorted(it.step_t for it in ranks.values() if it.step_t is not None)
    attempts = _attempts(series)
    run = RunState(
        run=series.run,
        t=series.t,
        attempt=attempts[-1].number if attempts else 0,
        step=int(_lower_median(sorted(steps))) if steps else None,
        last_step_t=_lower_median(times) if times else None,
        p50_step_time_s=_middle(series, "train_step_time_seconds_p50"),
        stall_threshold_s=_largest(series, "train_stall_threshold_seconds") or config.alerts.start_up_limit_s,
        ranks=ranks,
        attempts=attempts,
        checkpoints=Checkpoints(saved_t=_saved(series)),
        gpus=gpus_of(series, ranks.values(), config.xid),
        speed=_speed(series, ranks),
        data_regress_total=int(_largest(series, "train_data_position_regressed_total") or 0),
    )
    return _named(run, series, config)


def _named(run: RunState, series: RunSeries, config: Config) -> RunState:
    if _is_finished(series):
        ended = {rank: replace(it, ended=True) for rank, it in run.ranks.items()}
        return replace(run, state="finished", finished=True, since_t=run.last_step_t, ranks=ended)
    found = with_state(replace(run, finished=False), config.alerts)
    told = {it.labels.get("state", "") for it in series.of("train_run_state") if it.value == 1}
    for name in _TOLD_BY_EXPORTERS:
        if found.state in ("running", "starting") and name in told:
            return replace(found, state=name)
    return found


def _is_finished(series: RunSeries) -> bool:
    """All that follow ranks say so; where none of them is known, who knows them all."""
    told = series.of("train_run_finished")
    sidecars = [it for it in told if it.labels.get("instance", "") in series.offsets_s]
    return bool(told) and all(it.value == 1 for it in sidecars or told)


def _lower_median(ordered: list[float] | list[int]) -> float:
    """At least half are no older; one that lies between two would be nobody's."""
    return ordered[(len(ordered) - 1) // 2]


def _middle(series: RunSeries, name: str) -> float | None:
    told = [it.value for it in series.of(name) if math.isfinite(it.value)]
    return median(told) if told else None


def _largest(series: RunSeries, name: str) -> float | None:
    return max((it.value for it in series.of(name) if math.isfinite(it.value)), default=None)


def _attempts(series: RunSeries) -> tuple[Attempt, ...]:
    """The newest, and the first where that is another one; those between are not known by their times.

    When the newest completed its first step no metric tells: the run counts as running from its start on.
    """
    number = int(_largest(series, "train_restart_total") or 0)
    started = [series.time_of(it) for it in series.of("train_run_started_timestamp_seconds")]
    own = [series.time_of(it) for it in series.of("train_attempt_started_timestamp_seconds")]
    if not own:
        return ()
    has_steps = bool(series.of("train_step"))
    newest = Attempt(number, min(own), first_step_t=min(own) if has_steps else None)
    return (Attempt(0, min(started)), newest) if number and started else (newest,)


def _saved(series: RunSeries) -> tuple[float, ...]:
    told = [series.time_of(it) for it in series.of("train_ckpt_last_success_timestamp_seconds")]
    return (max(told),) if told else ()


def _ranks(series: RunSeries) -> dict[int, RankState]:
    by = {name: _by_rank(series.of(name)) for name in _PER_RANK}
    grown = _by_rank(series.grown.get("nonfinite", ()))
    known = sorted({rank for some in by.values() for rank in some})
    attempt = int(_largest(series, "train_restart_total") or 0)
    return {
        rank: _rank(rank, attempt, series, {n: s.get(rank) for n, s in by.items()}, grown) for rank in known
    }


_PER_RANK = (
    "train_step", "train_last_step_completed_timestamp_seconds", "train_last_log_timestamp_seconds",
    "train_process_up", "train_process_gone_timestamp_seconds", "train_rank_info", "train_loss_is_finite",
    "train_data_wait_fraction", "train_fragmented_alloc_retries", *(f"train_{name}" for name in _VALUES),
)  # fmt: skip


def _by_rank(samples: Iterable[Sample]) -> dict[int, Sample]:
    """The newest sample of each rank: a rank may have moved from one node to another."""
    found: dict[int, Sample] = {}
    for it in samples:
        text = it.labels.get("rank", "")
        rank = int(text) if text.isdecimal() and len(text) < 8 else _LARGEST_RANK
        if rank < _LARGEST_RANK and (rank not in found or it.t >= found[rank].t):
            found[rank] = it
    return found


def _rank(
    rank: int, attempt: int, series: RunSeries, told: Mapping[str, Sample | None], grown: Mapping[int, Sample]
) -> RankState:
    info, step, up = told["train_rank_info"], told["train_step"], told["train_process_up"]
    where = info.labels if info is not None else {}
    step_t = _time(series, told["train_last_step_completed_timestamp_seconds"])
    heard_t = _time(series, told["train_last_log_timestamp_seconds"])
    is_gone = up is not None and up.value == 0
    gone_t = _time(series, told["train_process_gone_timestamp_seconds"])
    finite = told["train_loss_is_finite"]
    number = None if step is None else int(step.value)
    is_bad = finite is not None and finite.value == 0
    waits, retries = told["train_data_wait_fraction"], told["train_fragmented_alloc_retries"]
    return RankState(
        rank=rank,
        attempt=attempt,
        host=where.get("host") or None,
        gpu=int(gpu) if (gpu := where.get("gpu", "")).isdecimal() and len(gpu) < 5 else None,
        uuid=where.get("uuid") or None,
        step=number,
        step_t=step_t,
        heard_t=heard_t,
        ended=up is None and info is not None and info.labels.get("instance", "") in series.living,
        gone_t=(gone_t if gone_t is not None else heard_t or series.t) if is_gone else None,
        values={name: it.value for name in _VALUES if (it := told[f"train_{name}"]) is not None},
        nonfinite_total=int(is_bad or rank in grown),
        nonfinite_step=number if is_bad else None,
        nonfinite_t=step_t if is_bad else None,
        data_wait_fraction=None if waits is None else waits.value,
        fragmented=None if retries is None else Fragmented(retries.value, math.nan),
    )


def _time(series: RunSeries, sample: Sample | None) -> float | None:
    return None if sample is None or not math.isfinite(sample.value) else series.time_of(sample)


def _speed(series: RunSeries, ranks: Mapping[int, RankState]) -> Speed:
    """As of now: an exporter tells none of a run that stands."""
    t = max((it.step_t for it in ranks.values() if it.step_t is not None), default=series.t)
    recent, usual = (_middle(series, f"train_step_time_{name}_seconds") for name in ("recent", "usual"))
    share, spike = (
        _middle(series, "train_mfu_sustained_fraction"),
        _largest(series, "train_grad_norm_spike_ratio"),
    )
    step = max((it.step for it in ranks.values() if it.step is not None), default=0)
    return Speed(
        step_times=StepTimes(recent, usual, 0, 0, t) if recent and usual else None,
        mfu=None if share is None else 100 * share,
        mfu_t=None if share is None else t,
        mfu_baseline=None if share is None else 100.0,
        spike=None if spike is None else Spike(step, t, spike, 1.0),
        outliers=tuple(_outliers(series, ranks)),
    )


def _outliers(series: RunSeries, ranks: Mapping[int, RankState]) -> Iterable[Outlier]:
    """Whoever knows all ranks tells them, and each sidecar of its own: once a rank."""
    for rank, it in sorted(_by_rank(series.of("train_rank_outlier_ratio")).items()):
        if it.value > 1:
            host = it.labels.get("host") or (ranks[rank].host if rank in ranks else None)
            yield Outlier(rank, host, it.value, math.nan, math.nan)
