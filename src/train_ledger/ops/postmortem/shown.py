"""How does the draft look: as Markdown, as a page, for a script?

Words of logs are made harmless here, once for each form: in Markdown by `inert`, on a page by its escaping.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from train_ledger.answer import SCHEMA, to_json
from train_ledger.ops.markdown import inert
from train_ledger.ops.postmortem.draft import Part, Postmortem
from train_ledger.ops.postmortem.moment import Moment, stamps
from train_ledger.render import Report
from train_ledger.render.report import Pair, Point, Section

__all__ = ["as_markdown", "as_record", "report_of_postmortem"]

_TIMELINE = "Timeline (UTC)"
_SPLIT = 1
"""The timeline stands behind the impact."""

_SHORT = "Made of the journal alone; `train-ledger postmortem RUN` adds accounts, signals and logs."


def as_markdown(draft: Postmortem) -> str:
    """The draft as Markdown, in which nothing from a log does anything."""
    return "\n".join(_markdown(draft)) + "\n"


def _markdown(draft: Postmortem) -> Iterable[str]:
    yield f"# {inert(draft.title)}"
    yield ""
    yield f"{_about(inert(draft.incident))}{'' if draft.is_whole else f' {_SHORT}'}"
    for number, part in enumerate(draft.parts):
        if number == _SPLIT:
            yield from _heading(_TIMELINE)
            for stamp, it in zip(stamps(draft.timeline), draft.timeline, strict=True):
                yield f"- {stamp}  {inert(it.text)}{_where(inert(it.where))}"
        yield from _heading(part.heading)
        yield from (f"- {inert(line)}" for line in part.lines)
        yield from (f"- (?) {line}: …" for line in part.for_people)
    for line in draft.not_told:
        yield ""
        yield inert(line)


def _heading(heading: str) -> Iterable[str]:
    yield from ("", f"## {heading}", "")


def _where(where: str) -> str:
    return f"  – {where}" if where else ""


def _about(incident: str) -> str:
    return (
        f"DRAFT, unverified, by train-ledger from the records of incident {incident}. "
        "Lines with (?) are for people."
    )


def report_of_postmortem(draft: Postmortem) -> Report:
    """The draft laid out as every other answer, for a page or a terminal."""
    sections = [Section("", (Pair("status", _about(draft.incident)),))]
    for number, part in enumerate(draft.parts):
        if number == _SPLIT:
            sections.append(Section(_TIMELINE, tuple(_lines(draft.timeline))))
        sections += _section(part)
    if draft.not_told:
        sections.append(Section("not in this draft", tuple(map(Point, draft.not_told))))
    return Report(draft.title, "trouble", tuple(sections))


def _lines(timeline: Sequence[Moment]) -> Iterable[Pair]:
    for stamp, it in zip(stamps(timeline), timeline, strict=True):
        yield Pair(stamp, f"{it.text}{_where(it.where)}")


def _section(part: Part) -> Iterable[Section]:
    rows = [*map(Point, part.lines), *(Point(f"(?) {line}: …") for line in part.for_people)]
    if rows:
        yield Section(part.heading, tuple(rows))


def as_record(draft: Postmortem) -> dict[str, Any]:
    """The draft for a script: its figures, and its Markdown."""
    split = draft.split
    return {
        "schema": SCHEMA,
        "incident": draft.incident,
        "title": draft.title,
        "impact": None if draft.loss.impact is None else _plain(draft.loss.impact),
        "gpus": draft.loss.gpus,
        "down_s": split.down_s,
        "redo_s": split.redo_s,
        "redone_steps": split.redone_steps,
        "timeline": [_plain(it) for it in draft.timeline],
        "detection": _plain(draft.detection),
        "recovery_s": dict(split.parts_s),
        "improvements": list(draft.improvements),
        "not_told": list(draft.not_told),
        "markdown": as_markdown(draft),
    }


def _plain(record: object) -> dict[str, Any]:
    return {key: value for key, value in to_json(record).items() if key != "schema"}
