"""The same model, cut in three dimensions: tensor-parallel blocks, pipeline stages, data-parallel replicas.

The collectives are those of a real trainer: in a block the partial sums are all_reduced over the
tensor-parallel group, forward and backward; a stage hands its activations on and gets their gradient back;
the data-parallel group sums its gradients and counts its tokens; shards and stages sum what the norm of the
gradients takes. A rank leaves at the small one of its group, of which gloo does not die.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional

from train_ledger.chaos.faults import Meeting
from train_ledger.chaos.layout import Layout
from train_ledger.chaos.plain_job import CONTEXT, HEADS, VOCABULARY, WIDTH

__all__ = ["ShardedJob"]

_Meet = Callable[[str, Meeting], None]


class ShardedJob:
    """One rank's part of the model; `phase` is the monitor's."""

    def __init__(self, layout: Layout, device: torch.device, phase: Callable[[str], Any]) -> None:
        sizes = (layout.pp, layout.dp, layout.tp)
        mesh = dist.init_device_mesh(device.type, sizes, mesh_dim_names=("pp", "dp", "tp"))
        self._groups = {name: mesh.get_group(name) for name in ("pp", "dp", "tp")}
        self._layout, self._device, self._phase = layout, device, phase
        self._stage, self._replica, _ = mesh.get_coordinate()
        self._part = _Part(self._stage, layout, self._groups["tp"]).to(device)
        self._optimizer = torch.optim.AdamW(self._part.parameters(), lr=1e-3)

    @property
    def replica(self) -> int:
        """Which share of the data this rank trains on."""
        return int(self._replica)

    def other(self) -> None:
        """A collective of the step's next group: of the tensor-parallel ranks, else of the replicas."""
        name = next(it for it in ("tp", "dp", "pp") if self._layout.size_of(it) > 1)
        dist.all_reduce(torch.zeros(2, device=self._device), group=self._groups[name])

    def step(self, tokens: torch.Tensor, targets: torch.Tensor, meet: _Meet) -> float:
        """Train on one batch; its loss on the last stage, 0 on the others."""
        with self._phase("forward"):
            entered, left = self._forward(tokens)
            is_last = self._stage == self._layout.pp - 1
            loss = functional.cross_entropy(left.flatten(0, 1), targets.flatten()) if is_last else None
        with self._phase("backward"):
            self._optimizer.zero_grad()
            self._backward(entered, left, loss)
        with self._phase("optimizer"):
            self._reduce_gradients(tokens.numel(), meet)
            self._optimizer.step()
        return 0.0 if loss is None else float(loss.item())

    def _forward(self, tokens: torch.Tensor) -> tuple[torch.Tensor | None, torch.Tensor]:
        entered: torch.Tensor | None = None
        left = tokens
        for stage in range(self._layout.pp):
            if stage == self._stage:
                left = self._part(tokens if entered is None else entered)
            if stage == self._layout.pp - 1:
                continue
            flow = left.detach() if stage == self._stage else self._empty(tokens)
            self._hand(flow, stage, stage + 1)
            if self._stage == stage + 1:
                entered = flow.requires_grad_()
        return entered, left

    def _backward(self, entered: torch.Tensor | None, left: torch.Tensor, loss: torch.Tensor | None) -> None:
        gradient = None
        for stage in reversed(range(self._layout.pp)):
            if stage == self._stage:
                left.backward(gradient) if loss is None else loss.backward()
            if stage == 0:
                continue
            flow = entered.grad if entered is not None and stage == self._stage else self._empty(left)
            self._hand(flow, stage, stage - 1)
            if self._stage == stage - 1:
                gradient = flow

    def _hand(self, tensor: torch.Tensor | None, source: int, target: int) -> None:
        """From one stage to another. gloo records no send, so there all stages take part in a broadcast."""
        group = self._groups["pp"]
        if dist.get_backend(group) == "gloo":
            dist.broadcast(tensor, src=dist.get_global_rank(group, source), group=group)
        elif self._stage == source:
            dist.send(tensor, dst=dist.get_global_rank(group, target), group=group)
        elif self._stage == target:
            dist.recv(tensor, src=dist.get_global_rank(group, source), group=group)

    def _empty(self, batch: torch.Tensor) -> torch.Tensor:
        return torch.empty(len(batch), CONTEXT, WIDTH, device=self._device)

    def _reduce_gradients(self, tokens: int, meet: _Meet) -> None:
        gradients = [it.grad for it in self._part.parameters() if it.grad is not None]
        flat = torch.cat([it.flatten() for it in gradients])
        dist.all_reduce(flat, group=self._groups["dp"])
        counted = torch.tensor([float(tokens), 1.0], device=self._device)
        self._sum("dp", counted, meet)
        flat /= counted[1]
        norm = torch.stack([flat.square().sum(), flat.isnan().any().float()])
        self._sum("tp", norm, meet)
        self._sum("pp", norm, meet)
        flat /= max(1.0, norm[0].sqrt().item())
        for gradient, part in zip(gradients, flat.split([it.numel() for it in gradients]), strict=True):
            gradient.copy_(part.view_as(gradient))

    def _sum(self, name: str, tensor: torch.Tensor, meet: _Meet) -> None:
        group, me = self._groups[name], dist.get_rank()
        peer = next((rank for rank in dist.get_process_group_ranks(group) if rank != me), me)
        issue = partial(dist.all_reduce, group=group)
        meet(name, Meeting(issue, tensor, peer, group, other=lambda: dist.all_reduce(tensor.clone())))


class _Part(nn.Module):  # type: ignore[misc]
    """One stage of the model, one shard of it."""

    def __init__(self, stage: int, layout: Layout, tp: Any) -> None:
        super().__init__()
        torch.manual_seed(stage)
        self.embedding = nn.Embedding(VOCABULARY, WIDTH) if stage == 0 else nn.Identity()
        self.block = _Block(layout.tp, tp)
        self.head = nn.Linear(WIDTH, VOCABULARY) if stage == layout.pp - 1 else nn.Identity()

    def forward(self, entered: torch.Tensor) -> torch.Tensor:
        left: torch.Tensor = self.head(self.block(self.embedding(entered)))
        return left


class _Block(nn.Module):  # type: ignore[misc]
    """Attention and feed-forward, heads and hidden units divided among the tensor-parallel ranks."""

    def __init__(self, shards: int, tp: Any) -> None:
        super().__init__()
        self._tp, self._heads = tp, HEADS // shards
        self.norms = nn.ModuleList([nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)])
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH // shards)
        self.out = nn.Linear(WIDTH // shards, WIDTH, bias=False)
        self.up = nn.Linear(WIDTH, 4 * WIDTH // shards)
        self.down = nn.Linear(4 * WIDTH // shards, WIDTH, bias=False)

    def forward(self, entered: torch.Tensor) -> torch.Tensor:
        x = _Copied.apply(self.norms[0](entered), self._tp)
        q, k, v = self.qkv(x).unflatten(-1, (3, self._heads, -1)).permute(2, 0, 3, 1, 4)
        attended = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        entered = entered + _Summed.apply(self.out(attended.transpose(1, 2).flatten(2)), self._tp)
        hidden = functional.gelu(self.up(_Copied.apply(self.norms[1](entered), self._tp)))
        left: torch.Tensor = entered + _Summed.apply(self.down(hidden), self._tp)
        return left


class _Copied(torch.autograd.Function):  # type: ignore[misc]
    """Into the shards: the same to each, and their gradients are summed."""

    @staticmethod
    def forward(context: Any, tensor: torch.Tensor, tp: Any) -> torch.Tensor:
        context.tp = tp
        return tensor.view_as(tensor)

    @staticmethod
    def backward(context: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, None]:
        return _summed(gradient, context.tp), None


class _Summed(torch.autograd.Function):  # type: ignore[misc]
    """Out of the shards: their partial sums become one, and each gets its gradient."""

    @staticmethod
    def forward(_: Any, tensor: torch.Tensor, tp: Any) -> torch.Tensor:
        return _summed(tensor, tp)

    @staticmethod
    def backward(_: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, None]:
        return gradient, None


def _summed(tensor: torch.Tensor, tp: Any) -> torch.Tensor:
    total = tensor.contiguous().clone()
    dist.all_reduce(total, group=tp)
    return total
