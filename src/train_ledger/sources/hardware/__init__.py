"""What does the hardware of a host say: its GPUs, its network ports, its kernel?

Either asked here and now (dcgm-exporter, NVML, sysfs, the kernel's log) or read from what a recorder wrote
into RUN/hardware.
"""

from __future__ import annotations

from train_ledger.sources.hardware.gpu_fields import WANTED, labelled, xids_told

__all__ = ["WANTED", "labelled", "xids_told"]
