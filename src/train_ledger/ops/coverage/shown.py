"""How does the coverage of a run look to a person?"""

from __future__ import annotations

from collections.abc import Iterator

from train_ledger.ops.coverage.records import Coverage, SignalCoverage, exit_code_of
from train_ledger.ops.coverage.verdicts import arrival_in_words
from train_ledger.render import Report, duration
from train_ledger.render.report import Tone, commands, pairs, points

__all__ = ["report_of_coverage"]

_TONES: dict[int, Tone] = {0: "fine", 1: "trouble", 3: "unsure"}
_TOLD = {"yes": "could be told", "partly": "in part", "no": "could NOT be told", "not_needed": "not needed"}


def report_of_coverage(answer: Coverage) -> Report:
    """What could not be told and why, then every cause and every signal."""
    first, *rest = answer.verdicts
    sections = [
        *points("", rest),
        *pairs("causes", _causes(answer)),
        *pairs("signals", ((it.name, _signal(answer, it)) for it in answer.signals)),
        *points("not observed", answer.not_observed),
        *commands(answer.next),
    ]
    return Report(first, _TONES[exit_code_of(answer)], tuple(sections))


def _causes(answer: Coverage) -> Iterator[tuple[str, str]]:
    for it in answer.causes:
        by = f", by {', '.join(it.by)}" if it.told == "yes" and it.by else ""
        lacks = "; ".join(" or ".join(group) for group in it.missing)
        more = f": {it.why}" if it.why else f": wanted {lacks}" if lacks else by
        yield it.cause, f"{_TOLD[it.told]}{more}"


def _signal(answer: Coverage, it: SignalCoverage) -> str:
    arrival = it.arrival
    age = ""
    if arrival.newest_t is not None and arrival.oldest_t is not None and answer.t >= arrival.newest_t:
        age = f", last {duration(answer.t - arrival.newest_t)} ago"
        if arrival.newest_t - arrival.oldest_t > 1.0:
            age += f" (from one {duration(answer.t - arrival.oldest_t)} ago)"
    return f"{arrival_in_words(arrival, it.name)}{age}"
