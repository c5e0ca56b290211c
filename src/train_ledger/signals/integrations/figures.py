"""Which values that a framework hands over are numbers that the host has already, and what are they called?

A number on a GPU is left out: asking for it would wait for the GPU.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from typing import Any

from train_ledger.fields import FIELDS
from train_ledger.signals.harmless.values import plain

__all__ = ["field_of", "host_number", "host_numbers", "known_numbers"]

_SPLIT = re.compile(r"\A(?:train(?:ing)?|optim)[/._](.+)\Z")
_FOREIGN = re.compile(r"[^a-z0-9_]+")
_CHARACTERS = 80
_OURS = {
    "learning_rate": "lr",
    "gradient_norm": "grad_norm",
    "lm_loss": "loss",
    "num_input_tokens_seen": "consumed_tokens",
    "params_norm": "param_norm",
}


def field_of(name: str) -> str:
    """The field that a framework's name of a value stands for; one that is not ours keeps its name.

    >>> field_of("train/loss"), field_of("learning_rate"), field_of("lr-AdamW"), field_of("train_loss_step")
    ('loss', 'lr', 'lr', 'loss')
    >>> field_of("eval_loss"), field_of("Rewards/Mean")
    ('eval_loss', 'rewards_mean')
    """
    lowered = name[:_CHARACTERS].lower()
    split = _SPLIT.match(lowered)
    bare = _FOREIGN.sub("_", split[1] if split else lowered).removesuffix("_step").strip("_")
    if bare.startswith("lr_"):
        return "lr"
    known = _OURS.get(bare, bare)
    return known if known in FIELDS else _FOREIGN.sub("_", lowered).strip("_")


def host_number(value: Any) -> float | int | None:
    """The plain number that `value` is, or that a tensor in the host's memory holds; None for all else.

    Tensors of other devices and of subclasses (fake, distributed) are never asked.
    """
    number = plain(value)
    if number is not None:
        return number
    tensor = getattr(sys.modules.get("torch"), "Tensor", None)
    if tensor is None or type(value) is not tensor or value.device.type != "cpu" or value.numel() != 1:
        return None
    return plain(value.item())


def host_numbers(values: Mapping[Any, Any] | None) -> dict[str, float]:
    """Those of `values` that are numbers on the host, by field; of two with one field the first counts."""
    found: dict[str, float] = {}
    for name, value in (values or {}).items():
        number = host_number(value) if isinstance(name, str) else None
        if number is not None:
            found.setdefault(field_of(name), number)
    return found


def known_numbers(values: Mapping[Any, Any] | None) -> dict[str, float]:
    """As `host_numbers`, but only what fields.py knows."""
    return {name: number for name, number in host_numbers(values).items() if name in FIELDS}
