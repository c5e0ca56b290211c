"""What is wrong with this run, and what does a person do now?

One cause out of everything that lies in the run directory. A table of troubles, in the order in which they
weigh, says what the run suffers from now; what preceded it is asked of logs, kernels and signals, and the
first cause is the answer. Victims are never named, and where the evidence does not reach, the answer is
"unknown" or nobody.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import NamedTuple

from train_ledger.answer import Diagnosis, HangAnswer
from train_ledger.config import Config
from train_ledger.dash import Firing
from train_ledger.hang import REPRODUCE, reproduced_by
from train_ledger.ledger import RunState
from train_ledger.ops.answered import answered
from train_ledger.ops.causes.ended import has_fallen, may_have_fallen, of_quick_restarts
from train_ledger.ops.causes.first import traced_back
from train_ledger.ops.causes.hang import of_hang
from train_ledger.ops.causes.hardware import with_hardware
from train_ledger.ops.causes.hardware_alone import of_hardware_alone
from train_ledger.ops.causes.loop import of_loop
from train_ledger.ops.causes.loss import of_loss, of_spike
from train_ledger.ops.evidence import gather
from train_ledger.ops.evidence.gpus_seen import of_hardware, of_slow_ports, with_readings
from train_ledger.ops.evidence.outside import ends_from_outside
from train_ledger.ops.keeper_word import has_no_pace
from train_ledger.ops.places import hosts_of
from train_ledger.ops.seen import Seen, look_at_run
from train_ledger.ops.slow.before import with_pace_before
from train_ledger.ops.slow.cause import of_slow, slow_answer
from train_ledger.ops.troubles import Told, fallen_t, gave_up_t, troubles_told
from train_ledger.ops.words import step_clock
from train_ledger.render import Picture
from train_ledger.run_dir import RunDir

__all__ = ["Examined", "diagnose", "examine"]

_NO_PACE = (
    "the log's lines carry no time, or too few do: how long a step takes does not show, nor whether {:.0f} s "
    "without one is long"
)
_GOES_ON = ("running", "recovering")


class Examined(NamedTuple):
    """The diagnosis, and what is drawn beside it for a person."""

    diagnosis: Diagnosis
    picture: Picture | None = None


class _Found(NamedTuple):
    """As `Examined`; `lost_s` is how long nothing was done, where that is known better than by the state."""

    diagnosis: Diagnosis
    picture: Picture | None = None
    lost_s: float | None = None


def diagnose(
    run_dir: RunDir, config: Config, *, at: float | None = None, state: RunState | None = None
) -> Diagnosis:
    """The one cause for the state of a run as known at `at` (unix seconds; None: now).

    `state` hands in a state that was folded already, as the keeper has it, who looks at processes too.
    Raises RunDirError where run.json or the signals cannot be used.
    """
    return examine(run_dir, config, at=at, state=state).diagnosis


def examine(
    run_dir: RunDir, config: Config, *, at: float | None = None, state: RunState | None = None
) -> Examined:
    """The same as `diagnose`, with the picture of the hang where there is one."""
    seen = look_at_run(run_dir, config, at, state)
    found = next(it for trouble in _TROUBLES if (it := trouble(seen)) is not None)
    return Examined(answered(seen, found.diagnosis, found.lost_s), found.picture)


def _loop(seen: Seen) -> _Found | None:
    """A loop that is not standing: there the stall tells more."""
    is_loop = seen.fires("TrainingRestartLoop") and (seen.state.state == "stopped" or not seen.is_hung)
    if not is_loop:
        return None
    loop = of_loop(seen)
    return _Found(_of_numbers(seen, loop.diagnosis), lost_s=loop.lost_s)


def _of_numbers(seen: Seen, loop: Diagnosis) -> Diagnosis:
    """A loop in which the loss is no number again comes of that, whatever its ranks raised then."""
    is_bad = any(it.nonfinite_since_step is not None for it in seen.state.ranks.values())
    if loop.cause != "restart_loop" or not is_bad:
        return loop
    loss = of_loss(seen)
    then = (line.replace("first cause: ", "then ", 1) for line in loop.evidence)
    lines = (f"first cause: {loss.evidence[0]}", *loss.evidence[1:], *then)
    unseen = (*loss.not_observed, *loop.not_observed)
    return replace(loss, evidence=tuple(dict.fromkeys(lines)), not_observed=unseen)


def _hang(seen: Seen) -> _Found | None:
    """It stands, or has ended: who did not come, and what came before."""
    return _stands(seen, _told(seen)) if seen.is_hung or _has_dumps_alone(seen) else None


def _fallen(seen: Seen) -> _Found | None:
    """Its logs tell of an end, or of a loop, for which its limits still wait."""
    if not may_have_fallen(seen):
        return None
    told = _told(seen)
    loop = of_quick_restarts(seen, told)
    if loop is not None:
        return _Found(loop)
    return _stands(seen, told) if has_fallen(seen, told) else None


def _told(seen: Seen) -> Told:
    return troubles_told(seen.run_dir, seen.state, seen.config.xid, until_t=seen.at, only_now=True)


def _stands(seen: Seen, told: Told) -> _Found:
    state, some = seen.state, told.within(seen.since_t)
    evidence = gather(
        seen.run_dir,
        seen.config,
        state,
        until_t=seen.at,
        over=_over(seen, told),
        gave_up_t=gave_up_t(some),
    )
    found = of_hang(state, evidence, seen.looked_at)
    over_t = fallen_t(some, seen.world)
    found = with_hardware(found, evidence.known, state, evidence.has_kernel_logs, over_t)
    found = replace(found, hosts=hosts_of(state, found.ranks))
    found = with_readings(found, state, seen.config.alerts, over_t)
    traced = traced_back(seen, _reproducible(found, seen), told)
    traced = traced._replace(diagnosis=with_pace_before(seen, traced.diagnosis))
    traced = traced._replace(diagnosis=_in_a_save(seen, traced.diagnosis))
    details = traced.diagnosis.details  # of findings that are none after all nothing is drawn
    is_drawn = isinstance(details, HangAnswer) and details.findings == evidence.answer.findings
    return _Found(traced.diagnosis, evidence.picture if is_drawn else None, traced.lost_s)


def _in_a_save(seen: Seen, found: Diagnosis) -> Diagnosis:
    """A save that is open beyond its limit does not end, whatever holds it up."""
    state = seen.state
    is_open = state.phase == "checkpoint_save" and state.state in ("stalled", "escalated")
    if found.cause != "unknown" or not is_open or ends_from_outside(state):
        return found
    return replace(found, cause="checkpoint_failing", confidence="medium")


def _over(seen: Seen, told: Told) -> frozenset[str]:
    """Tracebacks that it went on from, or another run's, or of clearing away."""
    places = told.places_beside(seen.since_t)
    return frozenset(os.path.normpath(seen.run_dir.path / it) for it in places)


def _has_dumps_alone(seen: Seen) -> bool:
    """Dumps of a job of which nothing else is known: it hung, or nobody would have dumped."""
    folder = seen.run_dir.comm_traces(seen.state.attempt)
    return not seen.state.ranks and folder.is_dir() and any(it.is_file() for it in folder.iterdir())


def _hardware_alone(seen: Seen) -> _Found | None:
    """Nothing is known but what the hardware of its hosts recorded."""
    is_alone = not seen.state.ranks and seen.run_dir.hardware.is_dir()
    found = of_hardware_alone(seen) if is_alone else None
    return None if found is None else _Found(found)


def _hardware(seen: Seen) -> _Found | None:
    failed = None if seen.state.finished else of_hardware(seen.state, seen.config.alerts)
    return None if failed is None else _Found(failed)


def _loss(seen: Seen) -> _Found | None:
    is_bad = seen.state.state == "numeric_fault" or seen.fires("TrainingLossNotFinite")
    return _Found(of_loss(seen)) if is_bad else None


def _saves(seen: Seen) -> _Found | None:
    firings = seen.fires("CheckpointSaveFailed")
    if not firings:
        return None
    found, pace = _of_checkpoint(seen.state, firings), _pace(seen)
    if pace is not None:
        cause, lines = pace.diagnosis.cause, pace.diagnosis.evidence[:1]
        found = replace(found, evidence=(*found.evidence, *(f"besides, {cause}: {it}" for it in lines)))
    return _Found(found)


def _spike(seen: Seen) -> _Found | None:
    spike = of_spike(seen)
    return None if spike is None else _Found(spike)


def _ports(seen: Seen) -> _Found | None:
    slow = of_slow_ports(seen.state) if seen.fires("TrainingStepTimeRegressed") else None
    return None if slow is None else _Found(slow)


def _pace(seen: Seen) -> _Found | None:
    """What makes a run slow that goes on."""
    if seen.state.state not in _GOES_ON:
        return None
    answer = slow_answer(seen.run_dir, seen.run, seen.config, seen.state, at=seen.at)
    found = of_slow(seen.run_dir, seen.run, seen.config, seen.state, answer)
    return None if found is None else _Found(found)


def _no_trouble(seen: Seen) -> _Found:
    """Silence is no health, nor is a log that stands where nothing tells how long it may."""
    state = seen.state
    unpaced = has_no_pace(state, seen.config)
    is_well = bool(state.ranks) and not unpaced
    return _Found(
        Diagnosis(
            state=state.state,
            cause="none" if is_well else "unknown",
            confidence="medium" if is_well else "low",
            evidence=(step_clock(state),),
            not_observed=(_NO_PACE.format(state.stalled_for_s),) if unpaced else (),
        )
    )


_TROUBLES: tuple[Callable[[Seen], _Found | None], ...] = (
    _loop,
    _hang,
    _fallen,
    _hardware_alone,
    _hardware,
    _loss,
    _saves,
    _spike,
    _ports,
    _pace,
    _no_trouble,
)
"""What a run can suffer from, the worst first; the first that holds is asked for its cause."""


def _of_checkpoint(state: RunState, firings: Iterable[Firing]) -> Diagnosis:
    failed = state.checkpoints.failed
    cause = "checkpoint_failing" if failed or state.checkpoints.open_since_t else "slow.checkpoint"
    return Diagnosis(
        state=state.state,
        cause=cause,
        confidence="high",
        since_step=state.step,
        since_t=failed[-1].t if failed else state.checkpoints.open_since_t,
        evidence=(*(firing.summary for firing in firings), step_clock(state)),
    )


def _reproducible(diagnosis: Diagnosis, seen: Seen) -> Diagnosis:
    """A fault of the code is reproduced by the run's own command, where that is known."""
    if not isinstance(diagnosis.details, HangAnswer) or not diagnosis.cause.startswith("hang."):
        return diagnosis
    command = seen.run.get("restart_command")
    details = reproduced_by(diagnosis.details, command if isinstance(command, str) else None)
    commands = tuple(it for it in details.next if it.why == REPRODUCE)
    return replace(diagnosis, details=details, next=(*diagnosis.next, *commands))
