"""Where does a rank wait for others, as far as it can be seen without a profiler?

At the methods of torch's ProcessGroup and Work, through which every Python caller goes – torch.distributed's
functions, whatever name they were imported by, FSDP2, Megatron, DeepSpeed, pipelines – and at what
DistributedDataParallel does in C++ (data_parallel). Functional collectives, as DTensor issues them, go past
them: the sequence numbers of the process groups show that, and the step then has no figures.

Each wrapper calls what it wraps with what it was given and returns what that returns; nothing is caught.
`close` puts the methods back.
"""

from __future__ import annotations

import functools
import sys
import threading
from collections.abc import Callable
from typing import Any

from train_ledger.signals.timing.data_parallel import DataParallel
from train_ledger.signals.timing.replaced import Replaced
from train_ledger.signals.timing.sequence import Sequence
from train_ledger.signals.timing.timeline import timeline
from train_ledger.signals.timing.torch_there import is_cuda_initialised, is_imported
from train_ledger.signals.timing.work_clock import WorkClock

__all__ = ["Collectives"]

_ISSUING = (
    "allreduce", "allreduce_coalesced", "broadcast", "reduce", "gather", "scatter", "barrier",
    "allgather", "allgather_coalesced", "_allgather_base", "all_gather_single",
    "all_gather_single_coalesced", "allgather_into_tensor_coalesced",
    "reduce_scatter", "_reduce_scatter_base", "reduce_scatter_single",
    "reduce_scatter_single_coalesced", "reduce_scatter_tensor_coalesced",
    "alltoall", "alltoall_base", "all_to_all_single",
)  # fmt: skip
_PAIRING = ("send", "recv", "recv_anysource")
_FSDP = "/distributed/fsdp/"
_TOO_MANY = 3
_WHY_NOT = (
    "collectives are issued that do not pass through Python (functional ones, or a DistributedDataParallel "
    "made before start()) or not on the thread that calls monitor.step, so compute_s and comm_wait_s are "
    "left out; tell monitor.watch(model) of the DistributedDataParallel"
)


class Collectives:
    """Times a rank's waiting once torch.distributed is there; `warn(about, message)` says why it cannot."""

    def __init__(self, warn: Callable[[str, str], None], wanted: bool = True) -> None:
        self.clock = WorkClock()
        self._warn = warn
        self._wanted = wanted
        self._installed = False
        self._installing = threading.Lock()
        self._replaced = Replaced()
        self._cuda_came = False
        self._aside = 0
        self._aside_waits = 0
        self._streams_aside: set[int] = set()
        self._elsewhere = False
        self._waits_left = False
        self._unseen = 0
        self._timed_work = 0
        self._sequence = Sequence()
        self._data_parallel = DataParallel(self.clock, self._sequence)

    @property
    def method(self) -> str:
        """How the figures are found: cuda_events or collective_wall."""
        return self.clock.line.method if self.clock.line is not None else ""

    def watch(self, model: Any) -> None:
        """Time the waiting of a DistributedDataParallel that was made before torch.distributed was found."""
        self._data_parallel.watch(model)

    def step(self) -> dict[str, float]:
        """The step's fields, as `WorkClock.step`; {} where there are no ranks to wait for."""
        if not self._installed:
            self.look()
        if self.clock.rests:
            return self.clock.step(whole=False)
        all_seen = self._sequence.all_seen() if self._installed else None
        if all_seen is None:
            return {}
        whole = self._is_whole(all_seen)
        if self.clock.line is None or self._cuda_came:
            self.clock.line, self._cuda_came = timeline(), False
            self._waits_left = False  # of what was before the first step
        return self.clock.step(whole)

    def look(self) -> None:
        """Install as soon as torch is there, since models may be made before the first step; see CUDA come.

        Called once a second beside the training, too.
        """
        if not self._wanted:
            return
        if not self._installed and is_imported():
            self._install(sys.modules["torch.distributed"])
        if self.clock.line is not None and self.clock.on_cuda is None:
            self._cuda_came = is_cuda_initialised()

    def _is_whole(self, all_seen: bool) -> bool:
        """Whether all waiting of the step was seen: its collectives, and every stream that ran one.

        What was not seen may be waited for in the next step, and what other threads issue by other means:
        by joining them.
        """
        whole = all_seen and not self._elsewhere and (not self._aside or self._aside_waits > 0)
        if self._aside:
            self._aside = self._aside_waits = 0
        self._elsewhere = False
        left, self._waits_left = self._waits_left, not whole
        if whole:
            self._unseen = 0
        else:
            self._unseen += 1
            if self._unseen == _TOO_MANY:
                self._warn("compute_s", _WHY_NOT)
        return whole and not left

    # -- the wrappers

    def _install(self, torch_distributed: Any) -> None:
        with self._installing:  # the training thread and the one beside it may come at once
            installed, self._installed = self._installed, True
        if installed:
            return
        binding = sys.modules.get("torch._C._distributed_c10d")
        group, work = (getattr(binding, name, None) for name in ("ProcessGroup", "Work"))
        if group is None or work is None:  # a build without distributed
            self._wanted = self._installed = False
            return
        for name in _ISSUING:
            self._replaced.put(group, name, functools.partial(self._issuing, self._sequence.saw))
        for name in _PAIRING:
            self._replaced.put(group, name, functools.partial(self._issuing, self._sequence.saw_pair))
        # What is issued is waited for by its Work or its Future; sending and receiving, too.
        future = getattr(sys.modules.get("torch._C"), "Future", None)
        for owner, name in ((work, "wait"), (work, "synchronize"), (future, "wait")):
            self._replaced.put(owner, name, self._blocking)
        for owner, name in ((group, "monitored_barrier"), (torch_distributed, "_broadcast_coalesced")):
            self._replaced.put(owner, name, self._whole)
        stream = getattr(getattr(sys.modules.get("torch"), "cuda", None), "Stream", None)
        if stream is not None:
            self._replaced.put(stream, "wait_event", self._joining_event)
            self._replaced.put(stream, "wait_stream", self._joining_stream)
        self._data_parallel.install()

    def close(self) -> None:
        """Put the methods back."""
        self._wanted = self._installed = False
        self.clock.line = None
        self._data_parallel.close()
        self._sequence.forget()
        self._replaced.put_back()

    def _issuing(self, saw: Callable[[Any], None], original: Callable[..., Any]) -> Callable[..., Any]:
        def issue(group: Any, /, *arguments: Any, **options: Any) -> Any:
            saw(group)
            line = self.clock.line
            if line is not None and not line.is_here():
                self._elsewhere = True
            start = self._on_training_stream(arguments, options) if self.clock.on_cuda is not None else None
            if start is None:
                return original(group, *arguments, **options)
            try:
                work = original(group, *arguments, **options)
            finally:
                self.clock.end_wait(start)
            self._timed_work = id(work)
            return work

        return issue

    def _on_training_stream(self, arguments: tuple[Any, ...], options: dict[str, Any]) -> Any:
        """A stamp where the collective runs on the training stream itself, as a synchronous one does."""
        line = self.clock.on_cuda
        torch = sys.modules["torch"]
        if line is None or torch.compiler.is_compiling():
            return None
        try:
            stream = torch.cuda.current_stream()
        except RuntimeError:  # a CUDA error, which the collective will meet itself
            return None
        if not line.is_on(stream):
            self._aside += 1
            self._streams_aside.add(stream.cuda_stream)
            return None
        how = options.get("opts") or (arguments[-1] if arguments else None)
        return None if getattr(how, "asyncOp", False) else self.clock.begin_wait()

    def _blocking(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def wait(*arguments: Any, **options: Any) -> Any:
            if self.clock.idle:
                return original(*arguments, **options)
            timed, self._timed_work = self._timed_work, 0
            if timed and arguments and id(arguments[0]) == timed:
                return original(*arguments, **options)  # torch waits at once for what was timed as a whole
            start = self.clock.begin_wait()
            try:
                return original(*arguments, **options)
            finally:
                self.clock.end_wait(start)

        return wait

    def _whole(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """What issues several in C++ and waits for them there."""
        blocking = self._blocking(original)

        def wait(group: Any, /, *arguments: Any, **options: Any) -> Any:
            unexplained = self._sequence.unexplained(group)
            try:
                return blocking(group, *arguments, **options)
            finally:
                self._sequence.explain(group, self._sequence.unexplained(group) - unexplained)

        return wait

    def _joining_event(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """FSDP2 has the training stream wait for events of the streams on which it communicates."""

        def wait_event(stream: Any, /, *event: Any, **options: Any) -> Any:
            if not self._streams_aside or _FSDP not in sys._getframe(1).f_code.co_filename:
                return original(stream, *event, **options)
            return self._joined(functools.partial(original, stream, *event, **options), stream)

        return wait_event

    def _joining_stream(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def wait_stream(stream: Any, /, *other: Any, **options: Any) -> Any:
            awaited = other[0] if other else options.get("stream")
            if getattr(awaited, "cuda_stream", None) not in self._streams_aside:
                return original(stream, *other, **options)
            return self._joined(functools.partial(original, stream, *other, **options), stream)

        return wait_stream

    def _joined(self, call: Callable[[], Any], stream: Any) -> Any:
        line = self.clock.on_cuda
        if line is None or not line.is_on(stream):
            return call()
        self._aside_waits += 1
        start = self.clock.begin_wait()
        try:
            return call()
        finally:
            self.clock.end_wait(start)
