"""What do the statements in logs add up to for each rank?

A statement is of a rank by its line's front or its file. One that only knows its rank within a group is
placed where that can be but one rank; ranks within a group are taken for global ones only as far as the
group's own reports show that they are.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from train_ledger.hang import RankKnowledge
from train_ledger.hang.knowledge import OTHER_GROUP, Brought, TimedOut
from train_ledger.ops.evidence.no_dump import reason_of
from train_ledger.ops.evidence.outside import FROM_OUTSIDE
from train_ledger.sources import Ended, LogReading, Raised, Said

__all__ = ["known_by_logs"]

_DEFAULT = "0"
_AT = re.compile(r'File "([^"]{1,500})", line (\d{1,9})')
_LARGEST_RANK = 1 << 20


def known_by_logs(
    reading: LogReading, known: Mapping[int, RankKnowledge], world_size: int | None
) -> dict[int, RankKnowledge]:
    """What was known of each rank, and what the logs add; ranks that only logs name are added."""
    said = _placed(reading.said)
    by_rank: dict[int, list[Said]] = {}
    for it in said:
        if it.rank is not None and 0 <= it.rank < _LARGEST_RANK:
            by_rank.setdefault(it.rank, []).append(it)
    found = dict(known)
    for rank in {*by_rank, *reading.written_t, *_ranks_of(reading.raised), *_ranks_of(reading.ended)}:
        if 0 <= rank < _LARGEST_RANK:
            found[rank] = replace(found.get(rank) or RankKnowledge(rank), has_log=True)
    _add_ends(found, reading)
    for rank, its in by_rank.items():
        found[rank] = _of_rank(found[rank], its)
    for rank, t in reading.written_t.items():
        found[rank] = replace(found[rank], log_t=t)
    _add_mismatches(found, [it for it in said if it.kind == "mismatch"])
    _add_barriers(found, [it for it in said if it.kind == "barrier"], world_size)
    return _with_reasons(found, by_rank, said)


def _ranks_of(facts: Iterable[Raised | Ended]) -> set[int]:
    return {it.rank for it in facts if it.rank is not None}


def _placed(said: Sequence[Said]) -> list[Said]:
    """Statements with their rank and group, where a neighbour tells what their own line does not."""
    placed = [replace(it, rank=it.rank_in_group) if _is_global(it) else it for it in said]
    if not any(it.rank is not None for it in placed if it.kind == "timeout"):
        seen = Counter(it.rank_in_group for it in placed if it.kind == "timeout")
        if seen and max(seen.values()) == 1:  # one group alone reports, each of its ranks once
            placed = [replace(it, rank=it.rank_in_group) if it.kind == "timeout" else it for it in placed]
    groups: dict[tuple[int | None, int | None], set[str]] = {}
    for it in placed:
        if it.kind in ("failure", "timeout") and it.group is not None:
            groups.setdefault((it.rank, it.seq), set()).add(it.group)
    return [_in_its_group(it, groups) if it.kind == "timeout" else it for it in placed]


def _is_global(it: Said) -> bool:
    return it.rank is None and (it.desc == "default_pg" or (it.group == _DEFAULT and it.desc is None))


def _in_its_group(it: Said, groups: Mapping[tuple[int | None, int | None], set[str]]) -> Said:
    if it.group is not None:
        return it
    named = groups.get((it.rank, it.seq), set())
    if len(named) == 1:
        return replace(it, group=next(iter(named)))
    is_other = bool(named) or it.rank_in_group not in (None, it.rank)
    return replace(it, group=OTHER_GROUP) if is_other else it


def _of_rank(rank: RankKnowledge, said: Sequence[Said]) -> RankKnowledge:
    kinds = {it.kind for it in said}
    asked = [it.last_enqueued for it in said if it.kind == "dump_asked" and it.group in (None, _DEFAULT)]
    enqueued = max((number for number in asked if number is not None and number >= 0), default=None)
    return replace(
        rank,
        timed_out=_timed_out(said),
        enqueued=enqueued,
        stuck="stuck" in kinds,
        no_gil="no_gil" in kinds,
    )


def _timed_out(said: Sequence[Said]) -> tuple[TimedOut, ...]:
    """One report a group and number: one line names the operation, the next one its group."""
    timeouts = [it for it in said if it.kind == "timeout"]
    failures = [it for it in said if it.kind == "failure"]
    told = {it.seq: it for it in timeouts}
    placed = {it.seq for it in failures}
    found: dict[tuple[str | None, int | None], TimedOut] = {}
    for it in [*(it for it in timeouts if it.group != OTHER_GROUP or it.seq not in placed), *failures]:
        what = told.get(it.seq, it)
        timeout_s = what.timeout_ms / 1000 if what.timeout_ms is not None else None
        report = TimedOut(it.seq, what.op, it.group, timeout_s, it.t, it.source)
        found.setdefault((it.group, it.seq), report)
    return tuple(sorted(found.values(), key=lambda it: (it.seq is None, it.seq or 0, str(it.group))))


def _add_ends(found: dict[int, RankKnowledge], reading: LogReading) -> None:
    """Exceptions and exit statuses, where the run's own signals say nothing of them."""
    failed = {it.rank for it in reading.ended if it.code > 0}
    for raised in reading.raised:
        if not (raised.ended_its_rank or raised.rank in failed):
            continue  # caught, and gone on from
        if raised.rank in found and found[raised.rank].exception is None:
            at = _AT.search(raised.frame or "")
            place = f" (at {at[1].rpartition('/')[2]}:{at[2]})" if at else ""
            it = found[raised.rank]
            found[raised.rank] = replace(
                it,
                exception=raised.exception + place,
                raised_in=raised.source,
                raised_as_ended=it.signal in FROM_OUTSIDE,  # its own lines say that, and of no exception
            )
    for end in reading.ended:
        if end.rank not in found:
            continue
        it = found[end.rank]
        found[end.rank] = replace(
            it,
            gone=True,
            signal=it.signal if it.signal is not None else (-end.code if -65 < end.code < 0 else None),
            exit_code=end.code if end.code >= 0 else None,
            failed_first=end.first,
            host=it.host or end.host,
        )


def _add_mismatches(found: dict[int, RankKnowledge], said: Sequence[Said]) -> None:
    own = {it.rank: it for it in said if it.rank is not None}
    brought = {rank: it.brought[0] for rank, it in own.items()}
    surely_global = max((rank for rank, it in own.items() if it.rank_in_group == rank), default=-1)
    if all(it.rank_in_group == rank for rank, it in own.items()):
        for it in said:
            for other in it.brought[1:]:
                if other.rank < surely_global:
                    brought.setdefault(other.rank, other)
    for rank, what in brought.items():
        words = Brought(what.op, what.seq, what.shape, what.dtypes)
        found[rank] = replace(found.get(rank) or RankKnowledge(rank), brought=words)


def _add_barriers(found: dict[int, RankKnowledge], said: Sequence[Said], world_size: int | None) -> None:
    """Ranks count within the group; below one that reports under its global number they are global, too."""
    own = {it.rank: it.rank_in_group for it in said if it.rank is not None}
    missed = {rank for it in said for rank in it.others}
    if not missed or any(rank != inside for rank, inside in own.items()):
        return
    heard = {*own, *missed}
    whole = len(heard) == (world_size if world_size is not None else max(heard) + 1)
    for rank in missed:
        if whole or rank < max(own, default=-1):
            found[rank] = replace(found.get(rank) or RankKnowledge(rank), missed_barrier=True)


def _with_reasons(
    found: Mapping[int, RankKnowledge], by_rank: Mapping[int, Sequence[Said]], said: Sequence[Said]
) -> dict[int, RankKnowledge]:
    asked = any(it.kind in ("dump_asked", "dump_begun") for it in said)
    pairs = (it.text.partition("=") for it in said if it.kind == "setting" and it.text)
    settings = {name: value for name, _, value in pairs}
    return {
        rank: replace(
            it,
            no_dump=reason_of(by_rank.get(rank, ()), it, others_were_asked=asked, settings=settings),
        )
        for rank, it in found.items()
    }
