"""Which series of a run does Prometheus hold now, or at a moment in the past?

Of exporters that live what they say now, and nothing that they no longer say; of exporters that fell silent
what they said last within the lookback: a dead exporter hides no rank. Times on the nodes' own clocks are
corrected by what Prometheus saw of each clock at its scrapes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from train_ledger.config import Alerts
from train_ledger.sources.prometheus.address import PrometheusError
from train_ledger.sources.prometheus.client import Prometheus, Sample

__all__ = ["RunSeries", "known_runs", "read_run_series"]

_LOOKBACK_S = 3600
_CLOCK = "train_exporter_clock_seconds"
_REMEMBERED = (
    "train_step", "train_last_step_completed_timestamp_seconds", "train_last_log_timestamp_seconds",
    "train_process_up", "train_process_gone_timestamp_seconds", "train_rank_info", "train_loss_is_finite",
    "train_stall_threshold_seconds", "train_step_time_seconds_p50", "train_restart_total",
    "train_attempt_started_timestamp_seconds", "train_run_started_timestamp_seconds", "train_run_finished",
)  # fmt: skip
_NOW = (
    "train_run_state", "train_rank_stale", "train_step_time_s", "train_data_wait_fraction",
    "train_fragmented_alloc_retries", "train_rank_outlier_ratio", "train_step_time_recent_seconds",
    "train_step_time_usual_seconds", "train_mfu_sustained_fraction", "train_grad_norm_spike_ratio",
    "train_ckpt_slow_saves", "train_ckpt_duration_ratio", "train_ckpt_duration_s",
    "train_ckpt_last_success_timestamp_seconds", "train_ckpt_due_timestamp_seconds",
    "train_effective_fraction", "train_data_position_regressed_total", "train_exporter_ready",
)  # fmt: skip
_GPU_NOW = (
    "DCGM_FI_DEV_(SM_CLOCK|GPU_TEMP(_CELSIUS)?|POWER_USAGE|BOARD_POWER_WATTS|CLOCKS_EVENT_REASONS"
    "|CLOCK_THROTTLE_REASONS|ROW_REMAP_PENDING|XID_ERRORS?|ECC_DBE_VOL_TOTAL)"
)
_CHANGING = ("DCGM_FI_DEV_XID_ERRORS", "DCGM_FI_DEV_XID_ERROR", "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL")


@dataclass(frozen=True, slots=True)
class RunSeries:
    """The samples of a run at `t` (unix s), by name; of ranks alone that are in the newest attempt.

    `offsets_s` is what is added to a time of an instance's node, and `living` are the instances that were
    scraped last. `grown` maps what was asked to samples whose value is by how much a counter grew within its
    window; `changed_t` fields of GPUs to samples whose value is when they changed last.
    `nonfinite_by` are the steps, by rank, by which the loss had not been finite for the first time within the
    window: it was then, or a few steps before.
    """

    run: str
    t: float
    samples: Mapping[str, tuple[Sample, ...]]
    offsets_s: Mapping[str, float] = field(default_factory=dict)
    living: frozenset[str] = frozenset()
    grown: Mapping[str, tuple[Sample, ...]] = field(default_factory=dict)
    changed_t: Mapping[str, tuple[Sample, ...]] = field(default_factory=dict)
    nonfinite_by: tuple[Sample, ...] = ()
    gpus: tuple[Sample, ...] = ()
    xids: tuple[Sample, ...] = ()

    def of(self, name: str) -> tuple[Sample, ...]:
        return self.samples.get(name, ())

    def time_of(self, sample: Sample) -> float:
        """A time that a node told, on Prometheus' clock."""
        return sample.value + self.offsets_s.get(sample.labels.get("instance", ""), 0.0)


def known_runs(prometheus: Prometheus, t: float | None = None) -> tuple[str, ...]:
    """The runs of which anything was heard within a day. Raises PrometheusError as a query does."""
    names = "train_step|train_run_finished|train_stall_threshold_seconds|train_restart_total"
    found = prometheus.query(f'group by (run) (last_over_time({{__name__=~"{names}"}}[1d]))', t)
    return tuple(sorted({run for it in found if (run := it.labels.get("run"))}))


def read_run_series(prometheus: Prometheus, run: str, alerts: Alerts, t: float | None = None) -> RunSeries:
    """What Prometheus holds of the run at `t` (unix s; None: now).

    Raises PrometheusError where it holds nothing of it, with the runs of which it does.
    """
    selector, back = f'run="{_escaped(run)}"', f"[{_LOOKBACK_S}s]"
    of_living = prometheus.query(f'{{__name__=~"{"|".join((*_REMEMBERED, *_NOW))}",{selector}}}', t)
    dead = f"unless on (instance) {_CLOCK}{{{selector}}}"
    of_dead = prometheus.query(
        f'last_over_time({{__name__=~"{"|".join(_REMEMBERED)}",{selector}}}{back}) {dead}', t
    )
    samples = _once((*of_living, *of_dead))
    if not samples:
        raise PrometheusError(_no_such_run(prometheus, run, t))
    offsets = prometheus.query(
        f"last_over_time((timestamp({_CLOCK}{{{selector}}}) - {_CLOCK}{{{selector}}}){back[:-1]}:5s])", t
    )
    living = prometheus.query(f"{_CLOCK}{{{selector}}}", t)
    now_t = max(it.t for it in samples)
    return RunSeries(
        run=run,
        t=now_t,
        samples=_by_name(_of_newest_attempt(samples)),
        offsets_s={it.labels.get("instance", ""): it.value for it in offsets},
        living=frozenset(it.labels.get("instance", "") for it in living),
        grown={name: tuple(prometheus.query(promql, t)) for name, promql in _grown(selector, alerts).items()},
        nonfinite_by=tuple(prometheus.query(_nonfinite_by(selector, alerts), t)),
        changed_t={name: tuple(prometheus.query(_changed(name), t)) for name in _CHANGING},
        gpus=tuple(prometheus.query(f'{{__name__=~"{_GPU_NOW}"}}', t)),
        xids=tuple(
            prometheus.query(
                f'last_over_time({{__name__=~"train_xid_(total|last_timestamp_seconds)"}}{back})', t
            )
        ),
    )


def _grown(selector: str, alerts: Alerts) -> dict[str, str]:
    restarts = f"max by (run) (train_restart_total{{{selector}}})"
    other_data = f"train_data_position_regressed_total{{{selector}}}"
    loss, saves = _window(alerts.loss_window_s), _window(alerts.checkpoint_window_s)
    back = f"{_window(alerts.restart_loop_window_s)}:30s"
    return {
        "nonfinite": f"increase(train_loss_nonfinite_total{{{selector}}}[{loss}]) > 0",
        "failed saves": f"max by (run) (increase(train_ckpt_failed_total{{{selector}}}[{saves}])) > 0",
        "other data": f"max by (run) (increase({other_data}[{saves}])) > 0",
        "restarts": f"{restarts} - min_over_time(({restarts})[{back}]) > 0",
    }


def _nonfinite_by(selector: str, alerts: Alerts) -> str:
    counted = f"train_loss_nonfinite_total{{{selector}}}"
    grew = f"train_step{{{selector}}} and on (rank, instance) ({counted} > {counted} offset 10s)"
    return f"min_over_time(({grew})[{_window(alerts.loss_window_s)}:2s])"


def _window(seconds: float) -> str:
    return f"{max(1, round(seconds))}s"


def _changed(name: str) -> str:
    """When a figure of a GPU changed last: its exporter goes on telling it."""
    than = ">" if name.endswith("_TOTAL") else "!="
    return f"max_over_time((timestamp({name}) and ({name} {than} {name} offset 30s))[1h:30s])"


def _once(samples: Iterable[Sample]) -> list[Sample]:
    """Those of the living go before what is remembered."""
    found: dict[tuple[str, frozenset[tuple[str, str]]], Sample] = {}
    for it in samples:
        found.setdefault((it.name, frozenset(it.labels.items())), it)
    return [*found.values()]


def _of_newest_attempt(samples: list[Sample]) -> list[Sample]:
    """Without instances on nodes that the run has left, which still tell of an earlier attempt."""
    restarts = {it.labels.get("instance", ""): it.value for it in samples if it.name == "train_restart_total"}
    newest = max(restarts.values(), default=0.0)
    return [it for it in samples if restarts.get(it.labels.get("instance", ""), newest) >= newest]


def _by_name(samples: Iterable[Sample]) -> dict[str, tuple[Sample, ...]]:
    found: dict[str, list[Sample]] = defaultdict(list)
    for it in samples:
        found[it.name].append(it)
    return {name: tuple(some) for name, some in found.items()}


def _no_such_run(prometheus: Prometheus, run: str, t: float | None) -> str:
    runs = known_runs(prometheus, t)
    said = f"{prometheus.address.shown}: holds nothing of a run {run!r}"
    if not runs:
        return f"{said}, nor of any other: does it scrape train-ledger export?"
    more = f" and {len(runs) - 20} more" if len(runs) > 20 else ""
    return f"{said}; it knows {', '.join(runs[:20])}{more}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
