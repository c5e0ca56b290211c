"""Trainings by Lightning, with and without the callback; all in one process, as the import is slow.

Usage: lightning_trainings.py FOLDER. What the trainings came to is written to FOLDER/results.json.
"""

from __future__ import annotations

import contextlib
import json
import logging
import sys
import warnings
from pathlib import Path
from typing import Any

import lightning.pytorch as pl
import torch
from lightning.pytorch.callbacks import ModelCheckpoint
from lightning.pytorch.loggers import CSVLogger

from train_ledger.signals.integrations.lightning import TrainLedgerCallback

warnings.simplefilter("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)


class Model(pl.LightningModule):
    def __init__(self, fail_at: int | None = None) -> None:
        super().__init__()
        torch.manual_seed(3)
        self.layer = torch.nn.Linear(4, 1)
        self.fail_at = fail_at
        self.losses: list[float] = []

    def training_step(self, batch: torch.Tensor, batch_idx: int) -> torch.Tensor:
        if batch_idx == self.fail_at:
            raise ValueError("a batch that cannot be")
        loss = self.layer(batch).square().mean()
        self.losses.append(float(loss))
        self.log("train_loss", loss)
        self.log("train/grad_norm", loss * 2)
        self.log("accuracy", 0.5)
        return loss

    def validation_step(self, batch: torch.Tensor, batch_idx: int) -> None:
        self.log("val_loss", self.layer(batch).square().mean())

    def configure_optimizers(self) -> Any:
        optimizer = torch.optim.SGD(self.parameters(), lr=0.1)
        return [optimizer], [{"scheduler": torch.optim.lr_scheduler.StepLR(optimizer, 1), "interval": "step"}]

    def train_dataloader(self) -> Any:
        return torch.utils.data.DataLoader(torch.arange(96.0).reshape(24, 4) / 96, batch_size=2)

    val_dataloader = train_dataloader


class TwoOptimizers(Model):
    automatic_optimization = False

    def __init__(self) -> None:
        super().__init__()
        self.other = torch.nn.Linear(4, 1)

    def training_step(self, batch: torch.Tensor, batch_idx: int) -> None:  # type: ignore[override]
        for optimizer, layer in zip(self.optimizers(), (self.layer, self.other), strict=True):
            optimizer.zero_grad()
            self.manual_backward(layer(batch).square().mean())
            optimizer.step()

    def configure_optimizers(self) -> Any:
        return [torch.optim.SGD(layer.parameters(), lr=0.1) for layer in (self.layer, self.other)]


def fit(
    model: Model, callbacks: list[Any], folder: Path, resume: Path | None = None, **arguments: Any
) -> Any:
    chosen = {
        "max_epochs": 1,
        "num_sanity_val_steps": 0,
        "limit_val_batches": 0,
        "logger": False,
        **arguments,
    }
    trainer = pl.Trainer(
        callbacks=callbacks,
        default_root_dir=folder,
        accelerator="cpu",
        enable_progress_bar=False,
        enable_model_summary=False,
        enable_checkpointing=any(isinstance(callback, ModelCheckpoint) for callback in callbacks),
        **chosen,
    )
    trainer.fit(model, ckpt_path=resume)
    return [
        model.losses,
        float(model.layer.weight.sum()),
        len(trainer.loggers),
        "save_checkpoint" in vars(trainer),
    ]


def main(folder: Path) -> None:
    accumulated = {"accumulate_grad_batches": 2}
    results = {
        "without": fit(Model(), [], folder, **accumulated),
        "with": fit(Model(), [TrainLedgerCallback(folder / "run")], folder, **accumulated),
    }
    fit(TwoOptimizers(), [TrainLedgerCallback(folder / "two")], folder)
    validated = {"num_sanity_val_steps": 2, "limit_val_batches": 2, "val_check_interval": 6}
    saving = ModelCheckpoint(folder / "saved", every_n_train_steps=4, save_top_k=-1, filename="{step}")
    logger = CSVLogger(folder / "csv")
    results["validated"] = fit(
        Model(),
        [TrainLedgerCallback(folder / "validated"), saving],
        folder,
        logger=logger,
        log_every_n_steps=3,
        **validated,
    )
    saved = folder / "saved" / "step=8.ckpt"
    fit(Model(), [TrainLedgerCallback(folder / "validated")], folder, saved, max_epochs=2)
    with contextlib.suppress(ValueError):
        fit(Model(fail_at=5), [TrainLedgerCallback(folder / "failed")], folder)
    (folder / "file").touch()
    results["unwritable"] = fit(
        Model(), [TrainLedgerCallback(folder / "file" / "run")], folder, **accumulated
    )
    (folder / "results.json").write_text(json.dumps(results))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
