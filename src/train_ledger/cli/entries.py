"""How are the entries that ranks recorded shown: to a person, to a script?"""

from __future__ import annotations

import dataclasses
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from train_ledger.answer import ExitCode
from train_ledger.cli.leave import BadInputError

if TYPE_CHECKING:
    from train_ledger.config import Limits
    from train_ledger.hang.dumps.entries import Entries, Entry, Listing
    from train_ledger.render.entries import EntryLine, EntryList

__all__ = ["Chosen", "rank_list", "show_entries"]

_MOST_RANKS = 1 << 20
_RANGE = re.compile(r"(\d{1,7})(?:-(\d{1,7}))?")
_SHAPES = 4


def rank_list(text: str) -> frozenset[int]:
    """The ranks of "5,7-9"; raises typer.BadParameter for what is none."""
    ranks: set[int] = set()
    for part in text.split(","):
        found = _RANGE.fullmatch(part.strip())
        first = int(found[1]) if found else _MOST_RANKS
        last = int(found[2] or first) if found else -1
        if not first <= last < _MOST_RANKS:
            raise typer.BadParameter(f"{part!r} is neither a rank nor a range of ranks like 7-9")
        ranks.update(range(first, last + 1))
    return frozenset(ranks)


@dataclass(frozen=True, slots=True)
class Chosen:
    """Which entries: of which ranks (None: all), of which groups (none: all), the last so many (0: all)."""

    ranks: frozenset[int] | None
    groups: tuple[str, ...]
    last: int


def show_entries(paths: Sequence[Path], chosen: Chosen, limits: Limits, *, json: bool) -> int:
    """List them on standard output; the exit status. Raises BadInputError where the ranks are not there."""
    from train_ledger import render
    from train_ledger.cli.output import show, terminal_width
    from train_ledger.hang.dumps.entries import entries_of
    from train_ledger.render.entries import entries_as_text

    if not paths:
        raise BadInputError("name the dumps whose entries are to be listed, or a run directory that has some")
    found = entries_of(paths, ranks=chosen.ranks, groups=chosen.groups, last=chosen.last, limits=limits)
    _check(found, chosen)
    if json:
        show(render.as_json(_plain(found)))
    else:
        lists = [_list(listing, chosen) for listing in found.listings]
        stacks = [(f"#{place + 1}", frames) for place, frames in enumerate(found.stacks)]
        width, colour = terminal_width(), render.wants_colour(sys.stdout)
        show(entries_as_text(lists, stacks, found.unreadable, width=width, colour=colour))
    return ExitCode.NOTHING_WRONG if found.listings else ExitCode.CANNOT_TELL


def _check(found: Entries, chosen: Chosen) -> None:
    from train_ledger.render import ranks_in_words

    if chosen.ranks is not None and not chosen.ranks.intersection(found.ranks):
        there = f"there are dumps of {ranks_in_words(found.ranks)}" if found.ranks else "there are no dumps"
        raise BadInputError(f"no dump of {ranks_in_words(chosen.ranks)}; {there}")
    if chosen.groups and found.listings and not any(listing.matching for listing in found.listings):
        names = sorted({name for it in found.listings for group in it.groups for name in group if name})
        raise BadInputError(
            f"no entry of group {', '.join(chosen.groups)}; there are {', '.join(names[:20])}"
        )


def _list(listing: Listing, chosen: Chosen) -> EntryList:
    from train_ledger.render.entries import EntryList

    host = f" on {listing.host}" if listing.host else ""
    count = len(listing.entries)
    of_all = f" of {listing.matching}" if listing.matching != count else ""
    how = "--last 0 lists all" if chosen.last else "--ranks with fewer ranks lists all"
    more = f"; {how}" if listing.matching > count else ""
    others = (
        f", {listing.total - listing.matching} of other groups" if listing.matching < listing.total else ""
    )
    backends = "/".join(sorted({entry.op.backend for entry in listing.entries} - {""}))
    entries = f"{backends} entries" if backends else "entries"
    title = f"rank {listing.rank}{host}: {count}{of_all} {entries}{others}{more} ({listing.file})"
    return EntryList(title, tuple(map(_line, listing.entries)))


def _line(entry: Entry) -> EntryLine:
    from train_ledger.render.entries import EntryLine

    op = entry.op
    return EntryLine(
        record=str(op.record),
        group=f"{entry.group} ({entry.desc})" if entry.desc else entry.group,
        seq=f"p2p {op.seq}" if op.source is not None else str(op.seq),
        operation=_operation(entry),
        state=_state(entry),
        created=_time(op.created_ns),
        took=_took(entry),
        thread=entry.thread,
        stack="" if entry.stack is None else f"#{entry.stack + 1}",
        is_pending=not op.done,
    )


def _operation(entry: Entry) -> str:
    op = entry.op
    pair = f" {_peer(op.source)}->{_peer(op.target)}" if op.source is not None else ""
    ins, outs = _tensors(op.input_sizes, op.input_dtypes), _tensors(op.output_sizes, op.output_dtypes)
    moved = ins if ins == outs or not outs else f"{ins or '[]'} to {outs}"
    return f"{op.name}{pair} {moved}".rstrip()


def _peer(rank: int | None) -> str:
    return "any" if rank is None or rank < 0 else str(rank)


def _tensors(sizes: Sequence[Sequence[int]], dtypes: Sequence[str]) -> str:
    shapes = [f"[{', '.join(map(str, shape))}]" for shape in sizes[:_SHAPES]]
    more = [f"… {len(sizes)} tensors"] if len(sizes) > _SHAPES else []
    return " ".join([*shapes, *more, "/".join(sorted(set(dtypes)))]).strip()


def _state(entry: Entry) -> str:
    state = "retired" if entry.op.done and entry.op.state != "completed" else entry.op.state
    return state if entry.is_understood else f"{state} (not understood)"


def _time(created_ns: int) -> str:
    if not 0 < created_ns < 1 << 62:
        return ""
    return datetime.fromtimestamp(created_ns / 1e9, UTC).strftime("%m-%d %H:%M:%S.%f")[:-3]


def _took(entry: Entry) -> str:
    """As measured by the recorder; else between what it saw of start and end."""
    took_ms = entry.duration_ms
    if took_ms is None and entry.completed_ns and entry.started_ns:
        took_ms = (entry.completed_ns - entry.started_ns) / 1e6
    return "" if took_ms is None or took_ms < 0 else f"{took_ms:.3g} ms"


def _plain(found: Entries) -> dict[str, Any]:
    return {
        "ranks": {str(listing.rank): _plain_listing(listing) for listing in found.listings},
        "stacks": {str(place + 1): list(frames) for place, frames in enumerate(found.stacks)},
        "unreadable": [dataclasses.asdict(it) for it in found.unreadable],
    }


def _plain_listing(listing: Listing) -> dict[str, Any]:
    return {
        "file": listing.file,
        "host": listing.host,
        "version": listing.version,
        "total": listing.total,
        "matching": listing.matching,
        "entries": [_plain_entry(entry) for entry in listing.entries],
    }


def _plain_entry(entry: Entry) -> dict[str, Any]:
    op = entry.op
    return {
        "record": op.record,
        "group": entry.group,
        "desc": entry.desc,
        "seq": op.seq,
        "p2p_seq": entry.p2p_seq,
        "backend": op.backend,
        "op": op.name,
        "source": op.source,
        "target": op.target,
        "input_sizes": op.input_sizes,
        "input_dtypes": op.input_dtypes,
        "output_sizes": op.output_sizes,
        "output_dtypes": op.output_dtypes,
        "state": op.state,
        "done": op.done,
        "retired": entry.retired,
        "created_ns": op.created_ns or None,
        "started_ns": entry.started_ns,
        "completed_ns": entry.completed_ns,
        "duration_ms": entry.duration_ms,
        "timeout_ms": entry.timeout_ms,
        "thread": entry.thread,
        "stack": None if entry.stack is None else entry.stack + 1,
        "understood": entry.is_understood,
    }
