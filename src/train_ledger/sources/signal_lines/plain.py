"""Which signal lines in a row say no more than that a rank completed its steps?

Almost all lines are such: a number for each known field, one step after the other. They are decoded in C
into a struct that takes nothing else, and need not be looked at one by one. Whatever the struct refuses –
an event, a word for a number that is none, a bad line – is left to `SignalDecoder`, which counts it; what the
struct takes is what that decoder takes without counting anything.
"""

from __future__ import annotations

from collections.abc import Iterator, Set
from itertools import islice, pairwise
from operator import lt
from typing import Annotated, NamedTuple

import msgspec
from msgspec import Meta

from train_ledger.fields import FIELDS, LARGEST_ATTEMPT, LARGEST_WORLD_SIZE
from train_ledger.sources.signal_lines.jsonl import LARGEST_STEP, LATEST_T

__all__ = ["PlainLine", "Run", "runs"]

_AT_ONCE = 512
"""Lines that are decoded in one go: a third of a millisecond, for which other threads wait."""

_FEWEST = 4
"""Fewer steps in a row gain nothing: the first and the last of a row are looked at anyway."""

_Never = Annotated[int, Meta(ge=1, le=0)]


class PlainLine(msgspec.Struct, gc=False):
    """A line without anything odd; `facts.PlainStep` with the rank that it tells, if it tells one."""

    t: Annotated[float, Meta(gt=-LATEST_T, lt=LATEST_T)]
    step: Annotated[int, Meta(ge=0, le=LARGEST_STEP)]
    rank: Annotated[int, Meta(ge=0, lt=LARGEST_WORLD_SIZE)] | None = None
    attempt: Annotated[int, Meta(ge=0, le=LARGEST_ATTEMPT)] = 0
    event: _Never = 0
    loss: float | None = None
    step_time_s: float | None = None
    ckpt_s: float | None = None
    data_wait_s: float | None = None
    compute_s: float | None = None
    grad_norm: float | None = None
    mfu: float | None = None
    mfu_baseline: float | None = None
    mem_inactive_split: float | None = None
    num_alloc_retries: float | None = None


_WholeLine: type[PlainLine] = msgspec.defstruct(  # type: ignore[assignment]  # a PlainLine, by its bases
    "WholeLine",
    [(name, float | None, None) for name in FIELDS if name not in PlainLine.__struct_fields__],
    bases=(PlainLine,),
    gc=False,
)
_decode = msgspec.json.Decoder(_WholeLine).decode


class Run(NamedTuple):
    """Lines in a row, the first of them at `place` in its block: plain steps, or lines of any other kind."""

    place: int
    lines: list[bytes]
    plain: list[PlainLine] | None


def runs(data: bytes, rank: int) -> Iterator[Run]:
    """All lines of a block of `rank`'s file, in order; plain steps in a row are of one attempt and rise."""
    ranks = frozenset((rank, None) if rank < LARGEST_WORLD_SIZE else ())
    lines = data.split(b"\n")
    if len(lines) < _FEWEST:
        yield Run(0, lines, None)
        return
    odd = _odd(data, lines)
    decoded = map(_decode, lines)
    for place in range(0, len(lines), _AT_ONCE):
        here = lines[place : place + _AT_ONCE]
        found = _found(decoded, len(here))
        if odd:
            found = [None if index in odd else line for index, line in enumerate(found, place)]
        plain = [line for line in found if line is not None]
        if len(plain) == len(found) >= _FEWEST and _is_one_row(plain, ranks):
            yield Run(place, here, plain)
        else:
            yield from _split(Run(place, here, None), found, ranks)


def _odd(data: bytes, lines: list[bytes]) -> set[int]:
    """Lines with escapes or with bytes that are no text, which the struct does not see in unknown fields."""
    if data.isascii() and b"\\" not in data:
        return set()
    return {index for index, line in enumerate(lines) if b"\\" in line or not _is_text(line)}


def _is_text(line: bytes) -> bool:
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True


def _found(decoded: Iterator[PlainLine], count: int) -> list[PlainLine | None]:
    """The next `count` lines; None for those that are not plain."""
    found: list[PlainLine | None] = []
    while len(found) < count:
        try:
            found.extend(islice(decoded, count - len(found)))
        except (msgspec.DecodeError, RecursionError):
            found.append(None)
    return found


def _is_one_row(plain: list[PlainLine], ranks: Set[int | None]) -> bool:
    steps = [line.step for line in plain]
    return (
        {line.rank for line in plain} <= ranks
        and len({line.attempt for line in plain}) == 1
        and all(map(lt, steps, islice(steps, 1, None)))
    )


def _split(whole: Run, found: list[PlainLine | None], ranks: Set[int | None]) -> Iterator[Run]:
    """Rows of plain steps, and what stands between them."""
    own = [line if line is not None and line.rank in ranks else None for line in found]
    start = 0
    for end in (*_breaks(own), len(own)):
        row = [line for line in own[start:end] if line is not None]
        is_plain = len(row) == end - start >= _FEWEST
        yield Run(whole.place + start, whole.lines[start:end], row if is_plain else None)
        start = end


def _breaks(own: list[PlainLine | None]) -> Iterator[int]:
    """The places of lines that do not go on with the row of the line before."""
    for place, (before, line) in enumerate(pairwise(own), start=1):
        if line is None or before is None:
            if line is not before:
                yield place
        elif line.attempt != before.attempt or line.step <= before.step:
            yield place
