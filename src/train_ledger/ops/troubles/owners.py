"""Whose is a trouble: which rank's, on which host, and when on the run's clock?

As the run's own files say; what they do not say stays as it was told.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

from train_ledger.ledger import RunState
from train_ledger.ops.evidence.gpu_faults import on_one_host
from train_ledger.ops.evidence.outside import raised_as_ended
from train_ledger.ops.troubles.trouble import Trouble

__all__ = ["with_owners"]

_TOGETHER_S = 60.0
_OF_TRAINING = re.compile(r"\((?:python|pt_|torchrun|deepspeed)")


def with_owners(found: Iterable[Trouble], state: RunState) -> Iterator[Trouble]:
    """The troubles with the rank and host that the run's own files know of, and on the run's clock."""
    return _on_clock((_placed(it, state) for it in found), state)


def _placed(it: Trouble, state: RunState) -> Trouble:
    if it.rank is None and it.host is not None:
        own = _ranks_of(it, state)
        if len(own) == 1:
            it = replace(it, rank=own.pop())
    if _is_strangers(it, state):
        it = replace(it, weight="sign")
    known = state.ranks.get(it.rank) if it.rank is not None else None
    is_told = known is not None and known.host not in (None, "localhost")
    return replace(it, host=known.host) if it.host is None and is_told and known else it


def _ranks_of(it: Trouble, state: RunState) -> set[int]:
    """Whose GPU, or else process, is spoken of on its host."""
    there = [rank for rank in state.ranks.values() if on_one_host(it.host, rank.host)]
    if it.pci is None:
        return {rank.rank for rank in there if it.pid is not None and rank.pid == it.pid}
    gpus = [gpu for gpu in state.gpus if gpu.pci == it.pci and on_one_host(it.host, gpu.host)]
    own = {rank.rank for rank in there if rank.pci and rank.pci.lower().startswith(it.pci)}
    return own.union(*(gpu.ranks for gpu in gpus))


def _is_strangers(it: Trouble, state: RunState) -> bool:
    """Whether the kernel killed what is no rank, nor by its name may be one of which no number is known.

    Memory was short on that host, and that is all that it says.
    """
    if it.rank is not None or it.kind != "killed" or it.pid is None:
        return False
    there = [rank for rank in state.ranks.values() if on_one_host(it.host, rank.host)]
    are_known = bool(there) and all(rank.pid is not None for rank in there)
    return are_known or _OF_TRAINING.search(it.said) is None


def _on_clock(found: Iterable[Trouble], state: RunState) -> Iterator[Trouble]:
    """Times of the current attempt are told on the run's clock; who raised as it was ended is a victim."""
    if state.by_logs:  # what is known of its ranks is what the logs told
        yield from found
        return
    as_ended = raised_as_ended(state)
    for it in found:
        rank = state.ranks.get(it.rank) if it.rank is not None else None
        is_now = rank is not None and it.kind in ("exception", "oom") and rank.raised_t is not None
        if is_now and rank and it.t is not None and abs((rank.raised_t or 0.0) - it.t) < _TOGETHER_S:
            it = replace(it, t=rank.raised_t, earliest_t=rank.raised_t)
            if it.rank in as_ended:
                it = replace(it, weight="victim")
        yield it
