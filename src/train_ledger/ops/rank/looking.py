"""Look at one rank of a run: everything that is known of it, gathered into one answer."""

from __future__ import annotations

import shlex
import signal
from collections.abc import Iterator
from dataclasses import replace

from train_ledger.answer import NextCommand
from train_ledger.config import Config
from train_ledger.dash.hardware_conditions import failing_memory, is_low, lost_gpus, recent_xids
from train_ledger.ledger import RankState, RunState, xid
from train_ledger.ledger.state import GpuState
from train_ledger.ops.account.launcher import launcher_signs
from train_ledger.ops.commands import look_at_rank
from train_ledger.ops.rank.observed import Seen, look
from train_ledger.ops.rank.outputs import collective_of, log_of, stack_of
from train_ledger.ops.rank.records import Doing, GpuNow, RankAnswer
from train_ledger.ops.rank.verdict import verdict_of
from train_ledger.ops.rank.waiting import waiting_for
from train_ledger.render import ranks_in_brief
from train_ledger.run_dir import RunDir

__all__ = ["RankError", "look_at"]

_CLOCKS_S = 90.0
"""Clocks of hosts differ, and the step in which it was killed may still have been written down."""


class RankError(Exception):
    """The run has no such rank; the text says which ranks it has."""


def look_at(run_dir: RunDir, config: Config, rank: int, *, at: float | None = None) -> RankAnswer:
    """What the rank is doing as known at `at` (unix seconds; None: now).

    Raises RunDirError where run.json cannot be used, and RankError for a rank that the run does not have.
    """
    seen = look(run_dir, config, rank, at)
    _want_rank(seen, rank)
    answer = _outputs(run_dir, config, seen, _as_killed(run_dir, _of_state(seen, rank)), at)
    answer = replace(answer, gpu=_gpu(seen.state, config, rank))
    answer = replace(answer, waiting=waiting_for(run_dir, seen.state, rank, at))
    return replace(
        answer,
        verdict=verdict_of(answer),
        not_observed=tuple(dict.fromkeys((*answer.not_observed, *_not_observed(run_dir, seen, answer)))),
        next=tuple(_next(run_dir, seen.state, answer)),
    )


def _want_rank(seen: Seen, rank: int) -> None:
    world, known = seen.state.world_size, sorted(seen.ranks)
    if rank in seen.ranks or (world is not None and rank < world):
        return
    size = "its world_size is not known" if world is None else f"its world_size is {world} (0 to {world - 1})"
    told = f"known are {ranks_in_brief(known)}" if known else "no rank of it has written anything"
    raise RankError(f"rank {rank}: the run has no such rank; {size}, {told}")


def _of_state(seen: Seen, rank: int) -> RankAnswer:
    state, own = seen.state, seen.state.ranks.get(rank)
    answer = RankAnswer(
        rank=rank,
        run=state.run,
        t=state.t,
        state=state.state,
        doing=_doing(state, own),
        world_size=state.world_size,
        attempt=state.attempt,
        run_step=state.step,
        where=seen.where,
        lines=seen.lines,
        not_observed=seen.not_read,
    )
    if own is None or own.speaks_for_all:
        return answer
    return replace(
        answer,
        attempt=own.attempt,
        step=own.step,
        step_t=own.step_t,
        ahead=own.step - state.step if own.step is not None and state.step is not None else None,
        phase=own.phase,
        phase_since_t=own.phase_since_t,
        heard_t=own.heard_t,
        gone_t=own.gone_t,
        exception=own.exception,
        raised_t=own.raised_t,
        signal=own.signal,
        signal_t=own.signal_t,
    )


def _as_killed(run_dir: RunDir, answer: RankAnswer) -> RankAnswer:
    """A rank that was killed cannot say so; its launcher's log does."""
    if answer.doing not in ("stands", "behind", "unheard") or answer.heard_t is None:
        return answer
    since_t = answer.heard_t - _CLOCKS_S
    told = (it.t_us / 1e6 for it in launcher_signs(run_dir) if (it.rank, it.cause) == (answer.rank, "killed"))
    killed_t = min((t for t in told if since_t <= t <= answer.t), default=None)
    if killed_t is None:
        return answer
    return replace(answer, doing="gone", gone_t=killed_t, signal=int(signal.SIGKILL), signal_t=killed_t)


def _doing(state: RunState, own: RankState | None) -> Doing:
    """The first that holds."""
    if own is None or own.speaks_for_all:
        return "silent"
    if own.exception is not None:
        return "raised"
    if own.gone_t is not None:
        return "gone"
    if own.signal is not None:
        return "signalled"
    if own.ended:
        return "ended"
    if state.stalled_for_s <= state.stall_threshold_s:
        return "unheard" if _is_left_behind(state, own) else "steps"
    is_behind = state.step is not None and (own.step is None or own.step < state.step)
    return "behind" if is_behind else "stands"


def _is_left_behind(state: RunState, own: RankState) -> bool:
    """Whether the run has gone on for so long without a word of the rank that its lines must be missing."""
    if own.heard_t is None or own.step is None or state.step is None:
        return False
    return own.step < state.step and state.t - own.heard_t > state.stall_threshold_s


def _outputs(run_dir: RunDir, config: Config, seen: Seen, answer: RankAnswer, at: float | None) -> RankAnswer:
    host, attempt, rank = answer.where.host, answer.attempt, answer.rank
    log = log_of(run_dir, rank, host, answer.where.local_rank, at)
    stack, bad_stacks = stack_of(run_dir, rank, host, attempt, at)
    collective, bad_dumps = collective_of(run_dir, rank, attempt, config.limits, at)
    missing = [*answer.not_observed, *bad_stacks, *bad_dumps]
    if isinstance(log, str):
        missing.append(log)
    return replace(
        answer,
        log=None if isinstance(log, str) else log,
        stack=stack,
        collective=collective,
        not_observed=tuple(missing),
    )


def _gpu(state: RunState, config: Config, rank: int) -> GpuNow | None:
    own = next((gpu for gpu in state.gpus if rank in gpu.ranks), None)
    if own is None:
        return None
    return GpuNow(own.seen_t, dict(sorted(own.values.items())), tuple(_faults(own, state, config)))


def _faults(own: GpuState, state: RunState, config: Config) -> Iterator[str]:
    alerts = config.alerts
    for gpu, told in recent_xids(state, alerts, "page"):
        if gpu is own:
            yield f"XID {told.code}, {xid(told.code).meaning}"
    yield from (why for gpu, why in failing_memory(state, alerts) if gpu is own)
    if any(gpu is own for gpu in lost_gpus(state, alerts)):
        yield "no longer seen while the other GPUs of its host are"
    if is_low(own, state, alerts):
        yield f"its clocks are low: {own.low_why}"
    for name, more in own.links_grown.items():
        yield f"{name} grew by {more:.0f}"


def _not_observed(run_dir: RunDir, seen: Seen, answer: RankAnswer) -> Iterator[str]:
    if answer.doing == "silent":
        size = f", which {seen.state.world_size} ranks began" if _is_beyond(seen.state, answer.rank) else ""
        yield f"signals: this rank has written no line of attempt {answer.attempt}{size}"
    if answer.doing == "unheard":
        yield "whether it steps: the run goes on, so that it must; its lines do not arrive here"
    if answer.where.host is None:
        yield "its host: neither run_start nor ranks.jsonl tells it"
    elif answer.where.rack is None and answer.where.switch_port is None:
        yield "rack and switch port: ranks.jsonl does not tell them (rack, switch_port)"
    if answer.stack is None:
        yield f"stack: none was taken in attempt {answer.attempt} ({run_dir.stacks(answer.attempt)})"
    if answer.collective is None:
        traces = run_dir.comm_traces(answer.attempt)
        yield f"last collective: no Flight Recorder dump of it in attempt {answer.attempt} ({traces})"
    if answer.gpu is None:
        yield "hardware: no readings of its GPU, and no kernel log that speaks of it"
    if answer.waiting is None and answer.doing not in ("steps", "ended", "unheard"):
        yield "who waits for it: no verdict of the dumps, and the ranks' own lines do not show it"


def _is_beyond(state: RunState, rank: int) -> bool:
    """Whether the attempt is smaller than an earlier one, and the rank is none of it."""
    return state.world_size is not None and rank >= state.world_size


def _next(run_dir: RunDir, state: RunState, answer: RankAnswer) -> Iterator[NextCommand]:
    here = shlex.quote(str(run_dir.path))
    if answer.state in ("finished", "stopped"):
        return
    if answer.doing != "gone":
        yield from look_at_rank(state, answer.rank)
    if answer.collective is None and answer.doing not in ("gone", "raised", "silent"):
        yield NextCommand("every rank's Flight Recorder, this one's too", f"train-ledger dump {here}")
    if answer.doing == "steps" and not state.by_logs:
        profile = f"train-ledger ask {here} profile --ranks {answer.rank}"
        yield NextCommand("where its time goes in the next steps", profile)
        return
    if run_dir.comm_traces(answer.attempt).is_dir():
        yield NextCommand("who waits for whom, by all dumps", f"train-ledger hang --run {here}")
    yield NextCommand("what is wrong with the run", f"train-ledger diagnose {here}")
