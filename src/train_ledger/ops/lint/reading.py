"""How does a person read what lint found?

What is wrong comes first, then each alert with what it lacks, then the panels by name alone, and at the end
what would bring the metrics that are missing, once: a node without GPUs lacks the same fields everywhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from train_ledger.ops.lint.checks import Finding, LintAnswer
from train_ledger.ops.lint.reasons import how_to_mend
from train_ledger.render import harmless

__all__ = ["lines"]

_SHOWN = 4
_PANEL = "shows nothing"


def lines(answer: LintAnswer) -> list[str]:
    """The answer as text, the tally last."""
    wrong = [it for it in answer.findings if it.severity == "wrong"]
    lacking = [it for it in answer.findings if it.severity != "wrong"]
    panels = [it for it in lacking if it.what.endswith(_PANEL)]
    told = [line for finding in wrong for line in _of_wrong(finding)]
    for severity in ("never", "partly"):
        told += _of_alerts(it for it in lacking if it.severity == severity and it not in panels)
    told += [*_of_panels(panels), *_remedies(lacking), _tally(answer)]
    return [harmless(line, longest=2000) for line in told]


def _of_wrong(finding: Finding) -> Iterator[str]:
    yield f"{finding.severity:7} {finding.what}"
    yield f"        {finding.where}: {finding.why}"
    yield f"        → {finding.fix}"


def _of_alerts(findings: Iterable[Finding]) -> Iterator[str]:
    for finding in findings:
        yield f"{finding.severity:7} {finding.what}"
        yield f"        lacks {_some(_names(finding))}"


def _names(finding: Finding) -> list[str]:
    labels = [f"label {it.label} of {it.metric}" for it in finding.lacks if it.label]
    return list(dict.fromkeys([*(it.metric for it in finding.lacks if not it.label), *labels]))


def _some(names: list[str]) -> str:
    more = len(names) - _SHOWN
    return ", ".join(names[:_SHOWN]) + (f" and {more} more (--json)" if more > 0 else "")


def _of_panels(panels: list[Finding]) -> Iterator[str]:
    names = list(dict.fromkeys(it.what.removesuffix(_PANEL).strip() for it in panels))
    if names:
        yield f"never   panels of which a line or all shows nothing: {', '.join(names)}"


def _remedies(findings: Iterable[Finding]) -> Iterator[str]:
    """Each remedy once, with all that it brings."""
    found: dict[str, dict[str, None]] = {}
    for finding in findings:
        for lack in finding.lacks:
            found.setdefault(how_to_mend(lack), {})[lack.metric] = None
    if found:
        yield "what is lacking"
    for how, names in found.items():
        yield f"        {_some(list(names))}"
        yield f"        → {how}"


def _tally(answer: LintAnswer) -> str:
    looked = f"{answer.alerts} alerts, {answer.panels} panel queries and {answer.inhibitions} inhibitions"
    never = [it for it in answer.findings if it.severity == "never"]
    panels = sum(it.what.endswith(_PANEL) for it in never)
    wrong = sum(it.severity == "wrong" for it in answer.findings)
    partly = sum(it.severity == "partly" for it in answer.findings)
    said = [
        f"{_of(len(never) - panels, 'alert')} can never fire",
        f"{_of(panels, 'panel query', 'panel queries')} can show nothing",
        f"{partly} only partly",
        f"{wrong} {'is' if wrong == 1 else 'are'} wrong",
    ]
    verdict = ", ".join(said) if answer.findings else "nothing is missing"
    return f"{looked} held against {answer.metrics} metrics: {verdict}"


def _of(count: int, one: str, many: str = "") -> str:
    return f"{count} {one if count == 1 else many or one + 's'}"
