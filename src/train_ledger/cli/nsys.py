"""`train-ledger nsys`: run a rank under Nsight Systems, where it is one of those that are looked at."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from train_ledger.answer import ExitCode

__all__ = ["nsys"]

_RANK = ("RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK")
_WORLD = ("WORLD_SIZE", "SLURM_NTASKS", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE")


def nsys(
    command: Annotated[list[str], typer.Argument(metavar="CMD...", help="What each rank runs, behind --.")],
    ranks: Annotated[
        str,
        typer.Option(
            metavar="RANKS",
            help="Under nsys run these, like 0-7,512; else one tensor-parallel group and a far rank.",
            show_default=False,
        ),
    ] = "",
    run: Annotated[
        Path | None,
        typer.Option(
            "--run",
            metavar="RUN",
            help="The run directory; reports go to RUN/nsys, else to nsys/.",
            show_default=False,
        ),
    ] = None,
    tensor_parallel: Annotated[
        int,
        typer.Option("--tensor-parallel", min=0, help="Ranks of one such group, where run.json says none."),
    ] = 0,
    json: Annotated[
        bool,
        typer.Option("--json", help="Say with one JSON object what this rank would run, and run nothing."),
    ] = False,
) -> int:
    """Run CMD under nsys on chosen ranks only.

    On the others it runs as it is. Nothing is recorded until `train-ledger trace take RUN --nsys` has the
    rank's monitor begin, by cudaProfilerStart; the report is written when its steps are over. It stands
    between the launcher and the script.

    \b
    Example:
      train-ledger nsys --ranks 0-7,512 -- python train.py
      torchrun --nproc-per-node 8 --no-python train-ledger nsys --run runs/r42 -- python train.py
    """
    from train_ledger.cli.entries import rank_list
    from train_ledger.cli.leave import BadInputError
    from train_ledger.ops.asking.taking import telling_ranks
    from train_ledger.signals.asking.nsys import REPORT

    rank = _number(os.environ, _RANK)
    chosen = rank_list(ranks) if ranks else telling_ranks(_layout(run, tensor_parallel))
    environ = dict(os.environ)
    if rank is not None and rank in chosen:
        program = shutil.which("nsys")
        if program is None:
            raise BadInputError(f"rank {rank} is to run under nsys, which is not in PATH; load its module")
        report = _report(run, rank)
        command = _under_nsys(program, report, command)
        environ[REPORT] = str(report.with_suffix(".nsys-rep"))
    if json:
        from train_ledger.cli.output import show
        from train_ledger.render import as_json

        values = {"rank": rank, "command": command, "report": environ.get(REPORT), "ranks": sorted(chosen)}
        show(as_json(values))
        return ExitCode.NOTHING_WRONG
    try:
        os.execvpe(command[0], command, environ)  # noqa: S606 – the command is the user's own
    except OSError as error:
        raise BadInputError(f"{command[0]}: {error.strerror}") from error


def _number(environ: Mapping[str, str], names: tuple[str, ...]) -> int | None:
    return next((int(text) for name in names if (text := environ.get(name, "")).isdecimal()), None)


def _layout(run: Path | None, tensor_parallel: int) -> dict[str, object]:
    """What run.json says of the layout, else the launcher; the first start of a run has none yet."""
    from train_ledger.run_dir import RunDir, RunDirError

    found: dict[str, object] = {}
    if run is not None:
        try:
            found = dict(RunDir(run).read_run())
        except RunDirError:
            found = {}
    world = _number(os.environ, _WORLD)
    found.setdefault("world_size", world if world else 1)
    if tensor_parallel or "parallelism" not in found:
        size = tensor_parallel or _number(os.environ, ("LOCAL_WORLD_SIZE", "SLURM_NTASKS_PER_NODE")) or 1
        found["parallelism"] = {"tp": size}
    return found


def _report(run: Path | None, rank: int) -> Path:
    folder = (run / "nsys" if run is not None else Path("nsys")).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    attempt = 0
    while (
        (report := folder / f"rank_{rank}{f'_attempt_{attempt}' if attempt else ''}")
        .with_suffix(".nsys-rep")
        .exists()
    ):
        attempt += 1
    return report


def _under_nsys(program: str, report: Path, command: list[str]) -> list[str]:
    return [
        program, "profile", "-t", "cuda,nvtx,osrt", "--capture-range=cudaProfilerApi",
        "--capture-range-end=stop", "--cuda-graph-trace=node", "-o", str(report), *command,
    ]  # fmt: skip
