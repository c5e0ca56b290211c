"""What became of a step that is slow: its parts before and now, and each suspect?"""

from __future__ import annotations

from collections.abc import Mapping

from train_ledger.answer import SlowAnswer, Suspect
from train_ledger.dash.page.markup import Safe, element, join, table

__all__ = ["slow_step"]

_WORDS = {"confirmed": "confirmed", "ruled_out": "ruled out", "not_observed": "not observed"}
_TONES = {"confirmed": "page", "not_observed": "link"}


def slow_step(answer: SlowAnswer) -> Safe:
    """The tables; those parts that nobody told are left out."""
    shown: list[Safe] = []
    if answer.now_s is not None:
        since = f" {answer.compared_with} → now" if answer.compared_with else ""
        shown.append(element("h2", "a step", element("span", since, class_="dim")))
        rows = [_row("the whole step", answer.before_s, answer.now_s)]
        rows += [_part(name, figures) for name, figures in answer.parts.items()]
        headings = ("", "before", "now", "more", "longest now")
        shown.append(table(headings, rows, "a step, before and now"))
    if answer.suspects:
        shown.append(element("h2", "suspects"))
        suspects = [_suspect(it) for it in sorted(answer.suspects, key=lambda it: it.verdict != "confirmed")]
        shown.append(table(("suspect", "by", "", "adds to a step"), suspects, "suspects"))
    return join(shown)


def _part(name: str, figures: Mapping[str, Mapping[str, float | None]]) -> Safe:
    """In the median of the ranks, and on the rank where it is longest, which is what tells of a few."""
    median, longest = figures.get("median", {}), figures.get("longest", {})
    return _row(name, median.get("before_s"), median.get("now_s"), longest.get("now_s"))


def _row(name: str, before_s: float | None, now_s: float | None, longest_s: float | None = None) -> Safe:
    more = None if before_s is None or now_s is None else now_s - before_s
    return element(
        "tr",
        element("td", name),
        element("td", _seconds(before_s)),
        element("td", _seconds(now_s)),
        element("td", "–" if more is None else f"{more:+.3g} s"),
        element("td", _seconds(longest_s)),
    )


def _suspect(suspect: Suspect) -> Safe:
    chip = element("span", _WORDS[suspect.verdict], class_=f"chip {_TONES.get(suspect.verdict, '')}".strip())
    rise = "–" if suspect.rise_s is None else f"{suspect.rise_s:+.3g} s"
    shown = (element("code", suspect.cause), suspect.by, chip, rise)
    return element("tr", *(element("td", cell) for cell in shown))


def _seconds(seconds: float | None) -> str:
    return "–" if seconds is None else f"{seconds:.3g} s"
