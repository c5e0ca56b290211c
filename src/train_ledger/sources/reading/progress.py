"""How far did each attempt get, by what a log tells?

Steps that an attempt does again which one before it had done are rework. A counter that is cumulative over
restarts, such as the tokens consumed, gives a rate only within one attempt. What an attempt's lines lie apart
beyond the time that they give their steps went into checkpoints, evaluation and other things.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from train_ledger.facts import Event, Fact, Step

__all__ = ["Attempt", "Evaluated", "Progress"]

_SHOWN = ("loss", "grad_norm", "mfu", "skipped", "tflops", "tps")
_OF_EVALUATION = ("val_loss", "eval_loss")
_OF_ITS_END = (*_OF_EVALUATION, "loss")
_MOST_ATTEMPTS = 1 << 16


@dataclass(slots=True)
class Attempt:
    """One rank's steps in one attempt; what was not told is None. Times are unix seconds.

    `done_before` is (the last step before the first that this attempt does, the furthest that any before it
    had reached).
    """

    rank: int | None
    attempt: int
    first_step: int
    last_step: int
    lines: int = 0
    first_t: float | None = None
    last_t: float | None = None
    first: dict[str, float] = field(default_factory=dict)
    last: dict[str, float] = field(default_factory=dict)
    done_before: tuple[int, int] | None = None
    stride: int | None = None
    mfu_most: float | None = None
    stepping_s: float | None = None
    tokens: tuple[float, float] | None = None
    tokens_last: tuple[float, float] | None = None

    @property
    def redone(self) -> int:
        """How many of its steps an attempt before had done."""
        if self.done_before is None:
            return 0
        start, reached = self.done_before
        return max(0, min(self.last_step, reached) - start)

    @property
    def tokens_per_s(self) -> float | None:
        """Tokens of the whole job in a second, between two lines of this attempt."""
        if self.tokens is None or self.tokens_last is None or self.tokens_last[0] <= self.tokens[0]:
            return None
        return (self.tokens_last[1] - self.tokens[1]) / (self.tokens_last[0] - self.tokens[0])

    @property
    def outside_steps_s(self) -> float | None:
        """Time from its first to its last line that the steps' own times leave over."""
        if self.stepping_s is None or self.first_t is None or self.last_t is None:
            return None
        return max(0.0, self.last_t - self.first_t - self.stepping_s)

    def add(self, fact: Step) -> None:
        self.lines += 1
        if fact.step > self.last_step:
            stride = fact.step - self.last_step
            timed_s = fact.values.get("step_time_s")
            if timed_s is not None and math.isfinite(timed_s):
                self.stepping_s = (self.stepping_s or 0.0) + timed_s * stride
            self.stride, self.last_step = stride, fact.step
        if math.isfinite(fact.t):
            self.first_t = fact.t if self.first_t is None else self.first_t
            self.last_t = fact.t
            tokens = fact.values.get("consumed_tokens")
            if tokens is not None:
                self.tokens = self.tokens or (fact.t, tokens)
                self.tokens_last = (fact.t, tokens)
        mfu = fact.values.get("mfu")
        if mfu is not None and math.isfinite(mfu):
            self.mfu_most = max(mfu, self.mfu_most or 0.0)
        shown = {name: fact.values[name] for name in _SHOWN if name in fact.values}
        self.first = {**shown, **self.first}
        self.last = {**self.last, **shown}


@dataclass(slots=True)
class Evaluated:
    """The loss on data that was held out, as evaluations told it; `least` is None where none was finite."""

    first: float
    last: float = math.nan
    least: float | None = None
    times: int = 0
    step: int | None = None

    def add(self, step: int | None, loss: float) -> None:
        """One evaluation; a step, an event and several ranks may tell it, one behind the other."""
        if step is not None and (step, loss) == (self.step, self.last):
            return
        self.times += 1
        self.step, self.last = step, loss
        if math.isfinite(loss):
            self.least = loss if self.least is None else min(loss, self.least)


class Progress:
    """Folds facts into attempts, rank by rank.

    `overflows` counts by rank the steps of which is told that they were skipped, because a gradient was not
    finite; `evaluated` is None where no evaluation told its loss.
    """

    def __init__(self) -> None:
        self.overflows: Counter[int | None] = Counter()
        self.evaluated: Evaluated | None = None
        self._attempts: dict[tuple[int | None, int], Attempt] = {}
        self._reached: dict[int | None, Attempt] = {}
        self._loaded: dict[tuple[int | None, int], int] = {}

    @property
    def attempts(self) -> Mapping[tuple[int | None, int], Attempt]:
        """By (rank, attempt)."""
        return self._attempts

    def of_rank(self, rank: int | None) -> Iterator[Attempt]:
        return (it for (whose, _), it in self._attempts.items() if whose == rank)

    def add(self, fact: Fact) -> None:
        if isinstance(fact, Step):
            self._add_step(fact)
            self._evaluate(fact.step, fact.values, _OF_EVALUATION)
        elif isinstance(fact, Event):
            self._add_event(fact)

    def _add_event(self, fact: Event) -> None:
        if fact.name == "ckpt_loaded":
            self._load(fact)
        elif fact.name == "eval_end":
            self._evaluate(fact.step, fact.details, _OF_ITS_END)
        elif fact.name == "warning" and fact.details.get("what") == "overflow":
            self.overflows[fact.rank] += 1

    def _load(self, fact: Event) -> None:
        if fact.step is not None and len(self._loaded) < _MOST_ATTEMPTS:
            self._loaded[(fact.rank, fact.attempt)] = fact.step

    def _evaluate(self, step: int | None, told: Mapping[str, object], names: Sequence[str]) -> None:
        loss = next((told[name] for name in names if name in told), None)
        if not isinstance(loss, float):
            return
        if self.evaluated is None:
            self.evaluated = Evaluated(loss)
        self.evaluated.add(step, loss)

    def _add_step(self, fact: Step) -> None:
        key = (fact.rank, fact.attempt)
        attempt = self._attempts.get(key)
        if attempt is None:
            if len(self._attempts) >= _MOST_ATTEMPTS:
                return
            attempt = self._attempts[key] = Attempt(fact.rank, fact.attempt, fact.step, fact.step)
            before = self._reached.get(fact.rank)
            if before is not None and before.attempt < fact.attempt:
                attempt.done_before = _start(before, fact.step, self._loaded.get(key)), before.last_step
        attempt.add(fact)
        reached = self._reached.get(fact.rank)
        if reached is None or attempt.last_step >= reached.last_step:
            self._reached[fact.rank] = attempt


def _start(before: Attempt, first: int, loaded: int | None) -> int:
    """The step that an attempt began behind; where only every tenth is told, the first line ends ten."""
    if loaded is not None and loaded <= first:
        return loaded
    stride = before.stride or 1
    return first - (stride if first % stride == 0 else 1)
