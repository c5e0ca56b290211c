"""On which hosts do the ranks of a run live, and which processes of this host are they?"""

from __future__ import annotations

import math
import socket
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from train_ledger.answer import Unreadable
from train_ledger.cli.leave import BadInputError
from train_ledger.facts import Event
from train_ledger.fields import LARGEST_ATTEMPT, LARGEST_WORLD_SIZE, read_number
from train_ledger.run_dir import RunDir, parsed_json, read_small

__all__ = ["Here", "hosts_of", "pids_here"]


_LARGEST_PID = 1 << 22


@dataclass(frozen=True, slots=True, order=True)
class _Start:
    """One start of one rank, as the rank itself or ranks.jsonl tells it; the later one sorts last.

    Of two tellings of one start that with the process id counts, which is 0 where it is not told.
    """

    attempt: int
    t: float
    rank: int
    pid: int
    host: str


@dataclass(frozen=True, slots=True)
class Here:
    """Process ids by rank, and what could not be read while they were looked for."""

    pids: dict[int, int]
    unread: tuple[Unreadable, ...]


def pids_here(run_dir: RunDir) -> Here:
    """The processes of the ranks that were last started on this host.

    Raises BadInputError where there are none, saying where the ranks run instead.
    """
    latest, unread = _latest(run_dir)
    here = socket.gethostname()
    pids = {rank: start.pid for rank, start in sorted(latest.items()) if start.host == here and start.pid}
    if not pids:
        not_read = f" ({unread[0].file}: {unread[0].why})" if unread else ""
        raise BadInputError(
            f"{run_dir.path}: {_where(latest.values(), here)}{not_read}; or name the processes with --pid"
        )
    return Here(pids, tuple(unread))


def hosts_of(run_dir: RunDir) -> tuple[str, ...]:
    """The hosts on which the ranks were last started, in the order of their ranks.

    Raises BadInputError where the run directory names none.
    """
    latest, _ = _latest(run_dir)
    hosts = tuple(dict.fromkeys(start.host for _, start in sorted(latest.items())))
    if not hosts:
        raise BadInputError(f"{run_dir.path}: says of no rank on which host it runs; name them with --hosts")
    return hosts


def _latest(run_dir: RunDir) -> tuple[dict[int, _Start], list[Unreadable]]:
    """The last start of each rank, and what could not be read."""
    unread: list[Unreadable] = []
    starts = sorted([*_listed(run_dir, unread), *_said(run_dir, unread)])
    return {start.rank: start for start in starts}, unread


def _where(starts: Iterable[_Start], here: str) -> str:
    hosts = sorted({start.host for start in starts})
    if not hosts:
        return "does not say which processes are its ranks (no run_start event, no ranks.jsonl)"
    shown = ", ".join(hosts[:8]) + (f" and {len(hosts) - 8} more" if len(hosts) > 8 else "")
    return f"no rank runs on this host ({here}); run this on {shown}, or from here with --launcher ssh"


def _said(run_dir: RunDir, unread: list[Unreadable]) -> Iterator[_Start]:
    """From the ranks' own run_start events."""
    from train_ledger.sources import read_run

    reading = read_run(run_dir)
    if reading.not_read:
        unread.append(Unreadable("logs" if reading.by_logs else "signals", ", ".join(reading.not_read)))
    for fact in reading.facts:
        if isinstance(fact, Event) and fact.name == "run_start":
            yield from _start(fact.attempt, fact.t, fact.rank, fact.details.get("pid"), fact.host)


def _listed(run_dir: RunDir, unread: list[Unreadable]) -> Iterator[_Start]:
    """From ranks.jsonl, which a job without our signals may bring; its bad lines are told by `_said`."""
    try:
        lines = read_small(run_dir.ranks_jsonl).splitlines()
    except FileNotFoundError:
        return
    except OSError as error:
        unread.append(Unreadable(run_dir.ranks_jsonl.name, error.strerror or str(error)))
        return
    for line in lines:
        try:
            entry = parsed_json(line)
        except ValueError:
            continue
        if isinstance(entry, dict):
            told = [entry.get(name) for name in ("attempt", "t", "rank", "pid", "host")]
            yield from _start(told[0] or 0, told[1] or 0.0, *told[2:])


def _start(attempt: object, t: object, rank: object, pid: object, host: object) -> Iterator[_Start]:
    began_t = read_number(t)
    if not (_whole(attempt, LARGEST_ATTEMPT) and _whole(rank, LARGEST_WORLD_SIZE)):
        return
    if began_t is not None and math.isfinite(began_t) and isinstance(host, str):
        known_pid = pid if _whole(pid, _LARGEST_PID) else 0
        yield _Start(attempt, began_t, rank, known_pid, host)  # type: ignore[arg-type]


def _whole(value: object, largest: int) -> bool:
    return type(value) is int and 0 <= value <= largest
