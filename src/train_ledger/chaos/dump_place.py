"""Where do the dumps fall where nobody told torch, and are they there when the job is gone?"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
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
    since_t: float, backend: str, timed_out: bool, asked_for: Path, environ: Mapping[str, str] | None = None
) -> DefaultPlace:
    """Look at torch's own place after the job has ended.

    `since_t` is when it began (unix seconds), `asked_for` the folder of the dumps that the page asked for.
    """
    environ = os.environ if environ is None else environ
    prefix = Path(flight.dump_prefix({k: v for k, v in environ.items() if k not in DUMP_PATH_VARIABLES}))
    written = tuple(str(path) for path in _left(prefix, since_t))
    ended = "the job's time-out ended it" if timed_out else "the job was ended before its time-out"
    said = (f"{ended}; {_of_torch(len(written), backend)}", *_of_storage(prefix), _of_the_page(asked_for))
    return DefaultPlace(str(prefix), written, said)


def _left(prefix: Path, since_t: float) -> list[Path]:
    folder = prefix.parent
    found = folder.iterdir() if folder.is_dir() else ()
    return sorted(it for it in found if it.name.startswith(prefix.name) and it.stat().st_mtime >= since_t)


def _of_torch(written: int, backend: str) -> str:
    if written:
        return f"torch left {_dumps(written)} there, and the job's end has not taken them"
    if backend == "gloo":
        return (
            "torch wrote no dump at all: over gloo it writes none at a time-out; that over NCCL its watchdog "
            "does was not observed here, where not every rank has a GPU"
        )
    return "torch left no dump there: see the watchdog's lines in the ranks' logs"


def _of_storage(prefix: Path) -> Iterator[str]:
    """Whether that place outlives the container; torch makes the folder where there is none."""
    folder = next(it for it in prefix.parents if it.is_dir())
    about = DUMP_PATH_VARIABLES[0]
    problems = [it.message for it in flight.check({about: f"{folder}/rank_"}, 0) if it.about == about]
    yield from problems or [f"{folder}: lies on storage of this host; on another host nobody collects it"]


def _of_the_page(folder: Path) -> str:
    left = [it for it in folder.iterdir() if it.name.startswith("rank_")] if folder.is_dir() else []
    return f"of what the page asked for while the job lived, {_dumps(len(left))} outlived it in {folder}"


def _dumps(count: int) -> str:
    return "1 dump" if count == 1 else f"{count or 'no'} dumps"
