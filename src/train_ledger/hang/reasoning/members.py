"""Which ranks hold something of one and the same process group?

A group goes by its name, its description and the ranks that the dumps list for it, in whatever order: one
name can stand for several rank sets. Where a dump lists nothing and the dumps of its peers do, theirs counts.
Four things hide that two dumps mean the same group: before version 1.4 its name is an id that each process
counts for itself; split_group can make another name on each rank; torchft numbers the ranks of each replica
from 0; and a group that several backends serve has numbers of its own for each.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from train_ledger.hang.dumps.dump import Dump
from train_ledger.hang.dumps.group_table import ascending, ranks_in
from train_ledger.hang.dumps.held import Held

__all__ = ["GroupKey", "Members", "members_of"]


@dataclass(frozen=True, slots=True)
class GroupKey:
    """A group; `listed` are its ranks as text, ascending, None where no dump lists them.

    `channel` is the backend, where several serve the group.
    """

    name: str
    desc: str
    listed: str | None
    channel: str = ""


@dataclass(slots=True)
class Members:
    """What each rank holds of a group, and its ranks in the order in which they are listed."""

    held: dict[int, Held]
    ranks: tuple[int, ...] | None


def members_of(dumps: Sequence[Dump]) -> dict[GroupKey, Members]:
    """Every group that any of the dumps holds something of."""
    found = [
        (dump.rank, held, _listed(dump, held.name, held.desc, _offset(dump)))
        for dump in dumps
        for held in dump.groups
    ]
    names = _common_names(dumps)
    shared = {(held.name, held.desc) for _, held, _ in found if held.channel}
    listings: dict[tuple[str, str], set[str]] = {}
    for _, held, listed in found:
        if listed is not None:
            listings.setdefault((held.name, held.desc), set()).add(listed)
    groups: dict[GroupKey, Members] = {}
    for rank, held, own in found:
        listed = own or _of_its_peers(rank, listings.get((held.name, held.desc), ()))
        channel = (held.channel or held.backend) if (held.name, held.desc) in shared else ""
        name = names.get((rank, held.name), held.name)
        key = GroupKey(name, held.desc, None if listed is None else ascending(listed), channel)
        if key not in groups:
            groups[key] = Members({}, None if listed is None else ranks_in(listed))
        groups[key].held[rank] = held
    return _of_one_name(groups, {dump.rank: dump.config for dump in dumps})


def _of_one_name(
    groups: dict[GroupKey, Members], configs: Mapping[int, Mapping[str, object]]
) -> dict[GroupKey, Members]:
    """Groups of the same ranks, of whose names no process knows two, are one that each calls by its own."""
    alike: dict[tuple[str, str, str], list[GroupKey]] = {}
    for key in sorted(groups, key=lambda key: key.name):
        if key.listed is not None:
            alike.setdefault((key.desc, key.listed, key.channel), []).append(key)
    for first, *others in alike.values():
        here = groups[first].held
        names = {name for rank in here for name in configs[rank]} if others else set()
        for other in others:
            there = groups[other].held
            knows_both = other.name in names or any(first.name in configs[it] for it in there)
            if not knows_both and not any(rank in here for rank in there):
                here.update(groups.pop(other).held)
                names.update(name for rank in there for name in configs[rank])
    return groups


def _of_its_peers(rank: int, listings: Iterable[str]) -> str | None:
    """The one list of a group of that name that has the rank in it."""
    with_it = [listed for listed in listings if rank in ranks_in(listed)]
    return with_it[0] if len({ascending(listed) for listed in with_it}) == 1 else None


def _listed(dump: Dump, name: str, desc: str, offset: int) -> str | None:
    """The ranks of the group by the dump's own table, as text; None where it has none."""
    listed = dump.config.get(name)
    if listed is None or (listed[0] and desc and listed[0] != desc) or not ranks_in(listed[1]):
        return None
    if offset and dump.rank not in ranks_in(listed[1]):
        return _shifted(listed[1], offset)
    return listed[1]


def _offset(dump: Dump) -> int:
    """Where replicas number their ranks from 0 each, the rank of the file name says which replica it is."""
    for name, (desc, text) in dump.config.items():
        if desc == "default_pg" or name == "0":
            size = len(ranks_in(text))
            if size and dump.rank >= size and set(ranks_in(text)) == set(range(size)):
                return dump.rank // size * size
    return 0


@lru_cache(maxsize=65536)
def _shifted(listed: str, offset: int) -> str:
    return str([rank + offset for rank in ranks_in(listed)])


def _common_names(dumps: Sequence[Dump]) -> Mapping[tuple[int, str], str]:
    """(rank, id in its process) → one name for all members: the lowest id that any of them has for it.

    Groups of the same ranks are told apart by the order in which they were made, those in which a rank has
    recorded nothing among them.
    """
    ids: dict[tuple[int, str], list[str]] = {}
    for dump in dumps:
        if any(held.by_id for held in dump.groups):
            offset = _offset(dump)
            for name in dump.config:
                if name.isdecimal() and (listed := _listed(dump, name, "", offset)) is not None:
                    ids.setdefault((dump.rank, ascending(listed)), []).append(name)
    lowest: dict[tuple[str, int], str] = {}
    for (_, listed), own in ids.items():
        for place, name in enumerate(sorted(own, key=int)):
            lowest[listed, place] = min(lowest.get((listed, place), name), name, key=int)
    return {
        (rank, name): lowest[listed, place]
        for (rank, listed), own in ids.items()
        for place, name in enumerate(sorted(own, key=int))
    }
