"""How does everybody leave a dump while the job lives?

Each rank is asked by a request in the run directory, which its monitor answers. Who does not answer – no
monitor, or no thread of it runs – is asked through torch's own worker server or NCCL's named pipe, where it
has one. Nobody is ended, nothing is waited for beyond its time, and what is missing is told with the reason.
"""

from __future__ import annotations

import errno
import json
import socket
import threading
import time
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import psutil  # type: ignore[import-untyped]

from train_ledger.hang.dumps.pickles import RefusedError, open_regular
from train_ledger.ops.asking.pipes import PipeError, Watched, ask_by_pipe, dump_places, pipe_prefix
from train_ledger.ops.asking.worker_server import WorkerServerError, fetch_dump
from train_ledger.run_dir import RunDir, parsed_json, read_small, write_atomically
from train_ledger.sources.processes.process import RankPlace
from train_ledger.sources.processes.rank_processes import variables_of

__all__ = [
    "Asking",
    "Dumps",
    "await_dumps",
    "await_stacks",
    "collect_dumps",
    "request_dumps",
    "request_stacks",
]

_LOOK_EVERY_S = 0.1
_GRACE_S = 3.0
_MOST_BYTES = 1 << 30
_REPLY_BYTES = 1 << 20
_SERVERS_AT_ONCE = 8
_GONE = "no answer, and no process {pid} here: it ended, or counts in a container of its own"


class Rank(RankPlace, Protocol):
    """What must be known of a rank to ask it; `ledger.RankState` fits."""

    @property
    def worker_server(self) -> str | None: ...


@dataclass(frozen=True, slots=True)
class Asking:
    """How to ask: what the request is called, when it was made (unix s), how long answers are waited for.

    `pipe_prefix` and `dump_prefix` go before what the ranks' environments say. Once `ending` is set nothing
    is waited for any more.
    """

    request_id: str
    t: float
    wait_s: float
    ending: threading.Event = field(default_factory=threading.Event)
    pipe_prefix: str | None = None
    dump_prefix: str | None = None


@dataclass(frozen=True, slots=True)
class Dumps:
    """Who left a dump and by which way, and who did not, why; all by rank. `silent` did not answer at all."""

    by: Mapping[int, str]
    failed: Mapping[int, str]
    silent: frozenset[int] = frozenset()


def collect_dumps(run_dir: RunDir, ranks: Iterable[Rank], asking: Asking) -> Dumps:
    """Ask all `ranks`; their dumps lie in the run directory then, whole, with their ranks in their names."""
    asked = list(ranks)
    request_dumps(run_dir, asked, asking)
    return await_dumps(run_dir, asked, asking)


def await_dumps(run_dir: RunDir, ranks: Iterable[Rank], asking: Asking) -> Dumps:
    """The second half: wait for those who were asked by `request_dumps`, then ask the silent otherwise."""
    asked = list(ranks)
    by, failed, unheard = _await(run_dir, asking, asked)
    here = socket.gethostname()
    silent = [it for it in asked if it.rank in failed and it.host in (None, here)]
    if asking.ending.is_set():
        return Dumps(by, failed, unheard)
    for it in silent:
        if it.pid is not None and it.host == here and not psutil.pid_exists(it.pid):
            failed[it.rank] = _GONE.format(pid=it.pid)
    with ThreadPoolExecutor(_SERVERS_AT_ONCE) as threads:
        for it, why in zip(silent, threads.map(lambda it: _ask_server(run_dir, it), silent), strict=True):
            if why is None:
                by[it.rank] = "its worker server"
            else:
                failed[it.rank] += why
    _ask_pipes(run_dir, asking, [it for it in silent if it.rank not in by], by, failed)
    return Dumps(by, {rank: why for rank, why in failed.items() if rank not in by}, unheard)


def request_dumps(run_dir: RunDir, ranks: Iterable[Rank], asking: Asking) -> None:
    """The first half of `collect_dumps`: put the request where the ranks look for one."""
    _request(run_dir, ranks, asking, "dump")


def request_stacks(run_dir: RunDir, ranks: Iterable[Rank], asking: Asking) -> None:
    """Have ranks write down where they stand, which no debugger on this host could look at."""
    _request(run_dir, ranks, asking, "stacks")


def await_stacks(run_dir: RunDir, ranks: Iterable[Rank], asking: Asking) -> Dumps:
    """Who of those that were asked by `request_stacks` wrote their stacks, and who did not, why."""
    return Dumps(*_await(run_dir, asking, ranks))


def _request(run_dir: RunDir, ranks: Iterable[Rank], asking: Asking, do: str) -> None:
    wanted = {"id": asking.request_id, "t": asking.t, "do": do, "ranks": [it.rank for it in ranks]}
    write_atomically(run_dir.request(asking.request_id), json.dumps(wanted).encode() + b"\n")


def _await(
    run_dir: RunDir, asking: Asking, ranks: Iterable[Rank]
) -> tuple[dict[int, str], dict[int, str], frozenset[int]]:
    """Who answered that it has done it, why the others have not, and which of them did not answer."""
    waiting = {it.rank for it in ranks}
    most = len(waiting) / 2
    by: dict[int, str] = {}
    failed: dict[int, str] = {}
    started = time.monotonic()
    deadline = started + asking.wait_s
    while waiting and time.monotonic() < deadline:
        for rank, reply in _replies(run_dir, asking.request_id, waiting):
            waiting.discard(rank)
            if reply.get("ok"):
                by[rank] = "its monitor"
            else:
                failed[rank] = str(reply.get("error"))
        if len(waiting) < most:
            # A rank that can answer does so about as fast as its peers; the others are the ones to look at.
            deadline = min(deadline, time.monotonic() + _GRACE_S)
            most = 0
        if waiting and asking.ending.wait(_LOOK_EVERY_S):
            break
    waited_s = time.monotonic() - started
    silent = f"no answer in {waited_s:.0f} s: no thread of it runs, or no monitor"
    failed.update(dict.fromkeys(sorted(waiting), silent))
    return by, failed, frozenset(waiting)


def _replies(
    run_dir: RunDir, request_id: str, ranks: Iterable[int]
) -> list[tuple[int, Mapping[str, object]]]:
    found = ((rank, _reply(run_dir.reply(request_id, rank))) for rank in sorted(ranks))
    return [(rank, reply) for rank, reply in found if reply is not None]


def _reply(path: Path) -> Mapping[str, object] | None:
    try:
        content = parsed_json(read_small(path, limit_bytes=_REPLY_BYTES))
    except OSError as error:
        if error.errno == errno.EINVAL:  # there is something, and it is no reply
            return {"ok": False, "error": f"{path}: {error.strerror}"}
        return None
    except ValueError:
        return None  # caught in the middle of its rename on a slow file system
    return content if isinstance(content, dict) else None


def _ask_server(run_dir: RunDir, rank: Rank) -> str | None:
    """Fetches the dump of one rank from torch's own server; why that failed, "" where it has none."""
    if rank.worker_server is None:
        return ""
    try:
        fetch_dump(rank.worker_server, run_dir.comm_trace_of(rank.rank, rank.attempt))
    except WorkerServerError as error:
        return f"; {error}"
    return None


def _ask_pipes(
    run_dir: RunDir, asking: Asking, ranks: Iterable[Rank], by: dict[int, str], failed: dict[int, str]
) -> None:
    """All of them at once, then wait until their files are whole."""
    waiting: dict[int, tuple[Rank, list[Watched]]] = {}
    for it in ranks:
        variables = variables_of(it.pid) if it.pid is not None else {}
        prefix = asking.pipe_prefix or pipe_prefix(variables)
        if prefix is None:
            continue
        places = dump_places(it.rank, variables, it.pid, asking.dump_prefix)
        watched = [Watched(path) for path in [*places, run_dir.comm_trace_of(it.rank, it.attempt)]]
        try:
            ask_by_pipe(prefix, it.rank)
        except PipeError as error:
            failed[it.rank] += f"; {error}"
        else:
            waiting[it.rank] = (it, watched)
    deadline = time.monotonic() + asking.wait_s
    while waiting and time.monotonic() < deadline and not asking.ending.wait(2 * _LOOK_EVERY_S):
        for rank, (it, watched) in list(waiting.items()):
            if found := next((file.path for file in watched if file.is_whole()), None):
                failed[rank] += _keep(found, run_dir.comm_trace_of(rank, it.attempt), rank, by)
                del waiting[rank]
    for rank, (_, watched) in waiting.items():
        failed[rank] += f"; asked by its pipe, {_not_whole(watched, asking.wait_s)}"


def _keep(found: Path, wanted: Path, rank: int, by: dict[int, str]) -> str:
    """Puts the dump where all others lie; why that failed, else ""."""
    try:
        if not (wanted.exists() and found.samefile(wanted)):
            with open_regular(found) as file:
                data = file.read(_MOST_BYTES + 1)
            if len(data) > _MOST_BYTES:
                return f"; {found} is larger than {_MOST_BYTES >> 20} MiB"
            write_atomically(wanted, data)
    except (OSError, RefusedError) as error:
        return f"; {found}: {getattr(error, 'strerror', None) or error}"
    by[rank] = "its pipe"
    return ""


def _not_whole(watched: list[Watched], wait_s: float) -> str:
    begun = next((file.path for file in watched if file.has_changed), None)
    if begun is not None:
        return f"but {begun} was not whole {wait_s:.0f} s later"
    places = " or ".join(str(file.path) for file in watched[:3])
    return f"but nothing was written to {places} in {wait_s:.0f} s"
