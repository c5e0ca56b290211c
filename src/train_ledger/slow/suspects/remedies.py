"""What is done about it?"""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["PART_OF_PHASE", "remedy"]

PART_OF_PHASE: Mapping[str, str] = {
    "data": "slow.data",
    "logging": "slow.logging",
    "gc": "slow.gc",
    "checkpoint": "slow.checkpoint",
}
"""Parts of a rank's own work that have a suspect of their own."""

_REMEDIES: Mapping[str, str] = {
    "slow.straggler.clock": "take the host out of the run and have its cooling and power looked at; restart "
    "from the last checkpoint without it",
    "slow.straggler.link": "take the host out of the run; have the cable, the port or the bridge changed",
    "slow.straggler.software": "look where that process spends its time beside a peer's: logging, locks, "
    "synchronising calls, a neighbour on its cores; pin its cores, or move it to another host",
    "slow.stage_imbalance": "move layers away from the slow stage, or its share of embedding and loss",
    "slow.sequence_imbalance": "pack or bucket the sequences, so that all ranks have as much to do in a step",
    "slow.data": "more loader workers, prefetch further, tokenize offline; look at the storage it reads from",
    "slow.fragmentation": "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True at the next start; fixed shapes; "
    "no large temporary tensors whose size changes from step to step",
    "slow.logging": "warn on rank 0 alone, and each warning once; fewer lines a step; a handler with a queue",
    "slow.checkpoint": "look at the storage; save asynchronously, less often, or fewer copies",
    "slow.gc": "gc.disable() after the start, and gc.collect() on all ranks in the same step, every so often",
    "slow.host_memory": "find what grows (tracemalloc; caches of data or metrics) before the host swaps",
    "slow.communication": "look at the network: ports, switches, other jobs on it; compare two traces",
}


def remedy(cause: str, phase: str | None = None, *, unread: bool = False) -> str | None:
    """What is to be done; of few ranks whose host code is slow, by the part of it that is.

    `unread`: it may as well be their cards, which nobody read.
    """
    if cause == "slow.straggler.software" and phase is not None and phase in PART_OF_PHASE:
        return f"on that rank: {_REMEDIES[PART_OF_PHASE[phase]]}"
    if cause == "slow.straggler.software" and unread:
        return f"first see clocks, power and heat of these cards, which nobody read; then {_REMEDIES[cause]}"
    return _REMEDIES.get(cause)
