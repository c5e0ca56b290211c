"""How is what one log tells summed up for a person?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from train_ledger.render import duration, moment, ranks_in_brief
from train_ledger.render.report import Section, pairs
from train_ledger.sources import Attempt, Evaluated, FileRead

__all__ = ["file_in_brief", "file_in_full"]

_MOST_ATTEMPTS = 8
_FULL = 100.0
_ASKED_FOR = ("loss", "grad_norm", "lr", "step_time_s")
_THROUGHPUT = frozenset({"tps", "tflops", "mfu"})
"""Any of them tells how fast the training is."""


def file_in_full(file: FileRead) -> list[Section]:
    """All that is known of a file, under its name."""
    formats = ", ".join(f"{it.name} ({_counts(it.steps, it.events, it.faults)})" for it in file.formats)
    attempts = list(file.progress.attempts.values())
    shown = _speaking(attempts, "loss")
    return pairs(
        file.path,
        [
            ("format", formats),
            ("lines", _lines(file)),
            ("ranks", _ranks(attempts)),
            *((f"attempt {it.attempt}", _attempt(it)) for it in shown[:_MOST_ATTEMPTS]),
            ("", f"and {len(shown) - _MOST_ATTEMPTS} more attempts" if len(shown) > _MOST_ATTEMPTS else None),
            ("loss", _loss(shown)),
            ("val_loss", _evaluated(file.progress.evaluated)),
            ("skipped", _skipped(file)),
            ("MFU", _mfu(attempts)),
            ("last log", _last_log(file)),
            ("went on", f"after {_exceptions(file.survived)}" if file.survived else None),
            ("damaged", _counted(file.damaged.items())),
            ("told again", _counted(file.repeated.items())),
            ("not seen", ", ".join(_not_seen(file))),
            ("not read", file.not_read),
        ],
    )


def file_in_brief(file: FileRead) -> str:
    """A file among many, in one line."""
    shown = _speaking(list(file.progress.attempts.values()), "loss")
    faults = sum(it.faults for it in file.formats)
    last = (
        f"{'' if len(shown) < 2 else f'{len(shown)} attempts, the last of '}{_steps(shown[-1])}"
        if shown
        else ""
    )
    loss, held_out, skipped = _loss(shown), _evaluated(file.progress.evaluated), _skipped(file)
    told = (
        ", ".join(it.name for it in file.formats),
        last,
        f"loss {loss}" if loss else "",
        f"val_loss {held_out}" if held_out else "",
        f"skipped {skipped}" if skipped else "",
        f"{faults:,} fault{'' if faults == 1 else 's'}" if faults else "",
        f"not read: {file.not_read}" if file.not_read else "",
    )
    return f"{file.path}: {'; '.join(filter(None, told))}"


def _lines(file: FileRead) -> str:
    return f"{file.lines:,}; {file.of_no_format:,} of them tell nothing" if file.lines else ""


def _ranks(attempts: Sequence[Attempt]) -> str:
    """Whose steps are told; what rank 0 says with others that give no rank is told as of none."""
    ranks = {it.rank for it in attempts if it.rank is not None}
    also = ", and lines that name none" if len(ranks) < len({it.rank for it in attempts}) else ""
    return ranks_in_brief(ranks) + also if ranks else ""


def _not_seen(file: FileRead) -> Iterator[str]:
    """What one asks for first, and what none of the file's formats told though it can."""
    told = {name for it in file.formats for name in it.fields}
    missing = {name for it in file.formats for name in it.not_seen} - told
    yield from (name for name in _ASKED_FOR if name in missing)
    if missing & _THROUGHPUT and not told & _THROUGHPUT and not any("per_second" in name for name in told):
        yield "throughput"


def _counts(steps: int, events: int, faults: int) -> str:
    named = ((steps, "step"), (events, "event"), (faults, "fault"))
    return ", ".join(f"{it:,} {name}{'' if it == 1 else 's'}" for it, name in named if it)


def _exceptions(count: int) -> str:
    return "an exception that is no trouble" if count == 1 else f"{count:,} exceptions that are no trouble"


def _counted(items: Iterable[tuple[str, int]]) -> str:
    return ", ".join(f"{times:,} × {what}" for what, times in items if times)


def _speaking(attempts: Sequence[Attempt], field: str) -> list[Attempt]:
    """The attempts of the rank that tells the field, else of the first."""
    ranks = sorted({it.rank for it in attempts}, key=lambda it: -1 if it is None else it)
    telling = [it.rank for it in attempts if field in it.last]
    rank = telling[0] if telling else ranks[0] if ranks else None
    return [it for it in attempts if it.rank == rank]


def _attempt(it: Attempt) -> str:
    told = [_steps(it)]
    if it.redone:
        told.append(f"{it.redone} of them done again")
    if it.first_t is not None and it.last_t is not None:
        told.append(_span(it.first_t, it.last_t))
    if it.outside_steps_s is not None and it.outside_steps_s >= 1.0:
        told.append(f"{duration(it.outside_steps_s)} outside its steps")
    if it.tokens_per_s is not None:
        told.append(f"{it.tokens_per_s:,.0f} tokens/s")
    return ", ".join(told)


def _steps(it: Attempt) -> str:
    return f"steps {it.first_step}–{it.last_step}" if it.lines > 1 else f"step {it.first_step}"


def _span(first_t: float, last_t: float) -> str:
    """From when to when; the day stands once where it is one."""
    first, last = moment(first_t), moment(last_t)
    if first == last:
        return first
    day, _, clock = last.partition(" ")
    return f"{first.removesuffix(' UTC')} to {clock}" if first.startswith(f"{day} ") else f"{first} to {last}"


def _loss(attempts: Sequence[Attempt]) -> str | None:
    told = [it for it in attempts if "loss" in it.first]
    if not told:
        return None
    first, last = told[0].first["loss"], told[-1].last["loss"]
    return f"{first:g} at first, {last:g} at last" if len(told) > 1 or told[0].lines > 1 else f"{first:g}"


def _evaluated(it: Evaluated | None) -> str | None:
    """The loss of the evaluations."""
    if it is None:
        return None
    if it.times == 1:
        return f"{it.first:g}"
    least = f", {it.least:g} at least" if it.least is not None and it.least < min(it.first, it.last) else ""
    return f"{it.first:g} at first, {it.last:g} at last{least}"


def _skipped(file: FileRead) -> str:
    """Steps whose gradients were not finite: by the trainer's own count, and by its lines of each."""
    attempts = _speaking(list(file.progress.attempts.values()), "skipped")
    counted = [(it.attempt, it.last.get("skipped", 0.0)) for it in attempts]
    some = [(attempt, count) for attempt, count in counted if count]
    told = [
        f"{count:,.0f} step{'' if count == 1 else 's'}{f' in attempt {attempt}' if len(counted) > 1 else ''}"
        for attempt, count in some[:_MOST_ATTEMPTS]
    ]
    if overflows := max(file.progress.overflows.values(), default=0):
        told.append(f"{overflows:,} overflow{'' if overflows == 1 else 's'} told")
    return ", ".join(told)


def _mfu(attempts: Sequence[Attempt]) -> str | None:
    most = max((it.mfu_most for it in attempts if it.mfu_most is not None), default=None)
    if most is None:
        return None
    wrong = ": over 100, so the peak or the model's figures behind it are wrong" if most > _FULL else ""
    return f"{most:g} % at most{wrong}"


def _last_log(file: FileRead) -> str | None:
    if file.last_t is None:
        return None
    rank, t = min(file.last_log_t.items(), key=lambda it: it[1], default=(0, file.last_t))
    behind_s = file.last_t - t
    late = f"; rank {rank} {duration(behind_s)} before" if len(file.last_log_t) > 1 and behind_s >= 1 else ""
    return f"{moment(file.last_t)}{late}"
