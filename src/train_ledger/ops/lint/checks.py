"""What will never fire, never show, or silence what it must not?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from train_ledger.ops.lint.alive import Lack, Life, Series, life_of
from train_ledger.ops.lint.documents import Documents, Inhibiting, Query
from train_ledger.ops.lint.exported import Exported
from train_ledger.ops.lint.promql import PromqlError, parsed
from train_ledger.ops.lint.reasons import comes_of_itself, how_to_get, how_to_mend
from train_ledger.ops.lint.runbook import anchors, metrics_named

__all__ = ["Finding", "LintAnswer", "lint"]

Severity = Literal["never", "partly", "wrong"]


@dataclass(frozen=True, slots=True)
class Finding:
    """`severity`: it can "never" say anything, only "partly" (other sources of it are there), or is "wrong".

    `why` says what is lacking, `fix` what to do; `lacks` are the same, metric by metric.
    """

    severity: Severity
    where: str
    what: str
    why: str
    fix: str
    lacks: tuple[Lack, ...] = ()


@dataclass(frozen=True, slots=True)
class LintAnswer:
    """What was found, and how much was looked at."""

    findings: tuple[Finding, ...]
    alerts: int
    panels: int
    inhibitions: int
    metrics: int
    looked_at: tuple[str, ...] = ()


def lint(documents: Documents, exported: Exported) -> LintAnswer:
    """Everything that the documents say, held against what is exported."""
    series: dict[str, frozenset[str] | None] = {**comes_of_itself(exported.metrics), **exported.metrics}
    findings: list[Finding] = []
    dead: dict[str, Life] = {}
    for query in documents.recordings:
        life = _life(query, series, findings)
        if life is not None and life.is_alive:
            series[query.name] = life.labels
        elif life is not None:
            dead[query.name] = life
    for query in documents.alerts:
        life = _life(query, series, findings)
        findings += [] if life is None else _of_alert(query, life, dead)
        findings += _of_link(query, documents.runbook)
    for query in documents.panels:
        life = _life(query, series, findings)
        findings += [] if life is None else _of_panel(query, life, dead)
    findings += [finding for it in documents.inhibitions for finding in _of_inhibition(it, documents)]
    findings += _of_runbook(documents, series)
    return LintAnswer(
        tuple(dict.fromkeys(findings)),
        len(documents.alerts),
        len(documents.panels),
        len(documents.inhibitions),
        len(exported.metrics),
        (*documents.sources, *exported.sources),
    )


def _life(query: Query, series: Series, findings: list[Finding]) -> Life | None:
    try:
        return life_of(parsed(query.promql), series)
    except (PromqlError, RecursionError) as error:
        why = f"the expression {error if isinstance(error, PromqlError) else 'is too long a chain'}"
        findings.append(Finding("wrong", query.where, query.name, why, "run `promtool check rules` on it"))
        return None


def _of_alert(query: Query, life: Life, dead: dict[str, Life]) -> Iterator[Finding]:
    lacks = _at_the_bottom(life.lacks, dead)
    why, fix = _told(lacks)
    if not life.is_alive:
        yield Finding("never", query.where, f"{query.name} can never fire", why, fix, lacks)
    elif why:
        what = f"{query.name} fires by a part of its condition only"
        yield Finding("partly", query.where, what, why, fix, lacks)
    lacking = [] if life.labels is None else [it for it in query.labels if it not in life.labels]
    if life.is_alive and lacking:
        named = ", ".join(lacking)
        why = f"it comes without {named}, which its summary, grouping and inhibitions go by"
        yield Finding(
            "wrong", query.where, f"{query.name} names no {named}", why, "keep the label in `by (…)`"
        )


def _of_panel(query: Query, life: Life, dead: dict[str, Life]) -> Iterator[Finding]:
    lacks = _at_the_bottom(life.lacks, dead)
    if not life.is_alive:
        yield Finding("never", query.where, f"{query.name} shows nothing", *_told(lacks), lacks)


def _told(lacks: Iterable[Lack]) -> tuple[str, str]:
    """Why, and what to do; what is mended by the same is named together."""
    found = list(lacks)
    why = "; ".join(
        f"{it.metric} has no label {it.label}" if it.label else f"{it.metric} is not exported" for it in found
    )
    remedies: dict[str, list[str]] = {}
    for it in found:
        remedies.setdefault(how_to_mend(it), []).append(it.metric)
    fix = "; ".join(f"{', '.join(dict.fromkeys(names))}: {how}" for how, names in remedies.items())
    return why, fix


def _at_the_bottom(lacks: Iterable[Lack], dead: dict[str, Life]) -> tuple[Lack, ...]:
    """What is missing below the recordings that are dead for want of it; what reads itself adds nothing."""
    found: dict[Lack, None] = {}
    seen: set[str] = set()
    waiting = list(lacks)[::-1]
    while waiting:
        lack = waiting.pop()
        if lack.metric not in dead:
            found[lack] = None
        elif lack.metric not in seen:
            seen.add(lack.metric)
            waiting += dead[lack.metric].lacks[::-1]
    return tuple(found)


def _of_link(query: Query, runbook: str) -> Iterator[Finding]:
    anchor = query.runbook_url.rpartition("#")[2] if "#" in query.runbook_url else ""
    if anchor not in anchors(runbook):
        why = (
            f"its runbook_url leads to #{anchor}, and the runbook has no such heading"
            if anchor
            else ("it has no runbook_url with an anchor")
        )
        fix = f"give the runbook a section `## {query.name}`"
        yield Finding("wrong", query.where, f"{query.name} has no section in the runbook", why, fix)


def _of_inhibition(inhibiting: Inhibiting, documents: Documents) -> Iterator[Finding]:
    known = {query.name: query.labels for query in documents.alerts}
    for name in (*inhibiting.sources, *inhibiting.targets):
        if name not in known:
            why = f"no rule is called {name}"
            yield Finding(
                "wrong", inhibiting.where, "an inhibition by a name that is none", why, "mend the name"
            )
        elif lacking := [label for label in inhibiting.equal if label not in known[name]]:
            why = f"{name} has no label {', '.join(lacking)}"
            fix = "compare labels that both sides have"
            yield Finding("wrong", inhibiting.where, f"it never holds for {name}", why, fix)
    if unguarded := [label for label in inhibiting.equal if label not in inhibiting.guarded]:
        named = ", ".join(unguarded)
        why = f"alerts that both lack {named} are equal in it, so one of any run silences all"
        fix = "add " + " and ".join(f'{label}!=""' for label in unguarded) + " to both sides' matchers"
        yield Finding("wrong", inhibiting.where, f"no guard for {named}", why, fix)


def _of_runbook(documents: Documents, series: Series) -> Iterator[Finding]:
    for metric in sorted(metrics_named(documents.runbook) - series.keys()):
        why = f"{metric} is not exported"
        yield Finding(
            "partly", "runbook", f"the runbook asks for {metric}", why, f"{metric}: {how_to_get(metric)}"
        )
