"""Which ranks stand at the same place?"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from train_ledger.hang.stacks.frames import Frame
from train_ledger.hang.stacks.stack_files import RankStack
from train_ledger.hang.stacks.stands import main_thread

__all__ = ["StackGroup", "merge"]


@dataclass(frozen=True, slots=True)
class StackGroup:
    """Ranks whose main threads stand at the same place; `frames` as "file:line function", innermost first."""

    ranks: tuple[int, ...]
    frames: tuple[str, ...]
    thread: str = "MainThread"


def merge(stacks: Mapping[int, RankStack] | Iterable[RankStack]) -> list[StackGroup]:
    """Equal stacks once, the smallest groups first: the odd ones out lead the list."""
    taken = [*(stacks.values() if isinstance(stacks, Mapping) else stacks)]
    texts: dict[int, str] = {}
    by_frames: dict[tuple[str, ...], list[int]] = {}
    for stack in taken:
        thread = main_thread(stack)
        frames = _texts_of(thread.frames, texts) if thread else ()
        by_frames.setdefault(frames, []).append(stack.rank)
    groups = [StackGroup(tuple(sorted(ranks)), frames) for frames, ranks in by_frames.items()]
    return sorted(groups, key=lambda group: (len(group.ranks), group.ranks))


def _texts_of(frames: tuple[Frame, ...], texts: dict[int, str]) -> tuple[str, ...]:
    """Each frame as text, which is made once: half a million of them are looked up by identity."""
    found = tuple(map(texts.get, map(id, frames)))
    if None in found:
        for frame in frames:
            if id(frame) not in texts:
                texts[id(frame)] = sys.intern(f"{frame.file}:{frame.line} {frame.function}")
        found = tuple(map(texts.get, map(id, frames)))
    return found  # type: ignore[return-value]
