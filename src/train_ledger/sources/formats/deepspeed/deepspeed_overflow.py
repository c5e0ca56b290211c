"""Which steps did DeepSpeed skip, because a gradient was not finite?

With a gradient scaler (fp16) an overflow is how the scale is found; without one (bf16, a static scale) it is
a gradient that is not finite. Older wordings come once per rank, with the scaler's own count of iterations.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from math import isnan
from typing import Any, ClassVar

from train_ledger.facts import Event, Fact, Fault
from train_ledger.sources.formats.trainer_front import is_source_code, read_front
from train_ledger.sources.lines.log_line import LogLine
from train_ledger.sources.lines.log_number import log_number

__all__ = ["Overflows"]

_N = r"\d[\w.+-]{0,40}"
_SKIP = re.compile(
    r"(?:OVERFLOW!|[Oo]verflow detected\.|dynamic loss scale overflow!)(?: Rank (?P<rank>\d{1,7}))?"
    rf" Skipping step\.(?: Attempted loss scale: (?P<scale>{_N})(?:, reducing to (?P<next>{_N}))?)?"
)
_GRADIENT = re.compile(r"Grad overflow on iteration:? (\d{1,12})")
_REDUCING = re.compile(rf"Reducing dynamic loss scale from ({_N}) to ({_N})")


class Overflows:
    """The events `warning` of skipped steps, and faults where no gradient scaler explains them."""

    marks: ClassVar[tuple[bytes, ...]] = (
        b" Skipping step.",
        b"Grad overflow on iteration",
        b"Reducing dynamic loss scale",
    )

    def __init__(self) -> None:
        self._iteration = -1
        self._reduced = -1

    def facts(self, line: LogLine, source: str) -> Iterator[Fact]:
        text = line.text
        if match := _SKIP.search(text):
            yield from self._skipped(match, line, source)
        elif match := _GRADIENT.search(text):
            if (iteration := int(match[1])) != self._iteration:
                self._iteration = iteration
                yield self._event(line, source, {"what": "overflow", "scaler_iteration": iteration})
        elif (match := _REDUCING.search(text)) and self._reduced != self._iteration:
            self._reduced = self._iteration
            yield self._event(line, source, {"what": "loss scale reduced", **_scales(match[1], match[2])})

    def _skipped(self, match: re.Match[str], line: LogLine, source: str) -> Iterator[Fact]:
        front = read_front(line, line.text[: match.start()])
        if is_source_code(line.text[: match.start()]):
            return
        rank = int(match["rank"]) if match["rank"] else front.rank
        if match["scale"] is not None:
            details = {"what": "overflow", **_scales(match["scale"], match["next"])}
            yield Event(front.t, "warning", rank, None, 0, front.host, source, details)
        else:
            t = None if isnan(front.t) else front.t
            why = {"why": "a gradient is not finite, and no gradient scaler was at work"}
            yield Fault(t, "nan_suspected", rank, None, 0, front.host, source, why)

    def _event(self, line: LogLine, source: str, details: dict[str, Any]) -> Event:
        front = read_front(line, line.text[:200])
        return Event(front.t, "warning", front.rank, None, 0, front.host, source, details)


def _scales(old: str, new: str | None) -> dict[str, float]:
    found = {
        "loss_scale": log_number(old.rstrip(".")),
        "next_loss_scale": log_number((new or "").rstrip(".")),
    }
    return {name: it for name, it in found.items() if it is not None}
