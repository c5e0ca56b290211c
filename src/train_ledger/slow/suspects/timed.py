"""Does a part of the step that is timed by itself take the time: data, logging, garbage collection, saving?

Each by the seconds on the rank that took longest, since the others wait for that one.
"""

from __future__ import annotations

import numpy as np

from train_ledger.answer import Suspect
from train_ledger.slow.suspects.view import View, over_ranks, seconds_in_words, typical
from train_ledger.slow.table import StepTable

__all__ = ["of_checkpoint", "of_data", "of_gc", "of_logging"]

_STANDING = {"data_wait_s": 0.15, "log_s": 0.10, "gc_s": 0.05}
"""Shares of the step that are trouble without having grown."""

_LEAP_FACTOR, _LEAP_BYTES = 3.0, 2000.0
_SAVES_GREW, _OF_STEP = 1.5, 0.03


def of_data(view: View) -> Suspect:
    """Do ranks wait for batches?"""
    return _of_share(view, "slow.data", "data_wait_s")


def of_gc(view: View) -> Suspect:
    """Does Python's garbage collection stop a rank, and so all?"""
    return _of_share(view, "slow.gc", "gc_s")


def of_logging(view: View) -> Suspect:
    """Has the log become the work?

    By the time in it; where that is not told, by what was written, if steps took longer as that leapt.
    """
    timed = _of_share(view, "slow.logging", "log_s")
    written = _written(view)
    if written is None:
        return timed
    now, before, words = written
    if timed.verdict != "not_observed":
        return _with(timed, f"{timed.by}; {words}")
    leapt = before is not None and now >= _LEAP_FACTOR * before + _LEAP_BYTES
    if leapt and view.slower:
        return Suspect("slow.logging", "confirmed", words, view.rise_s)
    return Suspect("slow.logging", "ruled_out", words)


def of_checkpoint(view: View, durations_s: tuple[float, ...] = ()) -> Suspect:
    """Did saving become slower? `durations_s` are those of the run's last saves, oldest first."""
    timed = _of_saves(view)
    if timed is not None and timed.verdict == "confirmed":
        return timed
    if len(durations_s) < 3:
        return timed or Suspect(
            "slow.checkpoint", "not_observed", "no saves are timed in the steps that were read"
        )
    usual, last = float(np.median(durations_s[:-1])), durations_s[-1]
    words = f"the last save took {seconds_in_words(last)}, usually it is {seconds_in_words(usual)}"
    return _with(timed, f"{timed.by}; {words}") if timed else Suspect("slow.checkpoint", "ruled_out", words)


def _of_saves(view: View) -> Suspect | None:
    """The stops that saves make: in steps that are no saves otherwise, or longer ones than before."""
    now, before = _stops(view.now), None if view.before is None else _stops(view.before)
    if not len(now):
        return None
    latest, level = float(np.median(now)), view.of_now("ckpt_s")
    share = (level.longest if level else 0.0) / view.now_s
    words = f"a save stops the steps for {seconds_in_words(latest)}, {share:.1%} of all time"
    if before is None or view.before is None:
        return Suspect("slow.checkpoint", "ruled_out", f"{words}; no earlier ones to compare with")
    beside_s = _beside(view.now) - _beside(view.before)
    if view.explains(beside_s):
        words = f"ckpt_s: {seconds_in_words(_beside(view.now))} in the steps between saves, too"
        words += f", {seconds_in_words(_beside(view.before))} in {view.compared_with}"
        return Suspect("slow.checkpoint", "confirmed", words, beside_s)
    if not len(before):
        return Suspect("slow.checkpoint", "ruled_out", f"{words}; no earlier ones to compare with")
    usual = float(np.median(before))
    words += f"; {seconds_in_words(usual)} in {view.compared_with}"
    more_s = (latest - usual) * len(now) / max(1, len(view.now.steps))
    confirmed = latest >= _SAVES_GREW * usual and more_s >= _OF_STEP * view.now_s
    return Suspect("slow.checkpoint", "confirmed" if confirmed else "ruled_out", words, more_s)


def _beside(table: StepTable) -> float:
    """What saving takes of a step in which nothing else stands."""
    told = table.of("ckpt_s")[:, table.steady]
    found = typical(over_ranks(np.nanmax, told)) if told.size else 0.0
    return found if np.isfinite(found) else 0.0


def _stops(table: StepTable) -> np.ndarray:
    stops = over_ranks(np.nanmax, table.of("ckpt_s"))
    return stops[np.isfinite(stops) & (stops > 0)]


def _of_share(view: View, cause: str, name: str) -> Suspect:
    now, before = view.of_now(name), view.of_before(name)
    if now is None:
        return Suspect(cause, "not_observed", f"no rank tells {name}")
    share, rise_s = now.longest / view.now_s, view.rise_of(name)
    words = f"{name}: {seconds_in_words(now.longest)} of a step ({share:.0%}) where it is longest"
    if before is not None and view.before_s:
        was = f"{seconds_in_words(before.longest)} ({before.longest / view.before_s:.0%})"
        words += f", {was} in {view.compared_with}"
    stands = share >= _STANDING[name]
    rose = view.explains(rise_s) and view.is_sure(name)
    if not (rose or (stands and (rise_s is None or not view.slower))):
        return Suspect(cause, "ruled_out", words, rise_s)
    return Suspect(cause, "confirmed", words, rise_s if view.slower else now.longest)


def _written(view: View) -> tuple[float, float | None, str] | None:
    """Bytes a step on the rank that writes most: now, before, and both in words."""
    if not view.now.tells("stdout_bytes"):
        return None
    now = _bytes_a_step(view.now)
    before = (
        _bytes_a_step(view.before) if view.before is not None and view.before.tells("stdout_bytes") else None
    )
    words = f"stdout_bytes: {now:,.0f} a step on the rank that writes most"
    return now, before, words if before is None else f"{words}, {before:,.0f} in {view.compared_with}"


def _bytes_a_step(table: StepTable) -> float:
    found = typical(over_ranks(np.nanmax, table.increase("stdout_bytes")))
    return found if np.isfinite(found) else 0.0


def _with(suspect: Suspect, by: str) -> Suspect:
    return Suspect(suspect.cause, suspect.verdict, by, suspect.rise_s, suspect.ranks)
