"""What is a job whose steps become slow on purpose, for who wants to know whether the right one is named?

A small model under DistributedDataParallel over gloo, on processors alone. From one step on a rank computes
or fetches longer, or all ranks write thousands of lines a step.

    torchrun --nproc-per-node 4 -m train_ledger.chaos.slow_job --run-dir RUN --mode compute --culprit 2
"""

from __future__ import annotations

import argparse
import logging
import os
import time
from pathlib import Path

import train_ledger

__all__ = ["MODES", "ONSET", "STEPS", "main"]

MODES = ("compute", "data", "logging", "none")
ONSET = 60
STEPS = 130
_WORK_S = 0.05
_FETCH_S = 0.002
_MORE_S = 0.06
_LINES = 1500
_WIDTH = 64


def main(arguments: list[str] | None = None) -> None:
    """Train as the options say."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--run-dir", type=Path, required=True, help="run directory")
    parser.add_argument("--mode", choices=MODES, default="compute")
    parser.add_argument("--culprit", type=int, default=2, help="rank that becomes slow")
    _train(parser.parse_args(arguments))


def _train(options: argparse.Namespace) -> None:
    rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    monitor = train_ledger.start(options.run_dir, parallelism={"dp": ranks})

    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    torch.manual_seed(rank)
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(_WIDTH, _WIDTH))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    log = logging.getLogger("slow_job")
    for step in range(1, STEPS + 1):
        mode = options.mode if step > ONSET else "none"
        is_culprit = rank == options.culprit
        with monitor.phase("data"):
            time.sleep(_FETCH_S + _MORE_S * (mode == "data" and is_culprit))
            batch = torch.randn(8, _WIDTH)
        with monitor.phase("forward"):
            time.sleep(_WORK_S + _MORE_S * (mode == "compute" and is_culprit))
            loss = model(batch).square().mean()
        with monitor.phase("backward"):
            optimizer.zero_grad()
            loss.backward()
        optimizer.step()
        for _ in range(_LINES if mode == "logging" else 0):
            log.warning("a warning that comes in every step, of %s, on every rank", step)
        monitor.step(step, loss=float(loss))
    dist.barrier()
    dist.destroy_process_group()
    monitor.close()


if __name__ == "__main__":
    main()
