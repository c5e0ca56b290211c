"""What do dumps and stacks of this run say, together with what is known of each rank?

Gathers the files of the attempt that hangs. What was written before its last step is of another hang, what
was written after the moment that is asked about was not known then; both are told by the files' times.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from train_ledger import hang
from train_ledger.answer import HangAnswer
from train_ledger.config import Config, Xid
from train_ledger.hang import RankKnowledge, first_fallen, stacks, suspect_place
from train_ledger.ledger import RunState
from train_ledger.ops.evidence.acquittal import accuses_the_ended, acquitted
from train_ledger.ops.evidence.knowledge import knowledge_of
from train_ledger.ops.evidence.of_logs import (
    LogEvidence,
    has_kernel_logs,
    kernel_logs_of,
    logs_of_run,
    read_logs,
)
from train_ledger.render import Picture
from train_ledger.run_dir import RunDir

__all__ = ["HangEvidence", "gather", "logs_about"]

_ABORTED = b"Fatal Python error: Aborted"
_CLOCK_SLACK_S = 30.0
"""File times are the file server's, the step clock is rank 0's."""


@dataclass(frozen=True, slots=True)
class HangEvidence:
    """The answer of the dumps, and where each rank stands by its stack.

    `fallen` are the ranks that raised or died by themselves, before others fell with them. `standing` maps a
    rank to "collective", "host", "set_up" or "unknown". `odd_ranks` are those whose stack stands in host code
    while most others wait in a collective or in the set-up of communication; empty where no such majority is
    clear. `lines` say where they stand, `tally` how many wait. `known` is what signals, logs and the kernel
    say of each rank; `has_kernel_logs` and `has_dumps` whether there were any to look into.
    """

    answer: HangAnswer
    picture: Picture = field(default_factory=Picture)
    fallen: tuple[int, ...] = ()
    standing: Mapping[int, str] = field(default_factory=dict)
    odd_ranks: tuple[int, ...] = ()
    lines: tuple[str, ...] = ()
    tally: tuple[str, ...] = ()
    not_observed: tuple[str, ...] = ()
    known: Mapping[int, RankKnowledge] = field(default_factory=dict)
    has_kernel_logs: bool = False
    has_dumps: bool = False

    @property
    def examination(self) -> hang.Examination:
        return hang.Examination(self.answer, self.picture)


def gather(
    run_dir: RunDir,
    config: Config,
    state: RunState,
    *,
    until_t: float | None = None,
    logs: Sequence[Path] = (),
    over: Collection[str] = (),
    gave_up_t: float | None = None,
) -> HangEvidence:
    """Read the dumps and stacks of the state's attempt, and the logs of the run and of its hosts' kernels.

    `until_t` leaves out files that are newer; `logs` are read instead of the run's own; `over` are places of
    tracebacks ("file:line") that are of another time; by `gave_up_t` (unix s) ranks had given up waiting.
    """
    since_t = _since(state)
    dumps = _files(run_dir.comm_traces(state.attempt), None, until_t)
    found, unread = stacks.read(_stack_files(run_dir.stacks(state.attempt), since_t, until_t))
    told = logs_about(
        run_dir,
        state,
        until_t=until_t,
        logs=logs,
        overrides=config.xid,
        over=over,
        gave_up_t=gave_up_t,
    )
    known = told.known
    examined = hang.examine(
        dumps,
        stacks=found,
        known=known,
        world_size=state.world_size,
        limits=config.limits,
        since_t=since_t,
    )
    fallen = first_fallen(known, range(state.world_size or len(state.ranks)))
    answer, picture = examined.answer, examined.picture
    if answer.findings and not fallen and accuses_the_ended(state, answer, fallen):
        answer, picture = acquitted(answer, state), Picture()
    stands = {rank: stacks.stand_of(stack) for rank, stack in found.items()}
    standing = {rank: stand.where for rank, stand in stands.items()}
    odd = _odd(stands)
    return HangEvidence(
        answer=answer,
        picture=picture,
        fallen=fallen,
        standing=standing,
        odd_ranks=odd,
        lines=(*_lines(stands, answer.culprits or odd), *_suspected(stands, odd)),
        tally=tuple(_tally(standing)),
        not_observed=(*(f"{it.file}: {it.why}" for it in unread), *told.not_observed),
        known=known,
        has_kernel_logs=has_kernel_logs(run_dir),
        has_dumps=bool(dumps),
    )


def logs_about(
    run_dir: RunDir,
    state: RunState,
    *,
    until_t: float | None = None,
    logs: Sequence[Path] = (),
    overrides: Xid | None = None,
    over: Collection[str] = (),
    gave_up_t: float | None = None,
) -> LogEvidence:
    """What the run's signals and logs say of each rank; `logs` are read instead of the run's own.

    `overrides` are levels of XIDs that the user set, `over` places of tracebacks of another time; what was
    raised after `gave_up_t` (unix seconds) was raised as the run was ended.
    """
    paths = [*logs, *kernel_logs_of(run_dir)] if logs else logs_of_run(run_dir)
    known = knowledge_of(state, _aborted(run_dir, state), gave_up_t)
    return read_logs(
        paths, known, state=state, run_dir=run_dir, until_t=until_t, overrides=overrides, over=over
    )


def _since(state: RunState) -> float | None:
    if state.last_step_t is not None:
        return state.last_step_t - _CLOCK_SLACK_S
    return state.attempts[-1].started_t - _CLOCK_SLACK_S if state.attempts else None


def _files(folder: Path, since_t: float | None, until_t: float | None) -> list[Path]:
    """What was put into a folder in that time; other attempts' folders are not entered.

    What is empty or no regular file is among it: whoever reads it says so, and accuses nobody of not being
    there. Hidden are files that are still being written; they vanish while we look.
    """
    found = []
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        if path.name.startswith(".") or path.is_dir():
            continue
        with contextlib.suppress(FileNotFoundError):
            written_t = path.lstat().st_mtime
            if (since_t is None or written_t >= since_t) and (until_t is None or written_t <= until_t):
                found.append(path)
    return found


def _stack_files(folder: Path, since_t: float | None, until_t: float | None) -> list[Path]:
    """Without the rank_N.txt that each rank keeps open for its last stack, as long as they are empty."""
    return [it for it in _files(folder, since_t, until_t) if it.suffix != ".txt" or not _is_empty(it)]


def _is_empty(path: Path) -> bool:
    return path.is_file() and not path.stat().st_size


def _aborted(run_dir: RunDir, state: RunState) -> list[int]:
    """The ranks whose last stack, as faulthandler wrote it, says that abort() was called in them."""
    found = []
    for rank in state.ranks:
        file = run_dir.stacks(state.attempt) / f"rank_{rank}.txt"
        if file.is_file() and file.stat().st_size and file.read_bytes()[:64].startswith(_ABORTED):
            found.append(rank)
    return found


def _odd(stands: Mapping[int, stacks.Stand]) -> tuple[int, ...]:
    """Who stands at its GPU may wait for a collective in its queue, and is not among them."""
    counts = Counter(stand.where for stand in stands.values())
    if 2 * (counts["collective"] + counts["set_up"]) <= len(stands):
        return ()
    return tuple(
        sorted(rank for rank, it in stands.items() if it.where == "host" and not it.waits_for_others)
    )


def _lines(stands: Mapping[int, stacks.Stand], ranks: Sequence[int]) -> Iterable[str]:
    for rank in ranks:
        if stand := stands.get(rank):
            at = f" at {stand.frame}" if stand.frame else ""
            yield f"rank {rank}: its stack {stand.what}{at}"


def _suspected(stands: Mapping[int, stacks.Stand], odd: Sequence[int]) -> Iterable[str]:
    """What usually lies behind the place where the odd ones stand, or all of them in set-up."""
    kinds = {stands[rank].kind for rank in odd or stands}
    row = suspect_place(next(iter(kinds))) if len(kinds) == 1 else None
    if row:
        yield f"suspected: {row.cause}"
        yield f"to mend: {row.fix}"


def _tally(standing: Mapping[int, str]) -> Iterable[str]:
    waiting = sum(where == "collective" for where in standing.values())
    if waiting:
        yield f"stacks: {waiting} of {len(standing)} ranks wait in a collective"
