"""A loop with Accelerate, on one rank or several. Usage: accelerate_training.py RUN|- RESULT [LAST_STEP]."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import torch
from accelerate import Accelerator

from train_ledger.signals.integrations.accelerate import TrainLedgerTracker

run, result, last_step = sys.argv[1], Path(sys.argv[2]), int((*sys.argv, "6")[3])
accelerator = Accelerator(cpu=True, log_with=None if run == "-" else [TrainLedgerTracker(run)])
accelerator.init_trackers("r42", {"learning_rate": 0.1, "layers": 2})
torch.manual_seed(3)
model = torch.nn.Linear(4, 1)
model, optimizer = accelerator.prepare(model, torch.optim.SGD(model.parameters(), lr=0.1))
losses = []
for step in range(1, last_step + 1):
    loss = model(torch.full((2, 4), step / 10)).square().mean()
    optimizer.zero_grad()
    accelerator.backward(loss)
    optimizer.step()
    losses.append(loss.item())
    accelerator.log(
        {"train/loss": loss.item(), "learning_rate": 0.1, "on_the_gpu": loss.to("meta")}, step=step
    )
    if step == 3 and run != "-" and accelerator.is_main_process:
        with accelerator.get_tracker("train_ledger", unwrap=True).evaluation():
            accelerator.log({"eval_loss": 0.5}, step=step)
    if step == 4:
        accelerator.save_state(str(result.parent / "saved"))
accelerator.load_state(str(result.parent / "saved"))
accelerator.end_training()
(result.parent / f"{result.name}.rank_{accelerator.process_index}").write_text(json.dumps(losses))
