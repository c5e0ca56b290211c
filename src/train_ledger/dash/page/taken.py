"""What was taken from the ranks when an incident was opened, and what was not, and why?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

__all__ = ["Taken", "taken_of"]


@dataclass(frozen=True, slots=True)
class Taken:
    """The first answers, by the journal: those of the keeper, not what a person took by hand.

    `on_page` is what was asked for, None where nobody asked; `is_done` once that has come to an end, with
    `summary` in one sentence or the `error` that it ended with. `dumps` and `stacks` count ranks, None where
    the keeper that wrote it did not say; `missing` says in words what was not taken, and why.
    """

    on_page: tuple[str, ...] | None = None
    is_done: bool = False
    summary: str = ""
    error: str = ""
    dumps: int | None = None
    stacks: int | None = None
    missing: tuple[str, ...] = ()

    @property
    def is_under_way(self) -> bool:
        return self.on_page is not None and not self.is_done

    @property
    def no_stacks(self) -> str:
        """Why there are no stacks, in words; "" where there are, or nobody can say."""
        if self.on_page is None:
            return "[respond] on_page is not set"
        if "stacks" not in self.on_page:
            return f"[respond] on_page asks only for {', '.join(self.on_page) or 'nothing'}"
        if not self.is_done or self.stacks:
            return "" if self.is_done else "they are still being taken"
        if self.error:
            return self.error
        missing = [line for line in self.missing if line.startswith("no stacks")]
        alone = "no rank's process can be looked into from the host on which watch runs"
        return "; ".join(missing) or ("" if self.stacks is None else alone)


def taken_of(entries: Iterable[Mapping[str, Any]], incident: str) -> Taken:
    """The newest answers about an incident; entries are those of the journal, oldest first."""
    taken = Taken()
    for entry in entries:
        if entry.get("incident") != incident:
            continue
        kind = entry.get("kind")
        if kind == "response_started":
            taken = Taken(on_page=_words(entry.get("on_page")))
        elif kind == "response_failed":
            taken = replace(taken, is_done=True, error=str(entry.get("error")))
        elif kind == "response_done":
            taken = replace(
                taken,
                on_page=taken.on_page or ("dump", "stacks", "diagnose"),
                is_done=True,
                summary=str(entry.get("summary", "")),
                dumps=_count(entry.get("dumps")),
                stacks=_count(entry.get("stacks")),
                missing=_words(entry.get("missing")),
            )
    return taken


def _words(value: object) -> tuple[str, ...]:
    return tuple(map(str, value)) if isinstance(value, list | tuple) else ()


def _count(value: object) -> int | None:
    return value if type(value) is int else None
