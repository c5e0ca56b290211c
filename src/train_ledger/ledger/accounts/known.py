"""What is known of a run at one moment, put in order on one clock?

The laps with the steps that each keeps, the attempts, the pauses, the saves, and the signs of life and death.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from train_ledger.config import Alerts
from train_ledger.ledger.accounts.history import Happened, History
from train_ledger.ledger.accounts.laps import RunLap, learn_usual, run_laps, to_us
from train_ledger.ledger.accounts.leads import Leads
from train_ledger.ledger.accounts.pauses import Pause, Pauses, pauses_of
from train_ledger.ledger.accounts.saving import durable_step, saves_of
from train_ledger.ledger.accounts.signs import Sign, signs_of
from train_ledger.ledger.accounts.stepping import OF_PHASE, Limits, paused_places
from train_ledger.ledger.accounts.tails import Tail

__all__ = ["AttemptKnown", "Known"]

_FAR = 1 << 62
_NEAR_US = 1_000_000


@dataclass(frozen=True, slots=True)
class AttemptKnown:
    """One attempt: when its first and its last line were written, and its laps as places in `Known.laps`."""

    number: int
    began_us: int
    heard_us: int
    ranks: int
    laps: Sequence[int]


class Known:
    """All of `history` up to `until_us`, and what the keeper and the dumps tell besides.

    `pauses` and `keep` have one entry for each of `laps`: the pauses by their phase, and the last step of the
    lap that counts. `over_us` is when the run came to its end, None where it has not.
    """

    def __init__(self, history: History, alerts: Alerts, until_t: float, signs: Iterable[Sign]) -> None:
        history.settle()
        self.history, self.limits = history, Limits(alerts)
        self.until_us = to_us(until_t)
        self._leads = Leads(history.ranks)
        self.laps = run_laps(history, self._leads, until_t)
        self.told = self._told()
        self._told_us = [t_us for t_us, _ in self.told]
        beside = (it for it in signs if it.t_us <= self.until_us)
        self.signs = sorted([*signs_of(self.told), *beside], key=Sign.order)
        self._signs_us = [it.t_us for it in self.signs]
        self.saves = saves_of(self.told)
        self._paused: dict[int, list[Pause]] = {}
        for pause in pauses_of(self.told):
            self._paused.setdefault(pause.attempt, []).append(pause)
        self.pauses = [self.pauses_of(lap.attempt, lap.rank) for lap in self.laps]
        paused = [paused_places(*it) for it in zip(self.laps, self.pauses, strict=True)]
        learn_usual(self.laps, paused, self.limits.step_s)
        self._find_bases()
        self.attempts = self._attempts()
        self.place_of = {it.number: place for place, it in enumerate(self.attempts)}
        self.over_us = self.tail(len(self.attempts) - 1).ended_us if self.attempts else None
        self.keep = self._kept()

    # -- what was told, in order

    def _told(self) -> list[tuple[int, Happened]]:
        of_lap = {lap.lap: lap for lap in self.laps}
        timed: list[tuple[int, Happened]] = []
        for it in self.history.happened:
            t_us = to_us(it.t - self._leads.of(it.rank, it.attempt))
            t_us = _in_order(t_us, it, of_lap.get((it.attempt, it.lap)))
            if t_us <= self.until_us:
                timed.append((t_us, it))
        return sorted(timed, key=lambda pair: pair[0])

    def told_between(self, since_us: int, until_us: int) -> Sequence[tuple[int, Happened]]:
        """What happened behind `since_us`, up to `until_us`."""
        return self.told[bisect_right(self._told_us, since_us) : bisect_right(self._told_us, until_us)]

    def signs_between(self, since_us: int, until_us: int, *, to_the_end: bool = True) -> Sequence[Sign]:
        """The signs behind `since_us`, up to `until_us`, or before it."""
        end = bisect_right if to_the_end else bisect_left
        return self.signs[bisect_right(self._signs_us, since_us) : end(self._signs_us, until_us)]

    def pauses_of(self, attempt: int, rank: int | None) -> Mapping[str, Pauses]:
        """The pauses of an attempt by their phase, as this rank tells them where it does."""
        here: dict[str, list[Pause]] = {}
        for it in self._paused.get(attempt, ()):
            here.setdefault(it.phase, []).append(it)
        return {phase: Pauses(here[phase], rank) for phase in OF_PHASE if phase in here}

    # -- attempts and laps

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

    def _attempts(self) -> list[AttemptKnown]:
        began: dict[int, dict[int | None, int]] = {}
        heard: dict[int, int] = {}
        for rank, tape in self.history.ranks.items():
            for number, (first, last) in tape.heard.items():
                began.setdefault(number, {})[rank] = to_us(first - self._leads.of(rank, number, 0))
                last_us = min(self.until_us, to_us(last - self._leads.of(rank, number)))
                heard[number] = max(heard.get(number, last_us), last_us)
        places: dict[int, list[int]] = {}
        for place, lap in enumerate(self.laps):
            places.setdefault(lap.attempt, []).append(place)
        found: list[AttemptKnown] = []
        for number in sorted(began):
            laps, ranks = places.get(number, []), began[number]
            us = ranks.get(self._leads.first, min(ranks.values()))
            if laps and self.laps[laps[0]].times_us[0] < us:  # that rank began to write in the middle of it
                us = min(us, *ranks.values())
            if laps and self.laps[laps[0]].is_log:
                us = max(min(us, _begun_us(self.laps[laps[0]])), found[-1].heard_us if found else 0)
                us = self._load_us(found, us)
            if us <= self.until_us:
                found.append(AttemptKnown(number, us, heard[number], len(ranks), laps))
        return found

    def _load_us(self, before: list[AttemptKnown], us: int) -> int:
        """When an attempt of a log began: with its load, of which a trainer may tell before it tells a start.

        What was heard of that attempt is taken from the last one `before` it.
        """
        if not before or not before[-1].laps:
            return us
        heard_us = self.laps[before[-1].laps[-1]].times_us[-1]
        for t_us, it in self.told_between(heard_us, us):
            if it.phase == "checkpoint_load" and it.name == "phase_start":
                before[-1] = replace(before[-1], heard_us=heard_us)
                return t_us
            heard_us = t_us
        return us

    def end_of(self, place: int) -> int:
        """When the attempt after this one began."""
        return self.attempts[place + 1].began_us if place + 1 < len(self.attempts) else self.until_us

    def tail(self, place: int) -> Tail:
        """What is known of the attempt at this place behind its last step."""
        attempt = self.attempts[place]
        is_last = place + 1 == len(self.attempts)
        last = self.laps[attempt.laps[-1]] if attempt.laps else None
        usual_us, since_us = 0, attempt.began_us - 1
        if last is not None:
            usual_us = to_us((last.usual.at(len(last.steps)) or 0.0) * (last.stride or 1))
            since_us = last.times_us[-1] - max(usual_us, _NEAR_US)
        signs = self.signs_between(since_us, self.end_of(place), to_the_end=is_last)
        ended = {it.rank for it in signs if it.what == "ended"}
        if 2 * len(ended) < attempt.ranks and not self.history.by_logs:
            signs = [it for it in signs if it.what != "ended"]  # few say so, the others go on
        return Tail(attempt.heard_us, usual_us, signs, is_last, in_start_up=last is None)

    def _kept(self) -> list[int]:
        """Of each lap the last step that was not done once more, or is not lost."""
        keep: list[int] = []
        lowest = _FAR
        if self.laps and self.attempts and self.over_us is None:
            last = self.laps[-1]
            is_dead = self.tail(len(self.attempts) - 1).gone is not None
            if last.attempt < self.attempts[-1].number or is_dead:
                covered = durable_step(self.saves, last.last_step)
                lowest = lowest if covered is None else max(covered, last.base)
        for lap in reversed(self.laps):
            keep.append(min(lap.last_step, lowest))
            lowest = min(lowest, lap.base)
        return keep[::-1]

    def world_size(self, attempt: int) -> int | None:
        """How many ranks an attempt had; of signals that do not say it, how many wrote."""
        told = self.history.world_sizes.get(attempt) or self.history.world_size
        if told is not None or self.history.by_logs:
            return told
        place = self.place_of.get(attempt)
        return self.attempts[place].ranks if place is not None else None


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
