"""Five steps of the Trainer on every rank of a torchrun job. Usage: hf_ranks.py RUN."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import torch
from hf_trainings import trainer

from train_ledger.signals.integrations.hf import TrainLedgerCallback

callback = TrainLedgerCallback(sys.argv[1])
with tempfile.TemporaryDirectory() as output:
    trainer(Path(output), [callback], max_steps=5).train()
torch.distributed.destroy_process_group()  # a rank that ends with its threads at work may abort
