"""What does the person who is woken read first?

A title that fits on a lock screen – run, what, who – and a body with the evidence and the next command.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from train_ledger.answer import CAUSES
from train_ledger.config import Config
from train_ledger.dash import Action, Incident, Notification
from train_ledger.render import harmless, rank_ranges, still_slow
from train_ledger.watch.recall import Place
from train_ledger.watch.recovery_words import recovery_in_words

__all__ = [
    "again_id",
    "again_message",
    "incident_of",
    "page_id",
    "page_message",
    "repeat_message",
    "resolved_message",
    "update_message",
]

_MOST_EVIDENCE = 6
_LONGEST_IN_A_TITLE = 100
_KIND_OF_MESSAGE = re.compile(r"-(open|close|update-\d+|repeat-\d+|again-\d+-\w+)\Z")


def page_id(incident: str) -> str:
    """The id of an incident's one page."""
    return f"{incident}-open"


def incident_of(message: str) -> str:
    """The incident that a message id belongs to.

    >>> incident_of("20261130T031205Z-TrainingStepStalled-update-2")
    '20261130T031205Z-TrainingStepStalled'
    """
    return _KIND_OF_MESSAGE.sub("", message)


def page_message(
    config: Config,
    run: str,
    incident: Incident,
    verdict: Mapping[str, Any] | None,
    *,
    run_path: str = "RUN",
    hooks: Iterable[str] = (),
) -> Notification:
    """The page of an incident; `verdict` is its diagnosis as JSON values, None where there is none yet.

    `hooks` says what the hooks do about it, and `run_path` where the run is, for commands that can be pasted.
    """
    alerts = [member.alert for member in incident.members]
    body = [alert.summary for alert in alerts]
    if verdict is not None:
        body += [*_found(verdict), *hooks]
    elif config.respond.on_page:
        body.append("The first answers are still being taken; see the page of `train-ledger watch`.")
    else:
        body.append(f"next: train-ledger respond {shlex.quote(run_path)}   (dumps, stacks and the verdict)")
    title = f"{run}: {alerts[0].name}"
    if verdict:
        title += f" – {_accusation(verdict) if _is_wrong(verdict) else _in_short(alerts[0].summary, run)}"
    details = {
        "run": run,
        "incident": incident.id,
        "alerts": [alert.name for alert in alerts],
        "cause": verdict.get("cause") if verdict else None,
        "ranks": verdict.get("ranks", []) if verdict else [],
    }
    return _message(config, page_id(incident.id), title, body, "page", details)


def again_id(incident: str, place: Place) -> str:
    """The id of the message that the run stands still again, at this place."""
    attempt, step = place
    return f"{incident}-again-{attempt}-{step}"


def again_message(
    config: Config,
    run: str,
    incident: Incident,
    place: Place,
    before: Collection[Place | None],
    verdict: Mapping[str, Any] | None,
) -> Notification:
    """A run that stands still again while its incident is open; `before` are the places that were told.

    It is a page where a new attempt stands still: whoever restarted it believes that it runs.
    """
    attempt, step = place
    where = (
        f"at step {step}, attempt {attempt}" if step is not None else f"before step 1 of attempt {attempt}"
    )
    title = f"{run}: stands still again {where}" + (f" – {_accusation(verdict)}" if verdict else "")
    restarted = all(it is None or it[0] < attempt for it in before)
    details = {"run": run, "incident": incident.id, "ranks": verdict.get("ranks", []) if verdict else []}
    body = [f"{run} went on and stands still again {where}.", *(_found(verdict) if verdict else ())]
    level = "page" if restarted else "record"
    return _message(config, again_id(incident.id, place), title, body, level, details)


def update_message(
    config: Config, run: str, action: Action, verdict: Mapping[str, Any] | None
) -> Notification:
    """Alerts that joined an open incident; not a new page.

    `verdict` is the newest on the incident: what joins is often what shows who is to blame.
    """
    names = ", ".join(alert.name for alert in action.alerts)
    blamed = f" – {_accusation(verdict)}" if verdict and _is_wrong(verdict) else ""
    body = [*(alert.summary for alert in action.alerts), *(_found(verdict) if verdict else ())]
    details = {"run": run, "incident": action.incident.id, "alerts": [alert.name for alert in action.alerts]}
    return _message(config, action.notification_id, f"{run}: also {names}{blamed}", body, "record", details)


def repeat_message(
    config: Config, run: str, action: Action, verdict: Mapping[str, Any] | None
) -> Notification:
    """An incident that is open still, `[alerts] repeat_interval_s` after the last message about it."""
    names = ", ".join(alert.name for alert in action.alerts)
    hours = (action.t - action.incident.opened_t) / 3600
    body = [f"Incident {action.incident.id} is open for {hours:.1f} h. It began with:"]
    body += [alert.summary for alert in action.alerts]
    body += _found(verdict) if verdict else ()
    details = {"run": run, "incident": action.incident.id, "alerts": [alert.name for alert in action.alerts]}
    return _message(config, action.notification_id, f"{run}: still {names}", body, "page", details)


def resolved_message(
    config: Config,
    run: str,
    action: Action,
    recovery: Mapping[str, Any] | None = None,
    *,
    verdict: Mapping[str, Any] | None = None,
    step_s: float | None = None,
) -> Notification:
    """The end of an incident; `recovery` is how the run came back in it, as JSON values.

    By the last `verdict`, and by what a step takes now, it is said where the steps are still slow.
    """
    lasted_s = action.t - action.incident.opened_t
    body = [f"Incident {action.incident.id} is over after {lasted_s:.0f} s."]
    if recovery is not None:
        body.append(f"The run has recovered: {recovery_in_words(recovery)}.")
    slow = _still_slow(verdict, step_s)
    if slow is not None:
        body.append(f"But {slow}: a run is compared with its own last hours, and these are slow as well.")
    details = {"run": run, "incident": action.incident.id}
    title = f"{run}: resolved" + (", and still slow" if slow is not None else "")
    return _message(config, action.notification_id, title, body, "resolved", details)


def _still_slow(verdict: Mapping[str, Any] | None, step_s: float | None) -> str | None:
    details = (verdict or {}).get("details")
    if not isinstance(details, Mapping) or details.get("slower") is not True:
        return None
    before_s = details.get("before_s")
    return still_slow(before_s, step_s) if isinstance(before_s, int | float) else None


def _message(
    config: Config, id: str, title: str, body: Iterable[str], level: str, details: Mapping[str, Any]
) -> Notification:
    text = "\n".join(harmless(line) for line in body)
    return Notification.to(
        config.notify, id=id, title=harmless(title), body=text, level=level, details=details
    )


def _is_wrong(verdict: Mapping[str, Any]) -> bool:
    """Whether the verdict names trouble: of a run that still goes on it may find none yet."""
    return verdict.get("cause") != "none"


def _in_short(summary: str, run: str) -> str:
    return harmless(summary.removeprefix(f"{run}: "), longest=_LONGEST_IN_A_TITLE)


def _accusation(verdict: Mapping[str, Any]) -> str:
    ranks = verdict.get("ranks") or []
    cause = str(verdict.get("cause"))
    if not ranks and cause == "unknown":
        because = (verdict.get("not_observed") or ("the evidence does not say why",))[0]
        return f"cannot tell, because {harmless(because, longest=_LONGEST_IN_A_TITLE)}"
    if not ranks and (hosts := verdict.get("hosts")):
        return f"culprit: host{'s' if len(hosts) > 1 else ''} {', '.join(hosts)} ({cause})"
    if not ranks:
        return f"{cause}, nobody accused"
    return f"culprit: rank{'s' if len(ranks) > 1 else ''} {rank_ranges(ranks)} ({cause})"


def _found(verdict: Mapping[str, Any]) -> Iterable[str]:
    if not _is_wrong(verdict):
        yield "When it was looked at, the run still went on."
        return
    cause = str(verdict.get("cause"))
    yield f"{_accusation(verdict)}: {CAUSES.get(cause, cause)}; confidence {verdict.get('confidence')}"
    yield from (f"- {line}" for line in (verdict.get("evidence") or ())[:_MOST_EVIDENCE])
    for step in (verdict.get("next") or ())[:1]:
        yield f"next: {step['command']}   ({step['why']})"
