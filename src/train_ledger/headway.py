"""How far is long work, and who is told?

Rooms that read or judge for long say how far they are; whoever has somebody waiting listens. Where nobody
listens a call costs less than a microsecond, and threads and processes that were begun elsewhere are not
heard: one voice alone tells of one work.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sized
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias, TypeVar

__all__ = ["Headway", "Listener", "Unit", "counted", "heard_by", "is_heard", "tell"]

Unit: TypeAlias = Literal["bytes", "files", "ranks", "runs", "seconds"]


@dataclass(frozen=True, slots=True)
class Headway:
    """`done` of `total` (None: not known) has been done of what `what` names, in `unit`."""

    what: str
    done: float
    total: float | None
    unit: Unit

    @property
    def is_over(self) -> bool:
        return self.total is not None and self.done >= self.total


Listener: TypeAlias = Callable[[Headway], None]

_listener: ContextVar[Listener | None] = ContextVar("listener", default=None)

_Of = TypeVar("_Of")
_Of_co = TypeVar("_Of_co", covariant=True)


class _Countable(Iterable[_Of_co], Sized, Protocol[_Of_co]):
    pass


@contextmanager
def heard_by(listener: Listener) -> Iterator[None]:
    """`listener` is told, in this thread, for as long as the context lasts; it must be quick."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


def is_heard() -> bool:
    """Whether somebody listens, where it costs something to know how far the work is."""
    return _listener.get() is not None


def tell(what: str, done: float, total: float | None, unit: Unit) -> None:
    """Say how far it is, once a file or megabyte; what has come to its end is told with `done` = `total`."""
    listener = _listener.get()
    if listener is not None:
        listener(Headway(what, done, total, unit))


def counted(items: _Countable[_Of], what: str, unit: Unit) -> Iterator[_Of]:
    """The items one after the other, and after each is told how many were done."""
    total = len(items)
    for done, item in enumerate(items, start=1):
        yield item
        tell(what, done, total, unit)
