"""Would a hang leave its evidence where somebody can collect it? (item 9)"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from train_ledger.facts import Event
from train_ledger.ops.preflight.figures import RankFigures
from train_ledger.ops.preflight.own_run import OwnRun
from train_ledger.ops.preflight.records import Check, failed, not_possible, passed
from train_ledger.render import ranks_in_brief

__all__ = ["HangDrilled", "recorder_checks"]

_ABOUT = ("TORCH_", "NCCL_")
_DUMP_PATH = "TORCH_FR_DUMP_TEMP_FILE"
_PUT_RIGHT = " was replaced by "


@dataclass(frozen=True, slots=True)
class HangDrilled:
    """How the hang drill went; `missing` are ranks without a dump and why, `why_not` why it did not run."""

    right: bool = False
    planted: int = 0
    named: tuple[int, ...] = ()
    cause: str = ""
    there: int = 0
    missing: tuple[str, ...] = ()
    why_not: str = ""


def recorder_checks(
    figures: Mapping[int, RankFigures],
    own: OwnRun | None,
    drilled: HangDrilled | None,
    *,
    is_own_place: bool = False,
) -> Iterator[Check]:
    """The variables of every rank that ran here, those of the run's own ranks, and the drill.

    `is_own_place`: the ranks dumped into a folder of the preflight's own, which is thrown away.
    """
    yield _variables(figures, is_own_place)
    if is_own_place:
        why = "without RUN, and with no variable set, the dumps of this try go where they are thrown away"
        yield not_possible("dump path", why, "train-ledger preflight RUN")
    else:
        yield _place(figures)
    yield _of_own(own)
    yield from _drill(drilled)


def _variables(figures: Mapping[int, RankFigures], is_own_place: bool) -> Check:
    name = "variables"
    if not figures:
        return not_possible(name, "no rank ran here", "leave in an item that runs a job, as faults")
    by_words: dict[str, list[int]] = {}
    for rank, it in figures.items():
        for level, about, words in it.environment.recorder:
            if level != "note" and not (is_own_place and about == _DUMP_PATH):
                by_words.setdefault(words.replace(f"rank {rank} ", "the rank "), []).append(rank)
    if by_words:
        said = "; ".join(f"{ranks_in_brief(ranks)}: {words}" for words, ranks in by_words.items())
        return failed(name, said, "mend the variables in the job's environment, then run this again")
    return passed(name, f"as they should be on all {len(figures)} ranks")


def _place(figures: Mapping[int, RankFigures]) -> Check:
    """Where torch's own watchdog writes, in this environment."""
    name = "dump path"
    places = {rank: it.dump_place for rank, it in figures.items() if it.dump_place is not None}
    if not places:
        return not_possible(name, "no rank ran here", "leave in an item that runs a job, as faults")
    prefix = next(iter(places.values())).prefix
    if refused := {rank: it for rank, it in places.items() if it.error}:
        first = next(iter(refused.values()))
        said = f"{ranks_in_brief(refused)} cannot write {first.prefix}RANK: {first.error}"
        return failed(name, said, "make the folder on every host, and give the job's user the right to write")
    if unseen := [rank for it in places.values() for rank in it.unseen]:
        said = f"what {ranks_in_brief(unseen)} wrote to {prefix}RANK is not seen from rank 0's host"
        return failed(name, said, "name a folder that all hosts share: TORCH_FR_DUMP_TEMP_FILE")
    return passed(name, f"each of {len(places)} ranks wrote to {prefix}RANK, and rank 0 saw them all")


def _of_own(own: OwnRun | None) -> Check:
    name = "your training"
    starts = {it.rank for it in own.events if it.name == "run_start"} if own is not None else set()
    if own is None or not starts:
        why = (
            own.why_not if own is not None else ""
        ) or "none of your training's ranks has started in RUN yet"
        return not_possible(name, why, "let it do a few steps in RUN, and run this again")
    last = own.last_attempt or 0
    told = [
        f"rank {it.rank}: {it.details.get('message', '')}"
        for it in own.events
        if it.name == "warning" and it.attempt == last and _tells_of_a_loss(it)
    ]
    if told:
        more = f" (and {len(told) - 4} more)" if len(told) > 4 else ""
        return failed(name, "; ".join(told[:4]) + more, "mend the variables in the job's environment")
    return passed(name, f"{len(starts)} ranks started and none warned of a variable")


def _tells_of_a_loss(warning: Event) -> bool:
    """Of a variable that is as it should not be; what start() has put right is none."""
    about, message = (str(warning.details.get(key, "")) for key in ("about", "message"))
    return about.startswith(_ABOUT) and _PUT_RIGHT not in message


def _drill(drilled: HangDrilled | None) -> Iterator[Check]:
    if drilled is None or drilled.why_not:
        why = drilled.why_not if drilled is not None else "the drill was not run"
        yield not_possible("drill", why, "train-ledger drill hang, where your training runs")
        return
    if drilled.missing:
        said = f"{drilled.there} dumps; missing: {'; '.join(drilled.missing[:4])}"
        yield failed("dumps", said, "see the drill's own words: train-ledger drill hang --mode sleep")
    else:
        yield passed("dumps", f"all {drilled.there} ranks' dumps were collected while the job lived")
    named = ranks_in_brief(drilled.named) if drilled.named else "nobody"
    said = (
        f"rank {drilled.planted} was hung on purpose, and named was {named} ({drilled.cause or 'no verdict'})"
    )
    if drilled.right:
        yield passed("drill", said)
    else:
        yield failed("drill", said, "see the drill's own words: train-ledger drill hang --mode sleep")
