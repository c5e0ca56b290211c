"""What did these ranks record, entry by entry?"""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from train_ledger.answer import Unreadable
from train_ledger.config import Limits
from train_ledger.hang.dumps.dump_files import jobs_in, shown
from train_ledger.hang.dumps.inputs import unpacked
from train_ledger.hang.dumps.listing import Entry, Listing, Wanted
from train_ledger.hang.dumps.readers import read_all

__all__ = ["Entries", "Entry", "Listing", "entries_of"]


_MOST_TOGETHER = 400_000
"""Entries of all ranks; each takes about a kilobyte here."""


@dataclass(frozen=True, slots=True)
class Entries:
    """One listing a rank, by rank, what could not be read, and the ranks of all files that are there.

    The stacks of all listings are numbered together: `stacks` holds each once, and the `stack` of an entry is
    its place there.
    """

    listings: tuple[Listing, ...]
    stacks: tuple[tuple[str, ...], ...] = ()
    unreadable: tuple[Unreadable, ...] = ()
    ranks: tuple[int, ...] = ()


def entries_of(
    paths: Sequence[Path],
    *,
    ranks: Collection[int] | None = None,
    groups: Sequence[str] = (),
    last: int = 0,
    limits: Limits | None = None,
) -> Entries:
    """The entries of `ranks` (None: all) in the dumps under `paths`, the `last` of each (0: all).

    `paths` are files, folders and archives, `groups` names or descriptions. Of very many ranks each has fewer
    entries, so that all together stay below 400,000; of several dumps of one rank the newest is listed. Files
    are read in processes under limits, as for the analysis; nothing in them raises here.
    """
    limits = limits or Limits()
    with unpacked(paths, limits) as found:
        listed = _listed(found.paths, ranks, groups, last, limits)
        listings = tuple(msgspec.structs.replace(it, file=found.named(it.file)) for it in listed.listings)
        unreadable = [Unreadable(found.named(it.file), it.why) for it in listed.unreadable]
        return replace(listed, listings=listings, unreadable=(*found.unreadable, *unreadable))


def _listed(
    paths: Sequence[Path], ranks: Collection[int] | None, groups: Sequence[str], last: int, limits: Limits
) -> Entries:
    jobs, sizes, refused = jobs_in(paths, limits)
    there = tuple(sorted({job.rank for job in jobs}))
    asked = [pair for pair in zip(jobs, sizes, strict=True) if ranks is None or pair[0].rank in ranks]
    most = _MOST_TOGETHER // max(1, len(asked))
    wanted = Wanted(tuple(groups), min(last, most) if last > 0 else most)
    asked = [(msgspec.structs.replace(job, wanted=wanted), size) for job, size in asked]
    replies = read_all([job for job, _ in asked], [size for _, size in asked], limits)
    listings = [reply.listing for reply in replies if reply.listing]
    newest, older = _newest(listings)
    unreadable = [Unreadable(shown(path), why) for path, why in refused.items()] if ranks is None else []
    unreadable += [
        Unreadable(shown(Path(os.fsdecode(job.path))), reply.why or "not read")
        for (job, _), reply in zip(asked, replies, strict=True)
        if reply.listing is None
    ]
    unreadable += [Unreadable(it.file, it.cut) for it in listings if it.cut]
    unreadable += [Unreadable(it.file, f"an older dump of rank {it.rank}, left out") for it in older]
    return replace(_numbered(newest), unreadable=tuple(unreadable), ranks=there)


def _newest(listings: Sequence[Listing]) -> tuple[list[Listing], list[Listing]]:
    by_rank: dict[int, Listing] = {}
    older = []
    for listing in sorted(listings, key=lambda it: (it.newest_ns, it.mtime, it.file)):
        if listing.rank in by_rank:
            older.append(by_rank[listing.rank])
        by_rank[listing.rank] = listing
    return [by_rank[rank] for rank in sorted(by_rank)], older


def _numbered(listings: Sequence[Listing]) -> Entries:
    """With the stacks of all ranks numbered together: most ranks have the same ones."""
    numbers: dict[tuple[str, ...], int] = {}
    renumbered = []
    for listing in listings:
        places = [numbers.setdefault(frames, len(numbers)) for frames in listing.stacks]
        entries = tuple(
            entry if entry.stack is None else msgspec.structs.replace(entry, stack=places[entry.stack])
            for entry in listing.entries
        )
        renumbered.append(msgspec.structs.replace(listing, entries=entries, stacks=()))
    return Entries(tuple(renumbered), tuple(numbers))
