"""Trainings by DeepSpeed's engine on the CPU, on each rank of a torchrun job.

Usage: deepspeed_training.py FOLDER engine|pipeline. Losses go to FOLDER/NAME.rank_N.json, and to
FOLDER/raised.rank_N.json what the engine raised: ranks that print to one pipe tear each other's lines.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import deepspeed
import torch
from deepspeed.pipe import PipelineModule

from train_ledger.signals.integrations.deepspeed import watch

RANK = int(os.environ["RANK"])
CONFIG = {"train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 2, "steps_per_print": 1000}


def engine_of(model: torch.nn.Module) -> Any:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    return deepspeed.initialize(model=model, optimizer=optimizer, config=CONFIG, dist_init_required=False)[0]


def model() -> torch.nn.Module:
    torch.manual_seed(3)
    return torch.nn.Linear(4, 1)


def train(engine: Any, first: int, last: int) -> list[float]:
    losses = []
    for number in range(first, last):
        loss = engine(torch.full((2, 4), (number + 1) / 10)).square().mean()
        engine.backward(loss)
        engine.step()
        losses.append(loss.item())
    return losses


def evaluate(engine: Any) -> None:
    engine.eval()
    engine(torch.ones(2, 4))
    engine.train()


def by_engine(folder: Path) -> None:
    plain = engine_of(model())
    write(folder, "without", train(plain, 0, 8))
    watched = engine_of(model())
    assert watch(watched, folder / "run") is watch(watched, folder / "run")
    losses = train(watched, 0, 6)
    evaluate(watched)
    assert watched.save_checkpoint(str(folder / "saved")) is True
    write(folder, "with", losses + train(watched, 6, 8))
    again = engine_of(model())
    monitor = watch(again, folder / "resumed")
    path, _ = again.load_checkpoint(str(folder / "saved"))
    assert path is not None
    assert again.load_checkpoint(str(folder / "nowhere")) == (None, None)
    train(again, 6, 8)
    monitor.close()
    unwritable = engine_of(model())
    (folder / "file").touch()
    watch(unwritable, folder / "file" / "run")
    write(folder, "unwritable", train(unwritable, 0, 8))
    try:
        unwritable.save_checkpoint("")
    except ValueError as error:
        write(folder, "raised", str(error))


def by_pipeline(folder: Path) -> None:
    torch.manual_seed(3)
    layers = [torch.nn.Linear(4, 4), torch.nn.Linear(4, 1)]
    network = PipelineModule(layers, num_stages=2, loss_fn=lambda out, label: (out - label).square().mean())
    engine = engine_of(network)
    watch(engine, folder / "pipeline")
    batches = [(torch.full((2, 4), n / 10), torch.ones(2, 1)) for n in range(8)]
    for first in range(0, 8, 2):
        engine.train_batch(iter(batches[first : first + 2]))


def write(folder: Path, name: str, told: list[float] | str) -> None:
    (folder / f"{name}.rank_{RANK}.json").write_text(json.dumps(told))


# Else DeepSpeed compiles its own collectives for the CPU at the first start, which takes a minute.
deepspeed.ops.__compatible_ops__["deepspeed_shm_comm"] = False
deepspeed.init_distributed("gloo")
{"engine": by_engine, "pipeline": by_pipeline}[sys.argv[2]](Path(sys.argv[1]))
