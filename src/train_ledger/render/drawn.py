"""Which parts of a picture does a page show that a terminal cannot?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from train_ledger.render.harmless import harmless
from train_ledger.render.picture import Picture, Stack
from train_ledger.render.ranks import ranks_in_brief
from train_ledger.render.report import Frames, Row, Section

__all__ = ["drawn_sections"]


def drawn_sections(picture: Picture) -> Iterator[Section]:
    """The curves, the graph, the lanes and the stacks, each where there is one."""
    if picture.curves:
        yield Section("step by step", picture.curves)
    if picture.graph and picture.graph.nodes:
        yield Section("who waits for whom", (picture.graph,))
    if picture.lanes:
        yield Section("what each rank issued last, in its own order", (picture.lanes,))
    if picture.stacks:
        yield Section("stacks", tuple(_stacks(picture.stacks)))


def _stacks(stacks: Iterable[Stack]) -> Iterator[Row]:
    for stack in stacks:
        odd = ", apart from the others" if stack.is_odd else ""
        title = harmless(f"{ranks_in_brief(stack.ranks)}{odd}: {stack.what}")
        yield Frames(tuple(harmless(frame) for frame in stack.frames) or ("(no Python frame)",), title)
