"""Where does each rank stand in its code?

Stacks are taken by py-spy, read from files, and ranks with equal stacks are merged: in a hang most ranks wait
in the same collective, and the few that stand elsewhere are the ones to look at.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from train_ledger.hang.frames import Frame, user_frame
from train_ledger.hang.py_spy import take
from train_ledger.hang.stack_files import RankStack, Thread, read

__all__ = [
    "Frame",
    "RankStack",
    "StackGroup",
    "Stand",
    "Thread",
    "Where",
    "frame_of",
    "main_thread",
    "merge",
    "read",
    "stand_of",
    "take",
    "user_frame",
]

Where = Literal["collective", "host", "set_up", "unknown"]


@dataclass(frozen=True, slots=True)
class StackGroup:
    """Ranks whose main threads stand at the same place; `frames` as "file:line function", innermost first."""

    ranks: tuple[int, ...]
    frames: tuple[str, ...]
    thread: str = "MainThread"


@dataclass(frozen=True, slots=True)
class Stand:
    """Where a rank stands: in which kind of place, in words, and at which frame of the user's code."""

    where: Where
    what: str
    frame: Frame | None


def main_thread(stack: RankStack) -> Thread | None:
    """The thread that trains; the one with the most frames where none is marked."""
    marked = next((thread for thread in stack.threads if thread.is_main), None)
    return marked or max(stack.threads, key=lambda thread: len(thread.frames), default=None)


def frame_of(stack: RankStack) -> str | None:
    """The user's own frame, as "train.py:88 _check_batch"; else the innermost of all."""
    thread = main_thread(stack)
    if thread is None or not thread.frames:
        return None
    return str(user_frame(thread.frames) or thread.frames[0])


def merge(stacks: Mapping[int, RankStack] | Iterable[RankStack]) -> list[StackGroup]:
    """Equal stacks once, the smallest groups first: the odd ones out lead the list."""
    by_frames: dict[tuple[Frame, ...], list[int]] = {}
    for stack in stacks.values() if isinstance(stacks, Mapping) else stacks:
        thread = main_thread(stack)
        by_frames.setdefault(thread.frames if thread else (), []).append(stack.rank)
    groups = [
        StackGroup(tuple(sorted(ranks)), tuple(_full(frame) for frame in frames))
        for frames, ranks in by_frames.items()
    ]
    return sorted(groups, key=lambda group: (len(group.ranks), group.ranks))


def _full(frame: Frame) -> str:
    return f"{frame.file}:{frame.line} {frame.function}"


_SET_UP = (
    ("init_process_group", "sets up its process group"),
    ("_new_process_group_helper", "sets up a process group"),
    ("new_group", "sets up a process group"),
    ("init_device_mesh", "sets up its device mesh"),
    ("rendezvous", "waits at the rendezvous"),
    ("ncclCommInitRank", "sets up an NCCL communicator"),
    ("ncclCommInitRankConfig", "sets up an NCCL communicator"),
)
_LOADER_FILES = ("torch/utils/data/", "/dataloader.py", "webdataset/", "streaming/base/")
_LOADER_NAMES = re.compile(
    r"_?(?:try_get|get|next|load|fetch|read|wait_for)_(?:next_)?(?:data|batch|batches|sample|samples)"
)
_CHECKPOINT_FILES = ("torch/distributed/checkpoint/", "torch/serialization.py")
_CHECKPOINT_NAMES = frozenset({"save_checkpoint", "load_checkpoint", "async_save", "fsync"})
_NATIVE = {
    "clock_nanosleep": "sleeps",
    "time_sleep": "sleeps",
    "_local_scalar_dense": "waits for its GPU, in .item() or the like",
    "cudaStreamSynchronize": "waits for its GPU",
    "cudaDeviceSynchronize": "waits for its GPU",
    "cudaEventSynchronize": "waits for its GPU",
}
"""C functions, as stacks taken with `--native` show them."""


def stand_of(stack: RankStack) -> Stand:
    """In a collective, in host code, in the set-up of communication, or not to be told.

    Read off the main thread. C code does not show unless the stack was taken with `--native`, so a rank whose
    innermost Python frame is its own code is in host code: running it, asleep, or in a call like `.item()`.
    """
    thread = main_thread(stack)
    if thread is None or not thread.frames:
        return Stand("unknown", "no Python frame", None)
    where, what = _classify(thread.frames)
    if thread.holds_gil and where == "host":
        what = f"{what}, and holds the interpreter's lock"
    return Stand(where, what, user_frame(thread.frames) or thread.frames[0])


def _classify(frames: Sequence[Frame]) -> tuple[Where, str]:
    names = {frame.name for frame in frames}
    for name, what in _SET_UP:
        if name in names:
            return "set_up", what
    if any(_in_collective(frame) for frame in frames[:12]):
        return "collective", "waits in a collective"
    if any(_is_loader(frame) for frame in frames[:24]):
        return "host", "waits for its data loader"
    if names & _CHECKPOINT_NAMES or any(part in it.file for it in frames for part in _CHECKPOINT_FILES):
        return "host", "reads or writes a checkpoint"
    for name, what in _NATIVE.items():
        if any(name in frame.function for frame in frames):
            return "host", what
    return _innermost([frame for frame in frames if not frame.is_native] or frames)


def _in_collective(frame: Frame) -> bool:
    return "torch/distributed/distributed_c10d" in frame.file or frame.function.startswith(
        ("ncclAllReduce", "gloo::", "c10d::", "ncclGroupEnd")
    )


def _is_loader(frame: Frame) -> bool:
    in_file = any(part in frame.file for part in _LOADER_FILES)
    return in_file or _LOADER_NAMES.fullmatch(frame.name) is not None


def _innermost(frames: Sequence[Frame]) -> tuple[Where, str]:
    first = frames[0]
    if "logging/" in first.file:
        return "host", "writes a log line"
    if first.file.endswith(("threading.py", "queue.py", "multiprocessing/connection.py", "selectors.py")):
        return "host", "waits for a lock or a thread"
    if first.is_torch:
        inside = "runs the backward pass" if "autograd" in first.file else "runs torch code"
        return "unknown", f"{inside}; whether that waits in a collective does not show"
    if first.is_interpreter:
        return "host", f"stands in {first.function}() of Python's library"
    return "host", "stands in its own code"
