"""What does Megatron's line of an iteration say, and what does it hide?

`iteration 120/ 5000 | name: value | … |`, of Megatron-LM, Megatron-DeepSpeed, GPT-NeoX, NeMo and Primus, 2021
to 2026. The names drift, so they are looked up; none has a fixed place. Three things it does not say:

- The loss is the mean over the iterations since the last line. A mean that is NaN is left out of the line
  (`avg > 0.0` is false), and `number of nan iterations` counts within skipped iterations alone. So a loss
  that vanished while nothing was skipped may be NaN (Megatron-DeepSpeed issue 396).
- `elapsed time per iteration` leaves checkpoints and evaluations out: where lines have times, what the wall
  shows beyond it went elsewhere.
- `number of skipped iterations` counts since the last line; we count on within the attempt.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import isfinite, isnan, nan

from train_ledger.facts import Fact, Fault, Step
from train_ledger.fields import written_number
from train_ledger.sources.formats.megatron.megatron_fields import (
    FIELDS_OF_ITERATIONS,
    fields_of,
    is_time_remaining,
)
from train_ledger.sources.formats.megatron.megatron_layouts import Layouts
from train_ledger.sources.formats.trainer_front import Front

__all__ = ["FIELDS_OF_ITERATIONS", "Iteration", "Iterations", "iteration_in"]

_START = re.compile(r"\biteration(?:[ =]{1,14}|: )(\d{1,12})[ ]{0,12}/[ ]{0,12}(\d{1,12}|infinity)[ ]{0,4}\|")
_OF_ITERATIONS = frozenset({"step_time_s", "loss", "lr", "consumed_samples", "skipped"})
"""One of these stands in every dialect; a line without any is another program's."""
_CLOCK_ERROR_S = 1.0
"""Two stamps of whole seconds differ by less than this from what passed between them."""
_LEAST_LOSS = 1e-3
"""Below, the next mean may as well be 0 or less, which older versions leave out, too."""


@dataclass(frozen=True, slots=True)
class Iteration:
    """One line, taken apart: `values` in our names and units, counters as on the line.

    `total` is None where it was `infinity` (reinforcement learning, where a loss may be negative);
    `closed` that the line ends with the `|` that most dialects end with; `broken` that it ends within a name.
    """

    number: int
    total: int | None
    values: Mapping[str, float]
    closed: bool = True
    broken: bool = False

    @property
    def skipped(self) -> float | None:
        """How many iterations were skipped since the last line; None where the line does not tell."""
        return self.values.get("skipped")


def iteration_in(text: str, layouts: Layouts | None = None) -> tuple[int, Iteration] | None:
    """Where the line of an iteration begins in `text`, and what it says; None where there is none.

    `layouts` are those that were learned from the lines before, and make it faster.

    >>> start, found = iteration_in(" iteration        5/infinity | lm loss: 1.0E+00 | grad norm: 0.250 |")
    >>> start, found.number, found.total, dict(found.values)
    (1, 5, None, {'loss': 1.0, 'grad_norm': 0.25})
    """
    at = text.find("iteration")
    match = _START.search(text, at) if at >= 0 else None
    if match is None:
        return None
    values, closed, broken = _taken_apart(text[: match.start()], text[match.end() :], layouts)
    if not _OF_ITERATIONS & values.keys() and not broken:
        return None
    total = int(match[2]) if match[2] != "infinity" else None
    return match.start(), Iteration(int(match[1]), total, values, closed, broken)


def _taken_apart(front: str, rest: str, layouts: Layouts | None) -> tuple[Mapping[str, float], bool, bool]:
    """The values around the number of the iteration, and whether the line is closed, and broken."""
    in_front = [it for it in front.split("|") if "samples/sec" in it] if "samples/sec" in front else []
    known = layouts.values(rest) if layouts is not None and not in_front else None
    if known is not None:
        return known, True, False
    pieces = _pieces(rest)
    if layouts is not None:
        layouts.learn(pieces)
    closed = not pieces[-1].strip()
    broken = not closed and not fields_of(pieces[-1:]) and not is_time_remaining(pieces[-1])
    return fields_of([*in_front, *pieces]), closed, broken


def _pieces(rest: str) -> list[str]:
    """The pieces of this line: what another rank wrote right behind the last `|` begins without a blank."""
    pieces: list[str] = []
    for piece in rest.split("|"):
        if piece and not piece[0].isspace():
            return [*pieces, ""]
        pieces.append(piece)
    return pieces


class Iterations:
    """What only the lines before tell: counts on, notices what vanished, and what the wall shows."""

    def __init__(self) -> None:
        self.number: int | None = None
        self._sums: Counter[str] = Counter()
        self._t = nan
        self._loss: float | None = None
        self._suspected = False
        self._total: int | None = None

    def start(self) -> None:
        """A new attempt begins: counters begin at 0, and no time is taken across it."""
        self.number = None
        self._sums.clear()
        self._t = nan

    def facts(self, found: Iteration, front: Front, source: str) -> Iterator[Fact]:
        """A suspicion where the line gives cause for one that the line before did not, and the step."""
        if self.number is not None and found.number < self.number:
            self.start()
        values = dict(found.values)
        again = found.number == self.number
        for name in ("skipped", "nan_iterations"):
            if name in values:
                self._sums[name] += 0 if again else int(values[name]) if isfinite(values[name]) else 0
                values[name] = float(self._sums[name])
        values.update(self._elsewhere(found, front.t))
        if found.total is not None and found.total != self._total:
            self._total = found.total
            values["total_iterations"] = float(found.total)
        yield from self._suspicion(found, front, source)
        yield Step(front.t, found.number, front.rank, host=front.host, source=source, values=values)
        self.number, self._t = found.number, front.t
        self._loss = found.values.get("loss", self._loss)

    def _elsewhere(self, found: Iteration, t: float) -> dict[str, float]:
        """What passed since the last line beyond its iterations: checkpoints, evaluation, stalls."""
        each = found.values.get("step_time_s")
        if each is None or self.number is None or isnan(t) or isnan(self._t):
            return {}
        beyond = (t - self._t) - each * (found.number - self.number)
        return {"outside_steps_s": round(beyond, 6)} if beyond > _CLOCK_ERROR_S else {}

    def _suspicion(self, found: Iteration, front: Front, source: str) -> Iterator[Fault]:
        why = self._why(found)
        if why is not None and not self._suspected:
            details: dict[str, object] = {"why": why}
            for name in ("loss", "grad_norm"):
                if name in found.values:
                    details[name] = written_number(found.values[name])
            yield Fault(
                None if isnan(front.t) else front.t,
                "nan_suspected",
                front.rank,
                found.number,
                host=front.host,
                source=source,
                details=details,
            )
        self._suspected = why is not None

    def _why(self, found: Iteration) -> str | None:
        """Why the line is suspect; None: it is not. A skip of the gradient scaler explains all of it."""
        if found.broken or found.skipped:
            return None
        norm = found.values.get("grad_norm")
        norm_is_bad = norm is not None and not isfinite(norm)
        if "loss" not in found.values and (norm_is_bad or self._lost_its_loss(found)):
            return "the loss is left out of the line, and no iteration was skipped"
        return "the norm of the gradient is not finite" if norm_is_bad else None

    def _lost_its_loss(self, found: Iteration) -> bool:
        had_one = self._loss is not None and self._loss >= _LEAST_LOSS
        return had_one and found.total is not None and found.skipped == 0
