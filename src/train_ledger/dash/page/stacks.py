"""Where do the ranks stand in their code: who stands apart, and the others merged?"""

from __future__ import annotations

from collections.abc import Iterator

from train_ledger.dash.page.again import moves
from train_ledger.dash.page.markup import Safe, element, join, lines
from train_ledger.dash.page.taken import taken_of
from train_ledger.dash.page.view import PageView
from train_ledger.render import Picture, ranks_in_brief
from train_ledger.render.picture import Stack

__all__ = ["stacks_part"]

_MOST_STACKS = 20
_MOST_FRAMES = 40
_LONGEST_FRAME = 300
_OPEN = 2


def stacks_part(view: PageView) -> Safe:
    """Each group of equal stacks, the odd ones opened; why there are none, where the run stands."""
    if not view.incidents:
        return join([])
    taken = taken_of(view.about_incidents, view.incidents[-1].id)
    picture = (view.picture if view.current_diagnosis is not None else None) or Picture()
    why = "" if picture.stacks or moves(view.state) else taken.no_stacks
    if not picture.stacks and not why:
        return join([])
    none = "No stacks yet" if taken.is_under_way else "The keeper took no stacks"
    said = element("p", f"{none}: {why}.", class_="dim") if why else None
    return join((element("h2", "where they stand"), *_shown(view, picture.stacks), said))


def _shown(view: PageView, stacks: tuple[Stack, ...]) -> Iterator[Safe]:
    accused = frozenset(view.current_diagnosis.ranks if view.current_diagnosis else ())
    for number, stack in enumerate(stacks[:_MOST_STACKS]):
        of_culprit = bool(accused.intersection(stack.ranks))
        yield _stack(stack, is_open=number < _OPEN and (of_culprit or stack.is_odd), is_culprit=of_culprit)
    rest = len(stacks) - _MOST_STACKS
    if rest > 0:
        yield element("p", f"and {rest} more, in the report", class_="dim")


def _stack(stack: Stack, *, is_open: bool, is_culprit: bool) -> Safe:
    who = ranks_in_brief(stack.ranks, longest=60)
    odd = ", apart from the others" if stack.is_odd else ""
    chip = element("span", "culprit", class_="chip culprit") if is_culprit else None
    summary = element("summary", element("b", who), " " if chip else None, chip, f"{odd}: {stack.what}")
    frames = [*stack.frames[:_MOST_FRAMES]] or ["(no Python frame)"]
    rest = len(stack.frames) - _MOST_FRAMES
    frames += [f"… and {rest} calls more"] if rest > 0 else []
    shown = element("pre", lines(frames, longest=_LONGEST_FRAME), tabindex=0)
    return element("details", summary, shown, open=is_open, data_key=f"{who}{stack.what}"[:200])
