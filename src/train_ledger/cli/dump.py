"""`train-ledger dump`: every rank's Flight Recorder, now, without ending the job."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from train_ledger.cli.launching import AtOnce, Hosts, LauncherName, Program
from train_ledger.cli.leave import BadInputError
from train_ledger.cli.options import Json, Run, seconds

if TYPE_CHECKING:
    from train_ledger.config import Config
    from train_ledger.ops.hosts.gathered import Gathered
    from train_ledger.run_dir import RunDir

__all__ = ["dump"]

_LAUNCHER_SLACK_S = 20.0
"""What a launcher, an interpreter and the way back may take, beside the dumps themselves."""


def dump(
    run: Run,
    job: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Where RUN knows no rank: of several jobs here this run id, MASTER_PORT or Slurm number.",
            show_default=False,
        ),
    ] = None,
    timeout_s: Annotated[
        float, typer.Option(parser=seconds, metavar="SECONDS", help="Seconds that ranks have to answer.")
    ] = 15.0,
    pipe_prefix: Annotated[
        str | None,
        typer.Option(
            metavar="PREFIX",
            help="TORCH_NCCL_DEBUG_INFO_PIPE_FILE of ranks without a monitor, if their environment hides it.",
            show_default=False,
        ),
    ] = None,
    dump_prefix: Annotated[
        str | None,
        typer.Option(
            metavar="PREFIX",
            help="TORCH_FR_DUMP_TEMP_FILE of these ranks, likewise.",
            show_default=False,
        ),
    ] = None,
    here: Annotated[bool, typer.Option("--here", help="Ask the ranks of this host alone.")] = False,
    launcher: LauncherName = None,
    hosts: Hosts = None,
    at_once: AtOnce = 64,
    program: Program = None,
    into: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="With --launcher: gather here; RUN's own folder if none.", show_default=False
        ),
    ] = None,
    send: Annotated[
        bool, typer.Option("--send", help="With --json: the dumps, too, on one line, as --launcher asks for.")
    ] = False,
    json: Json = False,
) -> int:
    """Ask all ranks for a dump; nobody is ended.

    By a request that each rank's monitor answers, NCCL's named pipe or torch's worker server. Waits until the
    files are whole, or says whose is missing and why. With --launcher the dumps of all hosts are gathered.
    Exit status: 0 all are there, 1 some are missing, 3 nobody answered.

    \b
    Example:
      train-ledger dump runs/r42
      train-ledger dump runs/r42 --launcher ssh --into dumps
      train-ledger dump runs/r42 --launcher 'kubectl exec {host} -- {argv}' --hosts 'worker-[0-15]' --json
    """
    from train_ledger.cli.dump_told import tell
    from train_ledger.cli.launching import want_launcher
    from train_ledger.cli.run_wanted import run_to_write

    want_launcher(launcher, {"--hosts": hosts, "--program": program, "--into": into})
    if send and not json:
        raise BadInputError("--send sends the dumps within the JSON: say --json, too")
    if launcher is None:
        gathered = _of_this_host(run_to_write(run, "dump"), job, timeout_s, pipe_prefix, dump_prefix, here)
    else:
        options = _passed_on(job, timeout_s, pipe_prefix, dump_prefix)
        gathered = _of_hosts(launcher, hosts, run, program, options, timeout_s, at_once, into)
    return tell(gathered, run, json=json, send=send)


def _of_this_host(
    run_dir: RunDir,
    job: str | None,
    timeout_s: float,
    pipe_prefix: str | None,
    dump_prefix: str | None,
    here: bool,
) -> Gathered:
    import time
    import uuid

    from train_ledger import config
    from train_ledger.cli.dump_here import gather_here
    from train_ledger.ops.asking.collect import Asking

    now = time.time()
    asking = Asking(
        f"dump-{now:.0f}-{uuid.uuid4().hex[:8]}",
        now,
        timeout_s,
        pipe_prefix=pipe_prefix,
        dump_prefix=dump_prefix,
    )
    return gather_here(run_dir, config.load(run_dir), asking, job=job, here_alone=here)


def _passed_on(
    job: str | None, timeout_s: float, pipe_prefix: str | None, dump_prefix: str | None
) -> list[str]:
    named = (("--job", job), ("--pipe-prefix", pipe_prefix), ("--dump-prefix", dump_prefix))
    options = [word for name, value in named if value for word in (name, value)]
    return ["--here", "--json", "--send", "--timeout-s", f"{timeout_s:g}", *options]


def _of_hosts(
    launcher: str,
    hosts: str | None,
    run: Path,
    program: str | None,
    options: list[str],
    timeout_s: float,
    at_once: int,
    into: Path | None,
) -> Gathered:
    from train_ledger import config
    from train_ledger.cli.launching import hosts_named, launcher_named, program_named
    from train_ledger.cli.run_wanted import run_to_write
    from train_ledger.ops.asking.worker_server import LONGEST_ANSWER_S
    from train_ledger.ops.hosts.dumps import gather_from
    from train_ledger.run_dir import RunDir

    how = launcher_named(launcher)
    run_dir = RunDir(run) if hosts and into else run_to_write(run, "dump")
    named = hosts_named(hosts, run_dir)
    command = [*program_named(program, run, "dump"), *options]
    settings = config.load(run_dir)
    # A rank may be asked by a request and by a pipe, each for its time, and its worker server in between.
    within_s = 2 * timeout_s + LONGEST_ANSWER_S + _LAUNCHER_SLACK_S
    return gather_from(
        how,
        named,
        command,
        run_dir,
        into=into,
        expected=_expected(run_dir, settings),
        limits=settings.limits,
        timeout_s=within_s,
        at_once=at_once,
    )


def _expected(run_dir: RunDir, settings: Config) -> set[int]:
    """The ranks that are known here, where the run directory can be seen from here."""
    from train_ledger.ops import observe

    if not run_dir.path.is_dir():
        return set()
    state, _ = observe(run_dir, settings)
    return {*state.ranks, *range(state.world_size or 0)}
