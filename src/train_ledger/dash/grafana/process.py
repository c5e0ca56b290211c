"""Which rank is not like the others?"""

from __future__ import annotations

from train_ledger.dash.grafana.panel import RUN, Line, Mark, Panel, Row, by_rank, once, with_place

__all__ = ["PROCESS"]

_WHO = "rank {{rank}} {{host}} gpu {{gpu}}"


def _to_median(metric: str) -> str:
    """Relative to the median of the ranks at that moment; 0 is no measure."""
    median = f"(quantile by (run) (0.5, train_{metric}{{{RUN}}}) > 0)"
    return by_rank(f"train_{metric}{{{RUN}}} / on (run) group_left () {median}")


def _top(metric: str) -> str:
    return with_place(f"topk by (run) (5, max by (run, rank) (train_{metric}))")


_SPANS = ("fwd_bwd", "optim", "fetching_batch")

_STEP_TIMES = Panel(
    "Step time of each rank, over the run's p50",
    "heat",
    "none",
    (
        Line(
            by_rank(
                f"train_step_time_s{{{RUN}}} / on (run) group_left ()"
                f" max by (run) (train_step_time_seconds_p50{{{RUN}}})"
            ),
            "{{row}}",
        ),
    ),
    "1 is as usual. In synchronous training all rows change colour together; a single one is a rank that "
    "reports for itself.",
    alerts=("TrainingStepTimeRegressed",),
    width=12,
    scale=(0.8, 1.5),
)
_WORK = Panel(
    "Own work of each rank, over the median",
    "heat",
    "none",
    (Line(_to_median("compute_s"), "{{row}}"),),
    "The row that is redder than its neighbours drags all others. Stages of a pipeline differ by their "
    "layout.",
    alerts=("RankStepTimeOutlier",),
    width=12,
    scale=(0.8, 1.3),
)
_PARTS = Panel(
    "Longest parts of the step",
    "lines",
    "s",
    (
        *(Line(_top(f'span_seconds{{{RUN}, name="{name}"}}'), f"{name}, {_WHO}") for name in _SPANS),
        *(
            Line(_top(f"{part}_s{{{RUN}}}"), f"{what}, {_WHO}")
            for part, what in (("fwd", "forward"), ("bwd", "backward"), ("opt", "optimizer"))
        ),
    ),
    "The five slowest ranks of each part, by torchtitan's names and by our own. Backward holds waiting, too.",
    alerts=("RankStepTimeOutlier",),
    width=12,
)
_WAITING = Panel(
    "Waiting in collectives, share of the step",
    "heat",
    "percentunit",
    (Line(by_rank(f"train_comm_wait_s{{{RUN}}} / (train_step_time_s{{{RUN}}} > 0)"), "{{row}}"),),
    "Who waits least is waited for.",
    alerts=("RankStepTimeOutlier",),
    width=12,
    scale=(0.0, 0.5),
)
_OUTLIERS = Panel(
    "Ranks that drag",
    "table",
    "none",
    (Line(f"max by (rank, host) (train_rank_outlier_ratio{{{RUN}}})", "own work to its peers'"),),
    "Ranks whose own work stands out from that of their stage, for long enough and by enough to matter. "
    "Empty is well.",
    marks=(Mark(1.0, "orange"),),
    alerts=("RankStepTimeOutlier",),
    width=12,
)
_MEMORY = Panel(
    "GPU memory of the ranks",
    "lines",
    "bytes",
    tuple(
        Line(f"{which} by (run) (train_mem_{field}{{{RUN}}})", f"{what}, {word}")
        for field, what in (
            ("reserved_peak", "reserved at most"),
            ("allocated_peak", "allocated at most"),
            ("active_peak", "active at most"),
            ("requested", "asked for"),
            ("inactive_split", "split and idle"),
        )
        for which, word in (("max", "highest rank"), ("min", "lowest rank"))
    ),
    "Steady. Reserved that grows while allocated does not is fragmentation.",
    alerts=("MemoryFragmentation",),
)
_RETRIES = Panel(
    "Allocator retries in the last hour",
    "lines",
    "none",
    (
        Line(with_place(f"topk by (run) (10, increase(train_num_alloc_retries_total{{{RUN}}}[1h]))"), _WHO),
        Line(
            f"max by (run) (train_fragmented_alloc_retries{{{RUN}}})",
            "by memory that falls to pieces",
        ),
        Line(f"max by (run) (train_num_ooms_total{{{RUN}}})", "out of memory, highest rank"),
        *(
            Line(
                f"max by (run) (increase(train_num_device_{call}_total{{{RUN}}}[1h]))",
                f"calls of {says}, highest rank",
                right=True,
                unit="none",
            )
            for call, says in (("alloc", "cudaMalloc"), ("free", "cudaFree"))
        ),
    ),
    "0. Each one is a stall of the whole GPU at the edge of its memory.",
    marks=(Mark(1.0, "red"),),
    alerts=("MemoryFragmentation",),
)
_DATA = Panel(
    "Waiting for data, share of the step",
    "heat",
    "percentunit",
    (Line(by_rank(f"train_data_wait_s{{{RUN}}} / (train_step_time_s{{{RUN}}} > 0)"), "{{row}}"),),
    "About 0. One rank that waits holds up all.",
    alerts=("DataLoadingWait",),
    width=12,
    scale=(0.0, 0.1),
)
_WORST_DATA = Panel(
    "Waiting for data, longest",
    "lines",
    "percentunit",
    (
        Line(with_place(f"topk by (run) (5, train_data_wait_fraction{{{RUN}}})"), _WHO),
        Line(f"min by (run) (train_queue_depth{{{RUN}}})", "batches ready, fewest", right=True, unit="none"),
    ),
    "Of the last $data_wait_window. Over the line it costs more than it should.",
    marks=(Mark("data_wait_fraction", "red"),),
    alerts=("DataLoadingWait",),
)
_HOST = Panel(
    "Host side of the ranks",
    "lines",
    "percent",
    (
        Line(f"max by (run) (train_cpu_percent{{{RUN}}})", "CPU of one core, highest"),
        Line(f"min by (run) (train_cpu_percent{{{RUN}}})", "CPU of one core, lowest"),
        Line(f"max by (run) (train_rss_bytes{{{RUN}}})", "host memory, highest", right=True, unit="bytes"),
        Line(
            f"max by (run) (rate(train_stdout_bytes_total{{{RUN}}}[5m]))",
            "output per second, highest",
            right=True,
            unit="Bps",
        ),
    ),
    "Host memory that only grows is a leak; output that leaps has become the work.",
)
_PAUSES = Panel(
    "Pauses of the training thread",
    "lines",
    "s",
    (
        Line(with_place(f"topk by (run) (3, train_gc_s{{{RUN}}})"), f"garbage collection, {_WHO}"),
        Line(with_place(f"topk by (run) (3, train_log_s{{{RUN}}})"), f"logging, {_WHO}"),
    ),
    "About 0. Collections that wander from rank to rank, and a log that nobody reads, hold up all.",
)
_LIFE = Panel(
    "Life of the processes",
    "lines",
    "none",
    (
        Line(f"count by (run) ({once('process_up')} == 1)", "ranks alive"),
        Line(
            f"count by (run) ({once('process_up')} == 0)\nor 0 * max by (run) (train_process_up{{{RUN}}})",
            "ranks gone",
        ),
        Line(
            f"max by (run) (time() - train_last_log_timestamp_seconds{{{RUN}}})",
            "longest silence",
            right=True,
            unit="s",
        ),
    ),
    "All ranks, none gone, none silent.",
    alerts=("TrainingProcessGone", "TrainingTelemetryLost"),
)

PROCESS = Row(
    "The processes, by rank",
    (
        _STEP_TIMES,
        _WORK,
        _WAITING,
        _OUTLIERS,
        _PARTS,
        _DATA,
        _MEMORY,
        _RETRIES,
        _WORST_DATA,
        _HOST,
        _PAUSES,
        _LIFE,
    ),
)
