"""What is checked before a long run starts, and when does each pass?

The seed article's chapter 6, section 1.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from train_ledger.ops.preflight.records import Check, ItemAnswer, PreflightError

__all__ = ["ITEMS", "Item", "answer_of", "chosen"]


@dataclass(frozen=True, slots=True)
class Item:
    """One row of the list: its number, the word that names it in options, and when it passes."""

    number: int
    key: str
    title: str
    criterion: str


ITEMS: tuple[Item, ...] = (
    Item(
        1,
        "gpu",
        "GPU self-test",
        "memory comes back as written, GEMM over 95 % of the peak and even within the node, no XID",
    ),
    Item(
        2, "bandwidth", "bandwidth between nodes", "it is within 15 % of the nominal one, and no node is odd"
    ),
    Item(
        3,
        "clocks",
        "clocks under load",
        "they are close to the maximal ones, with no reason of power or heat to go lower",
    ),
    Item(
        4,
        "memory",
        "memory account",
        "what is measured is within 10 % of what is computed, and reserved leaves 10 % room",
    ),
    Item(
        5,
        "mfu",
        "MFU base",
        "p95 of 100 steady steps is under 1.15 × p50, their MFU is known, a trace is kept",
    ),
    Item(
        6,
        "restore",
        "checkpoint: save, kill, restore",
        "the loss joins exactly, the data go on in their order, the duration of a save is known",
    ),
    Item(7, "layout", "load in another layout", "it loads, and the loss is the same"),
    Item(
        8,
        "faults",
        "fault injection",
        "a killed rank is restarted, a slow one named, a tampered gradient found",
    ),
    Item(
        9,
        "recorder",
        "Flight Recorder",
        "its variables hold on every rank, all dumps of a drill are there, the right rank is named",
    ),
    Item(
        10,
        "page",
        "metrics and page",
        "steps stop, and the page is there within 2 minutes; every rank is scraped",
    ),
    Item(
        11, "logs", "logs and rank map", "there is one file a rank, and every rank's host and GPU are known"
    ),
    Item(
        12,
        "configuration",
        "configuration kept",
        "arguments, environment, packages, commit and image are written down",
    ),
    Item(13, "roster", "runbook and duty roster", "contacts are known, and the page has somebody to go to"),
)


def chosen(only: Sequence[str], skip: Sequence[str]) -> tuple[Item, ...]:
    """The items that are wanted, by number or word; raises PreflightError for a name that is none.

    >>> [item.key for item in chosen(["5", "page"], [])], len(chosen([], ["gpu"]))
    (['mfu', 'page'], 12)
    """
    wanted = _named(only) or {item.key for item in ITEMS}
    left_out = _named(skip)
    found = tuple(item for item in ITEMS if item.key in wanted - left_out)
    if not found:
        raise PreflightError("--only and --skip leave no item to check")
    return found


def _named(words: Iterable[str]) -> set[str]:
    names = {name: item.key for item in ITEMS for name in (item.key, str(item.number))}
    asked = [part.strip() for word in words for part in word.split(",") if part.strip()]
    if unknown := [word for word in asked if word not in names]:
        known = ", ".join(item.key for item in ITEMS)
        raise PreflightError(f"{unknown[0]}: is no item of the list; there are 1 to {len(ITEMS)}, or {known}")
    return {names[word] for word in asked}


def answer_of(key: str, checks: Iterable[Check]) -> ItemAnswer:
    """The item of that word with its checks."""
    item = next(it for it in ITEMS if it.key == key)
    return ItemAnswer(item.number, item.key, item.title, item.criterion, tuple(checks))
