"""How is something of our own put in the place of a method of torch's, and taken back again?

torch.compile leaves what is written in C to run as it is, and is to leave what stands in its place.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

__all__ = ["Replaced"]


class Replaced:
    """The methods that were replaced, until they are put back."""

    def __init__(self) -> None:
        self._originals: list[tuple[Any, str, Any]] = []

    def put(self, owner: Any, name: str, made: Callable[[Any], Any]) -> None:
        """What `made` makes of the method takes its place; nothing happens where there is none."""
        stored = getattr(owner, "__dict__", {}).get(name)
        if stored is None:
            return
        wrapper = functools.wraps(getattr(owner, name))(made(getattr(owner, name)))
        _keep_from_compiler(wrapper)
        try:
            setattr(owner, name, wrapper)
        except (AttributeError, TypeError):  # a class that is closed to us
            return
        self._originals.append((owner, name, (stored, wrapper)))

    def put_back(self) -> None:
        """Put back what nobody else has wrapped since; what stays only passes on."""
        for owner, name, (stored, wrapper) in reversed(self._originals):
            if vars(owner).get(name) is wrapper:
                setattr(owner, name, stored)
        self._originals.clear()


def _keep_from_compiler(wrapper: Any) -> None:
    wrapper._torchdynamo_disable = True
    frames: Any = getattr(sys.modules.get("torch._C._dynamo"), "eval_frame", None)
    strategy, action = (getattr(frames, name, None) for name in ("_FrameExecStrategy", "_FrameAction"))
    if strategy is not None and action is not None:
        frames.set_code_exec_strategy(wrapper.__code__, strategy(action.SKIP, action.SKIP))
    elif hasattr(frames, "skip_code"):  # an older torch
        frames.skip_code(wrapper.__code__)
