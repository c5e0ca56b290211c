"""What do the ranks of the preflight train, so that a restart can be held to it bit by bit?

A small model under DistributedDataParallel whose operations add in one order only: two runs over the same
batches from the same weights have the same losses, on processors and on GPUs. The batches come out of a
generator that goes into the checkpoint, so that a restart that loses its place is seen.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

__all__ = ["CPU_WORK_S", "LEARNING_RATE", "Trainee"]

LEARNING_RATE = 1e-3
CPU_WORK_S = 0.02
"""A step on a processor sleeps for so long: processes that share two cores take turns otherwise, and which of
them is slow would be the kernel's choice."""

_SYMBOLS = 64
_CPU_SHAPE = (64, 8)
_GPU_SHAPE = (4096, 16384)


class Trainee:
    """One rank's replica; `phase` is the monitor's, `slower_s` what this rank sleeps more in a step."""

    def __init__(
        self, device: torch.device, rank: int, phase: Callable[[str], AbstractContextManager[Any]]
    ) -> None:
        import torch
        from torch import nn

        width, self._batch = _GPU_SHAPE if device.type == "cuda" else _CPU_SHAPE
        torch.manual_seed(0)
        self.model = nn.Sequential(
            nn.Linear(_SYMBOLS, width),
            nn.GELU(),
            nn.Linear(width, width),
            nn.GELU(),
            nn.Linear(width, _SYMBOLS),
        ).to(device)
        self._replica = nn.parallel.DistributedDataParallel(self.model)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=LEARNING_RATE)
        self.generator = torch.Generator().manual_seed(rank)
        self.slower_s = 0.0
        self._device, self._phase = device, phase

    def step(self, tamper: Callable[[], None] | None = None) -> tuple[float, int]:
        """Train on the next batch: its loss, and a checksum of the batch.

        `tamper` is called when the gradients are summed and not yet used.
        """
        with self._phase("data"):
            symbols, seen = self._next()
        with self._phase("forward"):
            if self._device.type != "cuda":
                time.sleep(CPU_WORK_S + self.slower_s)
            loss = self._loss(symbols)
            if self._device.type == "cuda" and self.slower_s:
                time.sleep(self.slower_s)
        with self._phase("backward"):
            self.optimizer.zero_grad()
            loss.backward()
        if tamper is not None:
            tamper()
        with self._phase("optimizer"):
            self.optimizer.step()
        return float(loss.item()), seen

    def _next(self) -> tuple[torch.Tensor, int]:
        import torch

        symbols = torch.randint(_SYMBOLS, (self._batch,), generator=self.generator)
        return symbols.to(self._device), zlib.crc32(bytes(symbols.to(torch.uint8).tolist()))

    def _loss(self, symbols: torch.Tensor) -> Any:
        return _of(self._replica, symbols)

    def fixed_loss(self) -> float:
        """The loss on one batch that is the same for every rank, layout and attempt."""
        import torch

        symbols = torch.arange(self._batch, device=self._device) % _SYMBOLS
        with torch.no_grad():
            return float(_of(self.model, symbols).item())


def _of(model: Any, symbols: torch.Tensor) -> Any:
    """What the model says of the symbol that follows each; one-hot, since look-ups add in any order."""
    from torch.nn import functional

    entered = functional.one_hot(symbols, _SYMBOLS).float()
    return functional.cross_entropy(model(entered), (symbols * 7 + 3) % _SYMBOLS)
