"""What does the training script say, in three lines, so that others can tell how it does?

    monitor = train_ledger.start("runs/r42")
    ...
    monitor.step(step, loss=loss)

Nothing here waits for a disk, a socket, a GPU or another rank, and nothing is raised into the training for
what the machine does.
"""

from __future__ import annotations

import os
import signal
import time
from types import TracebackType
from typing import Any

from train_ledger.run_dir import RunDir
from train_ledger.signals.attendant import Attendant, warm_recorder
from train_ledger.signals.bounded import within
from train_ledger.signals.dump import NoRecorderError, write_dump
from train_ledger.signals.host import GarbageClock, HostSample
from train_ledger.signals.identity import Identity
from train_ledger.signals.last_words import ExceptionHooks, FatalStacks
from train_ledger.signals.logger import SignalLogger
from train_ledger.signals.memory import MemoryCounters
from train_ledger.signals.phases import OpenPhase, Phases
from train_ledger.signals.requests import Requests
from train_ledger.signals.saving import Evaluation, Loading, Saving
from train_ledger.signals.throughput import Throughput
from train_ledger.signals.wakeup import Wakeup, die_of

__all__ = ["Monitor"]

_FLUSH_S = 0.25
_DUMP_S = 0.5


class Monitor:
    """One rank's voice; made by `train_ledger.start`. Also a context manager that closes itself."""

    def __init__(
        self,
        run_dir: RunDir,
        identity: Identity,
        attempt: int,
        throughput: Throughput,
        memory: MemoryCounters,
    ) -> None:
        self.run_dir = run_dir
        self.rank = identity.rank
        self.world_size = identity.world_size
        self.attempt = attempt
        self.logger = SignalLogger(run_dir.path, identity.rank, attempt=attempt)
        self._pid = os.getpid()
        self._closed = False
        self._told: BaseException | None = None
        self._step: int | None = None
        self._step_ended: float | None = None
        self._held: dict[str, float] = {}
        self._gc_told_s = 0.0
        self._throughput = throughput
        self._memory = memory
        self._host = HostSample()
        self._garbage = GarbageClock()
        self._phases = Phases(self.event)
        self._start_up: OpenPhase | None = self._phases.begin("start_up")
        self._stacks = FatalStacks(run_dir.stacks(attempt) / f"rank_{self.rank}.txt")
        self._requests = Requests(run_dir, self.rank, attempt, time.time(), self._stacks.renew)
        self._attendant = Attendant(
            (
                self._phases.announce_long,
                self._host.take,
                self._requests.answer_new,
                self._stacks.renew,
                warm_recorder(),
            )
        )

    def open(self, **run_start: Any) -> None:
        """Write `run_start`, begin the phase start_up, and set the threads and hooks up; called once, by `start`."""
        self.event("run_start", **run_start)
        if self._start_up is not None:
            self._start_up.__enter__()
        self._hooks = ExceptionHooks(self._raised, self.close)
        self._wakeup = Wakeup(self._heard)
        for trouble in (self._wakeup.trouble, self._attendant.start()):
            if trouble:
                self.warn("signals", trouble)

    # What the training script calls

    def step(self, n: int, *, tokens: float | None = None, **fields: float) -> None:
        """Step `n` is finished: one line with `fields` (numbers by the names of fields.py) and what was measured.

        `tokens` is how many tokens this rank's data-parallel share of the step held; with them and the model
        given to `start` the line has tps, tflops and mfu.
        """
        now = time.monotonic()
        if self._start_up is not None:
            self._start_up.end()
            self._start_up = None
        took_s = None if self._step_ended is None else now - self._step_ended
        self._step_ended, self._step = now, n
        line: dict[str, Any] = {} if took_s is None else {"step_time_s": took_s}
        line.update(self._phases.take())
        line["gc_s"] = self._garbage.spent_s - self._gc_told_s
        self._gc_told_s = self._garbage.spent_s
        line.update(self._host.fields)
        line.update(self._memory.take())
        if tokens is not None and took_s is not None:
            line.update(self._throughput.fields(tokens, took_s))
        held, self._held = self._held, {}
        self.logger.log(step=n, **{**line, **held, **fields})

    def log(self, *, step: int | None = None, **fields: float) -> None:
        """Numbers that belong to a step: with `step` a line of their own at once, else part of the next step's line."""
        if step is not None:
            self.logger.log(step=step, **fields)
        else:
            self._held.update(self.logger.plain_fields(fields))

    def phase(self, name: str) -> OpenPhase:
        """A part of the step or of the run, as a context manager: `with monitor.phase("forward"): …`

        Of fields.PHASES, data, forward, backward and optimizer become fields of the step's line; the others
        raise the reader's patience while they last.
        """
        return self._phases.begin(str(name))

    def checkpoint(self, step: int, *, asynchronous: bool = False) -> Saving:
        """Around the saving of a checkpoint: `with monitor.checkpoint(step): save(…)`

        An asynchronous save is left by `with` when the training goes on; call `.saved()` or `.failed(error)`
        on what `with … as` gave when it is durable.
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
        """An event `warning`, for what the run should know of its own signals."""
        self.event("warning", about=about, message=message)

    def close(self) -> None:
        """The run ended as it should: close the phases, write `run_end` and what is left. Called at exit by itself."""
        self._end(clean=True)

    def __enter__(self) -> Monitor:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: TracebackType | None) -> None:
        if error is not None and not _is_clean_exit(error):
            self._raised(error, None)
        self.close()

    # What happens to the process

    def _end(self, clean: bool) -> None:
        if self._closed:
            return
        self._closed = True
        if os.getpid() != self._pid:
            return  # a forked child that ends is not the rank
        self._attendant.close()
        self._hooks.close()
        if self._held and self._step is not None:
            self.logger.log(step=self._step, **self._held)
        self._phases.close_all()
        if clean and self._told is None:
            self.event("run_end")
        self.logger.close()
        self._wakeup.close()
        self._stacks.close()

    def _raised(self, error: BaseException, thread: str | None) -> None:
        """An exception that nobody caught: told at once and, on the main thread, with a dump, since the end is near."""
        if error is self._told or os.getpid() != self._pid or self._closed:
            return
        details: dict[str, Any] = {"type": type(error).__name__, "message": str(error)[:2000]}
        if self._phases.raised is not None and self._phases.raised[0] is error:
            details["phase"] = self._phases.raised[1]
        if thread is not None:
            details |= {"thread": thread, "fatal": False}
        self.event("exception", step=self._step, **details)
        if thread is None:
            self._told = error
            self.logger.flush(_FLUSH_S)
            within(_DUMP_S, self._dump, None)

    def _heard(self, number: int, ours: bool) -> None:
        """A signal came; on the wake-up thread. The main thread may hang, so all of it ends by itself within a second."""
        self.event("signal", step=self._step, number=number)
        if number == signal.SIGUSR1:
            if ours:
                self._attendant.send(self._dump_and_stacks)
            return
        self.logger.flush(_FLUSH_S)
        within(_DUMP_S, self._dump, None)
        if ours:
            die_of(number)

    def _dump(self) -> None:
        try:
            write_dump(self.run_dir.comm_trace_of(self.rank, self.attempt), with_stacks=False)
        except NoRecorderError:
            return

    def _dump_and_stacks(self) -> None:
        self._requests.do("sigusr1", "dump")
        self._requests.do("sigusr1", "stacks")


def _is_clean_exit(error: BaseException) -> bool:
    return isinstance(error, SystemExit) and error.code in (None, 0)
