"""A training loop of one's own: three lines, and phases so that a verdict can say what a rank was doing.

python examples/plain_loop.py runs/plain
torchrun --nproc-per-node 2 examples/plain_loop.py runs/plain
train-ledger watch runs/plain
"""

import os
import sys
from pathlib import Path

import torch
from torch.nn.parallel import DistributedDataParallel

import train_ledger

run = sys.argv[1] if len(sys.argv) > 1 else "runs/plain"
with train_ledger.start(run) as monitor:
    if "RANK" in os.environ:
        torch.distributed.init_process_group("gloo")
    torch.manual_seed(0)
    model: torch.nn.Module = torch.nn.Linear(16, 1)
    if torch.distributed.is_initialized():
        model = DistributedDataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)

    for step in range(1, 21):
        with monitor.phase("data"):
            batch = torch.randn(8, 16)
        with monitor.phase("forward"):
            loss = model(batch).square().mean()
        with monitor.phase("backward"):
            loss.backward()
        with monitor.phase("optimizer"):
            optimizer.step()
            optimizer.zero_grad()
        monitor.step(step, loss=loss.item(), lr=0.05)
        if step % 10 == 0:
            with monitor.checkpoint(step):
                torch.save(model.state_dict(), Path(run) / f"rank_{monitor.rank}.pt")

    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()
