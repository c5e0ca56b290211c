"""Why may ranks that work longer than others be as they should be, and the others not?"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from train_ledger.slow.peers.measured import Measured, median_of

__all__ = ["doubt"]

_FEW_WITHOUT_LAYOUT = 0.1
_NEAR = 0.5
_MAY_BE_A_STAGE = "they may be a pipeline stage: run.json does not tell the parallelism"
_SHOWN = 4


def doubt(found: Measured, rows: Sequence[int]) -> str | None:
    """Why these ranks may be as they should be, and the others not; None where they are to blame."""
    for group in {int(found.groups[row]) for row in rows}:
        members = [row for row in range(len(found.groups)) if found.groups[row] == group]
        slow = [row for row in rows if row in members]
        if 2 * len(slow) >= len(members) and not _are_hosts_of_one_stage(found, rows):
            return (
                f"{len(slow)} of {len(members)} ranks work longer than the rest, and nobody knows since when"
            )
    if found.table.layout_told:
        return None
    if len(rows) > 1 and len(rows) / len(found.groups) > _FEW_WITHOUT_LAYOUT:
        return f"{len(rows)} of {len(found.groups)} ranks work longer; {_MAY_BE_A_STAGE}"
    off = median_of(found.ratios, found.recent)
    near = [row for row in range(len(off)) if row not in rows and off[row] > _NEAR * min(off[rows])]
    if near:
        names = ", ".join(str(found.table.ranks[row]) for row in near[:_SHOWN])
        return f"others ({names}) work nearly as long as those that work longest; {_MAY_BE_A_STAGE}"
    return None


def _are_hosts_of_one_stage(found: Measured, rows: Sequence[int]) -> bool:
    """Whether these ranks are whole hosts of one stage, while other stages take the same data as usual.

    Then neither the layout nor the data makes them different from the rest of their stage, only their hosts.
    """
    places = [found.table.places[row] for row in rows]
    hosts, replicas = {it.host for it in places}, {it.replica for it in places}
    if not found.table.layout_told or None in hosts or None in replicas:
        return False
    if len({it.stage for it in places}) > 1:
        return False
    if any(it.host in hosts for row, it in enumerate(found.table.places) if row not in rows):
        return False
    off = median_of(found.ratios, found.recent)
    same_data = [
        off[row]
        for row, it in enumerate(found.table.places)
        if it.replica in replicas and it.stage != places[0].stage and np.isfinite(off[row])
    ]
    return bool(same_data) and max(same_data) < _NEAR * min(off[list(rows)])
