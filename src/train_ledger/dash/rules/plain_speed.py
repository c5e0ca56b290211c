"""What do the plain figures of the ranks say of a run's speed, where no exporter of ours tells of it?

A launcher or a framework may export the fields under the names of the design, without the windows that our
exporter keeps of the run's own lines. Here Prometheus keeps them: coarser, since it sees one value a scrape,
and careful, since it knows nothing of warm-up, checkpoints or pipeline stages. Of a run of which an exporter
of ours tells none of this is computed.
"""

from __future__ import annotations

from train_ledger.dash.rule import Recording

__all__ = ["PLAIN_RECORDINGS"]

_TOLD = "unless on (run) run:train_exporter_of_ours:bool"

_COMPUTE = "run_rank:train_compute_plain:seconds"
_OWN_WORK = f"quantile_over_time(0.2, {_COMPUTE}[$step_recent])"
"""What four of five samples lie above."""

_PEERS = f"quantile by (run) (0.5, quantile_over_time(0.5, {_COMPUTE}[$step_recent]))"

_OUTLIERS = f"""{_OWN_WORK} > on (run) group_left () (1 + $outlier_effect) * {_PEERS}
and on (run) count by (run) ({_COMPUTE}) > 2
and on (run, rank) (
  ({_OWN_WORK} - on (run) group_left () {_PEERS})
  > on (run, rank) $outlier_impact * max by (run, rank) (train_step_time_s)
)"""

PLAIN_RECORDINGS: tuple[Recording, ...] = (
    Recording(
        "run:train_exporter_of_ours:bool",
        "max by (run) (last_over_time(train_rank_stale[$lookback]) >= bool 0)",
    ),
    Recording(
        "run:train_step_time_plain:seconds",
        f"quantile by (run) (0.5, train_step_time_s > 0) {_TOLD}",
    ),
    Recording(
        "run:train_step_time_plain:ratio",
        """quantile_over_time(0.5, run:train_step_time_plain:seconds[$step_recent])
/ quantile_over_time(0.5, run:train_step_time_plain:seconds[$step_usual_window] offset $step_usual_offset)
and count_over_time(run:train_step_time_plain:seconds[$step_usual_window] offset $step_usual_offset)
  > 0.5 * count_over_time(run:train_step_time_plain:seconds[$step_usual_window])""",
    ),
    Recording(
        "run:train_mfu_plain:fraction",
        f"""quantile by (run) (0.5, train_mfu >= 0)
/ on (run) (max by (run) (last_over_time(train_mfu_baseline[$lookback])) > 0)
{_TOLD}""",
    ),
    Recording(
        "run:train_mfu_sustained_plain:fraction",
        """max_over_time(run:train_mfu_plain:fraction[$mfu_window])
and run:train_mfu_plain:fraction offset $mfu_window""",
    ),
    Recording(
        "run_rank:train_data_wait_plain:fraction",
        f"max by (run, rank) ((train_data_wait_s >= 0) / (train_step_time_s > 0)) {_TOLD}",
    ),
    Recording(
        "run:train_data_wait_plain:fraction",
        """max by (run) (
  avg_over_time(run_rank:train_data_wait_plain:fraction[$data_wait_window])
  and run_rank:train_data_wait_plain:fraction offset $data_wait_window
)""",
    ),
    Recording(_COMPUTE, f"max by (run, rank) (train_compute_s) {_TOLD}"),
    # Of several that stand out nobody is named: a stage of a pipeline has more to do by its layout.
    Recording(
        "run_rank_host:train_outlier_plain:ratio",
        f"""(
  {_OWN_WORK} / on (run) group_left () {_PEERS}
  and on (run, rank) ({_OUTLIERS})
  and on (run) count by (run) ({_OUTLIERS}) == 1
)
* on (run, rank) group_left (host) topk by (run, rank) (1, max by (run, rank, host) (
  train_rank_info unless on (run, instance) run_instance:train_superseded:attempt
))""",
    ),
    Recording(
        "run_rank:train_alloc_retries_plain:count",
        f"max by (run, rank) (train_num_alloc_retries_total) {_TOLD}",
    ),
    Recording(
        "run_rank:train_inactive_split_plain:bytes",
        f"max by (run, rank) (train_mem_inactive_split) {_TOLD}",
    ),
    Recording(
        "run:train_fragmented_plain:retries",
        """max by (run) (
  increase(run_rank:train_alloc_retries_plain:count[$fragmentation_window]) > 0
  and run_rank:train_inactive_split_plain:bytes
    > run_rank:train_inactive_split_plain:bytes offset $fragmentation_window
)""",
    ),
    Recording(
        "run:train_grad_norm_plain:value",
        f"max by (run) (train_grad_norm >= 0 < +Inf) {_TOLD}",
    ),
    Recording(
        "run:train_grad_norm_spike_plain:ratio",
        """max_over_time(run:train_grad_norm_plain:value[$loss_window])
/ quantile_over_time(0.5, run:train_grad_norm_plain:value[$step_usual_window] offset $loss_window)""",
    ),
)
