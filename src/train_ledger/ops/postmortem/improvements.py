"""What went well, and where would the next time be shorter, with figures?

Only what was measured is said; what people could do about it is theirs to decide.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from train_ledger.ledger.accounts import Accounts
from train_ledger.ledger.costs import waste, young_s
from train_ledger.ops.postmortem.detection import Detection
from train_ledger.ops.postmortem.incident import Incident
from train_ledger.ops.postmortem.moment import Moment
from train_ledger.ops.postmortem.split import Split
from train_ledger.render import duration

__all__ = ["does_not_add_up", "to_improve", "went_well"]

_XID_BEFORE_S = 900.0
_WORTH_A_LINE = 1.25
"""An interval that is so much longer or shorter than Young's."""
_LATER_THAN = 1.5
_LONGEST_OF = ("detect", "dump", "decide", "restart", "load")
"""What is done again depends on the interval, which has a line of its own."""
_MANY = 10
"""Interruptions of which the mean says something."""
_FEWEST_PARTS = 3
"""Of fewer that are known the longest says little."""

_LOOK_AT = {
    "detect": "which alert told of it, and its threshold",
    "dump": "how the dumps are taken and collected",
    "decide": "the runbook, and what could be decided by itself",
    "restart": "the scheduler, pulling of images and the rendezvous (TCPStore)",
    "load": "the storage, and how the checkpoint is laid out",
}


def went_well(detection: Detection, incident: Incident, split: Split) -> Iterable[str]:
    """What the record itself shows to have gone as it should."""
    if detection.is_as_expected:
        yield f"the page went out {duration(detection.paged_s or 0.0)} after the last step, as expected"
    answered = incident.first("response_done", split.stood_t)
    took = answered is not None and (answered.entry.get("dumps"), answered.entry.get("stacks")) != (0, 0)
    if answered is not None and took and ";" not in (said := str(answered.entry.get("summary"))):
        yield f"the first answers were complete: {said}"
    verdict = None if incident.found_later else incident.verdict
    if verdict is not None and verdict.ranks and verdict.confidence == "high":
        yield "the culprit was named with high confidence while the run stood"
    if split.loss_joins_on:
        yield "the loss of the steps that were done again joined on"
    if split.data_agrees:
        yield "the data went on at the position where it had been"


def to_improve(
    moments: Sequence[Moment], split: Split, accounts: Accounts | None, detection: Detection
) -> Iterable[str]:
    """What the figures of this incident point at."""
    yield from _known_before(moments, split)
    yield from _late(detection)
    yield from _interval(accounts) if accounts else ()
    yield from _longest(split)
    if split.loss_joins_on is False:
        yield "the loss of the steps that were done again is not what it was: what is saved, and what is not?"
    if split.data_agrees is False:
        yield "the data went on elsewhere than it stood: is the loader's position saved and loaded?"


def _known_before(moments: Sequence[Moment], split: Split) -> Iterable[str]:
    stood_t = split.stood_t
    if stood_t is None:
        return
    early = [
        it
        for it in moments
        if it.pages and it.xid is not None and it.t is not None and 0 < stood_t - it.t <= _XID_BEFORE_S
    ]
    if not early:
        return
    first = early[0]
    decide_s = split.parts_s.get("decide")
    saved = f"the decision, {duration(decide_s)}" if decide_s is not None else "the decision (not measured)"
    known = duration(stood_t - (first.t or stood_t))
    yield (
        f"XID {first.xid} on {first.host or 'a host'} was known {known} before the last step; had it "
        f"excluded the node and restarted the run by itself, {saved} would have been saved"
    )


def _late(detection: Detection) -> Iterable[str]:
    if detection.late_s is not None:
        expected = duration(detection.expected_s or 0.0)
        yield f"the page came {duration(detection.late_s)} later than the {expected} that were to be expected"


def _interval(accounts: Accounts) -> Iterable[str]:
    saving, mtbi_s = accounts.checkpointing, accounts.mtbi_s
    now_s, delta_s = saving.interval_s, saving.blocking_s
    if not now_s or not delta_s or not mtbi_s:
        return
    best_s = young_s(delta_s, mtbi_s)
    if 1 / _WORTH_A_LINE <= now_s / best_s <= _WORTH_A_LINE:
        return
    steps = f", about {best_s / now_s * saving.interval_steps:.0f} steps" if saving.interval_steps else ""
    less = waste(now_s, delta_s, mtbi_s) - waste(best_s, delta_s, mtbi_s)
    few = len(accounts.interruptions)
    rests = f"; but M rests on {few} interruption{'s' * (few != 1)}" if 0 < few < _MANY else ""
    yield (
        f"checkpoints are {duration(now_s)} apart; by Young's formula √(2 × {duration(delta_s)} × "
        f"{duration(mtbi_s)}) it would be {duration(best_s)}{steps}, which would save {less * 100:.1f} % of "
        f"all time, the price of the other saves taken off{rests}"
    )


def _longest(split: Split) -> Iterable[str]:
    known = {name: length_s for name in _LONGEST_OF if (length_s := split.parts_s.get(name)) is not None}
    if len(known) < _FEWEST_PARTS:
        return
    name = max(known, key=lambda it: known[it])
    whose = (
        "the longest part" if len(known) == len(_LONGEST_OF) else "the longest of the parts that are known"
    )
    yield f"{whose} before what was done again was {name}, {duration(known[name])}: {_LOOK_AT[name]}"


def does_not_add_up(split: Split, step_time_s: float | None) -> Iterable[str]:
    """Where the figures leave time that none of them explains; the parts are those of one interruption."""
    if split.is_of_several:
        return
    redo_s, redone = split.parts_s.get("redo"), split.redone_steps
    if redo_s is not None and redone and step_time_s:
        usual_s = redone * step_time_s
        if redo_s > usual_s * _LATER_THAN:
            yield (
                f"from the load to the step once reached it took {duration(redo_s)}, but {redone} steps at "
                f"the usual {duration(step_time_s)} are {duration(usual_s)}: {duration(redo_s - usual_s)} "
                "are not explained"
            )
    known = [length_s for length_s in split.parts_s.values() if length_s is not None]
    whole_s = split.whole_s
    if whole_s is not None and whole_s - sum(known) > 1.0:
        missing = [name for name, length_s in split.parts_s.items() if length_s is None]
        yield (
            f"the parts that are known are {duration(sum(known))} of {duration(whole_s)}; between what the "
            f"rest lies ({', '.join(missing)}), no record says"
        )
