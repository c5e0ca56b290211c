"""What was it, in one line and with its evidence?

An incident that was about more than one thing tells each: the first of which the cause is known is the one
that everything else in the draft is about.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from train_ledger import answer
from train_ledger.answer import Diagnosis
from train_ledger.ops.postmortem.incident import Incident
from train_ledger.ops.postmortem.journal_moments import accused
from train_ledger.ops.postmortem.moment import Moment, day
from train_ledger.render import moment

__all__ = ["root_cause", "title_of"]

_MOST_LINES = 4


def title_of(incident: Incident, run_name: str, verdict: Diagnosis, timeline: Sequence[Moment]) -> str:
    """Day, run, step and who; then what the same incident was about besides."""
    hung = verdict.cause.startswith("hang.") or "TrainingStepStalled" in incident.alerts
    xid = next((m.xid for m in timeline if m.xid is not None and m.pages), None)
    by_hardware = verdict.cause.startswith("hardware.")
    cause = f", XID {xid}" if by_hardware and xid is not None else f", {verdict.cause}" if by_hardware else ""
    what = "hung" if hung else "was in trouble"
    then = "".join(f", then {it.cause}{_at(it)} ({accused(it)})" for it in incident.others)
    return f"{day(incident.opened_t)} {run_name} {what}{_at(verdict)} ({accused(verdict)}{cause}){then}"


def root_cause(incident: Incident, verdict: Diagnosis) -> Iterable[str]:
    """The verdict in lines; of what else there was its cause and its first lines."""
    yield f"{verdict.cause}: {_meaning(verdict)}; confidence {verdict.confidence}"
    if (found_at := incident.found_at) is not None:
        yield f"found by this draft, as known at {moment(found_at)}: no first answers were taken at the time"
    yield from verdict.evidence
    yield from (f"ruled out: {it.cause} – {it.by}" for it in verdict.ruled_out)
    yield from (f"not observed: {line}" for line in verdict.not_observed)
    for it in incident.others:
        said = f"also in this incident{_at(it)}: {it.cause}: {_meaning(it)}"
        yield f"{said}; {accused(it)}; confidence {it.confidence}"
        yield from it.evidence[:_MOST_LINES]


def _meaning(verdict: Diagnosis) -> str:
    return answer.CAUSES.get(verdict.cause, "not a known code")


def _at(verdict: Diagnosis) -> str:
    return f" at step {verdict.since_step:,}" if verdict.since_step is not None else ""
