"""How does the list of what was checked before a run look, in a terminal and as a page?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from train_ledger.render.figures import Figures
from train_ledger.render.frame import Made
from train_ledger.render.grid import Word, ruled_lines
from train_ledger.render.harmless import harmless
from train_ledger.render.html import as_html
from train_ledger.render.picture import Cell, Mark
from train_ledger.render.report import Pair, Report, Row, Section, Tone, pairs, points

__all__ = ["CheckRow", "ItemRows", "PreflightShown", "preflight_as_html", "preflight_as_text"]

Verdict = Literal["pass", "fail", "not_possible"]
_WORDS: dict[Verdict, str] = {"pass": "pass", "fail": "FAIL", "not_possible": "not possible"}
_STYLES: dict[Verdict, str] = {"pass": "green", "fail": "bold red", "not_possible": "yellow"}
_MARKS: dict[Verdict, Mark] = {"pass": "done", "fail": "odd", "not_possible": "unknown"}
_TONES: dict[Verdict, Tone] = {"pass": "fine", "fail": "trouble", "not_possible": "unsure"}
_HEADS = ("", "item", "check", "", "what was found")
_UNBROKEN = (0, 3)
_STYLED = {"trouble": "\x1b[1;31m", "fine": "\x1b[1;32m", "unsure": "\x1b[1;33m"}
_BULLET = "  - "
_PLAIN = "\x1b[0m"
_COVERAGE = "what could be told of a fault tonight"


@dataclass(frozen=True, slots=True)
class CheckRow:
    """One check; `fix` is what to do where it failed or could not be made, "" where nothing is."""

    name: str
    verdict: Verdict
    said: str
    fix: str = ""


@dataclass(frozen=True, slots=True)
class ItemRows:
    """One item with its checks, and when it passes."""

    number: int
    title: str
    verdict: Verdict
    criterion: str
    checks: tuple[CheckRow, ...]


@dataclass(frozen=True, slots=True)
class PreflightShown:
    """The whole list under one line that says how it ended.

    `about` says what it was tried on, `coverage` what could be told of a fault by the signals that arrive.
    """

    headline: str
    verdict: Verdict
    about: tuple[tuple[str, str], ...]
    items: tuple[ItemRows, ...]
    coverage: tuple[str, ...] = ()


def preflight_as_text(shown: PreflightShown, *, width: int | None = None, colour: bool = False) -> str:
    """The headline, one row a check, then what is to be done about each that failed; each line ended."""
    headline = harmless(shown.headline)
    lines = [f"{_STYLED[_TONES[shown.verdict]]}{headline}{_PLAIN}" if colour else headline]
    lines += [f"  {label}  {harmless(text)}" for label, text in shown.about]
    lines += ["", *_grid(shown.items, width, colour)]
    for heading, verdict in (("to mend", "fail"), ("to make possible", "not_possible")):
        fixes = _fixes(shown.items, verdict)
        lines += ["", heading, *fixes] if fixes else []
    if shown.coverage:
        lines += ["", _COVERAGE, *(f"  - {harmless(line)}" for line in shown.coverage)]
    return "\n".join(lines) + "\n"


def _grid(items: Sequence[ItemRows], width: int | None, colour: bool) -> Iterator[str]:
    heads = [Word(head, "bold") for head in _HEADS]
    rows = [
        [
            Word(str(item.number) if place == 0 else ""),
            Word(harmless(item.title) if place == 0 else ""),
            Word(harmless(check.name)),
            Word(_WORDS[check.verdict], _STYLES[check.verdict]),
            Word(harmless(check.said)),
        ]
        for item in items
        for place, check in enumerate(item.checks)
    ]
    yield from ruled_lines(heads, rows, width=width, colour=colour, unbroken=_UNBROKEN)


def _fixes(items: Sequence[ItemRows], verdict: str) -> list[str]:
    told: dict[str, list[str]] = {}
    for item in items:
        for check in item.checks:
            if check.verdict == verdict and check.fix:
                told.setdefault(harmless(check.fix), []).append(f"{item.number} {harmless(check.name)}")
    return [f"{_BULLET}{', '.join(of)}: {fix}" for fix, of in told.items()]


def preflight_as_html(shown: PreflightShown, *, title: str = "", made: Made | None = None) -> str:
    """The same as one file: all items in one table, what is to be mended, then a section an item."""
    sections = [*pairs("", shown.about), Section("", (_table(shown.items),))]
    sections += points("to mend", (line.removeprefix(_BULLET) for line in _fixes(shown.items, "fail")))
    sections += [
        Section(f"{item.number}  {item.title}: {_WORDS[item.verdict]}", tuple(_rows(item)))
        for item in shown.items
    ]
    sections += points(_COVERAGE, shown.coverage)
    report = Report(shown.headline, _TONES[shown.verdict], tuple(sections))
    return as_html(report, title=title, made=made or Made("preflight"))


def _table(items: Sequence[ItemRows]) -> Figures:
    rows = tuple(
        (str(item.number), item.title, Cell(_WORDS[item.verdict], _MARKS[item.verdict])) for item in items
    )
    return Figures(("", "item", "verdict"), rows, left=frozenset((0, 1, 2)))


def _rows(item: ItemRows) -> Iterator[Row]:
    yield Pair("passes if", item.criterion)
    for check in item.checks:
        fix = f" – {check.fix}" if check.fix and check.verdict != "pass" else ""
        yield Pair(check.name, f"{_WORDS[check.verdict]} – {check.said}{fix}")
