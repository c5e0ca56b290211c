"""Where in its code does a rank stand?

Read from the innermost call outwards: the first frame whose place is known says it. A lock, a sleep, a wait
for the GPU only say how it waits; what for shows further out. C code does not show unless the stack was taken
with `--native`, so a rank whose innermost Python frame is its own code is in host code: running it, asleep,
or in a call like `.item()`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from train_ledger.hang.stacks.frames import Frame, user_frame
from train_ledger.hang.stacks.places import Kind, Place, Where, place_of
from train_ledger.hang.stacks.stack_files import RankStack, Thread

__all__ = ["Kind", "Stand", "Where", "frame_of", "main_thread", "stand_of"]


@dataclass(frozen=True, slots=True)
class Stand:
    """Where a rank stands: in which kind of place, in words, and at which frame of the user's code.

    `where` is the coarse answer that verdicts rest on, `kind` the fine one. `waits_for_others`: by this stack
    the rank may as well be a victim – in a collective, in set-up, or at a GPU with a collective in its queue.
    """

    where: Where
    what: str
    frame: Frame | None
    kind: Kind = "none"

    @property
    def waits_for_others(self) -> bool:
        return self.where in ("collective", "set_up") or self.kind in ("gpu", "backward")


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


def stand_of(stack: RankStack) -> Stand:
    """In a collective, in host code, in the set-up of communication, or not to be told.

    Read off the main thread; off the backward pass's own thread where the main thread waits for that.
    """
    thread = main_thread(stack)
    if thread is None or not thread.frames:
        return Stand("unknown", "no Python frame", None)
    place = _place(thread.frames)
    if place.kind == "backward":
        for other in stack.threads:
            if _is_engine(other) and (inside := _place(other.frames)).kind not in ("own", "torch", "library"):
                thread, place = other, inside
                break
    what = place.what
    if thread.holds_gil and place.where == "host":
        what = f"{what}, and holds the interpreter's lock"
    return Stand(place.where, what, user_frame(thread.frames) or thread.frames[0], place.kind)


def _is_engine(thread: Thread) -> bool:
    """A thread that autograd started: C++ made it, so Python's start of a thread is not below its frames."""
    return bool(thread.frames) and not thread.is_main and thread.frames[-1].name != "_bootstrap"


def _place(frames: Sequence[Frame]) -> Place:
    weak: Place | None = None
    for index, frame in enumerate(frames):
        place = place_of(frame)
        if place is None:
            continue
        if place.kind in ("collective", "store"):
            return _what_for(frames[index:]) or place
        if not place.weak:
            return place
        if weak is None and _is_innermost(frames[:index]):
            weak = place
    return weak or _innermost([it for it in frames if not it.is_native and not it.is_monitor])


def _what_for(frames: Sequence[Frame]) -> Place | None:
    """Collectives are part of making and ending process groups, where they mean another thing."""
    places = (place_of(frame) for frame in frames)
    return next((it for it in places if it and it.kind in ("set_up", "tear_down")), None)


def _is_innermost(inside: Sequence[Frame]) -> bool:
    """A lock far out, as where a thread was started, is none that is waited for."""
    return all(it.is_interpreter or it.is_torch or it.is_installed or it.is_monitor for it in inside)


def _innermost(frames: Sequence[Frame]) -> Place:
    if not frames:
        return Place("none", "unknown", "shows frames of C alone, none of which says what it waits for")
    first = frames[0]
    if first.is_torch:
        return Place("torch", "unknown", "runs torch code; whether that waits in a collective does not show")
    if first.is_interpreter:
        return Place("library", "host", f"stands in {first.function}() of Python's library")
    return Place("own", "host", "stands in its own code")
