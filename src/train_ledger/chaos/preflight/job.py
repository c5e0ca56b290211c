"""What does each rank of the preflight do?

A real job, over NCCL where every rank has a GPU, else over gloo, that writes its signals as any training
does. It measures what its stages say and writes what it found, stage by stage, into a file a rank. torchrun
starts it; with the stage "kill" one rank ends itself by SIGKILL once, and the launcher is to start all anew:

    torchrun --standalone --nproc-per-node 4 --max-restarts 1 -m train_ledger.chaos.preflight.job \\
        --folder FOLDER --stages bandwidth,restore,kill,layout,steps,slow,tamper
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from pathlib import Path

import train_ledger
from train_ledger.chaos.preflight.stages import STAGES, Rank
from train_ledger.chaos.preflight.surroundings import device_of_rank

__all__ = ["main", "measure"]

_TIMEOUT_S = 120


def main(arguments: list[str] | None = None) -> None:
    """Measure as the options say."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, required=True, help="what is measured is written there")
    parser.add_argument("--stages", required=True, help="some of: " + ", ".join(STAGES))
    parser.add_argument(
        "--load-s", type=float, default=300.0, help="how long the clocks are watched under load"
    )
    options = parser.parse_args(arguments)
    measure(options.folder, options.stages.split(","), load_s=options.load_s)


def measure(folder: Path, stages: Sequence[str], *, load_s: float) -> None:
    """Do the stages on this rank; the process group is made here and left at the end."""
    rank = int(os.environ["RANK"])
    folder.mkdir(parents=True, exist_ok=True)
    monitor = train_ledger.start(folder / "run")

    import datetime

    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    device = device_of_rank()
    timeout = datetime.timedelta(seconds=_TIMEOUT_S + load_s)
    dist.init_process_group("nccl" if device.type == "cuda" else "gloo", timeout=timeout)
    Rank(folder, stages, load_s, rank, device, monitor).run()
    dist.barrier()
    dist.destroy_process_group()
    monitor.close()


if __name__ == "__main__":
    main()
