"""What happened, when, what did it cost – as the draft that the review meeting starts from?

Markdown made from the journal alone, so that it can be written again at any time. The sections are those of
the seed article's chapter 6 section 3. What only people can know is left as a line to fill in, marked so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from train_ledger import answer
from train_ledger.config import Config
from train_ledger.ledger import journal
from train_ledger.render import harmless
from train_ledger.run_dir import RunDir, RunDirError

__all__ = ["postmortem"]

Entry = Mapping[str, Any]


def postmortem(run_dir: RunDir, config: Config, *, incident: str | None = None) -> str:
    """The draft for one incident (None: the latest), as Markdown.

    Raises RunDirError where the journal holds no incident, or none of that name.
    """
    entries, unreadable = journal.read(run_dir.journal)
    known = [str(entry["incident"]) for entry in entries if entry.get("kind") == "incident_opened"]
    if not known:
        raise RunDirError(f"{run_dir.journal}: holds no incident; a postmortem is written about one")
    chosen = incident or known[-1]
    if chosen not in known:
        raise RunDirError(f"{run_dir.journal}: holds no incident {chosen}; there are {', '.join(known)}")
    own = [entry for entry in entries if entry.get("incident") == chosen]
    return "\n".join(_lines(run_dir, config, chosen, own, len(unreadable))) + "\n"


def _lines(
    run_dir: RunDir, config: Config, incident: str, entries: Sequence[Entry], unreadable: int
) -> Iterable[str]:
    run = run_dir.read_run()
    verdict: Entry = next((e["diagnosis"] for e in reversed(entries) if e.get("kind") == "verdict"), {})
    yield f"# {_title(run_dir, run, incident, entries, verdict)}"
    yield ""
    yield f"Draft by train-ledger from the journal of incident `{incident}`. Lines with (?) are for people."
    yield ""
    yield from _impact(config, verdict)
    yield from _timeline(entries, verdict)
    yield from _root_cause(verdict)
    yield from _detection(entries, verdict)
    yield from _for_people()
    if unreadable:
        yield f"\n{unreadable} lines of the journal could not be read and are not in this draft."


def _title(run_dir: RunDir, run: Entry, incident: str, entries: Sequence[Entry], verdict: Entry) -> str:
    name = _text(run.get("run") or run_dir.path.resolve().name)
    day = _day(entries[0].get("t"))
    step = verdict.get("since_step")
    what = "hung" if str(verdict.get("cause", "")).startswith("hang.") else "was in trouble"
    where = f" at step {step:,}" if isinstance(step, int) else ""
    return f"{day} {name} {what}{where} ({_accused(verdict)})"


def _accused(verdict: Entry) -> str:
    ranks, hosts = verdict.get("ranks") or [], verdict.get("hosts") or []
    if not ranks:
        return "nobody accused"
    on = f" on {', '.join(map(_text, hosts))}" if hosts else ""
    return f"rank{'s' if len(ranks) > 1 else ''} {', '.join(map(str, ranks))}{on}"


def _impact(config: Config, verdict: Entry) -> Iterable[str]:
    yield "## Impact"
    yield ""
    impact = verdict.get("impact")
    if impact:
        wall, hours = f"{impact['wall_s']:.0f} s without a step", f"{impact['gpu_hours']:.3f} GPU-hours"
        yield f"- Until the verdict: {wall}, {hours}"
        cost = impact.get("cost")
        if cost is None:
            yield "- Cost: no price known (gpu_price_per_hour in run.json, or [cost] in the configuration)"
        else:
            yield f"- Cost: {cost:.2f} {config.cost.currency}"
    yield "- Until the run was back at its step (?): … min, … steps done again"
    yield ""


_SAID: Mapping[str, Callable[[Entry], str]] = {
    "incident_opened": lambda e: f"incident opened by {_text(e.get('alert'))}",
    "alert_fired": lambda e: (
        f"{_text(e.get('alert'))} fired ({_text(e.get('level'))}): {_text(e.get('summary'))}"
    ),
    "alert_resolved": lambda e: f"{_text(e.get('alert'))} resolved",
    "notification_intended": lambda e: "page handed over for delivery",
    "notification_done": lambda e: f"page: {_text(e.get('outcome'))}",
    "response_started": lambda e: "dumps and stacks requested from the ranks",
    "response_done": lambda e: _text(e.get("summary")),
    "verdict": lambda e: f"verdict: {_text(e['diagnosis'].get('cause'))}, {_accused(e['diagnosis'])}",
    "incident_closed": lambda e: "incident closed",
}


def _timeline(entries: Iterable[Entry], verdict: Entry) -> Iterable[str]:
    yield "## Timeline (UTC)"
    yield ""
    last_step_t = verdict.get("since_t")
    if isinstance(last_step_t, int | float):
        yield f"- {_clock(last_step_t)}  last step completed (step {verdict.get('since_step')})"
    for entry in entries:
        if say := _SAID.get(str(entry.get("kind"))):
            yield f"- {_clock(entry.get('t'))}  {say(entry)}"
    yield "- (?)  decision, restart, first step after it"
    yield ""


def _root_cause(verdict: Entry) -> Iterable[str]:
    cause = str(verdict.get("cause", "unknown"))
    yield "## Root cause"
    yield ""
    meaning = answer.CAUSES.get(cause, "not a known code")
    yield f"{cause}: {meaning}; confidence {verdict.get('confidence', 'low')}."
    yield ""
    yield from (f"- {_text(line)}" for line in verdict.get("evidence", ()))
    for excluded in verdict.get("ruled_out", ()):
        yield f"- ruled out: {_text(excluded.get('cause'))} – {_text(excluded.get('by'))}"
    yield from (f"- not observed: {_text(line)}" for line in verdict.get("not_observed", ()))
    yield "- why it could happen (?): …"
    yield ""


def _detection(entries: Sequence[Entry], verdict: Entry) -> Iterable[str]:
    yield "## Detection"
    yield ""
    last_step_t = verdict.get("since_t")
    for kind, what in (
        ("alert_fired", "alert"),
        ("notification_intended", "page"),
        ("verdict", "verdict"),
    ):
        t = next((entry.get("t") for entry in entries if entry.get("kind") == kind), None)
        if isinstance(t, int | float) and isinstance(last_step_t, int | float):
            yield f"- from the last step to the {what}: {t - last_step_t:.1f} s"
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


def _text(value: object) -> str:
    """A value from the journal on one line, with nothing in it that Markdown or a terminal would act on."""
    return harmless(value).replace("<", "&lt;").replace("`", "'").replace("|", "\\|")


def _clock(t: object) -> str:
    return f"{datetime.fromtimestamp(t, UTC):%H:%M:%S}" if isinstance(t, int | float) else "--:--:--"


def _day(t: object) -> str:
    return f"{datetime.fromtimestamp(t, UTC):%Y-%m-%d}" if isinstance(t, int | float) else "undated"
