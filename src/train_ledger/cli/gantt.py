"""`train-ledger gantt`: what did all ranks do, side by side?"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any

import typer

from train_ledger.answer import ExitCode
from train_ledger.cli.leave import BadInputError
from train_ledger.cli.options import Json, moment

if TYPE_CHECKING:
    from train_ledger.ops.gantt import Gantt, TraceFile

__all__ = ["gantt"]

_DEFAULT = Path("gantt.json.gz")
_LARGE_EVENTS = 5_000_000


def gantt(
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="RUN", help="Run directory; or torchtitan's structured logs, a folder or files."
        ),
    ],
    output: Annotated[
        Path,
        typer.Option(
            "-o", "--output", metavar="FILE", help="Write the trace here; packed if it ends in .gz."
        ),
    ] = _DEFAULT,
    steps: Annotated[
        str | None, typer.Option(metavar="FIRST:LAST", help="These steps alone.", show_default=False)
    ] = None,
    ranks: Annotated[
        str | None, typer.Option(metavar="0-15,32", help="These ranks alone.", show_default=False)
    ] = None,
    since: Annotated[
        float | None,
        typer.Option(metavar="T", parser=moment, help="From this time on, as for --at.", show_default=False),
    ] = None,
    until: Annotated[
        float | None,
        typer.Option(metavar="T", parser=moment, help="Up to this time.", show_default=False),
    ] = None,
    counters: Annotated[
        str,
        typer.Option(
            metavar="NAME,…",
            help="Draw these fields as graphs, like loss,mem_allocated_peak.",
            show_default=False,
        ),
    ] = "",
    logs: Annotated[
        bool, typer.Option(help="Mark the faults that the run's logs tell of.", show_default=True)
    ] = True,
    json: Json = False,
) -> int:
    """Draw what all ranks did, as a trace for Perfetto.

    A row for each rank: its steps and their parts, phases, checkpoints, faults and restarts, and the spans of
    torchtitan's structured logs, on the clock of rank 0's host. Open the file at https://ui.perfetto.dev or
    in chrome://tracing.

    \b
    Example:
      train-ledger gantt runs/r42
      train-ledger gantt runs/r42 --steps 100:120 --ranks 0-15 -o slow.json.gz
    """
    import math

    from train_ledger.cli.output import show
    from train_ledger.ops.gantt import Gantt, Selection, TraceFile, rank_ranges, step_range
    from train_ledger.render import as_json

    first, last = step_range(steps) if steps is not None else (0, None)
    selection = Selection(
        first,
        last,
        rank_ranges(ranks) if ranks is not None else None,
        -math.inf if since is None else since,
        math.inf if until is None else until,
    )
    names = [name.strip() for name in counters.split(",") if name.strip()]
    drawing = Gantt(paths, selection, names, with_logs=logs)
    with _opened(output) as file:
        trace = TraceFile(file, gz=output.name.endswith(".gz"))
        drawing.draw(trace)
    show(as_json(_answer(drawing, trace, output)) if json else _said(drawing, trace, output))
    tally = drawing.tally
    return ExitCode.NOTHING_WRONG if tally.steps or tally.spans or tally.faults else ExitCode.CANNOT_TELL


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[IO[bytes]]:
    """The file to write to: a regular one appears as a whole, by a rename; others are written into."""
    from train_ledger.cli.output import is_written_into, open_other

    try:
        is_other = is_written_into(path.stat())
    except FileNotFoundError:
        is_other = False
        if not path.parent.is_dir():
            raise BadInputError(f"{path}: there is no folder {path.parent}; make it first") from None
    if path.is_dir():
        raise BadInputError(f"{path}: is a folder, but a file is wanted")
    if is_other:
        with open_other(path) as file:
            yield file
        return
    target = path.resolve()
    handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
        os.chmod(temporary, 0o644)
        os.replace(temporary, target)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def _answer(drawing: Gantt, trace: TraceFile, output: Path) -> dict[str, Any]:
    tally = drawing.tally
    return {
        "file": str(output),
        "bytes": trace.size_bytes,
        "events": trace.events,
        "ranks": len(tally.ranks),
        "attempts": sorted(tally.attempts),
        "steps": tally.steps,
        "spans": tally.spans,
        "unfinished": tally.unfinished,
        "faults_in_logs": tally.faults,
        "clock_ahead_s": drawing.clocks.by_host,
        "not_read": list(tally.not_read_lines),
    }


def _size(size_bytes: int) -> str:
    return f"{size_bytes / 1e6:,.1f} MB" if size_bytes >= 1e5 else f"{size_bytes / 1e3:.1f} kB"


def _said(drawing: Gantt, trace: TraceFile, output: Path) -> str:
    tally = drawing.tally
    on = f" on {len(tally.hosts)} hosts" if len(tally.hosts) > 1 else ""
    lines = [
        f"{output}: {len(tally.ranks)} ranks{on}, {tally.steps:,} steps and {tally.spans:,} spans, "
        f"{trace.events:,} events in {_size(trace.size_bytes)}; open it at https://ui.perfetto.dev"
    ]
    if tally.faults:
        lines.append(f"  {tally.faults} faults that logs tell of are marked")
    if tally.unfinished:
        spans = "1 span" if tally.unfinished == 1 else f"{tally.unfinished} spans"
        lines.append(f"  without an end, drawn up to the last line of the rank: {spans}")
    off = {host: lead_s for host, lead_s in drawing.clocks.by_host.items() if abs(lead_s) >= 0.5}
    lines += [f"  corrected: the clock of {host} is {lead_s:+.3f} s off" for host, lead_s in off.items()]
    if not tally.steps and not tally.spans:
        lines.append("  nothing of what was asked for is in it; see --steps, --ranks, --since and --until")
    if trace.events > _LARGE_EVENTS:
        lines.append("  a browser may not hold so many; --steps and --ranks choose a part")
    lines += [f"  not read: {reason}" for reason in tally.not_read_lines]
    return "\n".join(lines)
