"""The loss is no number: since when, on which ranks, and where does one go back to?

Named are ranks whose loss of the first bad step was not finite while all others' of that step was.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from train_ledger.answer import Diagnosis, NextCommand
from train_ledger.hang.verdict.rank_lines import clock
from train_ledger.ledger import RankState, RunState
from train_ledger.ops.numeric import Advice, Steps, advice_about, spike_in, steps_of
from train_ledger.ops.numeric.bad_steps import position_of
from train_ledger.ops.numeric.spike import LOOKED_AT
from train_ledger.ops.seen import Seen
from train_ledger.ops.troubles.signal_events import events_told
from train_ledger.ops.words import step_clock
from train_ledger.render import ranks_in_brief

__all__ = ["of_loss", "of_spike"]

_SAVED = frozenset({"ckpt_saved"})


def of_loss(seen: Seen) -> Diagnosis:
    """The diagnosis of losses that were not finite, with what to go back to."""
    state = seen.state
    bad = {rank: it for rank, it in state.ranks.items() if it.nonfinite_since_step is not None}
    first = min(
        (it.nonfinite_since_step for it in bad.values() if it.nonfinite_since_step is not None), default=0
    )
    own = tuple(sorted(rank for rank, it in bad.items() if it.nonfinite_since_step == first))
    others = [it for rank, it in state.ranks.items() if rank not in own]
    finite = [it.rank for it in others if it.step is not None and it.step >= first]
    of_all = any(state.ranks[rank].speaks_for_all for rank in own)
    named = own if others and len(finite) == len(others) > len(own) and not of_all else ()
    if not others or of_all:
        said = "on every rank: one value for all of them"
    else:
        said = f"on {ranks_in_brief(own)}; finite on {ranks_in_brief(finite)}"
    since_t = min((it.nonfinite_since_t for it in bad.values() if it.nonfinite_since_t), default=None)
    steps = steps_of(seen.run_dir, state, min(own, default=0), seen.at)
    found = Diagnosis(
        state=state.state,
        cause="numeric.nan",
        ranks=named,
        confidence="high" if named or not others else "medium",
        since_step=first,
        since_t=since_t,
        evidence=(
            f"the loss of step {first} is not finite {said}{_place(steps, first, since_t)}",
            *_gone_on(state, bad.values()),
        ),
    )
    return _advised(seen, found, steps, first)


def _gone_on(state: RunState, bad: Iterable[RankState]) -> Iterable[str]:
    """Whether it still is so: a single bad step is another night than a loss that is lost."""
    last = max((it.nonfinite_step for it in bad if it.nonfinite_step is not None), default=None)
    if last is not None and state.step is not None:
        since = state.step - last
        yield f"the last loss that was not finite is that of step {last}" + (
            f"; {since} step{'s' * (since > 1)} followed" if since > 0 else ", the newest step"
        )


def of_spike(seen: Seen) -> Diagnosis | None:
    """The diagnosis of a loss that jumped and has not gone back; None where it has not."""
    state = seen.state
    if state.state != "running" or not state.ranks or (state.by_logs and state.speed.spike is None):
        return None
    steps = steps_of(seen.run_dir, state, min(state.ranks), seen.at)
    spike = spike_in(steps.newest(LOOKED_AT))
    if spike is None:
        return None
    line = (
        f"the loss was about {spike.before:.4g} and is about {spike.now:.4g} since step {spike.step}, at "
        f"{clock(spike.t)}, and has not gone back"
    )
    found = Diagnosis(
        state=state.state,
        cause="numeric.spike",
        confidence="medium",
        since_step=spike.step,
        since_t=spike.t,
        evidence=(line,),
    )
    return _advised(seen, found, steps, spike.step)


def _place(steps: Steps, step: int, t: float | None) -> str:
    """When, at which data and in which line."""
    told = steps.at(step)
    position = position_of(told)
    at = f", at {clock(t)}" if t is not None else ""
    data = f", {position:,} consumed" if position is not None else ""
    return f"{at}{data}" + (f" ({told.source})" if told is not None and told.source else "")


def _advised(seen: Seen, found: Diagnosis, steps: Steps, first_bad: int) -> Diagnosis:
    saved = events_told(seen.run_dir, _SAVED, [min(seen.state.ranks, default=0)]).events
    saved = saved or events_told(seen.run_dir, _SAVED).events  # any rank may tell them
    advice = advice_about(steps, first_bad, saved, seen.at)
    return replace(
        found,
        evidence=(*found.evidence, *advice.lines, step_clock(seen.state)),
        not_observed=advice.not_observed,
        next=tuple(_next(seen.run, advice)),
    )


def _next(run: Mapping[str, Any], advice: Advice) -> Iterable[NextCommand]:
    command = run.get("restart_command")
    if isinstance(command, str) and command and advice.back_to is not None:
        skip = f", leaving out {advice.unit} {advice.skip[0]} to {advice.skip[1]}" if advice.skip else ""
        yield NextCommand(f"restart from the checkpoint of step {advice.back_to}{skip}", command)
