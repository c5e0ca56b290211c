"""Where do the dumps fall where nobody told torch, and are they there when the job is gone?"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from train_ledger.signals import flight

__all__ = ["DUMP_PATH_VARIABLES", "DefaultPlace", "look"]

DUMP_PATH_VARIABLES = ("TORCH_FR_DUMP_TEMP_FILE", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE")


@dataclass(frozen=True, slots=True)
class DefaultPlace:
    """What torch did without a dump path.

    `prefix` is where it would write, before the rank; `written` the files that this job left there; `said`
    what to make of it, in words.
    """

    prefix: str
    written: tuple[str, ...]
    said: tuple[str, ...]


def look(
    since_t: float, backend: str, timed_out: bool, environ: Mapping[str, str] | None = None
) -> DefaultPlace:
    """Look at torch's own place after the job has ended; `since_t` is when it began (unix seconds)."""
    environ = os.environ if environ is None else environ
    bare = {name: value for name, value in environ.items() if name not in DUMP_PATH_VARIABLES}
    prefix = Path(flight.dump_prefix(bare))
    written = tuple(str(path) for path in _left(prefix, since_t))
    return DefaultPlace(str(prefix), written, tuple(_said(bare, written, backend, timed_out)))


def _left(prefix: Path, since_t: float) -> list[Path]:
    folder = prefix.parent
    found = folder.iterdir() if folder.is_dir() else ()
    return sorted(it for it in found if it.name.startswith(prefix.name) and it.stat().st_mtime >= since_t)


def _said(bare: Mapping[str, str], written: tuple[str, ...], backend: str, timed_out: bool) -> list[str]:
    ended = "the job's time-out ended it" if timed_out else "the job was ended before its time-out"
    if written:
        dumps = "1 dump" if len(written) == 1 else f"{len(written)} dumps"
        said = [f"{ended}; torch left {dumps} in its own place, there still after the job"]
    elif backend == "gloo":
        said = [
            f"{ended}; torch wrote no dump at all: over gloo it writes none, at no time-out",
            "over NCCL its watchdog writes one a rank there; not observed here, where no rank has a GPU",
        ]
    else:
        said = [f"{ended}; torch left no dump there: see the watchdog's lines in the ranks' logs"]
    said += [it.message for it in flight.check(bare, 0) if it.about == DUMP_PATH_VARIABLES[0]]
    return said
