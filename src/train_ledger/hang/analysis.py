"""From files to the answer: read, group, find the roots, conclude."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from train_ledger.answer import HangAnswer
from train_ledger.config import Limits
from train_ledger.hang.dumps.dump_files import Dumps
from train_ledger.hang.dumps.group_table import MOST_RANKS
from train_ledger.hang.dumps.inputs import read_named
from train_ledger.hang.knowledge import RankKnowledge, first_fallen
from train_ledger.hang.picture.picture import picture_of
from train_ledger.hang.reasoning.failed import left_open, reopened
from train_ledger.hang.reasoning.groups import build_groups
from train_ledger.hang.reasoning.outdated import of_another_world, outdated
from train_ledger.hang.reasoning.roots import find_roots
from train_ledger.hang.reasoning.world import can_be_a_world, world_of
from train_ledger.hang.stacks.stack_files import RankStack
from train_ledger.hang.verdict.acquit import acquit
from train_ledger.hang.verdict.conclude import conclude
from train_ledger.hang.verdict.evidence import Evidence
from train_ledger.render.picture import Picture

__all__ = ["Examination", "analyse", "examination_of", "examine", "reason"]


@dataclass(frozen=True, slots=True)
class Examination:
    """The answer, and what is drawn beside it for a person."""

    answer: HangAnswer
    picture: Picture


def analyse(
    paths: Sequence[Path],
    *,
    stacks: Mapping[int, RankStack] | None = None,
    known: Mapping[int, RankKnowledge] | None = None,
    world_size: int | None = None,
    limits: Limits | None = None,
    since_t: float | None = None,
) -> HangAnswer:
    """What the dumps in `paths` (files, folders, tars) say, joined with what else is handed in, by rank.

    `world_size` tells of ranks that left nothing; without it, or where it cannot be, the world ends at the
    highest rank that is named anywhere. A dump whose file and newest entry are both from before `since_t`
    (unix seconds) is listed as stale and not reasoned over. Never raises for what is in a file or happens to
    it: what could not be read is in the answer.
    """
    read = read_named(paths, limits or Limits(), since_t)
    return reason(read, stacks=stacks or {}, known=known or {}, world_size=world_size)


def examine(
    paths: Sequence[Path],
    *,
    stacks: Mapping[int, RankStack] | None = None,
    known: Mapping[int, RankKnowledge] | None = None,
    world_size: int | None = None,
    limits: Limits | None = None,
    since_t: float | None = None,
) -> Examination:
    """The same answer as `analyse`, and the picture that goes with it."""
    read = read_named(paths, limits or Limits(), since_t)
    return examination_of(read, stacks=stacks, known=known, world_size=world_size)


def examination_of(
    read: Dumps,
    *,
    stacks: Mapping[int, RankStack] | None = None,
    known: Mapping[int, RankKnowledge] | None = None,
    world_size: int | None = None,
) -> Examination:
    """The answer and the picture from dumps that are read already."""
    return _Case(read, stacks or {}, known or {}, world_size).examination()


def reason(
    read: Dumps,
    *,
    stacks: Mapping[int, RankStack],
    known: Mapping[int, RankKnowledge],
    world_size: int | None = None,
) -> HangAnswer:
    """The answer from dumps that are read already."""
    return _Case(read, stacks, known, world_size).answer()


class _Case:
    """What was read, grouped, and its causes."""

    def __init__(
        self,
        read: Dumps,
        stacks: Mapping[int, RankStack],
        known: Mapping[int, RankKnowledge],
        world_size: int | None,
    ) -> None:
        read = read.without(of_another_world(read.dumps))
        self.world = world_of(read.dumps, {*read.damaged, *known, *stacks}, world_size)
        fallen = first_fallen(known, self.world)
        views, too_large = build_groups(read.dumps, self.world)
        if old := outdated(views, read.dumps):
            read = read.without(old)
            views, too_large = build_groups(read.dumps, self.world)
        self.read = read
        self.views = reopened(views, read.dumps, known, fallen)
        self.pending = [view for view in self.views if view.waiting]
        ended = not self.pending and any(it.gone or it.exception or it.signal for it in known.values())
        dumps = {dump.rank: dump for dump in read.dumps}
        newest_ns = max((dump.newest_ns for dump in read.dumps), default=0)
        self.evidence = Evidence(
            dumps, stacks, known, fallen, read.damaged, frozenset(read.set_aside), newest_ns
        )
        silent = [dump.rank for dump in read.dumps if not dump.groups]
        roots = find_roots(self.views, fallen=fallen, damaged=read.damaged, silent=silent, ended=ended)
        self.found = acquit(roots, self.evidence)
        unsaid = () if self.pending else left_open(self.views)
        self.beyond_bounds = (*_beyond_bounds(world_size, too_large), *unsaid)

    def answer(self) -> HangAnswer:
        return conclude(self.found, self.read, self.pending, self.evidence, self.world, self.beyond_bounds)

    def examination(self) -> Examination:
        return Examination(
            self.answer(), picture_of(self.found, self.views, self.evidence, self.read.damaged)
        )


def _beyond_bounds(world_size: int | None, too_large: int) -> Iterator[str]:
    if world_size and not can_be_a_world(world_size):
        yield f"world size: {world_size} is {'more' if world_size > 0 else 'less'} than can be, and not used"
    if too_large:
        yield f"groups: {too_large} left out, for all together have more than {MOST_RANKS} members"
