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
    "FIELDS",
    "LARGEST_ATTEMPT",
    "LARGEST_WORLD_SIZE",
    "PHASES",
    "REQUIRED",
    "WORDS",
    "Field",
    "read_number",
    "read_world_size",
    "written_number",
]

Kind = Literal["gauge", "counter"]
Layer = Literal["task", "process", "launcher"]

REQUIRED = ("t", "step", "rank")

WORDS = ("compute_by",)
"""What stands in a step's line and is no number."""

LARGEST_WORLD_SIZE = 1 << 20
"""No job is larger; a number beyond it is a slip that must cost a reader neither time nor memory."""

LARGEST_ATTEMPT = 100_000

PHASES = (
    "start_up",
    "compile",
    "data",
    "forward",
    "backward",
    "optimizer",
    "checkpoint_save",
    "checkpoint_load",
    "evaluation",
    "shutdown",
)

EVENTS = (
    "run_start",
    "phase_start",
    "phase_end",
    "ckpt_start",
    "ckpt_saved",
    "ckpt_failed",
    "ckpt_loaded",
    "eval_start",
    "eval_end",
    "exception",
    "signal",
    "run_end",
    "warning",
)


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a signal line.

    `unit` is the unit of the plain number ("" for a pure number); a `counter` is cumulative within an
    attempt; `layer` says whose figure it is; `taken_at` where it is taken.
    """

    name: str
    unit: str
    kind: Kind
    layer: Layer
    taken_at: str
    normal: str
    abnormal: str

    @property
    def metric(self) -> str:
        """The Prometheus name.

        >>> FIELDS["loss"].metric, FIELDS["skipped"].metric, FIELDS["restart_total"].metric
        ('train_loss', 'train_skipped_total', 'train_restart_total')
        """
        suffix = "_total" if self.kind == "counter" and not self.name.endswith("_total") else ""
        return f"train_{self.name}{suffix}"


def _table(*rows: tuple[str, str, Kind, Layer, str, str, str]) -> dict[str, Field]:
    return {row[0]: Field(*row) for row in rows}


_MEMORY = "torch.cuda.memory_stats() after the step"
_LOOP = "training loop"

FIELDS: dict[str, Field] = _table(
    ("loss", "", "gauge", "task", "training loop, mean over data-parallel ranks", "falls smoothly", "spike, NaN, plateau"),
    ("loss_max", "", "gauge", "task", "training loop, maximum over data-parallel ranks", "close to loss", "far above loss: one rank's data"),
    ("grad_norm", "", "gauge", "task", "after clipping is computed, before the optimizer step", "falls slowly, steady noise", "rises for long, or 10 × its median"),
    ("param_norm", "", "gauge", "task", "after the optimizer step", "grows slowly", "jumps"),
    ("lr", "", "gauge", "task", "scheduler", "follows the schedule", "departs from it after a restart"),
    ("loss_scale", "", "gauge", "task", "gradient scaler (fp16)", "constant", "halves again and again"),
    ("max_attn_logit", "", "gauge", "task", "attention, maximum over heads", "bounded", "grows without bound before a NaN"),
    ("num_zeros_in_grad", "", "gauge", "task", "optimizer", "steady", "jumps"),
    ("step_time_s", "s", "gauge", "task", "monitor, from step to step", "varies by 1–2 %", "ramps, or jumps on all ranks at once"),
    ("tps", "tokens/s", "gauge", "task", "monitor, per GPU", "flat", "sinks: regression; steps down: straggler or clocks"),
    ("tflops", "TFLOP/s", "gauge", "task", "monitor, per GPU, recomputation not counted", "flat", "as tps"),
    ("mfu", "%", "gauge", "task", "monitor, 0–100", "flat", "as tps; over 100 the peak or the model figures are wrong"),
    ("data_wait_s", "s", "gauge", "process", "around the loader's next()", "about 0", "more than 5 % of the step"),
    ("fwd_s", "s", "gauge", "process", "phase forward", "equal on all ranks of a stage", "one rank longer for long: straggler"),
    ("bwd_s", "s", "gauge", "process", "phase backward; by the wall it contains waiting", "equal on all ranks", "grows with another rank's delay"),
    ("opt_s", "s", "gauge", "process", "phase optimizer", "equal on all ranks", "one rank longer"),
    ("compute_s", "s", "gauge", "process", "the rank's own work, collectives left out", "equal within a stage", "one rank longer: it drags all"),
    ("comm_wait_s", "s", "gauge", "process", "waiting in collectives", "less than 2 % of the step", "least on the rank that drags"),
    ("gc_s", "s", "gauge", "process", "gc.callbacks", "about 0", "pauses that wander from rank to rank"),
    ("log_s", "s", "gauge", "process", "logging handlers", "about 0", "grows with the volume of the log"),
    ("ckpt_s", "s", "gauge", "process", "blocking part of a checkpoint in this step", "0 but for checkpoints, then steady", "grows: storage"),
    ("queue_depth", "batches", "gauge", "process", "data loader", "full", "empty: data cannot keep up"),
    ("mem_allocated_peak", "bytes", "gauge", "process", _MEMORY + ", since the last line", "steady", "grows: leak"),
    ("mem_reserved_peak", "bytes", "gauge", "process", _MEMORY + ", since the last line", "steady", "grows while allocated does not: fragmentation"),
    ("mem_active_peak", "bytes", "gauge", "process", _MEMORY + ", since the last line", "steady", "grows"),
    ("mem_inactive_split", "bytes", "gauge", "process", _MEMORY, "steady", "grows: fragmentation"),
    ("mem_requested", "bytes", "gauge", "process", _MEMORY, "steady", "far below allocated: rounding"),
    ("rss_bytes", "bytes", "gauge", "process", "/proc/self/statm", "steady", "grows: host memory leak"),
    ("cpu_percent", "% of one core", "gauge", "process", "os.times()", "steady", "0: blocked; far above its peers: contended"),
    ("skipped", "steps", "counter", "task", "gradient scaler", "0", "several in a row: numerics"),
    ("nan_iterations", "steps", "counter", "task", _LOOP, "0", "any"),
    ("consumed_samples", "samples", "counter", "task", "loader's position", "grows by the global batch", "goes back, or repeats after a restart"),
    ("consumed_tokens", "tokens", "counter", "task", "loader's position", "grows", "goes back"),
    ("num_alloc_retries", "retries", "counter", "process", _MEMORY, "0", "grows: at the edge of memory, every retry is a stall"),
    ("num_ooms", "errors", "counter", "process", _MEMORY, "0", "any"),
    ("num_device_alloc", "calls", "counter", "process", _MEMORY, "constant once warm", "grows: memory goes back and forth"),
    ("num_device_free", "calls", "counter", "process", _MEMORY, "constant once warm", "grows"),
    ("stdout_bytes", "bytes", "counter", "process", "counting stream", "slow growth", "leaps: the log has become the work"),
    ("dropped_lines", "lines", "counter", "process", "signal writer", "0", "grows: the disk does not keep up"),
    ("refused_values", "values", "counter", "process", "signal writer", "0", "any: a tensor or a word was logged as a number"),
    ("restart_total", "restarts", "counter", "launcher", "launcher", "0", "three in half an hour"),
    ("ckpt_failed_total", "failures", "counter", "launcher", "checkpoint component", "0", "any"),
    ("ckpt_duration_s", "s", "gauge", "launcher", "checkpoint component", "steady", "grows: storage"),
    ("effective_fraction", "", "gauge", "launcher", "launcher's own account, 0–1", "over 0.9", "under 0.85 over a day"),
    ("mfu_baseline", "%", "gauge", "launcher", "preflight", "constant", "differs from run.json"),
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
