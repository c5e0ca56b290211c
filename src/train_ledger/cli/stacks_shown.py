"""How are the stacks that were taken told?"""

from __future__ import annotations

import dataclasses
import socket
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from train_ledger import render
from train_ledger.answer import NextCommand, Unreadable
from train_ledger.cli.output import show, show_report
from train_ledger.hang import RankStack, StackGroup, stacks
from train_ledger.hang.stacks.rank_sections import plain_stacks
from train_ledger.hang.stacks.stack_tree import StackNode, tree_of

__all__ = ["Taken", "show_stacks"]


@dataclass(frozen=True, slots=True)
class Taken:
    """The stacks by rank, or by what `member` calls them, and what was not read.

    `job` is what tells the job of these ranks from others, {} where that is not known.
    """

    found: Mapping[int, RankStack]
    unread: tuple[Unreadable, ...] = ()
    member: str = "rank"
    next: tuple[NextCommand, ...] = ()
    job: Mapping[str, str] = field(default_factory=dict)

    def with_more(
        self,
        *,
        unread: Iterable[Unreadable] = (),
        next: tuple[NextCommand, ...] = (),
        job: Mapping[str, str] | None = None,
    ) -> Taken:
        return dataclasses.replace(
            self, unread=(*self.unread, *unread), next=(*self.next, *next), job=job or self.job
        )


def show_stacks(taken: Taken, *, json: bool, full: bool) -> None:
    """For a person, or as one JSON object; `full`: on one line, with all threads, as `--from` reads it."""
    groups = stacks.merge(taken.found)
    shown = [_shown(group, taken.found) for group in groups]
    tree = tree_of(groups)
    if not json:
        show_report(
            render.report_of_stacks(
                shown, member=taken.member, tree=tree, unread=taken.unread, next=taken.next
            )
        )
        return
    plain: dict[str, Any] = {
        "groups": [_plain_group(it, taken) for it in groups],
        "apart": render.standing_apart(shown),
        "tree": _plain_tree(tree, taken.member) if groups else None,
        "unreadable": [dataclasses.asdict(it) for it in taken.unread],
        "next": [dataclasses.asdict(it) for it in taken.next],
    }
    if full:
        plain |= {
            "host": socket.gethostname(),
            "job": taken.job,
            "stacks": plain_stacks(taken.found.values()),
        }
    show(render.as_json(plain, indent=None if full else 1))


def _shown(group: StackGroup, found: Mapping[int, RankStack]) -> render.StackGroup:
    """Ranks with equal main threads may still differ in another thread that tells what they wait for."""
    stands = [stacks.stand_of(found[rank]) for rank in group.ranks]
    what = stands[0].what if len({it.what for it in stands}) == 1 else ""
    waits = all(it.waits_for_others for it in stands)
    return render.StackGroup(group.ranks, group.frames, group.thread, in_collective=waits, what=what)


def _plain_group(group: StackGroup, taken: Taken) -> dict[str, Any]:
    stand = stacks.stand_of(taken.found[group.ranks[0]])
    return {
        f"{taken.member}s": group.ranks,
        "thread": group.thread,
        "stand": {"where": stand.where, "kind": stand.kind, "what": stand.what},
        "frames": group.frames,
    }


def _plain_tree(node: StackNode, member: str) -> dict[str, Any]:
    return {
        f"{member}s": render.rank_ranges(node.ranks),
        "count": len(node.ranks),
        "frames": node.frames,
        "children": [_plain_tree(child, member) for child in node.children],
    }
