"""Where did Megatron's time go within an iteration?

Its timers come as one line, `time (ms) | forward-compute: 1.0 | …` (2021), or as a block (2022 on):

    (min, max) time across ranks (ms):
        forward-compute ................................: (1.00, 2.00)

A step is as long as its slowest rank, so the maximum goes under the field's name and the minimum under
that name with `min`. Both are per iteration and belong to the line of the iteration before them. 0.00 is
what a timer says that never ran.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from train_ledger.sources.formats.own_name import own_name
from train_ledger.sources.formats.pairs import pairs_in, with_unit

__all__ = ["FIELDS_OF_TIMERS", "Timed", "TimerBlock", "is_deepspeed", "timers_in"]

_FIELDS = {
    "forward_compute": "fwd",
    "forward": "fwd",
    "backward_compute": "bwd",
    "backward": "bwd",
    "optimizer": "opt",
    "batch_generator": "data_wait",
    "save_checkpoint": "ckpt",
}
FIELDS_OF_TIMERS = frozenset(f"{it}_s" for it in _FIELDS.values())

_SET_UP = ("setup", "iterators", "load_checkpoint", "model_and_optimizer")
_LINE = re.compile(r"\btime \(ms\) {0,2}\|(.*)", re.DOTALL)
_HEAD = re.compile(r"(?:\((min), max\) time|max (time)|(times)) across ranks \(ms\):")
_NUMBER = r"(\d{1,12}(?:\.\d{1,9})?)"
_ROW = re.compile(
    r"\s{0,8}(?:\d{1,6}:\s{1,8})?([A-Za-z][\w/ -]{0,80}?) ?\.{0,60}:(?: "
    rf"\({_NUMBER}, {_NUMBER}\)| {_NUMBER})?\s{{0,4}}\Z"
)
_RANK_ROW = re.compile(rf"\s{{0,8}}(?:\d{{1,6}}:\s{{1,8}})?rank {{0,8}}(\d{{1,7}}): {_NUMBER}\s{{0,4}}\Z")
_MOST_FOREIGN = 20
"""So many lines of others may stand within a block before it counts as ended."""


@dataclass(frozen=True, slots=True)
class Timed:
    """What one row says. `set_up` says that it is of the start, before the first iteration.

    `rank` is the global rank where the row is of one rank alone.
    """

    name: str
    values: dict[str, float]
    set_up: bool = False
    rank: int | None = None


def _timed(name: str, most: float, least: float | None = None, rank: int | None = None) -> Timed:
    own = own_name(name)
    stem = _FIELDS.get(own, own)
    values = {f"{stem}_s": most / 1e3} if most > 0 else {}
    if least is not None and least > 0:
        values[f"{stem}_min_s"] = least / 1e3
    return Timed(own, values, any(it in own for it in _SET_UP), rank)


def is_deepspeed(names: list[str]) -> bool:
    """Whether timers of these names are DeepSpeed's own, which writes lines of the same shape.

    >>> is_deepspeed(["fwd_microstep", "step_microstep"]), is_deepspeed(["forward", "optimizer"])
    (True, False)
    """
    return any("_" in it or it in ("fwd", "bwd", "step") for it in names)


def timers_in(text: str) -> list[Timed]:
    """The timers of a line `time (ms) | …` of Megatron's."""
    match = _LINE.search(text)
    found = list(pairs_in(match[1].split("|"))) if match else []
    if is_deepspeed([name for name, _ in found]):
        return []
    return [_timed(name, number) for name, it in found if (number := with_unit(it)) is not None]


class TimerBlock:
    """A block of rows under its head; `is_open` while further rows may come."""

    def __init__(self) -> None:
        self._foreign = _MOST_FOREIGN
        self._of_all_ranks: str | None = None

    @property
    def is_open(self) -> bool:
        return self._foreign < _MOST_FOREIGN

    def begins(self, text: str) -> bool:
        """Whether `text` is a block's head, which opens it."""
        if _HEAD.search(text) is None:
            return False
        self._foreign = 0
        self._of_all_ranks = None
        return True

    def row(self, text: str) -> Iterator[Timed]:
        """What the line says as the next row of an open block."""
        of_rank = _RANK_ROW.match(text)
        if of_rank is not None and self._of_all_ranks is not None:
            yield _timed(self._of_all_ranks, float(of_rank[2]), rank=int(of_rank[1]))
            return
        row = _ROW.match(text)
        if row is None:
            self._foreign += 1
        elif row[2] is not None:
            yield _timed(row[1], float(row[3]), float(row[2]))
        elif row[4] is not None:
            yield _timed(row[1], float(row[4]))
        else:
            self._of_all_ranks = row[1]
