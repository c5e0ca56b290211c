"""How long does the training wait for its data, and are there batches ready when it asks?"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, TypeVar

from train_ledger.signals.timing.phases import OpenPhase

__all__ = ["Loader", "ready_batches"]

Batch = TypeVar("Batch")


class Loader(Generic[Batch]):
    """An iterable whose `next` is the phase data; whatever else is asked or set is asked of what it wraps.

    It says that it is an instance of what it wraps: frameworks that look for a DataLoader, to give each rank
    its share, find one.

    `look(depth)` is told how many batches were ready whenever one was asked for, where that shows.
    """

    def __init__(
        self, batches: Iterable[Batch], phase: Callable[[str], OpenPhase], look: Callable[[int], None]
    ) -> None:
        vars(self).update(_batches=batches, _phase=phase, _look=look)

    _batches: Iterable[Batch]
    _phase: Callable[[str], OpenPhase]
    _look: Callable[[int], None]

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        return type(self._batches)

    def __iter__(self) -> Iterator[Batch]:
        with self._phase("data"):  # workers are started here
            batches = iter(self._batches)
        return _Timed(batches, self._phase, self._look)

    def __len__(self) -> int:
        return len(self._batches)  # type: ignore[arg-type]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "_batches":  # as copy and pickle look for, before there is any
            raise AttributeError(name)
        return getattr(self._batches, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._batches, name, value)

    def __getitem__(self, index: Any) -> Any:
        return self._batches[index]  # type: ignore[index]

    def __bool__(self) -> bool:
        return bool(self._batches)


class _Timed(Iterator[Batch]):
    def __init__(
        self, batches: Iterator[Batch], phase: Callable[[str], OpenPhase], look: Callable[[int], None]
    ) -> None:
        self._batches = batches
        self._phase = phase
        self._look = look

    def __next__(self) -> Batch:
        depth = ready_batches(self._batches)
        if depth is not None:
            self._look(depth)
        with self._phase("data"):
            return next(self._batches)


def ready_batches(batches: object) -> int | None:
    """How many batches wait in the iterator of a torch DataLoader with workers; None where none shows.

    Those that came out of turn wait beside the queue, with their data in the table of tasks.
    """
    queue, tasks = getattr(batches, "_data_queue", None), getattr(batches, "_task_info", None)
    if queue is None or not isinstance(tasks, dict):
        return None
    try:
        return int(queue.qsize()) + sum(len(task) > 1 for task in list(tasks.values()))
    except (NotImplementedError, OSError, ValueError, TypeError, RuntimeError, AttributeError):
        return None  # a system whose queues do not count, a queue that is closed, another torch
