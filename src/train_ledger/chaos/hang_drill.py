"""Does a real job that hangs get its culprit named?

A small language model trained by torchrun on this package's own source, data-parallel over gloo. After some
healthy steps one rank leaves the common path. torchrun starts it:

    torchrun --standalone --nproc-per-node 4 -m train_ledger.chaos.hang_drill --run-dir RUN --mode skip
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import train_ledger
from train_ledger.chaos.faults import MODES, leave_common_path

if TYPE_CHECKING:
    import torch

__all__ = ["Drill", "main"]

_VOCABULARY = 256
_WIDTH = 64
_HEADS = 4
_LAYERS = 2
_CONTEXT = 64
_BATCH = 8


class Drill:
    """When which rank leaves the common path; every other rank goes on as in any training."""

    def __init__(self, mode: str, culprit: int, hang_at: int, rank: int) -> None:
        self.mode = MODES[mode]
        self.hang_at = hang_at
        self.is_culprit = rank == culprit

    def before_batch(self, step: int) -> None:
        if self.is_culprit and step == self.hang_at and self.mode.in_loader:
            leave_common_path(self.mode.name)

    def last_collective(self, step: int, all_reduce: Callable[[], Any]) -> None:
        if self.is_culprit and step == self.hang_at and not self.mode.in_loader:
            leave_common_path(self.mode.name)
        else:
            all_reduce()


def main(arguments: list[str] | None = None) -> None:
    options = _options(arguments)
    train(options)


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--run-dir", type=Path, required=True, help="run directory")
    parser.add_argument("--mode", choices=MODES, default="skip")
    parser.add_argument("--culprit", type=int, default=3, help="rank that leaves; -1: none")
    parser.add_argument("--hang-at", type=int, default=20, help="step at which it leaves")
    parser.add_argument("--steps", type=int, default=1_000_000)
    parser.add_argument("--worker-server", action="store_true", help="start torch's own server on each rank")
    return parser.parse_args(arguments)


def train(options: argparse.Namespace) -> None:
    """Train until the drill's steps are done, with the three lines that any training needs."""
    rank = int(os.environ["RANK"])
    monitor = train_ledger.start(options.run_dir, model=_MODEL_FIGURES, worker_server=options.worker_server)

    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    model = torch.nn.parallel.DistributedDataParallel(_model())
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    drill = Drill(options.mode, options.culprit, options.hang_at, rank)
    batches = _batches(rank, drill)

    for step in range(1, options.steps + 1):
        with monitor.phase("data"):
            tokens, targets = next(batches)
        with monitor.phase("forward"):
            loss = _loss(model, tokens, targets)
        with monitor.phase("backward"):
            optimizer.zero_grad()
            loss.backward()
        with monitor.phase("optimizer"):
            optimizer.step()
        report = torch.tensor([loss.item(), 1.0])
        drill.last_collective(step, lambda report=report: dist.all_reduce(report))  # type: ignore[misc]
        monitor.step(step, loss=report[0].item() / report[1].item(), tokens=_BATCH * _CONTEXT)

    dist.destroy_process_group()
    monitor.close()


_MODEL_FIGURES = {
    "params": _LAYERS * 12 * _WIDTH * _WIDTH + 2 * _VOCABULARY * _WIDTH,
    "layers": _LAYERS,
    "heads": _HEADS,
    "head_dim": _WIDTH // _HEADS,
    "seq_len": _CONTEXT,
}


def _model() -> torch.nn.Module:
    from torch import nn

    layer = nn.TransformerEncoderLayer(_WIDTH, _HEADS, 4 * _WIDTH, dropout=0.0, batch_first=True)
    return nn.Sequential(
        nn.Embedding(_VOCABULARY, _WIDTH),
        nn.TransformerEncoder(layer, _LAYERS, enable_nested_tensor=False),
        nn.Linear(_WIDTH, _VOCABULARY),
    )


def _loss(model: torch.nn.Module, tokens: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    from torch.nn import functional

    return functional.cross_entropy(model(tokens).flatten(0, 1), targets.flatten())


def _batches(rank: int, drill: Drill) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    import torch

    text = b"".join(path.read_bytes() for path in sorted(Path(train_ledger.__file__).parent.rglob("*.py")))
    corpus = torch.frombuffer(bytearray(text), dtype=torch.uint8).long()
    generator = torch.Generator().manual_seed(rank)
    step = 0
    while True:
        step += 1
        drill.before_batch(step)
        starts = torch.randint(len(corpus) - _CONTEXT - 1, (_BATCH,), generator=generator)
        windows = torch.stack([corpus[start : start + _CONTEXT + 1] for start in starts.tolist()])
        yield windows[:, :-1], windows[:, 1:]


if __name__ == "__main__":
    main()
