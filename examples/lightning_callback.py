"""Lightning: one callback, on every rank.

python examples/lightning_callback.py runs/lightning
"""

import sys
import tempfile

import lightning.pytorch as pl
import torch
from lightning.pytorch.loggers import CSVLogger

from train_ledger.signals.integrations.lightning import TrainLedgerCallback


class Regression(pl.LightningModule):
    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(16, 1)

    def training_step(self, batch: list[torch.Tensor], index: int) -> torch.Tensor:
        loss = self.layer(batch[0]).square().mean()
        self.log("train_loss", loss)
        return loss

    def validation_step(self, batch: list[torch.Tensor], index: int) -> None:
        self.log("val_loss", self.layer(batch[0]).square().mean())

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.parameters(), lr=0.05)


data = torch.utils.data.TensorDataset(torch.randn(160, 16, generator=torch.Generator().manual_seed(0)))
with tempfile.TemporaryDirectory() as output:
    trainer = pl.Trainer(
        max_epochs=1,
        log_every_n_steps=5,
        val_check_interval=10,
        logger=CSVLogger(output),
        default_root_dir=output,
        callbacks=[TrainLedgerCallback(sys.argv[1] if len(sys.argv) > 1 else "runs/lightning")],
    )
    loader = torch.utils.data.DataLoader(data, batch_size=8)
    trainer.fit(Regression(), loader, loader)
