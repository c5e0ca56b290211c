"""How does each framework's training tell what it does, in three lines?

One thin module a framework; each is loaded when it is first looked up, and looks its framework up where it
is used: none is required.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

__all__ = ["accelerate", "deepspeed", "hf", "lightning", "megatron", "tensorboard", "torchtitan", "wandb"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
