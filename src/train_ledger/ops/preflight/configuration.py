"""With what exactly does the run start? (item 12)

Written to RUN/preflight/configuration.json, readable by its owner alone. The values of variables whose names
speak of secrets, and the passwords within addresses, are masked.
"""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from train_ledger.ops.preflight.records import Check, failed, not_possible, passed
from train_ledger.run_dir import RunDir, write_atomically

__all__ = ["FILE", "configuration", "configuration_checks", "masked"]

FILE = "preflight/configuration.json"
_DIFF_FILE = "preflight/uncommitted.diff"
_GIT_WITHIN_S = 20.0
_MOST_DIFF_BYTES = 16 << 20
_SECRET = re.compile(
    r"secret|token|passw|passphrase|credential|api_?key|access_?key|private|auth|cookie|session|_key$|^key$|dsn",
    re.IGNORECASE,
)
_IN_ADDRESS = re.compile(r"(?<=://)[^/@\s]+@")
_IMAGE_VARIABLES = (
    "SLURM_CONTAINER_IMAGE",
    "SINGULARITY_CONTAINER",
    "APPTAINER_CONTAINER",
    "CONTAINER_IMAGE",
    "IMAGE_TAG",
    "IMAGE",
    "DOCKER_IMAGE",
    "NVIDIA_PRODUCT_NAME",
)
_MASK = "(masked)"


def masked(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment without secrets.

    >>> masked({"WANDB_API_KEY": "s3", "HTTPS_PROXY": "http://me:pw@proxy:3128", "OMP_NUM_THREADS": "1"})
    {'WANDB_API_KEY': '(masked)', 'HTTPS_PROXY': 'http://(masked)@proxy:3128', 'OMP_NUM_THREADS': '1'}
    """
    return {
        name: _MASK if _SECRET.search(name) else _IN_ADDRESS.sub(f"{_MASK}@", value)
        for name, value in environment.items()
    }


def configuration(run: Mapping[str, Any], environment: Mapping[str, str], folder: Path) -> dict[str, Any]:
    """Everything that is kept; `folder` is where the training's scripts lie."""
    return {
        "t": time.time(),
        "host": platform.node(),
        "system": platform.platform(),
        "python": sys.version,
        "restart_command": run.get("restart_command"),
        "run": dict(run),
        "environment": masked(environment),
        "packages": dict(sorted(_packages())),
        "image": _image(environment),
        "git": _git(folder),
    }


def _packages() -> Iterator[tuple[str, str]]:
    for package in metadata.distributions():
        name = package.metadata["Name"]
        if name:
            yield name, package.version


def _image(environment: Mapping[str, str]) -> str | None:
    return next((environment[name] for name in _IMAGE_VARIABLES if environment.get(name)), None)


def _git(folder: Path) -> dict[str, Any] | None:
    """Commit and uncommitted files of the repository that `folder` lies in; None where it lies in none."""
    commit = _asked(folder, "rev-parse", "HEAD")
    if commit is None:
        return None
    root = _asked(folder, "rev-parse", "--show-toplevel") or str(folder)
    changed = _asked(folder, "status", "--porcelain", "--untracked-files=normal") or ""
    remote = _asked(folder, "config", "--get", "remote.origin.url") or ""
    return {
        "root": root.strip(),
        "commit": commit.strip(),
        "remote": _IN_ADDRESS.sub(f"{_MASK}@", remote.strip()) or None,
        "uncommitted": changed.splitlines(),
    }


def _asked(folder: Path, *words: str) -> str | None:
    try:
        ended = subprocess.run(
            ["git", "-C", str(folder), *words],
            capture_output=True,
            timeout=_GIT_WITHIN_S,
            check=False,
            stdin=subprocess.DEVNULL,
            env={**os.environ, "GIT_OPTIONAL_LOCKS": "0"},
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return ended.stdout.decode(errors="replace") if ended.returncode == 0 else None


def configuration_checks(
    run_dir: RunDir | None, run: Mapping[str, Any], environment: Mapping[str, str], folder: Path
) -> Iterator[Check]:
    """Write it down, and say what of it is not known. Raises OSError where RUN cannot be written."""
    if run_dir is None:
        yield not_possible("kept", "without RUN there is no place to keep it", "train-ledger preflight RUN")
        return
    kept = configuration(run, environment, folder)
    path = run_dir.path / FILE
    write_atomically(path, json.dumps(kept, indent=1).encode() + b"\n", mode=0o600)
    said = f"{len(kept['environment'])} variables and {len(kept['packages'])} packages in {path}"
    yield passed("kept", said)
    yield _arguments(run)
    yield _commit(kept["git"], folder, run_dir)
    if kept["image"]:
        yield passed("image", str(kept["image"]))
    else:
        why = f"no variable names one ({', '.join(_IMAGE_VARIABLES[:4])}, …)"
        yield not_possible("image", why, "export CONTAINER_IMAGE=… where the job starts, if it runs in one")


def _arguments(run: Mapping[str, Any]) -> Check:
    command = run.get("restart_command")
    if command:
        return passed("arguments", f"restart_command: {_IN_ADDRESS.sub(_MASK + '@', str(command))}")
    why = "run.json has no restart_command: with which arguments the run starts is not written down"
    return failed("arguments", why, "train_ledger.start(RUN, restart_command=…), or put it into run.json")


def _commit(git: Mapping[str, Any] | None, folder: Path, run_dir: RunDir) -> Check:
    if git is None:
        why = f"{folder}: lies in no git repository"
        return not_possible(
            "commit", why, "run this where the training's scripts lie, or name them: --code DIR"
        )
    changed: Sequence[str] = git["uncommitted"]
    short = f"{git['commit'][:12]} of {git['root']}"
    if not changed:
        return passed("commit", f"{short}, nothing uncommitted")
    diff = (_asked(folder, "diff", "--binary", "HEAD") or "").encode()
    if len(diff) > _MOST_DIFF_BYTES:
        said = f"{short} and {len(changed)} uncommitted files, which are too large to be kept"
        return failed("commit", said, "commit them")
    path = run_dir.path / _DIFF_FILE
    write_atomically(path, diff, mode=0o600)
    new = [line for line in changed if line.startswith("??")]
    if new:
        said = f"{short}, and {len(new)} files that git does not know, {new[0][3:]} among them"
        return failed("commit", said, "commit or ignore them: nobody could start this run again as it is now")
    return passed("commit", f"{short}; {len(changed)} uncommitted files are kept as {path}")
