"""How is a first cause said to a person, with its line, its time and what followed from it?"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from train_ledger.answer import RuledOut
from train_ledger.hang.verdict.rank_lines import clock
from train_ledger.ops.troubles.order import FirstCause
from train_ledger.ops.troubles.trouble import Trouble
from train_ledger.render import harmless, ranks_in_brief

__all__ = ["ENDED", "first_lines", "followed_lines", "line_of", "outside_lines", "victims_ruled_out"]

ENDED = "ended from outside: "
_MOST = 4


def first_lines(found: FirstCause) -> Iterable[str]:
    """The first cause, who else ran into it, and what came after it."""
    what = "first sign" if found.is_sign else "first cause"
    yield f"{what}: {line_of(found.first[0])}"
    others = [it for it in found.first[1:] if it.rank is not None]
    if found.of_all:
        yield "every rank ran into the same: it lies in the code or the data that they share, not in a rank"
    elif others:
        same = ranks_in_brief(it.rank for it in others if it.rank is not None)
        yield f"the same of {same} ({', '.join(_place(it) for it in others[:_MOST])})"
    for some in _alike(found.others)[:_MOST]:
        yield f"as early, as far as their times tell: {_said_of(some, None)}"
    yield from _followed(found.later, found.t)


def followed_lines(found: FirstCause, since_t: float | None) -> Iterable[str]:
    """All of it as what came after something else, at `since_t` (unix seconds)."""
    yield from _followed((*found.first, *found.others, *found.later), since_t)


def outside_lines(troubles: Iterable[Trouble]) -> Iterable[str]:
    """Who ended the run from outside, the scheduler's own words first."""
    some = _alike(it for it in troubles if it.weight == "outside")
    for alike in sorted(some, key=lambda it: (it[0].rank is not None, _earliest(it)))[:_MOST]:
        at = _at(min(alike, key=_t))
        ranks = sorted({it.rank for it in alike if it.rank is not None})
        who = f"{ranks_in_brief(ranks)}: " if ranks else ""
        yield f"{ENDED}{who}{alike[0].said}" + (f", {at}" if at else "") + f" ({_place(alike[0])})"


def line_of(it: Trouble) -> str:
    """One trouble: who, what, when, and where it is written.

    >>> line_of(Trouble("exception", "ValueError: no", "cause", 60.0, 60.0, 3, "n1", source="logs/a.log:7"))
    'rank 3 on n1: ValueError: no, at 00:01:00 UTC (logs/a.log:7)'
    """
    at = _at(it)
    who = _who(it)
    return f"{who}: {it.said}" + (f", {at}" if at else "") + f" ({_place(it)})"


def victims_ruled_out(found: FirstCause) -> Iterable[RuledOut]:
    """Those that only followed are no cause."""
    if found.is_sign or not found.victims or found.t is None:
        return
    dated = [it for it in found.later if it.earliest_t == it.t and it.rank in found.victims]
    after = [it.t - found.t for it in dated if it.t is not None]
    late = f", {min(after):.0f} s or more" if after and min(after) >= 1 else ""
    by = f"what is told of them came after the first cause{late}"
    yield RuledOut(f"{ranks_in_brief(found.victims)} as the cause", by)


def _followed(later: Iterable[Trouble], since_t: float | None) -> Iterable[str]:
    telling = (it for it in later if it.rank is not None or not it.said.startswith("ended "))
    for some in _alike(telling)[:_MOST]:
        yield f"then {_said_of(some, since_t)}"


def _alike(troubles: Iterable[Trouble]) -> list[list[Trouble]]:
    """By what they say, since a thousand ranks say the same; the earliest first."""
    kinds: dict[tuple[object, ...], list[Trouble]] = {}
    for it in troubles:
        kinds.setdefault((*it.shape, it.attempt), []).append(it)
    return sorted(kinds.values(), key=_earliest)


def _said_of(some: Sequence[Trouble], since_t: float | None) -> str:
    ranks = sorted({it.rank for it in some if it.rank is not None})
    who = _who(some[0]) if len(ranks) < 2 else ranks_in_brief(ranks)
    t = _earliest(it for it in some if it.earliest_t == it.t)
    after_s = t - since_t if since_t is not None and t < float("inf") else None
    late = f", {after_s:.0f} s later" if after_s is not None and after_s >= 1 else ""
    return f"{who}: {harmless(some[0].said, longest=160)}{late} ({_place(some[0])})"


def _earliest(some: Iterable[Trouble]) -> float:
    return min(map(_t, some), default=float("inf"))


def _t(it: Trouble) -> float:
    return it.t if it.t is not None else float("inf")


def _who(it: Trouble) -> str:
    on = f" on {harmless(it.host, longest=80)}" if it.host else ""
    if it.rank is not None:
        return f"rank {it.rank}{on}"
    return harmless(it.host, longest=80) if it.host else "no rank named"


def _at(it: Trouble) -> str:
    if it.t is None:
        return ""
    return f"at {clock(it.t)}" if it.earliest_t == it.t else f"at {clock(it.t)} at the latest"


def _place(it: Trouble) -> str:
    return harmless(it.source, longest=300)
