"""Where did the time and the GPU-hours of a run go, as known at one moment?"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean

from train_ledger.config import Alerts
from train_ledger.ledger.accounts.history import History
from train_ledger.ledger.accounts.known import Known
from train_ledger.ledger.accounts.laps import RunLap, to_us
from train_ledger.ledger.accounts.pieces import Piece, Row
from train_ledger.ledger.accounts.rates import rate_of
from train_ledger.ledger.accounts.records import CATEGORIES, Accounts, Span
from train_ledger.ledger.accounts.recovering import interruption_of, recovery_of
from train_ledger.ledger.accounts.saving import checkpointing
from train_ledger.ledger.accounts.signs import Sign
from train_ledger.ledger.accounts.stepping import write_lap
from train_ledger.ledger.accounts.stops import stops_of
from train_ledger.ledger.accounts.tails import write_tail

__all__ = ["Price", "accounts_of"]

_WINDOWS_S = {"1h": 3600, "24h": 86_400}
_HIGHEST_MFU = 100.0
_MADE_US = 2
_ENOUGH = 3


@dataclass(frozen=True, slots=True)
class Price:
    """What a GPU-hour costs; `has_gpus` is False where the ranks have none."""

    per_gpu_hour: float | None = None
    currency: str = "USD"
    has_gpus: bool = True


def accounts_of(
    history: History,
    alerts: Alerts,
    until_t: float,
    *,
    since_t: float | None = None,
    signs: Iterable[Sign] = (),
    price: Price | None = None,
) -> Accounts:
    """The accounts of a run up to `until_t`, or up to its end where that came earlier.

    `since_t` leaves out what was before; `signs` are those that the keeper and the dumps tell besides the
    facts. Of a run of which nothing was heard they are empty.
    """
    known = Known(history, alerts, until_t, signs)
    if not known.attempts:
        empty, until_t = dict.fromkeys(CATEGORIES, 0.0), known.until_us / 1e6
        return Accounts(history.run, until_t, until_t, empty, not_observed=("no rank has written a line",))
    row = _row(known)
    until_us = _until_us(known)
    since_us = row.pieces[0].since_us if row.pieces else until_us
    if since_t is not None:
        since_us = min(max(since_us, to_us(since_t)), until_us)
    return _accounts(known, list(row.within(since_us, until_us)), since_us, until_us, price or Price())


def _until_us(known: Known) -> int:
    """The end of the run where it came to one, else of the time."""
    if known.over_us is None:
        return known.until_us
    last_us = known.laps[-1].times_us[-1] if known.laps else known.over_us
    return min(known.until_us, max(known.over_us, last_us))


def _row(known: Known) -> Row:
    """The whole time of the run, category by category."""
    began_us, started = known.attempts[0].began_us, known.history.started
    row = Row(began_us if started is None else min(began_us, to_us(started)))
    for place, attempt in enumerate(known.attempts):
        row.attempt, row.world_size = attempt.number, known.world_size(attempt.number)
        if place == 0:
            is_near = began_us - row.at_us <= known.limits.start_up_us
            row.write("start_up" if is_near else "unknown", began_us, "before the first line that was read")
        for index in attempt.laps:
            write_lap(row, known.laps[index], known.keep[index], known.pauses[index], known.limits)
        teller = known.laps[attempt.laps[-1]].rank if attempt.laps else None
        pauses = known.pauses_of(attempt.number, teller)
        write_tail(row, known.end_of(place), known.tail(place), pauses, known.limits)
    return row


def _accounts(known: Known, pieces: Sequence[Piece], since_us: int, until_us: int, price: Price) -> Accounts:
    total = dict.fromkeys(CATEGORIES, 0)
    for it in pieces:
        total[it.category] += it.until_us - it.since_us
    seconds = {category: us / 1e6 for category, us in total.items()}
    hours = _gpu_hours(pieces) if price.has_gpus else None
    stops = [it for it in stops_of(known) if it.stopped_us >= since_us]
    useful_s = seconds["productive"] + seconds["checkpoint"] + seconds["evaluation"]
    return Accounts(
        run=known.history.run,
        since_t=since_us / 1e6,
        until_t=until_us / 1e6,
        seconds=seconds,
        gpu_hours=hours,
        cost=_cost(hours, price),
        price_per_gpu_hour=price.per_gpu_hour,
        currency=price.currency,
        world_size=known.world_size(known.attempts[-1].number),
        effective=_effective(pieces, since_us, until_us),
        mfu=_mfu(known, since_us),
        steps=sum(max(0, keep - lap.base) for lap, keep in zip(known.laps, known.keep, strict=True)),
        step_time_s=_step_time_s(known.laps),
        consumed_per_s={} if (rate := rate_of(known.history)) is None else {rate.field: rate.per_s},
        interruptions=tuple(interruption_of(it) for it in stops),
        recoveries=tuple(back for it in stops if (back := recovery_of(it)) is not None),
        mtbi_s=useful_s / len(stops) if stops else None,
        checkpointing=checkpointing(known.saves, seconds["checkpoint"]),
        spans=tuple(map(_span, pieces)),
        not_observed=tuple(_not_observed(known)),
    )


def _effective(pieces: Sequence[Piece], since_us: int, until_us: int) -> Mapping[str, float | None]:
    """The productive share of each window; time after the run's end, till it was taken up, is in none."""
    found: dict[str, float | None] = {}
    for name, window_s in (*_WINDOWS_S.items(), ("run", None)):
        start = since_us if window_s is None else max(since_us, until_us - window_s * 1_000_000)
        whole = productive = 0
        for it in pieces:
            us = it.until_us - max(start, it.since_us)
            if us > 0 and it.world_size != 0:
                whole += us
                productive += us if it.category == "productive" else 0
        found[name] = productive / whole if whole else None
    return found


def _mfu(known: Known, since_us: int) -> float | None:
    """The mean over the steps that count; what is more than a GPU can do is none."""
    told: list[float] = []
    for lap, keep in zip(known.laps, known.keep, strict=True):
        figures = zip(lap.steps, lap.times_us, lap.mfu, strict=True)
        told += [
            mfu for step, t_us, mfu in figures if 0 < mfu <= _HIGHEST_MFU and step <= keep and t_us > since_us
        ]
    return fmean(told) if told else None


def _step_time_s(laps: Sequence[RunLap]) -> float | None:
    usual = (lap.usual.at(len(lap.steps)) for lap in reversed(laps))
    return next((seconds for seconds in usual if seconds is not None), None)


def _gpu_hours(pieces: Sequence[Piece]) -> Mapping[str, float] | None:
    """By category; None where it is not known how many GPUs were held."""
    total = dict.fromkeys(CATEGORIES, 0)
    for it in pieces:
        if it.world_size is None:
            return None
        total[it.category] += it.world_size * (it.until_us - it.since_us)
    return {category: us / 3.6e9 for category, us in total.items()}


def _cost(hours: Mapping[str, float] | None, price: Price) -> float | None:
    if hours is None or price.per_gpu_hour is None:
        return None
    return math.fsum(hours.values()) * price.per_gpu_hour


def _span(it: Piece) -> Span:
    attempt = None if it.category == "down" else it.attempt
    since_t, until_t = it.since_us / 1e6, it.until_us / 1e6
    return Span(it.category, since_t, until_t, attempt, it.world_size, it.first_step, it.last_step, it.why)


def _not_observed(known: Known) -> Iterable[str]:
    if not known.saves:
        yield "saves: none was told of, so that steps count that were not done once more"
    if any(known.world_size(it.number) is None for it in known.attempts):
        yield "world size: nothing tells how many GPUs the run held"
    if not known.laps:
        yield "steps: none was completed"
    if any(map(_is_pieced, known.laps)):
        yield (
            "times: lines of the log carry none and are laid end to end by how long their steps took, so "
            "that what lay between them does not show"
        )


def _is_pieced(lap: RunLap) -> bool:
    """Whether its times lie apart just by what its own timer says: then they were made of it."""
    if not lap.is_log or len(lap.steps) <= _ENOUGH:
        return False
    apart = [b - a for a, b in pairwise(lap.times_us)]
    strides = [b - a for a, b in pairwise(lap.steps)]
    own = [to_us(s * n) if s > 0 else 0 for s, n in zip(lap.own_s[1:], strides, strict=True)]
    alike = sum(abs(a - b) <= _MADE_US for a, b in zip(apart, own, strict=True))
    return alike >= 0.9 * len(apart)
