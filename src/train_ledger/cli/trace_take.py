"""`train-ledger trace take`, `memory` and `nsys`: taken of living ranks, and what such a file says."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from train_ledger.answer import ExitCode
from train_ledger.cli.options import Html, Json, Run, seconds

if TYPE_CHECKING:
    from train_ledger.ops.asking.taking import Taken
    from train_ledger.slow.trace.nsys_export import KernelSum

__all__ = ["trace_memory", "trace_nsys", "trace_take"]

_MOST_ROWS = 30


def trace_take(
    run: Run,
    ranks: Annotated[
        str,
        typer.Option(
            metavar="RANKS",
            help="Of these, like 0-3,63; else of one tensor-parallel group and a far rank.",
            show_default=False,
        ),
    ] = "",
    steps: Annotated[int, typer.Option(min=1, max=100, help="Of how many steps.")] = 3,
    wait_s: Annotated[
        float, typer.Option("--wait-s", parser=seconds, metavar="SECONDS", help="How long to wait for them.")
    ] = 300.0,
    breakdown: Annotated[bool, typer.Option("--breakdown", help="Break them down at once.")] = False,
    nsys: Annotated[
        bool, typer.Option("--nsys", help="By the nsys that they run under (see train-ledger nsys).")
    ] = False,
    json: Json = False,
) -> int:
    """Take traces of a living job's next steps.

    It is not restarted. All ranks record the same steps, into a folder of their own in RUN/traces; it slows
    those steps down. A trace of more than a gigabyte is not kept, one of more than ten minutes ends there.
    Exit status: 0 all are there, 1 some are missing, 3 none.

    \b
    Example:
      train-ledger trace take runs/r42 --ranks 0-3,63 --steps 5 --breakdown
      train-ledger trace diff runs/r42/traces/scheduled-1760000000 runs/r42/traces/taken-1760003600
    """
    import time
    import uuid

    from train_ledger.cli.entries import rank_list
    from train_ledger.cli.run_wanted import run_to_write
    from train_ledger.ops.asking.taking import take, telling_ranks

    run_dir = run_to_write(run, "trace take", begun=True)
    chosen = sorted(rank_list(ranks)) if ranks else telling_ranks(run_dir.read_run())
    name = f"taken-{time.time():.0f}-{uuid.uuid4().hex[:4]}"
    taken = take(run_dir, name, chosen, steps=steps, wait_s=wait_s, by_nsys=nsys)
    files = [path for path in taken.answers.files.values() if path.is_file()]
    if breakdown and files and not nsys:
        _tell_missing(taken)
        from train_ledger.cli.trace import trace_breakdown

        trace_breakdown(files, json=json)
    else:
        _tell(taken, name, json=json)
    if not taken.answers.failed:
        return ExitCode.NOTHING_WRONG
    return ExitCode.TROUBLE if taken.answers.files else ExitCode.CANNOT_TELL


def _tell_missing(taken: Taken) -> None:
    import sys

    from train_ledger.render import harmless

    for rank, why in taken.answers.failed.items():
        print(harmless(f"rank {rank}: {why}"), file=sys.stderr)


def _tell(taken: Taken, name: str, *, json: bool) -> None:
    from train_ledger.cli.output import show
    from train_ledger.render import as_json, harmless, ranks_in_words

    files, failed = taken.answers.files, taken.answers.failed
    if json:
        values = {
            "name": name,
            "first_step": taken.first_step,
            "files": {str(rank): str(path) for rank, path in files.items()},
            "failed": {str(rank): why for rank, why in failed.items()},
        }
        show(as_json(values))
        return
    lines = [f"rank {rank}: {path}" for rank, path in files.items()]
    by_why: dict[str, list[int]] = {}
    for rank, why in failed.items():
        by_why.setdefault(why, []).append(rank)
    lines += [f"{ranks_in_words(some)}: {why}" for why, some in by_why.items()]
    show("\n".join(harmless(line) for line in lines))


def trace_memory(
    snapshot: Annotated[
        Path,
        typer.Argument(metavar="SNAPSHOT", help="A snapshot of CUDA's allocator, as torch pickles it."),
    ],
    json: Json = False,
    html: Html = None,
) -> int:
    """Say what fills a GPU's memory, by a snapshot.

    By one of CUDA's allocator: reserved, allocated and lying in gaps; the largest blocks with where they were
    allocated, where that was recorded (train-ledger ask RUN memory_snapshot --record-history). Nothing that
    the pickle asks to call is called.

    \b
    Example:
      train-ledger trace memory runs/r42/memory_snapshots/rank_5.pickle
    """
    from train_ledger.cli.leave import BadInputError
    from train_ledger.cli.memory_shown import memory_lines, memory_values, report_of_memory
    from train_ledger.cli.output import show, write_page
    from train_ledger.render import as_json, harmless
    from train_ledger.slow.trace.memory_snapshot import SnapshotError, memory_summary

    try:
        found = memory_summary(snapshot)
    except SnapshotError as error:
        raise BadInputError(harmless(str(error))) from error
    except OSError as error:
        raise BadInputError(f"{snapshot}: {error.strerror or error}") from error
    if html is not None:
        write_page(html, report_of_memory(found), "trace memory", title=str(snapshot))
    if json:
        show(as_json(memory_values(found)))
    else:
        show("\n".join(harmless(line, longest=400) for line in memory_lines(found)))
    return ExitCode.NOTHING_WRONG


def trace_nsys(
    export: Annotated[
        Path, typer.Argument(metavar="SQLITE", help="What `nsys export --type sqlite REPORT` makes.")
    ],
    json: Json = False,
) -> int:
    """Sum an nsys report's kernels by their names.

    A breakdown can be checked by it.

    \b
    Example:
      train-ledger trace nsys rank_0.sqlite
    """
    from dataclasses import asdict

    from train_ledger.cli.leave import BadInputError
    from train_ledger.cli.output import show
    from train_ledger.render import as_json, harmless
    from train_ledger.slow.trace.nsys_export import NsysError, kernel_sums

    try:
        found = kernel_sums(export)
    except NsysError as error:
        raise BadInputError(harmless(str(error))) from error
    except OSError as error:
        raise BadInputError(f"{export}: {error.strerror or error}") from error
    if json:
        show(as_json({"kernels": [asdict(it) for it in found]}))
    else:
        show("\n".join(harmless(line, longest=160) for line in _sum_lines(found)))
    return ExitCode.NOTHING_WRONG


def _sum_lines(found: list[KernelSum]) -> Iterator[str]:
    whole_ns = sum(it.total_ns for it in found)
    yield f"{len(found)} kinds of kernels, {whole_ns / 1e6:,.3f} ms in all"
    yield f"{'time':>6}{'total ms':>14}{'count':>10}{'mean µs':>12}{'least µs':>12}{'most µs':>12}  name"
    for it in found[:_MOST_ROWS]:
        share = it.total_ns / whole_ns if whole_ns else 0.0
        figures = f"{it.mean_ns / 1e3:12,.1f}{it.least_ns / 1e3:12,.1f}{it.most_ns / 1e3:12,.1f}"
        yield f"{share:6.1%}{it.total_ns / 1e6:14,.3f}{it.count:10,}{figures}  {it.name}"
    if len(found) > _MOST_ROWS:
        yield f"and {len(found) - _MOST_ROWS} more: --json has them all"
