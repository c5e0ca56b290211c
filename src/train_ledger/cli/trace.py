"""`train-ledger trace`: where does the time of a step go, and what changed?"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from train_ledger.answer import ExitCode
from train_ledger.cli.options import Html, Json

if TYPE_CHECKING:
    from train_ledger.slow.trace.breakdown import Breakdown, Options
    from train_ledger.slow.trace.pipeline import Schedule
    from train_ledger.slow.trace.takings import Chosen

__all__ = ["trace_breakdown", "trace_diff"]

_Collectives = Annotated[
    list[str] | None,
    typer.Option(
        "--collectives",
        metavar="PATTERN",
        help="Kernels whose name matches this communicate, too; may be given several times.",
        show_default=False,
    ),
]
_Annotation = Annotated[
    str,
    typer.Option(
        "--step-annotation",
        metavar="NAME",
        help="The mark that begins a step, where profiler.step() was not called.",
        show_default=False,
    ),
]
_WithLast = Annotated[
    bool, typer.Option("--with-last", help="The last step, too, which may have been recorded in part.")
]
_Stages = Annotated[
    int | None,
    typer.Option(
        "--pipeline-stages", min=1, help="Stages of the pipeline, to tell its bubble.", show_default=False
    ),
]
_MicroBatches = Annotated[
    int | None,
    typer.Option("--micro-batches", min=1, help="Micro-batches a step, with the stages.", show_default=False),
]
_Chunks = Annotated[
    int, typer.Option("--chunks", min=1, help="Chunks of layers a rank: more than 1 where interleaved.")
]
_MOST_IN_FOLDER = 4096
_ENDINGS = (".json", ".json.gz")


def trace_breakdown(
    traces: Annotated[
        list[Path],
        typer.Argument(
            metavar="TRACE...", help="Kineto traces, .json or .json.gz, folders of them, or a run."
        ),
    ],
    collectives: _Collectives = None,
    step_annotation: _Annotation = "",
    with_last: _WithLast = False,
    pipeline_stages: _Stages = None,
    micro_batches: _MicroBatches = None,
    chunks: _Chunks = 1,
    json: Json = False,
    html: Html = None,
) -> int:
    """Say where the time of a step goes, rank by rank.

    Computation, communication that nothing hides, waiting for data, for the host, for another rank; the known
    buckets sum to the step exactly. With traces of several ranks it says who came late; with the pipeline's
    schedule by how much its bubble is longer than that.

    \b
    Example:
      train-ledger trace breakdown rank0.json.gz rank1.json.gz
      train-ledger trace breakdown traces/ --pipeline-stages 4 --micro-batches 8 --html step.html
    """
    from train_ledger.cli.output import show, write_page
    from train_ledger.cli.trace_shown import breakdown_lines, breakdown_values
    from train_ledger.render import as_json

    options = replace(
        _options(collectives, step_annotation, with_last),
        schedule=_schedule(pipeline_stages, micro_batches, chunks),
    )
    found = _broken_down(traces, options)
    if html is not None:
        from train_ledger.cli.trace_pages import report_of_breakdown

        write_page(html, report_of_breakdown(found), "trace breakdown", title=_named(traces))
    show(as_json(breakdown_values(found)) if json else "\n".join(breakdown_lines(found)))
    has_steps = any(rank.steps for rank in found.ranks.values())
    return ExitCode.NOTHING_WRONG if has_steps else ExitCode.CANNOT_TELL


def trace_diff(
    old: Annotated[Path, typer.Argument(metavar="OLD", help="A trace, or a folder of one trace a rank.")],
    new: Annotated[Path, typer.Argument(metavar="NEW", help="The same, taken later.")],
    collectives: _Collectives = None,
    step_annotation: _Annotation = "",
    with_last: _WithLast = False,
    json: Json = False,
    html: Html = None,
) -> int:
    """Say what changed between two traces of one training.

    The differences of the buckets sum to the difference of the steps exactly; from five steps a side on it
    says how sure they are. Kernels that differ are listed by how much is their number and how much their
    length.

    \b
    Example:
      train-ledger trace diff step100.json.gz step51300.json.gz
      train-ledger trace diff monday/ friday/ --html week.html
    """
    from train_ledger.cli.leave import BadInputError
    from train_ledger.cli.output import show, write_page
    from train_ledger.cli.trace_shown import difference_lines, difference_values
    from train_ledger.render import as_json
    from train_ledger.slow.trace.diff import trace_difference

    options = _options(collectives, step_annotation, with_last)
    try:
        found = trace_difference(_broken_down([old], options), _broken_down([new], options))
    except ValueError as error:
        raise BadInputError(f"{old} and {new}: {error}") from error
    if html is not None:
        from train_ledger.cli.trace_pages import report_of_difference

        write_page(html, report_of_difference(found), "trace diff", title=f"{old} → {new}")
    show(as_json(difference_values(found)) if json else "\n".join(difference_lines(found)))
    return ExitCode.NOTHING_WRONG


def _named(traces: list[Path]) -> str:
    return ", ".join(map(str, traces)) if len(traces) <= 3 else f"{traces[0]} and {len(traces) - 1} more"


def _schedule(stages: int | None, micro_batches: int | None, chunks: int) -> Schedule | None:
    from train_ledger.slow.trace.pipeline import Schedule

    if (stages is None) != (micro_batches is None):
        raise typer.BadParameter("--pipeline-stages and --micro-batches are given together")
    return Schedule(stages, micro_batches, chunks) if stages and micro_batches else None


def _options(collectives: list[str] | None, annotation: str, with_last: bool) -> Options:
    from train_ledger.slow.trace.breakdown import Options

    patterns = []
    for text in collectives or []:
        try:
            patterns.append(re.compile(text, re.IGNORECASE))
        except re.error as error:
            raise typer.BadParameter(f"--collectives {text!r} is no pattern: {error}") from error
    return Options(tuple(patterns), annotation, with_last)


def _broken_down(paths: list[Path], options: Options) -> Breakdown:
    from train_ledger.cli.leave import BadInputError
    from train_ledger.slow.trace.breakdown import Degraded, TraceError, breakdown

    chosen = [(path, _files(path)) for path in paths]
    try:
        found = breakdown([file for _, it in chosen for file in it.files], options)
    except TraceError as error:
        raise BadInputError(str(error)) from error
    left_out = [Degraded(str(path), it.remark) for path, it in chosen if it.remark]
    return replace(found, degraded=(*left_out, *found.degraded))


def _files(path: Path) -> Chosen:
    from train_ledger.cli.leave import BadInputError
    from train_ledger.slow.trace.takings import Chosen, newest_taking

    if not path.is_dir():
        return Chosen([path])
    if (path / "run.json").is_file():
        path = path / "traces"
    found = sorted(it for it in path.rglob("[!.]*.json*") if it.name.endswith(_ENDINGS) and it.is_file())
    if not found:
        raise BadInputError(f"{path}: has no trace (.json, .json.gz) in it")
    if len(found) > _MOST_IN_FOLDER:
        raise BadInputError(f"{path}: has {len(found)} files; name those of one profile")
    return newest_taking(path, found)
