"""What is there to show?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, get_type_hints

import msgspec

from train_ledger.answer import Diagnosis, HangAnswer, Impact, SlowAnswer
from train_ledger.dash.incident import Incident
from train_ledger.dash.judge import Alert
from train_ledger.dash.written import LATEST_T
from train_ledger.ledger.accounts import Accounts
from train_ledger.ledger.state import RunState
from train_ledger.render import Picture

__all__ = ["PageView", "read_diagnosis"]


@dataclass(frozen=True, slots=True)
class PageView:
    """All that the page shows, as known at `state.t`.

    `accounts` are those of the whole run as they were made last, and `cannot_tell` says what of it could not
    be told tonight, for want of signals; None before the first time.
    `diagnosis` is the last verdict, which may be that of an incident that is over; `journal` holds the
    newest entries, oldest first, and `of_incidents` the newest that tell what an incident was and what was
    found of it (none: those of `journal`). `picture` is what is drawn of the last verdict, None where nothing
    is; `losses` what incidents cost, by their ids. `run_path` is where the run lies, for commands;
    `not_observed` says in words what could not be read.
    """

    state: RunState
    alerts: tuple[Alert, ...] = ()
    incidents: tuple[Incident, ...] = ()
    diagnosis: Diagnosis | None = None
    journal: tuple[Mapping[str, Any], ...] = ()
    not_observed: tuple[str, ...] = ()
    accounts: Accounts | None = None
    cannot_tell: tuple[str, ...] | None = None
    of_incidents: tuple[Mapping[str, Any], ...] = ()
    picture: Picture | None = None
    losses: Mapping[str, Impact] = field(default_factory=dict)
    run_path: str = "RUN"

    def __post_init__(self) -> None:
        for name in ("journal", "of_incidents"):
            object.__setattr__(self, name, tuple(map(_dated, getattr(self, name))))

    @property
    def about_incidents(self) -> tuple[Mapping[str, Any], ...]:
        """The newest entries that name an incident, oldest first."""
        if self.of_incidents:
            return self.of_incidents
        return tuple(
            it for it in self.journal if it.get("incident") is not None or it.get("kind") == "verdict"
        )

    @property
    def last_verdict(self) -> tuple[str | None, Diagnosis | None]:
        """The last verdict with the id of its incident; from the journal where an earlier keeper found it."""
        for entry in reversed(self.about_incidents):
            if entry.get("kind") == "verdict":
                return entry.get("incident"), self.diagnosis or read_diagnosis(entry.get("diagnosis"))
        return None, self.diagnosis

    @property
    def verdict_t(self) -> float | None:
        """When the last verdict was found: its figures and ages are those of that moment."""
        told = (entry.get("t") for entry in reversed(self.about_incidents) if entry.get("kind") == "verdict")
        t = next(told, None)
        return t if isinstance(t, int | float) else None

    @property
    def current_diagnosis(self) -> Diagnosis | None:
        """The last verdict, where it is about an incident that is still open."""
        incident, diagnosis = self.last_verdict
        is_open = any(incident in (None, each.id) for each in self.incidents)
        return diagnosis if is_open else None


def _dated(entry: Mapping[str, Any]) -> Mapping[str, Any]:
    """The entry; one of a time that no clock tells has none: it can neither be drawn nor counted from."""
    t = entry.get("t")
    return {**entry, "t": None} if isinstance(t, int | float) and not abs(t) < LATEST_T else entry


def read_diagnosis(written: object) -> Diagnosis | None:
    """The verdict that an entry of the journal holds; None where it cannot be understood."""
    if not isinstance(written, Mapping):
        return None
    details = written.get("details")
    kinds = _kinds(is_slow=isinstance(details, Mapping) and "suspects" in details)
    told = {
        name: value for name, value in written.items() if name in kinds and (name, value) != ("details", None)
    }
    try:
        return Diagnosis(
            **{name: msgspec.convert(value, kinds[name], str_keys=True) for name, value in told.items()}
        )
    except (msgspec.ValidationError, TypeError):  # a field is missing, or of another kind
        return None


@cache
def _kinds(*, is_slow: bool) -> Mapping[str, Any]:
    """Of what kind each field of a verdict is; asked for a dozen times a look, and slow to be found."""
    return {**get_type_hints(Diagnosis), "details": SlowAnswer if is_slow else HangAnswer}
