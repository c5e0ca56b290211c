"""How do the stacks of many ranks fit on one page?

Ranks that stand in the same place are one group. The smallest groups come first: in a hang most ranks wait in
the same collective, and the one that does not is the one to look at. Where most do not wait, as in a healthy
run, stacks merely differ, and nobody is said to stand apart. Below the groups stands the tree of their calls,
which shows where the ways part.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from train_ledger.answer import NextCommand, Unreadable
from train_ledger.render.harmless import harmless
from train_ledger.render.ranks import ranks_in_brief
from train_ledger.render.report import SHOWN_AT_MOST, Frames, Point, Report, Section, Tone, commands, points

__all__ = ["CallTree", "StackGroup", "report_of_stacks", "standing_apart"]

_MOST_LINES = 120
_FIRST, _LAST = 2, 4
"""Calls of one branch that are shown of a long one."""


@dataclass(frozen=True, slots=True)
class StackGroup:
    """Ranks whose stacks are equal; `frames` as "file:line function", innermost call first.

    `in_collective`: they wait there for other ranks, as far as their stack says. `what` says in words where
    they stand.
    """

    ranks: tuple[int, ...]
    frames: tuple[str, ...]
    thread: str = ""
    in_collective: bool = False
    what: str = ""


class CallTree(Protocol):
    """Calls that some ranks share, outermost first, and how they go on."""

    @property
    def frames(self) -> Sequence[str]: ...
    @property
    def ranks(self) -> Sequence[int]: ...
    @property
    def children(self) -> Sequence[CallTree]: ...


def report_of_stacks(
    groups: Iterable[StackGroup],
    *,
    member: str = "rank",
    tree: CallTree | None = None,
    unread: Sequence[Unreadable] = (),
    next: Sequence[NextCommand] = (),
) -> Report:
    """The groups, the odd ones first, and what could not be taken; `member` is what their numbers are."""
    ordered = _odd_first(groups)
    verdict, tone = _verdict(ordered, member)
    more = len(ordered) - SHOWN_AT_MOST
    sections = [
        *(_section(group, member) for group in ordered[:SHOWN_AT_MOST]),
        *([Section(f"and {more} groups more", (Point("--json lists all"),))] if more > 0 else []),
        *(_tree_section(tree, member) if tree and len(ordered) > 1 else []),
        *points("not read", (f"{entry.file}: {entry.why}" for entry in unread)),
        *commands(next),
    ]
    return Report(harmless(verdict), tone, tuple(sections))


def _odd_first(groups: Iterable[StackGroup]) -> list[StackGroup]:
    return sorted(groups, key=lambda group: (len(group.ranks), group.ranks))


def _verdict(ordered: Sequence[StackGroup], member: str) -> tuple[str, Tone]:
    if not ordered:
        return "cannot tell, because no stack could be read", "unsure"
    total = len({rank for group in ordered for rank in group.ranks})
    if len(ordered) == 1:
        return f"all stacks are equal: {ranks_in_brief(ordered[0].ranks, member)}", "fine"
    different = f"{len(ordered)} different stacks of {total} {member}s"
    apart = standing_apart(ordered)
    if not apart:
        return f"{different}, none of them the odd one", "unsure"
    stands = "stands" if len(apart) == 1 else "stand"
    return f"{ranks_in_brief(apart, member)} {stands} apart: {different}", "unsure"


def standing_apart(groups: Iterable[StackGroup]) -> list[int]:
    """The few that do not wait while at least twice as many do; of those who all wait, the few elsewhere."""
    ordered = _odd_first(groups)
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
    what = f": {group.what}" if group.what else ""
    lines = tuple(harmless(frame) for frame in group.frames) or ("(no Python frame)",)
    return Section(harmless(f"{ranks_in_brief(group.ranks, member)}{thread}{what}"), (Frames(lines),))


def _tree_section(tree: CallTree, member: str) -> list[Section]:
    lines = [*_branch(tree, "", member)]
    if len(lines) > _MOST_LINES:
        lines = [*lines[:_MOST_LINES], f"… and {len(lines) - _MOST_LINES} lines more; --json holds all"]
    return [Section("where the ways part, outermost call first", (Frames(tuple(lines)),))]


def _branch(node: CallTree, indent: str, member: str) -> Iterator[str]:
    yield harmless(f"{indent}{ranks_in_brief(node.ranks, member)}: {_calls(node, indent)}")
    for child in sorted(node.children, key=lambda child: (len(child.ranks), child.ranks)):
        yield from _branch(child, indent + "  ", member)


def _calls(node: CallTree, indent: str) -> str:
    """The calls of one branch on one line, the middle of a long one left out."""
    calls = [_short(frame) for frame in node.frames]
    if not calls:
        return "stand in that call itself" if indent else "no call in common"
    if (hidden := len(calls) - _FIRST - _LAST) > 1:
        calls = [*calls[:_FIRST], f"… {hidden} calls …", *calls[-_LAST:]]
    return " > ".join(calls)


def _short(frame: str) -> str:
    """Without the folders.

    >>> _short("/opt/torch/distributed/distributed_c10d.py:3252 all_reduce")
    'distributed_c10d.py:3252 all_reduce'
    """
    file, colon, rest = frame.partition(":")
    return file.rpartition("/")[2] + colon + rest
