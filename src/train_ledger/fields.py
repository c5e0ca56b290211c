"""What may stand in a signal line, in which unit, and what does it look like when something is wrong?

One table, after the seed article's chapter 1 section 3: the exporter, the documentation and the panels are
made from it. A line is one JSON object; `t`, `step` and `rank` are required, `attempt` is 0 where absent,
every other field is optional.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

__all__ = [
    "EVENTS",
    "EVENT_MEANINGS",
    "FIELDS",
    "LARGEST_ATTEMPT",
    "LARGEST_WORLD_SIZE",
    "LOG_EVENT_MEANINGS",
    "PHASES",
    "PHASE_MEANINGS",
    "REQUIRED",
    "RUN_MEANINGS",
    "WORDS",
    "Field",
    "Threshold",
    "read_number",
    "read_world_size",
    "written_number",
]

Kind = Literal["gauge", "counter"]
Layer = Literal["task", "process", "launcher"]
Panel = Literal[
    "loss", "gradients", "numerics", "speed", "data", "parts of the step", "own work", "host", "checkpoints",
    "memory", "availability", "signals",
]  # fmt: skip

REQUIRED = ("t", "step", "rank")

WORDS = ("compute_by",)
"""What stands in a step's line and is no number."""

LARGEST_WORLD_SIZE = 1 << 20
"""No job is larger; a number beyond it is a slip that must cost a reader neither time nor memory."""

LARGEST_ATTEMPT = 100_000

PHASE_MEANINGS = {
    "start_up": "from start() to the first step",
    "compile": "torch.compile or the like, while nothing else goes on",
    "data": "waiting for a batch; makes data_wait_s",
    "forward": "makes fwd_s",
    "backward": "makes bwd_s",
    "optimizer": "makes opt_s",
    "checkpoint_save": "a checkpoint is saved; makes ckpt_s",
    "checkpoint_load": "a checkpoint is loaded",
    "evaluation": "the model is evaluated",
    "shutdown": "after the last step",
}
PHASES = tuple(PHASE_MEANINGS)

EVENT_MEANINGS = {
    "run_start": "this process begins: world_size, host, local_rank, pid, gpu, uuid, pci",
    "phase_start": "a phase begins: phase; at once for those that last, else when it has lasted for a second",
    "phase_end": "it ended: phase",
    "ckpt_start": "a checkpoint of step is begun",
    "ckpt_saved": "it lies on its storage: step, duration_s, blocking_s (how long the training stood), durable",
    "ckpt_failed": "it could not be saved: step, error",
    "ckpt_loaded": "one was loaded: step, duration_s",
    "eval_start": "an evaluation begins",
    "eval_end": "it ended",
    "exception": "nobody caught it: type, message, phase, origin; thread and fatal: false beside the training",
    "signal": "the process was sent one: number",
    "run_end": "the run came to its end",
    "warning": "what readers should know of these signals: about, message",
}
EVENTS = tuple(EVENT_MEANINGS)

LOG_EVENT_MEANINGS = {
    "log_start": "a log is there, or the first line of it that tells a time",
    "log_every": "lines of a log come many at once, from a buffer: every_s, so many seconds apart",
    "metrics": "figures of no step that the log tells: the trainer's own names",
    "timers": "how long the parts of some steps took: the trainer's own names",
    "straggler_report": "figures of the slowest and the fastest ranks, by Megatron's own detector",
    "engine_start": "DeepSpeed's engine was made: its settings",
    "restart": "the launcher starts the ranks once more: left, how often it still may",
    "process_end": "a process of the launcher's came to its end: pid, code",
    "signal_sent": "the launcher sent a process a signal: pid, number; victim, since another had failed",
    "dump_asked": "a rank asks all others for their Flight Recorder: from_ranks, last_enqueued, last_completed",
    "dump_begun": "a rank begins to write its own: file",
    "dump_done": "it is written",
    "dump_failed": "it could not be written",
    "dump_slow": "it was not written in time",
    "teardown": "NCCL takes the process down after an error",
    "no_gil": "the watchdog does not get Python's lock: the process stands in code that holds it",
    "stack": "where one thread stands: frames, innermost first",
    "span_open": "a span that was open when the log ended: span, inside, phase",
    "note": "what a progress file says besides: what",
    "process_gone": "whoever looked at the processes found this rank's gone: pid, why",
    "process_seen": "it is there after all: pid",
}
"""What logs, and who looks at processes, tell besides; no signal line needs them."""

RUN_MEANINGS = {
    "run": "its name; the folder's where none is given",
    "started": "unix seconds of the first start",
    "world_size": "number of ranks",
    "parallelism": "dp, tp, pp, cp, ep and order, the axes from the fastest on (tp, cp, dp, pp if none)",
    "model": "params (active_params), layers, heads, head_dim, seq_len; dtype or quantization; for the memory account "
    "of preflight micro_batch, sharding, recompute, or memory_bytes",
    "device": "what the GPU is called",
    "peak_flops": "its dense bf16 peak in FLOP/s, where the table does not know it",
    "gpu_price_per_hour": "what a GPU costs",
    "mfu_baseline": "percent that are usual",
    "grad_clip": "the norm to which gradients are clipped",
    "contacts": "who is to be called",
    "restart_command": "what starts the run again",
    "exclude_file": "where hosts are listed that it must not use",
    "log_dir": "where its logs are, if not in the run directory; a relative path begins there",
}
"""The keys of run.json that something reads; `start` takes each as a keyword."""


@dataclass(frozen=True, slots=True)
class Threshold:
    """From where on a field is an alert: `factor` × `of`, or `factor` itself where `of` is "".

    0 stands for any that is more, infinity for what is no finite number.
    """

    alert: str
    factor: float
    of: str = ""

    def __str__(self) -> str:
        """
        >>> str(Threshold("GradNormSpike", 10, "its median")), str(Threshold("CheckpointSaveFailed", 0))
        ('10 × its median', 'any')
        """
        if math.isinf(self.factor):
            return "not finite"
        return f"{self.factor:g} × {self.of}" if self.of else f"{self.factor:g}" if self.factor else "any"


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a signal line.

    `unit` is the unit of the plain number ("" for a pure number); a `counter` is cumulative within an
    attempt; `layer` says whose figure it is; `panel` with which others it is drawn; `taken_at` where it is
    taken; `threshold` is the default of its alert, where it has one.
    """

    name: str
    unit: str
    kind: Kind
    layer: Layer
    panel: Panel
    taken_at: str
    normal: str
    abnormal: str
    threshold: Threshold | None = None

    @property
    def metric(self) -> str:
        """The Prometheus name.

        >>> FIELDS["loss"].metric, FIELDS["skipped"].metric, FIELDS["restart_total"].metric
        ('train_loss', 'train_skipped_total', 'train_restart_total')
        """
        suffix = "_total" if self.kind == "counter" and not self.name.endswith("_total") else ""
        return f"train_{self.name}{suffix}"


def _table(*rows: tuple[str, str, Kind, Layer, Panel, str, str, str]) -> dict[str, Field]:
    return {row[0]: Field(*row, _THRESHOLDS.get(row[0])) for row in rows}


_THRESHOLDS = {
    "loss": Threshold("TrainingLossNotFinite", math.inf),
    "grad_norm": Threshold("GradNormSpike", 10, "the median of 100 steps"),
    "step_time_s": Threshold("TrainingStepTimeRegressed", 1.5, "the median of an earlier steady hour"),
    "mfu": Threshold("TrainingMfuDegraded", 0.85, "mfu_baseline"),
    "data_wait_s": Threshold("DataLoadingWait", 0.05, "step_time_s"),
    "restart_total": Threshold("TrainingRestartLoop", 3),
    "ckpt_failed_total": Threshold("CheckpointSaveFailed", 0),
    "ckpt_duration_s": Threshold("CheckpointSlow", 1.5, "the median of 20 saves"),
    "effective_fraction": Threshold("EffectiveTrainingTimeLow", 0.85),
}
_MEMORY = "torch.cuda.memory_stats() after the step"
_SINCE = _MEMORY + ", since the last line"
_LOOP = "training loop"
_BY_EVENTS = "by the wall; on CUDA by two events, in the next step's line"

FIELDS: dict[str, Field] = _table(
    ("loss", "", "gauge", "task", "loss", "training loop, mean over data-parallel ranks", "falls smoothly", "spike, NaN, plateau"),
    ("loss_max", "", "gauge", "task", "loss", "training loop, maximum over data-parallel ranks", "close to loss", "far above loss: one rank's data"),
    ("grad_norm", "", "gauge", "task", "gradients", "after clipping is computed, before the optimizer step", "falls slowly, steady noise", "rises for long, or spikes"),
    ("param_norm", "", "gauge", "task", "gradients", "after the optimizer step", "grows slowly", "jumps"),
    ("lr", "", "gauge", "task", "gradients", "scheduler", "follows the schedule", "departs from it after a restart"),
    ("loss_scale", "", "gauge", "task", "numerics", "gradient scaler (fp16)", "constant", "halves again and again"),
    ("skipped", "steps", "counter", "task", "numerics", "gradient scaler", "0", "several in a row: numerics"),
    ("nan_iterations", "steps", "counter", "task", "numerics", _LOOP, "0", "any"),
    ("max_attn_logit", "", "gauge", "task", "numerics", "attention, maximum over heads", "bounded", "grows without bound before a NaN"),
    ("num_zeros_in_grad", "", "gauge", "task", "numerics", "optimizer", "steady", "jumps"),
    ("step_time_s", "s", "gauge", "task", "speed", "monitor, from step to step", "varies by 1–2 %", "ramps, or jumps on all ranks at once; p95 over 1.2 × p50: a rank drags"),
    ("tps", "tokens/s", "gauge", "task", "speed", "monitor, per GPU: tokens ÷ (step time × tp × pp × cp)", "flat", "sinks: regression; steps down: straggler or clocks"),
    ("tflops", "TFLOP/s", "gauge", "task", "speed", "monitor, per GPU, 6N + 12·L·H·Q·T a token, recomputation not counted", "flat", "as tps"),
    ("mfu", "%", "gauge", "task", "speed", "monitor, 0–100 of the device's dense bf16 peak; none where that is unknown, or quantised", "flat", "as tps; over 100 the peak or the model figures are wrong"),
    ("consumed_samples", "samples", "counter", "task", "data", "the training's own count, over restarts", "grows by the global batch", "goes back, or repeats after a restart"),
    ("consumed_tokens", "tokens", "counter", "task", "data", "the training's own count, over restarts", "grows", "goes back"),
    ("data_wait_s", "s", "gauge", "process", "data", "phase data, or around the next() of monitor.loader", "about 0", "more than 5 % of the step"),
    ("queue_depth", "batches", "gauge", "process", "data", "monitor.loader, of torch's DataLoader with workers: the fewest ready in the step", "full", "0: the data cannot keep up"),
    ("fwd_s", "s", "gauge", "process", "parts of the step", "phase forward, " + _BY_EVENTS, "equal on all ranks of a stage", "one rank longer for long: straggler"),
    ("bwd_s", "s", "gauge", "process", "parts of the step", "phase backward, " + _BY_EVENTS + "; contains waiting", "equal on all ranks", "grows with another rank's delay"),
    ("opt_s", "s", "gauge", "process", "parts of the step", "phase optimizer, " + _BY_EVENTS, "equal on all ranks", "one rank longer"),
    ("compute_s", "s", "gauge", "process", "own work", "the step without comm_wait_s, data, checkpoint and evaluation; see below", "equal within a stage", "one rank longer: it drags all"),
    ("comm_wait_s", "s", "gauge", "process", "own work", "in collectives, the transfer included; see below", "less than 2 % of the step beyond the transfer", "least on the rank that drags"),
    ("gc_s", "s", "gauge", "process", "host", "gc.callbacks", "about 0", "pauses that wander from rank to rank"),
    ("log_s", "s", "gauge", "process", "host", "training thread in logging's handlers and in write and flush of stdout and stderr", "about 0", "grows with the volume of the log, or a pipe that nobody reads"),
    ("stdout_bytes", "bytes", "counter", "process", "host", "write of Python's stdout and stderr; what C code writes is not seen", "slow growth", "leaps: the log has become the work"),
    ("rss_bytes", "bytes", "gauge", "process", "host", "/proc/self/statm, once a second", "steady", "grows: host memory leak"),
    ("cpu_percent", "% of one core", "gauge", "process", "host", "os.times(), once a second", "steady", "0: blocked; far above its peers: contended"),
    ("ckpt_s", "s", "gauge", "process", "checkpoints", "blocking part of a checkpoint in this step", "0 but for checkpoints, then steady", "grows: storage"),
    ("mem_allocated_peak", "bytes", "gauge", "process", "memory", _SINCE, "steady", "grows: leak"),
    ("mem_reserved_peak", "bytes", "gauge", "process", "memory", _SINCE, "steady", "grows while allocated does not: fragmentation"),
    ("mem_active_peak", "bytes", "gauge", "process", "memory", _SINCE, "steady", "grows"),
    ("mem_inactive_split", "bytes", "gauge", "process", "memory", _MEMORY, "steady", "grows: fragmentation"),
    ("mem_requested", "bytes", "gauge", "process", "memory", _MEMORY, "steady", "far below allocated: rounding"),
    ("num_alloc_retries", "retries", "counter", "process", "memory", _MEMORY, "0", "grows: at the edge of memory, every retry is a stall"),
    ("num_ooms", "errors", "counter", "process", "memory", _MEMORY, "0", "any"),
    ("num_device_alloc", "calls", "counter", "process", "memory", _MEMORY, "constant once warm", "grows: memory goes back and forth"),
    ("num_device_free", "calls", "counter", "process", "memory", _MEMORY, "constant once warm", "grows"),
    ("dropped_lines", "lines", "counter", "process", "signals", "signal writer", "0", "grows: the disk does not keep up"),
    ("refused_values", "values", "counter", "process", "signals", "signal writer", "0", "any: a tensor or a word was logged as a number"),
    ("restart_total", "restarts", "counter", "launcher", "availability", "launcher", "0", "three more within half an hour"),
    ("ckpt_failed_total", "failures", "counter", "launcher", "checkpoints", "checkpoint component", "0", "any"),
    ("ckpt_duration_s", "s", "gauge", "launcher", "checkpoints", "checkpoint component", "steady", "grows: storage"),
    ("effective_fraction", "", "gauge", "launcher", "availability", "launcher's own account, 0–1", "over 0.9", "under 0.85 over a day"),
    ("mfu_baseline", "%", "gauge", "launcher", "speed", "preflight", "constant", "differs from run.json"),
)  # fmt: skip


def written_number(value: float) -> float | str:
    """How a number is written into a signal line: JSON has no NaN, so a non-finite one is a word.

    >>> written_number(1.5), written_number(float("nan")), written_number(float("-inf"))
    (1.5, 'NaN', '-Infinity')
    """
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


_WORDS = {
    "NaN": math.nan,
    "nan": math.nan,
    "Infinity": math.inf,
    "inf": math.inf,
    "-Infinity": -math.inf,
    "-inf": -math.inf,
}


def read_world_size(value: object) -> int | None:
    """The number of ranks that a file tells, or None where it is none that a job can have.

    >>> read_world_size(8), read_world_size(10**9), read_world_size(True), read_world_size("8")
    (8, None, None, None)
    """
    whole = isinstance(value, int) and not isinstance(value, bool)
    return value if whole and 0 < value <= LARGEST_WORLD_SIZE else None  # type: ignore[operator, return-value]


def read_number(value: object) -> float | None:
    """The number that a field of a signal line stands for, or None where it is no number at all.

    Booleans are no numbers; an integer too large for a float is infinite, as it would be in any reader.

    >>> read_number("NaN"), read_number(3), read_number("3"), read_number(None)
    (nan, 3.0, None, None)
    """
    if isinstance(value, str):
        return _WORDS.get(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf
