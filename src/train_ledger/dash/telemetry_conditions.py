"""From which hosts of a run does nothing come any more, while others go on?

Silence is an alarm: neither lines of the host's ranks nor looks at its hardware. What is computed here is
judged by the embedded check and exported for Prometheus, as in `conditions`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from train_ledger.config import Alerts
from train_ledger.ledger.state import RankState, RunState

__all__ = ["HostSeen", "hosts_seen", "lost_hosts", "unreadable_since_t"]


@dataclass(frozen=True, slots=True)
class HostSeen:
    """A host of the current attempt on which ranks are that have not ended, as far as is known.

    `spoke_t` is the newest line of its ranks and `stepped_t` their newest step; `looked_t` is the newest look
    at its hardware, -inf where nobody looks.
    """

    host: str
    spoke_t: float
    stepped_t: float
    looked_t: float
    phases: frozenset[str]

    @property
    def heard_t(self) -> float:
        return max(self.spoke_t, self.looked_t)


def hosts_seen(state: RunState) -> list[HostSeen]:
    """Those hosts by name; none where logs tell of the ranks, whose silence means nothing."""
    ranks: dict[str, list[RankState]] = {}
    for rank in state.ranks.values() if not state.by_logs else ():
        if rank.attempt == state.attempt and rank.host and not rank.ended and rank.gone_t is None:
            ranks.setdefault(rank.host, []).append(rank)
    looks = _looks(state)
    return [_host(name, own, looks.get(name, -math.inf)) for name, own in sorted(ranks.items())]


def _looks(state: RunState) -> Mapping[str, float]:
    looks: dict[str, float] = {}
    seen = [(it.host, it.seen_t) for it in state.gpus] + [(it.host, it.seen_t) for it in state.ports]
    for host, seen_t in seen:
        if seen_t is not None:
            looks[host] = max(seen_t, looks.get(host, seen_t))
    return looks


def _host(name: str, ranks: list[RankState], looked_t: float) -> HostSeen:
    phases = {rank.phase for rank in ranks if rank.phase} | {
        "start_up" for rank in ranks if rank.step is None
    }
    return HostSeen(
        name,
        spoke_t=_newest(rank.heard_t for rank in ranks),
        stepped_t=_newest(rank.step_t for rank in ranks),
        looked_t=looked_t,
        phases=frozenset(phases),
    )


def _newest(times: Iterable[float | None]) -> float:
    return max((t for t in times if t is not None), default=-math.inf)


def lost_hosts(state: RunState, alerts: Alerts) -> dict[str, float]:
    """Hosts from which nothing comes, each with the time of the last that came.

    Others go on where they completed steps for longer than the limit since; or, where the hardware of several
    hosts is looked at, where the others' is and its own is not, and its ranks are silent, too.
    """
    hosts = hosts_seen(state)
    return {host.host: host.heard_t for host in hosts if _is_lost(host, hosts, state, alerts)}


def _is_lost(host: HostSeen, hosts: list[HostSeen], state: RunState, alerts: Alerts) -> bool:
    others = [it for it in hosts if it is not host]
    if not others or host.heard_t == -math.inf:
        return False
    limit_s = _limit_s(host.phases, state, alerts)
    if max(it.stepped_t for it in others) - host.heard_t > limit_s:
        return True
    looked_t = max(it.looked_t for it in others)
    lagging = host.looked_t > -math.inf and looked_t - host.looked_t > limit_s
    return lagging and state.t - host.spoke_t > limit_s


def _limit_s(phases: frozenset[str], state: RunState, alerts: Alerts) -> float:
    """A host may be in a long phase alone."""
    limits_s = [alerts.telemetry_lost_s, state.stall_threshold_s]
    if phases & {"start_up", "compile"}:
        limits_s.append(alerts.start_up_limit_s)
    if phases & {"checkpoint_save", "checkpoint_load"}:
        limits_s.append(alerts.checkpoint_floor_s)
    if "evaluation" in phases:
        limits_s.append(alerts.evaluation_floor_s)
    return max(limits_s)


def unreadable_since_t(state: RunState, alerts: Alerts) -> float | None:
    """Since when the whole run cannot be read, where that is for too long.

    None where it ended before, or stood still already: that was told when it could still be read.
    """
    since_t = state.unreadable_since_t
    if since_t is None or state.finished or state.t - since_t <= alerts.telemetry_lost_s:
        return None
    stalled_before = state.last_step_t is not None and since_t - state.last_step_t > state.stall_threshold_s
    return None if stalled_before else since_t
