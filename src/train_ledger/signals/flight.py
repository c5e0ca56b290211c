"""Will the Flight Recorder have what a hang needs, and will its dumps be written where they last?

One table of the Flight Recorder and NCCL variables, after torch 2.13 (ProcessGroupNCCL.hpp, FlightRecorder.hpp,
FlightRecorder.cpp). `apply` sets what the user has left unset, before torch reads it; `check` looks at what
really stands in a rank's environment.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from train_ledger.run_dir import RunDir

__all__ = ["VARIABLES", "Finding", "Variable", "apply", "check"]

DUMP_TAKES_S = 75
_FR = "TORCH_FR_"
_NCCL = "TORCH_NCCL_"


@dataclass(frozen=True, slots=True)
class Variable:
    """One environment variable that decides whether a hang leaves evidence.

    `default` is torch's own; `ours` is what we set where nothing is set (None: left alone); `wrong` are values
    that lose evidence; `why` is said together with them.
    """

    name: str
    old_alias: str | None
    default: str
    ours: str | None
    wrong: tuple[str, ...]
    why: str


@dataclass(frozen=True, slots=True)
class Finding:
    """Something about a variable that a person should know; an `error` loses evidence, a `note` does not."""

    level: Literal["error", "warning", "note"]
    about: str
    message: str


DUMP_PREFIX = "RUN/comm_traces/rank_"
_OFF = ("0", "false", "False", "FALSE", "n", "no", "off")
_ON = ("1", "true", "True", "TRUE", "y", "yes", "on")

VARIABLES: tuple[Variable, ...] = (
    Variable(_FR + "BUFFER_SIZE", _NCCL + "TRACE_BUFFER_SIZE", "2000", "20000", ("0",),
             "entries of the ring; 2000 are a few steps of an FSDP job with hundreds of collectives each, 0 turns the recorder off"),
    Variable(_FR + "DUMP_TEMP_FILE", _NCCL + "DEBUG_INFO_TEMP_FILE", "~/.cache/torch/comm_lib_trace_rank_", DUMP_PREFIX, (),
             "prefix of the dumps, the global rank is appended; the default lies in the container's home and goes with it"),
    Variable(_FR + "CPP_STACK", _NCCL + "TRACE_CPP_STACK", "false", None, _ON,
             "C++ stacks of every collective are slow to take"),
    Variable(_NCCL + "DUMP_ON_TIMEOUT", None, "true", "1", _OFF,
             "off, neither a timeout nor an exception leaves a dump"),
    Variable(_NCCL + "ENABLE_MONITORING", None, "true", "1", _OFF,
             "the monitor thread writes the dump; off, nobody does"),
    Variable(_NCCL + "HEARTBEAT_TIMEOUT_SEC", None, "480", None, (),
             "silence of the watchdog thread after which the process is aborted"),
    Variable(_NCCL + "WAIT_TIMEOUT_DUMP_MILSEC", None, "15000", None, ("0",),
             "time for a dump; the watchdog waits four times as long again before it raises, so that every rank can write"),
    Variable(_NCCL + "COORD_CHECK_MILSEC", None, "1000", None, (),
             "how often a rank looks in the store whether another asks for a dump"),
    Variable(_FR + "DUMP_DYNAMIC_FILE_NAME", None, "false", None, (),
             "the prefix is read anew at every write"),
    Variable(_NCCL + "DEBUG_INFO_PIPE_FILE", None, "", None, (),
             "prefix of a named pipe by which a dump can be asked for; a request in RUN/requests does the same"),
    Variable("TORCH_INCLUDE_STACK_TRACE", None, "true", None, _OFF,
             "without stacks a dump names the collective but not the line of code"),
    Variable("TORCH_INCLUDE_ONLY_ACTIVE", None, "false", None, _ON,
             "finished entries show what each rank did last before it went another way"),
    Variable(_NCCL + "ENABLE_TIMING", None, "false", None, (),
             "start times of kernels for the price of an event each; without it a running kernel reads as scheduled"),
    Variable(_NCCL + "ASYNC_ERROR_HANDLING", "NCCL_ASYNC_ERROR_HANDLING", "3", "3", ("1",),
             "1 (TearDown) aborts the communicator first, so that the other ranks cannot finish their dumps"),
    Variable(_NCCL + "PROPAGATE_ERROR", None, "false", None, (),
             "tells the other ranks of an error by the store"),
    Variable(_NCCL + "DESYNC_DEBUG", None, "false", None, _ON,
             "an older diagnosis beside the Flight Recorder; costs time in every collective"),
    Variable("TORCH_DISTRIBUTED_DEBUG", None, "OFF", None, ("DETAIL",),
             "DETAIL checks every collective by another one first; for eight GPUs and an afternoon, not for production"),
)  # fmt: skip

# Values that are refused: the evidence would be lost for certain, and nobody sets them for another reason.
_REFUSED = {_NCCL + "ASYNC_ERROR_HANDLING"}


def apply(environ: MutableMapping[str, str], run_dir: RunDir, attempt: int) -> list[Finding]:
    """Set the variables that are unset; replace a value only where it would lose every dump, and say so.

    To be called before the first process group is made, since torch reads them once.
    """
    findings = []
    for variable in VARIABLES:
        if variable.ours is None:
            continue
        ours = _dump_prefix(run_dir, attempt) if variable.ours == DUMP_PREFIX else variable.ours
        name, value = _set_by_user(variable, environ)
        if name is None:
            environ[variable.name] = ours
        elif (
            name in (variable.name, variable.old_alias)
            and variable.name in _REFUSED
            and value in variable.wrong
        ):
            environ[name] = ours
            findings.append(
                Finding("warning", name, f"{name}={value} was replaced by {ours}: {variable.why}")
            )
    if _process_group_exists():
        findings.append(
            Finding(
                "warning",
                "start",
                "train_ledger.start() came after init_process_group(): torch has read the Flight Recorder's "
                "variables already; call start() first",
            )
        )
    return findings


def check(environ: Mapping[str, str], rank: int, mounts: str | None = None) -> list[Finding]:
    """What is wrong with the environment a rank really runs in.

    Looks at the values, at the place of the dumps (to be written by this process, on storage that outlives it)
    and at the time the launcher leaves between asking a rank to end and killing it. `mounts` is the text of
    /proc/mounts, read where it is None.
    """
    findings = []
    for variable in VARIABLES:
        name, value = _set_by_user(variable, environ)
        if name is not None and value in variable.wrong:
            findings.append(Finding("error", name, f"{name}={value}: {variable.why}"))
        if variable.old_alias and variable.name in environ and variable.old_alias in environ:
            findings.append(
                Finding(
                    "note",
                    variable.old_alias,
                    f"unset {variable.old_alias}: {variable.name} is set too, and torch warns of the old name",
                )
            )
    findings += _check_buffer(environ)
    findings += _check_dump_path(environ, rank, mounts)
    findings += _check_kill_grace(environ)
    return findings


def dump_prefix(environ: Mapping[str, str]) -> str:
    """The prefix that torch will put before the rank: what is set, else its default."""
    for name in (_FR + "DUMP_TEMP_FILE", _NCCL + "DEBUG_INFO_TEMP_FILE"):
        if environ.get(name):
            return environ[name]
    cache = environ.get("XDG_CACHE_HOME") or os.path.join(environ.get("HOME", "/"), ".cache")
    return os.path.join(cache, "torch", "comm_lib_trace_rank_")


def _dump_prefix(run_dir: RunDir, attempt: int) -> str:
    return str(run_dir.comm_traces(attempt).absolute() / "rank_")


def _set_by_user(variable: Variable, environ: Mapping[str, str]) -> tuple[str | None, str]:
    for name in (variable.name, variable.old_alias):
        if name is not None and name in environ:
            return name, environ[name].strip()
    return None, ""


def _process_group_exists() -> bool:
    distributed = sys.modules.get("torch.distributed")
    return distributed is not None and distributed.is_available() and distributed.is_initialized()


def _check_buffer(environ: Mapping[str, str]) -> list[Finding]:
    for name in (_FR + "BUFFER_SIZE", _NCCL + "TRACE_BUFFER_SIZE"):
        text = environ.get(name, "").strip()
        if text and (not text.isdecimal() or 0 < int(text) < 2000):
            return [
                Finding(
                    "warning",
                    name,
                    f"{name}={text}: fewer than torch's own 2000 entries; 20000 is a good size",
                )
            ]
    return []


def _check_dump_path(environ: Mapping[str, str], rank: int, mounts: str | None) -> list[Finding]:
    prefix = dump_prefix(environ)
    folder = Path(prefix).parent
    name = _FR + "DUMP_TEMP_FILE"
    if not folder.is_dir():
        return [
            Finding(
                "error",
                name,
                f"{folder}: no such folder, so rank {rank} cannot write its dump; make it on every host",
            )
        ]
    if not os.access(folder, os.W_OK | os.X_OK):
        return [
            Finding(
                "error", name, f"{folder}: rank {rank} may not write there; give the job's user the right to"
            )
        ]
    kind = _file_system(folder.resolve(), _proc_mounts() if mounts is None else mounts)
    if kind in _PASSING:
        return [
            Finding(
                "warning",
                name,
                f"{folder}: lies on {kind}, which goes when the container or host does; name storage that stays",
            )
        ]
    return []


_PASSING = ("tmpfs", "ramfs", "overlay", "aufs", "devtmpfs")


def _proc_mounts() -> str:
    try:
        return Path("/proc/mounts").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _file_system(path: Path, mounts: str) -> str | None:
    """The kind of file system `path` lies on: that of the longest mount point above it."""
    best: tuple[int, str] | None = None
    for line in mounts.splitlines():
        parts = line.split()
        if len(parts) < 3:
            continue
        point = Path(parts[1].replace("\\040", " "))
        if path.is_relative_to(point) and (best is None or len(point.parts) >= best[0]):
            best = len(point.parts), parts[2]
    return best[1] if best else None


def _check_kill_grace(environ: Mapping[str, str]) -> list[Finding]:
    stated = environ.get("TRAIN_LEDGER_KILL_GRACE_S", "").strip()
    if stated.isdecimal():
        launcher, grace_s, how = (
            "the launcher",
            int(stated),
            "raise it, and TRAIN_LEDGER_KILL_GRACE_S with it",
        )
    elif "TORCHELASTIC_RUN_ID" in environ:
        launcher, grace_s, how = (
            "torchrun",
            30,
            "30 s is fixed in its agent (shutdown_timeout); dumps are asked for before it ends a rank",
        )
    elif "SLURM_JOB_ID" in environ and (wait_s := _slurm_kill_wait()) is not None:
        launcher, grace_s, how = "Slurm", wait_s, "raise KillWait in slurm.conf"
    else:
        return []
    if grace_s >= DUMP_TAKES_S:
        return []
    about = "kill grace"
    return [
        Finding(
            "note",
            about,
            f"{launcher} kills {grace_s} s after SIGTERM, a dump may take {DUMP_TAKES_S} s: {how}",
        )
    ]


def _slurm_kill_wait() -> int | None:
    try:
        text = Path("/etc/slurm/slurm.conf").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    for line in text.splitlines():
        key, _, value = line.partition("=")
        if key.strip().lower() == "killwait" and value.split("#")[0].strip().isdecimal():
            return int(value.split("#")[0])
    return 30
