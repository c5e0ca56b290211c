"""`train-ledger hang`: who did not come?"""

from __future__ import annotations

import dataclasses
import os
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from train_ledger.cli.leave import BadInputError
from train_ledger.cli.options import Html, Json

if TYPE_CHECKING:
    from train_ledger.config import Config
    from train_ledger.hang import Examination, RankKnowledge
    from train_ledger.run_dir import RunDir

__all__ = ["hang"]


@dataclass(frozen=True, slots=True)
class _Given:
    """What is to be read: dumps, the run that they belong to, logs, or several of these."""

    dumps: Sequence[Path]
    stacks: Path | None
    run: RunDir | None
    logs: Path | None = None

    @property
    def title(self) -> str:
        return ", ".join(map(str, self.dumps)) or str(self.run.path if self.run else self.logs)


def hang(
    dumps: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="DUMPS",
            help="Flight Recorder dumps, folders or tars of them; those of --run if none.",
            show_default=False,
            readable=False,
        ),
    ] = None,
    stacks: Annotated[
        Path | None,
        typer.Option(
            metavar="PATH", help="Folder or file of stacks; the folder of --run if none.", show_default=False
        ),
    ] = None,
    logs: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Folder of logs: torchrun's --log-dir, or any; kernel logs too. Those of --run if none.",
            show_default=False,
        ),
    ] = None,
    run: Annotated[
        Path | None,
        typer.Option(metavar="RUN", help="Run directory: what is known of its ranks.", show_default=False),
    ] = None,
    entries: Annotated[
        bool, typer.Option("--entries", help="List what the ranks recorded, entry by entry, instead.")
    ] = False,
    ranks: Annotated[
        str,
        typer.Option(metavar="RANKS", help="With --entries: of these ranks, like 5,7-9.", show_default=False),
    ] = "",
    groups: Annotated[
        str,
        typer.Option(
            metavar="NAME,…",
            help="With --entries: of groups of these names or descriptions.",
            show_default=False,
        ),
    ] = "",
    last: Annotated[
        int, typer.Option(min=0, metavar="N", help="With --entries: the last N of each rank; 0 is all.")
    ] = 20,
    json: Json = False,
    html: Html = None,
) -> int:
    """Say which rank hung the job, and where.

    At which collective, in which group, where in its code it stands, and who waits for it. Reads Flight
    Recorder dumps (pickles, safely, and JSON) of NCCL and gloo; runs no code from them.

    \b
    Example:
      train-ledger hang runs/r42/comm_traces --stacks runs/r42/stacks
      train-ledger hang --logs /path/to/torchrun/logs
      train-ledger hang --run runs/r42 --json
      train-ledger hang runs/r42 --entries --ranks 5,7-9 --groups default_pg
    """
    from train_ledger.cli.output import answered

    given = _given(dumps or [], stacks, run, logs)
    if entries:
        return _entries(given, ranks, groups, last, json=json, html=html)
    if ranks or groups:
        raise BadInputError("--ranks and --groups choose entries: say --entries, too")
    examined = _examined(given)
    answer = examined.answer
    return answered(answer, json=json, html=html, verb="hang", title=given.title, picture=examined.picture)


def _entries(given: _Given, ranks: str, groups: str, last: int, *, json: bool, html: Path | None) -> int:
    from train_ledger import config
    from train_ledger.cli.entries import Chosen, rank_list, show_entries

    if html is not None:
        raise BadInputError("--html writes the answer, and --entries lists entries: say one of them")
    names = tuple(name.strip() for name in groups.split(",") if name.strip())
    chosen = Chosen(rank_list(ranks) if ranks else None, names, last)
    settings = config.load(given.run)
    dumps = given.dumps
    if given.run is not None and not dumps:
        from train_ledger.ops import observe

        state, _ = observe(given.run, settings)
        dumps = _with_those_of_the_run(given, given.run, state.attempt).dumps
    return show_entries(dumps, chosen, settings.limits, json=json)


def _given(dumps: Sequence[Path], stacks: Path | None, run: Path | None, logs: Path | None) -> _Given:
    """What is there of what was named; a run directory in the place of dumps is taken for --run."""
    from train_ledger.run_dir import RunDir

    if run is None and len(dumps) == 1 and (dumps[0] / "comm_traces").is_dir():
        run, dumps = dumps[0], []
    if not dumps and run is None and logs is None:
        raise BadInputError(_nothing_to_judge(stacks))
    for path in [*dumps, *(it for it in (stacks, logs) if it)]:
        if not path.exists():
            raise BadInputError(f"{path}: there is no such file or folder")
    if dumps and logs is None and all(map(_is_empty, dumps)):
        raise BadInputError(
            f"{dumps[0]}: is empty; were the dumps written elsewhere (TORCH_FR_DUMP_TEMP_FILE)?"
        )
    return _Given(dumps, stacks, RunDir.existing(run) if run else None, logs)


def _is_empty(path: Path) -> bool:
    """A folder in which nothing is; not one that may not be looked into, which is named as not read."""
    return path.is_dir() and os.access(path, os.R_OK) and not any(path.iterdir())


def _nothing_to_judge(stacks: Path | None) -> str:
    wanted = "name Flight Recorder dumps or a folder of them, a run directory with --run, or logs with --logs"
    if stacks is None:
        return f"{wanted}; train-ledger stacks shows where the ranks of this host stand"
    return f"{wanted}; stacks alone are shown by train-ledger stacks --from {shlex.quote(str(stacks))}"


def _examined(given: _Given) -> Examination:
    from train_ledger import config

    settings = config.load(given.run)
    if given.run is not None:
        return _of_run(given, given.run, settings)
    if given.logs is None:
        return _of_files(given, settings)
    from train_ledger.ops.evidence.of_logs import read_logs

    told = read_logs([given.logs])
    return _with(_of_files(given, settings, told.known), told.not_observed)


def _of_run(given: _Given, run: RunDir, settings: Config) -> Examination:
    from train_ledger.hang import reproduced_by
    from train_ledger.ops import evidence, observe

    state, not_read = observe(run, settings)
    logs = [given.logs] if given.logs else []
    if given.dumps or given.stacks:
        whole = _with_those_of_the_run(given, run, state.attempt)
        told = evidence.logs_about(run, state, logs=logs)
        found = _of_files(whole, settings, told.known, state.world_size)
        examined = _with(found, (*told.not_observed, *not_read))
    else:
        gathered = evidence.gather(run, settings, state, logs=logs)
        examined = _with(gathered.examination, (*gathered.not_observed, *not_read))
    command = run.read_run().get("restart_command")
    answer = reproduced_by(examined.answer, command if isinstance(command, str) else None)
    return dataclasses.replace(examined, answer=answer)


def _with(examined: Examination, not_observed: Sequence[str]) -> Examination:
    answer = examined.answer
    said = tuple(dict.fromkeys((*answer.not_observed, *not_observed)))
    return dataclasses.replace(examined, answer=dataclasses.replace(answer, not_observed=said))


def _with_those_of_the_run(given: _Given, run: RunDir, attempt: int) -> _Given:
    """What was not named is taken from the run's latest attempt."""
    traces, stacks = run.comm_traces(attempt), run.stacks(attempt)
    written = sorted(it for it in traces.iterdir() if it.is_file()) if traces.is_dir() else []
    return dataclasses.replace(
        given,
        dumps=given.dumps or written,
        stacks=given.stacks or (stacks if stacks.is_dir() else None),
    )


def _of_files(
    given: _Given,
    settings: Config,
    known: Mapping[int, RankKnowledge] | None = None,
    world_size: int | None = None,
) -> Examination:
    from train_ledger.hang import examine
    from train_ledger.hang import stacks as room

    stacks, unread = room.read([given.stacks]) if given.stacks else ({}, [])
    examined = examine(
        list(given.dumps), stacks=stacks, known=known or {}, world_size=world_size, limits=settings.limits
    )
    answer = dataclasses.replace(examined.answer, unreadable=(*examined.answer.unreadable, *unread))
    return dataclasses.replace(examined, answer=answer)
