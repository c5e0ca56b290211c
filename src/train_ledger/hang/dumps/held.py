"""What does one dump hold of one process group?

The entries of a group are reduced to the highest number, what is pending, and the last few operations. A
coalesced operation is one operation; a batch of sends and receives has the state of its closing entry. Where
the numbers begin anew, a group of that name was made again, and what came before is over.
"""

from __future__ import annotations

from collections import Counter
from itertools import repeat
from operator import lt
from typing import Any

import msgspec

from train_ledger.hang.dumps.entry import (
    Op,
    backend_of,
    integer,
    is_done,
    is_p2p,
    is_pair,
    op_of,
    pair_of,
    seq_of,
)
from train_ledger.hang.dumps.understood import is_understood

__all__ = ["KEPT_LAST", "KEPT_P2P", "KEPT_PAIRS", "Held", "Key", "OddEntryError", "hold"]

KEPT_PENDING = 24
KEPT_LAST = 8
KEPT_P2P = 256
KEPT_PAIRS = 1024

Key = tuple[str, str, str]
"""(name, description, backend) of a group; the backend is told only where the group has several."""


class Held(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What one dump holds of one process group.

    `ops` are collectives in ascending order: all pending ones (bounded) and the last few done; `p2p` the
    pending sends and receives in the order of issue (the first `KEPT_P2P`), `p2p_done` the last few done.
    `posted` counts all of them, by "send 0->1", of the `KEPT_PAIRS` commonest. `exact` says that nothing
    older than the lowest pending operation can be pending unseen. `channel` is the backend where the group is
    served by several, each with numbers of its own.
    `by_id` says that the name is an id that counts in its own process alone.
    """

    name: str
    desc: str
    backend: str
    highest: int | None
    lowest_pending: int | None
    exact: bool
    ops: tuple[Op, ...]
    p2p: tuple[Op, ...] = ()
    p2p_done: tuple[Op, ...] = ()
    posted: dict[str, int] = {}
    channel: str = ""
    by_id: bool = False


class OddEntryError(Exception):
    """An entry that is to be kept is not understood."""


def hold(
    key: Key, entries: list[dict[Any, Any]], retired: frozenset[str], *, whole: bool, by_id: bool = False
) -> Held:
    """The entries of one group in short; `whole` says that no pending one can have been lost.

    Raises OddEntryError where one that is to be kept is not understood.
    """
    p2p = [entry for entry in entries if entry.get("is_p2p") is not False and is_p2p(entry)]
    collectives = [entry for entry in entries if not is_p2p(entry)] if p2p else entries
    merged = _merge_coalesced(collectives, retired)
    pending = [item for item in merged if not item[2]]
    lowest = pending[0][0] if pending else None
    kept = {item[0]: item for item in (*pending[:KEPT_PENDING], *merged[-KEPT_LAST:])}
    before = [item for item in merged[-KEPT_LAST - len(pending) :] if item[2]]
    kept.update({item[0]: item for item in before[-KEPT_LAST:]})
    highest = merged[-1][0] if merged else None
    framed = {lowest, highest}
    _sure([item[1] for item in kept.values()])
    ops = tuple(
        op_of(item[1], retired, frames=seq in framed, done=item[2], parts=item[3])
        for seq, item in sorted(kept.items())
    )
    waiting, over, posted = _p2p(p2p, retired) if p2p else ((), (), {})
    return Held(
        name=key[0],
        desc=key[1],
        backend=backend_of(entries[-1]),
        highest=highest,
        lowest_pending=lowest,
        exact=whole or lowest is None or any(item[2] and item[0] < lowest for item in merged),
        ops=ops,
        p2p=waiting,
        p2p_done=over,
        posted=posted,
        channel=key[2],
        by_id=by_id,
    )


_Merged = tuple[int, dict[Any, Any], bool, int]


def _sure(entries: list[dict[Any, Any]]) -> None:
    if not all(map(is_understood, entries)):
        raise OddEntryError


def _merge_coalesced(entries: list[dict[Any, Any]], retired: frozenset[str]) -> list[_Merged]:
    """(seq, entry, done, parts) ascending; the last entry of a coalesced operation closes it."""
    numbers: list[Any] = [entry.get("collective_seq_id") for entry in entries]
    if {*map(type, numbers)} == {int} and all(map(lt, numbers, numbers[1:])):  # the usual: each once
        done = [entry.get("state") == "completed" or is_done(entry, retired) for entry in entries]
        return list(zip(numbers, entries, done, repeat(1)))
    return _merged_one_by_one(entries, retired)


def _merged_one_by_one(entries: list[dict[Any, Any]], retired: frozenset[str]) -> list[_Merged]:
    merged: dict[int, _Merged] = {}
    before = first = -1
    for entry in entries:
        seq = entry.get("collective_seq_id")
        if type(seq) is not int and (seq := seq_of(entry)) is None:
            continue
        if seq < before and seq <= first:
            merged.clear()
        if not merged:
            first = seq
        before = seq
        done = entry.get("state") == "completed" or is_done(entry, retired)
        earlier = merged.get(seq)
        merged[seq] = (seq, entry, done, earlier[3] + 1 if earlier else 1)
    return [merged[seq] for seq in sorted(merged)]


_P2P = tuple[tuple[Op, ...], tuple[Op, ...], dict[str, int]]


def _p2p(entries: list[dict[Any, Any]], retired: frozenset[str]) -> _P2P:
    """(pending, the last done, counts of all); members of a batch take the state of its closing entry."""
    closed: dict[int, bool] = {}
    pairs = []
    for entry in entries:
        if is_pair(entry):
            pairs.append(entry)
        else:
            closed[integer(entry.get("p2p_seq_id")) or 0] = is_done(entry, retired)
    pending: list[dict[Any, Any]] = []
    over: list[dict[Any, Any]] = []
    for entry in pairs:
        done = is_done(entry, retired) or closed.get(integer(entry.get("p2p_seq_id")) or 0, False)
        (over if done else pending).append(entry)
    counts = Counter(pair_of(entry) for entry in pairs)
    waiting, last = pending[:KEPT_P2P], over[-KEPT_LAST:]
    _sure([*waiting, *last])
    return (
        tuple(op_of(entry, retired, frames=not n, done=False) for n, entry in enumerate(waiting)),
        tuple(op_of(entry, retired, done=True) for entry in last),
        dict(counts.most_common(KEPT_PAIRS)),
    )
