"""What does the draft say that the review meeting starts from?

The sections are those of the seed article's chapter 6 section 3, made from the journal, what people noted,
the accounts, and what signals and logs say of that time, so that it can be written again at any time. What no
record says is said to be not known; what only people can know is left as a line to fill in, marked so.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from train_ledger.answer import Diagnosis
from train_ledger.config import Config
from train_ledger.ledger.accounts import PARTS, Accounts, Recovery
from train_ledger.ledger.notes import Note, Notes, read_notes
from train_ledger.ops.account import account
from train_ledger.ops.postmortem.afterwards import with_verdict
from train_ledger.ops.postmortem.detection import Detection, detection
from train_ledger.ops.postmortem.improvements import does_not_add_up, to_improve, went_well
from train_ledger.ops.postmortem.incident import Incident, incident_of
from train_ledger.ops.postmortem.journal_moments import journal_moments, note_moments
from train_ledger.ops.postmortem.loss import Loss, loss
from train_ledger.ops.postmortem.moment import Moment, in_order
from train_ledger.ops.postmortem.root_cause import root_cause, title_of
from train_ledger.ops.postmortem.split import Split, split
from train_ledger.ops.postmortem.stretch import Window
from train_ledger.ops.postmortem.witnesses import Witnesses, witnesses_of
from train_ledger.render import duration
from train_ledger.run_dir import RunDir

__all__ = ["Part", "Postmortem", "postmortem"]

_BEFORE_S = 900.0
_AFTER_S = 60.0
_MOST_RANKS = 8


@dataclass(frozen=True, slots=True)
class Part:
    """One section: `lines` as told, and `for_people` what is left to them."""

    heading: str
    lines: tuple[str, ...] = ()
    for_people: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Postmortem:
    """The draft of one incident.

    `timeline` is in the order of time and stands behind the first of `parts`. `is_whole` says that accounts,
    signals and logs were looked at, and not the journal alone.
    """

    incident: str
    title: str
    timeline: tuple[Moment, ...]
    parts: tuple[Part, ...]
    loss: Loss
    detection: Detection
    split: Split
    improvements: tuple[str, ...]
    is_whole: bool
    not_told: tuple[str, ...] = field(default=())


@dataclass(frozen=True, slots=True)
class _Material:
    """Everything that the draft is made of."""

    incident: Incident
    run_name: str
    split: Split
    loss: Loss
    detection: Detection
    timeline: tuple[Moment, ...]
    step_time_s: float | None
    accounts: Accounts | None
    verdict: Diagnosis
    improvements: tuple[str, ...]


def postmortem(
    run_dir: RunDir, config: Config, *, incident: str | None = None, of_journal_alone: bool = False
) -> Postmortem:
    """The draft for one incident (None: the latest).

    `of_journal_alone` leaves out what takes long on a large run: the accounts, signals and logs; a keeper's
    first draft is made so. Raises RunDirError where the journal holds no incident, or none of that name, and
    where run.json cannot be used, and JournalError where the journal cannot be read.
    """
    found = incident_of(run_dir, incident)
    if not of_journal_alone:
        found = with_verdict(found, run_dir, config)
    notes = read_notes(run_dir)
    accounts = None if of_journal_alone else account(run_dir, config)
    own_notes = _of_the_time(notes, found)
    recovery = split(found, own_notes, accounts)
    witnesses = Witnesses() if of_journal_alone else _witnesses(run_dir, config, found, recovery)
    material = _material(run_dir, config, found, own_notes, accounts, recovery, witnesses)
    return Postmortem(
        incident=found.id,
        title=title_of(material.incident, material.run_name, material.verdict, material.timeline),
        timeline=material.timeline,
        parts=tuple(_parts(material)),
        loss=material.loss,
        detection=material.detection,
        split=recovery,
        improvements=material.improvements,
        is_whole=not of_journal_alone,
        not_told=tuple(_not_told(found, notes, witnesses, accounts)),
    )


def _material(
    run_dir: RunDir,
    config: Config,
    incident: Incident,
    notes: Sequence[Note],
    accounts: Accounts | None,
    recovery: Split,
    witnesses: Witnesses,
) -> _Material:
    run = run_dir.read_run()
    verdict = incident.verdict or Diagnosis("", "unknown")
    step_time_s = accounts.step_time_s if accounts else None
    noticed = detection(incident, recovery.stood_t, step_time_s, config.alerts)
    told = [*journal_moments(incident), *note_moments(notes), *witnesses.moments]
    began = incident.began_with or verdict
    timeline = tuple(in_order([*_marks(recovery, began, incident.verdict_line, witnesses), *told]))
    return _Material(
        incident=incident,
        run_name=run_dir.name_in(run),
        split=recovery,
        loss=loss(incident, recovery, accounts, run, config),
        detection=noticed,
        timeline=timeline,
        step_time_s=step_time_s,
        accounts=accounts,
        verdict=verdict,
        improvements=tuple(to_improve(timeline, recovery, accounts, noticed)),
    )


def _of_the_time(notes: Notes, incident: Incident) -> list[Note]:
    """Notes from before the alert, too: who is on call may have seen it first."""
    begin, end = incident.opened_t, incident.last_t if incident.is_closed else None
    return [
        it
        for it in notes.notes
        if (begin is None or it.t >= begin - _BEFORE_S) and (end is None or it.t <= end + _BEFORE_S)
    ]


def _witnesses(run_dir: RunDir, config: Config, incident: Incident, recovery: Split) -> Witnesses:
    begin = recovery.stood_t if recovery.stood_t is not None else incident.opened_t
    if begin is None:
        return Witnesses(not_read=("signals and logs: no entry says when it was",))
    ends = [t for t in (recovery.over_t, incident.last_t) if t is not None]
    named = (it for it in (incident.verdict, *incident.others) if it is not None)
    ranks = tuple(dict.fromkeys(rank for it in named for rank in it.ranks))[:_MOST_RANKS]
    window = Window(begin - _BEFORE_S, max([begin, *ends]) + _AFTER_S, begin, ranks)
    return witnesses_of(run_dir, window, config.xid)


def _marks(recovery: Split, verdict: Diagnosis, line: int | None, witnesses: Witnesses) -> Iterable[Moment]:
    """What is calculated and stands in no line: the last step, the first after it, the step once reached."""
    by = "the run's clock"
    step = "" if verdict.since_step is None else f" (step {verdict.since_step})"
    told = (
        "the accounts, or a look back at the run directory"
        if line is None
        else f"the verdict, ledger/journal.jsonl:{line}"
    )
    if recovery.stood_t is not None:
        yield Moment(recovery.stood_t, f"last step completed{step}", told, by)
    yield from witnesses.last_steps
    for number, each in enumerate(recovery.recoveries):
        if number:
            yield Moment(each.interruption.t, "last step before it stood still again", "the accounts", by)
        if each.first_step_t is not None:
            yield Moment(each.first_step_t, "first step of the new attempt completed", "the accounts", by)
        if each.over_t is not None:
            yield Moment(each.over_t, "the step once reached was passed", "the accounts", by)


def _parts(it: _Material) -> Iterable[Part]:
    yield Part("Impact", tuple(it.loss.told(it.split)), _back(it))
    yield Part("Root cause", tuple(root_cause(it.incident, it.verdict)), ("why it could happen",))
    yield Part("Detection", tuple(it.detection.told()) or ("not known: no record says since when",))
    yield Part("Recovery", tuple(_recovery(it)))
    wrong = tuple(does_not_add_up(it.split, it.step_time_s))
    if wrong:
        yield Part("What does not add up", wrong)
    good = tuple(went_well(it.detection, it.incident, it.split))
    yield Part("What went well", good, ("what else",))
    yield Part("What to improve", it.improvements, ("what else",))
    yield Part("Actions", (), ("who, until when, what",))


def _back(it: _Material) -> tuple[str, ...]:
    if it.split.whole_s is not None or it.incident.went_on_t(it.split.stood_t) is not None:
        return ()
    return ("minutes until the run was back at its step, and steps done again",)


def _recovery(it: _Material) -> Iterable[str]:
    if it.split.is_of_several:
        yield f"of the first of {len(it.split.recoveries)} interruptions:"
    went_on = it.incident.went_on_t(it.split.stood_t) is not None
    unknown = "none: steps came again by themselves" if went_on else "not known"
    for name in PARTS:
        length_s = it.split.parts_s.get(name)
        yield f"{name}: {unknown if length_s is None else duration(length_s)}"
    for number, each in enumerate(it.split.recoveries[1:], start=2):
        at = f"at step {each.interruption.step}" if each.interruption.step is not None else "before a step"
        yield f"interruption {number} in the same incident: {at}, {_why(each)}{_back_after(each)}"


def _why(each: Recovery) -> str:
    cause = each.interruption.cause
    return "by what is unknown" if cause == "unknown" else cause


def _back_after(each: Recovery) -> str:
    if each.over_t is None:
        return "; no record says that the step once reached was passed"
    return f"; past it again after {duration(each.over_t - each.interruption.t)}"


def _not_told(
    incident: Incident, notes: Notes, witnesses: Witnesses, accounts: Accounts | None
) -> Iterable[str]:
    if count := incident.left_out:
        yield f"{count} line{'s' * (count > 1)} of the journal could not be read; not in this draft."
    if count := incident.not_understood:
        yield f"{count} value{'s' * (count > 1)} in the journal made no sense; not in this draft."
    if count := notes.unreadable:
        yield f"{count} file{'s' * (count > 1)} in notes/ could not be read; not in this draft."
    yield from (f"Not read: {it}." for it in witnesses.not_read)
    yield from (f"The accounts did not observe: {it}." for it in (accounts.not_observed if accounts else ()))
