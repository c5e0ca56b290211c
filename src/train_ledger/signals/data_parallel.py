"""How long does DistributedDataParallel wait for its gradients at the end of a backward pass?

Its reducer is C++: it issues the all-reduces while the gradients come, and waits for them in a callback that
autograd runs when the graph is done. Autograd runs such callbacks one after the other: one of ours, queued
early in the backward pass, comes just before it, and queues another that comes just after.
"""

from __future__ import annotations

import contextlib
import functools
import sys
import weakref
from typing import Any

from train_ledger.signals.work_clock import WorkClock

__all__ = ["DataParallel"]


class DataParallel:
    """Watches the DistributedDataParallel models that are made, and those that it is told of."""

    def __init__(self, clock: WorkClock) -> None:
        self._clock = clock
        self._handles: list[Any] = []
        self._of_models: dict[int, tuple[Any, Any]] = {}
        self._watched: weakref.WeakSet[Any] = weakref.WeakSet()
        self._waited: set[Any] = set()

    def install(self) -> None:
        """Be told by torch when a model is wrapped: that registers the model as a part of the wrapper."""
        module = sys.modules.get("torch.nn.modules.module")
        register = getattr(module, "register_module_module_registration_hook", None)
        if register is not None:
            self._handles.append(register(self._registered))

    def close(self) -> None:
        for handle in self._handles:
            handle.remove()
        self._handles.clear()
        for key in tuple(self._of_models):
            self._let_go(key)

    def watch(self, model: Any) -> None:
        """Time the end of its backward pass; nothing happens for what is no DistributedDataParallel."""
        if _is_data_parallel(model) and model not in self._watched:
            self._hook(model, model.module)

    def take_groups(self) -> set[Any]:
        """The process groups of which a reducer was waited for since the last call."""
        waited, self._waited = self._waited, set()
        return waited

    def _registered(self, owner: Any, name: str, part: Any) -> None:
        if name == "module" and _is_data_parallel(owner) and owner not in self._watched:
            self._hook(owner, part)

    def _hook(self, owner: Any, model: Any) -> None:
        torch = sys.modules["torch"]
        # Any parameter will do: its gradient comes before the reducer has all of them.
        parameters = [it for it in model.parameters() if it.requires_grad and it.is_leaf]
        group = getattr(owner, "process_group", None)
        if not parameters or group is None:
            return
        with torch.enable_grad(), contextlib.suppress(RuntimeError):
            # At the node that takes the gradient, as DistributedDataParallel does itself: torch.compile looks
            # at hooks of parameters, but not at those.
            node = parameters[-1].expand_as(parameters[-1]).grad_fn.next_functions[0][0]
            handle = node.register_prehook(functools.partial(self._gradient, group))
            self._of_models[id(owner)] = handle, node  # a parameter does not keep its node
            weakref.finalize(owner, self._let_go, id(owner)).atexit = False
            self._watched.add(owner)

    def _let_go(self, key: int) -> None:
        handle, _ = self._of_models.pop(key, (None, None))
        if handle is not None:
            handle.remove()

    def _gradient(self, group: Any, gradients: Any) -> None:
        _queue(functools.partial(self._before, group))

    def _before(self, group: Any) -> None:
        self._waited.add(group)
        start = self._clock.begin_wait()
        if start is not None:
            _queue(functools.partial(self._clock.end_wait, start))


def _queue(callback: Any) -> None:
    sys.modules["torch"].autograd.Variable._execution_engine.queue_callback(callback)


def _is_data_parallel(model: Any) -> bool:
    kind = getattr(sys.modules.get("torch.nn.parallel.distributed"), "DistributedDataParallel", None)
    return kind is not None and isinstance(model, kind)
