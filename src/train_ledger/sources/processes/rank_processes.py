"""Which processes of this host are ranks, and of which job?

A launcher gives each rank RANK and what else belongs to its job in the environment, which the kernel shows in
/proc/PID/environ as it was when the process was started. Children inherit it – loader workers above all – and
are no ranks; neither is a launcher that was itself given a RANK, as pods of a PyTorchJob are. Two jobs are
never taken for one.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from train_ledger.fields import LARGEST_WORLD_SIZE

__all__ = ["Job", "JobHere", "RankHere", "jobs_here", "variables_of"]

_PROC = Path("/proc")
_MOST_BYTES = 4 << 20
_LOADER_WORKER = "pt_data_worker"
"""torch names its loaders' workers so; one whose rank died goes on with that rank's environment."""
_KEPT = (
    "TORCHELASTIC_RUN_ID", "MASTER_ADDR", "MASTER_PORT", "SLURM_JOB_ID", "WORLD_SIZE", "RANK", "LOCAL_RANK",
    "TORCH_NCCL_DEBUG_INFO_PIPE_FILE", "TORCH_FR_DUMP_TEMP_FILE", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE", "HOME",
    "XDG_CACHE_HOME",
)  # fmt: skip


@dataclass(frozen=True, slots=True, order=True)
class Job:
    """What tells one job from another: torchrun's run id, the store's address, Slurm's number; "" unknown."""

    run_id: str = ""
    master: str = ""
    slurm: str = ""

    def __str__(self) -> str:
        parts = (("run id", self.run_id), ("MASTER_PORT of", self.master), ("Slurm job", self.slurm))
        return ", ".join(f"{what} {value}" for what, value in parts if value) or "a job without a name"

    def is_called(self, name: str) -> bool:
        """By any of its names; the port alone will do for the store's address."""
        return name in (self.run_id, self.master, self.slurm, self.master.rpartition(":")[2]) and name != ""


@dataclass(frozen=True, slots=True)
class RankHere:
    """The process of a rank, and what its environment said of its job and its dumps when it was started."""

    rank: int
    pid: int
    variables: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class JobHere:
    """The ranks of one job on this host; `unclear` are those of which several processes say to be it."""

    job: Job
    ranks: Mapping[int, RankHere]
    unclear: Mapping[int, tuple[int, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Process:
    pid: int
    parent: int
    name: str
    rank: int | None
    variables: Mapping[str, str]

    @property
    def job(self) -> Job:
        told = self.variables.get
        address, port = told("MASTER_ADDR", ""), told("MASTER_PORT", "")
        return Job(
            told("TORCHELASTIC_RUN_ID", ""), f"{address}:{port}" if port else "", told("SLURM_JOB_ID", "")
        )


def jobs_here(proc: Path = _PROC, uid: int | None = None) -> list[JobHere]:
    """The jobs whose ranks run on this host as `uid` (None: this user), by name; this process is none.

    What may not be read, ends meanwhile or has no RANK is no rank.
    """
    processes = {it.pid: it for it in _processes(proc, os.geteuid() if uid is None else uid)}
    by_rank: dict[tuple[Job, int], list[_Process]] = {}
    for it in processes.values():
        if it.rank is not None and it.pid != os.getpid() and it.name != _LOADER_WORKER:
            by_rank.setdefault((it.job, it.rank), []).append(it)
    found: dict[tuple[Job, int], list[_Process]] = {}
    for key, candidates in by_rank.items():
        if python := [it for it in candidates if _runs_python(proc / str(it.pid))]:
            found[key] = _outermost(python, processes)
    launchers = _launchers([it for some in found.values() for it in some], processes)
    return _by_job(found, launchers)


def _by_job(found: Mapping[tuple[Job, int], list[_Process]], launchers: set[int]) -> list[JobHere]:
    jobs: dict[Job, tuple[dict[int, RankHere], dict[int, tuple[int, ...]]]] = {}
    for (job, rank), processes in sorted(found.items()):
        left = [it for it in processes if it.pid not in launchers]
        if not left:
            continue
        ranks, unclear = jobs.setdefault(job, ({}, {}))
        if len(left) == 1:
            ranks[rank] = RankHere(rank, left[0].pid, left[0].variables)
        else:
            unclear[rank] = tuple(sorted(it.pid for it in left))
    return [JobHere(job, ranks, unclear) for job, (ranks, unclear) in jobs.items()]


def _outermost(candidates: Iterable[_Process], processes: Mapping[int, _Process]) -> list[_Process]:
    """Those that do not descend from another one."""
    some = list(candidates)
    pids = {it.pid for it in some}
    return [it for it in some if pids.isdisjoint(_ancestors(it, processes))]


def _launchers(ranks: Iterable[_Process], processes: Mapping[int, _Process]) -> set[int]:
    """Those without a LOCAL_RANK from whom ranks with one descend."""
    without = {it.pid for it in ranks if "LOCAL_RANK" not in it.variables}
    above = (_ancestors(it, processes) for it in ranks if "LOCAL_RANK" in it.variables)
    return {pid for pids in above for pid in pids if pid in without}


def _ancestors(process: _Process, processes: Mapping[int, _Process]) -> Iterator[int]:
    seen = {process.pid}
    parent = process.parent
    while parent not in seen:
        seen.add(parent)
        yield parent
        above = processes.get(parent)
        if above is None:
            return
        parent = above.parent


def _processes(proc: Path, uid: int) -> Iterator[_Process]:
    for entry in os.listdir(proc):
        if entry.isdecimal() and (found := _process(proc / entry, uid)):
            yield found


def _process(folder: Path, uid: int) -> _Process | None:
    try:
        if folder.stat().st_uid != uid:
            return None
        name, parent = _name_and_parent((folder / "stat").read_bytes())
        variables = _variables(folder)
    except (OSError, ValueError, IndexError):
        return None  # it ended meanwhile, or may not be looked into
    return _Process(int(folder.name), parent, name, _rank(variables.get("RANK", "")), variables)


def _name_and_parent(stat: bytes) -> tuple[str, int]:
    """Of "4711 (name) S 1 …", where the name may hold anything."""
    name, _, rest = stat.partition(b"(")[2].rpartition(b")")
    return name.decode("utf-8", "replace"), int(rest.split()[1])


def _variables(folder: Path) -> dict[str, str]:
    with (folder / "environ").open("rb") as file:
        content = file.read(_MOST_BYTES)
    pairs = (entry.partition(b"=") for entry in content.split(b"\0"))
    named = ((name.decode("utf-8", "replace"), value) for name, _, value in pairs)
    return {name: os.fsdecode(value) for name, value in named if name in _KEPT}


def _rank(text: str) -> int | None:
    rank = int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else -1
    return rank if 0 <= rank < LARGEST_WORLD_SIZE else None


def _runs_python(folder: Path) -> bool:
    """By its program's name, or by the interpreter's library that it has loaded."""
    try:
        if "python" in Path(os.readlink(folder / "exe")).name:
            return True
        with (folder / "maps").open("rb") as file:
            return b"libpython" in file.read(_MOST_BYTES)
    except OSError:
        return False


def variables_of(pid: int, proc: Path = _PROC) -> dict[str, str]:
    """What the environment of a process says of its job and its dumps; {} where it may not be read."""
    try:
        return _variables(proc / str(pid))
    except OSError:
        return {}
