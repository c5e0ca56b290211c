"""How do the stacks of many ranks fit on one page?

Ranks that stand in the same place are one group. The smallest groups come first: in a hang most ranks wait in
the same collective, and the one that does not is the one to look at. Where most do not wait, as in a healthy
run, stacks merely differ, and nobody is said to stand apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from train_ledger.answer import NextCommand, Unreadable
from train_ledger.render.harmless import harmless
from train_ledger.render.ranks import ranks_in_words
from train_ledger.render.report import Frames, Report, Section, Tone, commands, points

__all__ = ["StackGroup", "report_of_stacks"]


@dataclass(frozen=True, slots=True)
class StackGroup:
    """Ranks whose stacks are equal; `frames` as "file:line function", innermost call first.

    `in_collective`: they wait there for other ranks.
    """

    ranks: tuple[int, ...]
    frames: tuple[str, ...]
    thread: str = ""
    in_collective: bool = False


def report_of_stacks(
    groups: Iterable[StackGroup],
    *,
    member: str = "rank",
    unread: Sequence[Unreadable] = (),
    next: Sequence[NextCommand] = (),
) -> Report:
    """The groups, the odd ones first, and what could not be taken; `member` is what their numbers are."""
    ordered = sorted(groups, key=lambda group: (len(group.ranks), group.ranks))
    verdict, tone = _verdict(ordered, member)
    sections = [
        *(_section(group, member) for group in ordered),
        *points("not read", (f"{entry.file}: {entry.why}" for entry in unread)),
        *commands(next),
    ]
    return Report(harmless(verdict), tone, tuple(sections))


def _verdict(ordered: Sequence[StackGroup], member: str) -> tuple[str, Tone]:
    if not ordered:
        return "cannot tell, because no stack could be read", "unsure"
    total = len({rank for group in ordered for rank in group.ranks})
    if len(ordered) == 1:
        return f"all stacks are equal: {ranks_in_words(ordered[0].ranks, member)}", "fine"
    different = f"{len(ordered)} different stacks of {total} {member}s"
    apart = _apart(ordered)
    if not apart:
        return f"{different}, none of them the odd one", "unsure"
    stands = "stands" if len(apart) == 1 else "stand"
    return f"{ranks_in_words(apart, member)} {stands} apart: {different}", "unsure"


def _apart(ordered: Sequence[StackGroup]) -> list[int]:
    """The few that do not wait while at least twice as many do; of those who all wait, the few elsewhere."""
    waiting = [group for group in ordered if group.in_collective]
    elsewhere = [group for group in ordered if not group.in_collective]
    if not elsewhere:
        elsewhere, waiting = list(ordered[:-1]), list(ordered[-1:])
    apart = _members(elsewhere)
    return apart if 2 * len(apart) <= len(_members(waiting)) else []


def _members(groups: Iterable[StackGroup]) -> list[int]:
    return sorted({rank for group in groups for rank in group.ranks})


def _section(group: StackGroup, member: str) -> Section:
    thread = f", thread {group.thread}" if group.thread else ""
    lines = tuple(harmless(frame) for frame in group.frames) or ("(no Python frame)",)
    return Section(harmless(f"{ranks_in_words(group.ranks, member)}{thread}"), (Frames(lines),))
