"""Of which rank's GPU does the kernel of a host speak?

A fault is of a rank where host and PCI address are that rank's, or the process id is; of nobody else. Faults
on hosts and GPUs of no rank of the run accuse nobody.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from train_ledger.hang import RankKnowledge
from train_ledger.hang.knowledge import GpuFault
from train_ledger.ledger import RankState, xid, xid_level
from train_ledger.render import harmless
from train_ledger.sources import KernelFault, pci_address

__all__ = ["with_faults"]

_SHOWN = 4
_EARLIEST_S = 24 * 3600.0


def with_faults(
    known: Mapping[int, RankKnowledge],
    kernel: Sequence[KernelFault],
    ranks: Mapping[int, RankState],
    t: float | None,
) -> tuple[dict[int, RankKnowledge], tuple[str, ...]]:
    """What was known of each rank with the faults of its GPU; and in words, faults that are of no rank.

    `t` is the moment that is asked about (unix seconds): what happened more than a day before it is left out.
    """
    recent = [it for it in kernel if t is None or it.t is None or t - _EARLIEST_S <= it.t]
    times = Counter((it.host, it.pci, it.code) for it in recent)
    found = dict(known)
    of_nobody: Counter[str] = Counter()
    for fault in recent:
        rank = _rank_of(fault, ranks)
        if rank is None:
            of_nobody[_name(fault)] += 1
        elif fault.code is None:
            found[rank] = replace(found.get(rank) or RankKnowledge(rank), no_memory=True, gone=True)
        else:
            it = found.get(rank) or RankKnowledge(rank, host=ranks[rank].host)
            said = _said(fault, times[fault.host, fault.pci, fault.code])
            if said not in it.gpu_faults:
                found[rank] = replace(it, gpu_faults=(*it.gpu_faults, said))
    return found, tuple(_strangers(of_nobody))


def _said(fault: KernelFault, times: int) -> GpuFault:
    code = fault.code or 0
    level = xid_level(code, fault.text, times=times)
    return GpuFault(code, xid(code).meaning, level, fault.pci, fault.t, fault.text)


def _rank_of(fault: KernelFault, ranks: Mapping[int, RankState]) -> int | None:
    there = [it for it in ranks.values() if _on(fault.host, it.host, ranks.values())]
    if fault.pci is None:
        return next((it.rank for it in there if it.pid == fault.pid), None)
    by_address = [it.rank for it in there if it.pci and pci_address(it.pci) == fault.pci]
    if by_address:
        return by_address[0]
    unplaced = [it for it in there if not it.pci]
    return next((it.rank for it in unplaced if fault.pid is not None and it.pid == fault.pid), None)


def _on(of_fault: str | None, of_rank: str | None, ranks: Iterable[RankState]) -> bool:
    """Whether both are one host; a log that names none is of the only host there is."""
    if of_fault is None:
        return len({it.host for it in ranks}) == 1
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
