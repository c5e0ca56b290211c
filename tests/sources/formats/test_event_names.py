"""Every event that a format tells of has its meaning in the table."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from train_ledger import sources
from train_ledger.facts import Event
from train_ledger.fields import EVENT_MEANINGS, LOG_EVENT_MEANINGS
from train_ledger.sources import read_facts

KNOWN = EVENT_MEANINGS.keys() | LOG_EVENT_MEANINGS.keys()
ROOM = Path(sources.__file__).parent
RECORDED = Path(__file__).parents[2] / "recorded" / "logs"
MAKERS = {"Event": 1, "event": 0, "_event": 0, "Happened": 0, "HappenedAt": 0}


def names_in(module: Path) -> Iterator[tuple[int, str]]:
    """The names that a module writes out where it makes events."""
    for node in ast.walk(ast.parse(module.read_text())):
        if not isinstance(node, ast.Call):
            continue
        maker = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        place = MAKERS.get(maker)
        if place is not None and len(node.args) > place:
            yield from ((node.lineno, it) for it in constants(node.args[place]))


def constants(node: ast.expr) -> Iterator[str]:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, ast.IfExp):
        yield from constants(node.body)
        yield from constants(node.orelse)


@pytest.mark.parametrize("module", sorted(ROOM.rglob("*.py")), ids=lambda it: it.stem)
def test_a_format_names_events_of_the_table_alone(module: Path) -> None:
    unknown = [(line, name) for line, name in names_in(module) if name not in KNOWN]
    assert unknown == []


def test_what_recorded_logs_tell_is_in_the_table() -> None:
    names = {fact.name for fact in read_facts([RECORDED]) if isinstance(fact, Event)}
    assert names
    assert names <= KNOWN


def test_no_name_has_two_meanings() -> None:
    assert not EVENT_MEANINGS.keys() & LOG_EVENT_MEANINGS.keys()
