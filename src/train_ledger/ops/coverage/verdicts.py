"""What is said first of what could not be told?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from train_ledger.ledger import RunState
from train_ledger.ops.coverage.records import Arrival, CauseCoverage, SignalCoverage
from train_ledger.ops.coverage.signals import SIGNALS
from train_ledger.render import duration, ranks_in_brief

__all__ = ["arrival_in_words", "verdicts_of"]

_QUIET_S = 120.0
_SHOWN_HOSTS = 4


def verdicts_of(
    state: RunState,
    causes: Sequence[CauseCoverage],
    signals: Sequence[SignalCoverage],
    newest_t: float | None,
    heard_t: float | None,
) -> Iterator[str]:
    """The whole in one line, then a line for every group of signals of which none comes, or not of all."""
    yield _whole(state, causes, newest_t)
    if heard_t is not None and state.state != "finished" and state.t - heard_t > _QUIET_S:
        yield f"no rank has written anything for {duration(state.t - heard_t)}: told is what came until then"
    if not state.ranks:
        return
    by_name = {it.name: it for it in signals}
    for group in _groups(causes):
        yield _of_group(group, [it.cause for it in causes if group in it.missing], by_name)


def _whole(state: RunState, causes: Sequence[CauseCoverage], newest_t: float | None) -> str:
    if newest_t is None or not state.ranks:
        return "nothing arrives: no rank has written a line, and nothing could be told of this run"
    untold = [it.cause for it in causes if it.told == "no"]
    partly = [it.cause for it in causes if it.told == "partly"]
    wanted = sum(it.told != "not_needed" for it in causes)
    if not untold and not partly:
        return f"all {wanted} causes could be told"
    told = [f"{len(untold)} of {wanted} causes could not be told now"] if untold else []
    told += [f"{len(partly)} of some ranks or hosts alone"] if partly else []
    return ", ".join(told)


def _groups(causes: Sequence[CauseCoverage]) -> list[tuple[str, ...]]:
    """Those of the most causes first."""
    groups = [group for it in causes for group in it.missing]
    return sorted(dict.fromkeys(groups), key=lambda group: (-groups.count(group), groups.index(group)))


def _of_group(group: tuple[str, ...], causes: Sequence[str], by_name: dict[str, SignalCoverage]) -> str:
    first = max((by_name[name] for name in group if name in by_name), key=lambda it: it.arrival.have)
    if not first.arrival.comes:
        first = by_name[next(name for name in group if name in by_name)]
    others = [name for name in group if name != first.name]
    instead = f" (nor {', nor '.join(others)})" if others and not first.arrival.comes else ""
    said = arrival_in_words(first.arrival, first.name)
    why = f"; {first.arrival.why}" if first.arrival.why else ""
    lost = SIGNALS[first.name].lost
    return f"{', '.join(causes)}: {lost}: {first.name}{instead} {said}{why}; {first.get}"


def arrival_in_words(arrival: Arrival, name: str) -> str:
    """From whom it comes.

    >>> arrival_in_words(Arrival(3, 4, missing=(2,)), "tps"), arrival_in_words(Arrival(0, 4), "tps")
    ('comes from 3 of 4 ranks, not from rank 2', 'is written by no rank')
    """
    of = SIGNALS[name].of
    if not arrival.comes and SIGNALS[name].kind == "field":
        return "is written by no rank"
    if not arrival.comes:
        return {"ranks": "comes from no rank", "hosts": "comes from no host", "run": "is not there"}[of]
    if of == "run" or arrival.of == 1:
        return "comes"
    if arrival.is_whole:
        return f"comes from all {arrival.of} {of}"
    return f"comes from {arrival.have} of {arrival.of} {of}, not from {_missing(arrival)}"


def _missing(arrival: Arrival) -> str:
    ranks = [it for it in arrival.missing if isinstance(it, int)]
    if ranks:
        return ranks_in_brief(ranks)
    hosts = [str(it) for it in arrival.missing]
    more = f" and {len(hosts) - _SHOWN_HOSTS} more" if len(hosts) > _SHOWN_HOSTS else ""
    return ", ".join(hosts[:_SHOWN_HOSTS]) + more
