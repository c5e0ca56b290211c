"""`train-ledger stacks`: who stands where?"""

from __future__ import annotations

import dataclasses
import shlex
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from train_ledger.answer import ExitCode, NextCommand, Unreadable
from train_ledger.cli.leave import BadInputError
from train_ledger.cli.options import Json, seconds

if TYPE_CHECKING:
    from train_ledger.hang.stacks import RankStack, StackGroup

__all__ = ["stacks"]


_LARGEST_PID = 1 << 22


@dataclass(frozen=True, slots=True)
class _Merged:
    """Groups of equal stacks, what was not read, and what a member of a group is called.

    `communicating` are the members that wait in a collective by their stacks.
    """

    groups: Sequence[StackGroup]
    unread: Sequence[Unreadable]
    communicating: frozenset[int] = frozenset()
    member: str = "rank"
    next: tuple[NextCommand, ...] = ()


def stacks(
    run: Annotated[
        Path | None,
        typer.Argument(metavar="RUN", help="Run directory: its ranks on this host.", show_default=False),
    ] = None,
    pid: Annotated[
        list[int] | None,
        typer.Option(
            min=1,
            max=_LARGEST_PID,
            metavar="PID",
            help="This process instead; may be repeated.",
            show_default=False,
        ),
    ] = None,
    folder: Annotated[
        Path | None,
        typer.Option(
            "--from", metavar="DIR", help="Read stacks that were taken before instead.", show_default=False
        ),
    ] = None,
    save: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Keep the stacks that are taken here.", show_default=False),
    ] = None,
    native: Annotated[bool, typer.Option("--native", help="C and C++ frames, too (slower).")] = False,
    timeout_s: Annotated[
        float,
        typer.Option(parser=seconds, metavar="SECONDS", help="Seconds for all stacks together."),
    ] = 30.0,
    json: Json = False,
) -> int:
    """Show where every rank stands, smallest groups first.

    Takes the Python stacks of all ranks of this host with py-spy, which pauses each for some milliseconds and
    needs nothing from it, and merges those that are equal.

    \b
    Example:
      train-ledger stacks runs/r42
      train-ledger stacks --pid 4711 --pid 4712
      train-ledger stacks --from runs/r42/stacks --json
    """
    if sum(given is not None and given != [] for given in (run, pid, folder)) != 1:
        raise BadInputError("name one of: a run directory, processes with --pid, or a folder with --from")
    if folder is not None:
        merged = _read(folder)
    elif run is not None:
        merged = _of_run(run, save, timeout_s, native)
    else:
        merged = _taken({it: it for it in pid or ()}, "pid", save, timeout_s, native)
    _show(merged, json)
    return ExitCode.NOTHING_WRONG if merged.groups else ExitCode.CANNOT_TELL


def _read(folder: Path) -> _Merged:
    from train_ledger.hang import stacks as room

    if not folder.exists():
        raise BadInputError(f"{folder}: there is no such file or folder")
    found, unread = room.read([folder])
    if not found:
        why = f"{unread[0].file}: {unread[0].why}" if unread else "it is empty"
        raise BadInputError(f"{folder}: no stack could be read; {why}")
    return _Merged(room.merge(found), unread, _communicating(found))


def _of_run(run: Path, save: Path | None, timeout_s: float, native: bool) -> _Merged:
    from train_ledger import config
    from train_ledger.cli.here import pids_here
    from train_ledger.run_dir import RunDir

    run_dir = RunDir.existing(run)
    config.load(run_dir)
    run_dir.read_run()
    here = pids_here(run_dir)
    merged = _taken(here.pids, "rank", save, timeout_s, native)
    diagnose = NextCommand(
        "what the stacks say together with the Flight Recorder",
        f"train-ledger diagnose {shlex.quote(str(run))}",
    )
    return dataclasses.replace(merged, unread=[*merged.unread, *here.unread], next=(diagnose,))


def _taken(
    pids: Mapping[int, int], member: str, save: Path | None, timeout_s: float, native: bool
) -> _Merged:
    from train_ledger.hang import stacks as room

    with tempfile.TemporaryDirectory(prefix="train-ledger-stacks-") as passing:
        folder = save or Path(passing)
        problems = room.take(pids, folder, timeout_s=timeout_s, native=native)
        found, unread = room.read([folder / f"rank_{it}.json" for it in pids if it not in problems])
    failed = [Unreadable(_process(it, pids[it]), why) for it, why in problems.items()]
    return _Merged(room.merge(found), [*failed, *unread], _communicating(found), member)


def _communicating(found: Mapping[int, RankStack]) -> frozenset[int]:
    from train_ledger.hang import stacks as room

    return frozenset(rank for rank, stack in found.items() if room.stand_of(stack).where == "collective")


def _process(rank: int, pid: int) -> str:
    return f"pid {pid}" if rank == pid else f"rank {rank} (pid {pid})"


def _show(merged: _Merged, json: bool) -> None:
    from train_ledger import render
    from train_ledger.cli.output import show, show_report

    if json:
        groups = [
            {f"{merged.member}s": it.ranks, "thread": it.thread, "frames": it.frames} for it in merged.groups
        ]
        plain = {
            "groups": groups,
            "unreadable": [dataclasses.asdict(it) for it in merged.unread],
            "next": [dataclasses.asdict(it) for it in merged.next],
        }
        show(render.as_json(plain))
        return
    groups_shown = [
        render.StackGroup(
            it.ranks, it.frames, it.thread, in_collective=merged.communicating.issuperset(it.ranks)
        )
        for it in merged.groups
    ]
    show_report(
        render.report_of_stacks(groups_shown, member=merged.member, unread=merged.unread, next=merged.next)
    )
