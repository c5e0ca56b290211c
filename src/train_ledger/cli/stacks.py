"""`train-ledger stacks`: who stands where?"""

from __future__ import annotations

import shlex
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from train_ledger.answer import ExitCode, NextCommand, Unreadable
from train_ledger.cli.launching import AtOnce, Hosts, LauncherName, Program
from train_ledger.cli.leave import BadInputError
from train_ledger.cli.options import Json, seconds

if TYPE_CHECKING:
    from train_ledger.cli.stacks_shown import Taken
    from train_ledger.sources.processes.rank_processes import JobHere

__all__ = ["job_here", "stacks"]


_LARGEST_PID = 1 << 22
_LAUNCHER_SLACK_S = 10.0
"""What a launcher and an interpreter may take to start, beside the stacks themselves."""


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
    source: Annotated[
        list[Path] | None,
        typer.Option(
            "--from",
            metavar="PATH",
            help="Read stacks that were taken before: a folder or a file; may be repeated.",
            show_default=False,
        ),
    ] = None,
    job: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Of several jobs here the one with this run id, MASTER_PORT or Slurm number.",
            show_default=False,
        ),
    ] = None,
    save: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Keep the stacks that are taken here.", show_default=False),
    ] = None,
    native: Annotated[bool, typer.Option("--native", help="C and C++ frames, too (slower).")] = False,
    timeout_s: Annotated[
        float,
        typer.Option(parser=seconds, metavar="SECONDS", help="Seconds for all stacks of a host together."),
    ] = 30.0,
    launcher: LauncherName = None,
    hosts: Hosts = None,
    at_once: AtOnce = 64,
    program: Program = None,
    full: Annotated[
        bool, typer.Option("--full", help="With --json: each rank's threads, too, on one line for --from.")
    ] = False,
    json: Json = False,
) -> int:
    """Show where every rank stands, smallest groups first.

    Takes the Python stacks of all ranks of this host – those of RUN, else every process that was started with
    RANK in its environment – with py-spy, which pauses each for some milliseconds and needs nothing from it.
    Equal ones are merged, and a tree shows where the ways part.

    \b
    Example:
      train-ledger stacks
      train-ledger stacks runs/r42 --native
      train-ledger stacks runs/r42 --launcher ssh
      train-ledger stacks --launcher 'srun --overlap -w {host} {argv}' --hosts 'node[01-16]'
      train-ledger stacks --from runs/r42/stacks --json
    """
    from train_ledger.cli.launching import want_launcher
    from train_ledger.cli.stacks_shown import show_stacks

    if sum(given is not None and given != [] for given in (run, pid, source)) > 1:
        raise BadInputError("name one of: a run directory, processes with --pid, or stacks with --from")
    want_launcher(launcher, {"--hosts": hosts, "--program": program})
    if full and not json:
        raise BadInputError("--full adds to the JSON: say --json, too")
    if launcher is not None:
        if pid or source:
            raise BadInputError(
                "--launcher asks hosts for their ranks; it goes with neither --pid nor --from"
            )
        command = _remote(program, run, job, timeout_s, native)
        # Whose frames of C could not be had is asked once more without them.
        within_s = (2 if native else 1) * timeout_s + _LAUNCHER_SLACK_S
        taken = _of_hosts(launcher, hosts, run, command, save, within_s, at_once)
    elif source:
        taken = _read(source)
    elif run is not None:
        taken = _of_run(run, save, timeout_s, native)
    elif pid:
        taken = _taken({it: it for it in pid}, "pid", save, timeout_s, native)
    else:
        taken = _of_job(job, save, timeout_s, native)
    show_stacks(taken, json=json, full=full)
    return ExitCode.NOTHING_WRONG if taken.found else ExitCode.CANNOT_TELL


def _read(paths: list[Path]) -> Taken:
    from train_ledger.cli.stacks_shown import Taken
    from train_ledger.hang import stacks as room

    for path in paths:
        if not path.exists():
            raise BadInputError(f"{path}: there is no such file or folder")
    found, unread = room.read(paths)
    if not found:
        why = f"{unread[0].file}: {unread[0].why}" if unread else "it is empty"
        raise BadInputError(f"{paths[0]}: no stack could be read; {why}")
    return Taken(found, tuple(unread))


def _of_run(run: Path, save: Path | None, timeout_s: float, native: bool) -> Taken:
    from train_ledger import config
    from train_ledger.cli.here import pids_here
    from train_ledger.run_dir import RunDir

    run_dir = RunDir.existing(run)
    config.load(run_dir)
    run_dir.read_run()
    here = pids_here(run_dir)
    taken = _taken(here.pids, "rank", save, timeout_s, native)
    return taken.with_more(unread=here.unread, next=(_diagnose(run),))


def _diagnose(run: Path) -> NextCommand:
    return NextCommand(
        "what the stacks say together with the Flight Recorder",
        f"train-ledger diagnose {shlex.quote(str(run))}",
    )


def _of_job(name: str | None, save: Path | None, timeout_s: float, native: bool) -> Taken:
    """The ranks of this host's one job, by their environment."""
    import dataclasses
    import socket

    from train_ledger.cli.stacks_shown import Taken

    here = job_here(name)
    if here is None:
        why = "no process of this user has RANK in its environment; name a run directory, or a --pid"
        return Taken({}, (Unreadable(socket.gethostname(), why),))
    pids = {rank: it.pid for rank, it in here.ranks.items()}
    taken = _taken(pids, "rank", save, timeout_s, native)
    unclear = (
        Unreadable(f"rank {rank}", f"processes {', '.join(map(str, some))} say to be it; name one with --pid")
        for rank, some in here.unclear.items()
    )
    return taken.with_more(unread=unclear, job=dataclasses.asdict(here.job))


def job_here(name: str | None) -> JobHere | None:
    """The job that was named, or the only one; None where there is none.

    Raises BadInputError where it is not clear which is meant.
    """
    from train_ledger.sources.processes.rank_processes import jobs_here

    jobs = jobs_here()
    named = [it for it in jobs if name is None or it.job.is_called(name)]
    if len(named) == 1 or not jobs:
        return named[0] if named else None
    listed = "; ".join(f"{it.job}: {len(it.ranks) + len(it.unclear)} ranks" for it in jobs[:8])
    if not named:
        raise BadInputError(f"no job here is called {name!r}; there are {listed}")
    raise BadInputError(f"{len(jobs)} jobs run here, and are not mixed; name one with --job – {listed}")


def _taken(pids: Mapping[int, int], member: str, save: Path | None, timeout_s: float, native: bool) -> Taken:
    from train_ledger.cli.stacks_shown import Taken
    from train_ledger.hang import stacks as room

    with tempfile.TemporaryDirectory(prefix="train-ledger-stacks-") as passing:
        folder = save or Path(passing)
        problems = room.take(pids, folder, timeout_s=timeout_s, native=native)
        without_c: dict[int, str] = {}
        if native and problems:
            again = room.take({it: pids[it] for it in problems}, folder, timeout_s=timeout_s)
            without_c = {it: f"without frames of C: {why}" for it, why in problems.items() if it not in again}
            problems = again
        found, unread = room.read([folder / f"rank_{it}.json" for it in pids if it not in problems])
    failed = [Unreadable(_process(it, pids[it]), why) for it, why in {**without_c, **problems}.items()]
    return Taken(found, (*failed, *unread), member)


def _process(rank: int, pid: int) -> str:
    return f"pid {pid}" if rank == pid else f"rank {rank} (pid {pid})"


def _remote(
    program: str | None, run: Path | None, job: str | None, timeout_s: float, native: bool
) -> list[str]:
    from train_ledger.cli.launching import program_named

    options = ["--json", "--full", "--timeout-s", f"{timeout_s:g}"]
    options += ["--native"] if native else []
    options += ["--job", job] if job else []
    return [*program_named(program, run, "stacks"), *options]


def _of_hosts(
    launcher: str,
    hosts: str | None,
    run: Path | None,
    command: list[str],
    save: Path | None,
    within_s: float,
    at_once: int,
) -> Taken:
    from train_ledger.cli.launching import hosts_named, launcher_named
    from train_ledger.cli.stacks_shown import Taken
    from train_ledger.ops.hosts.stacks import of_hosts
    from train_ledger.run_dir import RunDir

    how = launcher_named(launcher)
    named = hosts_named(hosts, RunDir.existing(run) if run else None)
    told = of_hosts(how, named, command, save=save, timeout_s=within_s, at_once=at_once)
    return Taken(told.found, told.unread, next=(_diagnose(run),) if run else (), job=told.job)
