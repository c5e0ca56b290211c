"""How fast do neighbouring nodes reduce and gather, and are the sums right?

Every node with the next one, even pairs first and odd pairs after, so that all of them talk as they will in
training and it takes no longer on a thousand nodes. On one node its ranks are taken pair by pair.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

__all__ = ["bus_bandwidth", "measure", "neighbours"]

_CPU_ELEMENTS, _CPU_TIMES = 1 << 20, 6
_GPU_ELEMENTS, _GPU_TIMES = 1 << 26, 20
_WARM_UP_TIMES = 2


def neighbours(hosts: Sequence[str]) -> list[tuple[tuple[str, str], tuple[int, ...]]]:
    """The names and the ranks of each pair of neighbours, by the host of each rank.

    >>> neighbours(["a", "a", "b", "b"])
    [(('a', 'b'), (0, 1, 2, 3))]
    >>> neighbours(["a", "a", "a"])
    [(('rank 0', 'rank 1'), (0, 1)), (('rank 1', 'rank 2'), (1, 2))]
    """
    named = list(dict.fromkeys(hosts))
    units = {host: tuple(rank for rank, it in enumerate(hosts) if it == host) for host in named}
    if len(named) == 1:
        units = {f"rank {rank}": (rank,) for rank in range(len(hosts))}
    names = list(units)
    return [((one, two), units[one] + units[two]) for one, two in pairwise(names)]


def bus_bandwidth(op: str, bytes_moved: int, ranks: int, seconds: float) -> float:
    """Bytes per second that each link has to carry, whatever the number of ranks.

    `bytes_moved` is the size of the whole tensor: what is reduced, or what everybody has gathered.

    >>> bus_bandwidth("all_reduce", 1000, 4, 1.0), bus_bandwidth("all_gather", 1000, 4, 1.0)
    (1500.0, 750.0)
    """
    share = (ranks - 1) / ranks
    return bytes_moved / seconds * (2 * share if op == "all_reduce" else share)


def measure(hosts: Sequence[str], rank: int, device: torch.device) -> list[dict[str, Any]]:
    """What this rank measured with its neighbours: pair, op, bytes/s, and whether the result was right.

    Of each pair its first rank tells.
    """
    import torch.distributed as dist

    found: list[dict[str, Any]] = []
    pairs = neighbours(hosts)
    for parity in (0, 1):
        for names, ranks in pairs[parity::2]:
            if rank not in ranks:
                continue
            group = dist.new_group(list(ranks), use_local_synchronization=True)
            told = [_of_op(op, ranks, group, rank, device) for op in ("all_reduce", "all_gather")]
            found += [{"pair": list(names), **it} for it in told if rank == ranks[0] or not it["right"]]
            dist.destroy_process_group(group)
        dist.barrier()
    return found


def _of_op(op: str, ranks: tuple[int, ...], group: Any, rank: int, device: torch.device) -> dict[str, Any]:
    import torch

    elements, times = (_GPU_ELEMENTS, _GPU_TIMES) if device.type == "cuda" else (_CPU_ELEMENTS, _CPU_TIMES)
    own = torch.full(
        (elements // len(ranks),) if op == "all_gather" else (elements,), float(rank + 1), device=device
    )
    out = torch.zeros(elements // len(ranks) * len(ranks), device=device)
    seconds, right = (_reduced if op == "all_reduce" else _gathered)(own, out, ranks, group, times, device)
    size = (own if op == "all_reduce" else out).numel() * 4
    return {"op": op, "bytes_per_s": bus_bandwidth(op, size, len(ranks), seconds), "right": right}


def _reduced(
    own: Any, _: Any, ranks: tuple[int, ...], group: Any, times: int, device: torch.device
) -> tuple[float, bool]:
    import torch.distributed as dist

    probe = own[:1024].clone()
    dist.all_reduce(probe, group=group)
    expected = float(sum(rank + 1 for rank in ranks))
    own.zero_()  # sums of sums would leave the range of a float
    seconds = _timed(lambda: dist.all_reduce(own, group=group), times, device, group)
    return seconds, bool((probe == expected).all().item())


def _gathered(
    own: Any, out: Any, ranks: tuple[int, ...], group: Any, times: int, device: torch.device
) -> tuple[float, bool]:
    import torch
    import torch.distributed as dist

    seconds = _timed(lambda: dist.all_gather_into_tensor(out, own, group=group), times, device, group)
    parts = torch.split(out, own.numel())
    in_order = sorted(ranks)
    return seconds, all(
        bool((part == rank + 1).all().item()) for rank, part in zip(in_order, parts, strict=True)
    )


def _timed(operation: Callable[[], Any], times: int, device: torch.device, group: Any) -> float:
    import torch
    import torch.distributed as dist

    for _ in range(_WARM_UP_TIMES):
        operation()
    _finish(device)
    dist.barrier(group)
    began = time.perf_counter()
    for _ in range(times):
        operation()
    _finish(device)
    took = torch.tensor([(time.perf_counter() - began) / times], device=device)
    dist.all_reduce(took, op=dist.ReduceOp.MAX, group=group)
    return float(took.item())


def _finish(device: torch.device) -> None:
    import torch

    if device.type == "cuda":
        torch.cuda.synchronize(device)
