"""Through which steps, saves and failures does one process of torchtitan go?

The span `checkpoint_save` stands around every step's question whether to save, not only around saves: a save
is one whose step carries the tag `checkpoint_save` by its end, or one that failed. Likewise a checkpoint was
loaded only where the first step says so (its `relative_step` is smaller than its `step`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from train_ledger.facts import Event, Fact, Fault, Step
from train_ledger.sources.formats.own_name import own_name
from train_ledger.sources.formats.torchtitan.torchtitan_record import Record
from train_ledger.sources.formats.torchtitan.torchtitan_stack import OpenSpans, Span

__all__ = ["TorchtitanProcess"]

_NOT_TRAINING = re.compile(
    r"controller|generator|rollout|reward|grader|scorer|policy|buffer|eval", re.IGNORECASE
)
_FIELDS = {
    "step": "step_time_s",
    "fetching_batch": "data_wait_s",
    "optim": "opt_s",
    "optimizer": "opt_s",
    "gc_collect": "gc_s",
    "checkpoint_save": "ckpt_s",
}
_PHASES = {
    "checkpoint_save": "checkpoint_save",
    "checkpoint_load": "checkpoint_load",
    "eval": "evaluation",
    "torch_distributed_teardown": "shutdown",
}
_SCALARS = frozenset({"loss", "loss_max", "grad_norm", "lr", "tps", "tflops", "mfu", "loss_scale"})
_OF_TRAINING = re.compile(r"(?:train(?:er|ing)?[./])?([a-z_]{1,20})\Z")
_ERROR = re.compile(r"_error: (\w[\w.]{0,80})(?:: ?(.{0,2000}))?\Z", re.DOTALL)
_NO_FAULT = frozenset({"CancelledError", "GeneratorExit", "StopIteration", "StopAsyncIteration"})
_NO_LOSS = -1.0
_MOST_VALUES = 256


@dataclass(slots=True)
class TorchtitanProcess:
    """One process by its source, its rank there and its pid; hand its records in as they come."""

    source: str
    mesh_rank: int | None
    host: str | None
    trains: bool = field(init=False)
    _spans: OpenSpans = field(default_factory=OpenSpans)
    _values: dict[str, float] = field(default_factory=dict)
    _step: int | None = None
    _ended_step: int | None = None
    _has_steps: bool = False
    _loaded: Event | None = None
    _t: float = float("nan")
    _place: str = ""
    _error: str | None = None
    _is_late: bool = False
    _seq_id: int | None = None

    def __post_init__(self) -> None:
        self.trains = "train" in self.source.lower() or _NOT_TRAINING.search(self.source) is None

    @property
    def _rank(self) -> int | None:
        return self.mesh_rank if self.trains else None

    def read(self, record: Record, place: str) -> Iterator[Fact]:
        kind, step = record.kind, record.at_step
        self._is_late = self._is_past(kind, step)
        if step is not None and step != self._step and not self._is_late:
            yield from self._turn(step, record, place)
        self._t, self._place = record.t, place
        if record.log_type == "instant" or kind == "metric_value":
            yield from self._instant(kind, record)
        elif kind.endswith("_start"):
            yield from self._begin(kind.removesuffix("_start"), record)
        elif kind.endswith("_error"):
            yield from self._fail(kind.removesuffix("_error"), record)
        elif kind.endswith("_end"):
            yield from self._finish(kind.removesuffix("_end"), record)

    def follows(self, record: Record) -> bool:
        """Whether this can be a record of the same process: their numbers rise."""
        number = record.seq_id
        if isinstance(number, bool) or not isinstance(number, int):
            return True
        before, self._seq_id = self._seq_id, number
        return before is None or number > before

    def _is_past(self, kind: str, step: int | None) -> bool:
        """Whether it was written by a task that lags (where spans tell which step is the current one)."""
        lags = self._step is not None and step is not None and step < self._step
        return lags and self._has_steps and kind != "step_start"

    def _turn(self, step: int, record: Record, place: str) -> Iterator[Fact]:
        """Another step begins: what the one before told is whole, unless its own span never ended."""
        before = self._step
        went_on = before is not None and step > before
        if went_on or not self._has_steps or before == self._ended_step:
            yield from self._told()
        self._values = {}
        self._step = step
        since = record.since_resume
        if before is None and self._loaded is not None and since is not None and 0 < since < step:
            it, self._loaded = self._loaded, None
            yield Event(it.t, it.name, it.rank, step - since, 0, it.host, it.source, it.details)

    def _told(self) -> Iterator[Fact]:
        values, self._values = self._values, {}
        if not values or self._step is None:
            return
        if self.trains:
            yield Step(self._t, self._step, self._rank, 0, self.host, self._place, values)
        else:
            yield self._event("metrics", **values)

    def _event(self, name: str, /, **details: Any) -> Event:
        """What goes into the details may have any name: some are the log's."""
        return Event(self._t, name, self._rank, self._step, 0, self.host, self._place, self._known(details))

    def _known(self, details: dict[str, Any]) -> dict[str, Any]:
        if not self.trains:
            details.update(mesh=self.source, mesh_rank=self.mesh_rank)
        return {key: value for key, value in details.items() if value is not None}

    def _add(self, name: str, number: float, *, sums: bool = False) -> None:
        if self._is_late:
            return
        if name in self._values or len(self._values) < _MOST_VALUES:
            self._values[name] = number + (self._values.get(name, 0.0) if sums else 0.0)

    def _instant(self, kind: str, record: Record) -> Iterator[Fact]:
        if kind == "training_start" and self.trains:
            yield self._event("run_start", pid=record.pid if isinstance(record.pid, int) else None)
        number, name = record.number, record.event_name
        if kind != "metric_value" or number is None or not isinstance(name, str):
            return
        known = _scalar_name(name)
        if known == "loss" and number == _NO_LOSS:  # of a stage that has none
            return
        if self._step is None:
            yield self._event("metrics", **{known: number})
        elif known:
            self._add(known, number)

    def _begin(self, name: str, record: Record) -> Iterator[Fact]:
        outermost = self._spans.begin(record, name, self._place)
        self._error = None
        self._has_steps = self._has_steps or name == "step"
        if name == "eval":
            yield self._event("eval_start")
        elif name in ("checkpoint_load", "torch_distributed_teardown"):
            yield self._event("phase_start", phase=_PHASES[name])
        elif self._step is None and outermost and name not in _PHASES:
            yield self._event("phase_start", phase="start_up", span=name)

    def _fail(self, name: str, record: Record) -> Iterator[Fact]:
        """The innermost span that an exception leaves tells of it; those around it only repeat it."""
        self._spans.fail(record, name)
        match = _ERROR.search(record.message) if isinstance(record.message, str) else None
        kind, words = (match[1], (match[2] or "").strip()) if match else (None, None)
        error = f"{kind}: {words}" if kind else "an error"
        saves = name == "checkpoint_save"
        if kind in _NO_FAULT or (error == self._error and not saves):
            return
        self._error = error
        details = self._known({"type": kind, "message": words, "span": name})
        if saves:
            yield self._event("ckpt_failed", error=error)
        fault = "checkpoint_failed" if saves else "exception"
        yield Fault(self._t, fault, self._rank, self._step, 0, self.host, self._place, details)

    def _finish(self, name: str, record: Record) -> Iterator[Fact]:
        span = self._spans.finish(record, name)
        number = record.number
        duration_s = number / 1e3 if number is not None and 0 <= number < 1e15 else None
        if self._step is not None and duration_s is not None:
            known = _FIELDS.get(name.lower())
            self._add(known or f"span_{own_name(name)}_s", duration_s, sums=True)
        yield from self._closed(name, span, duration_s, record)
        if name == "step":
            self._special(record)
            self._ended_step = self._step
            yield from self._told()

    def _special(self, record: Record) -> None:
        since = record.since_resume
        if since is not None:
            self._add("relative_step", float(since))
        for tag in record.tags:
            self._add(f"tag_{own_name(tag)}", 1.0)

    def _closed(
        self, name: str, span: Span | None, duration_s: float | None, record: Record
    ) -> Iterator[Fact]:
        if name == "checkpoint_save":
            if "checkpoint_save" in record.tags and not (span is not None and span.failed):
                yield from self._saved(span, duration_s)
        elif name == "eval":
            yield self._event("eval_end", duration_s=duration_s)
        elif name in ("checkpoint_load", "torch_distributed_teardown"):
            yield self._event("phase_end", phase=_PHASES[name], duration_s=duration_s)
            if span is None or not span.failed:
                yield from self._ended(name, duration_s)
        elif self._step is None and self._spans.is_outermost(record):
            yield self._event("phase_end", phase="start_up", span=name, duration_s=duration_s)

    def _ended(self, name: str, duration_s: float | None) -> Iterator[Fact]:
        """What the end of a load, or of the process groups, means: these are taken down at the end alone."""
        if name == "checkpoint_load":
            self._loaded = self._event("ckpt_loaded", duration_s=duration_s)
        elif self.trains:
            yield self._event("run_end")

    def _saved(self, span: Span | None, duration_s: float | None) -> Iterator[Fact]:
        """Whether it is on its storage already or only staged, the log does not say."""
        if span is not None:
            whole = self._event("ckpt_start")
            yield Event(span.t, whole.name, whole.rank, whole.step, 0, self.host, span.place, whole.details)
        yield self._event("ckpt_saved", duration_s=duration_s, blocking_s=duration_s)

    def end(self) -> Iterator[Fact]:
        """What is whole but was not told, then the span that each task was in, with those around it."""
        unfinished = self._spans.inside()
        if self._ended_step == self._step if self._has_steps else not unfinished:
            yield from self._told()
        for spans in unfinished:
            yield self._left(spans)

    def _left(self, spans: list[Span]) -> Event:
        inner = spans[-1]
        phase = next((_PHASES[it.name] for it in reversed(spans) if it.name in _PHASES), None)
        details = self._known({"span": inner.name, "inside": [it.name for it in spans[:-1]], "phase": phase})
        return Event(inner.t, "span_open", self._rank, inner.step, 0, self.host, inner.place, details)


def _scalar_name(name: str) -> str:
    """
    >>> _scalar_name("train.loss"), _scalar_name("validator.loss"), _scalar_name("time_metrics/end_to_end(s)")
    ('loss', 'validator_loss', 'time_metrics_end_to_end_s')
    """
    match = _OF_TRAINING.match(name)
    return match[1] if match and match[1] in _SCALARS else own_name(name)
