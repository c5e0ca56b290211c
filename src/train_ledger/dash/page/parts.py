"""Of which parts is the page made?

Each part is a piece of HTML by its own name, so that only what changed is sent again. The order of the parts
is the order in which somebody who was just woken needs them: what is wrong, on what evidence, what to run
next; then how the run stands.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from math import ceil, isqrt
from typing import Any

from train_ledger.answer import CAUSES, Diagnosis, NextCommand
from train_ledger.dash.judge import Alert
from train_ledger.dash.page.markup import Child, Safe, element, join, whole
from train_ledger.dash.page.view import PageView, RankRow, Totals, headline, in_words, rank_rows, worst_first
from train_ledger.ledger.state import RunState
from train_ledger.render import duration, harmless

__all__ = ["document", "parts"]

_RANK_ROWS = 24
_JOURNAL_ROWS = 40
_EVIDENCE = 8
_ALERT_ROWS = 50
_TOLD = 300

_LEFT, _RIGHT = ("verdict", "clock", "ranks", "rank_list", "unobserved"), ("alerts", "journal")


def document(view: PageView) -> str:
    """The whole page, complete without any script."""
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
            element("link", rel="icon", href="/static/icon.svg"),
            element("link", rel="stylesheet", href="/static/page.css"),
            element("script", src="/static/page.js", defer=True),
        )
    )
    links = join(
        (element("a", "state as JSON", href="/api/state"), " · ", element("a", "metrics", href="/metrics"))
    )
    return (
        f'<!doctype html>\n<html lang="en"><head>{head}</head><body>'
        f'<header><span class="brand">train-ledger</span> {element("span", view.state.run, class_="run")}'
        f'<span id="link" role="status"></span></header>'
        f'<main data-t="{view.state.t}">{main}</main><footer>{links}</footer></body></html>\n'
    )


def _title(view: PageView) -> str:
    mark = {"trouble": "✖ ", "unsure": "? "}.get(headline(view).tone, "")
    return f"{mark}{view.state.run} – {view.state.state}"


def parts(view: PageView) -> dict[str, Safe]:
    """The HTML of every part by its name, and the page's title."""
    rows = rank_rows(view)
    return {
        "verdict": _verdict(view),
        "clock": _clock(view.state),
        "alerts": _alerts(view),
        "ranks": _ranks(rows),
        "rank_list": _rank_list(rows),
        "journal": _journal(view.journal),
        "unobserved": _unobserved(view),
        "title": join([_title(view)]),
    }


def _verdict(view: PageView) -> Safe:
    first = headline(view)
    diagnosis = view.current_diagnosis
    said: list[Child] = [element("h1", first.text, class_=first.tone)]
    if diagnosis is not None:
        said += _found(diagnosis)
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


def _found(diagnosis: Diagnosis) -> Iterable[Safe]:
    details = diagnosis.details
    findings = details.findings if details else ()
    evidence = [*diagnosis.evidence, *(line for finding in findings for line in finding.evidence)]
    commands = [*diagnosis.next, *(details.next if details else ())]
    facts: list[tuple[str, Child]] = [
        ("cause", _cause(diagnosis.cause)),
        ("confidence", diagnosis.confidence),
        *(("stands in", finding.frame) for finding in findings if finding.frame),
    ]
    if diagnosis.impact is not None:
        hours = f"{diagnosis.impact.gpu_hours:,.2f} GPU-hours"
        facts.append(("lost so far", f"{duration(diagnosis.impact.wall_s)}, {hours}"))
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


def _clock(state: RunState) -> Safe:
    age_s, limit_s = state.stalled_for_s, state.stall_threshold_s
    stalled = age_s > limit_s and not state.finished
    what = "since the last step" if state.last_step_t is not None else "without a first step"
    figures = [
        _figure("state", state.state, _since(state.since_t)),
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
        return "saving", join(("since ", _time(saves.open_since_t)))
    if not saves.saved_t:
        return "–", "none saved yet"
    return ("–" if saves.saved_step is None else f"{saves.saved_step}"), join(
        ("saved ", _time(saves.saved_t[-1]))
    )


def _since(t: float | None) -> Child:
    return None if t is None else join(("since ", _time(t, age=False)))


def _time(t: float | None, *, age: bool = True) -> Safe:
    """A moment; the script turns it into how long ago that was, where `age` is set."""
    if t is None:
        return join(["–"])
    try:
        moment = datetime.fromtimestamp(t, UTC)
    except (OverflowError, OSError, ValueError):
        return join([f"{t:g}"])
    return element(
        "time",
        f"{moment:%H:%M:%SZ}",
        datetime=moment.isoformat(timespec="seconds"),
        data_t=t if age else None,
        title=f"{moment:%Y-%m-%d %H:%M:%S} UTC",
    )


def _alerts(view: PageView) -> Safe:
    alerts = sorted(view.alerts, key=lambda alert: (alert.level != "page", alert.inhibited, -alert.fired_t))
    listed = [_alert(alert, view.state.run) for alert in alerts[:_ALERT_ROWS]]
    incidents = [element("p", "incident ", element("code", each.id), class_="dim") for each in view.incidents]
    none = element("p", "No alert is open.", class_="dim")
    return join(
        (element("h2", "alerts"), *incidents, element("ul", *listed, class_="plain") if listed else none)
    )


def _alert(alert: Alert, run: str) -> Safe:
    inhibited = element("span", "inhibited, nobody is told", class_="dim") if alert.inhibited else None
    head = (element("span", alert.level, class_=f"chip {alert.level}"), " ", element("b", alert.name), " ")
    since = element("span", _time(alert.fired_t), class_="dim")
    return element("li", *head, since, " ", inhibited, element("p", alert.summary.removeprefix(f"{run}: ")))


def _table(headings: Iterable[str], rows: Iterable[Safe]) -> Safe:
    head = element("thead", element("tr", *(element("th", heading, scope="col") for heading in headings)))
    return element("div", element("table", head, element("tbody", *rows)), class_="scroll", tabindex=0)


def _ranks(rows: list[RankRow]) -> Safe:
    """How many are how, and where they sit; while a run goes well this does not change with the steps."""
    if not rows:
        return join((element("h2", "ranks"), element("p", "No rank has been heard of yet.", class_="dim")))
    summary = ", ".join(f"{count} {word}" for word, count in Totals.of(rows).counts.items())
    return join((element("h2", "ranks", element("span", f" {summary}", class_="dim")), _map(rows)))


def _rank_list(rows: list[RankRow]) -> Safe:
    shown = worst_first(rows)[:_RANK_ROWS]
    if not shown:
        return join([])
    shown_ranks = {row.rank.rank for row in shown}
    rest = [row for row in rows if row.rank.rank not in shown_ranks]
    more = element("p", f"Not listed: {in_words(rest)} – {_alike(rest)}.", class_="dim") if rest else None
    headings = ("rank", "", "step", "phase", "last step", "last heard", "host", "GPU", "pid")
    return join((_table(headings, [_rank(row) for row in shown]), more))


def _alike(rows: list[RankRow]) -> str:
    counts = Totals.of(rows).counts
    steps = {row.rank.step for row in rows}
    at = f" at step {next(iter(steps))}" if len(steps) == 1 and None not in steps else ""
    return ", ".join(f"{count} {word}" for word, count in counts.items()) + at


def _rank(row: RankRow) -> Safe:
    rank = row.rank
    word = element("span", row.word, class_=f"chip {_css(row)}", title=row.detail or None)
    return element(
        "tr",
        element("td", rank.rank, class_="number"),
        element("td", word, element("span", f" {row.detail}", class_="dim") if row.detail else None),
        element("td", "–" if rank.step is None else rank.step, class_="number"),
        element("td", rank.phase or "–"),
        element("td", _time(rank.step_t)),
        element("td", _time(rank.heard_t)),
        element("td", rank.host or "–"),
        element("td", "–" if rank.gpu is None else rank.gpu, class_="number"),
        element("td", "–" if rank.pid is None else rank.pid, class_="number"),
        class_=_css(row),
    )


def _css(row: RankRow) -> str:
    return row.word.replace(" ", "-")


def _map(rows: list[RankRow]) -> Safe | None:
    """One cell a rank: where in a large run the trouble sits."""
    if len(rows) < 2:
        return None
    wide = max(8, min(64, 8 * ceil(isqrt(len(rows) * 4) / 8)))
    size = f"0 0 {10 * min(wide, len(rows))} {10 * ceil(len(rows) / wide)}"
    cells = (_cell(row, 10 * (number % wide), 10 * (number // wide)) for number, row in enumerate(rows))
    scale = "small" if wide <= 16 else "large"
    return element(
        "svg", *cells, class_=f"map {scale}", viewBox=size, role="img", aria_label="one cell a rank"
    )


def _cell(row: RankRow, x: int, y: int) -> Safe:
    said = element("title", f"rank {row.rank.rank}: {row.word}")
    return element("rect", said, class_=_css(row), x=x, y=y, width=8, height=8, rx=1.5)


def _journal(entries: tuple[Mapping[str, Any], ...]) -> Safe:
    listed = [_entry(entry) for entry in reversed(entries[-_JOURNAL_ROWS:])]
    none = element("p", "Nothing is written yet.", class_="dim")
    return join((element("h2", "journal"), element("dl", *listed, class_="journal") if listed else none))


def _entry(entry: Mapping[str, Any]) -> Safe:
    t = entry.get("t")
    kind = element("span", str(entry.get("kind", "")).replace("_", " "), class_="dim")
    moment = _time(t if isinstance(t, int | float) else None, age=False)
    return join((element("dt", moment), element("dd", kind, " ", harmless(_told(entry), longest=_TOLD))))


_TELLING = ("summary", "state", "alert", "outcome", "error", "notification", "host")


def _told(entry: Mapping[str, Any]) -> str:
    diagnosis = entry.get("diagnosis")
    if isinstance(diagnosis, Mapping):
        return str(diagnosis.get("cause", ""))
    said = next((str(entry[key]) for key in _TELLING if entry.get(key)), "")
    return f"{said} at step {entry['step']}" if entry.get("state") and entry.get("step") is not None else said


def _unobserved(view: PageView) -> Safe:
    diagnosis = view.current_diagnosis
    lines = [*view.not_observed, *(diagnosis.not_observed if diagnosis else ())]
    if view.state.world_size is None:
        lines.append("how many ranks there should be: run.json does not say")
    listed = element("ul", *(element("li", line) for line in dict.fromkeys(lines)))
    return join(
        (
            element("h2", "not observed"),
            listed if lines else element("p", "Nothing is missing.", class_="dim"),
        )
    )
