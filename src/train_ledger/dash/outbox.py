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
import os
import re
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from train_ledger.config import Notify

__all__ = ["Delivery", "Notification", "Outbox", "Outcome", "Target", "redacted"]

Delivery = Literal["delivered", "partly", "failed", "unknown"]

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,150}\Z")
_SENDER = "train_ledger.dash.sender"
_SPAWNS = 3
_ELSEWHERE_S = 900.0
"""A claim by another host cannot be asked whether it lives; a sender never takes as long as this."""

_FRESH_S = 10.0
"""Between creating a claim and writing into it a sender needs microseconds; then it must say whose it is."""


@dataclass(frozen=True, slots=True)
class Notification:
    """One message and where it goes.

    `id` is what makes it the same message; it becomes a file name. `urls` are as apprise takes them;
    `command` is a list of arguments that is run without a shell and given the message as one JSON object.
    """

    id: str
    title: str
    body: str
    level: Literal["page", "record", "resolved"] = "page"
    urls: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    timeout_s: float = 20.0
    details: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def to(cls, notify: Notify, *, id: str, title: str, body: str, **others: Any) -> Notification:
        """A message to where the configuration says that messages go."""
        return cls(
            id, title, body, urls=notify.urls, command=notify.command, timeout_s=notify.timeout_s, **others
        )

    @classmethod
    def from_json(cls, entry: Mapping[str, Any]) -> Notification:
        """The message that was posted; raises KeyError or TypeError for anything else."""
        return cls(**{**entry, "urls": tuple(entry["urls"]), "command": tuple(entry["command"])})

    def message(self) -> dict[str, Any]:
        """What a receiver may see: everything but the addresses."""
        return {
            "id": self.id,
            "title": self.title,
            "body": self.body,
            "level": self.level,
            "details": dict(self.details),
        }


@dataclass(frozen=True, slots=True)
class Target:
    """What became of a message at one address, which is named without its secrets."""

    target: str
    ok: bool
    tries: int = 1
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one message; `why` says so in words where it did not simply arrive."""

    id: str
    delivery: Delivery
    t: float
    targets: tuple[Target, ...] = ()
    why: str | None = None

    @classmethod
    def of(cls, id: str, t: float, targets: tuple[Target, ...]) -> Outcome:
        """The outcome of a message that was sent to all these targets."""
        arrived = sum(target.ok for target in targets)
        delivery: Delivery = "delivered" if arrived == len(targets) else "partly" if arrived else "failed"
        bad = [f"{target.target}: {target.error}" for target in targets if not target.ok]
        return cls(id, delivery, t, targets, "; ".join(bad) or None)

    @classmethod
    def from_json(cls, entry: Mapping[str, Any]) -> Outcome:
        return cls(**{**entry, "targets": tuple(Target(**target) for target in entry["targets"])})


_PLAIN_SCHEMES = frozenset({"json", "jsons", "xml", "xmls", "form", "forms"})


def redacted(url: str) -> str:
    """The address as it may stand in a journal or a log.

    In most of apprise's addresses every part may be a token, so only the kind is kept; of a plain web hook
    the host and the port, too.

    >>> redacted("slack://T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ")
    'slack://…'
    >>> redacted("jsons://user:password@hooks.example.org:8443/secret?+X-Token=abc")
    'jsons://hooks.example.org:8443/…'
    """
    scheme, mark, rest = url.partition("://")
    if not mark or not re.fullmatch(r"[a-z0-9+.-]+", scheme.lower()):
        return "(no URL)"
    if scheme.lower() not in _PLAIN_SCHEMES:
        return f"{scheme}://…"
    host = re.split(r"[/?#]", rest, maxsplit=1)[0].rpartition("@")[2]
    return f"{scheme}://{host}/…"


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
        write_private(path, json.dumps(asdict(notification), indent=1).encode())
        self._spawn(notification.id)
        return True

    def resume(self) -> None:
        """See to it that every message without an outcome gets one. Call it at the start and now and then.

        Raises OSError where the folder cannot be written.
        """
        for id in self._unfinished():
            claim = self.folder / f"{id}.claim"
            if not claim.exists():
                self._start_again(id)
            elif _is_over(claim) and not self._outcome(id).exists():
                why = "the sender died while it was sending; not sent again, since it may have arrived"
                self._settle(Outcome(id, "unknown", time.time(), why=why))

    def outcomes(self) -> tuple[Outcome, ...]:
        """What became of the messages, by time; those still being sent are not among them."""
        found = [_read_outcome(path) for path in self.folder.glob("*.outcome.json")]
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
        write_private(self._outcome(outcome.id), json.dumps(asdict(outcome), indent=1).encode())


def write_private(path: Path, data: bytes) -> None:
    """Replace `path` as a whole, on the disk when this returns, readable by its owner only.

    Raises OSError where the folder cannot be written.
    """
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def claimant() -> dict[str, Any]:
    """Who this process is, so that it can be told from a later one with the same number."""
    return {
        "pid": os.getpid(),
        "started": _started(os.getpid()),
        "host": socket.gethostname(),
        "boot": _boot(),
        "t": time.time(),
    }


def _started(pid: int) -> str | None:
    """The start time of a process in ticks since boot, None where there is none (a zombie counts as none)."""
    try:
        after_name = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if after_name[0] == "Z" else after_name[19]


def _boot() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def _is_over(claim: Path) -> bool:
    """Whether the process that claimed is gone."""
    try:
        text, age_s = claim.read_text(), time.time() - claim.stat().st_mtime
    except OSError:
        return False
    try:
        who = json.loads(text)
        pid, started, host, boot = int(who["pid"]), who["started"], who["host"], who["boot"]
    except (ValueError, KeyError, TypeError):
        return age_s > _FRESH_S
    if host != socket.gethostname():
        return age_s > _ELSEWHERE_S
    return bool(boot != _boot() or _started(pid) != started)


def _read_outcome(path: Path) -> Outcome | None:
    try:
        return Outcome.from_json(json.loads(path.read_bytes()))
    except (OSError, ValueError, KeyError, TypeError):
        id = path.name.removesuffix(".outcome.json")
        return Outcome(id, "unknown", path.stat().st_mtime, why=f"{path}: is no outcome that can be read")
