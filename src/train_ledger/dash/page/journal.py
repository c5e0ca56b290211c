"""What has the keeper written down lately?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from train_ledger.dash.page.markup import Safe, element, join, moment
from train_ledger.render import harmless

__all__ = ["journal_part"]

_JOURNAL_ROWS = 40
_TOLD = 300
_WORDS = {
    "response_started": "dumps and stacks are being taken",
    "response_done": "taken:",
    "response_failed": "dumps and stacks failed:",
    "notification_intended": "message handed over:",
    "notification_done": "message",
    "incident_updated": "incident goes on:",
    "state_changed": "state",
    "alert_fired": "alert",
    "alert_resolved": "resolved:",
}


def journal_part(entries: tuple[Mapping[str, Any], ...]) -> Safe:
    """The newest entries first."""
    listed = [_entry(entry) for entry in reversed(entries[-_JOURNAL_ROWS:])]
    none = element("p", "Nothing is written yet.", class_="dim")
    return join((element("h2", "journal"), element("dl", *listed, class_="journal") if listed else none))


def _entry(entry: Mapping[str, Any]) -> Safe:
    t = entry.get("t")
    name = str(entry.get("kind", ""))
    kind = element("span", _WORDS.get(name, name.replace("_", " ")), class_="dim")
    at = moment(t if isinstance(t, int | float) else None, age=False)
    return join((element("dt", at), element("dd", kind, " ", harmless(_told(entry), longest=_TOLD))))


_TELLING = ("summary", "state", "alert", "outcome", "error", "notification", "host")


def _told(entry: Mapping[str, Any]) -> str:
    diagnosis = entry.get("diagnosis")
    if isinstance(diagnosis, Mapping):
        return str(diagnosis.get("cause", ""))
    said = next((str(entry[key]) for key in _TELLING if entry.get(key)), "")
    return f"{said} at step {entry['step']}" if entry.get("state") and entry.get("step") is not None else said
