"""What is done at once when a run hangs, before anybody is awake?

The evidence of a hang vanishes with the job, so it is taken while the job lives: every rank's Flight
Recorder by a request that the rank answers itself, its Python stacks from outside, or where nobody here can
look into its process by such a request, too. Then the verdict. What did not answer in time is said, never
waited for.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from train_ledger.answer import Diagnosis
from train_ledger.config import Config
from train_ledger.hang import stacks
from train_ledger.ledger import RankState, RunState
from train_ledger.ops import examine
from train_ledger.ops.asking.collect import (
    Asking,
    Dumps,
    await_dumps,
    await_stacks,
    request_dumps,
    request_stacks,
)
from train_ledger.render import Picture, ranks_in_words
from train_ledger.run_dir import RunDir

__all__ = ["MOST_SAID", "Answering", "Collected", "FirstAnswers", "collect", "living", "respond"]

MOST_SAID = 4
"""Reasons for what is missing that are told."""


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
        return "; ".join([said, *taken.missing[:MOST_SAID]])


Answering = Callable[[RunDir, Config, RunState, str, threading.Event | None], FirstAnswers]
"""Finds the first answers, as `respond` does."""


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
    asking = Asking(f"{request}-dump", state.t, config.respond.dump_wait_s, ending)
    if "dump" in wanted:
        request_dumps(run_dir, asked, asking)
    stacked = _take_stacks(run_dir, config, state.attempt, asked, failed) if "stacks" in wanted else ()
    dumps = await_dumps(run_dir, asked, asking) if "dump" in wanted else None
    failed.update({("dump", rank): why for rank, why in (dumps.failed if dumps else {}).items()})
    if "stacks" in wanted:
        others = [it for it in asked if it.rank not in stacked]
        by_request = Asking(f"{request}-stacks", state.t, config.respond.stacks_wait_s, ending)
        stacked = (*stacked, *_ask_for_stacks(run_dir, others, by_request, dumps, failed))
    dumped = tuple(sorted(dumps.by)) if dumps else ()
    return Collected(dumped, tuple(sorted(stacked)), failed, time.monotonic() - started)


def _ask_for_stacks(
    run_dir: RunDir,
    ranks: list[RankState],
    asking: Asking,
    dumps: Dumps | None,
    failed: dict[tuple[str, int], str],
) -> Iterable[int]:
    """Of ranks on other hosts, and of those here that a debugger could not look into: by their monitors.

    Whose monitor has not answered for a dump is not waited for once more.
    """
    asked = [it for it in ranks if dumps is None or it.rank not in dumps.silent]
    if asked:
        request_stacks(run_dir, asked, asking)
    told = await_stacks(run_dir, asked, asking)
    for it in ranks:
        if it.rank in told.by:
            failed.pop(("stacks", it.rank), None)
        elif why := told.failed.get(it.rank) or (dumps.failed.get(it.rank) if dumps else None):
            failed.setdefault(("stacks", it.rank), why)
    return told.by


def living(state: RunState) -> list[RankState]:
    """The ranks that can still be asked, as far as is known."""
    return [it for it in state.ranks.values() if it.gone_t is None and not it.ended]


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
