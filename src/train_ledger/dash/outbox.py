"""How does a message go out exactly once, though whoever sends it may be killed at any moment?

The keeper writes the message into a folder and starts a sender of its own session for it; from then on the
message no longer depends on the keeper. A sender claims the message by creating a file that must not exist
yet, sends it, and writes down the outcome:

    ID.json → ID.claim → ID.outcome.json

After a kill -9 the folder says how far each message came. Without a claim it was never sent, and is. With the
claim of a process that lives it is being sent. With the claim of a process that is gone, and no outcome,
nobody can know whether it arrived: that is reported, and it is never sent again, since a second page for one
incident teaches people to ignore pages.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from collections.abc import Collection
from dataclasses import asdict, dataclass, field
from pathlib import Path

from train_ledger.dash.claim import is_over
from train_ledger.dash.message import Notification, Outcome
from train_ledger.run_dir import write_atomically

__all__ = ["Outbox", "write_private"]

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,150}\Z")
_SENDER = "train_ledger.dash.sender"
_SPAWNS = 3


@dataclass(slots=True)
class Outbox:
    """The folder of messages; one keeper at a time uses it (its lock sees to that)."""

    folder: Path
    _senders: dict[str, list[subprocess.Popen[bytes]]] = field(default_factory=dict)

    def post(self, notification: Notification) -> bool:
        """Put a message into the folder and start its sender; False where it was posted before.

        Raises ValueError for an id that is no file name, OSError where the folder cannot be written.
        """
        if not _ID.match(notification.id):
            raise ValueError(f"notification id {notification.id!r}: only letters, digits, '.', '_' and '-'")
        path = self._message(notification.id)
        if path.exists():
            return False
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        write_private(path, notification)
        self._spawn(notification.id)
        return True

    def resume(self) -> None:
        """See to it that every message without an outcome gets one. Call it at the start and now and then.

        Raises OSError where the folder cannot be written.
        """
        unfinished = self._unfinished()
        for id in self._senders.keys() - set(unfinished):
            if all(sender.poll() is not None for sender in self._senders[id]):
                del self._senders[id]  # of a long run there would be a dead process a message
        for id in unfinished:
            claim = self.folder / f"{id}.claim"
            if not claim.exists():
                self._start_again(id)
            elif is_over(claim) and not self._outcome(id).exists():
                why = "the sender died while it was sending; not sent again, since it may have arrived"
                self._settle(Outcome(id, "unknown", time.time(), why=why))

    def outcomes(self, known: Collection[str] = ()) -> tuple[Outcome, ...]:
        """What became of all but the `known` messages, by time; those being sent are not among them."""
        ended = {path.name.removesuffix(".outcome.json"): path for path in self.folder.glob("*.outcome.json")}
        found = [_read_outcome(path) for id, path in ended.items() if id not in known]
        return tuple(sorted((outcome for outcome in found if outcome), key=lambda o: (o.t, o.id)))

    def waiting(self) -> tuple[str, ...]:
        """The ids of messages that have no outcome yet."""
        return tuple(self._unfinished())

    def _message(self, id: str) -> Path:
        return self.folder / f"{id}.json"

    def _outcome(self, id: str) -> Path:
        return self.folder / f"{id}.outcome.json"

    def _unfinished(self) -> list[str]:
        names = {path.name for path in self.folder.glob("*.json")} if self.folder.is_dir() else set()
        return sorted(
            id
            for name in names
            if not name.endswith(".outcome.json")
            and _ID.match(id := name.removesuffix(".json"))
            and f"{id}.outcome.json" not in names
        )

    def _spawn(self, id: str) -> None:
        command = [sys.executable, "-m", _SENDER, str(self._message(id))]
        quiet = subprocess.DEVNULL
        sender = subprocess.Popen(command, stdin=quiet, stdout=quiet, stderr=quiet, start_new_session=True)
        self._senders.setdefault(id, []).append(sender)

    def _start_again(self, id: str) -> None:
        senders = self._senders.get(id, [])
        if any(sender.poll() is None for sender in senders):
            return
        if len(senders) < _SPAWNS:
            self._spawn(id)
            return
        status = senders[-1].returncode
        why = (
            f"the sender could not start (exit status {status}, {_SPAWNS} tries); run it by hand to see why: "
        )
        by_hand = f"{sys.executable} -m {_SENDER} {self._message(id)}"
        self._settle(Outcome(id, "failed", time.time(), why=why + by_hand))

    def _settle(self, outcome: Outcome) -> None:
        write_private(self._outcome(outcome.id), outcome)


def write_private(path: Path, record: Notification | Outcome) -> None:
    """A record as JSON, on the disk when this returns, readable by its owner only: addresses hold secrets.

    Raises OSError where the folder cannot be written.
    """
    write_atomically(path, json.dumps(asdict(record), indent=1).encode(), mode=0o600, to_disk=True)


def _read_outcome(path: Path) -> Outcome | None:
    try:
        return Outcome.from_json(json.loads(path.read_bytes()))
    except (OSError, ValueError, KeyError, TypeError):
        id = path.name.removesuffix(".outcome.json")
        return Outcome(id, "unknown", path.stat().st_mtime, why=f"{path}: is no outcome that can be read")
