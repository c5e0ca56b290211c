"""On which line of a rank's signals does a fact stand?

Who folds a run reads ends of files and counts no lines. What a timeline tells are a few dozen facts of a few
ranks, whose files are gone through once more for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from train_ledger.facts import Event, Fact, Step
from train_ledger.run_dir import RunDir
from train_ledger.sources import SignalDecoder

__all__ = ["Key", "key_of", "places_of"]

Key = tuple[int, float, int, str]
"""Rank, time as written, attempt, and the name of an event or the number of a step."""

_MOST_BYTES = 512 << 20


def key_of(fact: Fact) -> Key | None:
    """What makes a fact the same when its file is read again; None for what stands in no signals."""
    if fact.rank is None or fact.t is None or not isinstance(fact, Step | Event):
        return None
    return fact.rank, fact.t, fact.attempt, str(fact.step) if isinstance(fact, Step) else fact.name


def places_of(run_dir: RunDir, wanted: Iterable[Key]) -> dict[Key, str]:
    """ "file:line" of each key, relative to the run directory; what is not found is left out."""
    by_rank: dict[int, set[Key]] = {}
    for key in wanted:
        by_rank.setdefault(key[0], set()).add(key)
    found: dict[Key, str] = {}
    for rank, path in run_dir.signal_files():
        if keys := by_rank.get(rank, set()) - found.keys():
            found.update(_in_file(path, rank, keys))
    return found


def _in_file(path: Path, rank: int, keys: set[Key]) -> Iterator[tuple[Key, str]]:
    words = sorted({key[3].encode() for key in keys})
    decoder = SignalDecoder()
    left = len(keys)
    for number, line in enumerate(_lines(path), 1):
        if not left:
            return
        if any(word in line for word in words) and (key := _key_in(decoder, line, rank)) in keys:
            left -= 1
            yield key, f"signals/{path.name}:{number}"


def _lines(path: Path) -> Iterator[bytes]:
    try:
        if path.stat().st_size <= _MOST_BYTES:
            with path.open("rb") as file:
                yield from file
    except OSError:
        return


def _key_in(decoder: SignalDecoder, line: bytes, rank: int) -> Key | None:
    fact = decoder.decode(line, rank=rank)
    return None if fact is None else key_of(fact)
