"""Who belongs to which process group, and where does each member stand in it?

Membership comes from the group table of the dumps, keyed by name and ranks together: one name can stand for
several rank sets. gloo's table is empty; there the members are the ranks that recorded something in the
group, and of the default group all ranks. Such a membership is marked as inferred. A rank whose own table
lists other members than its peers' is not known to be missing anywhere in that group.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from train_ledger.answer import Group
from train_ledger.hang.dump import Dump, Held, Op
from train_ledger.hang.group_table import MOST_RANKS, ranks_in

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

    `held` is None where the dump holds no entry of the group; `evicted` says that such an entry may have
    fallen off its ring, `cut` that its file ends early or is not understood in part: in all these cases what
    is not seen is not known.
    """

    rank: int
    held: Held | None
    cut: bool = False
    evicted: bool = False
    enqueued: int | None = None

    @property
    def lowest_pending(self) -> int | None:
        return self.held.lowest_pending if self.held else None

    @property
    def held_ops(self) -> tuple[Op, ...]:
        return self.held.ops if self.held else ()

    @property
    def has_pending(self) -> bool:
        return self.held is not None and (self.held.lowest_pending is not None or bool(self.held.p2p))

    def op(self, seq: int) -> Op | None:
        """The operation with that sequence number, where the dump keeps it."""
        return next((op for op in self.held.ops if op.seq == seq), None) if self.held else None

    def reached(self, seq: int) -> bool | None:
        """Whether the rank issued the operation; None where its dump cannot say."""
        if self.held and self.held.highest is not None and self.held.highest >= seq:
            return True
        if self.enqueued is not None and self.enqueued >= seq and self.held is None:
            return True
        return None if self.cut or self.evicted else False


@dataclass(frozen=True, slots=True)
class GroupView:
    """One process group with the standings of all members that have a dump."""

    group: Group
    standings: Mapping[int, Standing]
    without_dump: tuple[int, ...] = ()
    waiting: tuple[int, ...] = ()

    @property
    def label(self) -> str:
        desc = f" ({self.group.desc})" if self.group.desc else ""
        return f"group {self.group.name}{desc}"


_Key = tuple[str, str, tuple[int, ...] | None]


def build_groups(dumps: Sequence[Dump], world: Sequence[int]) -> tuple[list[GroupView], int]:
    """Every group, sorted by name, whatever the order of the dumps; and how many were too large to take.

    The smallest are taken first, as long as they have no more than `MOST_RANKS` members together.
    """
    members = _members(dumps)
    taken = _of_bearable_size(members, world)
    groups = [_group(key, members[key], world) for key in taken]
    seats = _empty_seats(groups, world)
    holders: dict[tuple[str, str], set[int]] = {}
    for key, held_by in members.items():
        holders.setdefault(key[:2], set()).update(held_by)
    by_rank = {dump.rank: dump for dump in dumps}
    views = [
        _view(_seated(group, seats), members[key], by_rank, holders[key[:2]])
        for key, group in zip(taken, groups, strict=True)
    ]
    views.sort(key=lambda view: (view.group.name, view.group.desc, view.group.ranks))
    return views, len(members) - len(taken)


def _of_bearable_size(members: Mapping[_Key, Mapping[int, Held]], world: Sequence[int]) -> list[_Key]:
    sizes = {
        key: len(key[2] or (world if _is_default(*key[:2]) else held_by)) for key, held_by in members.items()
    }
    smallest_first = sorted(sizes, key=lambda key: (sizes[key], key[:2], key[2] or ()))
    together = accumulate(sizes[key] for key in smallest_first)
    return [key for key, so_far in zip(smallest_first, together, strict=True) if so_far <= MOST_RANKS]


def _group(key: _Key, held_by: Mapping[int, Held], world: Sequence[int]) -> Group:
    name, desc, listed = key
    return Group(name, desc, listed or _inferred(name, desc, held_by, world), inferred=listed is None)


def _seated(group: Group, seats: Mapping[str, Sequence[int]]) -> Group:
    if group.name not in seats:
        return group
    return replace(group, ranks=tuple(sorted({*group.ranks, *seats[group.name]})))


def _members(dumps: Iterable[Dump]) -> dict[_Key, dict[int, Held]]:
    """What each rank holds, by name, description and listed ranks of the group."""
    members: dict[_Key, dict[int, Held]] = {}
    for dump in dumps:
        offset = _replica_offset(dump)
        for held in dump.groups:
            key = (held.name, held.desc, _listed(dump, held, offset))
            members.setdefault(key, {})[dump.rank] = held
    return members


def _listed(dump: Dump, held: Held, offset: int) -> tuple[int, ...] | None:
    """The ranks of the group by the dump's own table; None where it has none.

    Where replicas number their ranks from 0 each (torchft), the rank of the file name says which replica.
    """
    listed = dump.config.get(held.name)
    if listed is None or (listed[0] and held.desc and listed[0] != held.desc):
        return None
    ranks = ranks_in(listed[1])
    if not ranks:
        return None
    if offset and dump.rank not in ranks:
        return tuple(rank + offset for rank in ranks)
    return ranks


def _replica_offset(dump: Dump) -> int:
    for name, (desc, text) in dump.config.items():
        if desc == "default_pg" or name == "0":
            size = len(ranks_in(text))
            if size and dump.rank >= size and set(ranks_in(text)) == set(range(size)):
                return dump.rank // size * size
    return 0


def _is_default(name: str, desc: str) -> bool:
    return desc == "default_pg" or (name == "0" and not desc)


def _inferred(name: str, desc: str, held_by: Mapping[int, Held], world: Sequence[int]) -> tuple[int, ...]:
    if _is_default(name, desc):
        return tuple(sorted({*world, *held_by}))
    return tuple(sorted(held_by))


def _empty_seats(groups: Sequence[Group], world: Sequence[int]) -> dict[str, tuple[int, ...]]:
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
            seats[small[0].name] = tuple(sorted(everybody - placed))
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
    group: Group, held_by: Mapping[int, Held], by_rank: Mapping[int, Dump], holders: Collection[int]
) -> GroupView:
    """`holders` are all ranks that hold something of a group of this name, whatever members they list."""
    standings = {
        rank: _standing(group, by_rank[rank], held_by.get(rank), rank in holders)
        for rank in group.ranks
        if rank in by_rank
    }
    waiting = tuple(rank for rank, standing in standings.items() if standing.has_pending)
    without = tuple(rank for rank in group.ranks if rank not in by_rank)
    return GroupView(group, standings, without, waiting)


def _standing(group: Group, dump: Dump, held: Held | None, lists_others: bool) -> Standing:
    cut = dump.cut is not None
    if held is not None:
        return Standing(dump.rank, held, cut)
    enqueued = dump.default_enqueued if group.desc == "default_pg" else None
    return Standing(dump.rank, None, cut or lists_others, evicted=dump.wrapped, enqueued=enqueued)
