"""What is drawn of a hang, beside what is said of it?

Records alone: who came with what to which number, who waits for whom, what each rank issued last, and where
the ranks stand in their code. Whoever has analysed the dumps fills them in; text and HTML draw them. Ranks
that did the same share one column, one lane, one node: a picture of 16,384 ranks is no larger than one of 8.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from train_ledger.render.curve import Curve
from train_ledger.render.harmless import harmless

__all__ = [
    "Cell",
    "Column",
    "Edge",
    "Graph",
    "Lane",
    "Lanes",
    "Mark",
    "Node",
    "Picture",
    "Stack",
    "Step",
    "Table",
]

Mark: TypeAlias = Literal["", "done", "pending", "odd", "absent", "unknown"]
"""How a cell stands out: `odd` differs from what the others brought, `absent` never came."""


@dataclass(frozen=True, slots=True)
class Cell:
    """What some ranks did at one number."""

    text: str
    mark: Mark = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "text", harmless(self.text))


@dataclass(frozen=True, slots=True)
class Column:
    """Ranks that did the same at every number shown; `note` says what they are: "culprit", "no dump"."""

    ranks: tuple[int, ...]
    note: str = ""


@dataclass(frozen=True, slots=True)
class Step:
    """One number of the group with a cell a column; `here` marks the one at which the ranks part or stand."""

    label: str
    cells: tuple[Cell, ...]
    here: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """Numbers of one process group, in ascending order, against ranks."""

    title: str
    columns: tuple[Column, ...]
    steps: tuple[Step, ...]
    notes: tuple[str, ...] = ()
    head: str = "seq"


@dataclass(frozen=True, slots=True)
class Lane:
    """What ranks issued last over all groups, in the order of issue; None where there is nothing."""

    ranks: tuple[int, ...]
    cells: tuple[Cell | None, ...]
    is_culprit: bool = False


@dataclass(frozen=True, slots=True)
class Lanes:
    """Lanes of one length; `anchor` is the place at which they are laid upon each other."""

    lanes: tuple[Lane, ...]
    anchor: int
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Node:
    """Ranks that wait for the same and are waited for by the same; `layer` counts the waits to the root."""

    ranks: tuple[int, ...]
    layer: int
    is_culprit: bool = False
    text: str = ""


@dataclass(frozen=True, slots=True)
class Edge:
    """The node at `start` waits for the node at `end`, both as places in the list of nodes."""

    start: int
    end: int
    label: str


@dataclass(frozen=True, slots=True)
class Graph:
    """Who waits for whom; `left_out` counts the ranks for which there was no room."""

    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    left_out: int = 0

    @property
    def alone(self) -> tuple[int, ...]:
        """The places of the nodes that no edge touches."""
        touched = {place for edge in self.edges for place in (edge.start, edge.end)}
        return tuple(place for place in range(len(self.nodes)) if place not in touched)


@dataclass(frozen=True, slots=True)
class Stack:
    """Where ranks stand, innermost frame first; `what` says what the frames are or tell."""

    ranks: tuple[int, ...]
    what: str
    frames: tuple[str, ...]
    is_odd: bool = False


@dataclass(frozen=True, slots=True)
class Picture:
    """`tables` holds those of each of the first findings; where there is no finding, what is undecided.

    `curves` show how steps went, where an answer is about how long they take.
    """

    tables: tuple[tuple[Table, ...], ...] = ()
    graph: Graph | None = None
    lanes: Lanes | None = None
    stacks: tuple[Stack, ...] = ()
    curves: tuple[Curve, ...] = ()
