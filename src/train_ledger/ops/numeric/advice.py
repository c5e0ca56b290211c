"""Where does a run go back to, which data does it leave out, and is it the data or the numerics?

Known practice: a checkpoint at least a hundred steps before the first bad one, since what broke may have
begun before it showed, and the data from there to just behind it left out. If it breaks at the same data
again, it is the data; if at other data, the numerics.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from train_ledger.facts import Event
from train_ledger.hang.verdict.rank_lines import clock
from train_ledger.ops.numeric.bad_steps import BadStep, Steps, first_of_each, position_of, unit_of
from train_ledger.render import ranks_in_words

__all__ = ["Advice", "advice_about"]

_STEPS_BEFORE = 100
_NOT_LOOKED_AT = "the checkpoint itself: whether it is still there and can be loaded nobody has looked at"
_LOADER = "the data loader: which samples it takes once some are left out, it alone knows"


@dataclass(frozen=True, slots=True)
class Advice:
    """`lines` are evidence, `not_observed` what cannot be said.

    `back_to` is the step of the checkpoint, `skip` the data from there to just behind the bad step (samples
    or tokens by `unit`), `by` "data" or "numerics" where two attempts tell it.
    """

    lines: tuple[str, ...]
    not_observed: tuple[str, ...]
    back_to: int | None = None
    skip: tuple[int, int] | None = None
    unit: str = "samples"
    by: str | None = None


def advice_about(steps: Steps, first_bad: int, saved: Iterable[Event], until_t: float | None) -> Advice:
    """What to do about losses that went bad at step `first_bad`; `saved` are the run's events ckpt_saved."""
    durable = [it for it in saved if it.details.get("durable") is not False]
    known = [it for it in durable if until_t is None or it.t <= until_t]
    back = max((it for it in known if _of(it) <= first_bad - _STEPS_BEFORE), key=_newest, default=None)
    over = first_of_each(steps)
    by, over_lines, unknown = _over_attempts(over, _batch(steps, first_bad))
    if back is None:
        nearest = max((_of(it) for it in known if 0 <= _of(it) < first_bad), default=None)
        near = "" if nearest is None else f"; the newest before it is of step {nearest}"
        why = f"checkpoints: none that is known is {_STEPS_BEFORE} steps before step {first_bad}{near}"
        return Advice(over_lines, (why, *unknown), by=by)
    lines = [_back_line(back, first_bad)]
    skip, unit = _skip(steps, _of(back), first_bad)
    not_observed = [_NOT_LOOKED_AT]
    if skip is None:
        not_observed.append("data position: no line tells consumed_samples or consumed_tokens there")
    else:
        not_observed.append(_LOADER)
        lines.append(
            f"data to leave out: {unit} {skip[0]:,} to {skip[1]:,}, consumed from step {_of(back)} to "
            f"step {first_bad + 1}"
        )
    return Advice((*lines, *over_lines), (*not_observed, *unknown), _of(back), skip, unit, by)


def _of(saved: Event) -> int:
    """The step that a checkpoint is of."""
    return saved.step if saved.step is not None else -1


def _newest(saved: Event) -> tuple[int, float]:
    return _of(saved), saved.t


def _back_line(saved: Event, first_bad: int) -> str:
    durable = "durable" if saved.details.get("durable") is True else "whether it is durable is not told"
    return (
        f"go back to the checkpoint of step {_of(saved)}, saved at {clock(saved.t)} ({durable}; "
        f"{saved.source}): {first_bad - _of(saved)} steps before the first bad one"
    )


def _skip(steps: Steps, back_to: int, first_bad: int) -> tuple[tuple[int, int] | None, str]:
    there, bad, behind = steps.at(back_to), steps.at(first_bad), steps.at(first_bad + 1)
    begin, end = position_of(there), position_of(behind)
    if end is None and (at_bad := position_of(bad)) is not None:
        end = at_bad + _batch(steps, first_bad)
    if begin is None or end is None or end <= begin:
        return None, "samples"
    return (begin, end), unit_of(there)


def _batch(steps: Steps, step: int) -> int:
    """How much data a step takes, as far as its neighbours tell."""
    here, before = position_of(steps.at(step)), position_of(steps.at(step - 1))
    return here - before if here is not None and before is not None and here > before else 0


def _over_attempts(over: list[BadStep], batch: int) -> tuple[str | None, tuple[str, ...], tuple[str, ...]]:
    """(data or numerics, what says so, what cannot be said), by the last two attempts that came to it."""
    if len(over) < 2:
        why = "data or numerics: one attempt alone has come to it; the same place again would mean the data"
        return None, (), (why,)
    last, before = over[-1], over[-2]
    attempts = ranks_in_words((it.attempt for it in over), "attempt")
    where = f"bad in {attempts}: at step {before.step} ({before.source})"
    where += f", then at step {last.step} ({last.source})"
    if last.position is None or before.position is None:
        why = "data or numerics: the attempts tell no data position (consumed_samples, consumed_tokens)"
        return None, (where,), (why,)
    if abs(last.position - before.position) <= batch:
        return "data", (f"{where}: the same data position again, {last.position:,}: it is the data",), ()
    line = f"{where}: at other data, {before.position:,} and {last.position:,}: it is the numerics"
    return "numerics", (line,), ()
