"""How does a person read what a backtest found?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from typing import Any

from train_ledger.dash.backtest.many import NotJudged
from train_ledger.dash.backtest.outcome import Outcome, totals
from train_ledger.dash.backtest.trial import Backtest
from train_ledger.render import Report, harmless, moment
from train_ledger.render.figures import Figures
from train_ledger.render.report import Section, Tone, points

__all__ = ["answer", "report"]

_HEAD = ("run", "hours", "incidents", "found", "median s", "max s", "pages", "false")


def answer(tests: Sequence[Backtest], not_judged: Sequence[NotJudged] = ()) -> dict[str, Any]:
    """All of it for a script: of one run its own record, of several a list of them with their totals.

    `not_judged` are those of several that could not be.
    """
    if len(tests) == 1 and not not_judged:
        return tests[0].to_json()
    befores = [it.before for it in tests if it.before is not None]
    return {
        "runs": [it.to_json() for it in tests],
        "not_judged": [asdict(it) for it in not_judged],
        "totals": _totals(tests),
        **({"before": {"totals": _totals(befores)}} if befores else {}),
    }


def report(
    tests: Sequence[Backtest], settings: Sequence[str] = (), not_judged: Sequence[NotJudged] = ()
) -> Report:
    """A table with a line a run, what was missed, and which pages were for nothing.

    `settings` are the thresholds that were tried, as given; `not_judged` are runs that could not be judged.
    """
    befores = [it.before for it in tests if it.before is not None]
    judged = any(it.since_t is not None for it in tests)
    right = all(it.is_right for it in tests)
    tone: Tone = "unsure" if not judged else "trouble" if not right else "unsure" if not_judged else "fine"
    sections = [Section("", (_table(tests, ", ".join(settings)),))]
    if befores:
        sections.append(Section("", (_table(befores, "as it is configured now"),)))
        sections += points("what changes", _changes(tests))
    sections += points("missed", _missed(tests))
    sections += points("for nothing", _false(tests))
    sections += points("not judged", (it.line for it in not_judged))
    sections += points("not observed", _not_observed(tests))
    verdict = _verdict(_totals(tests)) if judged else "nothing could be judged"
    if judged and not_judged:
        verdict += f"; {len(not_judged)} run{'s' if len(not_judged) > 1 else ''} not judged"
    return Report(verdict, tone, tuple(sections))


def _totals(tests: Sequence[Backtest]) -> dict[str, Any]:
    return dict(totals([it.outcome for it in tests], sum(it.hours for it in tests)))


def _verdict(of_all: dict[str, Any]) -> str:
    if not of_all["incidents"] and not of_all["pages"]:
        return f"no incident and no page in {of_all['hours']:.1f} hours"
    found = f"{of_all['found']} of {of_all['incidents']} incidents found"
    late = f", after {of_all['detection_median_s']:.0f} s in the median" if of_all["found"] else ""
    return f"{found}{late}; {of_all['false_pages']} of {of_all['pages']} pages for nothing"


def _table(tests: Sequence[Backtest], title: str) -> Figures:
    rows = [_cells(it.run, totals([it.outcome], it.hours)) for it in tests]
    if len(tests) > 1:
        rows.append(_cells("together", _totals(tests)))
    return Figures(_HEAD, tuple(rows), title)


def _cells(name: str, figures: Any) -> tuple[str, ...]:
    return (
        harmless(name, longest=40),
        f"{figures['hours']:.1f}",
        str(figures["incidents"]),
        str(figures["found"]),
        _seconds(figures["detection_median_s"]),
        _seconds(figures["detection_max_s"]),
        str(figures["pages"]),
        str(figures["false_pages"]),
    )


def _seconds(value: float | None) -> str:
    return "-" if value is None else f"{value:.0f}"


def _missed(tests: Iterable[Backtest]) -> Iterator[str]:
    for test in tests:
        for it in test.outcome.missed:
            yield f"{test.run}: {it.incident.kind} at {moment(it.incident.t)}"


def _false(tests: Iterable[Backtest]) -> Iterator[str]:
    for test in tests:
        for page in test.outcome.false_pages:
            yield f"{test.run}: {page.name} at {moment(page.fired_t)}: {page.summary}"


def _not_observed(tests: Sequence[Backtest]) -> Iterator[str]:
    """What files do not tell, once where all of them do not."""
    runs: dict[str, list[str]] = {}
    for test in tests:
        for said in test.not_observed:
            runs.setdefault(said, []).append(test.run)
    for said, those in runs.items():
        of_all = len(those) == len(tests) > 1
        yield said if of_all else f"{', '.join(those)}: {said}"


def _changes(tests: Iterable[Backtest]) -> Iterator[str]:
    for test in tests:
        if test.before is not None:
            yield from _changed(test.run, test.before.outcome, test.outcome)


def _changed(run: str, before: Outcome, after: Outcome) -> Iterator[str]:
    was = {it.incident.key: it for it in before.found}
    now = {it.incident.key: it for it in after.found}
    for key in sorted(was | now):
        those = [it[key].detection_s if key in it else None for it in (now, was)]
        if those[0] != those[1]:
            at = f"{run}: {key[1]} at {moment(key[0])}"
            yield f"{at} found {_late(those[0])}, was {_late(those[1])}"
    pages = len(after.false_pages) - len(before.false_pages)
    if pages:
        yield f"{run}: {abs(pages)} {'more' if pages > 0 else 'fewer'} pages for nothing"


def _late(detection_s: float | None) -> str:
    return "never" if detection_s is None else f"after {detection_s:.0f} s"
