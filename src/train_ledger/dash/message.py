"""What is one message, where does it go, and what became of it?"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from train_ledger.config import Notify

__all__ = ["Delivery", "Notification", "Outcome", "Target", "redacted"]

Delivery = Literal["delivered", "partly", "failed", "unknown"]


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
