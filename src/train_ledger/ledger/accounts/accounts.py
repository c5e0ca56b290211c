"""Where did the time and the GPU-hours of a run go, as known at one moment?"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean

from train_ledger.config import Alerts
from train_ledger.ledger.accounts.history import Happened, History
from train_ledger.ledger.accounts.laps import RunLap, learn_usual, run_laps, to_us
from train_ledger.ledger.accounts.leads import Leads
from train_ledger.ledger.accounts.pauses import Pause, Pauses, pauses_of
from train_ledger.ledger.accounts.pieces import Piece, Row
from train_ledger.ledger.accounts.records import CATEGORIES, Accounts, Span
from train_ledger.ledger.accounts.recovering import Stop, interruption_of, recovery_of
from train_ledger.ledger.accounts.saving import checkpointing, durable_step, saves_of
from train_ledger.ledger.accounts.signs import Sign, signs_of
from train_ledger.ledger.accounts.stepping import OF_PHASE, Limits, paused_places, write_lap
from train_ledger.ledger.accounts.tails import Tail, write_tail

__all__ = ["Price", "accounts_of"]

_WINDOWS_S = {"1h": 3600, "24h": 86_400}
_FAR = 1 << 62
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
    return _Run(history, alerts, until_t, signs).accounts(since_t, price or Price())


@dataclass(frozen=True, slots=True)
class _Attempt:
    number: int
    began_us: int
    heard_us: int
    laps: Sequence[RunLap]


class _Run:
    def __init__(self, history: History, alerts: Alerts, until_t: float, signs: Iterable[Sign]) -> None:
        history.settle()
        self.history, self.limits = history, Limits(alerts)
        self.leads = Leads(history.ranks)
        self.until_us = to_us(until_t)
        self.laps = run_laps(history, self.leads, until_t)
        self.told = self._told()
        self.pauses = pauses_of(self.told)
        self.signs = sorted([*signs_of(self.told), *(it for it in signs if it.t_us <= self.until_us)])
        self.saves = saves_of(self.told)
        self.of_lap = [self._pauses(lap.attempt, lap.rank) for lap in self.laps]
        learn_usual(self.laps, [paused_places(*it) for it in zip(self.laps, self.of_lap, strict=True)])
        self._find_bases()
        self.attempts = self._attempts()
        self.is_over = self._is_over()
        self.keep = self._kept()

    def _told(self) -> list[tuple[int, Happened]]:
        of_lap = {lap.lap: lap for lap in self.laps}
        timed: list[tuple[int, Happened]] = []
        for it in self.history.happened:
            t_us = to_us(it.t - self.leads.of(it.rank, it.attempt))
            t_us = _in_order(t_us, it, of_lap.get((it.attempt, it.lap)))
            if t_us <= self.until_us:
                timed.append((t_us, it))
        return sorted(timed, key=lambda pair: pair[0])

    def _pauses(self, attempt: int, rank: int | None) -> Mapping[str, Pauses]:
        here: dict[str, list[Pause]] = {}
        for it in self.pauses:
            if it.attempt == attempt:
                here.setdefault(it.phase, []).append(it)
        return {phase: Pauses(here[phase], rank) for phase in OF_PHASE if phase in here}

    def _find_bases(self) -> None:
        """Behind which step each lap began."""
        loaded: dict[int, int] = {}
        for _, it in self.told:
            if it.name == "ckpt_loaded" and it.step is not None:
                loaded.setdefault(it.attempt, it.step)
        stride = 1
        for lap in self.laps:
            stride = lap.stride or stride
            first = lap.steps[0]
            lap.base = max(0, first - stride)
            step = loaded.get(lap.attempt) if lap.lap[1] == 0 else None
            if step is not None and lap.base <= step < first:
                lap.base = step

    def _attempts(self) -> list[_Attempt]:
        began: dict[int, dict[int | None, int]] = {}
        heard: dict[int, int] = {}
        for rank, tape in self.history.ranks.items():
            for number, (first, last) in tape.heard.items():
                lead_s = self.leads.of(rank, number, 0)
                began.setdefault(number, {})[rank] = to_us(first - lead_s)
                heard[number] = max(
                    heard.get(number, 0), min(self.until_us, to_us(last - self.leads.of(rank, number)))
                )
        found: list[_Attempt] = []
        for number in sorted(began):
            laps = [it for it in self.laps if it.attempt == number]
            us = began[number].get(self.leads.first, min(began[number].values()))
            if laps and laps[0].is_log:
                us = max(min(us, _begun_us(laps[0])), found[-1].heard_us if found else 0)
            if us <= self.until_us:
                found.append(_Attempt(number, us, heard[number], laps))
        return found

    def _end_of(self, place: int) -> int:
        """When the attempt after this one began."""
        return self.attempts[place + 1].began_us if place + 1 < len(self.attempts) else self.until_us

    def _signs(self, since_us: int, until_us: int, *, to_the_end: bool) -> list[Sign]:
        return [
            it
            for it in self.signs
            if since_us < it.t_us and (it.t_us < until_us or (to_the_end and it.t_us == until_us))
        ]

    def _tail(self, place: int) -> Tail:
        attempt = self.attempts[place]
        is_last = place + 1 == len(self.attempts)
        last = attempt.laps[-1] if attempt.laps else None
        usual_us, since_us = 0, attempt.began_us - 1
        if last is not None:
            usual_us = to_us((last.usual.at(len(last.steps)) or 0.0) * (last.stride or 1))
            since_us = last.times_us[-1] - max(usual_us, 1_000_000)
        signs = self._signs(since_us, self._end_of(place), to_the_end=is_last)
        return Tail(attempt.heard_us, usual_us, signs, is_last, in_start_up=last is None)

    def _is_over(self) -> int | None:
        """When the run came to its end, or None."""
        return self._tail(len(self.attempts) - 1).ended_us if self.attempts else None

    def _kept(self) -> list[int]:
        """Of each lap the last step that was not done once more, or is not lost."""
        keep: list[int] = []
        lowest = _FAR
        if self.laps and self.attempts and self.is_over is None:
            tail = self._tail(len(self.attempts) - 1)
            last = self.laps[-1]
            if last.attempt < self.attempts[-1].number or tail.gone is not None:
                covered = durable_step(self.saves, last.last_step)
                if covered is not None:
                    lowest = max(covered, last.base)
        for lap in reversed(self.laps):
            keep.append(min(lap.last_step, lowest))
            lowest = min(lowest, lap.base)
        return keep[::-1]

    # -- what comes out

    def accounts(self, since_t: float | None, price: Price) -> Accounts:
        if not self.attempts:
            empty = dict.fromkeys(CATEGORIES, 0.0)
            until = self.until_us / 1e6
            return Accounts(
                self.history.run, until, until, empty, not_observed=("no rank has written a line",)
            )
        if self.is_over is not None:
            self.until_us = min(
                self.until_us, max(self.is_over, self.laps[-1].times_us[-1] if self.laps else 0)
            )
        row = self._row()
        since_us = row.pieces[0].since_us if row.pieces else self.until_us
        if since_t is not None:
            since_us = min(max(since_us, to_us(since_t)), self.until_us)
        pieces = list(row.within(since_us, self.until_us))
        return self._shown(pieces, since_us, price)

    def _row(self) -> Row:
        row = Row(self._began_us())
        for place, attempt in enumerate(self.attempts):
            row.attempt, row.world_size = attempt.number, self._world_size(attempt.number)
            if place == 0 and attempt.began_us > row.at_us:
                self._before(row, attempt.began_us)
            for lap in attempt.laps:
                index = self.laps.index(lap)
                write_lap(row, lap, self.keep[index], self.of_lap[index], self.limits)
            last = attempt.laps[-1].rank if attempt.laps else None
            write_tail(
                row, self._end_of(place), self._tail(place), self._pauses(attempt.number, last), self.limits
            )
        return row

    def _began_us(self) -> int:
        began = self.attempts[0].began_us
        started = self.history.started
        return began if started is None else min(began, to_us(started))

    def _before(self, row: Row, until_us: int) -> None:
        is_near = until_us - row.at_us <= self.limits.start_up_us
        row.write("start_up" if is_near else "unknown", until_us, "before the first line that was read")

    def _world_size(self, attempt: int) -> int | None:
        told = self.history.world_sizes.get(attempt) or self.history.world_size
        if told is not None or self.history.by_logs:
            return told
        return (
            sum(1 for rank, it in self.history.ranks.items() if rank is not None and attempt in it.heard)
            or None
        )

    def _shown(self, pieces: Sequence[Piece], since_us: int, price: Price) -> Accounts:
        total = dict.fromkeys(CATEGORIES, 0)
        for it in pieces:
            total[it.category] += it.until_us - it.since_us
        seconds = {category: us / 1e6 for category, us in total.items()}
        hours = _gpu_hours(pieces) if price.has_gpus else None
        stops = [it for it in self._stops() if it.stopped_us >= since_us]
        interruptions = [interruption_of(it) for it in stops]
        recoveries = [back for stop in stops if (back := recovery_of(stop)) is not None]
        useful_s = seconds["productive"] + seconds["checkpoint"] + seconds["evaluation"]
        cost = None
        if hours is not None and price.per_gpu_hour is not None:
            cost = math.fsum(hours.values()) * price.per_gpu_hour
        return Accounts(
            run=self.history.run,
            since_t=since_us / 1e6,
            until_t=self.until_us / 1e6,
            seconds=seconds,
            gpu_hours=hours,
            cost=cost,
            price_per_gpu_hour=price.per_gpu_hour,
            currency=price.currency,
            world_size=self._world_size(self.attempts[-1].number),
            effective=self._effective(pieces, since_us),
            mfu=self._mfu(since_us),
            steps=sum(max(0, keep - lap.base) for lap, keep in zip(self.laps, self.keep, strict=True)),
            step_time_s=next(
                (u for lap in reversed(self.laps) if (u := lap.usual.at(len(lap.steps))) is not None), None
            ),
            interruptions=tuple(interruptions),
            recoveries=tuple(recoveries),
            mtbi_s=useful_s / len(interruptions) if interruptions else None,
            checkpointing=checkpointing(self.saves, seconds["checkpoint"]),
            spans=tuple(_span(it) for it in pieces),
            not_observed=tuple(self._not_observed()),
        )

    def _effective(self, pieces: Sequence[Piece], since_us: int) -> Mapping[str, float | None]:
        """The productive share of each window; time after the run's end, till it was taken up, is in none."""
        found: dict[str, float | None] = {}
        for name, window_s in (*_WINDOWS_S.items(), ("run", None)):
            start = since_us if window_s is None else max(since_us, self.until_us - window_s * 1_000_000)
            whole = productive = 0
            for it in pieces:
                us = it.until_us - max(start, it.since_us)
                if us > 0 and it.world_size != 0:
                    whole += us
                    productive += us if it.category == "productive" else 0
            found[name] = productive / whole if whole else None
        return found

    def _mfu(self, since_us: int) -> float | None:
        told: list[float] = []
        for lap, keep in zip(self.laps, self.keep, strict=True):
            told += [
                mfu
                for step, t_us, mfu in zip(lap.steps, lap.times_us, lap.mfu, strict=True)
                if step <= keep and t_us > since_us and 0 < mfu <= 100
            ]
        return fmean(told) if told else None

    def _stops(self) -> list[Stop]:
        """Each lap that was followed by another one, or that is dead, unless the run had come to its end."""
        found: list[Stop] = []
        reached = 0
        for place, lap in enumerate(self.laps):
            reached = max(reached, lap.last_step)
            after = self.laps[place + 1] if place + 1 < len(self.laps) else None
            stop = self._stop(lap, after, reached)
            if stop is not None:
                found.append(stop)
        return found

    def _stop(self, lap: RunLap, after: RunLap | None, reached: int) -> Stop | None:
        number = next(i for i, it in enumerate(self.attempts) if it.number == lap.attempt)
        is_last_lap = self.attempts[number].laps[-1] is lap
        tail = self._tail(number)
        if is_last_lap and tail.ended_us is not None:
            return None
        follows = number + 1 < len(self.attempts) or not is_last_lap
        if after is None and not follows and tail.gone is None:
            return None
        end_us = after.times_us[0] if after is not None else self.until_us
        began = (
            self.attempts[number + 1].began_us if is_last_lap and number + 1 < len(self.attempts) else None
        )
        if not is_last_lap and after is not None:
            began = lap.times_us[-1]
        if after is not None and after.attempt != lap.attempt:
            began = next(it.began_us for it in self.attempts if it.number == after.attempt)
        since_us = lap.times_us[-1] - max(tail.usual_us, 1_000_000)
        return Stop(
            before=lap,
            after=after,
            began_us=began,
            signs=[it for it in self.signs if since_us < it.t_us <= end_us],
            told=[it for it in self.told if lap.times_us[-1] < it[0] <= end_us],
            reached=reached,
            passed_us=_passed(self.laps, lap, reached),
        )

    def _not_observed(self) -> Iterable[str]:
        if not self.saves:
            yield "saves: none was told of, so that steps count that were not done once more"
        if any(self._world_size(it.number) is None for it in self.attempts):
            yield "world size: nothing tells how many GPUs the run held"
        if not self.laps:
            yield "steps: none was completed"
        if any(map(_is_pieced, self.laps)):
            yield (
                "times: lines of the log carry none and are laid end to end by how long their steps took, so "
                "that what lay between them does not show"
            )


def _in_order(t_us: int, it: Happened, lap: RunLap | None) -> int:
    """The time of an event, between those of the steps between which its rank wrote it."""
    if lap is None or it.rank != lap.rank or not it.phase:
        return t_us
    place = 0 if it.behind is None else bisect_right(lap.steps, it.behind)
    before_us = lap.times_us[place - 1] if place else t_us
    after_us = lap.times_us[place] - 1 if place < len(lap.times_us) else t_us
    return max(before_us, min(t_us, after_us))


def _begun_us(lap: RunLap) -> int:
    """When the first steps that a log tells began: lines before them may tell no time."""
    own_s = lap.own_s[0]
    each_s = own_s if own_s > 0 else lap.usual.at(0) or 0.0
    return lap.times_us[0] - to_us(each_s * max(1, lap.steps[0] - lap.base))


def _is_pieced(lap: RunLap) -> bool:
    """Whether its times lie apart just by what its own timer says: then they were made of it."""
    apart = [b - a for a, b in pairwise(lap.times_us)]
    strides = [b - a for a, b in pairwise(lap.steps)]
    own = [to_us(s * n) if s > 0 else 0 for s, n in zip(lap.own_s[1:], strides, strict=True)]
    alike = sum(abs(a - b) <= _MADE_US for a, b in zip(apart, own, strict=True))
    return lap.is_log and len(apart) >= _ENOUGH and alike >= 0.9 * len(apart)


def _passed(laps: Sequence[RunLap], lap: RunLap, reached: int) -> int | None:
    """When the step once reached was passed by a later lap."""
    for later in laps[laps.index(lap) + 1 :]:
        if later.last_step > reached:
            place = next(i for i, step in enumerate(later.steps) if step > reached)
            return (
                later.times_us[max(0, place - 1)]
                if place and later.steps[place - 1] == reached
                else later.times_us[place]
            )
    return None


def _gpu_hours(pieces: Sequence[Piece]) -> Mapping[str, float] | None:
    """By category, in GPU-hours; None where it is not known how many GPUs were held."""
    total = dict.fromkeys(CATEGORIES, 0)
    for it in pieces:
        if it.world_size is None:
            return None
        total[it.category] += it.world_size * (it.until_us - it.since_us)
    return {category: us / 3.6e9 for category, us in total.items()}


def _span(it: Piece) -> Span:
    is_down = it.category == "down"
    return Span(
        it.category,
        it.since_us / 1e6,
        it.until_us / 1e6,
        None if is_down else it.attempt,
        it.world_size,
        it.first_step,
        it.last_step,
        it.why,
    )
