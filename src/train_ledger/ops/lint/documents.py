"""Which rules, panels, inhibitions and runbook are looked at: those of this version, or those of a folder?"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped]

from train_ledger.config import Alerts
from train_ledger.dash import INHIBITIONS, RULES
from train_ledger.dash.promql import expression
from train_ledger.dash.rules import RECORDINGS
from train_ledger.ops.runbook import RUNBOOK
from train_ledger.run_dir import parsed_json, read_small

__all__ = ["DocumentError", "Documents", "Inhibiting", "Query", "generated", "of_folder"]

_LARGEST_BYTES = 64 << 20


class DocumentError(Exception):
    """A file of the configuration cannot be read; the text says which and why."""


@dataclass(frozen=True, slots=True)
class Query:
    """An expression and where it stands; `labels` are those that an alert promises."""

    name: str
    promql: str
    where: str
    labels: tuple[str, ...] = ()
    runbook_url: str = ""


@dataclass(frozen=True, slots=True)
class Inhibiting:
    """While an alert named in `sources` is active, those in `targets` are silent, where `equal` labels agree.

    `guarded` are labels that both sides are said to have.
    """

    sources: tuple[str, ...]
    targets: tuple[str, ...]
    equal: tuple[str, ...]
    guarded: frozenset[str]
    where: str


@dataclass(frozen=True, slots=True)
class Documents:
    """What is looked at; recordings in the order in which they are computed."""

    alerts: tuple[Query, ...] = ()
    recordings: tuple[Query, ...] = ()
    panels: tuple[Query, ...] = ()
    inhibitions: tuple[Inhibiting, ...] = ()
    runbook: str = ""
    sources: tuple[str, ...] = field(default=())


def generated(alerts: Alerts, runbook_url: str) -> Documents:
    """What this version would write for these thresholds."""
    return Documents(
        alerts=tuple(
            Query(rule.name, expression(rule.promql, alerts), f"rule {rule.name}", rule.labels,
                  f"{runbook_url}#{rule.runbook}")
            for rule in RULES
        ),
        recordings=tuple(
            Query(it.name, expression(it.promql, alerts), f"recording {it.name}") for it in RECORDINGS
        ),
        inhibitions=tuple(
            Inhibiting(tuple(sorted(it.sources)), tuple(sorted(it.targets)), it.equal, frozenset(it.equal),
                       f"inhibition of {', '.join(sorted(it.targets))}")
            for it in INHIBITIONS
        ),
        runbook=RUNBOOK.read_text(encoding="utf-8"),
        sources=("the rules of this version",),
    )  # fmt: skip


def of_folder(folder: Path) -> Documents:
    """What lies in a folder that `train-ledger deploy` wrote, also where somebody changed it.

    Rules are read from every .yml with `groups`, inhibitions from the one with `inhibit_rules`, panels from
    every .json with `panels`, below the folder at any depth. Raises DocumentError.
    """
    if not folder.is_dir():
        raise DocumentError(f"{folder}: is no folder; say which one `train-ledger deploy --out` wrote")
    queries: list[Query] = []
    recordings: list[Query] = []
    inhibitions: list[Inhibiting] = []
    panels: list[Query] = []
    sources: list[str] = []
    for path in sorted(folder.rglob("*")):
        if path.suffix in (".yml", ".yaml") and path.is_file():
            for content in _yaml(path):
                found = [*_rules(content, path)]
                queries += [query for kind, query in found if kind == "alert"]
                recordings += [query for kind, query in found if kind == "record"]
                inhibiting = [*_inhibitions(content, path)]
                inhibitions += inhibiting
                sources += [str(path)] if found or inhibiting else []
        elif path.suffix == ".json" and path.is_file():
            dashboard = [*_panels(_json(path), path)]
            panels += dashboard
            sources += [str(path)] if dashboard else []
    if not queries:
        raise DocumentError(f"{folder}: no file in it has alerting rules (a .yml with `groups`)")
    own = folder / "runbook.md"
    runbook = _text(own) if own.is_file() else RUNBOOK.read_text(encoding="utf-8")
    alerts = tuple({query.name + query.promql: query for query in queries}.values())
    return Documents(
        alerts,
        _unique(recordings),
        _unique(panels),
        tuple(inhibitions),
        runbook,
        tuple(dict.fromkeys(sources)),
    )


def _unique(queries: list[Query]) -> tuple[Query, ...]:
    """The same rules may lie there twice, as a file and as a Kubernetes resource."""
    return tuple({(query.name, query.promql): query for query in queries}.values())


def _text(path: Path) -> str:
    try:
        return read_small(path, limit_bytes=_LARGEST_BYTES).decode()
    except OSError as error:
        raise DocumentError(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise DocumentError(f"{path}: is no text") from None


def _yaml(path: Path) -> list[Any]:
    try:
        return list(yaml.safe_load_all(_text(path)))
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise DocumentError(f"{path}: is no YAML: {' '.join(str(error).split())[:200]}") from None


def _json(path: Path) -> Any:
    try:
        return parsed_json(_text(path))
    except ValueError as error:
        raise DocumentError(f"{path}: is no JSON: {error}") from None


def _dicts(value: object) -> Iterator[dict[str, Any]]:
    if isinstance(value, list):
        yield from (item for item in value if isinstance(item, dict))


def _rules(content: object, path: Path) -> Iterator[tuple[str, Query]]:
    """The rules of a rules file, or of a PrometheusRule."""
    if not isinstance(content, dict):
        return
    spec = content.get("spec")
    inner = spec if isinstance(spec, dict) else content
    for group in _dicts(inner.get("groups")):
        for rule in _dicts(group.get("rules")):
            for kind in ("alert", "record"):
                if isinstance(rule.get(kind), str):
                    yield kind, _query(rule, rule[kind], path)


def _query(rule: Mapping[str, Any], name: str, path: Path) -> Query:
    notes = rule.get("annotations")
    url = notes.get("runbook_url", "") if isinstance(notes, dict) else ""
    known = next((it.labels for it in RULES if it.name == name), ())
    return Query(name, _word(rule.get("expr")), f"{path}: {name}", known, _word(url))


def _word(value: object) -> str:
    """Text or a number as it is written, else nothing: written out, some lines of aliases fill the memory."""
    return str(value) if isinstance(value, str | int | float) else ""


def _labels(value: object, where: str) -> tuple[str, ...]:
    if value is not None and not isinstance(value, list):
        raise DocumentError(f"{where}: `equal` must be a list of labels, like [run]")
    return tuple(_word(label) for label in value or ())


def _inhibitions(content: object, path: Path) -> Iterator[Inhibiting]:
    if not isinstance(content, dict):
        return
    for number, rule in enumerate(_dicts(content.get("inhibit_rules")), start=1):
        source, target = (_matchers(rule.get(key)) for key in ("source_matchers", "target_matchers"))
        guarded = frozenset(label for label, how in source.items() if how == '!=""') & frozenset(
            label for label, how in target.items() if how == '!=""'
        )
        where = f"{path}: inhibition {number}"
        equal = _labels(rule.get("equal"), where)
        yield Inhibiting(_named(source), _named(target), equal, guarded, where)


def _matchers(value: object) -> dict[str, str]:
    """Each label with how it is matched, as `!=""`."""
    found: dict[str, str] = {}
    for matcher in value if isinstance(value, list) else []:
        text = _word(matcher)
        label = text.partition("=")[0].rstrip("!~ ").strip()
        found[label] = text[len(label) :].replace(" ", "").replace("'", '"')
    return found


def _named(matchers: Mapping[str, str]) -> tuple[str, ...]:
    how = matchers.get("alertname", "").lstrip("=~").strip('"')
    return tuple(name for name in how.strip("^$()").split("|") if name)


def _panels(content: object, path: Path) -> Iterator[Query]:
    """The queries of a Grafana dashboard, in rows or not; its variables and intervals filled in."""
    if not isinstance(content, dict):
        return
    for panel in _dicts(content.get("panels")):
        yield from _panels(panel, path)
        for target in _dicts(panel.get("targets")):
            if isinstance(target.get("expr"), str) and target["expr"]:
                title = json.dumps(panel.get("title", "?"), ensure_ascii=False)
                yield Query(title, _filled(target["expr"]), f"{path}: panel {title}")


def _filled(promql: str) -> str:
    for name in ("$__rate_interval", "$__interval", "$__range"):
        promql = promql.replace(name, "5m")
    return promql
