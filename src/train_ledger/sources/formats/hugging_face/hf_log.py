"""What does one record of the Hugging Face Trainer's log say?

The same dictionary is printed (rounded to four digits and as strings since transformers 5) and kept in
trainer_state.json. Its loss cannot show a NaN: `logging_nan_inf_filter`, on by default, puts the mean of the
others in its place (trainer.py), so a finite loss beside a gradient norm that is not finite is a suspected
NaN. `num_input_tokens_seen` counts over all sessions of the run and all its ranks, while the trainer's own
`train_tokens_per_second` has divided by the time of this session alone (transformers issue 40560): that one
is left out, and `tokens_per_second`, of all ranks together, is a difference within one session.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from train_ledger.facts import Event, Fact, Fault, Step
from train_ledger.fields import read_number
from train_ledger.sources.formats.own_name import own_name
from train_ledger.sources.lines.log_number import log_number

__all__ = ["KNOWS", "Reported", "SessionRate", "is_record", "numbers_of"]

_FIELDS = {
    "learning_rate": "lr",
    "num_input_tokens_seen": "consumed_tokens",
}
KNOWS = frozenset({"loss", "grad_norm", "lr", "consumed_tokens", "step_time_s"})
_AVERAGED = "train_tokens_per_second"
_OF_SESSION = "train_runtime"
_OF_END = ("train_samples_per_second", "train_steps_per_second")
_OF_TRAINING = ("loss", "grad_norm", "learning_rate")
_EVAL = ("eval_", "test_", "predict_")
_COARSEST = 0.05
_MOST_VALUES = 256


def numbers_of(record: Mapping[str, object]) -> dict[str, float]:
    """The numbers of a record by its own keys, those in quotes, too.

    >>> numbers_of({"loss": "1.922", "epoch": 0.5, "grad_norm": "nan", "note": "warm-up"})
    {'loss': 1.922, 'epoch': 0.5, 'grad_norm': nan}
    """
    numbers: dict[str, float] = {}
    for key, value in list(record.items())[:_MOST_VALUES]:
        number = log_number(value) if isinstance(value, str) else read_number(value)
        if number is not None:
            numbers[key] = number
    return numbers


def is_record(record: Mapping[str, object]) -> bool:
    """Whether the trainer logged this dictionary: an epoch goes with a key of its own."""
    own = any(key in record for key in (*_OF_TRAINING, _OF_SESSION)) or any(map(_of_evaluation, record))
    return own and "epoch" in record


def _of_evaluation(key: str) -> bool:
    return key.startswith(_EVAL)


class SessionRate:
    """Tokens per second between two lines of one session; a session's time begins at 0."""

    def __init__(self) -> None:
        self._from: tuple[float, float] | None = None

    def add(self, tokens: float, seconds: float, resolution_s: float = 0.0) -> float | None:
        """The rate since the line that was measured from, None where nothing can be told yet.

        `seconds` since the session began, known to `resolution_s`: a span that is too short for it waits.

        >>> rate = SessionRate()
        >>> rate.add(0, 0.0), rate.add(1000, 10.0), rate.add(1000, 0.5), rate.add(1100, 1.5)
        (None, 100.0, None, 100.0)
        """
        if not (math.isfinite(tokens) and math.isfinite(seconds)):
            return None
        if self._from is None or seconds < self._from[1] or tokens < self._from[0]:
            self._from = (tokens, seconds)
            return None
        span_s = seconds - self._from[1]
        if span_s <= 0 or resolution_s / span_s > _COARSEST:
            return None
        rate = (tokens - self._from[0]) / span_s
        self._from = (tokens, seconds)
        return rate


@dataclass(frozen=True, slots=True)
class Reported:
    """One record with what is known around it; `step` is None where nothing tells it for certain.

    `tokens_per_second` is what a `SessionRate` made of it, `more` what else was measured around it.
    """

    numbers: Mapping[str, float]
    step: int | None
    t: float = math.nan
    rank: int | None = None
    host: str | None = None
    source: str = ""
    tokens_per_second: float | None = None
    more: Mapping[str, float] = field(default_factory=dict)

    def facts(self) -> Iterator[Fact]:
        """A step, the end of an evaluation, or the end of the run; what has no step is an event `metrics`."""
        if any(key in self.numbers for key in _OF_TRAINING):
            yield from self._training()
        elif any(map(_of_evaluation, self.numbers)):
            yield self._event("eval_end", dict(self.numbers))
        elif any(key in self.numbers for key in (*_OF_END, _OF_SESSION)):
            yield self._event("run_end", dict(self.numbers))

    def _training(self) -> Iterator[Fact]:
        values = {(_FIELDS.get(key) or own_name(key)): number for key, number in self.numbers.items()}
        values.update(self.more)
        values.pop(_AVERAGED, None)
        values.pop("step", None)
        if self.tokens_per_second is not None:
            values["tokens_per_second"] = self.tokens_per_second
        if self.step is None:
            yield self._event("metrics", values)
        else:
            yield Step(self.t, self.step, self.rank, 0, self.host, self.source, values)
        if math.isfinite(values.get("loss", 0.0)) and not math.isfinite(values.get("grad_norm", 0.0)):
            yield self._suspected(values)

    def _suspected(self, values: Mapping[str, float]) -> Fault:
        words = "the gradient norm is not finite; the trainer's log shows a mean where a loss is not"
        details = {"message": words, "grad_norm": values["grad_norm"], "loss": values.get("loss")}
        t = self.t if math.isfinite(self.t) else None
        return Fault(t, "nan_suspected", self.rank, self.step, 0, self.host, self.source, details)

    def _event(self, name: str, details: Mapping[str, float]) -> Event:
        return Event(self.t, name, self.rank, self.step, 0, self.host, self.source, details)
