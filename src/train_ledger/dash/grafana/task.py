"""How is the run as a whole?"""

from __future__ import annotations

from train_ledger.dash.grafana.panel import RUN, Line, Mark, Panel, Row, once

__all__ = ["TASK"]


def _finite(metric: str) -> str:
    """One rank's NaN must not take the mean of all others with it."""
    return f"(train_{metric}{{{RUN}}} > -Inf) < Inf"


_USUAL = f"quantile by (run) (0.5, run_instance:train_step_time_usual:seconds{{{RUN}}})"


def _over_time(quantile: str) -> str:
    """Over time: at one moment all ranks of a synchronous job have the slowest one's step time."""
    return f"quantile_over_time({quantile}, max by (run) (train_step_time_s{{{RUN}}})[10m:15s])"


_STEP = Panel(
    "Step",
    "lines",
    "none",
    (
        Line(f"max by (run) (train_step{{{RUN}}})", "step"),
        Line(f"run:train_step_age:seconds{{{RUN}}}", "since the last step", right=True, unit="s"),
        Line(f"run:train_stall_threshold:seconds{{{RUN}}}", "limit", right=True, unit="s"),
    ),
    "Goes up, or the run hangs: the only sure sign. The limit is longer in a checkpoint, an evaluation and "
    "at start-up.",
    alerts=("TrainingStepStalled", "TrainingTelemetryLost"),
)
_STATE = Panel(
    "State of the run",
    "states",
    "none",
    (Line(f"max by (state) (train_run_state{{{RUN}}})", "{{state}}"),),
    "In which state the run is; one of them is on.",
    alerts=("TrainingRestarting",),
    values=((0, "", "transparent"), (1, "on", "blue")),
)
_LOSS = Panel(
    "Loss",
    "lines",
    "none",
    (
        Line(f"max by (run) ({_finite('loss')})", "highest", shade_to="lowest"),
        Line(f"max by (run) ({_finite('loss_max')})", "highest of any part of the batch"),
        Line(f"min by (run) ({_finite('loss')})", "lowest"),
        Line(f"avg by (run) ({_finite('loss')})", "mean"),
        Line(
            f"count by (run) ({once('loss_is_finite')} == 0)\n"
            f"or 0 * max by (run) (train_loss_is_finite{{{RUN}}})",
            "ranks without a finite one",
            right=True,
            unit="none",
        ),
    ),
    "Falls smoothly. Ranks whose loss is no finite number are left out of the mean and counted.",
    alerts=("TrainingLossNotFinite",),
    log=True,
)
_GRADIENTS = Panel(
    "Gradient norm",
    "lines",
    "none",
    (
        Line(f"avg by (run) ({_finite('grad_norm')})", "gradient"),
        Line(f"avg by (run) ({_finite('param_norm')})", "parameters", right=True, unit="none"),
    ),
    "Falls slowly with steady noise; a long rise comes before trouble. The line is the usual bound of "
    "clipping.",
    marks=(Mark(1.0, "orange"),),
    alerts=("GradNormSpike",),
)
_NUMERICS = Panel(
    "Learning rate and numerics",
    "lines",
    "none",
    (
        Line(f"max by (run) (train_lr{{{RUN}}})", "learning rate"),
        Line(f"max by (run) (train_loss_scale{{{RUN}}})", "loss scale", right=True, unit="none"),
        Line(
            f"max by (run) (increase(train_skipped_total{{{RUN}}}[10m]))",
            "steps skipped in 10 min",
            right=True,
            unit="none",
        ),
        Line(
            f"max by (run) (increase(train_nan_iterations_total{{{RUN}}}[10m]))",
            "NaN iterations in 10 min",
            right=True,
            unit="none",
        ),
        Line(
            f"max by (run) (train_grad_norm_spike_ratio{{{RUN}}})",
            "last spike of the gradient, times the median",
            right=True,
            unit="none",
        ),
    ),
    "The rate follows its schedule; the scale stands; nothing is skipped.",
    alerts=("TrainingLossNotFinite", "GradNormSpike"),
)
_EARLY = Panel(
    "Early signs in the numbers",
    "lines",
    "none",
    (
        Line(f"max by (run) ({_finite('max_attn_logit')})", "largest attention logit"),
        Line(
            f"avg by (run) ({_finite('num_zeros_in_grad')})", "zeros in the gradient", right=True, unit="none"
        ),
    ),
    "Bounded and steady. A logit that grows without bound comes before a NaN.",
    alerts=("TrainingLossNotFinite",),
)
_MFU = Panel(
    "MFU",
    "lines",
    "percent",
    (
        Line(f"avg by (run) ({_finite('mfu')})", "MFU"),
        Line(
            f"run:train_mfu_sustained:fraction{{{RUN}}}\n"
            f"* on (run) max by (run) (train_mfu_baseline{{{RUN}}})",
            "best part of $mfu_window",
        ),
        Line(f"$mfu_drift_fraction * max by (run) (train_mfu_baseline{{{RUN}}})", "drifts below"),
        Line(f"$mfu_degraded_fraction * max by (run) (train_mfu_baseline{{{RUN}}})", "pages below"),
        Line(f"avg by (run) ({_finite('tflops')})", "TFLOP/s per GPU", right=True, unit="none"),
    ),
    "Flat. A slope is a regression, a step down a straggler or lower clocks.",
    alerts=("TrainingMfuDegraded", "TrainingMfuDrift"),
)
_STEP_TIME = Panel(
    "Step time",
    "lines",
    "s",
    (
        Line(_over_time("0.5"), "p50 of 10 min"),
        Line(_over_time("0.95"), "p95 of 10 min"),
        Line(f"max by (run) (train_step_time_s{{{RUN}}})", "last"),
        Line(_USUAL, "usual, an earlier hour"),
        Line(f"$step_regressed_factor * {_USUAL}", "pages above"),
    ),
    "Over time, not over ranks: in synchronous training every rank's step takes as long as the slowest's.",
    alerts=("TrainingStepTimeRegressed",),
)
_JITTER = Panel(
    "Step time, p95 over p50",
    "lines",
    "none",
    (Line(f"{_over_time('0.95')} / {_over_time('0.5')}", "p95 / p50"),),
    "About 1.02. Above 1.2 single steps are held up: a rank drags now and then, or the storage does.",
    marks=(Mark(1.2, "red"),),
    alerts=("TrainingStepTimeRegressed",),
)
_TOKENS = Panel(
    "Tokens per second",
    "lines",
    "none",
    (Line(f"sum by (run) ({once('tps')})", "all GPUs"),),
    "Flat, as MFU.",
)
_POSITION = Panel(
    "Position in the data",
    "lines",
    "none",
    (
        Line(f"max by (run) (train_consumed_samples_total{{{RUN}}})", "samples"),
        Line(f"max by (run) (train_consumed_tokens_total{{{RUN}}})", "tokens", right=True, unit="none"),
        Line(
            f"max by (run) (train_data_position_regressed_total{{{RUN}}})",
            "restarts at another position",
            right=True,
            unit="none",
        ),
    ),
    "Only goes up, but for a restart, after which it is at each step what it was before.",
    alerts=("DataPositionRegressed",),
)
_CHECKPOINTS = Panel(
    "Checkpoints",
    "bars",
    "s",
    (
        Line(f"max by (run) (train_ckpt_duration_s{{{RUN}}})", "last save took"),
        Line(f"max by (run) (train_ckpt_s{{{RUN}}})", "the training stood for it"),
        Line(
            f"max by (run) (max_over_time(train_ckpt_failed_total{{{RUN}}}[1h]))\n"
            f"- min by (run) (min_over_time(train_ckpt_failed_total{{{RUN}}}[1h]))",
            "failed in the last hour",
            right=True,
            unit="none",
        ),
        Line(
            f"time() - max by (run) (train_ckpt_last_success_timestamp_seconds{{{RUN}}})",
            "since the last success",
        ),
    ),
    "Steady. What is not saved is trained once more after the next fault.",
    alerts=("CheckpointSaveFailed", "CheckpointSlow"),
)
_EFFECTIVE = Panel(
    "Effective training time",
    "lines",
    "percentunit",
    (
        Line(f"run:train_effective:fraction{{{RUN}}}", "by the steps"),
        Line(
            f"max by (run) (avg_over_time(train_effective_fraction{{{RUN}}}[$effective_window]))",
            "by the launcher's own account",
        ),
    ),
    "The share of the last day that made progress which was kept; time in which nothing ran is lost.",
    marks=(Mark("effective_fraction", "orange"), Mark(0.9, "green")),
    alerts=("EffectiveTrainingTimeLow",),
)

TASK = Row(
    "The task",
    (
        _STEP,
        _STATE,
        _LOSS,
        _GRADIENTS,
        _NUMERICS,
        _EARLY,
        _MFU,
        _STEP_TIME,
        _JITTER,
        _TOKENS,
        _POSITION,
        _CHECKPOINTS,
        _EFFECTIVE,
    ),
)
