"""What is said first?"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

from train_ledger.answer import NextCommand
from train_ledger.dash.page.again import Again, goes_on_again
from train_ledger.dash.page.rank_rows import in_words, rank_rows
from train_ledger.dash.page.still_slow import still_slow
from train_ledger.dash.page.view import PageView
from train_ledger.dash.rules import RULES
from train_ledger.ledger.state import RunState
from train_ledger.render import duration, verdict

__all__ = ["Headline", "headline", "how_it_is_heard", "next_command"]

Tone = Literal["trouble", "unsure", "fine", "ended"]


@dataclass(frozen=True, slots=True)
class Headline:
    """The one sentence that is read first, and whether it is trouble."""

    text: str
    tone: Tone


_ORDER = {rule.name: number for number, rule in enumerate(RULES)}
"""Of alerts that came at the same moment: what stands before what only costs."""

_QUIET: Mapping[str, tuple[str, Tone]] = {
    "finished": ("the run has finished", "ended"),
    "stopped": ("the run has stopped and nobody restarts it", "trouble"),
    "restarting": ("a restart is under way", "unsure"),
    "recovering": ("recovering: work that was lost is being done again", "unsure"),
    "escalated": ("stalled again soon after a restart", "trouble"),
    "numeric_fault": ("the loss was not finite a short while ago", "trouble"),
    "hardware_fault": ("a hardware fault is known", "trouble"),
    "stalled": ("no step is being completed", "trouble"),
}


def headline(view: PageView) -> Headline:
    """What to say first: the verdict, else the page, else how the run goes.

    >>> headline(PageView(RunState("r42", t=0.0))).text
    'nothing was heard of this run yet'
    """
    state, again = view.state, goes_on_again(view)
    if again is None and (diagnosis := view.current_diagnosis) is not None:
        return Headline(verdict(diagnosis), "unsure" if diagnosis.cause in ("none", "unknown") else "trouble")
    pages = [alert for alert in view.alerts if alert.level == "page" and not alert.inhibited]
    if again is not None or state.state == "restarting":  # of one that is gone the summary is an old one
        pages = [alert for alert in pages if alert.gone_t is None]
    if pages:
        first = min(pages, key=lambda alert: (alert.fired_t, _ORDER.get(alert.name, len(_ORDER))))
        return Headline(first.summary.removeprefix(f"{state.run}: "), "trouble")
    if state.unreadable is not None:
        return Headline(f"cannot be read: {state.unreadable}", "unsure")
    at = "no step yet" if state.step is None else f"step {state.step}"
    if state.state in _QUIET:
        text, tone = _QUIET[state.state]
        return Headline(f"{text} – {at}", tone)
    if troubled := _troubled(view):
        return Headline(f"{troubled} – no alert so far, {at}", "unsure")
    if state.step is None:
        return _without_a_step(state)
    if again is not None:
        return Headline(_going_on(again, at), "unsure")
    if (slow := still_slow(view)) is not None:
        return Headline(f"still slow: {slow} – {at}", "unsure")
    pace = "" if state.p50_step_time_s is None else f", one every {duration(state.p50_step_time_s)}"
    return Headline(f"nothing wrong: {at}{pace}", "fine")


def _going_on(again: Again, at: str) -> str:
    """Whether it lasts is not known; the alert waits for that."""
    since = "" if again.since_t is None else f" since {datetime.fromtimestamp(again.since_t, UTC):%H:%M:%SZ}"
    return f"steps go on again{since}: {at}; not resolved yet: {', '.join(again.alerts)}"


def _without_a_step(state: RunState) -> Headline:
    """A run that is not there, or lies elsewhere, is not one that starts well."""
    if not state.ranks:
        return Headline("nothing was heard of this run yet", "unsure")
    return Headline("starting: no step yet", "fine")


def how_it_is_heard(view: PageView) -> str | None:
    """What has to be done that anything is heard of a run of which nothing was; None once something is."""
    state, path = view.state, view.run_path
    if state.ranks or state.unreadable is not None or state.state != "starting":
        return None
    return (
        f"Its ranks write into {path} once their training code has called train_ledger.start({path!r}); of "
        f"code that cannot be changed the logs are read, from {path}/logs. Is it the right folder, and has "
        "the job begun?"
    )


def next_command(view: PageView) -> NextCommand | None:
    """What to run first: by the verdict, and of a page of which there is none (yet) what finds one."""
    if goes_on_again(view) is not None:  # it would look at ranks that go on
        return None
    if view.current_diagnosis is not None:
        return next(iter(view.current_diagnosis.next), None)
    if still_slow(view) is not None:
        return NextCommand("who drags, or what changed", f"train-ledger slow {shlex.quote(view.run_path)}")
    if not any(it.level == "page" and not it.inhibited and it.gone_t is None for it in view.alerts):
        return None
    return NextCommand("why, and which rank", f"train-ledger diagnose {shlex.quote(view.run_path)}")


def _troubled(view: PageView) -> str:
    """What is known of ranks before it is a page: "rank 5: raised; ranks 1,3: gone"."""
    rows = rank_rows(view)
    told = ((word, [row for row in rows if row.word == word]) for word in ("gone", "raised", "not finite"))
    return "; ".join(f"{in_words(some)}: {word}" for word, some in told if some)
