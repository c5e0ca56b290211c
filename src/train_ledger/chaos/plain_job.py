"""A small language model, data-parallel over one group: what the demo trains."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from train_ledger.chaos.faults import Meeting

if TYPE_CHECKING:
    import torch

__all__ = ["BATCH", "CONTEXT", "HEADS", "LAYERS", "MODEL_FIGURES", "VOCABULARY", "WIDTH", "PlainJob"]

VOCABULARY = 256
WIDTH = 64
HEADS = 4
LAYERS = 2
CONTEXT = 64
BATCH = 8

MODEL_FIGURES = {
    "params": LAYERS * 12 * WIDTH * WIDTH + 2 * VOCABULARY * WIDTH,
    "layers": LAYERS,
    "heads": HEADS,
    "head_dim": WIDTH // HEADS,
    "seq_len": CONTEXT,
}


class PlainJob:
    """DistributedDataParallel over every rank; `phase` is the monitor's."""

    def __init__(self, device: torch.device, phase: Callable[[str], Any]) -> None:
        import torch

        self._phase = phase
        self._model = torch.nn.parallel.DistributedDataParallel(_model().to(device))
        self._optimizer = torch.optim.AdamW(self._model.parameters(), lr=1e-3)

    def step(self, tokens: torch.Tensor, targets: torch.Tensor, _: Callable[[str, Meeting], None]) -> float:
        """Train on one batch; its loss on this rank."""
        from torch.nn import functional

        with self._phase("forward"):
            loss = functional.cross_entropy(self._model(tokens).flatten(0, 1), targets.flatten())
        with self._phase("backward"):
            self._optimizer.zero_grad()
            loss.backward()
        with self._phase("optimizer"):
            self._optimizer.step()
        return float(loss.item())

    @property
    def other(self) -> Callable[[], Any] | None:
        """There is no other group."""
        return None


def _model() -> torch.nn.Module:
    from torch import nn

    layer = nn.TransformerEncoderLayer(WIDTH, HEADS, 4 * WIDTH, dropout=0.0, batch_first=True)
    return nn.Sequential(
        nn.Embedding(VOCABULARY, WIDTH),
        nn.TransformerEncoder(layer, LAYERS, enable_nested_tensor=False),
        nn.Linear(WIDTH, VOCABULARY),
    )
