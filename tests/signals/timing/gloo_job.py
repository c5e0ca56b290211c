"""A small training of four ranks over gloo, one of which works 200 ms longer in its backward pass.

torchrun --nproc-per-node 4 gloo_job.py RUN plain|async|ddp|fsdp|functional
"""

from __future__ import annotations

import sys
import time
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed import _functional_collectives as functional

import train_ledger

STEPS, LATE_RANK, LATE_S, WORK_S = 10, 1, 0.2, 0.05


class Work(torch.autograd.Function):  # type: ignore[misc]
    """Takes its time on the way back, and works all the while."""

    @staticmethod
    def forward(context: Any, tensor: torch.Tensor) -> torch.Tensor:
        return tensor.view_as(tensor)

    @staticmethod
    def backward(context: Any, gradient: torch.Tensor) -> torch.Tensor:
        time.sleep(WORK_S)
        until = time.perf_counter() + (LATE_S if dist.get_rank() == LATE_RANK else 0.0)
        while time.perf_counter() < until:
            gradient.square().sum()
        return gradient


def wrapped(model: torch.nn.Module, how: str) -> torch.nn.Module:
    if how == "ddp":
        return torch.nn.parallel.DistributedDataParallel(model)
    if how == "fsdp":
        from torch.distributed.fsdp import fully_shard

        return fully_shard(model, mesh=dist.init_device_mesh("cpu", (dist.get_world_size(),)))
    return model


def reduce(model: torch.nn.Module, how: str) -> None:
    gradients = [it.grad for it in model.parameters()]
    if how == "plain":
        for gradient in gradients:
            dist.all_reduce(gradient)
    elif how == "async":
        for work in [dist.all_reduce(gradient, async_op=True) for gradient in gradients]:
            work.wait()
    elif how == "functional":
        for gradient in gradients:
            gradient.copy_(functional.all_reduce(gradient, "sum", dist.group.WORLD))


def main(run: str, how: str) -> None:
    monitor = train_ledger.start(run)
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    model = wrapped(torch.nn.Sequential(*[torch.nn.Linear(64, 64) for _ in range(4)]), how)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(STEPS):
        with monitor.phase("data"):
            time.sleep(0.02)
        entered = torch.randn(8, 64, requires_grad=True)
        loss = model(Work.apply(entered)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        reduce(model, how)
        optimizer.step()
        monitor.step(step, loss=loss.item())
    dist.barrier()
    dist.destroy_process_group()
    monitor.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
