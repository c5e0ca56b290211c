"""What happened, when, what did it cost – as the draft that the review meeting starts from?

Markdown made from the journal alone, so that it can be written again at any time. The sections are those of
the seed article's chapter 6 section 3. What only people can know is left as a line to fill in, marked so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from train_ledger import answer
from train_ledger.answer import Diagnosis
from train_ledger.config import Config
from train_ledger.ledger import journal
from train_ledger.ops.journal_values import Taker
from train_ledger.ops.markdown import inert
from train_ledger.render import ranks_in_words
from train_ledger.run_dir import RunDir, RunDirError

__all__ = ["latest_incident", "postmortem"]

Entry = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class _Happened:
    """One entry of the incident, as far as it is understood."""

    kind: str
    t: float | None
    entry: Entry
    verdict: Diagnosis | None = None


def postmortem(run_dir: RunDir, config: Config, *, incident: str | None = None) -> str:
    """The draft for one incident (None: the latest), as Markdown.

    Raises RunDirError where the journal holds no incident, or none of that name, and JournalError where it
    cannot be read.
    """
    entries, unreadable = journal.read(run_dir.journal)
    known = _incidents(entries)
    if not known:
        raise RunDirError(f"{run_dir.journal}: holds no incident; a postmortem is written about one")
    chosen = incident or known[-1]
    if chosen not in known:
        raise RunDirError(f"{run_dir.journal}: holds no incident {chosen}; there are {', '.join(known)}")
    taker = Taker()
    own = [_happened(entry, taker) for entry in _of_incident(entries, chosen)]
    nameless = sum(entry.get("incident") is not None and _incident(entry) is None for entry in entries)
    lines = [*_lines(run_dir, config, chosen, own), *_left_out(len(unreadable) + nameless, taker.left_out)]
    return "\n".join(lines) + "\n"


def _of_incident(entries: Sequence[Entry], incident: str) -> Iterable[Entry]:
    """The incident's own entries, and what the run did from its first to its last, or until now."""
    own = [number for number, entry in enumerate(entries) if _incident(entry) == incident]
    closed = any(entries[number].get("kind") == "incident_closed" for number in own)
    last = own[-1] if closed else len(entries) - 1
    for number in range(own[0], last + 1):
        entry = entries[number]
        if _incident(entry) == incident or entry.get("kind") == "state_changed":
            yield entry


def latest_incident(run_dir: RunDir) -> str | None:
    """The incident that was opened last; None where there was none."""
    return next(reversed(_incidents(journal.read(run_dir.journal).entries)), None)


def _incidents(entries: Iterable[Entry]) -> list[str]:
    opened = (_incident(entry) for entry in entries if entry.get("kind") == "incident_opened")
    return [incident for incident in opened if incident is not None]


def _incident(entry: Entry) -> str | None:
    incident = entry.get("incident")
    return str(incident) if isinstance(incident, str) or type(incident) is int else None


def _happened(entry: Entry, taker: Taker) -> _Happened:
    kind = str(entry.get("kind"))
    verdict = taker.diagnosis(entry) if kind == "verdict" else None
    return _Happened(kind, taker.moment(entry), entry, verdict)


def _left_out(lines: int, values: int) -> Iterable[str]:
    if lines:
        yield f"\n{lines} line{'s' * (lines > 1)} of the journal could not be read; not in this draft."
    if values:
        yield f"\n{values} value{'s' * (values > 1)} in the journal made no sense; not in this draft."


def _lines(run_dir: RunDir, config: Config, incident: str, happened: Sequence[_Happened]) -> Iterable[str]:
    run = run_dir.read_run()
    verdict = next((it.verdict for it in reversed(happened) if it.verdict), None)
    found = verdict or Diagnosis("", "unknown")
    yield f"# {_title(run_dir, run, happened[0].t, found)}"
    yield ""
    source = f"the journal of incident {inert(incident)}"
    yield f"Draft by train-ledger from {source}. Lines with (?) are for people."
    yield ""
    yield from _impact(config, found)
    yield from _timeline(happened, found)
    yield from _root_cause(found)
    yield from _detection(happened, found)
    yield from _for_people()


def _title(run_dir: RunDir, run: Entry, t: float | None, verdict: Diagnosis) -> str:
    name = inert(run_dir.name_in(run))
    what = "hung" if verdict.cause.startswith("hang.") else "was in trouble"
    where = f" at step {verdict.since_step:,}" if verdict.since_step is not None else ""
    return f"{_day(t)} {name} {what}{where} ({_accused(verdict)})"


def _accused(verdict: Diagnosis) -> str:
    if not verdict.ranks:
        return "nobody accused"
    on = f" on {', '.join(map(inert, verdict.hosts))}" if verdict.hosts else ""
    return f"{ranks_in_words(verdict.ranks).replace(',', ', ')}{on}"


def _impact(config: Config, verdict: Diagnosis) -> Iterable[str]:
    yield "## Impact"
    yield ""
    impact = verdict.impact
    if impact:
        hours = "" if impact.gpu_hours is None else f", {impact.gpu_hours:.3f} GPU-hours"
        yield f"- Until the verdict: {impact.wall_s:.0f} s without a step{hours}"
        if impact.gpu_hours is None:
            yield "- Cost: the ranks say of no GPU"
        elif impact.cost is None:
            yield "- Cost: no price known (gpu_price_per_hour in run.json, or [cost] in the configuration)"
        else:
            yield f"- Cost: {impact.cost:.2f} {inert(config.cost.currency)}"
    yield "- Until the run was back at its step (?): … min, … steps done again"
    yield ""


_SAID: Mapping[str, Callable[[Entry], str]] = {
    "incident_opened": lambda e: f"incident opened by {inert(e.get('alert'))}",
    "alert_fired": lambda e: (
        f"{inert(e.get('alert'))} fired ({inert(e.get('level'))}): {inert(e.get('summary'))}"
    ),
    "alert_resolved": lambda e: f"{inert(e.get('alert'))} resolved",
    "notification_intended": lambda e: "page handed over for delivery",
    "notification_done": lambda e: f"page: {inert(e.get('outcome'))}",
    "response_started": lambda e: "dumps and stacks requested from the ranks",
    "response_done": lambda e: inert(e.get("summary")),
    "incident_closed": lambda e: "incident closed",
    "state_changed": lambda e: f"the run is {inert(e.get('state'))} {_place(e)}",
}


def _place(entry: Entry) -> str:
    step, attempt = entry.get("step"), inert(entry.get("attempt"))
    return (
        f"before step 1 of attempt {attempt}" if step is None else f"at step {inert(step)}, attempt {attempt}"
    )


def _timeline(happened: Iterable[_Happened], verdict: Diagnosis) -> Iterable[str]:
    yield "## Timeline (UTC)"
    yield ""
    stands_since_t = verdict.since_t
    for it in happened:
        if stands_since_t is not None and it.t is not None and it.t >= stands_since_t:
            yield _last_step(verdict)
            stands_since_t = None
        if it.verdict:
            yield f"- {_clock(it.t)}  verdict: {inert(it.verdict.cause)}, {_accused(it.verdict)}"
        elif say := _SAID.get(it.kind):
            yield f"- {_clock(it.t)}  {say(it.entry)}"
    if stands_since_t is not None:
        yield _last_step(verdict)
    yield "- (?)  decision, restart, first step after it"
    yield ""


def _last_step(verdict: Diagnosis) -> str:
    step = "" if verdict.since_step is None else f" (step {verdict.since_step})"
    return f"- {_clock(verdict.since_t)}  last step completed{step}"


def _root_cause(verdict: Diagnosis) -> Iterable[str]:
    yield "## Root cause"
    yield ""
    meaning = answer.CAUSES.get(verdict.cause, "not a known code")
    yield f"{inert(verdict.cause)}: {meaning}; confidence {verdict.confidence}."
    yield ""
    yield from (f"- {inert(line)}" for line in verdict.evidence)
    yield from (f"- ruled out: {inert(it.cause)} – {inert(it.by)}" for it in verdict.ruled_out)
    yield from (f"- not observed: {inert(line)}" for line in verdict.not_observed)
    yield "- why it could happen (?): …"
    yield ""


def _detection(happened: Sequence[_Happened], verdict: Diagnosis) -> Iterable[str]:
    yield "## Detection"
    yield ""
    since_t = verdict.since_t  # of a run that stands still again: what was told before is no detection of it
    for kind, what in (
        ("alert_fired", "alert"),
        ("notification_intended", "page"),
        ("verdict", "verdict"),
    ):
        if since_t is None:
            break
        t = next((it.t for it in happened if it.kind == kind and it.t is not None and it.t >= since_t), None)
        if t is not None:
            yield f"- from the last step to the {what}: {t - since_t:.1f} s"
    yield ""


def _for_people() -> Iterable[str]:
    yield from (
        "## Recovery",
        "",
        "- decide (?): … min; restart (?): … min; load (?): … min; steps done again (?): … min",
        "",
        "## What went well (?)",
        "",
        "## What to improve (?)",
        "",
        "## Actions (?)",
        "",
        "- who, until when, what",
    )


def _clock(t: float | None) -> str:
    return "--:--:--" if t is None else f"{datetime.fromtimestamp(t, UTC):%H:%M:%S}"


def _day(t: float | None) -> str:
    return "undated" if t is None else f"{datetime.fromtimestamp(t, UTC):%Y-%m-%d}"
