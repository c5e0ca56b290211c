"""How do a run's numbers get into Weights & Biases?

W&B refuses a step that is lower than one it has (wandb#4482, wandb#2234), so its own step is left to count by
itself, and `train/step` is the axis. Each attempt is a W&B run of its own in one group, named after the run
directory: that loses nothing, offline, too, where a run cannot be resumed. Who gives an `id` gets one W&B run
for all attempts; there `train/attempt` tells them apart.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from train_ledger.signals.harmless.values import detail
from train_ledger.signals.integrations.helper import Steps, library, tagged
from train_ledger.signals.telling.writers import Writer

__all__ = ["serve", "wandb_writer"]


def wandb_writer(
    run_dir: Path,
    attempt: int,
    warn: Callable[[str, str], None],
    given: Mapping[str, Any],
    config: Mapping[str, Any],
) -> Writer:
    """What logs one attempt's numbers; `given` goes to `wandb.init`, `config` too unless that has its own.

    W&B's files lie in RUN/wandb unless `given` says otherwise. Its values are copied as plain data.
    """
    called = run_dir.name if attempt == 0 else f"{run_dir.name} attempt {attempt}"
    init = {"name": called, "group": run_dir.name, "dir": str(run_dir), "config": dict(config)}
    if "id" in given:
        init["resume"] = "allow"
    settings = {"attempt": attempt, "init": detail({**init, **given})}
    return Writer("W&B", "wandb", settings, warn)


def serve() -> None:
    """In the process of its own: by the library wandb."""
    steps = Steps()
    wandb = library("wandb")
    attempt = steps.settings["attempt"]
    run = wandb.init(**_arguments(steps.settings, wandb))
    run.define_metric("train/step")
    run.define_metric("train/attempt")
    run.define_metric("*", step_metric="train/step")
    for step, _, fields in steps:
        run.log({**tagged(fields), "train/step": step, "train/attempt": attempt})
    run.finish()


def _arguments(settings: Mapping[str, Any], wandb: Any) -> dict[str, Any]:
    init = dict(settings["init"])
    given = init.get("settings")
    init["settings"] = wandb.Settings(**{"console": "off", **(given if isinstance(given, dict) else {})})
    if settings["start"] > 1:  # the one before it ended; what it had sent is a run that is closed
        init["name"] = f"{init['name']} ({settings['start']})"
    return init
