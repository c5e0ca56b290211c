"""What is a cause of a hang, before it is put into words?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from train_ledger.hang.dumps.entry import Op
from train_ledger.hang.reasoning.groups import GroupView
from train_ledger.hang.reasoning.laggards import Wait
from train_ledger.hang.reasoning.mismatch import Mismatch

__all__ = ["Root", "Roots"]


@dataclass(frozen=True, slots=True)
class Root:
    """One cause: its kind, whom it accuses (nobody where `culprits` is empty), and where it shows.

    `why` are further evidence lines. `seen` is False where the culprits have no dump, so that nothing is
    known of them but that others wait.
    """

    kind: str
    culprits: tuple[int, ...]
    view: GroupView
    seq: int
    op: Op
    waiting: tuple[int, ...]
    mismatch: Mismatch | None = None
    p2p: bool = False
    seen: bool = True
    why: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Roots:
    """All causes in the order of their kinds; `undecided` are waits that the dumps cannot explain.

    `waits` are all of them, for who wants to draw the graph.
    """

    roots: tuple[Root, ...]
    victims_of: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    undecided: tuple[Wait, ...] = ()
    waits: tuple[Wait, ...] = ()
