"""Which report does an answer make?"""

from __future__ import annotations

from collections.abc import Iterable

from train_ledger.answer import CAUSES, STATES, Diagnosis, Finding, HangAnswer, SlowAnswer, Unreadable
from train_ledger.render import lost, words
from train_ledger.render.drawn import drawn_sections
from train_ledger.render.picture import Picture
from train_ledger.render.ranks import ranks_in_brief
from train_ledger.render.report import Report, Section, Tone, commands, pairs, points, ruled_out
from train_ledger.render.slow import slow_sections

__all__ = ["report_of"]

_MOST_OF_ONE_REASON = 4
_FOUND = "what was found"
"""Above it stand the commands, which have a heading."""


def report_of(
    answer: HangAnswer | Diagnosis | Report,
    *,
    currency: str = "",
    picture: Picture | None = None,
    drawn: bool = False,
) -> Report:
    """The report on an answer; a report is handed back as it is. `currency` names the unit of costs.

    `picture` adds its tables, and where things can be `drawn` the rest of it, too. There the commands stand
    above all that is drawn, where the eye begins; in a terminal they stand last, where it ends.
    """
    if isinstance(answer, Report):
        return answer
    shown = picture or Picture()
    if isinstance(answer, HangAnswer):
        return _of_hang(answer, shown, drawn=drawn)
    return _of_diagnosis(answer, currency, shown, drawn=drawn)


def _of_hang(answer: HangAnswer, picture: Picture, *, drawn: bool) -> Report:
    tones: dict[str, Tone] = {"hang": "trouble", "no_hang": "fine", "cannot_tell": "unsure"}
    following = commands(answer.next)
    sections = [
        *(following if drawn else ()),
        *_findings(
            answer,
            picture,
            confidence=answer.confidence if answer.verdict == "hang" else None,
            alone=_FOUND if drawn else "",
        ),
        *(drawn_sections(picture) if drawn else ()),
        *points("evidence", _evidence(answer)),
        *ruled_out(answer.ruled_out),
        *points("not observed", answer.not_observed),
        *points("not read", _not_read(answer)),
        *(() if drawn else following),
    ]
    return Report(words.verdict(answer), tones[answer.verdict], tuple(sections))


def _of_diagnosis(answer: Diagnosis, currency: str, picture: Picture, *, drawn: bool) -> Report:
    tones: dict[str, Tone] = {"none": "fine", "unknown": "unsure"}
    details = answer.details if isinstance(answer.details, HangAnswer) else None
    alone = _FOUND if drawn else ""
    findings = _findings(details, picture, confidence=None, alone=alone) if details else []
    slow = slow_sections(answer.details) if isinstance(answer.details, SlowAnswer) else []
    circumstances = pairs("", _circumstances(answer, currency))
    following = commands([*answer.next, *(details.next if details else ())])
    if drawn:
        told = [*circumstances, *following, *findings]
    else:
        told = [*findings, *circumstances] if len(findings) < 2 else [*circumstances, *findings]
    sections = [
        *pairs("", [("cause", _cause(answer.cause))]),
        *told,
        *slow,
        *(drawn_sections(picture) if drawn else ()),
        *points("evidence", [*answer.evidence, *(_evidence(details) if details else ())]),
        *ruled_out([*answer.ruled_out, *(details.ruled_out if details else ())]),
        *points("not observed", [*answer.not_observed, *(details.not_observed if details else ())]),
        *points("not read", _not_read(details) if details else ()),
        *(() if drawn else following),
    ]
    return Report(words.verdict(answer), tones.get(answer.cause, "trouble"), tuple(sections))


def _cause(code: str) -> str | None:
    if code == "none":
        return None  # the verdict says it
    return f"{code} – {CAUSES[code]}" if code in CAUSES else code


def _circumstances(answer: Diagnosis, currency: str) -> Iterable[tuple[str, str | None]]:
    since = [] if answer.since_step is None else [f"step {answer.since_step}"]
    since += [] if answer.since_t is None else [words.moment(answer.since_t)]
    return (
        ("state", _state(answer.state)),
        ("since", ", ".join(since)),
        ("hosts", ", ".join(answer.hosts)),
        ("GPUs", ", ".join(answer.gpus)),
        ("impact", lost.impact(answer.impact, currency)),
        ("to mend", answer.details.remedy if isinstance(answer.details, SlowAnswer) else None),
        ("confidence", answer.confidence if answer.cause != "none" else None),
    )


def _findings(answer: HangAnswer, picture: Picture, *, confidence: str | None, alone: str) -> list[Section]:
    """The findings, each under its number; `alone` is the heading of one alone."""
    several = len(answer.findings) > 1
    undecided = picture.tables if not answer.findings else ()
    sections = [Section(alone, tables) for tables in undecided]
    for number, finding in enumerate(answer.findings, start=1):
        heading = f"finding {number} of {len(answer.findings)}" if several else alone
        tables = picture.tables[number - 1] if number <= len(picture.tables) else ()
        told = pairs("" if tables else heading, _finding(finding, answer, confidence))
        sections += [*([Section(heading, tables)] if tables else []), *told]
    return sections


def _finding(
    finding: Finding, answer: HangAnswer, confidence: str | None
) -> Iterable[tuple[str, str | None]]:
    return (
        ("what", f"{words.what_happened(finding, answer)} ({finding.kind})"),
        ("group", words.group(finding.group)),
        ("operation", words.place(finding)),
        (words.place_in_code(finding), finding.frame),
        ("who waits", words.who_waits(finding, answer)),
        ("suspected", finding.cause_suspected),
        ("to mend", finding.fix),
        ("confidence", confidence),
    )


def _evidence(answer: HangAnswer) -> list[str]:
    return [line for finding in answer.findings for line in finding.evidence]


def _not_read(answer: HangAnswer) -> list[str]:
    missing = answer.missing_dumps
    return [
        *([f"no dump of {ranks_in_brief(missing)}"] if missing else []),
        *_by_reason(answer.unreadable),
        *(f"{stale}: stale, left out" for stale in answer.stale),
    ]


def _by_reason(unread: Iterable[Unreadable]) -> Iterable[str]:
    """One line a file; where many have one reason they are counted, and some of them named."""
    files: dict[str, list[str]] = {}
    for it in unread:
        files.setdefault(it.why, []).append(it.file)
    for why, named in files.items():
        if len(named) <= _MOST_OF_ONE_REASON:
            yield from (f"{file}: {why}" for file in named)
        else:
            some = ", ".join(named[: _MOST_OF_ONE_REASON - 1])
            yield f"{len(named)} files and folders: {why} – {some}, …; --json lists all"


def _state(state: str) -> str:
    return f"{state} – {STATES[state]}" if state in STATES and state != "running" else state
