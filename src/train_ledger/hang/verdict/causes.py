"""What usually lies behind a finding of this kind, and what mends it?

The table of common causes, in words for the person on call. The kind alone narrows it; where the rank's
stack, its exception, its GPU or what it brought says more, the more particular row is taken.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from train_ledger.hang.knowledge import RankKnowledge
from train_ledger.hang.stacks.stands import Kind, Stand
from train_ledger.hang.verdict.cause_table import (
    BY_KIND,
    BY_STAND,
    DIED,
    EXHAUSTED,
    EXTRA,
    GPU_MEMORY,
    HOLDS_GIL,
    IN_CODE,
    KILLED,
    LAST_BATCH,
    NO_MEMORY,
    OTHER_TENSOR,
    RAN_OUT,
    SKIPPED,
    SWAPPED,
    VARIABLE,
    WATCHDOG_STUCK,
    XID,
    Suspicion,
)

__all__ = ["Shape", "Shift", "Signs", "Suspicion", "is_in_code", "suspect", "suspect_place"]

Shape = tuple[tuple[int, ...], ...]
Shift = Literal["skipped", "extra", "swapped"]


@dataclass(frozen=True, slots=True)
class Signs:
    """What is known of the first culprit when a cause is looked for.

    `stand` is where it stands by its stack, `rank` what signals and logs say of it, `fell` that it died
    first. `sizes` are the input sizes it brought and the usual ones. `shift` tells of a mismatch whether the
    culprit left a call out (what it brought is what the others bring next), issued one too many, or
    issued two in the other order.
    """

    kind: str
    op: str = ""
    others_op: str | None = None
    stand: Stand | None = None
    rank: RankKnowledge | None = None
    fell: bool = False
    sizes: tuple[Shape, Shape] | None = None
    shift: Shift | None = None


def suspect(signs: Signs) -> Suspicion:
    """The row of the table that fits; hardware first, then how it ended, where it stands, what it brought."""
    for look in (_by_gpu, _by_end, _by_stand, _by_what_it_brought):
        if found := look(signs):
            return found
    return BY_KIND[signs.kind]


def suspect_place(kind: Kind) -> Suspicion | None:
    """The row for where a rank stands, where nothing else is known; None for a place that says nothing."""
    return BY_STAND.get(kind)


def is_in_code(cause: str | None) -> bool:
    """Whether a cause, in the words of the table, is one of the code that a few ranks reproduce."""
    return cause in IN_CODE


_STOPPED = ("missing_ranks", "completion_laggard", "p2p_unpaired")
"""Kinds in which where the culprit stands says why; one that brought something else came all the same."""


def _by_gpu(signs: Signs) -> Suspicion | None:
    rank = signs.rank
    if rank is None or signs.kind not in (*_STOPPED, "no_mismatch"):
        return None
    if any(fault.level == "page" for fault in rank.gpu_faults):
        return XID
    return WATCHDOG_STUCK if rank.stuck and not rank.no_gil and not signs.fell else None


def _by_end(signs: Signs) -> Suspicion | None:
    rank = signs.rank
    if rank is not None and rank.no_memory:
        return NO_MEMORY
    if not signs.fell or signs.kind not in _STOPPED:
        return None
    said = (rank.exception or "") if rank else ""
    if said.startswith("StopIteration"):
        return RAN_OUT
    if "OutOfMemoryError" in said or "CUDA out of memory" in said:
        return GPU_MEMORY
    return KILLED if rank is not None and rank.signal == 9 and not said else DIED


def _by_stand(signs: Signs) -> Suspicion | None:
    if signs.kind not in _STOPPED or signs.stand is None:
        return HOLDS_GIL if signs.kind in _STOPPED and signs.rank and signs.rank.no_gil else None
    if signs.stand.kind in BY_STAND:
        return BY_STAND[signs.stand.kind]
    holds = "holds the interpreter's lock" in signs.stand.what
    return HOLDS_GIL if holds or (signs.rank is not None and signs.rank.no_gil) else None


def _by_what_it_brought(signs: Signs) -> Suspicion | None:
    look = _LOOKS.get(signs.kind)
    return look(signs) if look else None


def _of_type(signs: Signs) -> Suspicion | None:
    if signs.op == "barrier" and signs.others_op not in (None, "barrier"):
        return EXHAUSTED
    return {"skipped": SKIPPED, "extra": EXTRA, "swapped": SWAPPED}.get(signs.shift or "")


def _of_size(signs: Signs) -> Suspicion | None:
    if signs.sizes is None:
        return None
    odd, usual = signs.sizes
    if [len(shape) for shape in odd] != [len(shape) for shape in usual]:
        return OTHER_TENSOR
    differing = {
        axis
        for one, other in zip(odd, usual, strict=True)
        for axis, (mine, theirs) in enumerate(zip(one, other, strict=True))
        if mine != theirs
    }
    if all(len(shape) < 2 for shape in odd):
        return None  # a flat buffer: its length says nothing of what is in it
    if len(differing) > 1:
        return OTHER_TENSOR
    return LAST_BATCH if differing == {0} else VARIABLE


_LOOKS: dict[str, Callable[[Signs], Suspicion | None]] = {
    "collective_type_mismatch": _of_type,
    "size_or_syntax_mismatch": _of_size,
}
