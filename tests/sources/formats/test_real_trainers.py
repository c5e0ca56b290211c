"""What the Hugging Face Trainer and Lightning write when they run, read back."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from train_ledger.facts import Event, Fault, Step
from train_ledger.sources.formats.hugging_face.hf_trainer import HfTrainer
from train_ledger.sources.formats.hugging_face.trainer_state import TrainerState
from train_ledger.sources.formats.lightning.lightning_csv import LightningCsv
from train_ledger.sources.lines.log_line import read_line

pytestmark = pytest.mark.slow

HF = """
import sys, torch
from transformers import Trainer, TrainingArguments

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.calls = torch.nn.Linear(4, 1), 0

    def forward(self, x, labels=None):
        self.calls += self.training
        loss = ((self.layer(x) - labels) ** 2).mean()
        return {"loss": loss * (float("nan") if self.training and self.calls > 10 else 1.0), "logits": x}

data = [{"x": torch.ones(4), "labels": torch.ones(1)} for _ in range(40)]
arguments = TrainingArguments(
    sys.argv[1], max_steps=12, logging_steps=2, eval_strategy="steps", eval_steps=4, save_steps=6,
    per_device_train_batch_size=4, report_to=[], use_cpu=True, log_level="info",
)
trainer = Trainer(Model(), arguments, train_dataset=data, eval_dataset=data)
trainer.log_metrics("train", trainer.train().metrics)
"""

LIGHTNING = """
import sys, torch, lightning
from lightning.pytorch.loggers import CSVLogger

class Model(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 1)

    def training_step(self, batch, index):
        loss = self.layer(batch[0]).pow(2).mean()
        self.log("train_loss", loss, on_step=True, on_epoch=True)
        return loss

    def validation_step(self, batch, index):
        self.log("val_loss", self.layer(batch[0]).pow(2).mean())

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.01)

data = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.ones(40, 4)), batch_size=4)
logger = CSVLogger(sys.argv[1], name="", version=0, flush_logs_every_n_steps=1)
trainer = lightning.Trainer(
    max_epochs=2, accelerator="cpu", logger=logger, log_every_n_steps=5, enable_progress_bar=False,
    enable_checkpointing=False, default_root_dir=sys.argv[1],
)
trainer.fit(Model(), data, data)
"""


def run(program: str, folder: Path) -> bytes:
    command = [sys.executable, "-c", program, str(folder)]
    done = subprocess.run(command, capture_output=True, timeout=240, check=False, cwd=folder)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout + done.stderr


def run_joined(program: str, folder: Path) -> bytes:
    """Standard output and error in one file, as a terminal or `2>&1` has them."""
    with (folder / "out.log").open("wb") as log:
        command = [sys.executable, "-c", program, str(folder)]
        subprocess.run(command, stdout=log, stderr=subprocess.STDOUT, timeout=240, check=True, cwd=folder)
    return (folder / "out.log").read_bytes()


def read(reader, content: bytes) -> list:
    found = []
    for number, line in enumerate(content.split(b"\n"), 1):
        found += reader.read(read_line(line), f"file:{number}")
    return [*found, *reader.end()]


def test_the_trainer_of_transformers_is_read_from_its_output_and_its_state_alike(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    found = read(HfTrainer(), run_joined(HF, tmp_path))
    printed = {it.step: it.values["loss"] for it in found if isinstance(it, Step) and "loss" in it.values}
    content = (tmp_path / "checkpoint-12" / "trainer_state.json").read_bytes()
    kept = {
        it.step: it.values["loss"] for it in TrainerState().facts(content, "state") if isinstance(it, Step)
    }
    assert list(printed) == list(kept) == [2, 4, 6, 8, 10, 12]
    assert printed == pytest.approx(kept, rel=1e-3)
    assert [(it.fault, it.step) for it in found if isinstance(it, Fault)] == [("nan_suspected", 12)]
    assert [it.step for it in found if isinstance(it, Event) and it.name == "eval_end"] == [4, 8, 12]
    assert [it.step for it in found if isinstance(it, Event) and it.name == "ckpt_saved"] == [6, 12]
    assert json.loads(content)["global_step"] == 12


def test_metrics_csv_of_lightning_is_read(tmp_path: Path) -> None:
    pytest.importorskip("lightning")
    run(LIGHTNING, tmp_path)
    content = (tmp_path / "version_0" / "metrics.csv").read_bytes()
    assert LightningCsv.fits(content[:4096], "metrics.csv")
    found = read(LightningCsv(), content)
    assert [it.step for it in found if isinstance(it, Step) and "loss" in it.values] == [4, 9, 14, 19]
    assert [it.step for it in found if isinstance(it, Event)] == [9, 19]
