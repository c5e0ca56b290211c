"""Which figures have a history?"""

from __future__ import annotations

__all__ = ["CURVES", "GPU_STRIPS", "STRIPS"]

CURVES = (
    "loss",
    "grad_norm",
    "lr",
    "loss_scale",
    "max_attn_logit",
    "step_time_s",
    "compute_s",
    "comm_wait_s",
    "data_wait_s",
    "ckpt_s",
    "tps",
    "mfu",
    "mem_reserved_peak",
    "mem_inactive_split",
    "rss_bytes",
)
"""Fields that are drawn over the steps, all ranks together: least, mean, largest, and whose that is."""

STRIPS = ("compute_s", "comm_wait_s", "data_wait_s", "mem_reserved_peak")
"""Fields that are drawn rank by rank."""

GPU_STRIPS = ("DCGM_FI_DEV_SM_CLOCK", "DCGM_FI_DEV_GPU_TEMP", "DCGM_FI_DEV_POWER_USAGE")
"""What is drawn GPU by GPU, over time."""
