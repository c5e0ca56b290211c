"""How does the run stand: its state, its steps, how long since the last?"""

from __future__ import annotations

from train_ledger.dash.page.markup import Child, Safe, element, join, moment
from train_ledger.ledger.state import RunState
from train_ledger.render import duration

__all__ = ["clock_part"]


def clock_part(state: RunState, since_t: float | None) -> Safe:
    """The figures, and a bar of the limit; it is in its state since `since_t`."""
    age_s, limit_s = state.stalled_for_s, state.stall_threshold_s
    stalled = age_s > limit_s and not state.finished
    what = "since the last step" if state.last_step_t is not None else "without a first step"
    figures = [
        _figure("state", state.state.replace("_", " "), _since(since_t)),
        _figure("step", "–" if state.step is None else f"{state.step}", f"attempt {state.attempt}"),
        _figure(
            what,
            "–" if state.finished else duration(age_s),
            f"limit {duration(limit_s)}" + (f" in {state.phase}" if state.phase else ""),
            "trouble" if stalled else None,
        ),
        _figure(
            "a step takes",
            "–" if state.p50_step_time_s is None else duration(state.p50_step_time_s),
            "median",
        ),
        _figure("ranks", f"{len(state.ranks)}", f"of {state.world_size}" if state.world_size else "heard"),
        _figure("checkpoint", *_checkpoint(state)),
    ]
    share = 0.0 if state.finished or limit_s <= 0 else min(1.0, age_s / limit_s)
    return join((element("div", *figures, class_="figures"), _bar(share)))


def _bar(share: float) -> Safe:
    """How much of the limit has passed without a step."""
    tone = "trouble" if share >= 1 else "unsure" if share > 0.5 else "fine"
    filled = element("rect", class_=tone, width=f"{100 * share:.1f}", height=1)
    said = {"role": "img", "aria_label": f"{share:.0%} of the limit without a step"}
    return element("svg", filled, class_="bar", viewBox="0 0 100 1", preserveAspectRatio="none", **said)


def _figure(name: str, value: Child, note: Child, class_: str | None = None) -> Safe:
    return element(
        "div",
        element("span", name, class_="name"),
        element("b", value, class_=class_),
        element("span", note, class_="dim"),
    )


def _checkpoint(state: RunState) -> tuple[Child, Child]:
    saves = state.checkpoints
    if saves.open_since_t is not None:
        return "saving", join(("since ", moment(saves.open_since_t)))
    if not saves.saved_t:
        return "–", "none saved yet"
    return ("–" if saves.saved_step is None else f"{saves.saved_step}"), join(
        ("saved ", moment(saves.saved_t[-1]))
    )


def _since(t: float | None) -> Child:
    return None if t is None else join(("since ", moment(t, age=False)))
