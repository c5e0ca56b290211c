"""What do living ranks give when they are asked for something that is no dump?

A request in the run directory, which each rank's monitor looks for once a second; whoever has no monitor, or
no thread of it runs, does not answer, and is named. Whose last word is that the run ended is not waited for.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from train_ledger.run_dir import RunDir, parsed_json, read_small, write_atomically

__all__ = ["Answers", "ask", "last_lines"]

_LOOK_EVERY_S = 0.1
_REPLY_BYTES = 1 << 20
_LAST_LINE_BYTES = 1 << 16
_LAST_LINES = 20


@dataclass(frozen=True, slots=True)
class Answers:
    """Where what was asked for lies, by rank, and why others have none."""

    files: Mapping[int, Path] = field(default_factory=dict)
    failed: Mapping[int, str] = field(default_factory=dict)


def ask(
    run_dir: RunDir, request_id: str, ranks: Collection[int], request: Mapping[str, Any], wait_s: float
) -> Answers:
    """Have `ranks` do what `request` says ({"do": "profile", "steps": 3}, …) and wait for their answers.

    Raises OSError where the request cannot be written.
    """
    files: dict[int, Path] = {}
    failed = {rank: "its run has ended" for rank in ranks if _has_ended(run_dir.signals_of(rank))}
    waiting, deadline = set(ranks) - failed.keys(), time.monotonic() + wait_s
    if waiting:
        wanted = {**request, "id": request_id, "t": time.time(), "ranks": sorted(waiting)}
        write_atomically(run_dir.request(request_id), json.dumps(wanted).encode() + b"\n")
    while waiting and time.monotonic() < deadline:
        for rank in sorted(waiting):
            reply = _reply(run_dir.reply(request_id, rank))
            if reply is None:
                continue
            waiting.discard(rank)
            if reply.get("ok") and isinstance(reply.get("path"), str):
                files[rank] = Path(reply["path"])
            else:
                failed[rank] = str(reply.get("error"))
        if waiting:
            time.sleep(_LOOK_EVERY_S)
    silent = f"no answer in {wait_s:.0f} s: no thread of it runs, it completes no step, or it has no monitor"
    failed.update(dict.fromkeys(waiting, silent))
    return Answers(dict(sorted(files.items())), dict(sorted(failed.items())))


def last_lines(signals: Path) -> list[dict[str, Any]]:
    """The newest lines of a rank's signals, oldest first; none where there are none."""
    try:
        with signals.open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - _LAST_LINE_BYTES))
            text = file.read()
    except OSError:
        return []
    found = []
    for line in text.splitlines()[-_LAST_LINES:]:
        try:
            told = parsed_json(line)
        except ValueError:
            continue
        if isinstance(told, dict):
            found.append(told)
    return found


def _has_ended(signals: Path) -> bool:
    lines = last_lines(signals)
    return bool(lines) and lines[-1].get("event") == "run_end"


def _reply(path: Path) -> dict[str, Any] | None:
    try:
        content = parsed_json(read_small(path, limit_bytes=_REPLY_BYTES))
    except (OSError, ValueError):
        return None  # none yet, or caught in its rename
    return content if isinstance(content, dict) else None
