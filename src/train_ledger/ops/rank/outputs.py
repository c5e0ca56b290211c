"""What did the rank print last, where does it stand in its code, and in which collective?

Of each folder the files of this rank alone are opened. What is newer than the moment that is asked about was
not known then.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

from train_ledger.config import Limits
from train_ledger.hang import stacks
from train_ledger.hang.dumps.dump import Dump, Op
from train_ledger.hang.dumps.dump_files import rank_of, read_dumps
from train_ledger.hang.dumps.group_table import ranks_in
from train_ledger.hang.dumps.held import Held
from train_ledger.hang.stacks.frames import parse_frame, user_frame
from train_ledger.ops.rank.records import Collective, LogTail, StackNow
from train_ledger.run_dir import RunDir
from train_ledger.sources.logs.torchrun import LogPlace, place_of

__all__ = ["collective_of", "log_of", "ranks_of_logs", "stack_of"]

_LOG_BYTES = 16 << 10
_LOG_LINES = 8
_MOST_LOGS = 50_000
_PACKED = (".gz", ".xz", ".zst", ".bz2", ".tar")
_HOST_STACKS_BYTES = 32 << 20


def log_of(
    run_dir: RunDir, rank: int, host: str | None, local_rank: int | None, until_t: float | None
) -> LogTail | str:
    """The end of its own log, or why there is none to show.

    A log is its own by the rank in its name, or by the local rank in torchrun's folders where these are of
    one host, or name the rank's.
    """
    named, local = _candidates(run_dir, rank, local_rank)
    found = named or _of_host(local, host)
    if not found and local:
        folders = len({_above_attempt(path) for path in local})
        return f"logs: {folders} folders have a local rank {local_rank}, and none says of which host it is"
    tails = [tail for path in found if (tail := _tail(path, until_t))]
    if not tails and found:
        return f"logs: {found[0]} is empty, or was written later"
    if not tails:
        return "logs: no log of this rank in the run's log folders"
    return max(tails, key=lambda it: it.t)


def ranks_of_logs(run_dir: RunDir) -> frozenset[int]:
    """The ranks that names of logs tell."""
    return frozenset(rank for path in _logs(run_dir) if (rank := place_of(path).rank) is not None)


def _candidates(run_dir: RunDir, rank: int, local_rank: int | None) -> tuple[list[Path], list[Path]]:
    """Logs with the rank in their names, and those of the local rank on some host."""
    named: list[Path] = []
    local: list[Path] = []
    for path in _logs(run_dir):
        place = place_of(path)
        if place.rank == rank:
            named.append(path)
        elif _is_local(place, local_rank):
            local.append(path)
    return named, local


def _logs(run_dir: RunDir) -> Iterator[Path]:
    seen = 0
    for folder in run_dir.log_folders():
        for at, below, names in os.walk(folder):
            below[:] = [name for name in below if not name.startswith(".")]
            for name in names:
                seen += 1
                if seen > _MOST_LOGS:
                    return
                if not name.startswith(".") and not name.endswith(_PACKED):
                    yield Path(at, name)


def _is_local(place: LogPlace, local_rank: int | None) -> bool:
    return local_rank is not None and place.rank is None and place.local_rank == local_rank


def _of_host(paths: list[Path], host: str | None) -> list[Path]:
    """Those below a folder with the host's name; all of them where there is one folder alone."""
    own = [path for path in paths if host and host in path.parts]
    return own or (paths if len({_above_attempt(path) for path in paths}) == 1 else [])


def _above_attempt(path: Path) -> str:
    folder = next((it.parent for it in path.parents if it.name.startswith("attempt_")), path.parent.parent)
    return str(folder)


def _tail(path: Path, until_t: float | None) -> LogTail | None:
    """The last lines of a file that is not empty, unless it was written later."""
    try:
        status = path.stat()
        if not path.is_file() or not status.st_size or (until_t is not None and status.st_mtime > until_t):
            return None
        with path.open("rb") as file:
            file.seek(max(0, status.st_size - _LOG_BYTES))
            text = file.read(_LOG_BYTES)
    except OSError:
        return None
    lines = [line.decode("utf-8", "replace") for line in text.splitlines() if line.strip()]
    return LogTail(str(path), status.st_mtime, tuple(lines[-_LOG_LINES:])) if lines else None


def stack_of(
    run_dir: RunDir, rank: int, host: str | None, attempt: int, until_t: float | None
) -> tuple[StackNow | None, tuple[str, ...]]:
    """Its newest stack of this attempt, and what of its files could not be read, in words."""
    folder = run_dir.stacks(attempt)
    told = _files(folder, until_t)
    files = [it for it, status in told if rank_of(it.name) == rank and status.st_size]
    if not files and host:
        files = [it for it, status in told if it.stem == host and status.st_size <= _HOST_STACKS_BYTES]
    found, unread = stacks.read(files)
    stack = found.get(rank)
    why = tuple(f"{it.file}: {it.why}" for it in unread)
    if stack is None:
        return None, why
    stand, thread = stacks.stand_of(stack), stacks.main_thread(stack)
    taken_t, newest = max((status.st_mtime, str(it)) for it, status in told if it in files)
    frames = tuple(str(frame) for frame in thread.frames) if thread else ()
    return StackNow(newest, taken_t, stand.what, frames), why


def collective_of(
    run_dir: RunDir, rank: int, attempt: int, limits: Limits, until_t: float | None
) -> tuple[Collective | None, tuple[str, ...]]:
    """The last operation that its newest dump holds, and what of its files could not be read, in words."""
    files = [it for it, _ in _files(run_dir.comm_traces(attempt), until_t) if rank_of(it.name) == rank]
    read = read_dumps(files, limits)
    why = tuple(f"{it.file}: {it.why}" for it in read.unreadable)
    dump = next((it for it in read.dumps if it.rank == rank), None)
    found = None if dump is None else _last(dump)
    return found, why


def _files(folder: Path, until_t: float | None) -> list[tuple[Path, os.stat_result]]:
    """The regular files there, without those that are still being written or came later."""
    found = []
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return []
    for name in names:
        with contextlib.suppress(OSError):  # renamed meanwhile, or a link to nothing
            status = os.stat(folder / name)
            is_late = until_t is not None and status.st_mtime > until_t
            if stat.S_ISREG(status.st_mode) and not name.startswith(".") and not is_late:
                found.append((folder / name, status))
    return found


def _last(dump: Dump) -> Collective | None:
    """What it waits in, the first that it issued; else the newest of all that it finished."""
    held = [(group, op) for group in dump.groups for op in (*group.ops, *group.p2p, *group.p2p_done)]
    if not held:
        return None
    pending = [pair for pair in held if not pair[1].done]
    group, op = min(pending, key=_issued) if pending else max(held, key=_issued)
    _, listed = dump.config.get(group.name, ("", ""))
    members = tuple(it for it in ranks_in(listed) if it != dump.rank) if listed else ()
    return Collective(
        file=dump.file,
        t=dump.mtime,
        op=op.name,
        seq=op.seq,
        state=op.state,
        done=op.done,
        group=f"{group.name} ({group.desc})" if group.desc else group.name,
        others=members,
        issued_t=op.created_ns / 1e9 if op.created_ns else None,
        frame=_own_frame(op.frames),
    )


def _issued(pair: tuple[Held, Op]) -> tuple[int, int]:
    return pair[1].created_ns, pair[1].record


def _own_frame(frames: Iterable[str]) -> str | None:
    """The innermost call of the user's own code."""
    own = user_frame([parse_frame(it) for it in frames])
    return None if own is None else str(own)
