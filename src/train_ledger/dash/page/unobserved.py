"""What is missing in what is shown, and what could not be told of the run tonight?"""

from __future__ import annotations

from collections.abc import Iterator

from train_ledger.dash.page.markup import Safe, element, join
from train_ledger.dash.page.view import PageView

__all__ = ["unobserved_part"]

_COVERAGE_ROWS = 8


def unobserved_part(view: PageView) -> Safe:
    """What is missing in the verdict, and what would be missing in one tonight."""
    diagnosis = view.current_diagnosis
    gone = f"the run itself cannot be read: {view.state.unreadable}"
    lines = [gone] if view.state.unreadable is not None else []
    lines += [*view.not_observed, *(diagnosis.not_observed if diagnosis else ())]
    if view.state.world_size is None:
        lines.append("how many ranks there should be: run.json does not say")
    listed = element("ul", *(element("li", line) for line in dict.fromkeys(lines)))
    untold = tuple(_could_not_be_told(_of_steps(view)))
    if untold and not lines:
        return join(untold)
    nothing = element("p", "Nothing is missing.", class_="dim")
    return join((element("h2", "not observed"), listed if lines else nothing, *untold))


def _of_steps(view: PageView) -> tuple[str, ...]:
    """What could not be told; before the first step most of it comes with the steps, and is not missing."""
    told = view.cannot_tell or ()
    if told and view.state.ranks and view.state.step is None and view.state.attempt == 0:
        return ("said once there are steps: until then most signals have not begun",)
    return told


def _could_not_be_told(lines: tuple[str, ...]) -> Iterator[Safe]:
    if lines:
        yield element("h2", "could not be told tonight")
        shown = [element("li", line) for line in lines[:_COVERAGE_ROWS]]
        rest = len(lines) - len(shown)
        more = [element("li", f"and {rest} more: train-ledger coverage", class_="dim")] if rest > 0 else []
        yield element("ul", *shown, *more)
