"""Trainings by Hugging Face's Trainer, with and without the callback; all in one process: imports are slow.

Usage: hf_trainings.py FOLDER. Each writes the losses that the Trainer itself keeps to FOLDER/NAME.json.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import torch
import transformers
from transformers import LlamaConfig, LlamaForCausalLM, Trainer, TrainingArguments

from train_ledger.signals.integrations.hf import TrainLedgerCallback

TOKENS = 16
transformers.logging.set_verbosity_error()


class Sentences(torch.utils.data.Dataset[dict[str, torch.Tensor]]):
    def __len__(self) -> int:
        return 64

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        tokens = torch.randint(0, 50, (TOKENS,), generator=torch.Generator().manual_seed(index))
        return {"input_ids": tokens, "labels": tokens}


def model() -> LlamaForCausalLM:
    torch.manual_seed(3)
    return SlowlySaved(
        LlamaConfig(
            vocab_size=50,
            hidden_size=16,
            intermediate_size=32,
            num_hidden_layers=1,
            num_attention_heads=2,
            max_position_embeddings=32,
        )
    )


class SlowlySaved(LlamaForCausalLM):
    def save_pretrained(self, *args: Any, **kwargs: Any) -> Any:
        time.sleep(1)
        return super().save_pretrained(*args, **kwargs)


def trainer(folder: Path, callbacks: list[Any], **arguments: Any) -> Trainer:
    chosen = {
        "max_steps": 8,
        "logging_steps": 1,
        "save_strategy": "no",
        "per_device_train_batch_size": 2,
        "include_num_input_tokens_seen": "all",
        **arguments,
    }
    settings = TrainingArguments(str(folder), report_to=[], disable_tqdm=True, use_cpu=True, seed=5, **chosen)
    data = Sentences()
    return Trainer(model(), settings, train_dataset=data, eval_dataset=data, callbacks=callbacks)


def told(run: Trainer) -> list[Any]:
    history = [
        {key: row[key] for key in row if key in ("loss", "grad_norm", "step")}
        for row in run.state.log_history
    ]
    return [history, float(sum(parameter.sum() for parameter in run.model.parameters()))]


def train(folder: Path, name: str, callbacks: list[Any], **arguments: Any) -> None:
    with tempfile.TemporaryDirectory() as output:
        run = trainer(Path(output), callbacks, **arguments)
        run.train()
    (folder / f"{name}.json").write_text(json.dumps(told(run)))


def resume(folder: Path) -> None:
    with tempfile.TemporaryDirectory() as output:
        saving = {"save_strategy": "steps", "save_steps": 4}
        trainer(Path(output), [TrainLedgerCallback(folder / "resumed")], max_steps=4, **saving).train()
        again = trainer(Path(output), [TrainLedgerCallback(folder / "resumed")], **saving)
        again.train(resume_from_checkpoint=True)


class Untimely(transformers.TrainerCallback):
    """Asks for a save after our callback has been asked what comes next."""

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> Any:
        control.should_save = state.global_step == 3
        return control


def main(folder: Path) -> None:
    accumulated = {"gradient_accumulation_steps": 2}
    train(folder, "without", [], **accumulated)
    train(folder, "with", [TrainLedgerCallback(folder / "run")], **accumulated)
    evaluated = {
        "eval_strategy": "steps",
        "eval_steps": 4,
        "save_strategy": "steps",
        "save_steps": 4,
        "logging_steps": 2,
        "eval_on_start": True,
    }
    train(folder, "evaluated", [TrainLedgerCallback(folder / "evaluated")], **evaluated)
    by_epoch = {"max_steps": -1, "num_train_epochs": 2, "per_device_train_batch_size": 16}
    strategies = {"logging_strategy": "epoch", "eval_strategy": "epoch", "save_strategy": "epoch"}
    train(folder, "epochs", [TrainLedgerCallback(folder / "epochs")], **by_epoch, **strategies)
    train(folder, "untimely", [TrainLedgerCallback(folder / "untimely"), Untimely()], logging_steps=100)
    resume(folder)
    (folder / "file").touch()
    train(folder, "unwritable", [TrainLedgerCallback(folder / "file" / "run")], **accumulated)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
