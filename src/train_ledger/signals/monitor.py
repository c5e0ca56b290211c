"""What does the training script say, in three lines, so that others can tell how it does?

    monitor = train_ledger.start("runs/r42")
    ...
    monitor.step(step, loss=loss)

Nothing here waits for a disk, a socket, a GPU or another rank, and nothing is raised into the training for
what the machine does.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

from train_ledger.run_dir import RunDir
from train_ledger.signals.asking.profiling import Profiling
from train_ledger.signals.asking.recorder import Warmth
from train_ledger.signals.asking.requests import Requests
from train_ledger.signals.attendant import Attendant
from train_ledger.signals.ending.ending import Ending
from train_ledger.signals.family import take_mark
from train_ledger.signals.harmless.values import detail
from train_ledger.signals.identity import Identity
from train_ledger.signals.measures import Measures
from train_ledger.signals.sampling.memory import MemoryCounters
from train_ledger.signals.sampling.throughput import Throughput
from train_ledger.signals.saving import Evaluation, Loading, Saving
from train_ledger.signals.timing.collectives import Collectives
from train_ledger.signals.timing.loader import Loader
from train_ledger.signals.timing.phases import OpenPhase, Phases
from train_ledger.signals.writing.logger import SignalLogger
from train_ledger.signals.writing.rotation import Rotation

if TYPE_CHECKING:
    from train_ledger.signals.telling.writers import Writer

__all__ = ["Monitor"]

_AT_END_S = 10.0
_AFTER_DEATH_S = 1.0
"""How long what the numbers go to is waited for; it writes what is left by itself, but is told of no more."""

Batch = TypeVar("Batch")


class Monitor:
    """One rank's voice; made by `train_ledger.start`. As a context manager it closes itself."""

    def __init__(
        self,
        run_dir: RunDir,
        identity: Identity,
        attempt: int,
        throughput: Throughput,
        memory: MemoryCounters,
        *,
        collectives: bool = True,
        rotation: Rotation | None = None,
    ) -> None:
        self.run_dir = run_dir
        self.rank = identity.rank
        self.world_size = identity.world_size
        self.attempt = attempt
        self.logger = SignalLogger(run_dir.path, identity.rank, attempt=attempt, rotation=rotation)
        self.last_step: int | None = None
        self._step_ended: float | None = None
        self._held: dict[str, float] = {}
        self._collectives = Collectives(self.warn, wanted=collectives)
        self._phases = Phases(self.event, self._collectives.clock)
        self._measures = Measures(throughput, memory, self._collectives, self._phases)
        self._start_up: OpenPhase | None = self._phases.begin("start_up")
        self._pid = os.getpid()
        self._closed = False
        self._warmth = warmth = Warmth()
        self._profiling = Profiling()
        self._requests = Requests(run_dir, self.rank, attempt, time.time(), self._profiling)
        self._ending = Ending(self, self._phases, self._requests, warmth)
        self._attendant = Attendant(
            self._phases.announce_long,
            self._measures.host.take,
            self._collectives.look,
            self._requests.answer_new,
            self._ending.follow_stacks_file,
            warmth.see_to,
        )
        self._profiling.send = self._attendant.send

    def open(self, **run_start: Any) -> None:
        """Write `run_start`, begin the phase start_up, set threads and hooks going; called by `start`."""
        self.event("run_start", **run_start)
        self._collectives.look()
        if self._start_up is not None:
            self._start_up.__enter__()
        for trouble in (self._attendant.start(), self._ending.watch(self._attendant.send)):
            if trouble:
                self.warn("signals", trouble)

    # What the training script calls

    def step(self, n: int, /, *, tokens: float | None = None, **fields: float) -> None:
        """Step `n` is finished: one line with `fields` (numbers, named as in fields.py) and what we measured.

        `tokens` is how many tokens this rank's data-parallel share of the step held; with them and the model
        given to `start` the line has tps, tflops and mfu.
        """
        if self._start_up is not None:
            self._start_up.end()
            self._start_up = None
        now = time.monotonic()
        took_s = None if self._step_ended is None else now - self._step_ended
        self._step_ended = now
        line = self._measures.take(took_s, tokens)
        if self._held:
            line.update(self._held)
            self._held = {}
        line.update(fields)
        if type(n) is not int:
            number = self.logger.whole_step(n)
            if number is None:
                return
            n = number
        self.logger.log_fields(n, line, self._collectives.method if "compute_s" in line else None)
        self.last_step = n
        self._profiling.step(n)
        self._ending.keep_hearing(now)

    def log(self, *, step: int | None = None, **fields: float) -> None:
        """Numbers of a step: part of the next step's line or, with `step`, a line of their own at once."""
        if step is not None:
            self.logger.log_fields(step, fields)
        else:
            self._held.update(self.logger.plain_fields(fields))

    def phase(self, name: str, *, only_if_long: bool = False) -> OpenPhase:
        """A part of the step or of the run, as a context manager: `with monitor.phase("forward"): …`

        Of fields.PHASES, data, forward, backward and optimizer become fields of the step's line; the others
        raise the reader's patience while they last. On CUDA the time is the GPU's and stands in the next
        step's line. `only_if_long` keeps a phase that may be over in no time, such as a save of which only
        the framework knows whether it is one, out of the file until it has lasted for a second.
        """
        return self._phases.begin(name if type(name) is str else str(detail(name)), only_if_long=only_if_long)

    def loader(self, batches: Iterable[Batch]) -> Loader[Batch]:
        """Batches of any iterable, as they are, with the time that the training waits for each.

        `for batch in monitor.loader(dataloader): …` makes data_wait_s and, where torch's DataLoader has
        workers, queue_depth: the fewest batches that were ready in the step when one was asked for. Where a
        framework prepares the loader, wrap what it has prepared.
        """
        return Loader(batches, self.phase, self._saw_ready)

    def watch(self, model: Any) -> None:
        """Time the waiting of a DistributedDataParallel that was made before `start`; others are found."""
        self._collectives.watch(model)

    def checkpoint(self, step: int, *, asynchronous: bool = False) -> Saving:
        """Around the saving of a checkpoint: `with monitor.checkpoint(step): save(…)`

        An asynchronous save leaves the block when the training goes on; call `.saved()` or `.failed(error)`
        on what `with … as` gave once it is known how it ended.
        """
        return Saving(self, step, asynchronous)

    def checkpoint_load(self, step: int | None = None) -> Loading:
        """Around the loading of a checkpoint; writes ckpt_loaded."""
        return Loading(self, step)

    def evaluation(self) -> Evaluation:
        """Around an evaluation: `with monitor.evaluation(): …`"""
        return Evaluation(self)

    def event(self, name: str, /, *, t: float | None = None, step: int | None = None, **details: Any) -> None:
        """An event line; `name` is one of fields.EVENTS."""
        self.logger.event(name, t=t, step=step, **details)

    def warn(self, about: str, message: str) -> None:
        """An event `warning`: what the readers of the run should know of its own signals."""
        self.event("warning", about=about, message=message)

    def also_to(self, writer: Writer) -> None:
        """Have the numbers of steps go to `writer`, too, which is closed with the monitor."""
        trouble = writer.start()
        if trouble:
            self.warn("writers", trouble)
        else:
            self.logger.also = (*self.logger.also, writer)

    def close(self) -> None:
        """The run ended as it should: end the phases, write `run_end` and what is left. Called at exit.

        Python tells nobody of the status that it exits with: a script that ends by `sys.exit(7)` has run_end
        all the same, unless the monitor is used as a context manager, or the rank is a process of
        `multiprocessing`. Whoever must know asks the launcher, or raises what went wrong.
        """
        if self._closed or os.getpid() != self._pid:
            return  # a forked child that ends is not the rank
        self._closed = True
        take_mark()
        self._ending.settle()
        self._profiling.close()
        self._attendant.close(lambda: self._warmth.at_work)
        self._measures.close()
        if self._held and self.last_step is not None:
            self.logger.log_fields(self.last_step, self._held)
        self._phases.close_all()
        for writer in self.logger.also:
            writer.close_soon()
        for writer in self.logger.also:
            writer.wait(_AFTER_DEATH_S if self._ending.died else _AT_END_S)
        if not self._ending.died:
            self.event("run_end")
        self.logger.close()
        self._ending.close()

    def __enter__(self) -> Monitor:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: TracebackType | None) -> None:
        self._ending.left_by(error)
        self.close()

    def _saw_ready(self, depth: int) -> None:
        self._measures.saw_ready(depth)
