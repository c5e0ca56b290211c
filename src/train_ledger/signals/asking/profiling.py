"""How does somebody outside get a profile of a few steps, or the state of the allocator, of a living rank?

Nothing of this costs anything until it is asked for. The profiler is started and stopped by the training
thread, at the ends of steps, since it profiles the thread that starts it; stopping it makes that thread wait
while it gathers its events. The file is then written by another thread.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from train_ledger.signals.harmless.values import whole

__all__ = ["CannotError", "Profiling", "write_memory_snapshot"]

_STEPS = 3
_MOST_STEPS = 100
_HISTORY_ENTRIES = 100_000


class CannotError(Exception):
    """What is asked cannot be done in this process; the text says why."""


Told = Callable[[Mapping[str, Any]], None]


class Profiling:
    """One profile at a time; `send` has the file written by another thread."""

    def __init__(self) -> None:
        self.send: Callable[[Callable[[], None]], None] = lambda errand: errand()
        self._wanted: tuple[int, Path, Told] | None = None
        self._left = 0
        self._writing = False
        self._profile: Any = None

    def ask(self, steps: object, path: Path, told: Told) -> None:
        """Profile the next `steps` (3 where it is None) into `path`; `told` is called with the answer.

        Raises CannotError where a profile is being made already, or torch is not there.
        """
        number = _STEPS if steps is None else whole(steps)
        if number is None or not 0 < number <= _MOST_STEPS:
            raise CannotError(f"steps must be a whole number from 1 to {_MOST_STEPS}")
        if "torch.profiler" not in sys.modules:
            raise CannotError("this process has not imported torch")
        if self._wanted is not None or self._writing:
            raise CannotError("a profile is being made already")
        self._wanted = number, path, told

    def step(self) -> None:
        """A step has ended; on the training thread."""
        if self._wanted is None:
            return
        try:
            if self._profile is None:
                if _somebody_profiles():
                    self._give_up("the training profiles itself just now")
                else:
                    self._begin(self._wanted[0])
                return
            self._left -= 1
            if self._left:
                self._profile.step()
            else:
                self._end()
        except (RuntimeError, AssertionError) as error:  # another profiler runs, in this script or around it
            self._give_up(f"torch's profiler refused: {error}")

    def close(self) -> None:
        """The training ends: what is not finished is given up."""
        if self._wanted is not None:
            if self._profile is not None:
                try:
                    self._profile.stop()
                except (RuntimeError, AssertionError):
                    self._profile = None
            self._give_up("the training ended before its steps were profiled")

    def _begin(self, steps: int) -> None:
        profiler, torch = sys.modules["torch.profiler"], sys.modules["torch"]
        activities = [profiler.ProfilerActivity.CPU]
        if torch.cuda.is_initialized():
            activities.append(profiler.ProfilerActivity.CUDA)
        profile = profiler.profile(
            activities=activities,
            record_shapes=True,
            schedule=lambda step: profiler.ProfilerAction.RECORD,  # only with one are the steps marked
        )
        profile.start()
        self._profile, self._left = profile, steps

    def _end(self) -> None:
        assert self._wanted is not None  # noqa: S101 – there is a profile
        self._profile.stop()
        profile, self._profile = self._profile, None
        (steps, path, told), self._wanted = self._wanted, None
        self._writing = True

        def write() -> None:
            try:
                _export(profile, path)
                told({"ok": True, "path": str(path), "steps": steps})
            except (OSError, RuntimeError) as error:
                told({"ok": False, "error": f"{path}: {error}"})
            self._writing = False

        self.send(write)

    def _give_up(self, why: str) -> None:
        self._profile = None
        wanted, self._wanted = self._wanted, None
        if wanted is not None:
            told = wanted[2]
            self.send(lambda: told({"ok": False, "error": why}))


def _somebody_profiles() -> bool:
    """A second profiler on a thread ends the first, and says nothing."""
    enabled = getattr(sys.modules.get("torch.autograd"), "_profiler_enabled", None)
    return enabled is not None and bool(enabled())


def _export(profile: Any, path: Path) -> None:
    """As a whole: a reader sees no half of it. torch packs what is called .gz."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".unfinished.{path.name}")
    profile.export_chrome_trace(str(unfinished))
    os.replace(unfinished, path)


def write_memory_snapshot(path: Path, record_history: bool = False) -> None:
    """The CUDA allocator's snapshot as torch pickles it, for torch's own viewer (pytorch.org/memory_viz).

    With `record_history` the allocator records where memory comes from from now on, for the next snapshot.
    Raises CannotError where CUDA is not in use, and OSError where the file cannot be written.
    """
    cuda: Any = getattr(sys.modules.get("torch"), "cuda", None)
    if cuda is None or not cuda.is_initialized():
        raise CannotError("this process has not initialised CUDA, so there is no allocator to ask")
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".unfinished.{path.name}")
    try:
        cuda.memory._dump_snapshot(str(unfinished))
        if record_history:
            cuda.memory._record_memory_history(max_entries=_HISTORY_ENTRIES)
    except (RuntimeError, AttributeError) as error:
        raise CannotError(f"torch could not take the snapshot: {error}") from error
    os.replace(unfinished, path)
