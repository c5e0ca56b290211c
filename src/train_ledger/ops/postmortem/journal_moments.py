"""What did the keeper see and do, line by line?"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from train_ledger.answer import Diagnosis
from train_ledger.ledger.notes import Note
from train_ledger.ops.postmortem.incident import Entry, Happened, Incident
from train_ledger.ops.postmortem.moment import Moment
from train_ledger.render import duration, ranks_in_words

__all__ = ["accused", "journal_moments", "note_moments"]

_KEEPER = "the keeper's clock"
_LONGEST_CODE = 7


def journal_moments(incident: Incident) -> Iterable[Moment]:
    """The entries of the incident in words; a kind that is of no interest to people is not told."""
    for it in incident.happened:
        source = f"ledger/journal.jsonl:{it.line}"
        if it.verdict:
            yield Moment(it.t, f"verdict: {it.verdict.cause}, {accused(it.verdict)}", source, _KEEPER)
        elif it.kind == "alert_fired":
            yield _alert(it, source)
        elif say := _SAID.get(it.kind):
            yield Moment(it.t, say(it), source, _KEEPER)


def note_moments(notes: Iterable[Note]) -> Iterable[Moment]:
    """What people wrote down, with who says so and when it was written."""
    for it in notes:
        late_s = it.written_t - it.t
        by = it.by.strip() or "somebody"
        clock = f"as {by} says, written {duration(late_s)} later" if late_s >= 60 else "their own clock"
        said = "decision: " if it.decision else ""
        yield Moment(it.t, f"{said}{it.text} (noted by {by})", it.source, clock, host=it.host or None)


def accused(verdict: Diagnosis) -> str:
    """Whom a verdict names, with their hosts; "nobody accused"."""
    if not verdict.ranks:
        things = [*(f"host {host}" for host in verdict.hosts), *(f"GPU {gpu}" for gpu in verdict.gpus)]
        return ", ".join(things) or "nobody accused"
    on = f" on {', '.join(verdict.hosts)}" if verdict.hosts else ""
    return f"{ranks_in_words(verdict.ranks).replace(',', ', ')}{on}"


def _state(it: Happened) -> str:
    entry = it.entry
    step, attempt = entry.get("step"), entry.get("attempt")
    place = f"before step 1 of attempt {attempt}" if step is None else f"at step {step}, attempt {attempt}"
    return f"the run is {entry.get('state')} {place}"


def _begun(entry: Entry) -> str:
    wanted = entry.get("on_page")
    if not isinstance(wanted, list | tuple):
        return "dumps and stacks requested from the ranks"
    return f"first answers begun: {', '.join(map(str, wanted)) or 'none'}"


def _hook(entry: Entry) -> str:
    dry = ", dry run: nothing is done" if entry.get("dry_run") else ""
    return f"hook {entry.get('hook')}: {entry.get('does')}{dry} ({entry.get('why')})"


def _recovered(entry: Entry) -> str:
    found = entry.get("recovery")
    recovery = found if isinstance(found, Mapping) else {}
    return f"past step {recovery.get('reached')} again, {recovery.get('redone_steps')} steps done once more"


def _of(words: str, key: str) -> Callable[[Happened], str]:
    return lambda it: f"{words}{it.entry.get(key)}"


def _alert(it: Happened, source: str) -> Moment:
    """An alert about an XID says which, so that a host whose kernel log nobody kept is known, too."""
    entry = it.entry
    quiet = ", but another alert explains it" if entry.get("inhibited") is True else ""
    text = f"{entry.get('alert')} fired ({entry.get('level')}{quiet}): {entry.get('summary')}"
    labels = _labels(entry)
    code, host = labels.get("xid"), labels.get("host")
    xid = int(code) if isinstance(code, str) and code.isdecimal() and len(code) < _LONGEST_CODE else None
    host = host if isinstance(host, str) else None
    return Moment(it.t, text, source, _KEEPER, host=host, xid=xid, pages=entry.get("level") == "page")


def _labels(entry: Entry) -> Mapping[str, object]:
    found: object = entry
    for key in ("transition", "alert", "labels"):
        found = found.get(key) if isinstance(found, Mapping) else None
    return found if isinstance(found, Mapping) else {}


_SAID: Mapping[str, Callable[[Happened], str]] = {
    "incident_opened": _of("incident opened by ", "alert"),
    "alert_resolved": lambda it: f"{it.entry.get('alert')} resolved",
    "notification_intended": lambda it: "page handed over for delivery",
    "notification_done": _of("page: ", "outcome"),
    "response_started": lambda it: _begun(it.entry),
    "response_done": _of("", "summary"),
    "response_failed": _of("the first answers failed: ", "error"),
    "hook_decided": lambda it: _hook(it.entry),
    "hook_done": lambda it: f"{it.entry.get('hook')} command ended with {it.entry.get('exit_code')}",
    "recovered": lambda it: _recovered(it.entry),
    "incident_closed": lambda it: "incident closed",
    "state_changed": _state,
}
