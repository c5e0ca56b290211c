"""What is wrong with this run, and what does a person do now?

One cause out of everything that lies in the run directory: the folded state says whether there is trouble,
dumps and stacks say who did not come, exceptions and dead processes say why. Victims are never named, and
where the evidence does not reach, the answer is "unknown" or nobody.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from train_ledger.answer import Diagnosis, HangAnswer, Impact
from train_ledger.config import Config
from train_ledger.dash import RULES
from train_ledger.hang import REPRODUCE, reproduced_by
from train_ledger.ledger import RunState, gpu_price_per_hour, has_gpus, impact
from train_ledger.ops.commands import next_commands
from train_ledger.ops.deaths import ranks_here
from train_ledger.ops.evidence import gather
from train_ledger.ops.gpus_seen import gpus_named, of_hardware, of_slow_ports, with_readings
from train_ledger.ops.hang_cause import of_hang, without_contradictions
from train_ledger.ops.hardware_cause import with_hardware
from train_ledger.ops.keeper_word import has_no_pace, open_stall
from train_ledger.ops.observing import observe
from train_ledger.ops.slow_cause import of_slow, slow_answer
from train_ledger.ops.words import step_clock
from train_ledger.render import Picture, ranks_in_brief
from train_ledger.run_dir import RunDir

__all__ = ["Examined", "diagnose", "examine"]

_NO_PACE = (
    "the log's lines carry no time, or too few do: how long a step takes does not show, nor whether {:.0f} s "
    "without one is long"
)
_HUNG = ("stalled", "escalated", "stopped")
_GOES_ON = ("running", "recovering")


def diagnose(
    run_dir: RunDir, config: Config, *, at: float | None = None, state: RunState | None = None
) -> Diagnosis:
    """The one cause for the state of a run as known at `at` (unix seconds; None: now).

    `state` hands in a state that was folded already, as the keeper has it, who looks at processes too.
    Raises RunDirError where run.json or the signals cannot be used.
    """
    return examine(run_dir, config, at=at, state=state).diagnosis


class Examined(NamedTuple):
    """The diagnosis, and what is drawn beside it for a person."""

    diagnosis: Diagnosis
    picture: Picture | None = None


def examine(
    run_dir: RunDir, config: Config, *, at: float | None = None, state: RunState | None = None
) -> Examined:
    """The same as `diagnose`, with the picture of the hang where there is one."""
    run = run_dir.read_run()
    is_fresh = state is None
    looked_at = () if state is None else ranks_here(state)
    not_read: tuple[str, ...] = ()
    if state is None:
        state, not_read = observe(run_dir, config, at)
    picture: Picture | None = None
    stall = open_stall(run_dir, state, at) if state.by_logs and is_fresh else None
    if stall is not None and state.state not in _HUNG:
        state = stall.taken_over(state)
    firing = {rule.name: found for rule in RULES if (found := rule.check(state, config.alerts))}
    hung = state.state in _HUNG or "TrainingStepStalled" in firing
    if "TrainingRestartLoop" in firing and (state.state == "stopped" or not hung):
        diagnosis = _of_alert(state, "restart_loop", firing["TrainingRestartLoop"])
    elif hung:
        evidence = gather(run_dir, config, state, until_t=at)
        diagnosis = of_hang(state, evidence, looked_at)
        diagnosis = with_hardware(diagnosis, evidence.known, state, evidence.has_kernel_logs)
        diagnosis = with_readings(
            replace(diagnosis, hosts=_hosts(state, diagnosis.ranks)), state, config.alerts
        )
        diagnosis = _reproducible(diagnosis, run)
        details = diagnosis.details  # of findings that are none after all nothing is drawn
        is_drawn = isinstance(details, HangAnswer) and details.findings == evidence.answer.findings
        picture = evidence.picture if is_drawn else None
    elif not state.finished and (failed := of_hardware(state, config.alerts)) is not None:
        diagnosis = failed
    elif state.state == "numeric_fault" or "TrainingLossNotFinite" in firing:
        diagnosis = _of_loss(state)
    elif "CheckpointSaveFailed" in firing:
        diagnosis = _of_checkpoint(state, firing["CheckpointSaveFailed"])
    elif "TrainingStepTimeRegressed" in firing and (slow := of_slow_ports(state)) is not None:
        diagnosis = slow
    else:
        diagnosis = _of_pace(run_dir, run, config, state, at) or _of_no_trouble(state, config)
    if stall is not None:
        diagnosis = replace(diagnosis, evidence=(stall.in_words(), *diagnosis.evidence))
    told = replace(
        without_contradictions(diagnosis),
        hosts=_hosts(state, diagnosis.ranks) or (diagnosis.hosts if not diagnosis.ranks else ()),
        gpus=_gpus(state, diagnosis.ranks) or gpus_named(state, diagnosis.ranks) or diagnosis.gpus,
        impact=diagnosis.impact or _impact(state, config, run, diagnosis),
        not_observed=tuple(dict.fromkeys(_not_observed(run_dir, state, diagnosis.not_observed, not_read))),
        next=(*diagnosis.next, *next_commands(run_dir, run, state, diagnosis)),
    )
    return Examined(told, picture)


def _of_pace(
    run_dir: RunDir, run: Mapping[str, Any], config: Config, state: RunState, at: float | None
) -> Diagnosis | None:
    """What makes a run slow that goes on; None where nothing does."""
    if state.state not in _GOES_ON:
        return None
    answer = slow_answer(run_dir, run, config, state, at=at)
    return of_slow(run_dir, run, config, state, answer)


def _of_no_trouble(state: RunState, config: Config) -> Diagnosis:
    """Silence is no health, nor is a log that stands where nothing tells how long it may."""
    unpaced = has_no_pace(state, config)
    is_well = bool(state.ranks) and not unpaced
    return Diagnosis(
        state=state.state,
        cause="none" if is_well else "unknown",
        confidence="medium" if is_well else "low",
        evidence=(step_clock(state),),
        not_observed=(_NO_PACE.format(state.stalled_for_s),) if unpaced else (),
    )


def _of_alert(state: RunState, cause: str, firings: Iterable[Any]) -> Diagnosis:
    evidence = (*(firing.summary for firing in firings), step_clock(state))
    return Diagnosis(
        state=state.state, cause=cause, confidence="high", since_step=state.step, evidence=evidence
    )


def _of_checkpoint(state: RunState, firings: Iterable[Any]) -> Diagnosis:
    failed = state.checkpoints.failed
    cause = "checkpoint_failing" if failed or state.checkpoints.open_since_t else "slow.checkpoint"
    diagnosis = _of_alert(state, cause, firings)
    since = failed[-1].t if failed else state.checkpoints.open_since_t
    return replace(diagnosis, since_t=since)


def _of_loss(state: RunState) -> Diagnosis:
    """Named are ranks whose loss of the first bad step was not finite while all others' of that step was."""
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
    return Diagnosis(
        state=state.state,
        cause="numeric.nan",
        ranks=named,
        confidence="high" if named or not others else "medium",
        since_step=first,
        since_t=min((it.nonfinite_since_t for it in bad.values() if it.nonfinite_since_t), default=None),
        evidence=(f"the loss of step {first} is not finite {said}", step_clock(state)),
    )


def _reproducible(diagnosis: Diagnosis, run: Mapping[str, Any]) -> Diagnosis:
    """A fault of the code is reproduced by the run's own command, where that is known."""
    if not isinstance(diagnosis.details, HangAnswer) or not diagnosis.cause.startswith("hang."):
        return diagnosis
    command = run.get("restart_command")
    details = reproduced_by(diagnosis.details, command if isinstance(command, str) else None)
    commands = tuple(it for it in details.next if it.why == REPRODUCE)
    return replace(diagnosis, details=details, next=(*diagnosis.next, *commands))


def _hosts(state: RunState, ranks: Iterable[int]) -> tuple[str, ...]:
    found = {it.host for rank in ranks if (it := state.ranks.get(rank)) and it.host}
    return tuple(sorted(found))


def _gpus(state: RunState, ranks: Iterable[int]) -> tuple[str, ...]:
    found = {it.uuid or it.pci for rank in ranks if (it := state.ranks.get(rank))}
    return tuple(sorted(gpu for gpu in found if gpu))


def _impact(state: RunState, config: Config, run: Mapping[str, Any], diagnosis: Diagnosis) -> Impact | None:
    if diagnosis.cause == "none" or not state.ranks:
        return None
    if state.world_size is None and any(it.speaks_for_all for it in state.ranks.values()):
        return None  # a log of all ranks does not say how many there are
    gpus = state.world_size or len(state.ranks) if has_gpus(run, state.ranks.values()) else None
    return impact(_lost_s(state), gpus, gpu_price_per_hour(run, config.cost.gpu_price_per_hour))


def _lost_s(state: RunState) -> float:
    """Seconds without a step; where the run was stopped, until then: its GPUs may be another's by now."""
    if state.state == "stopped" and state.since_t is not None:
        return max(0.0, state.stalled_for_s - (state.t - state.since_t))
    return state.stalled_for_s


def _not_observed(
    run_dir: RunDir, state: RunState, said: tuple[str, ...], not_read: tuple[str, ...]
) -> Iterable[str]:
    """The first line is the reason where nothing can be told: lines were not read, or there are none."""
    if not state.ranks:
        yield from [it for it in not_read if it.startswith("signals")] or [
            "no rank has written a line (signals/)"
        ]
    yield from said
    yield from not_read
    if not run_dir.hardware.is_dir() and not any(line.startswith("hardware:") for line in said):
        yield "hardware: no records of GPUs, links or the kernel log in this run directory"
    if state.world_size is not None and len(state.ranks) < state.world_size:
        yield f"signals of {state.world_size - len(state.ranks)} of {state.world_size} ranks"
