"""How is the verdict laid out: what is wrong, what to run next, on what evidence, what was ruled out?"""

from __future__ import annotations

import shlex
from collections.abc import Iterable

from train_ledger.answer import CAUSES, Diagnosis, HangAnswer, Impact, NextCommand, SlowAnswer
from train_ledger.dash.page.again import goes_on_again
from train_ledger.dash.page.cost import money
from train_ledger.dash.page.headline import headline, how_it_is_heard, next_command
from train_ledger.dash.page.markup import Child, Safe, element, join, moment, pairs, whole
from train_ledger.dash.page.still_slow import still_slow
from train_ledger.dash.page.taken import Taken, taken_of
from train_ledger.dash.page.view import PageView
from train_ledger.render import duration, is_felt, place_in_code, verdict

__all__ = ["verdict_part"]

_EVIDENCE = 8
_WANTED = {"dump": "dumps"}


def verdict_part(view: PageView) -> Safe:
    first, again = headline(view), goes_on_again(view) is not None
    diagnosis = view.current_diagnosis
    said: list[Child] = [element("h1", first.text, class_=first.tone)]
    if diagnosis is not None:
        currency = view.accounts.currency if view.accounts else ""
        if again:
            said.append(element("p", f"What it was: {verdict(diagnosis)}.", class_="dim"))
        said += _found(diagnosis, view.verdict_t, currency, commands=not again)
    elif view.incidents and again:
        none = "Nobody looked for the reason while it stood; watch --respond does."
        said.append(element("p", none, class_="dim"))
    elif view.incidents:
        said += _not_yet(view, taken_of(view.about_incidents, view.incidents[-1].id))
    elif (told := how_it_is_heard(view)) is not None:
        said.append(element("p", told))
    earlier = view.last_verdict[1]
    if earlier is not None and not view.incidents:
        over = f"The last incident is over; its verdict was {earlier.cause}."
        if still_slow(view) is not None:
            over += (
                " Its alert went since the run is compared with its own last hours, which are slow as well."
            )
        said.append(element("p", over, class_="dim"))
        said += _commands([it for it in (next_command(view),) if it is not None])
    return join(said)


def _not_yet(view: PageView, taken: Taken) -> Iterable[Safe]:
    """Whether somebody is finding out, and what to type where nobody is."""
    if taken.is_under_way:
        wanted = ", ".join(_WANTED.get(it, it) for it in taken.on_page or () if it != "diagnose")
        said = f"Finding out why: {wanted} of every rank are being taken." if wanted else "Finding out why."
        yield element("p", said, class_="dim")
        return
    none = "The keeper has not looked for the reason."
    yield element("p", f"Finding out why failed: {taken.error}." if taken.error else none, class_="dim")
    command = f"train-ledger respond {shlex.quote(view.run_path)}"
    yield from _commands([NextCommand("dumps, stacks and the verdict, now", command)])


def _found(diagnosis: Diagnosis, found_t: float | None, currency: str, *, commands: bool) -> Iterable[Safe]:
    """What was found; the `commands` look at what the ranks do now."""
    details = diagnosis.details if isinstance(diagnosis.details, HangAnswer) else None
    findings = details.findings if details else ()
    evidence = [*diagnosis.evidence, *(line for finding in findings for line in finding.evidence)]
    following = [*diagnosis.next, *(details.next if details else ())] if commands else []
    found = [] if found_t is None else [("found", moment(found_t, age=False))]
    facts: list[tuple[str, Child]] = [
        *found,
        ("cause", _cause(diagnosis.cause)),
        ("confidence", diagnosis.confidence),
        *((place_in_code(finding), finding.frame) for finding in findings if finding.frame),
    ]
    facts += [(name, said) for name, said in _advice(diagnosis) if said]
    if diagnosis.impact is not None and is_felt(diagnosis.impact):
        facts.append(("lost by then", _lost(diagnosis.impact, currency)))
    yield pairs(facts)
    yield from _commands(following)
    yield from _listed("evidence", dict.fromkeys(evidence))
    yield from _listed("ruled out", (f"{each.cause}: {each.by}" for each in diagnosis.ruled_out))


def _advice(diagnosis: Diagnosis) -> Iterable[tuple[str, str | None]]:
    """What is suspected and what mends it; of several findings by the first."""
    details = diagnosis.details
    if isinstance(details, HangAnswer):
        for finding in details.findings[:1]:
            yield "suspected", finding.cause_suspected
            yield "to mend", finding.fix
    elif isinstance(details, SlowAnswer):
        yield "to mend", details.remedy


def _lost(impact: Impact, currency: str) -> str:
    hours = "" if impact.gpu_hours is None else f", {impact.gpu_hours:,.2f} GPU-hours"
    cost = "" if impact.cost is None else f", {money(impact.cost, currency)}"
    return f"{duration(impact.wall_s)}{hours}{cost}"


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
