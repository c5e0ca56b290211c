"""How does a living rank leave what it knows of its collectives, and where it stands, without being ended?

The Flight Recorder is read through torch's own binding, NCCL's where there is one, and written by a temporary
file and rename: first without stacks, which is quick, then once more with them – turning addresses into lines
takes seconds the first time in a process, and a hung job is no time to wait. The stacks are faulthandler's,
taken into memory first, since it holds the interpreter lock while it writes.
"""

from __future__ import annotations

import faulthandler
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from train_ledger.run_dir import write_atomically

__all__ = ["NoRecorderError", "Warmth", "recorded", "write_dump", "write_stacks"]


class NoRecorderError(Exception):
    """This process has no Flight Recorder to ask; the text says why."""


def recorded(with_stacks: bool) -> bytes:
    """The Flight Recorder's pickle of this process.

    Raises NoRecorderError where torch.distributed was never imported or offers none.
    """
    binding = _binding()
    dumps = [
        dump for name in ("_dump_nccl_trace", "_dump_fr_trace") if (dump := getattr(binding, name, None))
    ]
    if not dumps:
        raise NoRecorderError("this build of torch has no Flight Recorder")
    try:
        found = [bytes(dump(True, with_stacks, False)) for dump in dumps]
    except RuntimeError as error:
        raise NoRecorderError(f"torch could not dump its Flight Recorder: {error}") from error
    # A CUDA build keeps NCCL's recorder and the general one (gloo) apart: the one that was used is meant.
    return next((trace for trace in found if _has_entries(trace)), found[0])


class Warmth:
    """Whether a dump with stacks is quick: turning addresses into lines takes seconds the first time."""

    def __init__(self) -> None:
        self.warm = False
        self.at_work = False
        """In the midst of torch, which takes seconds on a machine that is busy."""

    def see_to(self) -> None:
        """Take one dump with stacks once a collective has been recorded, while the ring is still small."""
        if self.warm:
            return
        self.at_work = True
        try:
            if _has_entries(recorded(with_stacks=False)):
                recorded(with_stacks=True)
                self.warm = True
        except NoRecorderError:
            return  # torch.distributed may yet be imported
        finally:
            self.at_work = False


def _has_entries(trace: bytes) -> bool:
    return b"profiling_name" in trace


def write_dump(path: Path, with_stacks: bool) -> Path:
    """Write this process's dump to `path` as a whole.

    Raises NoRecorderError where there is none, and OSError where it cannot be written.
    """
    write_atomically(path, recorded(with_stacks))
    return path


def _stacks() -> bytes:
    """The Python stacks of all threads, in faulthandler's form."""
    with _memory_file() as file:
        faulthandler.dump_traceback(file=file, all_threads=True)
        file.seek(0)
        return bytes(file.read())


def write_stacks(path: Path) -> Path:
    """Write the stacks of this process to `path` as a whole; raises OSError where it cannot be written."""
    write_atomically(path, _stacks())
    return path


def _memory_file() -> Any:
    create: Callable[[str], int] | None = getattr(os, "memfd_create", None)
    if create is None:
        return tempfile.TemporaryFile()
    return os.fdopen(create("train-ledger-stacks"), "w+b")


def _binding() -> Any:
    binding = sys.modules.get("torch._C._distributed_c10d")
    if binding is None:
        raise NoRecorderError("this process has not imported torch.distributed")
    return binding
