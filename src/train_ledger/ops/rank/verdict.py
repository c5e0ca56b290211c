"""What is this rank doing, in the one sentence that is read first?"""

from __future__ import annotations

import contextlib
import signal as signals

from train_ledger.ops.rank.records import RankAnswer
from train_ledger.render import duration, harmless

__all__ = ["verdict_of"]

_LONGEST_EXCEPTION = 160


def verdict_of(answer: RankAnswer) -> str:
    """Who and where, then what it does and since when."""
    where = answer.where
    gpu = "" if where.gpu is None else f", GPU {where.gpu}"
    place = f" on {where.host}{gpu}" if where.host else ""
    return harmless(f"rank {answer.rank}{place}: {_what(answer)}", longest=400)


def _what(answer: RankAnswer) -> str:
    if answer.doing == "silent" and answer.log is not None:
        return f"how far it is its log does not tell; the run is {answer.state}"
    if answer.doing == "silent":
        return f"nothing that it wrote in attempt {answer.attempt} is known; the run is {answer.state}"
    if answer.doing == "raised":
        raised = harmless(answer.exception, longest=_LONGEST_EXCEPTION)
        return f"raised {raised}{_ago(answer, answer.raised_t)}{_after(answer)}"
    if answer.doing == "gone":
        how = f" ({_name(answer.signal)})" if answer.signal is not None else ""
        return f"its process is gone{how}{_since(answer, answer.gone_t)}{_after(answer)}"
    if answer.doing == "signalled":
        return f"was sent {_name(answer.signal)}{_ago(answer, answer.signal_t)}{_after(answer)}"
    if answer.doing == "ended":
        return f"said that its run ended{_after(answer)}; the run is {answer.state}"
    return _going(answer)


def _going(answer: RankAnswer) -> str:
    phase = f", in phase {answer.phase}{_since(answer, answer.phase_since_t)}" if answer.phase else ""
    if answer.step is None:
        return f"has completed no step of attempt {answer.attempt}{phase}"
    step = f"step {answer.step} completed{_ago(answer, answer.step_t)}"
    beside = _beside(answer)
    if answer.doing == "steps":
        return f"{step}, {beside}{phase}"
    if answer.doing == "unheard":
        return f"its lines do not arrive any more: {step}, {beside}, which goes on{phase}"
    return f"stands: {step}, {beside}{phase}"


def _beside(answer: RankAnswer) -> str:
    if answer.ahead is None:
        return "how far the run is is not known"
    if answer.ahead == 0:
        return "as far as the run"
    steps = abs(answer.ahead)
    unit = "step" if steps == 1 else "steps"
    return f"{steps} {unit} {'behind' if answer.ahead < 0 else 'ahead of'} the run (step {answer.run_step})"


def _after(answer: RankAnswer) -> str:
    return f", after step {answer.step}" if answer.step is not None else ", before its first step"


def _ago(answer: RankAnswer, t: float | None) -> str:
    return "" if t is None else f" {duration(max(0.0, answer.t - t))} ago"


def _since(answer: RankAnswer, t: float | None) -> str:
    return "" if t is None else f" for {duration(max(0.0, answer.t - t))}"


def _name(number: int | None) -> str:
    with contextlib.suppress(ValueError):
        return signals.Signals(number or 0).name
    return f"signal {number}"
