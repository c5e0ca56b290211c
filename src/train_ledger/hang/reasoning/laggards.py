"""Whom does each waiting rank wait for?

In a group, a rank waits at its lowest pending sequence number for every member that has not issued it (the
host of that member stopped), and for every member that still hangs in an earlier operation which the waiter
itself has finished (the GPU of that member stopped while its host ran ahead). Who still hangs in what needs
all members, when others have finished it, waits for nobody.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial

from train_ledger.hang.dumps.entry import Op
from train_ledger.hang.reasoning.groups import GroupView
from train_ledger.hang.reasoning.mismatch import Mismatch

__all__ = ["ROOTED", "Wait", "began", "collective_waits", "first_of"]

_STEPS_LOOKED_AT = 64


@dataclass(frozen=True, slots=True)
class Wait:
    """`waiters` wait at `seq` for `late` (never came), `stuck` (came, do not finish) and `odd` (mismatch).

    `unknown` are members of which the dumps cannot say whether they came. For a send or receive `p2p` is set,
    and `paired` where both sides are there.
    """

    view: GroupView
    seq: int
    op: Op
    waiters: tuple[int, ...]
    late: tuple[int, ...] = ()
    stuck: tuple[int, ...] = ()
    odd: tuple[int, ...] = ()
    unknown: tuple[int, ...] = ()
    p2p: bool = False
    paired: bool = False

    @property
    def targets(self) -> tuple[int, ...]:
        return (*self.late, *self.stuck, *self.odd)


def began(wait: Wait) -> tuple[int, str, int]:
    """Orders waits by when they began, and always in one way."""
    return wait.op.created_ns, wait.view.group.name, wait.seq


def first_of(waits: Iterable[Wait]) -> Wait:
    """The wait that began first."""
    return min(waits, key=began)


def collective_waits(view: GroupView, mismatch: Mismatch | None) -> Iterator[Wait]:
    """The waits in one group, those at lower sequence numbers first."""
    at: dict[int, list[int]] = {}
    for rank, standing in view.standings.items():
        if standing.lowest_pending is not None:
            at.setdefault(standing.lowest_pending, []).append(rank)
    is_own_fault = cache(partial(_is_own_fault, view))
    for seq in sorted(at)[:_STEPS_LOOKED_AT]:
        op = view.standings[at[seq][0]].op(seq)
        if op is None:
            continue
        if mismatch:
            yield _mismatched(view, mismatch, op)
            return
        yield _waiting(view, seq, op, tuple(at[seq]), is_own_fault)


def _mismatched(view: GroupView, mismatch: Mismatch, op: Op) -> Wait:
    odd = frozenset(mismatch.culprits)
    waiters = tuple(
        rank
        for rank, standing in view.standings.items()
        if standing.lowest_pending is not None and rank not in odd
    )
    late, unknown = _not_there(view, mismatch.seq)
    return Wait(view, mismatch.seq, mismatch.usual or op, waiters, late, (), mismatch.culprits, unknown)


def _waiting(
    view: GroupView, seq: int, op: Op, waiters: tuple[int, ...], is_own_fault: Callable[[int], bool]
) -> Wait:
    late, unknown = _not_there(view, seq)
    if not late and (finished := _finished(view, seq, op, unknown)) and len(waiters) <= len(finished):
        return Wait(view, seq, op, (), stuck=waiters)
    if len(late) * 2 > len(view.group.ranks) and view.standings[waiters[0]].active_only:
        late, unknown = (), (*unknown, *late)  # they may as well be over with it
    exact = any(held.exact for rank in waiters if (held := view.standings[rank].held))
    stuck = _stuck_before(view, seq, is_own_fault) if exact and op.backend not in _RUNS_ON_THE_HOST else ()
    return Wait(view, seq, op, waiters, late, stuck, unknown=unknown)


ROOTED = ("broadcast", "_broadcast_oop", "reduce", "_reduce_oop", "gather", "scatter")
_RUNS_ON_THE_HOST = ("gloo",)
"""An operation also ends when it fails, and the recorder learns of an end after the host that goes on."""


def _finished(view: GroupView, seq: int, op: Op, unknown: Sequence[int]) -> list[int]:
    """Members on which it is over, where all members came."""
    if op.backend in _RUNS_ON_THE_HOST or (unknown and op.name in ROOTED):
        return []
    return [rank for rank, standing in view.standings.items() if standing.has_ended(seq)]


def _not_there(view: GroupView, seq: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """(members that did not come, members of which it is not known)."""
    reached = {rank: standing.reached(seq) for rank, standing in view.standings.items()}
    late = tuple(rank for rank, came in reached.items() if came is False)
    unseen = tuple(rank for rank, came in reached.items() if came is None)
    return late, (*view.without_dump, *unseen)


def _stuck_before(view: GroupView, seq: int, is_own_fault: Callable[[int], bool]) -> tuple[int, ...]:
    """Who is pending, by its own fault, in an operation that the waiters at `seq` have finished."""
    return tuple(
        rank
        for rank, standing in view.standings.items()
        if (number := standing.lowest_pending) is not None and number < seq and is_own_fault(number)
    )


def _is_own_fault(view: GroupView, seq: int) -> bool:
    """Whether every member came to it, and it is over on as many, at least, as are still in it.

    Where a member is missing, an operation that ends early on some (a reduce, a broadcast) says nothing. Nor
    does one that ended on fewer members than it hangs on: what most do not finish is no fault of theirs.
    """
    standings = view.standings.values()
    if any(standing.reached(seq) is False for standing in standings):
        return False
    hang = sum(standing.lowest_pending == seq for standing in standings)
    return hang <= sum(standing.has_ended(seq) for standing in standings)
