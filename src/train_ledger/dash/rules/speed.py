"""Has the run become slower, and who or what makes it wait?"""

from __future__ import annotations

from train_ledger.config import Alerts
from train_ledger.dash.rule import Firing, Recording, Rule
from train_ledger.dash.rules.recordings import of, remembered
from train_ledger.dash.rules.words import QUIET_AFTER_THE_END, of_run, place_of_run, place_of_run_promql
from train_ledger.dash.speed_conditions import (
    data_waits,
    fragmented_ranks,
    grad_norm_spike,
    mfu_of_baseline,
    rank_outliers,
    step_times,
)
from train_ledger.ledger.state import RunState
from train_ledger.render import harmless

__all__ = ["SPEED_RECORDINGS", "SPEED_RULES"]


def _step_time_regressed(state: RunState, alerts: Alerts) -> list[Firing]:
    times = step_times(state, alerts)
    if times is None or times.ratio < alerts.step_regressed_factor:
        return []
    text = (
        f"the median step time became {_seconds(times.recent_s)} (last {alerts.step_recent_s / 60:g} min, "
        f"{times.recent} steps), was {_seconds(times.usual_s)} in an earlier hour"
    )
    return of_run(state, times.ratio, text + place_of_run(state))


def _mfu_degraded(state: RunState, alerts: Alerts) -> list[Firing]:
    share = mfu_of_baseline(state, alerts)
    if share is None or share >= alerts.mfu_degraded_fraction:
        return []
    return of_run(state, share, _mfu_told(state, share, alerts) + place_of_run(state))


def _mfu_drift(state: RunState, alerts: Alerts) -> list[Firing]:
    share = mfu_of_baseline(state, alerts)
    if share is None or not alerts.mfu_degraded_fraction <= share < alerts.mfu_drift_fraction:
        return []
    return of_run(state, share, _mfu_told(state, share, alerts))


def _mfu_told(state: RunState, share: float, alerts: Alerts) -> str:
    mfu, baseline = state.speed.mfu, state.speed.mfu_baseline
    figures = f"{mfu:.3g} of {baseline:.3g} percent"
    return f"MFU is at most {share:.0%} of its baseline ({figures}) for {alerts.mfu_window_s / 60:g} min"


def _data_loading_wait(state: RunState, alerts: Alerts) -> list[Firing]:
    waits = data_waits(state, alerts)
    over = [rank for rank, share in waits.items() if share > alerts.data_wait_fraction]
    if not over:
        return []
    worst = min(over, key=lambda rank: (-waits[rank], rank))
    others = f", {len(over) - 1} more ranks over the limit" if len(over) > 1 else ""
    minutes = alerts.data_wait_window_s / 60
    text = f"rank {worst}{_on_host(state, worst)} waited for data for {waits[worst]:.0%} of its steps"
    return of_run(state, waits[worst], f"{text} in the last {minutes:g} min{others}")


def _rank_outlier(state: RunState, _: Alerts) -> list[Firing]:
    firings = []
    for it in rank_outliers(state):
        placed = {"run": state.run, "rank": str(it.rank)}
        text = (
            f"{state.run}: rank {it.rank}{_on_host(state, it.rank)}: own work {it.ratio - 1:.0%} over its "
            f"peers' in {it.share:.0%} of the last steps; it adds {it.impact:.0%} to a step"
        )
        labels = placed if it.host is None else {**placed, "host": it.host}
        firings.append(Firing(labels, it.ratio, harmless(text, longest=500)))
    return firings


def _fragmentation(state: RunState, alerts: Alerts) -> list[Firing]:
    grown = fragmented_ranks(state, alerts)
    if not grown:
        return []
    worst = min(grown, key=lambda rank: (-grown[rank].retries, rank))
    it = grown[worst]
    minutes, gigabytes = alerts.fragmentation_window_s / 60, it.inactive_bytes / 1e9
    text = (
        f"memory falls to pieces on rank {worst}{_on_host(state, worst)}: {it.retries:.0f} retries of "
        f"allocation within {minutes:g} min, inactive split memory grew by {gigabytes:.2g} GB"
    )
    others = f"; {len(grown) - 1} more ranks" if len(grown) > 1 else ""
    return of_run(state, it.retries, text + others)


def _grad_norm_spike(state: RunState, alerts: Alerts) -> list[Firing]:
    spike = grad_norm_spike(state, alerts)
    if spike is None:
        return []
    ratio = spike.grad_norm / spike.median
    text = f"the gradient norm was {spike.grad_norm:.3g} at step {spike.step}"
    return of_run(state, ratio, f"{text}, {ratio:.3g} times the median before")


def _on_host(state: RunState, rank: int) -> str:
    known = state.ranks.get(rank)
    return f" on {known.host}" if known is not None and known.host else ""


def _seconds(seconds: float) -> str:
    """To the 1 % that is known.

    >>> _seconds(39.85), _seconds(0.4321), _seconds(123.4)
    ('40 s', '0.43 s', '123 s')
    """
    return f"{seconds:.0f} s" if seconds >= 10 else f"{seconds:.2g} s"


def _told(query: str, text: str) -> str:
    """The first value of a query with the run's name for %q in it; nothing where there is none."""
    value = f'{{{{ . | first | value | printf "{text}" }}}}'
    return f'{{{{ with printf "{query}" $labels.run | query }}}}{value}{{{{ end }}}}'


def _worst(metric: str) -> str:
    query = f'printf "topk(1, {metric}{{run=%q}})" $labels.run | query'
    return f'{{{{ with {query} }}}} on rank {{{{ . | first | label "rank" }}}}{{{{ end }}}}'


SPEED_RECORDINGS: tuple[Recording, ...] = (
    Recording(
        "run_instance:train_step_time_recent:seconds",
        of("max by (run, instance)", remembered("train_step_time_recent_seconds")),
    ),
    Recording(
        "run_instance:train_step_time_usual:seconds",
        of("max by (run, instance)", remembered("train_step_time_usual_seconds")),
    ),
    Recording(
        "run:train_step_time:ratio",
        of(
            "quantile by (run)",
            "0.5",
            "run_instance:train_step_time_recent:seconds / run_instance:train_step_time_usual:seconds",
        ),
    ),
    Recording(
        "run:train_mfu_sustained:fraction",
        of("quantile by (run)", "0.5", remembered("train_mfu_sustained_fraction")),
    ),
)

_RECENT = "quantile by (run) (0.5, run_instance:train_step_time_recent:seconds{run=%q})"
_USUAL = "quantile by (run) (0.5, run_instance:train_step_time_usual:seconds{run=%q})"

_SLOWER, _SLOWER_PLAIN = "run:train_step_time:ratio", "run:train_step_time_plain:ratio"
_MFU, _MFU_PLAIN = "run:train_mfu_sustained:fraction", "run:train_mfu_sustained_plain:fraction"


def _either(figure: str, plain: str, compared: str) -> str:
    """A figure that our exporter keeps; of other runs what Prometheus makes of the plain ones."""
    return f"({figure} or on (run) {plain}) {compared}"


SPEED_RULES: tuple[Rule, ...] = (
    Rule(
        name="TrainingStepTimeRegressed",
        level="page",
        promql=_either(_SLOWER, _SLOWER_PLAIN, ">= $step_regressed_factor") + QUIET_AFTER_THE_END,
        summary='{{ $labels.run }}: the median step time became {{ $value | printf "%.1f" }} times as long'
        + _told(_RECENT, ": %.3g s")
        + _told(_USUAL, ", was %.3g s in an earlier hour")
        + place_of_run_promql(),
        runbook="trainingsteptimeregressed",
        check=_step_time_regressed,
        keep_firing_for_s="keep_firing_s",
    ),
    Rule(
        name="TrainingMfuDegraded",
        level="page",
        promql=_either(_MFU, _MFU_PLAIN, "< $mfu_degraded_fraction") + QUIET_AFTER_THE_END,
        summary="{{ $labels.run }}: MFU is at most {{ $value | humanizePercentage }} of its baseline "
        "for $mfu_window" + place_of_run_promql(),
        runbook="trainingmfudegraded",
        check=_mfu_degraded,
        keep_firing_for_s="keep_firing_s",
    ),
    Rule(
        name="TrainingMfuDrift",
        level="record",
        promql=_either(_MFU, _MFU_PLAIN, ">= $mfu_degraded_fraction < $mfu_drift_fraction")
        + QUIET_AFTER_THE_END,
        summary="{{ $labels.run }}: MFU is at most {{ $value | humanizePercentage }} of its baseline "
        "for $mfu_window",
        runbook="trainingmfudrift",
        check=_mfu_drift,
        keep_firing_for_s="mfu_window_s",  # at the edge of its limits it would come and go all day
    ),
    Rule(
        name="DataLoadingWait",
        level="record",
        promql=_either(
            "max by (run) (train_data_wait_fraction)",
            "run:train_data_wait_plain:fraction",
            "> $data_wait_fraction",
        )
        + QUIET_AFTER_THE_END,
        summary="{{ $labels.run }}: {{ $value | humanizePercentage }} of the step time was spent waiting "
        "for data" + _worst("train_data_wait_fraction"),
        runbook="dataloadingwait",
        check=_data_loading_wait,
    ),
    Rule(
        name="RankStepTimeOutlier",
        level="record",
        promql="(max by (run, rank, host) (train_rank_outlier_ratio) > 1)\n"
        "or on (run) run_rank_host:train_outlier_plain:ratio" + QUIET_AFTER_THE_END,
        summary="{{ $labels.run }}: rank {{ $labels.rank }}{{ if $labels.host }} on {{ $labels.host }}"
        '{{ end }}: own work {{ $value | printf "%.2f" }} times that of its peers',
        runbook="ranksteptimeoutlier",
        check=_rank_outlier,
        labels=("run", "rank", "host"),
    ),
    Rule(
        name="MemoryFragmentation",
        level="record",
        promql=_either(
            "max by (run) (train_fragmented_alloc_retries)", "run:train_fragmented_plain:retries", "> 0"
        )
        + QUIET_AFTER_THE_END,
        summary='{{ $labels.run }}: memory falls to pieces, {{ $value | printf "%.0f" }} retries of '
        "allocation within $fragmentation_window" + _worst("train_fragmented_alloc_retries"),
        runbook="memoryfragmentation",
        check=_fragmentation,
    ),
    Rule(
        name="GradNormSpike",
        level="record",
        promql=_either(
            "max by (run) (train_grad_norm_spike_ratio)",
            "run:train_grad_norm_spike_plain:ratio",
            "> $grad_norm_factor",
        )
        + QUIET_AFTER_THE_END,
        summary='{{ $labels.run }}: the gradient norm was {{ $value | printf "%.3g" }} times the median of '
        "those before",
        runbook="gradnormspike",
        check=_grad_norm_spike,
    ),
)
