"""What does a rank of the preflight find around it: its device, the network cards, the place of its dumps?"""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from train_ledger.signals import flight

if TYPE_CHECKING:
    import torch

__all__ = ["device_of_rank", "dump_place", "nics"]

_ACTIVE = 4
"""The state of an InfiniBand port that is up."""


def device_of_rank() -> torch.device:
    """A GPU of its own where every rank of this host has one, else the processor."""
    import torch

    local_rank, local_ranks = (int(os.environ.get(it, "0")) for it in ("LOCAL_RANK", "LOCAL_WORLD_SIZE"))
    if not torch.cuda.is_available() or torch.cuda.device_count() < max(local_ranks, 1):
        return torch.device("cpu")
    device = torch.device("cuda", local_rank)
    torch.cuda.set_device(device)
    return device


def dump_place(rank: int) -> dict[str, Any]:
    """Whether this rank can write where torch will dump, and whether rank 0 sees what all wrote there."""
    import torch.distributed as dist

    prefix = flight.dump_prefix(os.environ)
    probes = [Path(f"{prefix}{each}.preflight") for each in range(dist.get_world_size())]
    error = ""
    try:
        probes[rank].write_bytes(b"preflight")
    except OSError as refused:
        error = refused.strerror or str(refused)
    dist.barrier()
    unseen = [each for each, probe in enumerate(probes) if not probe.exists()] if rank == 0 else []
    dist.barrier()
    with contextlib.suppress(OSError):
        probes[rank].unlink()
    return {"prefix": prefix, "error": error, "unseen": unseen}


def nics() -> float | None:
    """Bytes per second of all ports of this host's network cards that are up, if it has any."""
    from train_ledger.sources.hardware.infiniband import read_ports

    rates = [
        it.values["rate_bytes_per_second"]
        for it in read_ports(time.time(), "")
        if it.values.get("state_id") == _ACTIVE and "rate_bytes_per_second" in it.values
    ]
    return sum(rates) or None
