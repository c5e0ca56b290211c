"""What is done at once when a run hangs, before anybody is awake?

The evidence of a hang vanishes with the job, so it is taken while the job lives: every rank's Flight
Recorder by a request that the rank answers itself, its Python stacks from outside. Then the verdict. What
did not answer in time is said, never waited for.
"""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from train_ledger.answer import Diagnosis
from train_ledger.config import Config
from train_ledger.hang import stacks
from train_ledger.ledger import RankState, RunState
from train_ledger.ops import examine
from train_ledger.render import Picture, ranks_in_words
from train_ledger.run_dir import RunDir, write_atomically
from train_ledger.watch.worker_server import WorkerServerError, fetch_dump

__all__ = ["Collected", "FirstAnswers", "collect", "living", "respond"]

_LOOK_EVERY_S = 0.1
_MOST_SAID = 4
_GRACE_S = 3.0


@dataclass(frozen=True, slots=True)
class Collected:
    """What was taken from the ranks: who dumped, whose stacks were read, and what is missing why.

    `failed` maps ("dump" or "stacks", rank) to the reason.
    """

    dumped: tuple[int, ...]
    stacked: tuple[int, ...]
    failed: Mapping[tuple[str, int], str]
    took_s: float

    @property
    def missing(self) -> tuple[str, ...]:
        """What is missing in words, ranks with the same reason together."""
        ranks: dict[tuple[str, str], list[int]] = {}
        for (what, rank), why in self.failed.items():
            ranks.setdefault((what, why), []).append(rank)
        return tuple(f"no {what} of {ranks_in_words(who)}: {why}" for (what, why), who in ranks.items())


@dataclass(frozen=True, slots=True)
class FirstAnswers:
    """What was taken, the verdict on it, and what is drawn beside it."""

    collected: Collected
    diagnosis: Diagnosis
    picture: Picture | None = None

    @property
    def summary(self) -> str:
        """In one sentence: from how many ranks what was taken, and what was not."""
        taken = self.collected
        said = f"{len(taken.dumped)} dumps and {len(taken.stacked)} stacks in {taken.took_s:.1f} s"
        return "; ".join([said, *taken.missing[:_MOST_SAID]])


def respond(
    run_dir: RunDir, config: Config, state: RunState, request: str, ending: threading.Event | None = None
) -> FirstAnswers:
    """Collect what the configuration asks for, then diagnose with it.

    `request` names what is asked of the ranks; a rank answers each name once. Once `ending` is set nothing is
    waited for any more.
    """
    collected = collect(run_dir, config, state, request, ending or threading.Event())
    diagnosis, picture = examine(run_dir, config, state=state)
    return FirstAnswers(collected, diagnosis, picture)


def collect(
    run_dir: RunDir, config: Config, state: RunState, request: str, ending: threading.Event
) -> Collected:
    """Dumps and stacks of every rank that still lives, within the configured waits."""
    started = time.monotonic()
    asked = living(state)
    failed: dict[tuple[str, int], str] = {}
    wanted = config.respond.on_page
    dump = _ask(run_dir, f"{request}-dump", "dump", state.t, asked) if "dump" in wanted else None
    stacked = _take_stacks(run_dir, config, state.attempt, asked, failed) if "stacks" in wanted else ()
    dumped: tuple[int, ...] = ()
    if dump:
        dumped = _await(run_dir, dump, asked, config.respond.dump_wait_s, failed, ending)
        dumped = tuple(sorted({*dumped, *_ask_servers(run_dir, asked, dumped, failed)}))
    return Collected(dumped, stacked, failed, time.monotonic() - started)


def living(state: RunState) -> list[RankState]:
    """The ranks that can still be asked, as far as is known."""
    return [it for it in state.ranks.values() if it.gone_t is None and not it.ended]


def _ask(run_dir: RunDir, request_id: str, do: str, t: float, ranks: Iterable[RankState]) -> str:
    request = {"id": request_id, "t": t, "do": do, "ranks": [it.rank for it in ranks]}
    write_atomically(run_dir.request(request_id), json.dumps(request).encode() + b"\n")
    return request_id


def _await(
    run_dir: RunDir,
    request_id: str,
    ranks: Iterable[RankState],
    wait_s: float,
    failed: dict[tuple[str, int], str],
    ending: threading.Event,
) -> tuple[int, ...]:
    """The ranks that answered that they dumped; why not, of the others, goes into `failed`."""
    waiting = {it.rank for it in ranks}
    most = len(waiting) / 2
    answered: list[int] = []
    started = time.monotonic()
    deadline = started + wait_s
    while waiting and time.monotonic() < deadline:
        for rank, reply in _replies(run_dir, request_id, waiting):
            waiting.discard(rank)
            if reply.get("ok"):
                answered.append(rank)
            else:
                failed["dump", rank] = str(reply.get("error"))
        if len(waiting) < most:
            # A rank that can answer does so about as fast as its peers; the others are the ones to look at.
            deadline = min(deadline, time.monotonic() + _GRACE_S)
            most = 0
        if waiting and ending.wait(_LOOK_EVERY_S):
            break
    waited_s = time.monotonic() - started
    silent = f"no answer in {waited_s:.0f} s: no thread of it runs, or no monitor"
    failed.update({("dump", rank): silent for rank in sorted(waiting)})
    return tuple(sorted(answered))


def _replies(
    run_dir: RunDir, request_id: str, ranks: Iterable[int]
) -> list[tuple[int, Mapping[str, object]]]:
    found = ((rank, _reply(run_dir.reply(request_id, rank))) for rank in sorted(ranks))
    return [(rank, reply) for rank, reply in found if reply is not None]


def _ask_servers(
    run_dir: RunDir, ranks: Iterable[RankState], dumped: tuple[int, ...], failed: dict[tuple[str, int], str]
) -> tuple[int, ...]:
    """The ranks that torch's worker server dumped, of those that did not answer themselves."""
    here = socket.gethostname()
    found = []
    for it in ranks:
        if it.rank in dumped or it.worker_server is None or it.host not in (None, here):
            continue
        try:
            fetch_dump(it.worker_server, run_dir.comm_trace_of(it.rank, it.attempt))
        except WorkerServerError as error:
            failed["dump", it.rank] += f"; {error}"
        else:
            failed.pop(("dump", it.rank), None)
            found.append(it.rank)
    return tuple(found)


def _reply(path: Path) -> Mapping[str, object] | None:
    try:
        content = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None  # not answered yet, or caught in the middle of its rename on a slow file system
    return content if isinstance(content, dict) else None


def _take_stacks(
    run_dir: RunDir,
    config: Config,
    attempt: int,
    ranks: Iterable[RankState],
    failed: dict[tuple[str, int], str],
) -> tuple[int, ...]:
    here = socket.gethostname()
    pids = {it.rank: it.pid for it in ranks if it.pid is not None and it.host in (None, here)}
    wait_s, folder = config.respond.stacks_wait_s, run_dir.stacks(attempt)
    # With the frames of C a rank that waits in a send, a receive or the store shows where it does. It takes
    # longer, which does not hurt a job that stands still.
    problems = stacks.take(pids, folder, timeout_s=wait_s, native=True)
    if problems:
        problems = stacks.take({rank: pids[rank] for rank in problems}, folder, timeout_s=wait_s)
    failed.update({("stacks", rank): why for rank, why in problems.items()})
    return tuple(sorted(set(pids) - set(problems)))
