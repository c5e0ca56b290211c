"""Who gets one rank's numbers besides its signal file: TensorBoard, Weights & Biases?"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from train_ledger.signals.metrics_rank import metrics_rank
from train_ledger.signals.monitor import Monitor

__all__ = ["invite"]


def invite(
    monitor: Monitor,
    *,
    tensorboard: object,
    wandb: object,
    constants: Mapping[str, Any],
) -> None:
    """Have the numbers go there too, where `monitor` is that of the metrics rank.

    `tensorboard` is a folder, or True for RUN/tensorboard; `wandb` what `wandb.init` is given, or True for
    nothing in particular. `constants` are what run.json says of the job. What is neither is told.
    """
    if not (tensorboard or wandb):
        return
    layout = constants.get("parallelism")
    schedule = layout.get("schedule") if isinstance(layout, Mapping) else None
    schedule = constants.get("schedule", schedule)
    if monitor.rank != metrics_rank(
        monitor.world_size, layout, schedule if isinstance(schedule, str) else None
    ):
        return
    if tensorboard:
        _invite_tensorboard(monitor, tensorboard)
    if wandb:
        _invite_wandb(monitor, wandb, constants)


def _invite_tensorboard(monitor: Monitor, where: object) -> None:
    from train_ledger.signals.integrations.tensorboard import tensorboard_writer

    if where is True:
        folder = monitor.run_dir.path / "tensorboard"
    elif isinstance(where, str | os.PathLike):
        folder = Path(where)
    else:
        monitor.warn("tensorboard", f"tensorboard is True or a folder, no {type(where).__name__}")
        return
    monitor.also_to(tensorboard_writer(folder.absolute(), monitor.attempt, monitor.warn))


def _invite_wandb(monitor: Monitor, given: object, constants: Mapping[str, Any]) -> None:
    from train_ledger.signals.integrations.wandb import wandb_writer

    if given is not True and not isinstance(given, Mapping):
        monitor.warn("wandb", f"wandb is True or what wandb.init is given, no {type(given).__name__}")
        return
    init = dict(given) if isinstance(given, Mapping) else {}
    place = monitor.run_dir.path
    monitor.also_to(wandb_writer(place, monitor.attempt, monitor.warn, init, constants))
