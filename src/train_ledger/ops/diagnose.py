"""What is wrong with this run, and what does a person do now?

One cause out of everything that lies in the run directory. A table of troubles, in the order in which they
weigh, says what the run suffers from now; what preceded it is asked of logs, kernels and signals, and the
first cause is the answer. Victims are never named, and where the evidence does not reach, the answer is
"unknown" or nobody.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import NamedTuple

from train_ledger.answer import Diagnosis
from train_ledger.config import Config
from train_ledger.dash import Firing
from train_ledger.ledger import RunState
from train_ledger.ops.answered import answered
from train_ledger.ops.causes.going_on import of_position, of_silence
from train_ledger.ops.causes.hardware_alone import of_hardware_alone
from train_ledger.ops.causes.loop import how_the_last_attempt_ended, of_loop
from train_ledger.ops.causes.loss import of_loss, of_spike
from train_ledger.ops.evidence.gpus_seen import of_hardware, of_slow_ports
from train_ledger.ops.found import Found
from train_ledger.ops.keeper_word import has_no_pace
from train_ledger.ops.seen import Seen, look_at_run
from train_ledger.ops.slow.cause import of_slow, slow_answer
from train_ledger.ops.standing import of_fallen, of_standing
from train_ledger.ops.words import step_clock
from train_ledger.render import Picture
from train_ledger.run_dir import RunDir

__all__ = ["Examined", "diagnose", "examine"]

_NO_PACE = (
    "the log's lines carry no time, or too few do: how long a step takes does not show, nor whether {:.0f} s "
    "without one is long"
)
_GOES_ON = ("running", "recovering")
_AFTER_AN_END = ("restarting", "recovering")


class Examined(NamedTuple):
    """The diagnosis, and what is drawn beside it for a person."""

    diagnosis: Diagnosis
    picture: Picture | None = None


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


def _loop(seen: Seen) -> Found | None:
    """A loop that is not standing: there the stall tells more."""
    is_loop = seen.fires("TrainingRestartLoop") and (seen.state.state == "stopped" or not seen.is_hung)
    if not is_loop:
        return None
    loop = of_loop(seen)
    return Found(_of_numbers(seen, loop.diagnosis), lost_s=loop.lost_s)


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


def _hardware_alone(seen: Seen) -> Found | None:
    """Nothing is known but what the hardware of its hosts recorded."""
    is_alone = not seen.state.ranks and seen.run_dir.hardware.is_dir()
    found = of_hardware_alone(seen) if is_alone else None
    return None if found is None else Found(found)


def _hardware(seen: Seen) -> Found | None:
    failed = None if seen.state.finished else of_hardware(seen.state, seen.config.alerts)
    return None if failed is None else Found(failed)


def _loss(seen: Seen) -> Found | None:
    is_bad = seen.state.state == "numeric_fault" or seen.fires("TrainingLossNotFinite")
    return Found(of_loss(seen)) if is_bad else None


def _saves(seen: Seen) -> Found | None:
    firings = seen.fires("CheckpointSaveFailed")
    if not firings:
        return None
    found, pace = _of_checkpoint(seen.state, firings), _pace(seen)
    if pace is not None:
        cause, lines = pace.diagnosis.cause, pace.diagnosis.evidence[:1]
        found = replace(found, evidence=(*found.evidence, *(f"besides, {cause}: {it}" for it in lines)))
    return Found(found)


def _position(seen: Seen) -> Found | None:
    found = of_position(seen)
    return None if found is None else Found(found)


def _silence(seen: Seen) -> Found | None:
    found = of_silence(seen)
    return None if found is None else Found(found)


def _spike(seen: Seen) -> Found | None:
    spike = of_spike(seen)
    return None if spike is None else Found(spike)


def _ports(seen: Seen) -> Found | None:
    slow = of_slow_ports(seen.state) if seen.fires("TrainingStepTimeRegressed") else None
    return None if slow is None else Found(slow)


def _pace(seen: Seen) -> Found | None:
    """What makes a run slow that goes on."""
    if seen.state.state not in _GOES_ON:
        return None
    answer = slow_answer(seen.run_dir, seen.run, seen.config, seen.state, at=seen.at)
    found = of_slow(seen.run_dir, seen.run, seen.config, seen.state, answer)
    return None if found is None else Found(found)


def _no_trouble(seen: Seen) -> Found:
    """Silence is no health, nor is a log that stands where nothing tells how long it may."""
    state = seen.state
    unpaced = has_no_pace(state, seen.config)
    is_well = bool(state.ranks) and not unpaced
    return Found(
        Diagnosis(
            state=state.state,
            cause="none" if is_well else "unknown",
            confidence="medium" if is_well else "low",
            evidence=(*_before(seen), step_clock(state)),
            not_observed=(_NO_PACE.format(state.stalled_for_s),) if unpaced else (),
        )
    )


def _before(seen: Seen) -> tuple[str, ...]:
    """Whoever is paged for a restart asks what it was for."""
    return how_the_last_attempt_ended(seen) if seen.state.state in _AFTER_AN_END else ()


_TROUBLES: tuple[Callable[[Seen], Found | None], ...] = (
    _loop,
    of_standing,
    of_fallen,
    _hardware_alone,
    _hardware,
    _loss,
    _saves,
    _position,
    _spike,
    _silence,
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
