"""Which signals decide causes, what is lost without each, and how does one get it?

One table. A name is a field of the signal lines, a field of the GPUs by dcgm-exporter's name, or one of the
few things besides that are looked for: steps, starts, phases, saves, dumps, stacks, processes, logs, kernel
logs, ports.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

__all__ = ["SIGNALS", "Signal"]

Of = Literal["ranks", "run", "hosts"]
Kind = Literal["field", "gpu", "other"]


@dataclass(frozen=True, slots=True)
class Signal:
    """One signal: `of` says of how many it must come – of every rank, of every host, or of the run once.

    `lost` is what cannot be done without it, in words that end a sentence; `get` is how it is had, a setting,
    a variable or a command. RUN stands for the run directory.
    """

    name: str
    kind: Kind
    of: Of
    what: str
    lost: str
    get: str


_START = (
    "call train_ledger.start('RUN') on every rank before init_process_group, "
    "and monitor.step() after each step"
)
_TIMED = "call train_ledger.start('RUN') with collectives left on (the default), before init_process_group"
_PHASE = "wrap it in monitor.phase({!r}), or use the integration of your trainer"
_RECORD = "train-ledger export RUN --record-hardware on every node (dcgm-exporter: [dcgm] url)"
_KERNEL = "train-ledger export RUN --record-hardware on every node, as a user who may read the kernel log"
_MEMORY = (
    "call train_ledger.start('RUN') on ranks with a GPU: torch.cuda.memory_stats() is read after each step"
)


_OTHER_DATA = "other data after a restart cannot be told"


def _field(name: str, lost: str, get: str, of: Of = "ranks") -> Signal:
    return Signal(name, "field", of, f"field {name} of the signal lines", lost, get)


def _gpu(name: str, lost: str) -> Signal:
    return Signal(f"DCGM_FI_DEV_{name}", "gpu", "hosts", f"DCGM_FI_DEV_{name} of the GPUs", lost, _RECORD)


_SIGNALS = (
    Signal("steps", "other", "ranks", "a line a step of every rank", "who stands cannot be told", _START),
    Signal(
        "starts",
        "other",
        "ranks",
        "run_start of every rank, whose process then tells exceptions and signals, too",
        "a restart, and what ended a rank, cannot be told",
        _START,
    ),
    Signal(
        "phases",
        "other",
        "run",
        "phases that ranks open",
        "in which phase a rank stands cannot be told",
        _PHASE.format("data"),
    ),
    Signal(
        "saves",
        "other",
        "run",
        "ckpt_start, ckpt_saved or ckpt_failed",
        "a save that fails or takes long cannot be told from a hang",
        "with monitor.checkpoint(step): around the save, or the integration of your trainer",
    ),
    Signal(
        "dumps",
        "other",
        "ranks",
        "Flight Recorder: on in every rank's environment, its dumps in RUN/comm_traces",
        "who did not come to which collective cannot be told",
        "call train_ledger.start('RUN') before init_process_group, which sets it; else export "
        "TORCH_FR_BUFFER_SIZE=20000 TORCH_NCCL_DUMP_ON_TIMEOUT=1 "
        "TORCH_FR_DUMP_TEMP_FILE=RUN/comm_traces/rank_ for every rank",
    ),
    Signal(
        "stacks",
        "other",
        "ranks",
        "stacks: ranks whose process is known and can be asked",
        "in which line of its code a rank stands cannot be told",
        "call train_ledger.start('RUN') on every rank; train-ledger stacks RUN --launcher ssh takes them",
    ),
    Signal(
        "processes",
        "other",
        "run",
        "a keeper or exporter that looks whether processes live",
        "that a process was killed shows only by its silence",
        "train-ledger watch RUN, and train-ledger export RUN on every node",
    ),
    Signal(
        "logs",
        "other",
        "run",
        "the ranks' logs",
        "what a rank or its watchdog printed cannot be told",
        "torchrun --log-dir RUN/logs --tee 3, or log_dir in run.json",
    ),
    Signal(
        "kernel log",
        "other",
        "hosts",
        "the kernel log of every host",
        "an XID cannot be told",
        _KERNEL,
    ),
    Signal(
        "ports",
        "other",
        "hosts",
        "ports of the network cards of every host",
        "a link that is down, or counts errors, cannot be told",
        "train-ledger export RUN --record-hardware on every node with /sys/class/infiniband",
    ),
    Signal(
        "parallelism",
        "other",
        "run",
        "parallelism in run.json",
        "which ranks do the same work is guessed",
        'train_ledger.start("RUN", parallelism={"dp": …, "tp": …, "pp": …})',
    ),
    _field("loss", "that the loss is not finite cannot be told", "monitor.step(n, loss=…)", "run"),
    _field("grad_norm", "a spike of the gradients cannot be told", "monitor.step(n, grad_norm=…)", "run"),
    _field("step_time_s", "that steps take longer cannot be told", _START),
    _field("compute_s", "a straggler, its victims and slow data cannot be told apart", _TIMED),
    _field("comm_wait_s", "waiting in collectives cannot be told from work", _TIMED),
    _field("data_wait_s", "waiting for data cannot be told from work", "for batch in monitor.loader(loader)"),
    _field("tps", "unequal sequences cannot be told from a slow rank", "monitor.step(n, tokens=…)"),
    _field("gc_s", "pauses of the garbage collection cannot be told from slow work", _START),
    _field("log_s", "time in logging cannot be told from slow work", _START),
    _field("stdout_bytes", "how much is printed cannot be told", _START),
    _field("rss_bytes", "a leak of host memory cannot be told from slow work", _START),
    _field("ckpt_s", "how long saves stop the steps cannot be told", "with monitor.checkpoint(step):"),
    _field("num_alloc_retries", "fragmented memory cannot be told from slow work", _MEMORY),
    _field("num_device_alloc", "an allocator that goes back and forth cannot be told", _MEMORY),
    _field("consumed_samples", _OTHER_DATA, "monitor.step(n, consumed_samples=…)", "run"),
    _field("consumed_tokens", _OTHER_DATA, "monitor.step(n, consumed_tokens=…)", "run"),
    _gpu("SM_CLOCK", "a card that is slowed down cannot be told from slow host code"),
    _gpu("CLOCKS_EVENT_REASONS", "why a card is slowed down cannot be told"),
    _gpu("ECC_DBE_VOL_TOTAL", "an uncorrected memory error cannot be told"),
    _gpu("ROW_REMAP_PENDING", "a row that waits to be remapped cannot be told"),
    _gpu("XID_ERRORS", "an XID cannot be told"),
    _gpu("NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL", "a bad NVLink cannot be told from slow host code"),
    _gpu("PCIE_REPLAY_COUNTER", "a bad PCIe link cannot be told from slow host code"),
)  # fmt: skip

SIGNALS: Mapping[str, Signal] = {it.name: it for it in _SIGNALS}
"""By name."""
