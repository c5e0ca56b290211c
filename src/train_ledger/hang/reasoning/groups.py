"""Who belongs to which process group, and where does each member stand in it?

Membership comes from the group table of the dumps, keyed by name and ranks together: one name can stand for
several rank sets. gloo's table is empty; there the members are the ranks that recorded something in the
group, and of the default group all ranks. Such a membership is marked as inferred. A rank whose own table
lists other members than its peers' is not known to be missing anywhere in that group.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate

from train_ledger.answer import Group
from train_ledger.hang.dumps.dump import Dump
from train_ledger.hang.dumps.entry import Op
from train_ledger.hang.dumps.group_table import MOST_RANKS
from train_ledger.hang.dumps.held import Held
from train_ledger.hang.dumps.modes import of_one_mode, without_ended_batches
from train_ledger.hang.reasoning.members import GroupKey, Members, members_of

__all__ = [
    "GroupView",
    "Standing",
    "build_groups",
    "is_telling",
    "siblings_of",
]


@dataclass(frozen=True, slots=True)
class Standing:
    """Where one rank stands in one group, as far as its dump says.

    `held` is None where the dump holds no entry of the group; `wrapped` says that such an entry may have
    fallen off its ring, which goes back to `since_ns`; `cut` that its file ends early or is not understood in
    part: what is not seen is not known. `enqueued` is the recorder's own count of what was issued.
    """

    rank: int
    held: Held | None
    cut: bool = False
    wrapped: bool = False
    enqueued: int | None = None
    since_ns: int = 0
    active_only: bool = False

    @property
    def lowest_pending(self) -> int | None:
        return self.held.lowest_pending if self.held else None

    @property
    def held_ops(self) -> tuple[Op, ...]:
        return self.held.ops if self.held else ()

    @property
    def has_pending(self) -> bool:
        return self.held is not None and (self.held.lowest_pending is not None or bool(self.held.p2p))

    @property
    def holds_all(self) -> bool:
        """Whether its dump holds all that it ever issued."""
        return not (self.cut or self.wrapped or self.active_only)

    def op(self, seq: int) -> Op | None:
        """The operation with that sequence number, where the dump keeps it."""
        return next((op for op in self.held.ops if op.seq == seq), None) if self.held else None

    def reached(self, seq: int) -> bool | None:
        """Whether the rank issued the operation; None where its dump cannot say."""
        if self.held and self.held.highest is not None and self.held.highest >= seq:
            return True
        if self.enqueued is not None and self.enqueued >= seq and (self.held is None or self.cut):
            return True
        if self.cut or (self.wrapped and self.held is None and self.enqueued is None):
            return None
        return False

    def has_ended(self, seq: int) -> bool:
        """Whether the operation is certainly over on this rank."""
        if op := self.op(seq):
            return op.done
        if self.reached(seq) is not True or self.cut:
            return False
        if self.held is None or self.held.lowest_pending is None:
            return not self.wrapped
        return self.held.exact and self.held.lowest_pending > seq


@dataclass(frozen=True, slots=True)
class GroupView:
    """One process group with the standings of all members that have a dump.

    `channel` is the backend where the group is served by several: each is a view of its own. `came_late`
    says by how many seconds a rank came after those that had given up.
    """

    group: Group
    standings: Mapping[int, Standing]
    without_dump: tuple[int, ...] = ()
    waiting: tuple[int, ...] = ()
    channel: str = ""
    came_late: Mapping[int, float] = field(default_factory=dict)

    @property
    def label(self) -> str:
        desc = f" ({self.group.desc})" if self.group.desc else ""
        return f"group {self.group.name}{desc}" + (f" over {self.channel}" if self.channel else "")


def build_groups(dumps: Sequence[Dump], world: Sequence[int]) -> tuple[list[GroupView], int]:
    """Every group, sorted by name, whatever the order of the dumps; and how many were too large to take.

    The smallest are taken first, as long as they have no more than `MOST_RANKS` members together.
    """
    dumps = without_ended_batches(of_one_mode(dumps))
    members = members_of(dumps)
    taken = _of_bearable_size(members, world)
    groups = [_group(key, members[key], world) for key in taken]
    seats = _empty_seats(groups, world)
    holders: dict[tuple[str, str, str], set[int]] = {}
    for key, of_group in members.items():
        holders.setdefault((key.name, key.desc, key.channel), set()).update(of_group.held)
    by_rank = {dump.rank: dump for dump in dumps}
    views = [
        _view(
            _seated(group, seats),
            key.channel,
            members[key].held,
            by_rank,
            holders[key.name, key.desc, key.channel],
        )
        for key, group in zip(taken, groups, strict=True)
    ]
    views.sort(key=lambda view: (view.group.name, view.group.desc, view.group.ranks, view.channel))
    return views, len(members) - len(taken)


def _of_bearable_size(members: Mapping[GroupKey, Members], world: Sequence[int]) -> list[GroupKey]:
    sizes = {
        key: len(group.ranks or (world if _is_default(key.name, key.desc) else group.held))
        for key, group in members.items()
    }
    order = sorted(sizes, key=lambda key: (sizes[key], key.name, key.desc, key.listed or "", key.channel))
    together = accumulate(sizes[key] for key in order)
    return [key for key, so_far in zip(order, together, strict=True) if so_far <= MOST_RANKS]


def _group(key: GroupKey, members: Members, world: Sequence[int]) -> Group:
    ranks = members.ranks or _inferred(key.name, key.desc, members.held, world)
    return Group(key.name, key.desc, ranks, inferred=members.ranks is None)


def _seated(group: Group, seats: Mapping[tuple[str, str], Sequence[int]]) -> Group:
    if not group.inferred or (group.name, group.desc) not in seats:
        return group
    return replace(group, ranks=tuple(sorted({*group.ranks, *seats[group.name, group.desc]})))


def _is_default(name: str, desc: str) -> bool:
    return desc == "default_pg" or (name == "0" and not desc)


def _inferred(name: str, desc: str, held_by: Mapping[int, Held], world: Sequence[int]) -> tuple[int, ...]:
    if _is_default(name, desc):
        return tuple(sorted({*world, *held_by}))
    return tuple(sorted(held_by))


def _empty_seats(groups: Sequence[Group], world: Sequence[int]) -> dict[tuple[str, str], tuple[int, ...]]:
    """The ranks that inferred groups lack: members that have recorded nothing there yet.

    Groups of one description are of one size and divide the world. Where just one of them is too small, and
    as many ranks have no place, these are its members.
    """
    by_desc: dict[str, list[Group]] = {}
    for group in groups:
        if group.inferred and is_telling(group.desc) and group.desc != "default_pg":
            by_desc.setdefault(group.desc, []).append(group)
    seats, everybody = {}, frozenset(world)
    for alike in by_desc.values():
        size = max(len(group.ranks) for group in alike)
        small = [group for group in alike if len(group.ranks) < size]
        if len(small) != 1:
            continue
        placed = {rank for group in alike for rank in group.ranks}
        if len(everybody) - sum(rank in everybody for rank in placed) == size - len(small[0].ranks):
            seats[small[0].name, small[0].desc] = tuple(sorted(everybody - placed))
    return seats


def is_telling(desc: str) -> bool:
    """Whether groups of this description are of one kind; "undefined" is what torch writes for none."""
    return desc not in ("", "undefined")


def siblings_of(view: GroupView, views: Iterable[GroupView]) -> list[GroupView]:
    """The other groups of the same kind: the same dimension of the layout over other ranks."""
    group = view.group
    return [
        other
        for other in views
        if other is not view
        and other.group.desc == group.desc
        and len(other.group.ranks) == len(group.ranks)
        and is_telling(group.desc)
    ]


def _view(
    group: Group,
    channel: str,
    held_by: Mapping[int, Held],
    by_rank: Mapping[int, Dump],
    holders: Collection[int],
) -> GroupView:
    """`holders` are all ranks that hold something of a group of this name, whatever members they list."""
    counts_p2p = any(held.posted for held in held_by.values())
    standings = {
        rank: _standing(group, by_rank[rank], held_by.get(rank), rank in holders, counts_p2p)
        for rank in group.ranks
        if rank in by_rank
    }
    waiting = tuple(rank for rank, standing in standings.items() if standing.has_pending)
    without = tuple(rank for rank in group.ranks if rank not in by_rank)
    return GroupView(group, standings, without, waiting, channel)


def _standing(group: Group, dump: Dump, held: Held | None, lists_others: bool, counts_p2p: bool) -> Standing:
    """The recorder's own count is of no use where sends and receives count in it, too."""
    unseen = dump.cut is not None or (held is None and lists_others)
    return Standing(
        dump.rank,
        held,
        unseen,
        wrapped=dump.wrapped,
        enqueued=None if counts_p2p else dump.enqueued.get(group.name),
        since_ns=dump.oldest_ns,
        active_only=dump.active_only and dump.entries > 0,
    )
