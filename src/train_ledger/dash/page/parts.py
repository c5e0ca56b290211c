"""Of which parts is the page made?

Each part is a piece of HTML by its own name, so that only what changed is sent again. The order of the parts
is the order in which somebody who was just woken needs them: what is wrong, on what evidence, what to run
next; then how the run stands.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from train_ledger.dash.judge import Alert
from train_ledger.dash.page.accounts import accounts_part
from train_ledger.dash.page.hardware import hardware_part
from train_ledger.dash.page.markup import Child, Safe, element, join, moment
from train_ledger.dash.page.plots import plotly_marker
from train_ledger.dash.page.ranks import rank_list_part, ranks_part
from train_ledger.dash.page.timeline import timeline_part
from train_ledger.dash.page.verdict import verdict_part
from train_ledger.dash.page.view import PageView, headline, rank_rows
from train_ledger.ledger.state import RunState
from train_ledger.render import duration, harmless

__all__ = ["document", "parts"]

_JOURNAL_ROWS = 40
_ALERT_ROWS = 50
_TOLD = 300
_COVERAGE_ROWS = 8

_LEFT, _RIGHT = (
    ("verdict", "clock", "ranks", "rank_list", "hardware", "unobserved"),
    ("alerts", "accounts", "journal"),
)


def document(view: PageView, *, drawn: bool = False) -> str:
    """The whole page, complete without any script; `drawn` leaves room for the curves, which need one."""
    made = parts(view)
    main = join(
        element("div", *(element("section", made[name], id=name) for name in names), class_="column")
        for names in (_LEFT, _RIGHT)
    )
    head = join(
        (
            element("meta", charset="utf-8"),
            element("meta", name="viewport", content="width=device-width, initial-scale=1"),
            element("meta", name="color-scheme", content="light dark"),
            element("title", _title(view)),
            element("link", rel="icon", href="static/icon.svg"),
            element("link", rel="stylesheet", href="static/page.css"),
            element("script", src="static/page.js", defer=True),
            *(_plot_scripts() if drawn else ()),
        )
    )
    links = join(
        (element("a", "state as JSON", href="api/state"), " · ", element("a", "metrics", href="metrics"))
    )
    timeline = element("section", made["timeline"], id="timeline")
    below = join([timeline, *([_plots()] if drawn else [])])
    return (
        f'<!doctype html>\n<html lang="en"><head>{head}</head><body>'
        f'<header><span class="brand">train-ledger</span> {element("span", view.state.run, class_="run")}'
        f'<span id="link" role="status"></span></header>'
        f'<main data-t="{view.state.t}">{main}</main>{below}<footer>{links}</footer></body></html>\n'
    )


def _plot_scripts() -> Iterator[Safe]:
    yield element("link", rel="stylesheet", href="static/plotly.css", id="plotly.js-style-global")
    yield element("script", src="static/plots.js", defer=True)


def _plots() -> Safe:
    """What the script draws into; without one, where the figures themselves are."""
    figures = element("a", "/api/history", href="api/history")
    without = element("noscript", element("p", "Curves need scripts; the figures: ", figures))
    return element(
        "section",
        element("h2", "curves ", element("span", class_="dim", id="read")),
        without,
        element("div", id="curves"),
        element("div", id="strips"),
        element("span", id=plotly_marker(), hidden=True),
        id="plots",
    )


def _title(view: PageView) -> str:
    mark = {"trouble": "✖ ", "unsure": "? "}.get(headline(view).tone, "")
    return f"{mark}{view.state.run} – {view.state.state}"


def parts(view: PageView) -> dict[str, Safe]:
    """The HTML of every part by its name, and the page's title."""
    rows = rank_rows(view)
    return {
        "verdict": verdict_part(view),
        "clock": _clock(view.state),
        "alerts": _alerts(view),
        "ranks": ranks_part(rows),
        "rank_list": rank_list_part(rows),
        "hardware": hardware_part(view),
        "accounts": accounts_part(view),
        "timeline": timeline_part(view),
        "journal": _journal(view.journal),
        "unobserved": _unobserved(view),
        "title": join([_title(view)]),
    }


def _clock(state: RunState) -> Safe:
    age_s, limit_s = state.stalled_for_s, state.stall_threshold_s
    stalled = age_s > limit_s and not state.finished
    what = "since the last step" if state.last_step_t is not None else "without a first step"
    figures = [
        _figure("state", state.state.replace("_", " "), _since(state.since_t)),
        _figure("step", "–" if state.step is None else f"{state.step}", f"attempt {state.attempt}"),
        _figure(
            what,
            "–" if state.finished else duration(age_s),
            f"limit {duration(limit_s)}" + (f" in {state.phase}" if state.phase else ""),
            "trouble" if stalled else None,
        ),
        _figure(
            "a step takes",
            "–" if state.p50_step_time_s is None else duration(state.p50_step_time_s),
            "median",
        ),
        _figure("ranks", f"{len(state.ranks)}", f"of {state.world_size}" if state.world_size else "heard"),
        _figure("checkpoint", *_checkpoint(state)),
    ]
    share = 0.0 if state.finished or limit_s <= 0 else min(1.0, age_s / limit_s)
    return join((element("div", *figures, class_="figures"), _bar(share)))


def _bar(share: float) -> Safe:
    """How much of the limit has passed without a step."""
    tone = "trouble" if share >= 1 else "unsure" if share > 0.5 else "fine"
    filled = element("rect", class_=tone, width=f"{100 * share:.1f}", height=1)
    said = {"role": "img", "aria_label": f"{share:.0%} of the limit without a step"}
    return element("svg", filled, class_="bar", viewBox="0 0 100 1", preserveAspectRatio="none", **said)


def _figure(name: str, value: Child, note: Child, class_: str | None = None) -> Safe:
    return element(
        "div",
        element("span", name, class_="name"),
        element("b", value, class_=class_),
        element("span", note, class_="dim"),
    )


def _checkpoint(state: RunState) -> tuple[Child, Child]:
    saves = state.checkpoints
    if saves.open_since_t is not None:
        return "saving", join(("since ", moment(saves.open_since_t)))
    if not saves.saved_t:
        return "–", "none saved yet"
    return ("–" if saves.saved_step is None else f"{saves.saved_step}"), join(
        ("saved ", moment(saves.saved_t[-1]))
    )


def _since(t: float | None) -> Child:
    return None if t is None else join(("since ", moment(t, age=False)))


def _alerts(view: PageView) -> Safe:
    alerts = sorted(view.alerts, key=lambda alert: (alert.level != "page", alert.inhibited, -alert.fired_t))
    listed = [_alert(alert, view.state.run) for alert in alerts[:_ALERT_ROWS]]
    incidents = [_incident(each.id) for each in view.incidents]
    none = element("p", "No alert is open.", class_="dim")
    return join(
        (element("h2", "alerts"), *incidents, element("ul", *listed, class_="plain") if listed else none)
    )


def _incident(name: str) -> Safe:
    """With what the keeper has written of it; a moment after it was opened there is nothing yet."""
    report = element("a", "report", href=f"reports/{name}.html")
    draft = element("a", "postmortem draft", href=f"reports/{name}.md")
    return element("p", "incident ", element("code", name), " – ", report, ", ", draft, class_="dim")


def _alert(alert: Alert, run: str) -> Safe:
    inhibited = element("span", "inhibited, nobody is told", class_="dim") if alert.inhibited else None
    head = (element("span", alert.level, class_=f"chip {alert.level}"), " ", element("b", alert.name), " ")
    since = element("span", moment(alert.fired_t), class_="dim")
    return element("li", *head, since, " ", inhibited, element("p", alert.summary.removeprefix(f"{run}: ")))


def _journal(entries: tuple[Mapping[str, Any], ...]) -> Safe:
    listed = [_entry(entry) for entry in reversed(entries[-_JOURNAL_ROWS:])]
    none = element("p", "Nothing is written yet.", class_="dim")
    return join((element("h2", "journal"), element("dl", *listed, class_="journal") if listed else none))


def _entry(entry: Mapping[str, Any]) -> Safe:
    t = entry.get("t")
    kind = element("span", str(entry.get("kind", "")).replace("_", " "), class_="dim")
    at = moment(t if isinstance(t, int | float) else None, age=False)
    return join((element("dt", at), element("dd", kind, " ", harmless(_told(entry), longest=_TOLD))))


_TELLING = ("summary", "state", "alert", "outcome", "error", "notification", "host")


def _told(entry: Mapping[str, Any]) -> str:
    diagnosis = entry.get("diagnosis")
    if isinstance(diagnosis, Mapping):
        return str(diagnosis.get("cause", ""))
    said = next((str(entry[key]) for key in _TELLING if entry.get(key)), "")
    return f"{said} at step {entry['step']}" if entry.get("state") and entry.get("step") is not None else said


def _unobserved(view: PageView) -> Safe:
    """What is missing in the verdict, and what would be missing in one tonight."""
    diagnosis = view.current_diagnosis
    lines = [*view.not_observed, *(diagnosis.not_observed if diagnosis else ())]
    if view.state.world_size is None:
        lines.append("how many ranks there should be: run.json does not say")
    listed = element("ul", *(element("li", line) for line in dict.fromkeys(lines)))
    untold = tuple(_could_not_be_told(view.cannot_tell or ()))
    if untold and not lines:
        return join(untold)
    nothing = element("p", "Nothing is missing.", class_="dim")
    return join((element("h2", "not observed"), listed if lines else nothing, *untold))


def _could_not_be_told(lines: tuple[str, ...]) -> Iterator[Safe]:
    if lines:
        yield element("h2", "could not be told tonight")
        shown = [element("li", line) for line in lines[:_COVERAGE_ROWS]]
        rest = len(lines) - len(shown)
        more = [element("li", f"and {rest} more: train-ledger coverage", class_="dim")] if rest > 0 else []
        yield element("ul", *shown, *more)
