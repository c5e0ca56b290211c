"""`train-ledger read`: what does this log say, whatever wrote it?"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from train_ledger.answer import ExitCode
from train_ledger.cli.leave import BadInputError, complain
from train_ledger.cli.progress import end_bar

if TYPE_CHECKING:
    from train_ledger.facts import Fact
    from train_ledger.sources import FactReading

__all__ = ["read"]


class Kind(StrEnum):
    """The kinds of fact that `--only` takes."""

    step = "step"
    event = "event"
    fault = "fault"


def read(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE",
            help="Logs, folders of them or a run directory; - is the standard input.",
            readable=False,
        ),
    ],
    only: Annotated[
        Kind | None,
        typer.Option(help="With --json: facts of this kind alone.", show_default=False),
    ] = None,
    fields: Annotated[
        str,
        typer.Option(
            metavar="NAME,…", help="With --json: of what a fact tells, these alone.", show_default=False
        ),
    ] = "",
    json: Annotated[bool, typer.Option("--json", help="One fact a line, each as a JSON object.")] = False,
) -> int:
    """Say what logs of any known format tell.

    Which format they are is recognised: Megatron-LM, DeepSpeed, torchtitan, Hugging Face, Lightning's CSV,
    nanoGPT and its kin, a loop's own "step 10 loss 2.31", torchrun, Slurm, the NCCL watchdog, the kernel log,
    py-spy, and our own signal files. Packed files (.gz) are read as they are. Without --json: a summary, the
    troubles first, then the files, one line each where they are more than ten. Where a file cannot be read
    and the others tell no trouble, the exit status is 3.

    \b
    Example:
      train-ledger read train.log
      train-ledger read runs/r42/logs --json --only fault
      kubectl logs trainer-0 | train-ledger read - --json --only step --fields loss,grad_norm
    """
    from train_ledger.cli.output import show_report
    from train_ledger.sources import read_facts

    _check(files)
    if not json and (only or fields):
        raise BadInputError("--only and --fields choose among facts: say --json, too")
    reading = read_facts(files)
    if json:
        wanted = frozenset(name.strip() for name in fields.split(",") if name.strip())
        _print(reading, only, wanted, at_once="-" in map(str, files))
        _complain_of_unread(reading)
    else:
        from train_ledger.cli.read_shown import report_of_reading

        for _ in reading:
            pass
        show_report(report_of_reading(reading, files))
    return _status(reading)


def _check(files: Iterable[Path]) -> None:
    for file in files:
        if str(file) != "-" and not file.exists():
            raise BadInputError(f"{file}: there is no such file or folder")


def _print(facts: Iterable[Fact], only: Kind | None, fields: frozenset[str], *, at_once: bool) -> None:
    from train_ledger.facts import Event, Fault, Step
    from train_ledger.render import OF_EVERY_FACT, fact_line

    kinds: dict[Kind, type[Fact]] = {Kind.step: Step, Kind.event: Event, Kind.fault: Fault}
    untold = set(fields) - OF_EVERY_FACT
    end_bar()
    for fact in facts:
        if only is None or isinstance(fact, kinds[only]):
            untold.difference_update(fact.values if isinstance(fact, Step) else fact.details)
            print(fact_line(fact, fields or None), flush=at_once)
    if untold:
        complain(f"--fields: no fact tells {', '.join(sorted(untold))}")


def _complain_of_unread(reading: FactReading) -> None:
    for file in reading.files:
        if file.not_read:
            complain(f"{file.path}: {file.not_read}")


def _status(reading: FactReading) -> ExitCode:
    if reading.incidents.all:
        return ExitCode.TROUBLE
    unread = sum(file.not_read is not None for file in reading.files)
    if unread and unread == len(reading.files):
        return ExitCode.BAD_INPUT
    told = any(seen.steps for file in reading.files for seen in file.formats)
    return ExitCode.NOTHING_WRONG if told and not unread else ExitCode.CANNOT_TELL
