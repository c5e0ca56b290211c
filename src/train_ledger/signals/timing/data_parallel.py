"""How long does DistributedDataParallel wait for its gradients at the end of a backward pass?

Its reducer is C++: it issues the all-reduces while the gradients come, and waits for them in a callback that
autograd runs when the graph is done. Autograd runs such callbacks one after the other: one of ours, queued
early in the backward pass, comes just before it, and queues another that comes just after. What its group has
issued in between, beyond what was seen, is the reducer's.
"""

from __future__ import annotations

import contextlib
import functools
import sys
import weakref
from typing import Any

from train_ledger.signals.timing.sequence import Sequence
from train_ledger.signals.timing.work_clock import WorkClock

__all__ = ["DataParallel"]

_HOOKS = 8
"""Of which parameters: the reducer issues nothing before the first bucket is full, which should hold one."""


class DataParallel:
    """Watches the DistributedDataParallel models that are made, and those that it is told of."""

    def __init__(self, clock: WorkClock, sequence: Sequence) -> None:
        self._clock = clock
        self._sequence = sequence
        self._handles: list[Any] = []
        self._of_models: dict[int, list[tuple[Any, Any]]] = {}
        self._watched: weakref.WeakSet[Any] = weakref.WeakSet()
        self._passes: dict[int, int] = {}

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

    def _registered(self, owner: Any, name: str, part: Any) -> None:
        if name == "module" and _is_data_parallel(owner) and owner not in self._watched:
            self._hook(owner, part)

    def _hook(self, owner: Any, model: Any) -> None:
        torch = sys.modules["torch"]
        parameters = [it for it in model.parameters() if it.requires_grad and it.is_leaf]
        group = getattr(owner, "process_group", None)
        if not parameters or group is None:
            return
        with torch.enable_grad(), contextlib.suppress(RuntimeError):
            # At the node that takes the gradient, as DistributedDataParallel does itself: torch.compile looks
            # at hooks of parameters, but not at those.
            hooked = self._of_models.setdefault(id(owner), [])
            for parameter in parameters[:: -max(1, len(parameters) // _HOOKS)]:
                node = parameter.expand_as(parameter).grad_fn.next_functions[0][0]
                handle = node.register_prehook(functools.partial(self._gradient, group))
                hooked.append((handle, node))  # a parameter does not keep its node
            weakref.finalize(owner, self._let_go, id(owner)).atexit = False
            self._watched.add(owner)

    def _let_go(self, key: int) -> None:
        for handle, _ in self._of_models.pop(key, ()):
            handle.remove()

    def _gradient(self, group: Any, gradients: Any) -> None:
        """A gradient is about to be taken; the first of a backward pass counts."""
        this_pass = sys.modules["torch"]._C._current_graph_task_id()
        if self._passes.get(id(group)) != this_pass:
            self._passes[id(group)] = this_pass
            _queue(functools.partial(self._before, group, self._sequence.unexplained(group)))

    def _before(self, group: Any, unexplained: int) -> None:
        self._sequence.explain(group, self._sequence.unexplained(group) - unexplained)
        start = self._clock.begin_wait()
        if start is not None:
            _queue(functools.partial(self._clock.end_wait, start))


def _queue(callback: Any) -> None:
    sys.modules["torch"].autograd.Variable._execution_engine.queue_callback(callback)


def _is_data_parallel(model: Any) -> bool:
    kind = getattr(sys.modules.get("torch.nn.parallel.distributed"), "DistributedDataParallel", None)
    return kind is not None and isinstance(model, kind)
