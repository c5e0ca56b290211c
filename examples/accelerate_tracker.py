"""Accelerate: one tracker, on every rank.

python examples/accelerate_tracker.py runs/accelerate
accelerate launch --num_processes 2 examples/accelerate_tracker.py runs/accelerate      # on GPUs
torchrun --nproc-per-node 2 examples/accelerate_tracker.py runs/accelerate              # anywhere
"""

import sys

import torch
from accelerate import Accelerator

from train_ledger.signals.integrations.accelerate import TrainLedgerTracker

# Before the Accelerator, which initialises torch.distributed: so the Flight Recorder is prepared, too.
tracker = TrainLedgerTracker(sys.argv[1] if len(sys.argv) > 1 else "runs/accelerate")
accelerator = Accelerator(log_with=[tracker])
accelerator.init_trackers("regression", config={"learning_rate": 0.05})

model = torch.nn.Linear(16, 1)
model, optimizer = accelerator.prepare(model, torch.optim.SGD(model.parameters(), lr=0.05))
for step in range(1, 21):
    loss = model(torch.randn(8, 16, device=accelerator.device)).square().mean()
    accelerator.backward(loss)
    optimizer.step()
    optimizer.zero_grad()
    accelerator.log({"loss": loss.item(), "learning_rate": 0.05}, step=step)  # on every rank
    if step % 10 == 0:
        with tracker.tracker.evaluation(), torch.no_grad():
            model(torch.randn(8, 16, device=accelerator.device))
accelerator.end_training()
