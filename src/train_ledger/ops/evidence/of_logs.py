"""What do the logs of a run, and the kernel logs of its hosts, say of each rank?"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from train_ledger.config import Xid
from train_ledger.facts import Event
from train_ledger.hang import RankKnowledge
from train_ledger.ledger import RankState, RunState
from train_ledger.ops.evidence.gpu_faults import with_faults
from train_ledger.ops.evidence.log_ranks import known_by_logs
from train_ledger.run_dir import RunDir
from train_ledger.sources import LogReading, Said, SignalDecoder, read_log_files
from train_ledger.sources.logs.watchdog import said_in

__all__ = ["LogEvidence", "has_kernel_logs", "kernel_logs_of", "logs_of_run", "read_logs"]

_HEAD_BYTES = 256 << 10
_CLOCK_SLACK_S = 30.0


@dataclass(frozen=True, slots=True)
class LogEvidence:
    """What is known of each rank, what logs say of it included.

    `not_observed` is what was not read, and what of it is of no rank, in words.
    """

    known: Mapping[int, RankKnowledge]
    not_observed: tuple[str, ...] = ()


def read_logs(
    paths: Sequence[Path],
    known: Mapping[int, RankKnowledge] | None = None,
    *,
    state: RunState | None = None,
    run_dir: RunDir | None = None,
    until_t: float | None = None,
    world_size: int | None = None,
    overrides: Xid | None = None,
    over: Collection[str] = (),
) -> LogEvidence:
    """The logs in `paths` (files or folders), joined with what is known already.

    `state` tells which GPU and process is whose, and since when the run stands still: what logs say of a time
    before that is of an earlier hang. `world_size` goes before the state's. `until_t` (unix seconds) leaves
    out what was said later. `overrides` are levels of XIDs that the user set; `over` places ("file:line") of
    tracebacks that are of an earlier time. The start-up warnings in the signals of `run_dir` are read, too.
    """
    reading = read_log_files(paths, until_t=until_t)
    ranks: Mapping[int, RankState] = state.ranks if state else {}
    reading, passed = _without(reading, over)
    notes = [*(f"logs: {it}" for it in reading.skipped), *passed]
    if state is not None:
        reading, old = _of_this_hang(reading, state)
        notes += old
    if run_dir is not None and state is not None:
        reading = replace(reading, said=(*reading.said, *_warnings(run_dir, state)))
    world_size = world_size or (state.world_size if state else None)
    found = known_by_logs(reading, known or {}, world_size)
    if world_size is not None:
        found = {rank: it for rank, it in found.items() if rank < world_size or rank in (known or {})}
    t = until_t if until_t is not None else (state.t if state else None)
    stands_since_t = _stands_since(state) if state else None
    found, strangers = with_faults(found, reading.kernel, ranks, t, stands_since_t, overrides)
    return LogEvidence(found, (*notes, *strangers))


def logs_of_run(run_dir: RunDir) -> list[Path]:
    """Where a run's logs and the kernel logs of its hosts lie; what is not there is left out."""
    return [*(it for it in run_dir.log_folders() if it.is_dir()), *kernel_logs_of(run_dir)]


def kernel_logs_of(run_dir: RunDir) -> list[Path]:
    """The kernel logs in the run directory, a file a host."""
    return sorted(run_dir.hardware.glob("*.kern.log")) if run_dir.hardware.is_dir() else []


def has_kernel_logs(run_dir: RunDir) -> bool:
    return bool(kernel_logs_of(run_dir))


def _without(reading: LogReading, over: Collection[str]) -> tuple[LogReading, list[str]]:
    """Without tracebacks that training went on from, of another run in the folder, or of clearing away."""
    kept = tuple(it for it in reading.raised if os.path.normpath(it.source) not in over)
    left_out = len(reading.raised) - len(kept)
    notes = [f"logs: {left_out} exceptions of before it stood still, or of after others had given up waiting"]
    return replace(reading, raised=kept), notes if left_out else []


def _of_this_hang(reading: LogReading, state: RunState) -> tuple[LogReading, list[str]]:
    """Without what belongs to an earlier attempt or to an earlier hang of this one."""
    stands_since_t = _stands_since(state)
    if stands_since_t is not None:
        since_t = stands_since_t - _CLOCK_SLACK_S
        said = tuple(it for it in reading.said if it.t is None or it.t >= since_t or it.kind == "setting")
        reading = replace(reading, said=said)
    if state.attempt == 0:
        return reading, []
    kept = tuple(it for it in reading.raised if "attempt_" in it.source)
    ended = tuple(it for it in reading.ended if "attempt_" in it.source)
    left_out = len(reading.raised) + len(reading.ended) - len(kept) - len(ended)
    notes = [f"logs: {left_out} ends of ranks that may be of an earlier attempt: they carry no time"]
    return replace(reading, raised=kept, ended=ended), notes if left_out else []


def _stands_since(state: RunState) -> float | None:
    """When the run last made a step, else when its attempt began (unix seconds)."""
    if state.last_step_t is not None:
        return state.last_step_t
    return state.attempts[-1].started_t if state.attempts else None


def _warnings(run_dir: RunDir, state: RunState) -> Iterator[Said]:
    """What start-up warned of in a rank's signals, read as a line of its log would be."""
    decoder = SignalDecoder()
    for rank, path in run_dir.signal_files():
        if rank not in state.ranks:
            continue
        try:
            with path.open("rb") as file:
                head = file.read(_HEAD_BYTES)
        except OSError:
            continue
        for line in head.split(b"\n"):
            fact = decoder.decode(line, str(path), rank=rank) if b'"warning"' in line else None
            if isinstance(fact, Event) and fact.name == "warning" and fact.attempt == state.attempt:
                message = str(fact.details.get("message", "")).encode("utf-8", "replace")
                yield from said_in(message, rank=rank, source=str(path))
