"""Is it hardware that hangs the run?

A fault of the kind that stops work, on the GPU of a rank of this run, at about the time when the steps ended,
is the cause of the hang that it made, whoever was first seen to be missing. What ranks brought to a
collective no GPU decides: a mismatch stays one.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from train_ledger.answer import Diagnosis, HangAnswer, NextCommand, RuledOut
from train_ledger.hang import RankKnowledge
from train_ledger.hang.knowledge import GpuFault
from train_ledger.hang.verdict.rank_lines import gpu_line
from train_ledger.ledger import RunState, xid
from train_ledger.ops.hosts import is_host

__all__ = ["with_hardware"]

_TOGETHER_S = 60.0
_WAITING = ("hang.", "unknown")


@dataclass(frozen=True, slots=True)
class _Failed:
    rank: RankKnowledge
    fault: GpuFault
    t: float


def with_hardware(
    diagnosis: Diagnosis,
    known: Mapping[int, RankKnowledge],
    state: RunState,
    has_kernel_logs: bool,
    fallen_t: float | None = None,
) -> Diagnosis:
    """The diagnosis of a hang, or the hardware that caused it; what was seen or not of hardware is said.

    By `fallen_t` (unix seconds) the run had fallen: what was told of other GPUs after that is what followed.
    """
    failed = sorted(_failed(known, state), key=lambda it: it.t)
    late = [] if fallen_t is None else [it for it in failed if _is_late(it, fallen_t, diagnosis)]
    failed = [it for it in failed if it not in late]
    if late:
        said = dict.fromkeys(f"after it had fallen: {gpu_line(it.rank, it.fault)}" for it in late[:2])
        diagnosis = replace(diagnosis, evidence=(*diagnosis.evidence, *said))
    if not failed and late:
        return diagnosis
    if not failed:
        return _nothing_found(diagnosis) if has_kernel_logs else diagnosis
    if not diagnosis.cause.startswith(_WAITING) or diagnosis.cause == "hang.mismatch":
        lines = (gpu_line(it.rank, it.fault) for it in failed[:2])
        return replace(diagnosis, evidence=(*diagnosis.evidence, *lines))
    of_culprits = [it for it in failed if it.rank.rank in diagnosis.ranks]
    named = of_culprits or [it for it in failed if it.t <= failed[0].t + _TOGETHER_S]
    told = dict.fromkeys(gpu_line(it.rank, it.fault) for it in named)
    return replace(
        diagnosis,
        cause="hardware.xid",
        ranks=tuple(sorted({it.rank.rank for it in named})),
        confidence="high" if of_culprits or _fits(diagnosis) else "medium",
        evidence=(*told, *(line for line in diagnosis.evidence if line not in told)),
        next=tuple(_next(named)),
    )


def _is_late(it: _Failed, fallen_t: float, diagnosis: Diagnosis) -> bool:
    """Who fell by itself may have fallen of it: kernels write such lines later than a program its own."""
    return it.t > fallen_t + (_TOGETHER_S if it.rank.rank in diagnosis.ranks else 0.0)


def _failed(known: Mapping[int, RankKnowledge], state: RunState) -> Iterator[_Failed]:
    for rank in known.values():
        for fault in rank.gpu_faults:
            if fault.level == "page" and fault.t is not None and fault.t <= state.t:
                yield _Failed(rank, fault, fault.t)


def _fits(diagnosis: Diagnosis) -> bool:
    """Whether dumps say what a dead GPU looks like: a GPU that does not finish, or all came and none did."""
    return isinstance(diagnosis.details, HangAnswer) and diagnosis.details.kind in (
        "completion_laggard",
        "no_mismatch",
    )


def _nothing_found(diagnosis: Diagnosis) -> Diagnosis:
    by = "the kernel logs that were read tell of no fault that stops a GPU of this run at that time"
    return replace(diagnosis, ruled_out=(*diagnosis.ruled_out, RuledOut("hardware.xid", by)))


def _next(failed: Sequence[_Failed]) -> Iterator[NextCommand]:
    seen: set[tuple[str | None, int]] = set()
    for it in failed:
        if (it.rank.host, it.fault.code) in seen or len(seen) >= 2:
            continue
        if it.rank.host and not is_host(it.rank.host):
            continue  # ssh would take it for an option
        seen.add((it.rank.host, it.fault.code))
        where = f"on {it.rank.host}: " if it.rank.host else ""
        look = f"nvidia-smi -i {it.fault.pci} -q -d ECC,PERFORMANCE,ROW_REMAPPER; sudo dmesg -T | grep -i xid"
        command = f"ssh {shlex.quote(it.rank.host)} {shlex.quote(look)}" if it.rank.host else look
        yield NextCommand(f"{where}{xid(it.fault.code).action}; the state of that GPU now", command)
