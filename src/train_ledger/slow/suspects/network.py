"""Do collectives take longer by themselves, and not because somebody comes late?

Who drags makes all others wait, and waits least itself. So only where even the rank that waits least waits
longer than before is it the network – and, in a pipeline, only beyond what its bubble grew by: that is as
many times longer as the work of the stages is.
"""

from __future__ import annotations

import numpy as np

from train_ledger.answer import Suspect
from train_ledger.slow.peers.work import own_work
from train_ledger.slow.suspects.view import View, over_ranks, seconds_in_words, typical
from train_ledger.slow.table import StepTable

__all__ = ["of_communication", "unheard"]

_SHOWN = 4


def of_communication(view: View) -> Suspect:
    """By the least wait of each step."""
    now, before = view.of_now("comm_wait_s"), view.of_before("comm_wait_s")
    if now is None:
        return Suspect("slow.communication", "not_observed", "no rank tells comm_wait_s")
    words = f"comm_wait_s: {seconds_in_words(now.least)} of a step on the rank that waits least"
    if before is None:
        return Suspect("slow.communication", "not_observed", f"{words}; no earlier steps to compare with")
    words += f", {seconds_in_words(before.least)} in {view.compared_with}"
    rise_s = now.least - before.least * _bubble_grew(view)
    if not (view.explains(rise_s) and view.is_sure("comm_wait_s", np.nanmin)):
        return Suspect("slow.communication", "ruled_out", words, rise_s)
    if unheard(view.now):
        return Suspect("slow.communication", "not_observed", f"{words}; not all ranks tell theirs", rise_s)
    return Suspect("slow.communication", "confirmed", words, rise_s)


def _bubble_grew(view: View) -> float:
    """How many times longer a pipeline's bubble is than before; 1 where there is none, or it is no longer."""
    if view.before is None or len(set(view.now.stages)) < 2:
        return 1.0
    now_s, before_s = _slowest_s(view.now), _slowest_s(view.before)
    grew = now_s / before_s if before_s > 0 else 1.0
    return grew if grew > 1.0 else 1.0


def _slowest_s(table: StepTable) -> float:
    """The own work of the rank that works longest in a usual step; NaN where nobody tells it."""
    work = own_work(table)
    return np.nan if work is None else typical(over_ranks(np.nanmax, work.seconds[:, table.steady]))


def unheard(table: StepTable) -> str:
    """Which ranks of the run tell nothing, so that all others may wait for one of them; "" where all tell."""
    silent = (table.world_size or 0) - len(table.places)
    if silent <= 0:
        return ""
    first = sorted(set(range(table.world_size or 0)) - set(table.ranks))[:_SHOWN]
    names = ", ".join(map(str, first)) + (f" and {silent - len(first)} more" if silent > len(first) else "")
    return f"all wait for the network, or for a rank that tells nothing: {names}"
