"""Does the environment that a rank really runs in keep what a hang needs?"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from train_ledger.signals.flight.variables import VARIABLES, Finding, found

__all__ = ["DUMP_TAKES_S", "check", "dump_prefix"]

DUMP_TAKES_S = 75  # 15 s for the dump, and four times as long in which the watchdog waits for the other ranks


def check(environ: Mapping[str, str], rank: int, mounts: str | None = None) -> list[Finding]:
    """What is wrong with the environment a rank really runs in.

    Looks at the values, at the place of the dumps – this process must be able to write there, and the storage
    must outlive it – and at the time the launcher leaves between asking a rank to end and killing it.
    `mounts` is the text of /proc/mounts, read where it is None.
    """
    findings = []
    for variable in VARIABLES:
        name, value = found(variable, environ)
        if name is not None and value in variable.wrong:
            findings.append(Finding("error", name, f"{name}={value}: {variable.why}"))
        if variable.old_alias and variable.name in environ and variable.old_alias in environ:
            findings.append(
                Finding(
                    "note",
                    variable.old_alias,
                    f"unset {variable.old_alias}: {variable.name} is set too, and the old name is warned of",
                )
            )
    findings += _check_buffer(environ)
    findings += _check_dump_path(environ, rank, mounts)
    findings += _check_kill_grace(environ)
    return findings


def dump_prefix(environ: Mapping[str, str]) -> str:
    """The prefix that torch will put before the rank: what is set, else its default."""
    for name in ("TORCH_FR_DUMP_TEMP_FILE", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE"):
        if environ.get(name):
            return environ[name]
    cache = environ.get("XDG_CACHE_HOME") or os.path.join(environ.get("HOME", "/"), ".cache")
    return os.path.join(cache, "torch", "comm_lib_trace_rank_")


def _check_buffer(environ: Mapping[str, str]) -> list[Finding]:
    for name in ("TORCH_FR_BUFFER_SIZE", "TORCH_NCCL_TRACE_BUFFER_SIZE"):
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
    name = "TORCH_FR_DUMP_TEMP_FILE"
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
                f"{folder}: lies on {kind}, which goes with the container or host; name storage that stays",
            )
        ]
    return []


_SLURM_CONF = Path("/etc/slurm/slurm.conf")
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
        text = _SLURM_CONF.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    for line in text.splitlines():
        key, _, value = line.partition("=")
        if key.strip().lower() == "killwait" and value.split("#")[0].strip().isdecimal():
            return int(value.split("#")[0])
    return 30
