"""What is there to show?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, get_type_hints

import msgspec

from train_ledger.answer import Diagnosis, HangAnswer, SlowAnswer
from train_ledger.dash.incident import Incident
from train_ledger.dash.judge import Alert
from train_ledger.ledger.accounts import Accounts
from train_ledger.ledger.state import RunState

__all__ = ["PageView"]


@dataclass(frozen=True, slots=True)
class PageView:
    """All that the page shows, as known at `state.t`.

    `accounts` are those of the whole run as they were made last, and `cannot_tell` says what of it could not
    be told tonight, for want of signals; None before the first time.
    `diagnosis` is the last verdict, which may be that of an incident that is over; `journal` holds the
    newest entries, oldest first; `not_observed` says in words what could not be read.
    """

    state: RunState
    alerts: tuple[Alert, ...] = ()
    incidents: tuple[Incident, ...] = ()
    diagnosis: Diagnosis | None = None
    journal: tuple[Mapping[str, Any], ...] = ()
    not_observed: tuple[str, ...] = ()
    accounts: Accounts | None = None
    cannot_tell: tuple[str, ...] | None = None

    @property
    def last_verdict(self) -> tuple[str | None, Diagnosis | None]:
        """The last verdict with the id of its incident; from the journal where an earlier keeper found it."""
        for entry in reversed(self.journal):
            if entry.get("kind") == "verdict":
                return entry.get("incident"), self.diagnosis or _read_diagnosis(entry.get("diagnosis"))
        return None, self.diagnosis

    @property
    def verdict_t(self) -> float | None:
        """When the last verdict was found: its figures and ages are those of that moment."""
        told = (entry.get("t") for entry in reversed(self.journal) if entry.get("kind") == "verdict")
        t = next(told, None)
        return t if isinstance(t, int | float) else None

    @property
    def current_diagnosis(self) -> Diagnosis | None:
        """The last verdict, where it is about an incident that is still open."""
        incident, diagnosis = self.last_verdict
        is_open = any(incident in (None, each.id) for each in self.incidents)
        return diagnosis if is_open else None


def _read_diagnosis(written: object) -> Diagnosis | None:
    if not isinstance(written, Mapping):
        return None
    details = written.get("details")
    is_slow = isinstance(details, Mapping) and "suspects" in details
    kinds: dict[str, Any] = {**get_type_hints(Diagnosis), "details": SlowAnswer if is_slow else HangAnswer}
    told = {
        name: value for name, value in written.items() if name in kinds and (name, value) != ("details", None)
    }
    try:
        return Diagnosis(
            **{name: msgspec.convert(value, kinds[name], str_keys=True) for name, value in told.items()}
        )
    except (msgspec.ValidationError, TypeError):  # a field is missing, or of another kind
        return None
