"""How does a training by torchtitan tell what it does, without a line of code?

    JSONL=torchtitan.observability.structured_logger.jsonl_handler.register_jsonl_handler
    export TITAN_STRUCT_LOGGER_HANDLERS=$JSONL,train_ledger.signals.integrations.torchtitan.register

torchtitan's structured logger calls the factories that are named there, and only those, so that its own is
named as well. The run directory is torchtitan's dump folder, or TRAIN_LEDGER_RUN; what torchtitan writes
in it itself is read, too.
"""

from __future__ import annotations

import atexit
import logging
import math
import os
import sys
from typing import Any

from train_ledger.fields import FIELDS
from train_ledger.signals.harmless.values import whole
from train_ledger.signals.integrations.figures import field_of, host_number
from train_ledger.signals.integrations.session import Session, unharmed
from train_ledger.signals.timing.phases import OpenPhase

__all__ = ["SpanHandler", "register"]

_LOGGER = "torchtitan.observability.structured_logger.structured_logging"
_DRAIN_S = 1.0
_UPDATES = ("optim", "optim_step", "optimizer_step", "Optimizer")
_SECONDS = {
    "fetching_batch": "data_wait_s",
    "fwd_bwd": "fwd_bwd_s",
    **dict.fromkeys(_UPDATES, "opt_s"),
}
_PHASES = {"fetching_batch": "data", "checkpoint_load": "checkpoint_load"}
_ENDS_STEP = ("checkpoint_save_start", "eval_start", "step_end")


def register(
    *, structured_logger: logging.Logger, rank: int, source: str, output_dir: str, **further: Any
) -> None:
    """A handler factory of torchtitan's structured logger. It never raises.

    `source` says which program of a job this is: what is no training, such as the generators of reinforcement
    learning, whose ranks begin at 0 again, is not heard.
    """
    if not source.startswith("train"):
        return
    handler = SpanHandler(os.environ.get("TRAIN_LEDGER_RUN") or output_dir, rank)
    structured_logger.addHandler(handler)
    atexit.register(_drain)  # last registered, first called: before the monitor ends the run


class SpanHandler(logging.Handler):
    """Turns the records of torchtitan's spans into lines of steps, phases and checkpoints.

    torchtitan hands records over on the training thread, in newer versions within a tenth of a second on a
    thread of its own; durations are those that the records carry. A step is told when its optimizer has
    stepped, at the end of what the step itself does: the step in which the data ran out, which torchtitan
    ends as well, is none. A span `checkpoint_save` in which nothing was saved is no save; whether one that
    was is durable is not known here, since torchtitan may go on saving. Of the tokens of a step the layout of
    the ranks would have to be known to say how many are this GPU's: torchtitan's own log says it. On a thread
    of its own nobody knows where the training stands, so that there compute_s and comm_wait_s are left out.
    """

    def __init__(self, run: str, rank: int) -> None:
        super().__init__(logging.INFO)
        self.session = Session(run, {"rank": rank})
        self._fields: dict[str, float] = {}
        self._updated: int | None = None
        self._last_t = math.nan
        self._open: dict[str, OpenPhase] = {}
        self._failed: str | None = None

    def emit(self, record: logging.LogRecord) -> None:
        """Take a record of a span, a scalar or an instant; any other is passed over."""
        name = getattr(record, "log_type_name", None)
        if type(name) is str:
            self._take(name, record)

    @unharmed
    def _take(self, name: str, record: Any) -> None:
        if name in _ENDS_STEP:
            self._tell_step(record.created)
        span, _, edge = name.rpartition("_")
        if name == "metric_value":
            self._note_scalar(record)
        elif edge == "start":
            self._begin(span)
        elif name == "checkpoint_save_error":
            self._failed = record.getMessage()
        elif edge == "end":
            self._end(span, record)

    def _note_scalar(self, record: Any) -> None:
        value = host_number(record.value)
        field = field_of(str(record.event_name))
        if value is not None and field in FIELDS:
            self._fields[field] = value

    def _begin(self, span: str) -> None:
        monitor = self.session.monitor
        if span == "checkpoint_save":
            self._failed = None
            self._enter(span, monitor.phase("checkpoint_save", only_if_long=True))
        elif span == "eval":
            monitor.event("eval_start")
            self._enter(span, monitor.phase("evaluation"))
        elif span in _PHASES:
            self._enter(span, monitor.phase(_PHASES[span]))

    def _enter(self, span: str, phase: OpenPhase) -> None:
        self._open[span] = phase
        phase.__enter__()

    def _end(self, span: str, record: Any) -> None:
        took_s = (host_number(getattr(record, "value", None)) or 0.0) / 1000
        if span in _UPDATES:
            self._updated = _step_of(record)
        phase = self._open.pop(span, None)
        if phase is not None:
            phase.drop()  # by the clock of the thread that hands records over; what counts is the record's
        if span in _SECONDS:
            self._fields[_SECONDS[span]] = self._fields.get(_SECONDS[span], 0.0) + took_s
        elif span == "checkpoint_save":
            self._end_save(record, took_s, long=phase is not None and phase.announced)
        elif span == "checkpoint_load":
            self._end_load(record, took_s)
        elif span == "eval":
            self.session.monitor.event("eval_end")

    def _end_save(self, record: Any, took_s: float, long: bool) -> None:
        """The step in which torchtitan saves has the tag `checkpoint_save`."""
        step = _step_of(record)
        monitor = self.session.monitor
        if self._failed is not None:
            monitor.event("ckpt_failed", t=record.created, step=step, error=self._failed[:2000])
        elif long or "checkpoint_save" in _tags_of(record):
            self._fields["ckpt_s"] = took_s
            monitor.event("ckpt_saved", t=record.created, step=step, duration_s=took_s, blocking_s=took_s)

    def _end_load(self, record: Any, took_s: float) -> None:
        """The step of what was loaded is the one before the first that follows, which is not known yet."""
        self.session.monitor.event("ckpt_loaded", t=record.created, step=_step_of(record), duration_s=took_s)

    def _tell_step(self, t: float) -> None:
        if self._updated is None:
            return
        step, self._updated = self._updated, None
        fields, self._fields = self._fields, {}
        if t > self._last_t:
            fields["step_time_s"] = t - self._last_t
        self._last_t = t
        self.session.monitor.step(step, **fields)


def _step_of(record: Any) -> int | None:
    """The step of a record: its own, or that of the thread that logged it, or torchtitan's current one."""
    step = whole(getattr(record, "step", None))
    state = getattr(record, "logging_thread_state", None)
    return step if step is not None or state is None else whole(state.step)


def _tags_of(record: Any) -> tuple[str, ...]:
    state = getattr(record, "logging_thread_state", None)
    if state is not None:
        return tuple(state.step_tags)
    module = sys.modules.get("torchtitan.observability.structured_logger.step_state")
    return tuple(module.get_step_tags()) if module is not None else ()


def _drain() -> None:
    """Have torchtitan hand over, for a second at most, what it still has."""
    flush = getattr(sys.modules.get(_LOGGER), "flush_structured_logger", None)
    if flush is not None:
        flush(_DRAIN_S)
