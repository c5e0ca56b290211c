"""How do the entries of a rank read to a person?

One line an entry, the stacks below, each once and referred to by its number.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from train_ledger.answer import Unreadable
from train_ledger.render.grid import Word, ruled_lines
from train_ledger.render.harmless import harmless

__all__ = ["EntryLine", "EntryList", "entries_as_text"]

_HEADS = ("record", "group", "seq", "operation", "state", "created (UTC)", "took", "thread", "stack")
_WRAPPED = ("group", "operation", "thread")
_NATURAL = 200


@dataclass(frozen=True, slots=True)
class EntryLine:
    """One entry, each field in words; empty where the recorder has nothing to say."""

    record: str
    group: str
    seq: str
    operation: str
    state: str
    created: str
    took: str
    thread: str
    stack: str
    is_pending: bool = False


@dataclass(frozen=True, slots=True)
class EntryList:
    """The entries of one rank under a title that says whose they are."""

    title: str
    lines: tuple[EntryLine, ...]


def entries_as_text(
    lists: Sequence[EntryList],
    stacks: Sequence[tuple[str, Sequence[str]]],
    unreadable: Sequence[Unreadable] = (),
    *,
    width: int | None = None,
    colour: bool = False,
) -> str:
    """All lists, then the numbered stacks that they refer to, then what was not read; each line ended."""
    lines: list[str] = []
    for listed in lists:
        lines += [harmless(listed.title), *_table(listed, width, colour), ""]
    for number, frames in stacks:
        lines += [f"stack {number}", *(f"    {harmless(frame)}" for frame in frames), ""]
    if unreadable:
        lines += ["not read", *(harmless(f"  - {it.file}: {it.why}") for it in unreadable), ""]
    return "\n".join(lines)


def _table(listed: EntryList, width: int | None, colour: bool) -> Iterator[str]:
    """Without the columns that are empty throughout."""
    if not listed.lines:
        return
    rows = [[harmless(text) for text in _fields(line)] for line in listed.lines]
    filled = [place for place in range(len(_HEADS)) if any(row[place] for row in rows)]
    words = (
        [Word(row[place], "bold" if line.is_pending else "dim") for place in filled]
        for row, line in zip(rows, listed.lines, strict=True)
    )
    heads = [Word(_HEADS[place], "bold") for place in filled]
    unbroken = [at for at, place in enumerate(filled) if _HEADS[place] not in _WRAPPED]
    yield from ruled_lines(heads, words, width=width or _NATURAL, colour=colour, unbroken=unbroken)


def _fields(line: EntryLine) -> tuple[str, ...]:
    return (
        line.record,
        line.group,
        line.seq,
        line.operation,
        line.state,
        line.created,
        line.took,
        line.thread,
        line.stack,
    )
