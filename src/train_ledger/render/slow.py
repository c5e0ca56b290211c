"""How are the parts of a slow step shown?"""

from __future__ import annotations

from collections.abc import Mapping

from train_ledger.answer import SlowAnswer
from train_ledger.render.report import Section, pairs

__all__ = ["slow_sections"]

_SUSPECTS = {"confirmed": "confirmed", "ruled_out": "ruled out", "not_observed": "not observed"}


def slow_sections(answer: SlowAnswer) -> list[Section]:
    """The step and its parts, before and now, and what became of each suspect."""
    whole = _change(answer.before_s, answer.now_s)
    parts = [("step", whole if answer.now_s is not None else None)]
    parts += [(name, _part(figures)) for name, figures in answer.parts.items()]
    heading = f"a step, {answer.compared_with} → now" if answer.compared_with else "a step now"
    verdicts = [(it.cause, _SUSPECTS[it.verdict]) for it in answer.suspects]
    return [*pairs(heading, parts), *pairs("suspects", verdicts)]


def _part(figures: Mapping[str, Mapping[str, float | None]]) -> str:
    """In the median of the ranks, and on the rank where it is longest."""
    median, longest = figures.get("median", {}), figures.get("longest", {})
    told = _change(median.get("before_s"), median.get("now_s"))
    return f"{told} (longest {_change(longest.get('before_s'), longest.get('now_s'))})"


def _change(before_s: float | None, now_s: float | None) -> str:
    return _seconds(now_s) if before_s is None else f"{_seconds(before_s)} → {_seconds(now_s)}"


def _seconds(seconds: float | None) -> str:
    return "unknown" if seconds is None else f"{seconds:.3g} s"
