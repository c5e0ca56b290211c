"""What has the keeper done, so that after a kill -9 nothing is done twice and nothing is forgotten?

One JSON object a line, forced to the disk before `append` returns. Every entry has `t` (unix seconds on the
run's clock) and `kind`, one of `KINDS`, which lists the other keys; a reader keeps what it does not know. A
line that a crash cut off is closed by a newline before the next one; it is counted when it is read, and no
other line suffers from it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from train_ledger.run_dir import parsed_json, read_small

__all__ = ["KINDS", "Entries", "Journal", "JournalError", "Numbered", "UnreadableLine", "numbered", "read"]

KINDS: Mapping[str, tuple[str, ...]] = {
    "keeper_started": ("run", "pid", "host", "version"),
    "history_left_out": ("left_out_bytes",),
    "state_changed": ("state", "before", "step", "attempt", "move"),
    "recovered": ("recovery", "step", "attempt"),
    "alert_fired": ("incident", "alert", "level", "summary", "inhibited", "transition"),
    "alert_resolved": ("incident", "alert", "level", "summary", "inhibited", "transition"),
    "incident_opened": ("incident", "alert", "record"),
    "incident_updated": ("incident", "alert", "record"),
    "incident_closed": ("incident", "alert", "record"),
    "response_started": ("incident", "living", "on_page"),
    "response_done": ("incident", "summary", "dumps", "stacks", "missing"),
    "response_failed": ("incident", "error"),
    "verdict": ("incident", "place", "diagnosis"),
    "traces_taken": ("name", "ranks", "failed", "removed", "summary"),
    "hook_decided": ("incident", "hook", "does", "why", "dry_run", "verdict_t", "command"),
    "hook_done": ("incident", "hook", "exit_code", "said"),
    "notification_intended": ("incident", "notification"),
    "notification_done": ("incident", "notification", "outcome"),
}
"""What the keeper writes down, and with which keys.

`left_out_bytes` are those of signal lines that lay there before any keeper came and are not read. `move` is
the kind of the move in `transitions.MOVES`, None where several lay between two looks; `recovery` a
`state.Recovered` as JSON. `incident` is an incident's id (None for an alert that belongs to none) and
`alert` an alert's name; `transition` and `record` are what the judge and the incidents need to go on from.
`living` is how many ranks can still be asked, `on_page` what of `[respond] on_page` is done; `dumps` and
`stacks` count the ranks from which they were taken, `missing` says in words what was not and why; `place` the
[attempt, step] at which the run stands still (None while it goes on), and `diagnosis` an `answer.Diagnosis`
as JSON. `traces_taken` is what came of traces that a schedule asked for: their folder's `name`, the `ranks`
whose traces are there, why others `failed`, how many old ones were `removed`. `hook` is "exclude" or
"restart", what it `does` on the verdict of `verdict_t` "act", "wait" or "withheld"; one that acts without
`dry_run` has a `hook_done`. A `notification_intended` stands in the outbox by then; what became of it is its
`notification_done`.
"""


_LARGEST_BYTES = 1 << 30


class JournalError(Exception):
    """The journal cannot be written or read; the text names the file and what to do."""


class UnreadableLine(NamedTuple):
    number: int
    why: str


class Entries(NamedTuple):
    """What a journal holds: its entries, oldest first, and the lines that are none."""

    entries: list[dict[str, Any]]
    unreadable: list[UnreadableLine]


class Numbered(NamedTuple):
    """As `Entries`, each entry with the number of its line."""

    entries: list[tuple[int, dict[str, Any]]]
    unreadable: list[UnreadableLine]


class Journal:
    """Appends to the journal at `path`, creating it and its folder where needed.

    One writer at a time: the keeper holds `KeeperLock`. Raises JournalError where the file cannot be opened.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._fd = _opened(path)
        except OSError as error:
            raise JournalError(
                f"{path}: cannot be written ({error.strerror}); check permissions and space"
            ) from error

    def append(self, entry: Mapping[str, Any]) -> None:
        """Write one entry and force it to the disk.

        Raises ValueError for an entry without `t` or `kind` or with what JSON does not know, JournalError
        where the disk does not take it; a part that was written is closed off by the next append.
        """
        if "t" not in entry or "kind" not in entry:
            raise ValueError(f"a journal entry needs t and kind, this one has {sorted(entry)}")
        line = json.dumps(entry, separators=(",", ":"), allow_nan=False).encode() + b"\n"
        try:
            _write(self._fd, line)
        except OSError as error:
            raise JournalError(f"{self.path}: {error.strerror}; make room or mend the disk") from error

    def close(self) -> None:
        """Let go of the file; once more does nothing, since its number may be another file's by then."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)


def _opened(path: Path) -> int:
    path.parent.mkdir(parents=True, exist_ok=True)
    fd = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        _sync_folder(path.parent)
        _sync_folder(path.parent.parent)
    except OSError:
        os.close(fd)
        raise
    return fd


def _sync_folder(folder: Path) -> None:
    """A new file is safe only when the folder that names it is."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _close_torn_line(fd: int) -> None:
    size = os.fstat(fd).st_size
    if size and os.pread(fd, 1, size - 1) != b"\n":
        os.write(fd, b"\n")


def _write(fd: int, line: bytes) -> None:
    _close_torn_line(fd)
    while line:
        line = line[os.write(fd, line) :]
    os.fsync(fd)


def read(path: Path) -> Entries:
    """Every entry of the journal, and every line that is none with the reason; empty where there is no file.

    An object closes itself, so that a last line that lost its newline alone is whole.
    Raises JournalError where the file is there and cannot be read.
    """
    found = numbered(path)
    return Entries([entry for _, entry in found.entries], found.unreadable)


def numbered(path: Path) -> Numbered:
    """The same with the number of each entry's line, for whoever says where something stands."""
    try:
        content = read_small(path, limit_bytes=_LARGEST_BYTES)
    except FileNotFoundError:
        return Numbered([], [])
    except OSError as error:
        raise JournalError(f"{path}: cannot be read ({error.strerror})") from error
    found = Numbered([], [])
    for number, line in enumerate(content.split(b"\n"), 1):
        if line:
            _take(found, number, line)
    return found


def _take(found: Numbered, number: int, line: bytes) -> None:
    try:
        entry = parsed_json(line)
    except ValueError:
        found.unreadable.append(UnreadableLine(number, "cut off by a crash, or no JSON"))
        return
    if isinstance(entry, dict) and "t" in entry and isinstance(entry.get("kind"), str):
        found.entries.append((number, entry))
    else:
        found.unreadable.append(UnreadableLine(number, "no entry with t and kind"))
