"""How is the verdict laid out: what is wrong, what to run next, on what evidence, what was ruled out?"""

from __future__ import annotations

from collections.abc import Iterable

from train_ledger.answer import CAUSES, Diagnosis, HangAnswer, NextCommand
from train_ledger.dash.page.headline import headline
from train_ledger.dash.page.markup import Child, Safe, element, join, moment, whole
from train_ledger.dash.page.view import PageView
from train_ledger.render import duration, place_in_code

__all__ = ["verdict_part"]

_EVIDENCE = 8


def verdict_part(view: PageView) -> Safe:
    first = headline(view)
    diagnosis = view.current_diagnosis
    said: list[Child] = [element("h1", first.text, class_=first.tone)]
    if diagnosis is not None:
        said += _found(diagnosis, view.verdict_t)
    elif view.incidents:
        said.append(
            element("p", "Finding out why: dumps and stacks of every rank are being taken.", class_="dim")
        )
    earlier = view.last_verdict[1]
    if earlier is not None and not view.incidents:
        said.append(
            element("p", f"The last incident is over; its verdict was {earlier.cause}.", class_="dim")
        )
    return join(said)


def _found(diagnosis: Diagnosis, found_t: float | None) -> Iterable[Safe]:
    details = diagnosis.details if isinstance(diagnosis.details, HangAnswer) else None
    findings = details.findings if details else ()
    evidence = [*diagnosis.evidence, *(line for finding in findings for line in finding.evidence)]
    commands = [*diagnosis.next, *(details.next if details else ())]
    found = [] if found_t is None else [("found", moment(found_t, age=False))]
    facts: list[tuple[str, Child]] = [
        *found,
        ("cause", _cause(diagnosis.cause)),
        ("confidence", diagnosis.confidence),
        *((place_in_code(finding), finding.frame) for finding in findings if finding.frame),
    ]
    if diagnosis.impact is not None:
        hours = diagnosis.impact.gpu_hours
        gpus = "" if hours is None else f", {hours:,.2f} GPU-hours"
        facts.append(("lost by then", f"{duration(diagnosis.impact.wall_s)}{gpus}"))
    yield _pairs(facts)
    yield from _commands(commands)
    yield from _listed("evidence", dict.fromkeys(evidence))
    yield from _listed("ruled out", (f"{each.cause}: {each.by}" for each in diagnosis.ruled_out))


def _cause(code: str) -> Safe:
    meaning = f" – {CAUSES[code]}" if code in CAUSES else None
    return join((element("code", code), meaning))


def _commands(commands: list[NextCommand]) -> Iterable[Safe]:
    for number, command in enumerate(dict.fromkeys(commands)):
        line = join(
            (
                element("code", whole(command.command), tabindex=0),
                element("button", "copy", type="button", data_copy=command.command),
            )
        )
        why = join((element("b", "next: ") if number == 0 else None, command.why))
        yield element("div", element("p", why), element("div", line, class_="command"), class_="next")


def _listed(heading: str, lines: Iterable[str]) -> Iterable[Safe]:
    lines = list(lines)
    if lines:
        items = [element("li", line) for line in lines[:_EVIDENCE]]
        rest = len(lines) - _EVIDENCE
        more = [element("li", f"and {rest} more, in the state as JSON", class_="dim")] if rest > 0 else []
        yield join((element("h2", heading), element("ul", *items, *more)))


def _pairs(facts: Iterable[tuple[str, Child]]) -> Safe:
    return element("dl", *(join((element("dt", name), element("dd", value))) for name, value in facts))
