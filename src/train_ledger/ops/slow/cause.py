"""A run goes on, but slowly: what is the cause, and what does it cost?

Joins the answer of the steps with what the state knows of hosts, GPUs, ports and saves.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from train_ledger import slow
from train_ledger.answer import Diagnosis, RuledOut, SlowAnswer
from train_ledger.config import Alerts, Config
from train_ledger.ledger import RunState, gpu_price_per_hour, has_gpus, impact
from train_ledger.ops.places import gpus_of
from train_ledger.ops.slow.commands import slow_commands
from train_ledger.ops.slow.history import history_of
from train_ledger.ops.words import step_clock
from train_ledger.render import harmless
from train_ledger.run_dir import RunDir

__all__ = ["of_slow", "slow_answer", "told_of"]

_ONLY_IF_ASKED = ("slow.stage_imbalance",)
"""What a run may have been like ever since: no trouble that began."""


def slow_answer(
    run_dir: RunDir,
    run: Mapping[str, Any],
    config: Config,
    state: RunState,
    *,
    at: float | None = None,
    asked: slow.Asked | None = None,
    history: slow.History | None = None,
) -> SlowAnswer:
    """Who drags, since when and why; `asked` says what to compare with. Raises RunDirError as it does.

    `history` spares what `history_of` would read.
    """
    beside = slow.Beside(slow.Cards(state.gpus, state.ports), state.checkpoints.durations_s)
    return slow.look(history or history_of(run_dir, run, state, at), config.alerts, beside, asked)


def of_slow(
    run_dir: RunDir,
    run: Mapping[str, Any],
    config: Config,
    state: RunState,
    answer: SlowAnswer,
) -> Diagnosis | None:
    """The diagnosis that the answer makes; None where it finds no trouble that began."""
    if not _is_trouble(answer, config.alerts):
        return None
    found = told_of(run_dir, run, config, state, answer)
    return replace(found, evidence=(*found.evidence, step_clock(state)))


def told_of(
    run_dir: RunDir, run: Mapping[str, Any], config: Config, state: RunState, answer: SlowAnswer
) -> Diagnosis:
    """The answer as a diagnosis, whatever it says."""
    found = Diagnosis(
        state=state.state,
        cause=answer.cause if answer.verdict != "cannot_tell" else "unknown",
        ranks=answer.culprits,
        hosts=_hosts(state, answer),
        gpus=_gpus(state, answer),
        confidence=answer.confidence,
        since_step=answer.since_step,
        since_t=answer.since_t,
        evidence=tuple(harmless(line, longest=600) for line in answer.evidence),
        ruled_out=tuple(
            RuledOut(it.cause, harmless(it.by, longest=600))
            for it in answer.suspects
            if it.verdict == "ruled_out"
        ),
        not_observed=_not_observed(answer),
        details=answer,
    )
    if answer.lost_s is not None and found.cause != "none":
        gpus = (state.world_size or len(state.ranks)) if has_gpus(run, state.ranks.values()) else None
        price = gpu_price_per_hour(run, config.cost.gpu_price_per_hour)
        found = replace(found, impact=impact(answer.lost_s, gpus, price))
    return replace(found, next=slow_commands(run_dir, state, found, answer))


def _is_trouble(answer: SlowAnswer, alerts: Alerts) -> bool:
    """What nobody can explain is trouble from the loss of speed on that pages, what is explained at once."""
    if answer.verdict != "slow" or (answer.cause in _ONLY_IF_ASKED and not answer.slower):
        return False
    if answer.cause != "unknown":
        return True
    before_s, now_s = answer.before_s or 0.0, answer.now_s or 0.0
    return 0.0 < before_s <= alerts.mfu_degraded_fraction * now_s


def _not_observed(answer: SlowAnswer) -> tuple[str, ...]:
    if answer.verdict == "slow" and answer.cause == "unknown":
        first = _unexplained(answer)
        return (first, *(line for line in _unseen(answer) if line not in first))
    return _unseen(answer)


def _unexplained(answer: SlowAnswer) -> str:
    """What is known of steps that became slower for a reason that nobody told."""
    longer = "steps became slower"
    if answer.before_s and answer.now_s:
        longer = f"steps take {answer.now_s / answer.before_s:.2f} × as long as before"
    longer = longer if answer.since_step is None else f"since step {answer.since_step} {longer}"
    if answer.kind == "cannot_tell" and answer.not_observed:
        return f"{longer}, and it is not known who drags – {answer.not_observed[0]}"
    return f"{longer}, and no suspect explains it: compare two traces (train-ledger trace diff)"


def _unseen(answer: SlowAnswer) -> tuple[str, ...]:
    by_suspects = (f"{it.cause}: {it.by}" for it in answer.suspects if it.verdict == "not_observed")
    return (*answer.not_observed, *by_suspects)


def _hosts(state: RunState, answer: SlowAnswer) -> tuple[str, ...]:
    """Those of the culprits; of links that name a host by its errors, that one."""
    of_ranks = {it.host for rank in answer.culprits if (it := state.ranks.get(rank)) and it.host}
    if of_ranks or answer.culprits:
        return tuple(sorted(of_ranks | set(answer.hosts)))
    if answer.cause != "slow.straggler.link":
        return ()
    return slow.Cards(state.gpus, state.ports).hosts_in_trouble


def _gpus(state: RunState, answer: SlowAnswer) -> tuple[str, ...]:
    """The culprits' cards; of links that name a host, the cards whose own counters grew."""
    if answer.culprits:
        return gpus_of(state, answer.culprits)
    if answer.cause != "slow.straggler.link":
        return ()
    return tuple(sorted(name for it in state.gpus if it.links_grown and (name := it.uuid or it.pci)))
