"""How is a verb asked for on many hosts? The options that `stacks` and `dump` share."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from train_ledger.cli.leave import BadInputError

if TYPE_CHECKING:
    from train_ledger.ops.hosts.launch import Launcher
    from train_ledger.run_dir import RunDir

__all__ = [
    "AtOnce",
    "Hosts",
    "LauncherName",
    "Program",
    "hosts_named",
    "launcher_named",
    "program_named",
    "want_launcher",
]

LauncherName: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--launcher",
        metavar="HOW",
        help="On all hosts: ssh, srun, kubectl or pdsh, or a template with {host} and {command} "
        "(one text for a shell) or {argv} (its words).",
        show_default=False,
    ),
]
Hosts: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="HOSTS",
        help="With --launcher: a,b,node[01-16] or @FILE with one a line; those of RUN's ranks if none.",
        show_default=False,
    ),
]
AtOnce: TypeAlias = Annotated[
    int, typer.Option(min=1, max=1024, metavar="N", help="With --launcher: hosts asked at a time.")
]
Program: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="COMMAND",
        help="With --launcher: what train-ledger is called there; this Python's if none.",
        show_default=False,
    ),
]


def want_launcher(launcher: str | None, given: Mapping[str, object]) -> None:
    """Raises BadInputError for an option of a launcher where there is none: it would change nothing."""
    named = [name for name, value in given.items() if value is not None]
    if launcher is None and named:
        raise BadInputError(f"{named[0]} says how other hosts are asked: say --launcher, too")


def launcher_named(text: str) -> Launcher:
    """Raises LauncherError for what is none."""
    from train_ledger.ops.hosts.launch import Launcher

    return Launcher.of(text)


def hosts_named(text: str | None, run_dir: RunDir | None) -> tuple[str, ...]:
    """The hosts that were named, else those of the run; raises HostsError or BadInputError."""
    from train_ledger.cli.here import hosts_of
    from train_ledger.ops.hosts import hosts_in, is_host

    if text is not None:
        return hosts_in(text)
    if run_dir is None:
        raise BadInputError("--launcher needs --hosts, or a run directory whose ranks say where they run")
    hosts = hosts_of(run_dir)
    if bad := [host for host in hosts if not is_host(host)]:
        raise BadInputError(f"{run_dir.path}: {bad[0]!r} is no name of a host; name them with --hosts")
    return hosts


def program_named(text: str | None, run: Path | None, verb: str) -> list[str]:
    """The first words of the command for the other side, RUN's whole path with them.

    Raises BadInputError for a program that is no words of a shell.
    """
    try:
        program = shlex.split(text) if text else [sys.executable, "-m", "train_ledger"]
    except ValueError as error:
        raise BadInputError(f"--program {text!r}: {error}") from error
    return [*program, verb, *([str(run.absolute())] if run else [])]
