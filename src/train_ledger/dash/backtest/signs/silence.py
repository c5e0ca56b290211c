"""Of which ranks and hosts was nothing heard while others went on?

By the gaps in their lines. Who may be in a long phase of its own – the last that it said was that one began –
is given as long as that may last.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from statistics import median
from typing import NamedTuple

from train_ledger.config import Alerts
from train_ledger.dash.backtest.incidents import PastIncident
from train_ledger.dash.backtest.signs.lines import AttemptLines, Lines, RankLines
from train_ledger.ledger.hardware.places import host_key

__all__ = ["hosts_silent", "processes_gone"]

_CLEAR_S = 60.0


class _Allowed(NamedTuple):
    """For how long nothing may be heard.

    What comes within two usual steps before the next line is beside it. `by_steps`: others go on for no
    longer than their steps usually take, so that a pause of all is none in which they went on.
    """

    limit_s: float
    usual_step_s: float
    by_steps: bool = False

    def went_on_s(self, t: float, until_t: float, others: Sequence[Sequence[float]]) -> float:
        """For how long any of the others went on in a gap, by the times at which each was heard."""
        return max((self._one(t, until_t, times) for times in others), default=0.0)

    def _one(self, t: float, until_t: float, times: Sequence[float]) -> float:
        end = bisect_right(times, until_t - 2 * self.usual_step_s - 1.0)
        steps = end - bisect_right(times, t)
        if steps <= 0:
            return 0.0
        passed_s = times[end - 1] - t
        return min(passed_s, steps * self.usual_step_s) if self.by_steps else passed_s


def processes_gone(lines: Lines, alerts: Alerts) -> Iterator[PastIncident]:
    """Ranks that were found dead, or that said nothing while others of their host completed steps."""
    for attempt in lines.attempts.values():
        over_t = _over_t(lines, attempt)
        usual_s = _usual_step_s(attempt)
        for number, rank in attempt.ranks.items():
            peers = [it for other, it in attempt.ranks.items() if other != number and it.host == rank.host]
            if rank.gone_t is not None:
                yield from _seen_gone(rank.gone_t, over_t, alerts)
            elif rank.host is not None and rank.steps and peers:
                limit_s = max(alerts.process_gone_s, _stall_s(usual_s, alerts))
                steps = [it.step_t for it in peers]
                waits = _Allowed(limit_s, usual_s, by_steps=True)
                for t, until_t, went_on_s in _gaps(rank.heard, steps, over_t, [rank], waits, alerts):
                    clear = went_on_s > limit_s + _CLEAR_S + 2 * usual_s
                    yield PastIncident(t, "process_gone", until_t + alerts.keep_firing_s, clear=clear)


def _seen_gone(gone_t: float, over_t: float, alerts: Alerts) -> Iterator[PastIncident]:
    if over_t - gone_t > alerts.process_gone_s:
        clear = over_t - gone_t > alerts.process_gone_s + _CLEAR_S
        yield PastIncident(gone_t, "process_gone", over_t + alerts.keep_firing_s, clear=clear)


def hosts_silent(lines: Lines, alerts: Alerts) -> Iterator[PastIncident]:
    """Hosts of which neither a line nor a look at the hardware came while others went on."""
    looked = {host_key(host): [t for t, _ in looks] for host, looks in lines.readings.items()}
    for attempt in lines.attempts.values():
        over_t = _over_t(lines, attempt)
        usual_s = _usual_step_s(attempt)
        limit_s = max(alerts.telemetry_lost_s, _stall_s(usual_s, alerts))
        waits = _Allowed(limit_s, usual_s)
        for host, ranks in _hosts(attempt).items():
            own = [t for rank in ranks for t in rank.heard]
            times = looked.get(host_key(host), [])
            looks = times[bisect_left(times, attempt.began_t) : bisect_right(times, over_t)]
            others: list[Sequence[float]]
            others = [it.step_t for it in attempt.ranks.values() if it.host and it.host != host]
            if looks:
                others += [times for it, times in looked.items() if it != host_key(host)]
            heard = sorted([*own, *looks])
            for t, until_t, went_on_s in _gaps(heard, others, over_t, ranks, waits, alerts):
                yield PastIncident(
                    t,
                    "host_silent",
                    until_t + alerts.keep_firing_s,
                    {"host": host},
                    clear=went_on_s > limit_s + _CLEAR_S,
                )


def _hosts(attempt: AttemptLines) -> dict[str, list[RankLines]]:
    found: dict[str, list[RankLines]] = {}
    for rank in attempt.ranks.values():
        if rank.host:
            found.setdefault(rank.host, []).append(rank)
    return found


def _gaps(
    heard: Sequence[float],
    others: Sequence[Sequence[float]],
    over_t: float,
    ranks: Sequence[RankLines],
    waits: _Allowed,
    alerts: Alerts,
) -> Iterator[tuple[float, float, float]]:
    """(from when, until when, for how long others went on) of each gap that is longer than allowed."""
    ended = [rank.ended_t for rank in ranks]
    ended_t = max((t for t in ended if t is not None), default=math.inf) if None not in ended else math.inf
    for t, until_t in pairwise([*heard, over_t]):
        if until_t - t <= waits.limit_s or t >= ended_t:
            continue
        went_on_s = waits.went_on_s(t, until_t, others)
        if went_on_s > max(waits.limit_s, _phase_s((it.phase_at(t) for it in ranks), alerts)):
            yield t, until_t, went_on_s


def _phase_s(phases: Iterable[str | None], alerts: Alerts) -> float:
    """For how long a rank in one of these phases may say nothing."""
    limits_s = {
        "checkpoint_save": alerts.checkpoint_floor_s,
        "checkpoint_load": alerts.checkpoint_floor_s,
        "evaluation": alerts.evaluation_floor_s,
        "start_up": alerts.start_up_limit_s,
        "compile": alerts.start_up_limit_s,
    }
    return max((limits_s.get(phase or "", 0.0) for phase in phases), default=0.0)


def _over_t(lines: Lines, attempt: AttemptLines) -> float:
    """When another attempt began, the run had ended, or was looked at last."""
    later = [it.began_t for it in lines.attempts.values() if it.number > attempt.number]
    return min([*later, lines.ended_t(), lines.until_t])


def _usual_step_s(attempt: AttemptLines) -> float:
    times = attempt.teller().step_t
    return median(b - a for a, b in pairwise(times)) if len(times) > 1 else 0.0


def _stall_s(step_s: float, alerts: Alerts) -> float:
    return max(alerts.stall_floor_s, alerts.stall_factor * step_s)
