"""How is the answer of a preflight told: to a person, to a script, as a page?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from train_ledger.answer import to_json
from train_ledger.ops.preflight.records import ItemAnswer, Preflight
from train_ledger.render import Made, duration, moment
from train_ledger.render.preflight import (
    CheckRow,
    ItemRows,
    PreflightShown,
    preflight_as_html,
    preflight_as_text,
)

__all__ = ["as_object", "as_page", "as_terminal"]


def as_object(answer: Preflight) -> Mapping[str, Any]:
    """For JSON: the records, and the verdict of each item and of the whole."""
    plain = to_json(answer)
    items = [
        {
            **{name: value for name, value in of.items() if name != "checks"},
            "verdict": item.verdict,
            "checks": of["checks"],
        }
        for item, of in zip(answer.items, plain["items"], strict=True)
    ]
    return {"verdict": answer.verdict, **plain, "items": items}


def as_terminal(answer: Preflight, *, width: int | None = None, colour: bool = False) -> str:
    """For a terminal of that width; None wraps at 160 columns."""
    return preflight_as_text(_shown(answer), width=width, colour=colour)


def as_page(answer: Preflight, made: Made | None = None) -> str:
    """One HTML file; `made` says how it came about."""
    return preflight_as_html(_shown(answer), title=answer.run or "", made=made)


def _shown(answer: Preflight) -> PreflightShown:
    about = [("run", answer.run or "none was named"), ("on", answer.where)]
    about.append(("at", f"{moment(answer.began_t)}, for {duration(answer.took_s)}"))
    if answer.not_asked:
        about.append(("not asked", ", ".join(answer.not_asked)))
    items = tuple(_item(item) for item in answer.items)
    return PreflightShown(_headline(answer), answer.verdict, tuple(about), items, _coverage(answer))


def _coverage(answer: Preflight) -> tuple[str, ...]:
    """What could be told of a fault by the signals that arrive, as `coverage` says it first."""
    if answer.coverage is None:
        return ()
    return (*answer.coverage.verdicts, f"every cause and signal: train-ledger coverage {answer.run}")


def _item(item: ItemAnswer) -> ItemRows:
    rows = tuple(CheckRow(it.name, it.verdict, it.said, it.fix) for it in item.checks)
    return ItemRows(item.number, item.title, item.verdict, item.criterion, rows)


def _headline(answer: Preflight) -> str:
    failing = [item for item in answer.items if item.verdict == "fail"]
    passing = [item for item in answer.items if item.verdict == "pass"]
    open_checks = sum(item.open for item in answer.items)
    rest = f"; {_count(open_checks, 'check')} not possible here" if open_checks else ""
    if failing:
        names = ", ".join(item.title for item in failing)
        fail = "fails" if len(failing) == 1 else "fail"
        return f"not ready: {len(failing)} of {_count(len(answer.items), 'item')} {fail} ({names}){rest}"
    if not passing:
        return f"cannot tell: nothing could be checked here, of {_count(len(answer.items), 'item')}"
    of = _count(len(answer.items), "item")
    return f"nothing found wrong: {len(passing)} of {of} {'passes' if len(passing) == 1 else 'pass'}{rest}"


def _count(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"
