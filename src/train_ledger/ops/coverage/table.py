"""Which signals decide which cause?

One table: a row for every code of `answer.CAUSES`. A cause can be told where of each group of its needs one
signal arrives. A test holds the rows to the codes, and proves some of them on made runs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["ROWS", "Row", "Unless"]

Unless = Literal["", "no GPUs", "one host", "one stage", "one rank"]


@dataclass(frozen=True, slots=True)
class Row:
    """One cause: `needs` are groups of names in `SIGNALS`, of each of which any one will do.

    `unless` says of which runs the cause cannot be, so that nothing is missing there.
    """

    cause: str
    needs: tuple[tuple[str, ...], ...]
    unless: Unless = ""


_OWN_WORK = ("compute_s", "comm_wait_s")
_STEPS = ("steps",)
_TIMES = ("step_time_s", "steps")
"""What lies between the lines of two steps will do where none says how long it took."""
_CLOCKS = ("DCGM_FI_DEV_SM_CLOCK", "DCGM_FI_DEV_CLOCKS_EVENT_REASONS")
_LINKS = ("DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL", "DCGM_FI_DEV_PCIE_REPLAY_COUNTER", "ports")
_XIDS = ("kernel log", "DCGM_FI_DEV_XID_ERRORS")
_ECC = ("DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", "DCGM_FI_DEV_ROW_REMAP_PENDING")

ROWS: tuple[Row, ...] = (
    Row("none", (_STEPS,)),
    Row("unknown", (_STEPS,)),
    Row("hang.rank_missing", (_STEPS, ("dumps", "phases")), "one rank"),
    Row("hang.mismatch", (("dumps",),), "one rank"),
    Row("hang.host", (_STEPS, ("stacks",))),
    Row("hang.gpu_stuck", (("dumps",),), "no GPUs"),
    Row("hang.fabric", (("dumps",), _XIDS), "one rank"),
    Row("hang.init", (("starts",), ("stacks", "phases"))),
    Row("hang.rank_died", (("starts", "processes", "logs"),)),
    Row("slow.straggler.clock", (_TIMES, _OWN_WORK, _CLOCKS), "no GPUs"),
    Row("slow.straggler.link", (_TIMES, ("comm_wait_s", "compute_s"), _LINKS), "no GPUs"),
    Row("slow.straggler.software", (_TIMES, _OWN_WORK), "one rank"),
    Row("slow.stage_imbalance", (_TIMES, _OWN_WORK, ("parallelism",)), "one stage"),
    Row("slow.sequence_imbalance", (_TIMES, _OWN_WORK, ("tps",)), "one rank"),
    Row("slow.data", (_TIMES, ("data_wait_s",))),
    Row("slow.fragmentation", (_TIMES, ("num_alloc_retries", "num_device_alloc")), "no GPUs"),
    Row("slow.logging", (_TIMES, ("log_s", "stdout_bytes"))),
    Row("slow.checkpoint", (("ckpt_s", "saves"),)),
    Row("slow.gc", (_TIMES, ("gc_s",))),
    Row("slow.host_memory", (_TIMES, ("rss_bytes",))),
    Row("slow.communication", (_TIMES, ("comm_wait_s",)), "one rank"),
    Row("numeric.nan", (("loss",),)),
    Row("numeric.spike", (("loss", "grad_norm"),)),
    Row("hardware.xid", (_XIDS,), "no GPUs"),
    Row("hardware.ecc", (_ECC,), "no GPUs"),
    Row("hardware.gpu_lost", (_CLOCKS,), "no GPUs"),
    Row("hardware.nic", (("ports",),), "one host"),
    Row("restart_loop", (("starts", "logs"),)),
    Row("checkpoint_failing", (("saves",),)),
    Row("data.position", (("consumed_samples", "consumed_tokens"),)),
    Row("telemetry_lost", (_STEPS, ("starts",))),
)
