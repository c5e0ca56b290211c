"""Which figures of a run are looked at first, in a terminal of any width?"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from statistics import median

from rich.columns import Columns
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.text import Text

from train_ledger.ledger import RunState
from train_ledger.render import duration

__all__ = ["StepClock", "figures", "gibibytes"]

_LONGEST_BAR = 40
_SHORTEST_BAR = 8
_ABSURD = 1e12


def figures(state: RunState, narrow: int | None = None) -> RenderableType:
    """State, step, rate, MFU, memory and the like; those that nobody tells are named in a line of their own.

    Each below its name; to as few columns as `narrow` each behind its name, as many a line as there is room
    for.
    """
    told = [(name, value) for name, value in _run_figures(state) if value is not None]
    untold = [name for name, value in _run_figures(state) if value is None]
    below = (Text.assemble((f"{name}\n", "dim"), (value, "bold")) for name, value in told)
    shown = Columns(below, padding=(0, 2)) if narrow is None else Group(*_packed(told, narrow))
    if not untold:
        return shown
    return Group(shown, Text(f"not told: {', '.join(untold)}", style="dim"))


def _packed(told: Iterable[tuple[str, str]], columns: int) -> Iterator[Text]:
    line = Text()
    for name, value in told:
        word = Text.assemble((f"{name} ", "dim"), (value, "bold"))
        if line and len(line) + 2 + len(word) > columns:
            yield line
            line = Text()
        line = line + "  " + word if line else word
    yield line


def _run_figures(state: RunState) -> Iterator[tuple[str, str | None]]:
    values = [rank.values for rank in state.ranks.values()]
    yield "state", state.state
    yield "step", "–" if state.step is None else f"{state.step:,}"
    yield "attempt", str(state.attempt)
    yield "ranks", f"{len(state.ranks)}" + (f" of {state.world_size}" if state.world_size else "")
    yield "heard", _ago(state, max((it.heard_t for it in state.ranks.values() if it.heard_t), default=None))
    yield "a step takes", _told(state.p50_step_time_s, duration)
    yield "tokens/s", _told(_total(values, "tps"), lambda it: _brief(it, 0))
    yield "MFU", _told(_middle(values, "mfu"), lambda it: f"{_brief(it, 1)} %")
    yield "loss", _told(_middle(values, "loss"), lambda it: f"{it:.4g}")
    yield "GPU memory", _told(_largest(values, "mem_reserved_peak"), gibibytes)
    saved = state.checkpoints.saved_t
    yield "saved", _ago(state, saved[-1] if saved else None)


def _ago(state: RunState, t: float | None) -> str | None:
    return None if t is None else f"{duration(max(0.0, round(state.t - t)))} ago"


class StepClock:
    """How much of the limit has passed without a step: a bar, as long as there is room for it."""

    def __init__(self, state: RunState) -> None:
        self._state = state

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        state = self._state
        if state.finished or state.stall_threshold_s <= 0:
            return
        limit = f"limit {duration(state.stall_threshold_s)}" + (f" in {state.phase}" if state.phase else "")
        since = f"{duration(state.stalled_for_s)} since the last step, {limit}"
        length = min(_LONGEST_BAR, options.max_width - len(since) - 2)
        share = min(1.0, state.stalled_for_s / state.stall_threshold_s)
        style = "red" if share >= 1 else "yellow" if share > 0.5 else "green"
        if length < _SHORTEST_BAR:
            yield Text(since, style=style)
            return
        filled = round(share * length)
        yield Text.assemble(("━" * filled, style), ("━" * (length - filled), "dim"), f"  {since}")


# -- figures of all ranks

Values = Sequence[Mapping[str, float]]


def _finite(values: Values, field: str) -> list[float]:
    return [it[field] for it in values if field in it and math.isfinite(it[field])]


def _total(values: Values, field: str) -> float | None:
    told = _finite(values, field)
    return sum(told) if told else None


def _middle(values: Values, field: str) -> float | None:
    told = _finite(values, field)
    return median(told) if told else None


def _largest(values: Values, field: str) -> float | None:
    return max(_finite(values, field), default=None)


def _told(value: float | None, said: Callable[[float], str]) -> str | None:
    return None if value is None or not math.isfinite(value) else said(value)


def gibibytes(value: float) -> str:
    return f"{_brief(value / 2**30, 1)} GiB"


def _brief(value: float, digits: int) -> str:
    """With so many decimals; what is absurdly large as a power of ten, or it would push all else away."""
    return f"{value:.3g}" if abs(value) >= _ABSURD else f"{value:,.{digits}f}"
