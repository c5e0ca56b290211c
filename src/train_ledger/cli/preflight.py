"""`train-ledger preflight`: does everything that a long run needs hold, before it starts?"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from train_ledger.answer import ExitCode
from train_ledger.cli.options import HtmlOrOutput, Json, seconds

if TYPE_CHECKING:
    from train_ledger.chaos.preflight import Wanted
    from train_ledger.ops.preflight import Preflight
    from train_ledger.run_dir import RunDir

__all__ = ["preflight"]

_STATUS = {
    "pass": ExitCode.NOTHING_WRONG,
    "fail": ExitCode.TROUBLE,
    "not_possible": ExitCode.CANNOT_TELL,
}
_GIBI_BITS = 125_000_000.0


def preflight(
    run: Annotated[
        Path | None,
        typer.Argument(
            metavar="RUN",
            help="Run directory, also of a run that has not started; without one nothing is kept.",
            show_default=False,
        ),
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option(metavar="ITEM,…", help="Only these, by number or word.", show_default="all"),
    ] = None,
    skip: Annotated[
        list[str] | None, typer.Option(metavar="ITEM,…", help="Without these.", show_default="none")
    ] = None,
    html: HtmlOrOutput = None,
    as_rank: Annotated[
        bool,
        typer.Option(
            "--as-rank",
            help="Under a launcher of yours, on all nodes: measure together into RUN/preflight/measured.",
        ),
    ] = False,
    ranks: Annotated[
        int | None,
        typer.Option(
            min=1, max=64, metavar="N", help="Ranks of its own job.", show_default="one a GPU, else 4"
        ),
    ] = None,
    load_s: Annotated[
        float, typer.Option(parser=seconds, metavar="SECONDS", help="How long the GPUs' clocks are watched.")
    ] = 300.0,
    gemm_tflops: Annotated[
        float | None,
        typer.Option(
            min=0.001,
            metavar="TFLOPS",
            help="What a healthy GPU reaches.",
            show_default="the data sheet's peak",
        ),
    ] = None,
    nominal_gbit: Annotated[
        float | None,
        typer.Option(
            min=0.001,
            metavar="GBIT",
            help="What a node's network cards carry together, in Gbit/s.",
            show_default="what the ports say",
        ),
    ] = None,
    code: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Where the training's scripts lie.", show_default="this folder"),
    ] = None,
    ring: Annotated[
        bool, typer.Option("--ring", help="Let the page drill tell those, too, whom [notify] names.")
    ] = False,
    json: Json = False,
) -> int:
    """Check what a long run needs, before it starts.

    Thirteen items, each of which passes, fails, or is not possible here and says why: gpu, bandwidth, clocks,
    memory, mfu, restore, layout, faults, recorder, page, logs, configuration, roster. Jobs and drills really
    run, on this machine; what only all nodes can tell is measured under your launcher by --as-rank. Exit
    status 0: nothing failed, 1: something did, 3: nothing could be checked.

    \b
    Example:
      train-ledger preflight runs/r42 --html preflight.html
      train-ledger preflight runs/r42 --only recorder,page --json
      srun torchrun … -m train_ledger preflight runs/r42 --as-rank
    """
    from train_ledger.chaos.preflight import Wanted
    from train_ledger.ops.preflight import chosen

    wanted = Wanted(
        items=tuple(item.key for item in chosen(only or [], skip or [])),
        ranks=ranks,
        load_s=load_s,
        gemm_flops=gemm_tflops * 1e12 if gemm_tflops else None,
        nominal_bytes_per_s=nominal_gbit * _GIBI_BITS if nominal_gbit else None,
        ring=ring,
        code=code or Path.cwd(),
    )
    if as_rank:
        return _as_rank(run, wanted, html, json)
    return _here(run, wanted, html, json)


def _here(run: Path | None, wanted: Wanted, html: Path | None, json: bool) -> int:
    from train_ledger import config
    from train_ledger.chaos.preflight import preflight as try_all
    from train_ledger.cli.leave import BadInputError

    run_dir = _place(run)
    settings = config.load(run_dir)
    if wanted.ring and not (settings.notify.urls or settings.notify.command):
        raise BadInputError("--ring: [notify] names no urls and no command, so nobody can be told")
    answer = try_all(run_dir, settings, wanted, _say)
    return _shown(answer, run_dir, html, json)


def _as_rank(run: Path | None, wanted: Wanted, html: Path | None, json: bool) -> int:
    from train_ledger import config
    from train_ledger.chaos.preflight import measured_as_rank
    from train_ledger.cli.leave import BadInputError

    if run is None or "RANK" not in os.environ or "WORLD_SIZE" not in os.environ:
        raise BadInputError(
            "--as-rank is for a launcher that sets RANK and WORLD_SIZE, as torchrun, and takes a RUN"
        )
    run_dir = _place(run)
    if run_dir is None:
        raise BadInputError("--as-rank takes a RUN")
    answer = measured_as_rank(run_dir, config.load(run_dir), wanted)
    return ExitCode.NOTHING_WRONG if answer is None else _shown(answer, run_dir, html, json)


def _place(run: Path | None) -> RunDir | None:
    """RUN, which may be made by its preflight."""
    from train_ledger.cli.leave import BadInputError
    from train_ledger.run_dir import RunDir

    if run is None:
        return None
    if not os.path.lexists(run):
        if not run.absolute().parent.is_dir():
            raise BadInputError(f"{run}: there is no folder {run.parent}; check the path")
        run.mkdir(exist_ok=True)
    return RunDir.existing(run)


def _say(text: str) -> None:
    """What goes on, beside the answer."""
    typer.echo(f"  {text}", err=True)


def _shown(answer: Preflight, run_dir: RunDir | None, html: Path | None, json: bool) -> int:
    import sys

    from train_ledger.cli.asked import made
    from train_ledger.cli.output import show, terminal_width, write_file
    from train_ledger.ops.preflight import as_object, as_page, as_terminal
    from train_ledger.render import as_json, wants_colour
    from train_ledger.run_dir import write_atomically

    told = as_json(as_object(answer))
    if run_dir is not None:
        write_atomically(run_dir.path / "preflight" / "report.json", told.encode() + b"\n")
    if html is not None:
        write_file(html, as_page(answer, made("preflight")).encode())
    show(told if json else as_terminal(answer, width=terminal_width(), colour=wants_colour(sys.stdout)))
    return _STATUS[answer.verdict]
