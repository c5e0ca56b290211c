"""How long did each part of the recovery take?

The parts are bounded by marks: the last step, the alert, the dumps, the decision, the start of the new
attempt, the load, the step once reached. A mark is taken from the journal and the notes where
they have it, else from the accounts; where neither has, the two parts beside it are not known.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from train_ledger.ledger.accounts import PARTS, Accounts, Recovery
from train_ledger.ledger.notes import Note
from train_ledger.ops.postmortem.incident import Happened, Incident
from train_ledger.ops.postmortem.several import redoing_s, standing_s

__all__ = ["Split", "split"]

_SLACK_S = 60.0
_LONGEST_LIMIT_S = 3600.0
_ENDS = ("noticed", "dumped", "decided", "started", "loaded", "over")
"""The mark that ends each of `PARTS`."""


@dataclass(frozen=True, slots=True)
class Split:
    """When the run stood still and each mark after it (unix s, None: not known), and seconds of each part.

    `first_step_t` is when the new attempt completed a step. `redone_steps` is None where nothing tells;
    `recoveries` are the accounts' own that lie in the incident, and `loss_joins_on` and `data_agrees` are as
    there. Where there are several, marks and parts are of the first one, lengths of all together: what the
    run got done between them is not lost.
    """

    stood_t: float | None
    marks: Mapping[str, float | None]
    parts_s: Mapping[str, float | None]
    first_step_t: float | None = None
    redone_steps: int | None = None
    resumed_step: int | None = None
    loss_joins_on: bool | None = None
    data_agrees: bool | None = None
    recoveries: tuple[Recovery, ...] = field(default=())

    @property
    def over_t(self) -> float | None:
        """When the step once reached was passed, for good."""
        return self.recoveries[-1].over_t if self.is_of_several else self.marks.get("over")

    @property
    def is_of_several(self) -> bool:
        return len(self.recoveries) > 1

    @property
    def down_s(self) -> float | None:
        """From the last step to the next one."""
        if self.is_of_several:
            return standing_s(self.recoveries)
        return _between(self.stood_t, self.first_step_t)

    @property
    def redo_s(self) -> float | None:
        """From the next step until the step once reached was passed."""
        if self.is_of_several:
            return redoing_s(self.recoveries)
        return _between(self.first_step_t, self.over_t)

    @property
    def whole_s(self) -> float | None:
        if self.is_of_several:
            down_s, redo_s = self.down_s, self.redo_s
            return None if down_s is None or redo_s is None else down_s + redo_s
        return _between(self.stood_t, self.over_t)


def split(incident: Incident, notes: Iterable[Note], accounts: Accounts | None) -> Split:
    """The marks of an incident and what lies between them."""
    began = incident.began_with
    found_t = began.since_t if began else None
    own = _recoveries(incident, found_t, accounts)
    stood_t = found_t if found_t is not None else _interrupted_t(incident, own, accounts)
    told = _told(incident, notes, stood_t)
    marks = _marks(incident, told, own)
    checked = _checked(incident, stood_t)
    return Split(
        stood_t=stood_t,
        marks=marks,
        parts_s=_parts(stood_t, marks, own),
        first_step_t=own[0].first_step_t if own else told.get("stepping"),
        redone_steps=sum(it.redone_steps for it in own) if own else _whole(checked.get("redone_steps")),
        resumed_step=own[-1].resumed_step if own else None,
        loss_joins_on=_judged(own[-1].loss_joins_on if own else None, checked.get("loss_joins_on")),
        data_agrees=_judged(own[-1].data_agrees if own else None, checked.get("data_agrees")),
        recoveries=own,
    )


def _marks(
    incident: Incident, told: Mapping[str, float | None], own: Sequence[Recovery]
) -> dict[str, float | None]:
    """Each as it was told, else as it was counted; a decision behind the restart is another incident's."""
    counted = _counted(own[0]) if own else {}
    marks = {name: mark if (mark := told.get(name)) is not None else counted.get(name) for name in _ENDS}
    if own and (own[0].over_t is not None or len(own) > 1):
        marks["over"] = own[0].over_t
    behind = [marks["started"], marks["loaded"], own[0].first_step_t if own else None, marks["over"]]
    latest_t = next((t for t in behind if t is not None), incident.last_t if incident.is_closed else None)
    decided_t = marks["decided"]
    if decided_t is not None and latest_t is not None and decided_t > latest_t:
        marks["decided"] = counted.get("decided")
    return marks


def _checked(incident: Incident, since_t: float | None) -> Mapping[str, object]:
    """How the keeper found the run to have come back, as it wrote it down; {} where it did not."""
    entry = incident.first("recovered", since_t)
    found = entry.entry.get("recovery") if entry else None
    return found if isinstance(found, Mapping) else {}


def _whole(value: object) -> int | None:
    return value if type(value) is int and value >= 0 else None


def _judged(counted: bool | None, told: object) -> bool | None:
    return counted if counted is not None or not isinstance(told, bool) else told


def _recoveries(incident: Incident, stood_t: float | None, accounts: Accounts | None) -> tuple[Recovery, ...]:
    """Those that began after the run stood still and before the incident was over."""
    if accounts is None:
        return ()
    begin, end = _bounds(incident, stood_t)
    return tuple(it for it in accounts.recoveries if begin <= it.interruption.t <= end)


def _bounds(incident: Incident, stood_t: float | None) -> tuple[float, float]:
    """Of when the run can have stood still: an alert comes no later than the longest of the limits."""
    opened_t = incident.opened_t
    begin = stood_t - _SLACK_S if stood_t is not None else (opened_t or math.inf) - _LONGEST_LIMIT_S
    is_over = incident.is_closed and incident.last_t is not None
    return begin, incident.last_t or math.inf if is_over else math.inf


def _interrupted_t(incident: Incident, own: Sequence[Recovery], accounts: Accounts | None) -> float | None:
    """When the run was interrupted by the accounts, where no verdict says since when it stood still."""
    if own:
        return own[0].interruption.t
    begin, end = _bounds(incident, None)
    stops = accounts.interruptions if accounts else ()
    return next((it.t for it in stops if begin <= it.t <= end), None)


def _told(incident: Incident, notes: Iterable[Note], stood_t: float | None) -> dict[str, float | None]:
    """Marks by the journal and the notes."""
    noticed = incident.first("alert_fired", stood_t) or incident.first("notification_intended", stood_t)
    dumped = incident.first("response_done", noticed.t if noticed else stood_t)
    decided = [it.t for it in notes if it.decision and (stood_t is None or it.t >= stood_t)]
    decided += [it.t for it in incident.happened if it.t is not None and _restarts(it)]
    states = {name: _state_t(incident, name, stood_t) for name in ("restarting", "recovering", "running")}
    begun_t = states["restarting"] or states["recovering"]
    return {
        "noticed": noticed.t if noticed else None,
        "dumped": dumped.t if dumped and _dumps(incident) else None,
        "decided": min(decided) if decided else None,
        "started": states["restarting"],
        "stepping": states["recovering"],
        "over": states["running"] if begun_t is not None else None,
    }


def _restarts(it: Happened) -> bool:
    """Whether the keeper's own hook restarted the run then: that is the decision."""
    entry = it.entry
    is_done = entry.get("does") == "act" and not entry.get("dry_run")
    return it.kind == "hook_decided" and entry.get("hook") == "restart" and is_done


def _dumps(incident: Incident) -> bool:
    """Whether the first answers held dumps, which an older keeper took always."""
    begun = incident.first("response_started")
    wanted = begun.entry.get("on_page") if begun else None
    return not isinstance(wanted, list) or "dump" in wanted


def _state_t(incident: Incident, state: str, since_t: float | None) -> float | None:
    """When the run came into a state for the first time after it stood still, in a new attempt."""
    for it in incident.happened:
        if it.kind == "state_changed" and it.entry.get("state") == state and it.t is not None:
            attempt = it.entry.get("attempt")
            if (since_t is None or it.t >= since_t) and isinstance(attempt, int) and attempt > 0:
                return it.t
    return None


def _counted(recovery: Recovery) -> dict[str, float]:
    """Marks by the accounts, from the last step on and from the end back, as far as parts are known."""
    found: dict[str, float] = {}
    t = recovery.interruption.t
    for part, mark in zip(PARTS, _ENDS, strict=True):
        length_s = recovery.parts_s.get(part)
        if length_s is None:
            break
        found[mark] = t = t + length_s
    if recovery.over_t is None:
        return found
    found["over"] = t = recovery.over_t
    for part, mark in zip(reversed(PARTS), (*reversed(_ENDS[:-1]), ""), strict=True):
        length_s = recovery.parts_s.get(part)
        if length_s is None or not mark:
            break
        t -= length_s
        found.setdefault(mark, t)
    return found


def _parts(
    stood_t: float | None, marks: Mapping[str, float | None], own: Sequence[Recovery]
) -> dict[str, float | None]:
    """Between neighbouring marks; a mark that lies before its neighbour bounds nothing.

    Where no load was told, steps are done again from the first step on: what came before it is no load.
    """
    bounds: Sequence[float | None] = (stood_t, *(marks.get(name) for name in _ENDS))
    found = {part: _between(*pair) for part, pair in zip(PARTS, pairwise(bounds), strict=True)}
    is_told = not own or own[0].parts_s.get("load") is not None
    return found if is_told else {**found, "load": None}


def _between(begin: float | None, end: float | None) -> float | None:
    return None if begin is None or end is None or end < begin else end - begin
