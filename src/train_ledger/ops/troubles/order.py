"""Which of the troubles came first, and which followed from it?

The first cause is wanted, not the loudest and not the first that a log happens to print: who waited in vain,
lost a peer or was ended by the launcher is a victim whenever its line was written. A watchdog that gives up
dates the cause, too: it lies before the end of its waiting.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from train_ledger.ops.troubles.trouble import Trouble

__all__ = ["FirstCause", "came_all_the_same", "fallen_t", "first_cause", "gave_up_t"]

_CLOCKS_S = 2.0
"""Clocks of hosts differ: what is closer together than this has no order."""

_DRIVER_S = 30.0

_SAME_S = 900.0
"""Ranks that run into one thing do so when they come to it."""


@dataclass(frozen=True, slots=True)
class FirstCause:
    """`first` are the troubles that are the cause, the earliest in front; `later` all that came after it.

    `of_all` says that every rank ran into the same thing: then none of them is to blame. `others` are
    different troubles that may have been as early, so that the order is not known. `is_sign` says that
    nothing tells a cause, and these are only signs of one.
    """

    first: tuple[Trouble, ...]
    later: tuple[Trouble, ...] = ()
    others: tuple[Trouble, ...] = ()
    of_all: bool = False
    is_sign: bool = False

    @property
    def ranks(self) -> tuple[int, ...]:
        """Who ran into it; nobody where all did."""
        return () if self.of_all else tuple(sorted({it.rank for it in self.first if it.rank is not None}))

    @property
    def hosts(self) -> tuple[str, ...]:
        return () if self.of_all else tuple(sorted({it.host for it in self.first if it.host}))

    @property
    def kind(self) -> str:
        return self.first[0].kind

    @property
    def t(self) -> float | None:
        """When it was first met."""
        return min((it.t for it in self.first if it.t is not None), default=None)

    @property
    def victims(self) -> tuple[int, ...]:
        """The ranks that only followed."""
        own = {it.rank for it in self.first}
        return tuple(sorted({it.rank for it in self.later if it.rank is not None and it.rank not in own}))


def first_cause(troubles: Sequence[Trouble], world: Collection[int]) -> FirstCause | None:
    """The first cause among troubles of one incident; `world` are the ranks of the run, as far as known.

    None where nothing tells a cause, nor a sign of one.
    """
    able = _before_the_waiting_ended(troubles, [it for it in troubles if it.weight == "cause"])
    is_sign = not able
    if is_sign:
        able = [it for it in troubles if it.weight == "sign"]
    if not able:
        return None
    able = sorted(able, key=_when)
    first = _the_one(able)
    same = [it for it in able if it.shape == first.shape and _is_same(it, first)]
    others = [it for it in able if it.shape != first.shape and _may_be_as_early(it, first)]
    told = {it.rank for it in same if it.rank is not None}
    rest = tuple(it for it in troubles if it not in same and it not in others and it.weight != "outside")
    return FirstCause(
        first=(first, *(it for it in same if it is not first)),
        later=rest,
        others=tuple(others),
        of_all=len(world) > 1 and told >= {*world},
        is_sign=is_sign,
    )


def came_all_the_same(troubles: Sequence[Trouble]) -> frozenset[str]:
    """Where exceptions stand ("file:line") of ranks that came to the one thing that all others wait for.

    Their own watchdogs say that they did, as those of others do. Left are those that tell when they were
    raised: a rank may raise once it has come.
    """
    waits = [it for it in troubles if it.kind == "watchdog_timeout" and it.rank is not None]
    came = {it.rank for it in waits}
    if len(came) < 2 or len({(it.said, it.attempt) for it in waits}) > 1:
        return frozenset()
    raised = (it for it in troubles if it.kind in ("exception", "oom") and it.rank in came)
    return frozenset(it.source for it in raised if it.earliest_t != it.t)


def gave_up_t(troubles: Sequence[Trouble]) -> float | None:
    """When the first watchdog had given up waiting (unix seconds), as far as clocks agree; None: none did."""
    ends = (it.t for it in troubles if it.kind == "watchdog_timeout" and it.t is not None)
    first = min(ends, default=None)
    return None if first is None else first + _CLOCKS_S


def fallen_t(troubles: Sequence[Trouble], world: Collection[int]) -> float | None:
    """By when the run had surely fallen (unix s): what a kernel told of a GPU later has come of that.

    When others gave up waiting, or a while after its first rank fell by itself, since a driver waits for
    a GPU before it tells; None where neither is known.
    """
    end_t = gave_up_t(troubles)
    ends = [] if end_t is None else [end_t]
    first = first_cause([it for it in troubles if it.kind != "xid"], world)
    if first is not None and not first.is_sign and first.t is not None:
        ends.append(first.t + _DRIVER_S)
    return min(ends, default=None)


def _before_the_waiting_ended(troubles: Sequence[Trouble], able: list[Trouble]) -> list[Trouble]:
    """Without what can only have come after others had given up waiting: that may be their clearing away."""
    end = gave_up_t(troubles)
    return [it for it in able if end is None or it.earliest_t is None or it.earliest_t <= end]


def _the_one(able: Sequence[Trouble]) -> Trouble:
    """Of those that may be as early as the first, the one that its launcher saw, that says why and where."""
    near = [it for it in able if it.t == able[0].t or _may_be_as_early(it, able[0])]
    return min(near, key=_how_little_it_tells)


def _how_little_it_tells(it: Trouble) -> tuple[bool, bool, bool, tuple[float, int, str]]:
    is_nobodys = it.rank is None and it.host is None
    return not it.is_root, it.said.startswith("ended with"), is_nobodys, _when(it)


def _when(it: Trouble) -> tuple[float, int, str]:
    return (it.t if it.t is not None else float("inf")), it.attempt, it.source


def _may_be_as_early(it: Trouble, first: Trouble) -> bool:
    if it.attempt != first.attempt:
        return it.attempt < first.attempt
    if first.t is None or it.t is None:
        return True
    if (
        it.host is not None
        and it.host == first.host
        and first.earliest_t == first.t
        and it.earliest_t == it.t
    ):
        return it.t <= first.t  # one clock
    earliest_t = it.earliest_t if it.earliest_t is not None else first.t
    return earliest_t <= first.t + _CLOCKS_S and it.t <= first.t + _SAME_S


def _is_same(it: Trouble, first: Trouble) -> bool:
    near = it.t is None or first.t is None or it.t <= first.t + _SAME_S
    return near and it.attempt == first.attempt
