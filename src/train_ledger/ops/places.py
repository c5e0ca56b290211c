"""On which hosts and GPUs do these ranks run?"""

from __future__ import annotations

from collections.abc import Iterable

from train_ledger.ledger import RunState

__all__ = ["gpus_of", "hosts_of"]


def hosts_of(state: RunState, ranks: Iterable[int]) -> tuple[str, ...]:
    """Their hosts' names, as far as they are known."""
    found = {it.host for rank in ranks if (it := state.ranks.get(rank)) and it.host}
    return tuple(sorted(found))


def gpus_of(state: RunState, ranks: Iterable[int]) -> tuple[str, ...]:
    """Their GPUs' UUIDs, else their PCI addresses."""
    found = {it.uuid or it.pci for rank in ranks if (it := state.ranks.get(rank))}
    return tuple(sorted(gpu for gpu in found if gpu))
