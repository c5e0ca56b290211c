"""From which failed saves did the run go on, so that what came later has not come of them?"""

from __future__ import annotations

import math
from collections.abc import Sequence

from train_ledger.facts import Event
from train_ledger.ledger import RunState

__all__ = ["without_saves_in_passing"]

_WENT_ON = 3
"""Of a save beside the steps the next steps may not know yet; by the third its failure is no news."""


def without_saves_in_passing(events: Sequence[Event], state: RunState) -> list[Event]:
    """The events of signals but for those failed saves after which the run went on.

    It did where the same attempt saved a later step, or that rank completed some more; then it did after what
    other ranks say of the same save, too. How far a rank of an earlier attempt went on is not known, only
    what was saved there.
    """
    saved = [it for it in events if it.name == "ckpt_saved"]
    failed = [it for it in events if it.name == "ckpt_failed"]
    passed = [it for it in failed if _went_on(it, state) or any(_is_later_save(other, it) for other in saved)]
    lines, saves = {it.source for it in passed}, {(it.attempt, it.step) for it in passed}
    lines |= {it.source for it in failed if it.step is not None and (it.attempt, it.step) in saves}
    return [it for it in events if it.source not in lines]


def _is_later_save(saved: Event, failed: Event) -> bool:
    if saved.attempt != failed.attempt or saved.step is None or failed.step is None:
        return False
    return saved.step > failed.step and saved.t > failed.t


def _went_on(failed: Event, state: RunState) -> bool:
    """By the run's clock and its usual pace: a step says less than that, as a save lasts some.

    Another host's clock may be minutes off; there the steps have to tell, beyond those that a save lasts.
    """
    rank = state.ranks.get(failed.rank) if failed.rank is not None else None
    usual_s = state.p50_step_time_s
    if rank is None or rank.step_t is None or not usual_s or failed.attempt != state.attempt:
        return False
    if rank.host == state.ranks[min(state.ranks)].host:
        return rank.step_t - failed.t > _WENT_ON * usual_s
    lasts_s = max(state.checkpoints.durations_s, default=math.inf)
    if rank.step is None or failed.step is None:
        return False
    return rank.step - failed.step > _WENT_ON + lasts_s / usual_s
