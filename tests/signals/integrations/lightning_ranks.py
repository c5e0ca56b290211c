"""Two ranks that Lightning itself starts. Usage: lightning_ranks.py RUN."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from lightning_trainings import Model, fit

from train_ledger.signals.integrations.lightning import TrainLedgerCallback

callback = TrainLedgerCallback(sys.argv[1])
with tempfile.TemporaryDirectory() as folder:
    fit(Model(), [callback], Path(folder), strategy="ddp", devices=2, use_distributed_sampler=True)
