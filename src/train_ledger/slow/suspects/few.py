"""Why do these few ranks drag?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from train_ledger.answer import Suspect
from train_ledger.slow.peers import Excess, Who
from train_ledger.slow.suspects.view import View, over_ranks, seconds_in_words
from train_ledger.slow.table.step_table import Flags

__all__ = ["beside_peers", "of_reported_clocks", "of_software"]

_CONTENDED = 1.5
_LOW_CLOCK = 0.9
_COUNTS = 0.05
_SHOWN = 4


def beside_peers(who: Who) -> Iterator[str]:
    """What each culprit does beside its peers, in one sentence."""
    named = _named(who)
    for it in sorted(named, key=lambda it: -it.impact)[:_SHOWN]:
        waits = ""
        if it.waits_less_s is not None and it.waits_less_s > 0:
            waits = f"; it waits {seconds_in_words(it.waits_less_s)} less for the others than they do"
        more = f"{seconds_in_words(it.excess_s)} more a step ({it.impact:.0%} of it)"
        yield (
            f"rank {it.rank} works {it.ratio:.2f} × as long as its peers: {more}, "
            f"in {it.share:.0%} of {who.steps} steps{waits}"
        )
    if len(named) > _SHOWN:
        yield f"the same of {len(named) - _SHOWN} more ranks"


def of_software(view: View, who: Who) -> Suspect:
    """What is left where neither clocks nor links are to blame: the host code of these ranks."""
    more_s = max((it.excess_s for it in _named(who)), default=0.0)
    words = "; ".join([*_parts(who), *_cores(view, who.ranks)])
    return Suspect("slow.straggler.software", "confirmed", words, more_s, who.ranks)


def of_reported_clocks(view: View, ranks: Sequence[int]) -> Suspect | None:
    """Are their clocks low by what the log tells of them? None where it does not."""
    clocks = view.now.of("gpu_clock_mhz")
    chosen = np.isin(np.array(view.now.ranks), list(ranks))
    own, others = clocks[chosen], clocks[~chosen]
    if not np.isfinite(own).any() or not np.isfinite(others).any():
        return None
    mhz, fastest = float(np.nanmedian(own)), float(np.nanmax(others))
    words = f"gpu_clock_mhz in the log: {mhz:.0f} MHz where others run at {fastest:.0f}"
    cause = "slow.straggler.clock"
    if mhz < _LOW_CLOCK * fastest:
        return Suspect(cause, "confirmed", words, ranks=tuple(ranks))
    return Suspect(cause, "ruled_out", words)


def _named(who: Who) -> list[Excess]:
    named = frozenset(who.ranks)
    return [it for it in who.excesses if it.rank in named]


def _parts(who: Who) -> Iterator[str]:
    """In which phases they take longer than their peers, but for what hardly counts."""
    named = _named(who)
    phases = {phase for it in named for phase in it.parts}
    more = {phase: float(np.median([it.parts.get(phase, 0.0) for it in named])) for phase in phases}
    least = _COUNTS * max(more.values(), default=0.0)
    shown = sorted((pair for pair in more.items() if pair[1] > least), key=lambda pair: -pair[1])
    told = ", ".join(f"{phase} +{seconds_in_words(value)}" for phase, value in shown)
    who_is = f"rank {named[0].rank}" if len(named) == 1 else f"these {len(named)} ranks (median)"
    yield f"{who_is} beside the peers, in a step: {told or 'no phase is known'}"


def _cores(view: View, ranks: Sequence[int]) -> Iterator[str]:
    """Whether its cores are busy with something else beside its own work, as loader workers are."""
    if not view.now.tells("cpu_percent"):
        return
    chosen = np.isin(np.array(view.now.ranks), list(ranks))
    own, others = _median(view, chosen), _median(view, ~chosen)
    if own is None or others is None:
        return
    contended = ": its cores may be contended, as by loader workers" if own > _CONTENDED * others > 0 else ""
    yield f"cpu_percent {own:.0f} (others {others:.0f}){contended}"


def _median(view: View, rows: Flags) -> float | None:
    told = view.now.of("cpu_percent")[rows].reshape(-1, 1)
    found = float(over_ranks(np.nanmedian, told)[0]) if told.size else np.nan
    return found if np.isfinite(found) else None
