"""Does what is saved come back, to the bit and in another layout?

By torch.distributed.checkpoint, as trainers save: every tensor of model and optimizer cut over all ranks,
each of which writes its part. In another layout the parts are cut along another dimension, over a grid of
ranks.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from train_ledger.chaos.preflight.trainee import Trainee

if TYPE_CHECKING:
    import torch

__all__ = ["differing", "load", "load_in_another_layout", "save", "weights"]

_MOMENTS = ("exp_avg", "exp_avg_sq")


def save(trainee: Trainee, folder: Path, step: int, device: torch.device) -> None:
    """Write the state after `step`; returns when every rank's part lies on the storage."""
    import torch.distributed.checkpoint as dcp

    mesh = _line(device)
    dcp.save(
        {name: _cut(tensor, mesh) for name, tensor in _state(trainee, step).items()}, checkpoint_id=folder
    )


def load(trainee: Trainee, folder: Path, device: torch.device) -> int:
    """Take up the state that was saved; the step after which it was."""
    import torch.distributed.checkpoint as dcp

    _make_moments(trainee)
    state = _state(trainee, 0)
    mesh = _line(device)
    found = {name: _cut(tensor, mesh) for name, tensor in state.items()}
    dcp.load(found, checkpoint_id=folder)
    for name, tensor in state.items():
        tensor.copy_(_whole(found[name]))
    trainee.generator.set_state(state[_data_key()])
    return int(state["step"].item())


def load_in_another_layout(trainee: Trainee, folder: Path, device: torch.device) -> str:
    """Put what was saved into the model, read by a grid of ranks; which grid, in words.

    Raises ValueError where the ranks make no grid of two by some.
    """
    import torch
    import torch.distributed as dist
    import torch.distributed.checkpoint as dcp
    from torch.distributed.tensor import Replicate, Shard, distribute_tensor

    ranks = dist.get_world_size()
    if ranks < 4 or ranks % 2:
        raise ValueError(f"{ranks} ranks make no grid of two by some")
    mesh = dist.init_device_mesh(device.type, (ranks // 2, 2), mesh_dim_names=("dp", "tp"))
    found = {
        name: distribute_tensor(torch.zeros_like(tensor), mesh, [Replicate(), Shard(tensor.dim() - 1)])
        for name, tensor in _weights(trainee)
    }
    dcp.load(found, checkpoint_id=folder)
    with torch.no_grad():
        for name, tensor in _weights(trainee):
            tensor.copy_(_whole(found[name]))
    return f"saved over {ranks} ranks along the first dimension, read as dp={ranks // 2}, tp=2 along the last"


def differing(trainee: Trainee, before: dict[str, Any]) -> int:
    """How many elements of the weights are not what they were."""
    return sum(int((tensor != before[name]).sum().item()) for name, tensor in _weights(trainee))


def weights(trainee: Trainee) -> dict[str, Any]:
    """A copy of every weight, by name."""
    return {name: tensor.clone() for name, tensor in _weights(trainee)}


def _weights(trainee: Trainee) -> Iterator[tuple[str, Any]]:
    yield from ((f"model.{name}", it.detach()) for name, it in trainee.model.named_parameters())


def _state(trainee: Trainee, step: int) -> dict[str, Any]:
    """Weights, the optimizer's moments and counts, the step, and this rank's place in the data."""
    import torch

    state = dict(_weights(trainee))
    for name, parameter in trainee.model.named_parameters():
        of = trainee.optimizer.state[parameter]
        state |= {f"{moment}.{name}": of[moment] for moment in _MOMENTS}
        state[f"count.{name}"] = of["step"]
    return {**state, "step": torch.tensor(step), _data_key(): trainee.generator.get_state()}


def _data_key() -> str:
    import torch.distributed as dist

    return f"data.{dist.get_rank()}"


def _make_moments(trainee: Trainee) -> None:
    """AdamW makes them at its first step: here one that changes nothing, since no gradient has come."""
    import torch

    for parameter in trainee.model.parameters():
        trainee.optimizer.state[parameter] = {
            "step": torch.tensor(0.0),
            **{moment: torch.zeros_like(parameter) for moment in _MOMENTS},
        }


def _line(device: torch.device) -> Any:
    import torch.distributed as dist

    return dist.init_device_mesh(device.type, (dist.get_world_size(),))


def _cut(tensor: Any, mesh: Any) -> Any:
    """Cut over the ranks along the first dimension, if it has one and is no rank's own."""
    from torch.distributed.tensor import Shard, distribute_tensor

    is_own = not tensor.is_floating_point()
    return tensor if is_own or not tensor.dim() else distribute_tensor(tensor, mesh, [Shard(0)])


def _whole(tensor: Any) -> Any:
    from torch.distributed.tensor import DTensor

    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor
