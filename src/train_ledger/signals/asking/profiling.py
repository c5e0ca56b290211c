"""How does somebody outside get a profile of a few steps, or the state of the allocator, of a living rank?

Nothing of this costs anything until it is asked for. The profiler is started and stopped by the training
thread, at the ends of steps, since it profiles the thread that starts it; stopping it makes that thread wait
while it gathers its events. The file is then written by another thread.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from train_ledger.signals.asking.cannot import CannotError
from train_ledger.signals.asking.nsys import nsys_recording
from train_ledger.signals.harmless.values import whole

__all__ = ["Profiling", "write_memory_snapshot"]

_STEPS = 3
_MOST_STEPS = 100
_MOST_S = 600.0
_LARGEST_BYTES = 1 << 30
_LEAST_FREE_BYTES = 1 << 28
_HISTORY_ENTRIES = 100_000


Told = Callable[[Mapping[str, Any]], None]


class Recording(Protocol):
    """What records steps: torch's profiler, or nsys around this process."""

    def begin(self, first_step: int | None) -> None:
        """From now on, of the step `first_step`; raises RuntimeError or AssertionError where it refuses."""

    def next(self) -> None:
        """A step has ended, and another one is to be recorded."""

    def end(self) -> Callable[[], Path]:
        """That was the last one; what is returned writes the file, on another thread."""

    def drop(self) -> None:
        """What was recorded is not wanted."""


@dataclass(slots=True)
class _Wanted:
    """`first_step` is the first step to be recorded, None for the next one there is."""

    steps: int
    first_step: int | None
    until: float
    recording: Recording
    told: Told
    left: int = 0


class Profiling:
    """One profile at a time; `send` has the file written by another thread."""

    def __init__(self) -> None:
        self.send: Callable[[Callable[[], None]], None] = lambda errand: errand()
        self._wanted: _Wanted | None = None
        self._begun = False
        self._writing = False

    def ask(
        self, steps: object, path: Path, told: Told, *, first_step: object = None, by_nsys: bool = False
    ) -> None:
        """Profile the next `steps` (3 where it is None) into `path`; `told` is called with the answer.

        With `first_step` those from that one on, so that ranks record the same ones; `by_nsys` has the nsys
        that this process runs under do it. What takes longer than ten minutes ends with the steps it has.
        Raises CannotError where a profile is being made already, torch is not there, or no room for a file.
        """
        number = _STEPS if steps is None else whole(steps)
        if number is None or not 0 < number <= _MOST_STEPS:
            raise CannotError(f"steps must be a whole number from 1 to {_MOST_STEPS}")
        if self._wanted is not None or self._writing:
            raise CannotError("a profile is being made already")
        recording = nsys_recording() if by_nsys else _Profiler(path)
        until = time.monotonic() + _MOST_S
        self._wanted = _Wanted(number, whole(first_step), until, recording, told)

    def step(self, ended: int | None = None) -> None:
        """A step has ended, and which; on the training thread."""
        if self._wanted is None:
            return
        wanted = self._wanted
        late = time.monotonic() > wanted.until
        try:
            if not self._begun:
                self._begin_in_time(wanted, ended, late)
                return
            wanted.left -= 1
            if wanted.left and not late:
                wanted.recording.next()
            else:
                self._end(wanted)
        except (RuntimeError, AssertionError) as error:  # another profiler runs, in this script or around it
            self._give_up(f"torch's profiler refused: {error}")

    def close(self) -> None:
        """The training ends: what is not finished is given up."""
        if self._wanted is not None:
            if self._begun:
                with contextlib.suppress(RuntimeError, AssertionError):
                    self._wanted.recording.drop()
            self._give_up("the training ended before its steps were profiled")

    def _begin_in_time(self, wanted: _Wanted, ended: int | None, late: bool) -> None:
        first = wanted.first_step
        if late:
            self._give_up(f"step {first} did not come in {_MOST_S:.0f} s")
        elif first is not None and ended is not None and ended + 1 < first:
            return
        elif _somebody_profiles():
            self._give_up("the training profiles itself just now")
        else:
            wanted.recording.begin(None if ended is None else ended + 1)
            self._begun, wanted.left = True, wanted.steps

    def _end(self, wanted: _Wanted) -> None:
        self._wanted, self._begun = None, False
        write_file = wanted.recording.end()
        steps = wanted.steps - wanted.left
        self._writing = True

        def write() -> None:
            try:
                wanted.told({"ok": True, "path": str(write_file()), "steps": steps})
            except (OSError, RuntimeError) as error:
                wanted.told({"ok": False, "error": str(error)})
            self._writing = False

        self.send(write)

    def _give_up(self, why: str) -> None:
        wanted, self._wanted, self._begun = self._wanted, None, False
        if wanted is not None:
            told = wanted.told
            self.send(lambda: told({"ok": False, "error": why}))


class _Profiler:
    """torch's own profiler, of this thread and its GPU."""

    def __init__(self, path: Path) -> None:
        if "torch.profiler" not in sys.modules:
            raise CannotError("this process has not imported torch")
        if (free := _free_bytes(path.parent)) < _LEAST_FREE_BYTES:
            raise CannotError(f"{path.parent}: only {free >> 20} MiB are free, a trace may need more")
        self._path = path
        self._profile: Any = None

    def begin(self, first_step: int | None) -> None:
        profiler, torch = sys.modules["torch.profiler"], sys.modules["torch"]
        activities = [profiler.ProfilerActivity.CPU]
        if torch.cuda.is_initialized():
            activities.append(profiler.ProfilerActivity.CUDA)
        profile = profiler.profile(
            activities=activities,
            record_shapes=True,
            schedule=lambda step: profiler.ProfilerAction.RECORD,  # only with one are the steps marked
        )
        if first_step is not None:
            profile.step_num = first_step  # ranks that began at different steps can be told apart by it
        profile.start()
        self._profile = profile

    def next(self) -> None:
        self._profile.step()

    def end(self) -> Callable[[], Path]:
        self.drop()
        return self._write

    def drop(self) -> None:
        self._profile.stop()

    def _write(self) -> Path:
        try:
            _export(self._profile, self._path)
        except (OSError, RuntimeError) as error:
            raise OSError(f"{self._path}: {error}") from error
        return self._path


def _free_bytes(folder: Path) -> int:
    """What the file system of a folder, that may not be there yet, has left."""
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    found = os.statvfs(folder)
    return found.f_bavail * found.f_frsize


def _somebody_profiles() -> bool:
    """A second profiler on a thread ends the first, and says nothing."""
    enabled = getattr(sys.modules.get("torch.autograd"), "_profiler_enabled", None)
    return enabled is not None and bool(enabled())


def _export(profile: Any, path: Path) -> None:
    """As a whole: a reader sees no half of it. torch packs what is called .gz."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".unfinished.{path.name}")
    try:
        profile.export_chrome_trace(str(unfinished))
        if (size := unfinished.stat().st_size) > _LARGEST_BYTES:
            raise OSError(
                f"the trace takes {size >> 20} MiB, more than {_LARGEST_BYTES >> 20}: ask for fewer"
            )
        os.replace(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)


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
