"""Is a gradient that was changed on one rank alone found?

Replicas that are trained by the same gradients have the same bits. A checksum of each, compared over the
ranks, finds the one that has not, and with three or more the majority says which one it is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from train_ledger.chaos.preflight.trainee import Trainee

if TYPE_CHECKING:
    import torch

__all__ = ["odd_ones", "tampered"]

_BIT = 1 << 20
"""Of the mantissa: the gradient stays a plausible number."""


def odd_ones(checksums: Sequence[int]) -> tuple[int, ...]:
    """The ranks whose checksum is not the one that most have; all of them where no majority has one.

    >>> odd_ones([7, 7, 9, 7]), odd_ones([7, 7, 7]), odd_ones([7, 9])
    ((2,), (), (0, 1))
    """
    usual, count = Counter(checksums).most_common(1)[0]
    if 2 * count <= len(checksums):
        return tuple(range(len(checksums)))
    return tuple(rank for rank, it in enumerate(checksums) if it != usual)


def tampered(trainee: Trainee, culprit: int, device: torch.device) -> dict[str, Any]:
    """Flip one bit of one gradient on rank `culprit`; who stood out before, and who does after the step."""
    import torch.distributed as dist

    before = odd_ones(_of_all(trainee, device))
    trainee.step(lambda: _flip_bit(trainee) if dist.get_rank() == culprit else None)
    return {"planted": culprit, "before": list(before), "after": list(odd_ones(_of_all(trainee, device)))}


def _flip_bit(trainee: Trainee) -> None:
    """In the largest of the last gradients, which is no zero."""
    import torch

    gradient = [it.grad for it in trainee.model.parameters() if it.grad is not None][-1]
    flat = gradient.flatten()
    place = int(flat.abs().argmax().item())
    bits = flat[place : place + 1].view(torch.int32)
    gradient.view(-1)[place] = (bits ^ _BIT).view(torch.float32)[0]


def _of_all(trainee: Trainee, device: torch.device) -> list[int]:
    import torch
    import torch.distributed as dist

    total = torch.zeros(1, dtype=torch.int64, device=device)
    for place, parameter in enumerate(trainee.model.parameters(), start=1):
        bits = parameter.detach().reshape(-1).view(torch.int32).long()
        total += (
            bits * torch.arange(1, bits.numel() + 1, device=device)
        ).sum() * place  # wraps, which is fine
    gathered = torch.zeros(dist.get_world_size(), dtype=torch.int64, device=device)
    dist.all_gather_into_tensor(gathered, total)
    return [int(it) for it in gathered.tolist()]
