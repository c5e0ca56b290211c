"""Which processes of this host are ranks of the run?"""

from __future__ import annotations

import json
import socket
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from train_ledger.cli.leave import BadInputError
from train_ledger.facts import Event
from train_ledger.run_dir import RunDir

__all__ = ["pids_here"]


@dataclass(frozen=True, slots=True, order=True)
class _Start:
    """One start of one rank, as the rank itself or ranks.jsonl tells it; the later one sorts last."""

    attempt: int
    t: float
    rank: int
    pid: int
    host: str


def pids_here(run_dir: RunDir) -> dict[int, int]:
    """Process ids by rank, of the ranks that were last started on this host.

    Raises BadInputError where there are none, saying where the ranks run instead.
    """
    latest = {start.rank: start for start in sorted([*_listed(run_dir), *_said(run_dir)])}
    here = socket.gethostname()
    pids = {rank: start.pid for rank, start in sorted(latest.items()) if start.host == here}
    if not pids:
        raise BadInputError(
            f"{run_dir.path}: {_where(latest.values(), here)}; or name the processes with --pid"
        )
    return pids


def _where(starts: Iterable[_Start], here: str) -> str:
    hosts = sorted({start.host for start in starts})
    if not hosts:
        return "does not say which processes are its ranks (no run_start event, no ranks.jsonl)"
    shown = ", ".join(hosts[:8]) + (f" and {len(hosts) - 8} more" if len(hosts) > 8 else "")
    return f"no rank runs on this host ({here}); run this on {shown}"


def _said(run_dir: RunDir) -> Iterator[_Start]:
    """From the ranks' own run_start events."""
    from train_ledger.sources import read_all

    for fact in read_all(run_dir):
        if isinstance(fact, Event) and fact.name == "run_start":
            yield from _start(fact.attempt, fact.t, fact.rank, fact.details.get("pid"), fact.host)


def _listed(run_dir: RunDir) -> Iterator[_Start]:
    """From ranks.jsonl, which a job without our signals may bring."""
    try:
        lines = run_dir.ranks_jsonl.read_bytes().splitlines()
    except FileNotFoundError:
        return
    for line in lines:
        try:
            entry = json.loads(line)
        except ValueError:
            continue  # a line that is being written; the next call reads it
        if isinstance(entry, dict):
            told = [entry.get(name) for name in ("attempt", "t", "rank", "pid", "host")]
            yield from _start(told[0] or 0, told[1] or 0.0, *told[2:])


def _start(attempt: object, t: object, rank: object, pid: object, host: object) -> Iterator[_Start]:
    whole = isinstance(attempt, int) and isinstance(rank, int) and isinstance(pid, int) and pid > 0
    if whole and isinstance(t, int | float) and isinstance(host, str):
        yield _Start(attempt, float(t), rank, pid, host)  # type: ignore[arg-type]
