"""What belongs to the incident that is open, and what was taken and written of it?"""

from __future__ import annotations

from collections.abc import Iterator

from train_ledger.dash.incident import Incident, Member
from train_ledger.dash.judge import Alert
from train_ledger.dash.page.markup import Child, Safe, element, join, moment, pairs
from train_ledger.dash.page.taken import Taken, taken_of
from train_ledger.dash.page.view import PageView
from train_ledger.render import harmless

__all__ = ["incident_part", "links_of"]

_MOST_ALERTS = 12


def incident_part(view: PageView) -> Safe:
    """The newest open incident; nothing where none is open."""
    if not view.incidents:
        return join([])
    incident = view.incidents[-1]
    taken = taken_of(view.about_incidents, incident.id)
    since = element("span", " opened ", moment(incident.opened_t), class_="dim")
    return join((element("h2", "the incident", since), pairs(_facts(view, incident, taken))))


def links_of(incident: str) -> Safe:
    """To what the keeper has written of an incident."""
    report = element("a", "report", href=f"reports/{incident}.html")
    draft = element("a", "postmortem draft", href=f"reports/{incident}.md")
    return join((report, ", ", draft))


def _facts(view: PageView, incident: Incident, taken: Taken) -> Iterator[tuple[str, Child]]:
    yield "alerts", _listed(_member(it, first=not number) for number, it in enumerate(incident.members))
    held = [alert for alert in view.alerts if alert.inhibited]
    if held:
        yield "held back", _listed(join((it.name, _since(it), ", inhibited: nobody is told")) for it in held)
    records = [alert for alert in view.alerts if alert.level == "record" and not alert.inhibited]
    if records:
        yield "on record", _listed(join((it.name, _since(it))) for it in records)
    yield "taken", _told(taken)
    if view.current_diagnosis is not None:
        yield "written", links_of(incident.id)
    yield "name", element("code", incident.id)


def _listed(lines: Iterator[Safe] | list[Safe]) -> Safe:
    told = list(lines)
    shown: list[Child] = [element("li", line) for line in told[:_MOST_ALERTS]]
    rest = len(told) - _MOST_ALERTS
    if rest > 0:
        shown.append(element("li", f"and {rest} more", class_="dim"))
    return element("ul", *shown, class_="bare")


def _member(member: Member, *, first: bool) -> Safe:
    how = " opened it " if first else " joined "
    over: tuple[Child, ...] = ()
    if member.resolved_t is not None:
        over = (", resolved ", moment(member.resolved_t, age=False))
    told = element("span", how, moment(member.alert.fired_t, age=False), *over, class_="dim")
    return join((element("b", member.alert.name), told))


def _since(alert: Alert) -> Safe:
    return element("span", " since ", moment(alert.fired_t, age=False), class_="dim")


def _told(taken: Taken) -> Child:
    if taken.is_under_way:
        return f"being taken: {', '.join(taken.on_page or ())} of every rank"
    if taken.on_page is None:
        return "nothing: [respond] on_page is not set, so the keeper leaves it to a person"
    return harmless(taken.error or taken.summary, longest=1000)
