"""How is what logs tell summed up for a person?"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from train_ledger.answer import NextCommand
from train_ledger.cli.read_trouble import cause_in_brief, incident_in_words
from train_ledger.render import Report, duration, moment, ranks_in_brief
from train_ledger.render.report import Section, commands, pairs, points
from train_ledger.sources import Attempt, FactReading, FileRead, Incident

__all__ = ["report_of_reading"]

_MOST_FILES = 20
_MOST_ATTEMPTS = 8
_FULL = 100.0


def report_of_reading(reading: FactReading, paths: Sequence[Path]) -> Report:
    """The summary of a reading that is complete; `paths` are as they were named."""
    incidents = reading.incidents.all
    telling = [file for file in reading.files if file.formats or file.not_read]
    sections = [section for file in telling[:_MOST_FILES] for section in _file(file)]
    return Report(
        _verdict(reading),
        "trouble" if incidents else "fine" if _steps(reading) else "unsure",
        (
            *sections,
            *points("trouble, as it was told", map(incident_in_words, incidents)),
            *points("not observed", _not_observed(reading, telling)),
            *commands(list(_next(incidents, paths))),
        ),
    )


def _verdict(reading: FactReading) -> str:
    incidents = reading.incidents.all
    files = f"{len(reading.files)} file{'' if len(reading.files) == 1 else 's'}"
    if incidents:
        others = len(incidents) - 1
        more = f", and {others} more kind{'' if others == 1 else 's'} of trouble" if others else ""
        return f"trouble in {files}: {cause_in_brief(incidents)}{more}"
    if not any(file.formats for file in reading.files):
        return f"cannot tell, because nothing of a known format stands in {files}"
    steps = _steps(reading)
    if not steps:
        return f"cannot tell: neither a step nor trouble is told in {files}"
    return f"nothing wrong in {files}: {_of_thousands(steps)} lines of steps, no trouble told"


def _steps(reading: FactReading) -> int:
    return sum(it.steps for file in reading.files for it in file.formats)


def _of_thousands(number: int) -> str:
    return f"{number:,}"


# -- one file


def _file(file: FileRead) -> list[Section]:
    formats = ", ".join(f"{it.name} ({_counts(it.steps, it.events, it.faults)})" for it in file.formats)
    attempts = list(file.progress.attempts.values())
    ranks = {it.rank for it in attempts if it.rank is not None}
    shown = _speaking(attempts)
    return pairs(
        file.path,
        [
            ("format", formats),
            (
                "lines",
                f"{_of_thousands(file.lines)}; {_of_thousands(file.of_no_format)} of them tell nothing"
                if file.lines
                else None,
            ),
            ("ranks", ranks_in_brief(ranks) if ranks else None),
            *((f"attempt {it.attempt}", _attempt(it)) for it in shown[:_MOST_ATTEMPTS]),
            ("", f"and {len(shown) - _MOST_ATTEMPTS} more attempts" if len(shown) > _MOST_ATTEMPTS else None),
            ("loss", _loss(shown)),
            ("MFU", _mfu(attempts)),
            ("last log", _last_log(file)),
            ("went on", f"after {_exceptions(file.survived)}" if file.survived else None),
            ("damaged", _counted(file.damaged.items())),
            ("told again", _counted(file.repeated.items())),
            (
                "not seen",
                ", ".join(dict.fromkeys(it for seen in file.formats for it in _not_seen(file, seen))),
            ),
            ("not read", file.not_read),
        ],
    )


def _not_seen(file: FileRead, seen: object) -> Iterator[str]:
    """What none of the file's formats told."""
    told = {name for it in file.formats for name in it.fields}
    yield from (name for it in file.formats if it is seen for name in it.not_seen if name not in told)


def _counts(steps: int, events: int, faults: int) -> str:
    named = ((steps, "step"), (events, "event"), (faults, "fault"))
    return ", ".join(f"{_of_thousands(it)} {name}{'' if it == 1 else 's'}" for it, name in named if it)


def _exceptions(count: int) -> str:
    return "an exception that is no trouble" if count == 1 else f"{count:,} exceptions that are no trouble"


def _counted(items: Iterable[tuple[str, int]]) -> str:
    return ", ".join(f"{_of_thousands(times)} × {what}" for what, times in items if times)


def _speaking(attempts: Sequence[Attempt]) -> list[Attempt]:
    """The attempts of the rank that tells the loss, else of the first."""
    ranks = sorted({it.rank for it in attempts}, key=lambda it: -1 if it is None else it)
    with_loss = [it.rank for it in attempts if "loss" in it.last]
    rank = with_loss[0] if with_loss else ranks[0] if ranks else None
    return [it for it in attempts if it.rank == rank]


def _attempt(it: Attempt) -> str:
    told = [f"steps {it.first_step}–{it.last_step}" if it.lines > 1 else f"step {it.first_step}"]
    if it.redone:
        told.append(f"{it.redone} of them done again")
    if it.first_t is not None and it.last_t is not None:
        told.append(_span(it.first_t, it.last_t))
    if it.outside_steps_s is not None and it.outside_steps_s >= 1.0:
        told.append(f"{duration(it.outside_steps_s)} outside its steps")
    if it.tokens_per_s is not None:
        told.append(f"{it.tokens_per_s:,.0f} tokens/s")
    return ", ".join(told)


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


# -- all files


def _not_observed(reading: FactReading, telling: Sequence[FileRead]) -> Iterator[str]:
    silent = [file for file in reading.files if not file.formats and not file.not_read]
    if len(silent) > 1 or (silent and telling):
        yield f"{len(silent)} files in which nothing of a known format stands, {silent[0].path} among them"
    if len(telling) > _MOST_FILES:
        yield f"{len(telling) - _MOST_FILES} more files were read, and are not shown here"
    if reading.incidents.left_out:
        yield f"{reading.incidents.left_out} faults beyond the first kinds of trouble"


def _next(incidents: Sequence[Incident], paths: Sequence[Path]) -> Iterator[NextCommand]:
    named = " ".join(shlex.quote(str(path)) for path in paths)
    codes = {it.first.fault for it in incidents}
    if "-" in map(str, paths):
        return
    runs = [path for path in paths if (path / "signals").is_dir()]
    if incidents and runs:
        run = shlex.quote(str(runs[0]))
        yield NextCommand("what is wrong, who is to blame, on what evidence", f"train-ledger diagnose {run}")
    elif codes & {"watchdog_timeout", "desync", "nccl_error"}:
        logs = shlex.quote(str(paths[0]))
        yield NextCommand("who did not come to the collective", f"train-ledger hang --logs {logs}")
    if incidents:
        yield NextCommand("all faults, one a line", f"train-ledger read {named} --json --only fault")
