"""Of which rank's GPU does the kernel of a host speak?

A fault is of a rank where host and PCI address are that rank's, or the process id is; of nobody else. Faults
on hosts and GPUs of no rank of the run accuse nobody.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from train_ledger.config import Xid
from train_ledger.hang import RankKnowledge
from train_ledger.hang.knowledge import GpuFault
from train_ledger.ledger import RankState, xid
from train_ledger.ledger.xids import level_here
from train_ledger.render import harmless
from train_ledger.sources import KernelFault, pci_address

__all__ = ["on_one_host", "with_faults"]

_SHOWN = 4
_EARLIEST_S = 24 * 3600.0
_BURST_S = 60.0
_BEFORE_S = 90.0
"""Clocks of hosts differ, and the step during which a GPU fell may still have been written down."""
_MOST_OF_ONE = 8


def with_faults(
    known: Mapping[int, RankKnowledge],
    kernel: Sequence[KernelFault],
    ranks: Mapping[int, RankState],
    t: float | None,
    since_t: float | None = None,
    overrides: Xid | None = None,
) -> tuple[dict[int, RankKnowledge], tuple[str, ...]]:
    """What was known of each rank with the faults of its GPU; and in words, faults that are of no rank.

    `t` is the moment that is asked about (unix seconds): what happened more than a day before it is left out.
    What was well over before `since_t`, when the run last made a step, or is of a time that is not known, is
    told and stops nobody now: its level is no more than record. `overrides` are the levels that the user set.
    """
    recent = [it for it in kernel if t is None or it.t is None or t - _EARLIEST_S <= it.t]
    recent.sort(key=lambda it: it.t if it.t is not None else -1.0)
    times = _bursts(recent)
    found = dict(known)
    of_nobody: Counter[str] = Counter()
    is_one_host = len({it.host for it in ranks.values()}) == 1
    for fault in _latest(recent):
        rank = _rank_of(fault, ranks, is_one_host)
        if rank is None or (fault.code is None and _was_before(fault, since_t)):
            of_nobody[_name(fault)] += 1  # what was killed before the last step had that process id before
        elif fault.code is None:
            found[rank] = replace(found.get(rank) or RankKnowledge(rank), no_memory=True, gone=True)
        else:
            it = found.get(rank) or RankKnowledge(rank, host=ranks[rank].host)
            said = _said(fault, times[_key(fault)], since_t, overrides or Xid())
            if said not in it.gpu_faults:
                found[rank] = replace(it, gpu_faults=(*it.gpu_faults, said))
    return found, tuple(_strangers(of_nobody))


def _key(fault: KernelFault) -> tuple[str | None, str | None, int | None]:
    return fault.host, fault.pci, fault.code


def _bursts(faults: Iterable[KernelFault]) -> Counter[tuple[str | None, str | None, int | None]]:
    """How often each GPU had each code: one crash writes many lines within moments."""
    counted: Counter[tuple[str | None, str | None, int | None]] = Counter()
    last_t: dict[tuple[str | None, str | None, int | None], float] = {}
    for it in faults:
        t = it.t if it.t is not None else 0.0
        if _key(it) not in last_t or t - last_t[_key(it)] >= _BURST_S:
            counted[_key(it)] += 1
        last_t[_key(it)] = t
    return counted


def _latest(faults: Sequence[KernelFault]) -> list[KernelFault]:
    """The last few of each GPU and code, in their order; the rest says the same."""
    kept: list[KernelFault] = []
    seen: Counter[tuple[str | None, str | None, int | None]] = Counter()
    for it in reversed(faults):
        seen[_key(it)] += 1
        if seen[_key(it)] <= _MOST_OF_ONE:
            kept.append(it)
    return kept[::-1]


def _said(fault: KernelFault, times: int, since_t: float | None, overrides: Xid) -> GpuFault:
    code = fault.code or 0
    level = level_here(code, fault.text, times=times, overrides=overrides)
    if level == "page" and (fault.t is None or _was_before(fault, since_t)):
        level = "record"
    return GpuFault(code, xid(code).meaning, level, fault.pci, fault.t, fault.text)


def _was_before(fault: KernelFault, since_t: float | None) -> bool:
    return fault.t is not None and since_t is not None and fault.t < since_t - _BEFORE_S


def _rank_of(fault: KernelFault, ranks: Mapping[int, RankState], is_one_host: bool) -> int | None:
    there = [it for it in ranks.values() if on_one_host(fault.host, it.host, is_one_host=is_one_host)]
    if fault.pci is None:
        return next((it.rank for it in there if it.pid == fault.pid), None)
    by_address = [it.rank for it in there if it.pci and pci_address(it.pci) == fault.pci]
    if by_address:
        return by_address[0]
    unplaced = [it for it in there if not it.pci]
    return next((it.rank for it in unplaced if fault.pid is not None and it.pid == fault.pid), None)


def on_one_host(of_fault: str | None, of_rank: str | None, *, is_one_host: bool = False) -> bool:
    """Whether both are one host; a log that names none is of the only host there is."""
    if of_fault is None:
        return is_one_host
    if of_rank is None:
        return False
    one, other = of_fault.lower(), of_rank.lower()
    is_short = "." not in one or "." not in other
    return one == other or (is_short and one.partition(".")[0] == other.partition(".")[0])


def _name(fault: KernelFault) -> str:
    if fault.code is None:
        return (
            f"process {fault.pid} killed for want of memory on {harmless(fault.host or 'a host', longest=60)}"
        )
    place = " on ".join(harmless(it, longest=60) for it in (fault.pci, fault.host) if it)
    return f"XID {fault.code} of {place}"


def _strangers(of_nobody: Counter[str]) -> Iterator[str]:
    if of_nobody:
        shown = ", ".join(name for name, _ in of_nobody.most_common(_SHOWN))
        more = f" and {len(of_nobody) - _SHOWN} more" if len(of_nobody) > _SHOWN else ""
        yield f"kernel log: {shown}{more}: on no GPU or process that is known to be of this run"
