"""Is it memory: the GPU's, that is split into pieces, or the host's, that a leak has eaten?"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from train_ledger.answer import Suspect
from train_ledger.slow.suspects.view import OWN, View, over_ranks, seconds_in_words
from train_ledger.slow.table import StepTable
from train_ledger.slow.table.step_table import Floats

__all__ = ["of_fragmentation", "of_host_memory"]

_RETRIES_A_STEP = 0.02
_CALLS_A_STEP = 0.1
_OFTEN_A_STEP = 0.1
_SPLIT_GREW = 1.05
_HOST_GREW, _HOST_BYTES = 1.2, 1 << 30
_COUNTERS = ("num_alloc_retries", "num_device_alloc")


def of_fragmentation(view: View) -> Suspect:
    """Does the allocator go back and forth while its split blocks grow?

    Retries, or calls for device memory in the steady state, that were not there before; inactive split memory
    that grew says why.
    """
    if not any(view.now.tells(name) for name in _COUNTERS):
        return Suspect(
            "slow.fragmentation", "not_observed", "no rank tells num_alloc_retries or num_device_alloc"
        )
    retries, calls = (_a_step(view.now, name) for name in _COUNTERS)
    before = [_a_step(view.before, name) for name in _COUNTERS] if view.before is not None else [0.0, 0.0]
    split, grew = _split(view)
    words = f"num_alloc_retries: {retries * 100:.3g} in 100 steps ({before[0] * 100:.3g} before)"
    words += f", num_device_alloc: {calls * 100:.3g} ({before[1] * 100:.3g}){split}{_on_slow_steps(view.now)}"
    rises = retries > before[0] + _RETRIES_A_STEP or calls > before[1] + _CALLS_A_STEP
    is_known = view.now.tells("mem_inactive_split")
    often = view.before is None and retries >= _OFTEN_A_STEP
    if not ((rises and view.explains(_unexplained(view))) or often) or (
        is_known and not grew and retries <= before[0] + _RETRIES_A_STEP
    ):
        return Suspect("slow.fragmentation", "ruled_out", words)
    return Suspect("slow.fragmentation", "confirmed", words, _unexplained(view), _concerned(view.now))


def of_host_memory(view: View) -> Suspect:
    """Has the memory of the processes grown, step by step, as a leak does that ends in swapping?"""
    if not view.now.tells("rss_bytes"):
        return Suspect("slow.host_memory", "not_observed", "no rank tells rss_bytes")
    now = _at_end(view.now, "rss_bytes")
    words = f"rss_bytes: {np.nanmax(now) / 1e9:.3g} GB on the largest rank"
    before = None if view.before is None else _of_ranks(view.before, view.now)
    if before is None or not np.isfinite(now / before).any():
        return Suspect("slow.host_memory", "not_observed", f"{words}; not told before")
    grew, more = float(np.nanmax(now / before)), float(np.nanmax(now - before))
    words += f", {grew:.2f} × that of {view.compared_with} where it grew most"
    if grew >= _HOST_GREW and more >= _HOST_BYTES and view.explains(_unexplained(view)):
        leaks = np.flatnonzero((now / before >= _HOST_GREW) & (now - before >= _HOST_BYTES))
        return Suspect(
            "slow.host_memory", "confirmed", words, _unexplained(view), _if_few(view.now, leaks.tolist())
        )
    return Suspect("slow.host_memory", "ruled_out", words)


def _unexplained(view: View) -> float:
    """What the ranks' own work grew by, in which stops of the allocator and of swapping are."""
    rise_s = view.rise_of(OWN)
    return view.rise_s if rise_s is None else min(max(0.0, rise_s), view.rise_s)


def _a_step(table: StepTable, name: str) -> float:
    """By how much a counter rises in a steady step, on the rank where it rises most."""
    if not table.tells(name):
        return 0.0
    steady = table.increase(name)[:, table.steady]
    per_rank = np.nanmean(np.where(np.isfinite(steady), steady, 0.0), axis=1) if steady.size else np.zeros(1)
    return float(per_rank.max(initial=0.0))


def _split(view: View) -> tuple[str, bool]:
    if not view.now.tells("mem_inactive_split"):
        return "", False
    now = float(np.nanmedian(_at_end(view.now, "mem_inactive_split")))
    if view.before is not None and view.before.tells("mem_inactive_split"):
        before = float(np.nanmedian(_at_end(view.before, "mem_inactive_split")))
    else:
        first = over_ranks(np.nanmedian, view.now.of("mem_inactive_split"))
        before = float(first[np.isfinite(first)][0])
    words = f", mem_inactive_split: {now / 1e9:.3g} GB ({before / 1e9:.3g} before)"
    return words, now >= _SPLIT_GREW * before


def _on_slow_steps(table: StepTable) -> str:
    """Whether the very steps that had to try again are the long ones."""
    tried = np.nan_to_num(over_ranks(np.nanmax, table.increase("num_alloc_retries"))) > 0
    times = over_ranks(np.nanmedian, table.of("step_time_s"))
    with_it, without = times[tried & table.steady], times[~tried & table.steady]
    if len(with_it) < 3 or len(without) < 3:
        return ""
    pair = (seconds_in_words(float(np.nanmedian(with_it))), seconds_in_words(float(np.nanmedian(without))))
    return f"; steps with a retry take {pair[0]}, others {pair[1]}"


def _concerned(table: StepTable) -> tuple[int, ...]:
    """The ranks whose allocator has to try again, where they are the fewer."""
    if not table.tells("num_alloc_retries"):
        return ()
    more = np.nansum(table.increase("num_alloc_retries"), axis=1) > 0
    return _if_few(table, np.flatnonzero(more).tolist())


def _if_few(table: StepTable, rows: Sequence[int]) -> tuple[int, ...]:
    """The ranks of these rows, where they are fewer than half of all."""
    return tuple(table.ranks[row] for row in rows) if 0 < 2 * len(rows) < len(table.places) else ()


def _at_end(table: StepTable, name: str) -> Floats:
    """The last value that each rank told."""
    values = table.of(name)
    found = np.full(len(values), np.nan)
    for row, told in enumerate(values):
        finite = told[np.isfinite(told)]
        if len(finite):
            found[row] = finite[-1]
    return found


def _of_ranks(before: StepTable, now: StepTable) -> Floats:
    """What each rank of the newest steps told at the end of the earlier ones; NaN where it was not there."""
    told = dict(zip(before.ranks, _at_end(before, "rss_bytes").tolist(), strict=True))
    return np.array([told.get(rank, np.nan) for rank in now.ranks])
