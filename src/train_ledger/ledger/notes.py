"""What did the people on call write down?

One small file a note below RUN/notes, put there as a whole by a rename: nothing is appended to what somebody
else writes, so that two people and a keeper never meet, on a shared file system neither. Whoever tells of an
incident joins the notes with the journal by their times.
"""

from __future__ import annotations

import json
import secrets
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple

from train_ledger.run_dir import RunDir, parsed_json, read_small, write_atomically

__all__ = ["Note", "Notes", "read_notes", "write_note"]

_LARGEST_BYTES = 1 << 20
_LATEST_T = 1e11


@dataclass(frozen=True, slots=True)
class Note:
    """What happened at `t` (unix seconds) by the word of `by`, who wrote it at `written_t` on `host`.

    `decision` says that this is when it was decided what to do, which ends the decision in the account of a
    recovery. `source` is its file, relative to the run directory.
    """

    t: float
    text: str
    by: str
    host: str
    written_t: float
    decision: bool = False
    source: str = ""


class Notes(NamedTuple):
    """The notes of a run by their times, and how many files were none."""

    notes: tuple[Note, ...]
    unreadable: int = 0


def write_note(run_dir: RunDir, note: Note) -> str:
    """Put the note into the run directory, on the disk when this returns; the file, relative to it.

    Raises OSError where the folder cannot be written.
    """
    stamp = f"{datetime.fromtimestamp(note.written_t, UTC):%Y%m%dT%H%M%SZ}"
    path = run_dir.notes / f"{stamp}-{secrets.token_hex(4)}.json"
    entry = {
        "t": note.t,
        "text": note.text,
        "by": note.by,
        "host": note.host,
        "written_t": note.written_t,
        "decision": note.decision,
    }
    write_atomically(path, json.dumps(entry, indent=1).encode() + b"\n", to_disk=True)
    return f"notes/{path.name}"


def read_notes(run_dir: RunDir) -> Notes:
    """All notes of a run; what is no note is counted, not read."""
    if not run_dir.notes.is_dir():
        return Notes(())
    found, unreadable = [], 0
    for path in sorted(run_dir.notes.glob("*.json")):
        try:
            note = _note(parsed_json(read_small(path, limit_bytes=_LARGEST_BYTES)), f"notes/{path.name}")
        except (OSError, ValueError):
            note = None
        if note is None:
            unreadable += 1
        else:
            found.append(note)
    return Notes(tuple(sorted(found, key=lambda it: (it.t, it.written_t))), unreadable)


def _note(entry: Any, source: str) -> Note | None:
    if not isinstance(entry, dict):
        return None
    t, text = _moment(entry.get("t")), entry.get("text")
    if t is None or not isinstance(text, str) or not text.strip():
        return None
    by, host = (str(entry.get(key) or "") for key in ("by", "host"))
    written_t = _moment(entry.get("written_t"))
    is_decision = entry.get("decision") is True
    return Note(t, text, by, host, t if written_t is None else written_t, is_decision, source)


def _moment(value: object) -> float | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and 0 <= value < _LATEST_T else None  # type: ignore[operator, arg-type]
