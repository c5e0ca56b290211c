"""How do a run's numbers get into TensorBoard?

Each attempt is a run of its own in the folder (`attempt_0`, `attempt_1`, …). A restart goes back to its
checkpoint, and TensorBoard draws the points of one run in the order in which they were written, as a line
that runs backwards; to purge the earlier ones would hide what the lost hours had shown. Side by side both
stay, and where they part is in plain sight. The scalars are `train/<field>`, by step, at the time when the
step was finished.
"""

from __future__ import annotations

import os
import sys
import threading
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

from train_ledger.signals.integrations.helper import Steps, library, say_why, tagged
from train_ledger.signals.telling.writers import Writer

__all__ = ["serve", "tensorboard_writer"]

_FLUSH_S = 10


def tensorboard_writer(folder: Path, attempt: int, warn: Callable[[str, str], None]) -> Writer:
    """What writes one attempt's numbers below `folder`, as event files of TensorBoard."""
    settings = {"folder": str(folder / f"attempt_{attempt}")}
    return Writer("TensorBoard", "tensorboard", settings, warn)


def serve() -> None:
    """In the process of its own: by TensorBoard's writer of event files, which torch.utils.tensorboard uses,
    too, or by tensorboardX where only that is installed."""
    # Where TensorFlow is installed TensorBoard opens files by it, which takes seconds and a gigabyte, unless
    # there is a module of this name.
    sys.modules.setdefault("tensorboard.compat.notf", types.ModuleType("tensorboard.compat.notf"))
    steps = Steps()
    files = library("tensorboard.summary.writer.event_file_writer", "tensorboardX")
    folder = steps.settings["folder"]
    if hasattr(files, "EventFileWriter") and not hasattr(files, "SummaryWriter"):
        _by_tensorboard(files.EventFileWriter(folder, flush_secs=_FLUSH_S), steps)
    else:
        _by_tensorboard_x(files.SummaryWriter(folder, flush_secs=_FLUSH_S), steps)


def _by_tensorboard(writer: Any, steps: Steps) -> None:
    threading.excepthook = _end_by
    event = library("tensorboard.compat.proto.event_pb2").Event
    summary = library("tensorboard.compat.proto.summary_pb2").Summary
    for step, t, fields in steps:
        values = [summary.Value(tag=tag, simple_value=value) for tag, value in tagged(fields).items()]
        writer.add_event(event(wall_time=t, step=step, summary=summary(value=values)))
    writer.close()


def _end_by(args: threading.ExceptHookArgs) -> None:
    """The thread that writes the file failed, say for a full disk: this process has nothing more to do."""
    say_why(args.exc_value)
    os._exit(1)


def _by_tensorboard_x(writer: Any, steps: Steps) -> None:
    for step, t, fields in steps:
        for tag, value in tagged(fields).items():
            writer.add_scalar(tag, value, step, walltime=t)
    writer.close()
