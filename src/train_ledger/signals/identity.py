"""Who is this process in the job: which rank of how many, on which host, with which GPU?

Asked of the environment in the order in which it can be trusted: an initialised torch.distributed, then the
launcher's variables (torchrun, Slurm, Open MPI, PMI). The GPU is asked of torch where CUDA is already
initialised, else of NVML, so that start() never initialises CUDA.
"""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Mapping
from dataclasses import dataclass

from train_ledger.signals.harmless.values import whole

__all__ = ["Identity", "identify"]

# (rank, world size, local rank), most trusted first; torchrun under Slurm sets both, and its own ones count.
_LAUNCHERS = (
    ("RANK", "WORLD_SIZE", "LOCAL_RANK"),
    ("SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"),
    ("PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID"),
)


@dataclass(frozen=True, slots=True)
class Identity:
    rank: int
    world_size: int
    local_rank: int
    host: str
    pid: int


def identify(
    rank: int | None = None, world_size: int | None = None, environ: Mapping[str, str] = os.environ
) -> Identity:
    """Rank, world size and local rank; what nobody says is rank 0 of 1.

    A given `rank` or `world_size` that is no whole number counts as not given.
    """
    by_torch = _torch_distributed()
    by_launcher = _launcher(environ)
    found_rank, found_world = by_torch or by_launcher[:2]
    return Identity(
        rank=_first(whole(rank), found_rank, 0),
        world_size=_first(whole(world_size), found_world, 1),
        local_rank=_first(by_launcher[2], 0),
        host=socket.gethostname(),
        pid=os.getpid(),
    )


def _first(*candidates: int | None) -> int:
    return next(value for value in candidates if value is not None)


def _torch_distributed() -> tuple[int, int] | None:
    distributed = sys.modules.get("torch.distributed")
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return None
    return distributed.get_rank(), distributed.get_world_size()


def _launcher(environ: Mapping[str, str]) -> tuple[int | None, int | None, int | None]:
    for names in _LAUNCHERS:
        rank, world_size, local_rank = (_count(environ.get(name)) for name in names)
        if rank is not None:
            return rank, world_size, local_rank
    return None, None, _count(environ.get("LOCAL_RANK"))


def _count(text: str | None) -> int | None:
    return int(text) if text is not None and text.isdecimal() else None
