"""What a format tells of lines, handed to it as a reader of logs hands them: only those with a mark."""

from __future__ import annotations

from train_ledger.facts import Event, Fact, Fault, Step
from train_ledger.sources.lines.log_line import read_line


def told(format_, *lines: str) -> list[Fact]:
    """All facts, in order, those of the end included."""
    found: list[Fact] = []
    for number, line in enumerate(lines, 1):
        data = line.encode()
        if getattr(format_, "wants_more", False) or any(mark in data for mark in format_.marks):
            found += format_.read(read_line(data), f"train.log:{number}")
    return [*found, *format_.end()]


def steps(format_, *lines: str) -> list[Step]:
    return [it for it in told(format_, *lines) if isinstance(it, Step)]


def events(format_, *lines: str) -> list[Event]:
    return [it for it in told(format_, *lines) if isinstance(it, Event)]


def faults(format_, *lines: str) -> list[Fault]:
    return [it for it in told(format_, *lines) if isinstance(it, Fault)]
